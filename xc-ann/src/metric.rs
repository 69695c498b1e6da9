//! What near means.

use serde::{Deserialize, Serialize};
use xc_sparse::DenseRows;
use xc_sparse::dense::{dot, squared_distance};
use xc_sparse::parallel::for_each_part;
use xc_sparse::simd::prefetch_all;

/// What is compared, and what the score of an answer is: larger is better under each of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Metric {
    /// Euclidean distance; the score is the squared distance with a minus.
    #[serde(rename = "l2")]
    L2,
    /// Cosine of the angle. A row of zeros has no direction: it is no answer, and no query.
    #[serde(rename = "cosine")]
    Cosine,
    /// Inner product of vectors of any length.
    #[serde(rename = "ip")]
    InnerProduct,
}

impl Metric {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::L2, Self::Cosine, Self::InnerProduct];

    /// `l2`, `cosine` or `ip`.
    pub fn name(self) -> &'static str {
        match self {
            Self::L2 => "l2",
            Self::Cosine => "cosine",
            Self::InnerProduct => "ip",
        }
    }

    /// The score of two vectors; that of a vector of zeros under [`Metric::Cosine`] is 0.
    ///
    /// # Panics
    /// If they differ in length.
    pub fn score(self, a: &[f32], b: &[f32]) -> f32 {
        score(self, a, squares_of(self, a), b)
    }

    /// The scores of listed rows, in their order.
    ///
    /// # Panics
    /// If widths differ, or a row is not there.
    pub(crate) fn scores(self, query: &[f32], rows: DenseRows<'_>, listed: &[u32], scores: &mut Vec<f32>) {
        let squares = squares_of(self, query);
        scores.clear();
        let row = |at: usize| listed.get(at).map(|&row| rows.row(row as usize));
        (0..AHEAD).filter_map(row).for_each(prefetch_all);
        scores.extend(listed.iter().enumerate().map(|(at, &number)| {
            row(at + AHEAD).into_iter().for_each(prefetch_all);
            score(self, query, squares, rows.row(number as usize))
        }));
    }

    /// The square of the length of each row, where scores of products need it.
    pub(crate) fn squares(self, rows: DenseRows<'_>) -> Vec<f32> {
        let mut squares = vec![0.0; if self == Self::InnerProduct { 0 } else { rows.len() }];
        for_each_part(&mut squares, SOME, |part, to| {
            for (to, row) in to.iter_mut().zip(part * SOME..) {
                *to = dot(rows.row(row), rows.row(row));
            }
        });
        squares
    }

    /// The key of a score: smaller is nearer. Keys of codes under the cosine are squared distances of
    /// unit vectors.
    pub(crate) fn key_of_score(self, score: f32) -> f32 {
        if self.is_angular() { 2.0 - 2.0 * score } else { -score }
    }

    /// The score of a key.
    pub(crate) fn score_of_key(self, key: f32) -> f32 {
        if self.is_angular() { 1.0 - 0.5 * key } else { -key }
    }

    /// Whether only directions count.
    pub(crate) fn is_angular(self) -> bool {
        self == Self::Cosine
    }
}

/// Rows that are asked for before they are needed.
const AHEAD: usize = 4;
/// Rows of a task.
const SOME: usize = 4096;

/// The score of a row; `squares` of the query are those of [`squares_of`].
#[inline]
fn score(metric: Metric, query: &[f32], squares: f32, row: &[f32]) -> f32 {
    match metric {
        Metric::L2 => -squared_distance(query, row),
        Metric::InnerProduct => dot(query, row),
        Metric::Cosine => {
            let squares = f64::from(squares) * f64::from(dot(row, row));
            if squares > 0.0 { (f64::from(dot(query, row)) / squares.sqrt()) as f32 } else { 0.0 }
        }
    }
}

/// What scores need of a query alone.
fn squares_of(metric: Metric, query: &[f32]) -> f32 {
    if metric.is_angular() { dot(query, query) } else { 0.0 }
}

impl std::fmt::Display for Metric {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
