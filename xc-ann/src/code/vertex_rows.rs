//! Which rows a vertex stands for: equal rows are one vertex.

use crate::error::BuildError;
use crate::metric::Metric;
use rayon::prelude::*;
use std::collections::HashSet;
use std::sync::{Arc, OnceLock};
use xc_buffer::Buffer;
use xc_dense::DenseRows;
use xxhash_rust::xxh3::xxh3_64;

/// No further row.
pub(crate) const LAST: u32 = u32::MAX;

/// The square of a vector's length.
pub(crate) fn square(vector: &[f32]) -> f64 {
    xc_dense::wide_dot(vector, vector)
}

/// The square of the length of what a vector has beyond a mean, if there is one.
fn square_beyond(vector: &[f32], mean: &[f32]) -> f64 {
    let means = mean.iter().copied().chain(std::iter::repeat(0.0));
    vector.iter().zip(means).map(|(&v, mean)| (f64::from(v) - f64::from(mean)).powi(2)).sum()
}

/// Whether a sum of squares is no number, or more than keys hold.
pub(crate) fn is_beyond(square: f64) -> bool {
    square.is_nan() || square >= f64::from(f32::MAX)
}

/// Those of the listed rows that a graph may have; of angular metrics those that are not all 0.
///
/// # Errors
/// A value that is not finite, or a length beyond what keys hold.
pub(crate) fn check_rows(rows: DenseRows<'_>, listed: &[u32], metric: Metric) -> Result<Vec<u32>, BuildError> {
    let mut kept = Vec::with_capacity(listed.len());
    for &row in listed {
        let square = square(rows.row(row as usize));
        if is_beyond(square) {
            return Err(BuildError::Row { row: row as usize });
        }
        if square > 0.0 || !metric.is_angular() {
            kept.push(row);
        }
    }
    Ok(kept)
}

/// Rows by vertex: the first of each, and a chain of those equal to it.
#[derive(Clone, Debug)]
pub(crate) struct Items {
    first: Buffer<u32>,
    /// By row; empty where no two rows are equal.
    next: Buffer<u32>,
    n_rows: usize,
    n_free: usize,
    /// The vertex of each row, once someone asks.
    vertex_of: OnceLock<Arc<Vec<u32>>>,
}

impl Items {
    /// The listed rows in their order, or by decreasing norm of the centred row where inner products are compared: large
    /// ones are answers more often than others, and then lie together. Rows of zeros have no direction and
    /// are left out of angular metrics. `mean`: of as many coordinates as rows have, or none.
    pub(crate) fn new(rows: DenseRows<'_>, listed: &[u32], metric: Metric, mean: &[f32]) -> Result<Self, BuildError> {
        let squares: Vec<f64> = listed.par_iter().map(|&row| square(rows.row(row as usize))).collect();
        if let Some(at) = squares.iter().position(|s| is_beyond(*s)) {
            return Err(BuildError::Row { row: listed[at] as usize });
        }
        let mut by_hash: Vec<(u64, u32)> = listed
            .par_iter()
            .zip(&squares)
            .filter(|(_, square)| !metric.is_angular() || **square > 0.0)
            .map(|(&row, _)| (xxh3_64(bytemuck::cast_slice(rows.row(row as usize))), row))
            .collect();
        by_hash.par_sort_unstable();
        let is_equal = |a: u32, b: u32| rows.row(a as usize) == rows.row(b as usize);
        let (mut first, mut next) = (Vec::with_capacity(by_hash.len()), Vec::new());
        for group in by_hash.chunk_by(|a, b| a.0 == b.0) {
            // Rows of one hash: nearly always one, or equal ones.
            let begin = first.len();
            for &(_, row) in group {
                match first[begin..].iter().copied().find(|&other| is_equal(other, row)) {
                    None => first.push(row),
                    Some(other) => {
                        next.resize(rows.len(), LAST);
                        next[row as usize] = std::mem::replace(&mut next[other as usize], row);
                    }
                }
            }
        }
        if metric == Metric::InnerProduct {
            let mut by_length: Vec<(f64, u32)> =
                first.par_iter().map(|&row| (square_beyond(rows.row(row as usize), mean), row)).collect();
            by_length.par_sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
            first = by_length.into_iter().map(|(_, row)| row).collect();
        } else {
            first.par_sort_unstable();
        }
        Ok(Self {
            n_rows: by_hash.len(),
            n_free: 0,
            first: first.into(),
            next: next.into(),
            vertex_of: OnceLock::new(),
        })
    }

    /// Rows of vertices that were made before; none where a row stands twice.
    pub(crate) fn of(first: Buffer<u32>, next: Buffer<u32>) -> Option<Self> {
        // Chains that run in circles have more rows than there is room for.
        let most = first.len() + next.len();
        let mut rows = Vec::new();
        for mut at in first.iter().copied() {
            while at != LAST {
                if rows.len() == most {
                    return None;
                }
                rows.push(at);
                at = next.get(at as usize).copied().unwrap_or(LAST);
            }
        }
        rows.par_sort_unstable();
        let is_free = |row: &&u32| **row == LAST;
        let (n_rows, n_free) = (rows.len(), first.iter().filter(is_free).count());
        let is_free_of_doubles = rows.windows(2).all(|pair| pair[0] < pair[1]);
        is_free_of_doubles.then_some(Self { first, next, n_rows, n_free, vertex_of: OnceLock::new() })
    }

    /// The row equal to each one that comes next.
    pub(crate) fn next_rows(&self) -> &Buffer<u32> {
        &self.next
    }

    /// The first row of each vertex, as [`Items::first`] has them.
    pub(crate) fn first_rows(&self) -> &Buffer<u32> {
        &self.first
    }

    /// The largest number of a row; 0 where there is none.
    pub(crate) fn largest(&self) -> u32 {
        self.first.iter().chain(&self.next[..]).copied().filter(|&row| row != LAST).max().unwrap_or(0)
    }

    /// The first row of each vertex; [`LAST`] where all were deleted.
    pub(crate) fn first(&self) -> &[u32] {
        &self.first
    }

    /// Whether a vertex has rows.
    #[inline(always)]
    pub(crate) fn is_live(&self, vertex: u32) -> bool {
        self.first[vertex as usize] != LAST
    }

    /// Whether all vertices have rows.
    pub(crate) fn all_live(&self) -> bool {
        self.n_free == 0
    }

    /// Rows of all vertices.
    pub(crate) fn len(&self) -> usize {
        self.n_rows
    }

    pub(crate) fn n_bytes(&self) -> usize {
        4 * (self.first.len() + self.next.len())
    }

    /// All rows of a vertex.
    #[inline(always)]
    pub(crate) fn rows(&self, vertex: u32) -> impl Iterator<Item = u32> {
        let (first, next) = (&self.first, &self.next);
        let first = Some(first[vertex as usize]).filter(|&row| row != LAST);
        std::iter::successors(first, move |&row| next.get(row as usize).copied().filter(|&row| row != LAST))
    }

    /// The vertex of each row, up to the last row that has one; [`LAST`] where there is none.
    pub(crate) fn vertex_of(&self) -> &[u32] {
        self.vertex_of.get_or_init(|| {
            let mut vertex_of = vec![LAST; if self.n_rows == 0 { 0 } else { self.largest() as usize + 1 }];
            for vertex in 0..self.first.len() as u32 {
                self.rows(vertex).for_each(|row| vertex_of[row as usize] = vertex);
            }
            Arc::new(vertex_of)
        })
    }

    /// Takes a row from its vertex.
    pub(crate) fn remove(&mut self, vertex: u32, row: u32) {
        self.vertex_of = OnceLock::new();
        let rows: Vec<u32> = self.rows(vertex).filter(|&other| other != row).collect();
        if (row as usize) < self.next.len() {
            self.next.to_mut()[row as usize] = LAST;
        }
        for pair in rows.windows(2) {
            self.next.to_mut()[pair[0] as usize] = pair[1];
        }
        if let Some(&last) = rows.last().filter(|&&last| (last as usize) < self.next.len()) {
            self.next.to_mut()[last as usize] = LAST;
        }
        self.first.to_mut()[vertex as usize] = rows.first().copied().unwrap_or(LAST);
        self.n_free += usize::from(rows.is_empty());
        self.n_rows -= 1;
    }

    /// Vertices for further rows, each its own: places of deleted ones first, then new ones.
    pub(crate) fn add(&mut self, rows: &[u32]) -> Vec<u32> {
        self.vertex_of = OnceLock::new();
        let mut first = self.first.to_vec();
        let mut free = (0..first.len()).filter(|&v| first[v] == LAST).collect::<Vec<_>>().into_iter();
        let mut vertices = Vec::with_capacity(rows.len());
        for &row in rows {
            let vertex = free.next().unwrap_or(first.len());
            if vertex == first.len() {
                first.push(row);
            } else {
                first[vertex] = row;
                self.n_free -= 1;
            }
            vertices.push(vertex as u32);
        }
        self.n_rows += rows.len();
        self.first = first.into();
        vertices
    }

    /// The vertices that have rows of a set, and which.
    pub(crate) fn vertices_of(&self, wanted: &HashSet<u32>) -> Vec<(u32, u32)> {
        let of = |vertex: u32| self.rows(vertex).filter(|row| wanted.contains(row)).map(move |row| (vertex, row));
        (0..self.first.len() as u32).flat_map(of).collect()
    }

    /// A bit for each of `n_rows` rows: whether a vertex has it. None where all have one.
    pub(crate) fn live_bits(&self, n_rows: usize) -> Option<Vec<u64>> {
        if self.n_rows == n_rows {
            return None;
        }
        let mut bits = vec![0u64; n_rows.div_ceil(64)];
        let all = (0..self.first.len() as u32).flat_map(|vertex| self.rows(vertex));
        all.for_each(|row| bits[row as usize / 64] |= 1 << (row % 64));
        Some(bits)
    }
}
