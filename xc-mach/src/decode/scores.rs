//! Bucket scores: the output of the classifiers of the repetitions.

use crate::product::dense::{self, Extent};
use thiserror::Error;

/// A query's bucket scores: R rows of B numbers, all finite.
///
/// # Invariants
/// `values.len() == n_repetitions * n_buckets`; every value is finite.
#[derive(Clone, Copy, Debug)]
pub struct BucketScores<'a> {
    values: &'a [f32],
    n_repetitions: usize,
    n_buckets: usize,
    extent: Extent,
}

/// Why numbers are not bucket scores.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum BucketScoresError {
    /// Too few or too many numbers.
    #[error("{got} bucket scores, expected {expected}: repetitions times buckets")]
    Length {
        /// Numbers found.
        got: usize,
        /// Numbers expected.
        expected: usize,
    },
    /// NaN or an infinity.
    #[error("repetition at position {position}, bucket {bucket}: score {got}, expected a finite number")]
    NotFinite {
        /// Position of the repetition.
        position: usize,
        /// The bucket.
        bucket: usize,
        /// The number found.
        got: f32,
    },
}

impl<'a> BucketScores<'a> {
    /// Checks and wraps. Usually probabilities; any finite numbers are allowed.
    ///
    /// *Cost*: one pass over the numbers.
    pub fn try_new(values: &'a [f32], n_repetitions: usize, n_buckets: usize) -> Result<Self, BucketScoresError> {
        let expected = n_repetitions.saturating_mul(n_buckets);
        if values.len() != expected {
            return Err(BucketScoresError::Length { got: values.len(), expected });
        }
        let extent = dense::extent(values);
        // Infinities and NaN have all bits of the exponent: as integers without their sign they are
        // the largest.
        if extent.magnitude_bits >= f32::INFINITY.to_bits() {
            let at = values.iter().position(|v| !v.is_finite()).unwrap_or(0);
            let (position, bucket) = (at / n_buckets, at % n_buckets);
            return Err(BucketScoresError::NotFinite { position, bucket, got: values[at] });
        }
        Ok(Self { values, n_repetitions, n_buckets, extent })
    }

    /// Scores of the repetition at `position`.
    ///
    /// # Panics
    /// If there is no such repetition.
    pub fn row(&self, position: usize) -> &'a [f32] {
        &self.values[position * self.n_buckets..(position + 1) * self.n_buckets]
    }

    /// Number of repetitions.
    pub fn n_repetitions(&self) -> usize {
        self.n_repetitions
    }

    /// Number of buckets.
    pub fn n_buckets(&self) -> usize {
        self.n_buckets
    }

    /// The largest magnitude, when some score is negative.
    pub(super) fn magnitude_if_signed(&self) -> Option<f32> {
        (self.extent.lowest < 0.0).then(|| self.extent.highest.max(-self.extent.lowest))
    }
}
