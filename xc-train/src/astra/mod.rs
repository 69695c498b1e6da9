//! ASTRA: a network with one output per label whose steps score the labels that are most easily
//! mistaken for true ones, and uniform labels that represent all others (`[mehta2024astra]`).
//!
//! It is a composition of an encoder, the candidate head ([`xc_nn::head::Sampled`]), and a
//! [`Mixture`](xc_nn::sampler::Mixture) of hard labels from an index ([`xc_nn::sampler::Ann`]) and
//! uniform ones. This module defines which mixture a name stands for, and with which parameters.
//!
//! ```
//! use xc_train::astra::{AstraParams, Strategy};
//! use xc_nn::sampler::SamplerParams;
//!
//! // The ten labels that score highest for each instance, and 2,000 uniform ones for the batch.
//! let negatives = AstraParams::default().negatives(100_000);
//! assert!(matches!(negatives.sampler, SamplerParams::Ann(ann) if ann.per_instance == 10));
//! assert_eq!(negatives.uniform, 2000);
//! let random = AstraParams { strategy: Strategy::Random, ..AstraParams::default() };
//! assert_eq!(random.negatives(1000).sampler, SamplerParams::Uniform { per_list: 500 });
//! ```
//!
//! # The ablation of the paper
//!
//! | paper, table 5 | here |
//! |---|---|
//! | random | [`Strategy::Random`] |
//! | W hard | [`Strategy::Weights`], no uniform labels |
//! | curriculum | the same, hard labels from a later epoch on |
//! | random + W hard: ASTRA | [`Strategy::Weights`] |
//! | label embeddings hard | [`Strategy::LabelText`], no uniform labels |
//! | random + label embeddings hard | [`Strategy::LabelText`] |
//! | W hard with a fresh index | [`Retrieval::InStep`], or [`Retrieval::Exact`] |
//! | stale: algorithm 1 | [`Retrieval::Schedule`] |
//! | all labels: Renee | [`Strategy::All`] |

use serde::{Deserialize, Serialize};
use xc_nn::sampler::{AnnParams, Lists, NegativeParams, SamplerParams, ScheduleParams, Weighting};

/// Which negatives a step has in addition to the true labels of its batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// The labels whose rows of weights score highest, and uniform ones.
    #[default]
    Weights,
    /// The labels whose encoded texts score highest, and uniform ones; texts of labels are training
    /// instances.
    LabelText,
    /// Uniform labels only.
    Random,
    /// The true labels of the other instances of the batch.
    InBatch,
    /// All labels.
    All,
}

/// How the labels that score highest are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Retrieval {
    /// By an index that follows the weights, in the step itself.
    #[default]
    InStep,
    /// By scoring all labels, in the step itself.
    Exact,
    /// By an index that is built every few epochs in parallel with training, and searched for all
    /// instances: algorithm 1 of the paper ([`xc_nn::sampler::Scheduled`]).
    Schedule,
}

/// Which negatives, how many, and how they are weighted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AstraParams {
    /// Which negatives.
    pub strategy: Strategy,
    /// How hard labels are found.
    pub retrieval: Retrieval,
    /// One list per batch, or one per instance, as in the paper.
    pub lists: Lists,
    /// Hard labels of an instance, and their index.
    pub hard: AnnParams,
    /// Epochs between two retrievals by a schedule: the paper's tau_r.
    pub every_epochs: u32,
    /// Uniform labels of a list; `None`: [`AstraParams::usual_uniform`].
    pub uniform: Option<usize>,
    /// How a uniform label is weighted: [`Weighting::Inverse`] without a cap is lemma 4.1,
    /// unbiased.
    pub weighting: Weighting,
    /// First epoch with hard labels (from 0): the paper's tau_s. At least 2 for a schedule.
    pub hard_from_epoch: u32,
}

impl Default for AstraParams {
    /// Shared lists, capped weights, hard labels from the first epoch on.
    fn default() -> Self {
        Self {
            strategy: Strategy::Weights,
            retrieval: Retrieval::InStep,
            lists: Lists::Shared,
            hard: AnnParams::default(),
            every_epochs: ScheduleParams::default().every_epochs,
            uniform: None,
            weighting: Weighting::CAPPED,
            hard_from_epoch: 0,
        }
    }
}

impl AstraParams {
    /// Default number of uniform labels of a list: 500 up to 20,000 labels, rising to 2,000 from
    /// 70,000 labels on.
    pub fn usual_uniform(n_labels: usize) -> usize {
        500 + 1500 * n_labels.clamp(20_000, 70_000).saturating_sub(20_000) / 50_000
    }

    /// Number of uniform labels of a list.
    pub fn n_uniform(&self, n_labels: usize) -> usize {
        match self.strategy {
            Strategy::All => 0,
            Strategy::InBatch => self.uniform.unwrap_or(0),
            _ => self.uniform.unwrap_or_else(|| Self::usual_uniform(n_labels)),
        }
    }

    /// The labels that a step scores, for `n_labels` labels.
    pub fn negatives(&self, n_labels: usize) -> NegativeParams {
        let (uniform, hard) = (self.n_uniform(n_labels), self.hard);
        let of_hard = |sampler| NegativeParams {
            sampler,
            lists: self.lists,
            uniform,
            weighting: self.weighting,
            from_epoch: self.hard_from_epoch,
        };
        let AnnParams { per_instance, recall, .. } = hard;
        match (self.strategy, self.retrieval) {
            (Strategy::Weights, Retrieval::InStep) => of_hard(SamplerParams::Ann(hard)),
            (Strategy::Weights, Retrieval::Exact) => of_hard(SamplerParams::TopK { per_instance }),
            (Strategy::Weights, Retrieval::Schedule) => {
                let first_epoch = self.hard_from_epoch.max(ScheduleParams::default().first_epoch);
                let schedule = ScheduleParams { per_instance, every_epochs: self.every_epochs, first_epoch, recall };
                NegativeParams { from_epoch: first_epoch, ..of_hard(SamplerParams::Schedule(schedule)) }
            }
            (Strategy::LabelText, Retrieval::Exact) => {
                of_hard(SamplerParams::LabelText(AnnParams { exact_below: usize::MAX, ..hard }))
            }
            (Strategy::LabelText, _) => of_hard(SamplerParams::LabelText(hard)),
            (Strategy::InBatch, _) => of_hard(SamplerParams::InBatch),
            (Strategy::Random, _) => {
                let random = NegativeParams::from(SamplerParams::Uniform { per_list: uniform });
                NegativeParams { lists: self.lists, weighting: self.weighting, ..random }
            }
            (Strategy::All, _) => SamplerParams::All.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_grow_with_the_labels_up_to_a_bound() {
        let counts = [100, 20_000, 45_000, 70_000, 10_000_000].map(AstraParams::usual_uniform);
        assert_eq!(counts, [500, 500, 1250, 2000, 2000]);
    }

    #[test]
    fn strategies_are_samplers_by_other_names() {
        let of = |strategy| AstraParams { strategy, ..AstraParams::default() }.negatives(30_000);
        assert!(matches!(of(Strategy::Weights).sampler, SamplerParams::Ann(_)));
        assert_eq!((of(Strategy::InBatch).sampler, of(Strategy::InBatch).uniform), (SamplerParams::InBatch, 0));
        assert_eq!(of(Strategy::All), SamplerParams::All.into());
        assert_eq!(of(Strategy::Random).sampler, SamplerParams::Uniform { per_list: 800 });
        assert_eq!(of(Strategy::Random).weighting, Weighting::CAPPED);
        let exact = AstraParams { retrieval: Retrieval::Exact, ..AstraParams::default() };
        assert_eq!(exact.negatives(30_000).sampler, SamplerParams::TopK { per_instance: 10 });
        let schedule = AstraParams { retrieval: Retrieval::Schedule, ..AstraParams::default() }.negatives(30_000);
        assert!(matches!(schedule.sampler, SamplerParams::Schedule(of) if of.first_epoch == 2));
        assert_eq!(schedule.from_epoch, 2);
    }
}
