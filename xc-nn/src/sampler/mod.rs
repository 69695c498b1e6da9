//! Which labels a step scores in addition to the true ones, if scoring all labels costs too much.
//!
//! ```text
//!   vectors, targets, weights ─▶ Sampler::sample ─▶ Candidates { labels, weight, log q } ─▶ head
//!   rows that changed         ─▶ Sampler::changed
//! ```
//!
//! A sampler gets the vectors of the batch, the numbers of its instances and the weights of the
//! labels, so that it can look for labels that are easily mistaken for true ones. It is a
//! [`State`]: its tables and codewords are part of checkpoints.
//!
//! ```
//! use xc_dense::DenseRows;
//! use xc_nn::sampler::{Candidates, Lists, NegativeParams, Queries, SamplerData, SamplerParams};
//! use xc_nn::{Step, Targets};
//!
//! // Two of five labels for each of two instances, by frequency rank.
//! let data = SamplerData::new(&[9, 5, 3, 2, 1], 12, 1, 7);
//! let params = NegativeParams::from(SamplerParams::LogUniform { per_list: 2 });
//! let sampler = NegativeParams { lists: Lists::Own, ..params }.build(&data)?;
//! let targets = Targets::new(&[4, 8], &[0, 1, 2], &[0, 3]);
//! let queries = Queries { instances: &[4, 8], vectors: DenseRows::new(&[0.5, -1.0], 1), targets };
//! let mut lists = Candidates::default();
//! sampler.sample(Step::default(), queries, None, 0..5, &mut lists)?;
//! assert_eq!(lists.len(), 2);
//! let list = lists.list(1);
//! assert!(list.labels.len() <= 2 && list.log_q.iter().all(|log| *log < 0.0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Which sampler
//!
//! | name | labels of a list | probability pi | own, us | shared, us |
//! |---|---|---|---|---|
//! | [`all`](AllLabels) | all | 1 | | |
//! | [`uniform`](Drawn::uniform) | n, each with the same probability | n / L | 12 | 0.3 |
//! | [`log-uniform`](Drawn::log_uniform) | n draws by rank | 1 - (1 - q)^n | 28 | 0.4 |
//! | [`frequency`](Drawn::frequency) | n draws by count^power | 1 - (1 - q)^n | 20 | 0.3 |
//! | [`in-batch`](InBatch) | true labels of the other instances | estimated | 3 | 0.1 |
//! | [`top-k`](TopLogits) | the k largest logits | 1 | 510 | 348 |
//! | [`ann`](Ann) | the k largest logits, by an index | 1 | | |
//! | [`schedule`](Scheduled) | the same, found for all instances every few epochs | 1 | | |
//! | [`label-text`](Ann::by_texts) | the same with vectors of the labels' texts instead of weights | 1 | | |
//! | [`midx`](Midx) | n draws from an approximate softmax | exact | 69 | 12 |
//! | [`lsh-embedding`](Lsh) | those that share a key with the vector | for SimHash, without limits | 7 | 1.1 |
//! | [`lsh-label`](Lsh) | those that share a key with true labels | for SimHash, without limits | 8 | 0.4 |
//! | any of these and `uniform`: [`Mixture`] | its labels, true ones, uniform ones | not needed | + 25 | + 0.4 |
//!
//! Costs are CPU time per instance on one thread, for 100,000 labels, vectors of 128 values and a
//! batch of 256: one list of 500 labels per instance; 2,000 draws, or 10 labels per instance, in a
//! shared list (`benches/sampler_speed.rs`; bench/runs also has 10,000 and a million labels). Upkeep
//! of tables (512 labels per step) adds 3 to 4 us, and 5 to 7 with a million labels. The probabilities
//! of LSH add 114 us and 16 us if [`Weighting`] uses them.
//!
//! - **All labels** if there are few of them, and as the baseline for everything else.
//! - **Log-uniform**, **frequency** and **in-batch** for a sampled softmax: in training runs over
//!   300,000 labels they were as good as hard labels, and cheaper (bench/results/lns-race.md).
//! - **Uniform** labels for the bulk of the distribution; with these alone a model learns more
//!   slowly.
//! - **MIDX** for a softmax whose draws follow the logits with a known probability.
//! - **LSH** for hard labels among very many; by label, nothing has to be hashed. Use it with
//!   uniform labels: alone it does not train the other labels, and the model learns badly.
//! - A **mixture** for sums over labels: unbiased, whatever its hard labels are.
//! - **ANN** for the hard labels of top-k among many labels, at the cost of a search.
//! - **Top-k** as a reference: it costs as much as all logits.
//!
//! # What lists mean
//! - A list is ascending and has each label once. It may contain true labels: a head scores them as
//!   true, whatever their weight as false labels is. LSH, top-k, ANN, in-batch and mixtures leave
//!   out the true labels of a list's own instance.
//! - `weight` multiplies loss and gradient of a false label in sums over labels; `log_q` is
//!   subtracted from its logit in a softmax; [`Weighting`] defines how both follow from the
//!   probability pi.
//! - Own lists depend on the instance, the epoch, vectors and weights, not on the rest of the
//!   batch; shared lists depend on the step. Neither depends on the number of threads or the order
//!   of rows.
//! - An empty range of labels gives empty lists. If more labels are wanted than there are, draws
//!   return all of them.

mod alias;
mod all;
mod ann;
mod candidates;
mod drawn;
mod error;
mod from_fn;
mod in_batch;
mod lists;
mod lsh;
mod midx;
mod mixture;
mod params;
mod subset;
mod top_k;
mod weighting;

pub use crate::label_rows::LabelWeights;
pub use all::AllLabels;
pub use ann::{Ann, AnnParams, ScheduleParams, Scheduled};
pub use candidates::{CandidateList, Candidates, SampleCost};
pub use drawn::{Drawn, DrawnError};
pub use error::SampleError;
pub use from_fn::{FromFn, SampleFn};
pub use in_batch::InBatch;
pub use lsh::{Lsh, LshBy, LshParams};
pub use midx::{Midx, MidxParams};
pub use mixture::Mixture;
pub use params::{NegativeParams, SamplerData, SamplerParams, SamplerParamsError};
pub use top_k::TopLogits;
pub use weighting::Weighting;

use crate::state::State;
use crate::{Step, StepError, Targets};
use serde::{Deserialize, Serialize};
use std::fmt::Debug;
use std::ops::Range;
use thiserror::Error;
use xc_dense::DenseRows;

/// The instances of a batch, as a sampler sees them.
#[derive(Clone, Copy, Debug)]
pub struct Queries<'a> {
    /// Their numbers among all training instances.
    pub instances: &'a [u32],
    /// The encoder's vectors of them: one row per instance.
    pub vectors: DenseRows<'a>,
    /// Their true labels.
    pub targets: Targets<'a>,
}

/// Chooses labels for the instances of a step.
pub trait Sampler: State + Debug {
    /// Adds labels of the range `labels`: one list for the whole batch, or one per instance. True
    /// labels need not be among them: a head scores them anyway. The same step gives the same
    /// labels at any number of threads.
    ///
    /// `weights` are those of the labels, if the head has a row for each.
    ///
    /// # Errors
    /// The sampler fails; see [`SampleError`] for those of this module.
    fn sample(
        &self,
        at: Step,
        queries: Queries<'_>,
        weights: Option<LabelWeights<'_>>,
        labels: Range<u32>,
        out: &mut Candidates,
    ) -> Result<(), StepError>;

    /// Called after a step with the labels that have changed: tables and graphs are updated now, or
    /// when their schedule says. `moved` has the length of the change of each label's row and bias
    /// together; it is empty if the head does not know it.
    ///
    /// # Errors
    /// The sampler fails; see [`SampleError`] for those of this module.
    fn changed(
        &mut self,
        at: Step,
        queries: Queries<'_>,
        labels: &[u32],
        moved: &[f32],
        weights: Option<LabelWeights<'_>>,
    ) -> Result<(), StepError> {
        let _ = (at, queries, labels, moved, weights);
        Ok(())
    }

    /// Whether [`Sampler::changed`] uses how far labels moved.
    fn wants_moved(&self) -> bool {
        false
    }

    /// Whether [`Sampler::log_q`] is supported.
    fn knows_log_q(&self) -> bool {
        false
    }

    /// The `log_q` that labels have, or would have, in list `list` of the output of
    /// [`Sampler::sample`] for the same step, queries and weights: one for each of `wanted`, which
    /// replace the content of `out`. Minus infinity for a label that is never drawn.
    ///
    /// # Errors
    /// The sampler fails; by default, with [`UnknownChances`].
    fn log_q(
        &self,
        at: Step,
        queries: Queries<'_>,
        weights: Option<LabelWeights<'_>>,
        labels: Range<u32>,
        list: usize,
        wanted: &[u32],
        out: &mut Vec<f32>,
    ) -> Result<(), StepError> {
        let _ = (at, queries, weights, labels, list, wanted, out);
        Err(StepError::new("sampler", UnknownChances))
    }

    /// A copy that includes its state.
    fn clone_box(&self) -> Box<dyn Sampler>;
}

/// A loss needs the probabilities of labels, and the sampler does not know them.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("chances of labels are not known, expected a sampler that knows them")]
pub struct UnknownChances;

/// Which instances a list of candidates is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lists {
    /// One list for all instances of a batch.
    #[default]
    Shared,
    /// A list for each instance.
    Own,
}

impl Clone for Box<dyn Sampler> {
    fn clone(&self) -> Self {
        self.clone_box()
    }
}
