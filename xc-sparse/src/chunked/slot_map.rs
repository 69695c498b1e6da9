//! The monotone map from features to slots that the levels of a tree share.

#![allow(unsafe_code, reason = "constructors without checks")]

use super::ChunkedError;
use xc_buffer::Buffer;

/// The monotone map from features to the range of `u32`, shared by all chunks of a tree: see
/// [`super::ChunkedLevel`].
///
/// Cloning copies a pointer. Levels and queries fit together if they hold clones of one map.
///
/// # Invariants
/// Non-decreasing.
#[derive(Clone, Debug, PartialEq)]
pub struct SlotMap {
    scaled: Buffer<u32>,
}

impl SlotMap {
    /// Builds the map from the number of chunks that each feature occurs in.
    pub fn new(occurrences: &[u64]) -> Self {
        let n = occurrences.len() as u128;
        let total: u128 = occurrences.iter().map(|&c| u128::from(c)).sum();
        let mut before = 0u128;
        let scaled = occurrences.iter().enumerate().map(|(f, &count)| {
            let uniform = ((f as u128) << 32) / n;
            let frequent = (before << 32).checked_div(total).unwrap_or(uniform);
            before += u128::from(count);
            // Both halves are below 2^32, so their mean is too.
            ((uniform + frequent) / 2) as u32
        });
        Self { scaled: scaled.collect() }
    }

    /// Takes an array of a file and checks it. *Cost*: O(features).
    ///
    /// # Errors
    /// The array decreases.
    pub fn try_new(scaled: Buffer<u32>) -> Result<Self, ChunkedError> {
        match scaled.windows(2).position(|w| w[0] > w[1]) {
            Some(feature) => Err(ChunkedError::SlotMap { feature: feature + 1 }),
            None => Ok(Self { scaled }),
        }
    }

    /// Takes an array without checking it.
    ///
    /// # Safety
    /// The array is non-decreasing.
    pub unsafe fn new_unchecked(scaled: Buffer<u32>) -> Self {
        Self { scaled }
    }

    /// Image of each feature; non-decreasing.
    pub fn as_slice(&self) -> &[u32] {
        &self.scaled
    }

    /// Number of features.
    pub fn n_features(&self) -> usize {
        self.scaled.len()
    }
}
