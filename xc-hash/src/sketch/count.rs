//! The count sketch: keys carry random signs, so that what shares a counter cancels on average.

use super::{SketchError, SketchParams, median};
use crate::universal::{BucketHash, Family, HashParams, UniversalHash};
use serde::{Deserialize, Serialize};

/// A count sketch of amounts of any sign.
///
/// # Invariants
/// `width * depth` finite counters, row after row.
///
/// *Cost*: 8 bytes a counter; two hashes a row and operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Stored", into = "Stored")]
pub struct CountSketch {
    params: SketchParams,
    counters: Vec<f64>,
    hashes: Vec<UniversalHash>,
    signs: Vec<UniversalHash>,
}

#[derive(Serialize, Deserialize)]
struct Stored {
    params: SketchParams,
    counters: Vec<f64>,
}

impl TryFrom<Stored> for CountSketch {
    type Error = SketchError;

    fn try_from(stored: Stored) -> Result<Self, SketchError> {
        stored.params.check_counters(&stored.counters)?;
        let (hashes, signs) = (stored.params.hashes()?, signs(&stored.params)?);
        Ok(Self { params: stored.params, counters: stored.counters, hashes, signs })
    }
}

impl From<CountSketch> for Stored {
    fn from(sketch: CountSketch) -> Self {
        Self { params: sketch.params, counters: sketch.counters }
    }
}

/// The signs' functions. They have to be 2-independent for the errors to cancel, which the affine families are not quite.
fn signs(params: &SketchParams) -> Result<Vec<UniversalHash>, SketchError> {
    // A seed of their own: signs must not depend on the places.
    const SIGNS: u64 = 0x5349_474e_5349_474e;
    let signs =
        HashParams { family: Family::MultiplyShift, n_keys: params.n_keys, n_buckets: 2, seed: params.seed ^ SIGNS };
    Ok((0..params.depth).map(|row| signs.hash(row)).collect::<Result<_, _>>()?)
}

impl CountSketch {
    /// An empty sketch.
    pub fn try_new(params: SketchParams) -> Result<Self, SketchError> {
        let (hashes, signs) = (params.hashes()?, signs(&params)?);
        Ok(Self { params, counters: vec![0.0; params.n_counters()], hashes, signs })
    }

    /// The parameters.
    pub fn params(&self) -> &SketchParams {
        &self.params
    }

    /// Place and sign of a key in each row.
    fn places(&self, key: u32) -> impl Iterator<Item = (usize, f64)> {
        let width = self.params.width as usize;
        self.hashes.iter().zip(&self.signs).enumerate().map(move |(row, (hash, sign))| {
            (row * width + hash.bucket(key) as usize, if sign.bucket(key) == 0 { 1.0 } else { -1.0 })
        })
    }

    /// Adds an amount to a key.
    ///
    /// # Errors
    /// An amount that is not finite; nothing is added then.
    pub fn add(&mut self, key: u32, amount: f64) -> Result<(), SketchError> {
        if !amount.is_finite() {
            return Err(SketchError::NotFinite { met: amount });
        }
        let width = self.params.width as usize;
        for (row, (hash, sign)) in self.hashes.iter().zip(&self.signs).enumerate() {
            let counter = &mut self.counters[row * width + hash.bucket(key) as usize];
            *counter += if sign.bucket(key) == 0 { amount } else { -amount };
        }
        Ok(())
    }

    /// What a key has: the median of the rows' answers.
    pub fn estimate(&self, key: u32) -> f64 {
        let mut answers: Vec<f64> = self.places(key).map(|(at, sign)| sign * self.counters[at]).collect();
        median(&mut answers)
    }

    /// The sum of squares of all keys' amounts, estimated: the median of the rows' sums of squared counters.
    pub fn sum_of_squares(&self) -> f64 {
        let rows = self.counters.chunks_exact(self.params.width as usize);
        let mut sums: Vec<f64> = rows.map(|row| row.iter().map(|c| c * c).sum()).collect();
        median(&mut sums)
    }

    /// Adds another sketch of the same parameters.
    pub fn merge(&mut self, other: &Self) -> Result<(), SketchError> {
        if self.params != other.params {
            return Err(SketchError::Mismatch);
        }
        self.counters.iter_mut().zip(&other.counters).for_each(|(a, b)| *a += b);
        Ok(())
    }
}
