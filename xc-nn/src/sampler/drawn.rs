//! Labels drawn from a fixed distribution.

use super::alias::AliasTable;
use super::lists::{List, Who, make_lists};
use super::subset::subset;
use super::{Candidates, LabelWeights, Lists, Queries, Sampler, Weighting};
use crate::state::State;
use crate::{Step, StepError};
use serde_json::json;
use std::cmp::Reverse;
use std::ops::Range;
use std::sync::Arc;
use thiserror::Error;
use xc_hash::stream::Stream;

/// Draws labels from a distribution that depends neither on instances nor on weights.
///
/// | constructor | probability q of a draw | probability pi of being in a list |
/// |---|---|---|
/// | [`Drawn::uniform`] | 1 / L | n / L: without replacement |
/// | [`Drawn::log_uniform`] | ln((k + 2) / (k + 1)) / ln(L + 1) | 1 - (1 - q)^n |
/// | [`Drawn::frequency`] | proportional to count^power | 1 - (1 - q)^n |
///
/// L is the number of labels, n the number of draws, and k the rank by decreasing frequency, from
/// 0. A draw costs O(1).
///
/// By default one list per batch and [`Weighting::LogQ`]. The list of a single instance is drawn from a
/// stream of the instance and the epoch. If at least as many labels are wanted as there are, a list
/// has all labels of positive probability, with pi = 1. By frequency, a label that is never true
/// has probability 0: it is never trained as false, and only its bias can keep its score low.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawn {
    distribution: Distribution,
    per_list: usize,
    lists: Lists,
    weighting: Weighting,
}

#[derive(Clone, Debug, PartialEq)]
enum Distribution {
    Uniform,
    LogUniform(Arc<Ranks>),
    Frequency { power: f64, table: Arc<AliasTable> },
}

/// Why a distribution cannot be built.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum DrawnError {
    /// No label is ever true.
    #[error("{n_labels} labels, none of them ever true; expected one that is")]
    NoLabel {
        /// Number of labels.
        n_labels: usize,
    },
    /// The power is negative or not finite.
    #[error("power {got}, expected a finite number from 0 on")]
    Power {
        /// The power.
        got: f64,
    },
}

/// Labels by decreasing frequency; of equal ones, the lower label first.
#[derive(Clone, Debug, PartialEq)]
struct Ranks {
    label_of: Vec<u32>,
    rank_of: Vec<u32>,
}

impl Ranks {
    fn new(counts: &[u32]) -> Self {
        let mut label_of: Vec<u32> = (0..counts.len() as u32).collect();
        label_of.sort_by_key(|&label| Reverse(counts[label as usize]));
        let mut rank_of = vec![0; counts.len()];
        label_of.iter().zip(0..).for_each(|(&label, rank)| rank_of[label as usize] = rank);
        Self { label_of, rank_of }
    }

    /// `ln(L + 1)`: the sum over all ranks before normalisation.
    fn total(&self) -> f64 {
        (self.label_of.len() as f64 + 1.0).ln()
    }

    fn draw(&self, random: &mut Stream) -> u32 {
        // The cumulative distribution function is ln(k + 2) / ln(L + 1).
        let rank = (random.unit() * self.total()).exp() as usize;
        self.label_of[rank.clamp(1, self.label_of.len()) - 1]
    }

    fn chance(&self, label: u32) -> f64 {
        let rank = f64::from(self.rank_of[label as usize]);
        (1.0 / (rank + 1.0)).ln_1p() / self.total()
    }
}

impl Drawn {
    /// `per_list` labels, each with the same probability.
    pub fn uniform(per_list: usize) -> Self {
        Self::new(Distribution::Uniform, per_list)
    }

    /// `per_list` draws, with a probability by frequency rank: roughly that of words in text.
    /// `counts` has the number of instances of which each label is true.
    ///
    /// *Cost*: a sort of the labels; 8 bytes per label.
    pub fn log_uniform(counts: &[u32], per_list: usize) -> Self {
        Self::new(Distribution::LogUniform(Arc::new(Ranks::new(counts))), per_list)
    }

    /// `per_list` draws, with a probability proportional to a power of a label's count: 1 draws by
    /// frequency, 0.75 is usual for word embeddings, and 0 draws all labels that are ever true with
    /// equal probability.
    ///
    /// *Cost*: O(labels); 12 bytes per label.
    ///
    /// # Errors
    /// No label is ever true; the power is negative or not finite.
    pub fn frequency(counts: &[u32], power: f64, per_list: usize) -> Result<Self, DrawnError> {
        if !(power.is_finite() && power >= 0.0) {
            return Err(DrawnError::Power { got: power });
        }
        let weight = |&count: &u32| if count == 0 { 0.0 } else { f64::from(count).powf(power) };
        let weights: Vec<f64> = counts.iter().map(weight).collect();
        let table = AliasTable::new(weights).ok_or(DrawnError::NoLabel { n_labels: counts.len() })?;
        Ok(Self::new(Distribution::Frequency { power, table: Arc::new(table) }, per_list))
    }

    fn new(distribution: Distribution, per_list: usize) -> Self {
        Self { distribution, per_list, lists: Lists::Shared, weighting: Weighting::LogQ }
    }

    /// One list per batch, or one per instance.
    pub fn with_lists(self, lists: Lists) -> Self {
        Self { lists, ..self }
    }

    /// How a label of a list is weighted.
    pub fn with_weighting(self, weighting: Weighting) -> Self {
        Self { weighting, ..self }
    }

    /// Number of labels wanted in a list.
    pub fn per_list(&self) -> usize {
        self.per_list
    }

    /// Probability that a label of `labels` is in a list.
    fn chance(&self, label: u32, labels: &Range<u32>) -> f64 {
        let q = match &self.distribution {
            Distribution::Uniform => return (self.per_list as f64 / labels.len() as f64).min(1.0),
            Distribution::LogUniform(ranks) => ranks.chance(label),
            Distribution::Frequency { table, .. } => table.chance(label),
        };
        match self.per_list >= labels.len() {
            true => f64::from(u8::from(q > 0.0)),
            false => in_draws(q, self.per_list),
        }
    }

    /// Draws the labels of a list.
    fn draw(&self, labels: &Range<u32>, random: &mut Stream, out: &mut Vec<u32>) {
        let has_all = self.per_list >= labels.len();
        match &self.distribution {
            Distribution::Uniform => {
                subset(labels.len() as u32, self.per_list, random, out);
                out.iter_mut().for_each(|label| *label += labels.start);
            }
            Distribution::LogUniform(_) if has_all => out.extend(labels.clone()),
            Distribution::LogUniform(ranks) => out.extend((0..self.per_list).map(|_| ranks.draw(random))),
            Distribution::Frequency { table, .. } if has_all => {
                out.extend(labels.clone().filter(|&label| table.chance(label) > 0.0));
            }
            Distribution::Frequency { table, .. } => out.extend((0..self.per_list).map(|_| table.draw(random))),
        }
        out.sort_unstable();
        out.dedup();
    }

    /// # Panics
    /// If the labels are not those that were counted.
    fn check(&self, labels: &Range<u32>) {
        let counted = match &self.distribution {
            Distribution::Uniform => return,
            Distribution::LogUniform(ranks) => ranks.label_of.len(),
            Distribution::Frequency { table, .. } => table.len(),
        };
        assert!(*labels == (0..counted as u32), "labels {labels:?}, counts of {counted}");
    }
}

/// Probability that a label of probability `q` is among `n` independent draws.
pub(super) fn in_draws(q: f64, n: usize) -> f64 {
    if n == 0 { 0.0 } else { -(n as f64 * (-q).ln_1p()).exp_m1() }
}

impl Sampler for Drawn {
    /// # Panics
    /// If the labels are not those that were counted.
    fn sample(
        &self,
        at: Step,
        queries: Queries<'_>,
        _: Option<LabelWeights<'_>>,
        labels: Range<u32>,
        out: &mut Candidates,
    ) -> Result<(), StepError> {
        self.check(&labels);
        make_lists(self.lists, (at, Who::Drawn), queries, out, |name, _, list: &mut List| {
            self.draw(&labels, &mut Stream::new(name), &mut list.labels);
            let correction = |&label: &u32| self.weighting.of(self.chance(label, &labels));
            list.corrections.extend(list.labels.iter().map(correction));
            Ok(())
        })
    }

    fn knows_log_q(&self) -> bool {
        self.weighting.uses_chances()
    }

    /// # Panics
    /// As [`Drawn::sample`].
    fn log_q(
        &self,
        _: Step,
        _: Queries<'_>,
        _: Option<LabelWeights<'_>>,
        labels: Range<u32>,
        _: usize,
        wanted: &[u32],
        out: &mut Vec<f32>,
    ) -> Result<(), StepError> {
        self.check(&labels);
        out.clear();
        out.extend(wanted.iter().map(|&label| self.weighting.of(self.chance(label, &labels)).1));
        Ok(())
    }

    fn clone_box(&self) -> Box<dyn Sampler> {
        Box::new(self.clone())
    }
}

impl State for Drawn {
    /// Without the counts, which are those of the training data.
    fn settings(&self) -> serde_json::Value {
        let name = match &self.distribution {
            Distribution::Uniform => json!("uniform"),
            Distribution::LogUniform(_) => json!("log-uniform"),
            Distribution::Frequency { power, .. } => json!({ "frequency": power }),
        };
        json!({ "drawn": name, "per_list": self.per_list, "lists": self.lists, "weighting": self.weighting })
    }
}
