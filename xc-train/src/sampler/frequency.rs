//! Labels that are often true are drawn often.

use super::{Candidates, LabelWeights, Queries, Sampler, log_chance, push_drawn};
use crate::state::State;
use crate::{Step, StepError};
use serde_json::json;
use std::ops::Range;
use std::sync::Arc;
use thiserror::Error;
use xc_hash::stream::{Purpose, Stream, name};

/// A label's chance is proportional to a power of how often it is true in training: 1 draws as the
/// data do, 0.75 is what word embeddings use, 0 draws every label that is ever true alike. Drawn
/// with replacement from an alias table, one list for a batch.
///
/// A label that is never true is never drawn: nothing teaches it to be false but its bias.
#[derive(Clone, Debug, PartialEq)]
pub struct FrequencyNegatives {
    per_step: usize,
    power: f64,
    table: Arc<AliasTable>,
}

/// There is no such distribution.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum FrequencyError {
    /// No label is ever true.
    #[error("{n_labels} labels, none of them ever true; expected one that is")]
    NoLabel {
        /// Labels.
        n_labels: usize,
    },
    /// The power is negative or no finite number.
    #[error("power {got}, expected a finite number from 0 on")]
    Power {
        /// The power.
        got: f64,
    },
}

impl FrequencyNegatives {
    /// Draws `per_step` times in a step; `counts` says how often each label is true.
    ///
    /// *Cost*: O(labels), 12 bytes a label.
    ///
    /// # Errors
    /// No label is ever true; the power is negative or not finite.
    pub fn new(counts: &[u32], power: f64, per_step: usize) -> Result<Self, FrequencyError> {
        if !(power.is_finite() && power >= 0.0) {
            return Err(FrequencyError::Power { got: power });
        }
        let weight = |&count: &u32| if count == 0 { 0.0 } else { f64::from(count).powf(power) };
        let weights: Vec<f64> = counts.iter().map(weight).collect();
        let table = AliasTable::new(weights).ok_or(FrequencyError::NoLabel { n_labels: counts.len() })?;
        Ok(Self { per_step, power, table: Arc::new(table) })
    }
}

impl Sampler for FrequencyNegatives {
    /// # Panics
    /// If the labels are not those that were counted.
    fn sample(
        &self,
        at: Step,
        _: Queries<'_>,
        _: Option<LabelWeights<'_>>,
        labels: Range<u32>,
        out: &mut Candidates,
    ) -> Result<(), StepError> {
        assert!(labels == (0..self.table.len() as u32), "labels {labels:?}, counts of {}", self.table.len());
        let mut random = Stream::new(name(at.seed, Purpose::Negatives, &[at.number]));
        push_drawn(self.per_step, || self.table.draw(&mut random), |label| self.table.chance(label), out);
        Ok(())
    }

    fn knows_log_q(&self) -> bool {
        true
    }

    fn log_q(
        &self,
        _: Step,
        _: Queries<'_>,
        _: Option<LabelWeights<'_>>,
        _: Range<u32>,
        _: usize,
        wanted: &[u32],
        out: &mut Vec<f32>,
    ) -> Result<(), StepError> {
        out.clear();
        out.extend(wanted.iter().map(|&label| log_chance(self.table.chance(label), self.per_step)));
        Ok(())
    }

    fn clone_box(&self) -> Box<dyn Sampler> {
        Box::new(self.clone())
    }
}

impl State for FrequencyNegatives {
    /// The counts are those of the training data.
    fn settings(&self) -> serde_json::Value {
        json!({ "frequency": self.per_step, "power": self.power })
    }
}

/// Draws from a distribution over many labels in constant time (Walker 1977, as Vose built it):
/// every column has the same chance, and belongs to a label up to a share and to its alias above
/// it.
#[derive(Clone, Debug, PartialEq)]
struct AliasTable {
    share: Vec<f32>,
    alias: Vec<u32>,
    chance: Vec<f32>,
}

impl AliasTable {
    /// Nothing if all weights are 0.
    fn new(mut weights: Vec<f64>) -> Option<Self> {
        let n = weights.len();
        let total: f64 = weights.iter().sum();
        if total == 0.0 {
            return None;
        }
        let chance = weights.iter().map(|w| (w / total) as f32).collect();
        // Scaled so that a column holds 1.
        weights.iter_mut().for_each(|w| *w *= n as f64 / total);
        let (mut low, mut high): (Vec<u32>, Vec<u32>) = (0..n as u32).partition(|&label| weights[label as usize] < 1.0);
        let (mut share, mut alias) = (vec![1.0f32; n], (0..n as u32).collect::<Vec<_>>());
        while let (Some(&small), Some(&large)) = (low.last(), high.last()) {
            low.pop();
            let (at, rest) = (small as usize, weights[large as usize]);
            (share[at], alias[at]) = (weights[at] as f32, large);
            weights[large as usize] = rest - (1.0 - weights[at]);
            if weights[large as usize] < 1.0 {
                high.pop();
                low.push(large);
            }
        }
        // What is left over holds 1 but for rounding; a label of weight 0 is never among it unless
        // rounding put it there.
        for label in low.into_iter().filter(|&label| weights[label as usize] == 0.0) {
            (share[label as usize], alias[label as usize]) = (0.0, largest(&weights));
        }
        Some(Self { share, alias, chance })
    }

    fn len(&self) -> usize {
        self.share.len()
    }

    fn draw(&self, random: &mut Stream) -> u32 {
        let column = random.below_u64(self.len() as u64) as usize;
        if random.unit() < f64::from(self.share[column]) { column as u32 } else { self.alias[column] }
    }

    fn chance(&self, label: u32) -> f64 {
        f64::from(self.chance[label as usize])
    }
}

fn largest(weights: &[f64]) -> u32 {
    let best = weights.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
    best.map_or(0, |(label, _)| label as u32)
}
