//! Metrics: how vectors are compared.

use serde::{Deserialize, Serialize};
use xc_sparse::DenseRows;
use xc_sparse::dense::{dot, dots, dots_and_squares, squared_distance, squared_distances};
use xc_sparse::parallel::for_each_part;

/// How vectors are compared, and what the score of an answer is: a larger score is always better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Metric {
    /// Euclidean distance; the score is the negative squared distance.
    #[serde(rename = "l2")]
    L2,
    /// Cosine of the angle. A row of zeros has no direction: it can be neither an answer nor a query.
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
        match self {
            Self::L2 => -squared_distance(a, b),
            Self::InnerProduct => dot(a, b),
            Self::Cosine => cosine(dot(a, b), dot(a, a), dot(b, b)),
        }
    }

    /// The scores of listed rows, in their order.
    ///
    /// # Panics
    /// If widths differ, or a row is not there.
    pub(crate) fn scores(self, query: &[f32], rows: DenseRows<'_>, listed: &[u32], scores: &mut Vec<f32>) {
        scores.clear();
        match self {
            Self::L2 => squared_distances(query, rows, listed, |distance| scores.push(-distance)),
            Self::InnerProduct => dots(query, rows, listed, |dot| scores.push(dot)),
            Self::Cosine => {
                let squares = dot(query, query);
                dots_and_squares(query, rows, listed, |dot, of_row| scores.push(cosine(dot, squares, of_row)));
            }
        }
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

/// Rows of a task.
const SOME: usize = 4096;

/// The cosine of the angle of two vectors, by their product and the squares of their lengths; 0 for one of zeros.
#[inline]
fn cosine(dot: f32, squares: f32, of_other: f32) -> f32 {
    let squares = f64::from(squares) * f64::from(of_other);
    if squares > 0.0 { (f64::from(dot) / squares.sqrt()) as f32 } else { 0.0 }
}

impl std::fmt::Display for Metric {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
