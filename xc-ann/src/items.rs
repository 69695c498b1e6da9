//! Which rows a vertex stands for: equal rows are one vertex.

use crate::error::BuildError;
use crate::metric::Metric;
use rayon::prelude::*;
use xc_sparse::DenseRows;
use xc_sparse::buffer::Buffer;
use xxhash_rust::xxh3::xxh3_64;

/// No further row.
const LAST: u32 = u32::MAX;

/// Rows by vertex: the first of each, and a chain of those equal to it.
#[derive(Clone, Debug)]
pub(crate) struct Items {
    first: Buffer<u32>,
    /// By row; empty where no two rows are equal.
    next: Buffer<u32>,
}

impl Items {
    /// Rows in their order, or by falling length where inner products are compared: large ones are
    /// answers more often than others, and then lie together. Rows of zeros have no direction and
    /// are left out of angular metrics.
    pub(crate) fn new(rows: DenseRows<'_>, metric: Metric) -> Result<Self, BuildError> {
        let squares: Vec<f64> = rows
            .values()
            .par_chunks(rows.width())
            .map(|row| row.iter().map(|&v| f64::from(v) * f64::from(v)).sum())
            .collect();
        if let Some(row) = squares.iter().position(|s| !(*s < f64::from(f32::MAX))) {
            return Err(BuildError::Row { row });
        }
        let mut by_hash: Vec<(u64, u32)> = rows
            .values()
            .par_chunks(rows.width())
            .enumerate()
            .filter(|(row, _)| !metric.is_angular() || squares[*row] > 0.0)
            .map(|(row, values)| (xxh3_64(bytemuck::cast_slice(values)), row as u32))
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
            first.par_sort_unstable_by(|a, b| squares[*b as usize].total_cmp(&squares[*a as usize]).then(a.cmp(b)));
        } else {
            first.par_sort_unstable();
        }
        Ok(Self { first: first.into(), next: next.into() })
    }

    /// The first row of each vertex.
    pub(crate) fn first(&self) -> &[u32] {
        &self.first
    }

    /// All rows of a vertex.
    #[inline]
    pub(crate) fn of(&self, vertex: u32) -> impl Iterator<Item = u32> {
        let next = &self.next;
        std::iter::successors(Some(self.first[vertex as usize]), move |&row| {
            next.get(row as usize).copied().filter(|&row| row != LAST)
        })
    }
}
