//! Count-min: every row overestimates, so the least answer is the best.

use super::{SketchError, SketchParams, median};
use crate::universal::{BucketHash, UniversalHash};
use serde::{Deserialize, Serialize};

/// How a key's counters grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Update {
    /// All of them by the amount.
    #[default]
    Plain,
    /// Each only as far as the new estimate needs: closer for the heavy keys, and without a corrected estimate.
    Conservative,
}

/// A count-min sketch of amounts that are not negative.
///
/// # Invariants
/// `width * depth` finite counters, row after row; `total` is what was added.
///
/// *Cost*: 8 bytes a counter; `depth` hashes an operation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Stored", into = "Stored")]
pub struct CountMin {
    params: SketchParams,
    update: Update,
    total: f64,
    counters: Vec<f64>,
    hashes: Vec<UniversalHash>,
}

#[derive(Serialize, Deserialize)]
struct Stored {
    params: SketchParams,
    update: Update,
    total: f64,
    counters: Vec<f64>,
}

impl TryFrom<Stored> for CountMin {
    type Error = SketchError;

    fn try_from(stored: Stored) -> Result<Self, SketchError> {
        let Stored { params, update, total, counters } = stored;
        params.check_counters(&counters)?;
        if let Some(&met) = counters.iter().chain([&total]).find(|c| !(c.is_finite() && **c >= 0.0)) {
            return Err(SketchError::Negative { met });
        }
        Ok(Self { params, update, total, counters, hashes: params.hashes()? })
    }
}

impl From<CountMin> for Stored {
    fn from(sketch: CountMin) -> Self {
        let CountMin { params, update, total, counters, .. } = sketch;
        Self { params, update, total, counters }
    }
}

impl CountMin {
    /// An empty sketch.
    pub fn try_new(params: SketchParams, update: Update) -> Result<Self, SketchError> {
        let hashes = params.hashes()?;
        Ok(Self { params, update, total: 0.0, counters: vec![0.0; params.n_counters()], hashes })
    }

    /// The parameters.
    pub fn params(&self) -> &SketchParams {
        &self.params
    }

    /// Everything that was added.
    pub fn total(&self) -> f64 {
        self.total
    }

    fn places(&self, key: u32) -> impl Iterator<Item = usize> {
        let width = self.params.width as usize;
        self.hashes.iter().enumerate().map(move |(row, hash)| row * width + hash.bucket(key) as usize)
    }

    /// Adds an amount to a key.
    ///
    /// # Errors
    /// An amount that is negative or not finite; nothing is added then.
    pub fn add(&mut self, key: u32, amount: f64) -> Result<(), SketchError> {
        if !(amount.is_finite() && amount >= 0.0) {
            return Err(SketchError::Negative { met: amount });
        }
        let enough = match self.update {
            Update::Plain => f64::INFINITY,
            Update::Conservative => self.estimate(key) + amount,
        };
        let width = self.params.width as usize;
        for (row, hash) in self.hashes.iter().enumerate() {
            let counter = &mut self.counters[row * width + hash.bucket(key) as usize];
            *counter = match self.update {
                Update::Plain => *counter + amount,
                Update::Conservative => counter.max(enough),
            };
        }
        self.total += amount;
        Ok(())
    }

    /// What a key has, at least: never too low.
    pub fn estimate(&self, key: u32) -> f64 {
        self.places(key).map(|at| self.counters[at]).fold(f64::INFINITY, f64::min)
    }

    /// The mean over the rows of counters less what other keys put there on average, w / (w - 1) (counter - total / w): MACH's estimate.
    /// None after conservative updates, or with one counter a row.
    pub fn corrected_mean(&self, key: u32) -> Option<f64> {
        let corrected = self.corrected(key)?;
        Some(corrected.iter().sum::<f64>() / corrected.len() as f64)
    }

    /// The median of the same numbers, which a few heavy neighbours do not move.
    pub fn corrected_median(&self, key: u32) -> Option<f64> {
        self.corrected(key).map(|mut corrected| median(&mut corrected))
    }

    fn corrected(&self, key: u32) -> Option<Vec<f64>> {
        if self.update == Update::Conservative || self.params.width == 1 {
            return None;
        }
        let width = f64::from(self.params.width);
        let corrected = |at| width / (width - 1.0) * (self.counters[at] - self.total / width);
        Some(self.places(key).map(corrected).collect())
    }

    /// Adds another sketch of the same parameters. A merged conservative sketch is still never too low.
    pub fn merge(&mut self, other: &Self) -> Result<(), SketchError> {
        if (self.params, self.update) != (other.params, other.update) {
            return Err(SketchError::Mismatch);
        }
        self.counters.iter_mut().zip(&other.counters).for_each(|(a, b)| *a += b);
        self.total += other.total;
        Ok(())
    }
}
