//! Which labels a step scores beside the true ones, where scoring all of them costs too much.
//!
//! ```text
//!   vectors, targets, weights ─▶ Sampler::sample ─▶ Candidates { labels, weight, log q } ─▶ head
//!   rows that changed         ─▶ Sampler::changed
//! ```
//!
//! A sampler sees the vectors of the batch, the numbers of its instances and the weights of the
//! labels, so that it may look for labels that are hard to tell from the true ones. It is a
//! [`State`]: tables and codewords that it keeps go into checkpoints.
//!
//! ```
//! use xc_sparse::DenseRows;
//! use xc_train::sampler::{Candidates, Lists, NegativeParams, Queries, SamplerData, SamplerParams};
//! use xc_train::{Step, Targets};
//!
//! // Two of five labels for each of two instances, by how often labels are true.
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
//! | name | labels of a list | chance pi | own, us | shared, us |
//! |---|---|---|---|---|
//! | [`all`](AllLabels) | all | 1 | | |
//! | [`uniform`](Drawn::uniform) | n, each with the same chance | n / L | 12 | 0.3 |
//! | [`log-uniform`](Drawn::log_uniform) | n draws by rank | 1 - (1 - q)^n | 28 | 0.4 |
//! | [`frequency`](Drawn::frequency) | n draws by count^power | 1 - (1 - q)^n | 20 | 0.3 |
//! | [`in-batch`](InBatch) | what is true of the others | estimated | 3 | 0.1 |
//! | [`top-k`](TopLogits) | the k largest logits | 1 | 510 | 348 |
//! | [`ann`](Ann) | the k largest logits, by an index | 1 | | |
//! | [`schedule`](Scheduled) | the same, found for all instances every some epochs | 1 | | |
//! | [`label-text`](Ann::by_texts) | the same with vectors of the labels' texts in the place of weights | 1 | | |
//! | [`midx`](Midx) | n draws near the softmax | exact | 69 | 12 |
//! | [`lsh-embedding`](Lsh) | those that share a key with the vector | of SimHash, without limits | 7 | 1.1 |
//! | [`lsh-label`](Lsh) | those that share a key with true labels | of SimHash, without limits | 8 | 0.4 |
//! | `uniform` beside it: [`Mixture`] | its labels, true ones, others | not needed | + 25 | + 0.4 |
//!
//! Costs are CPU time of an instance on one thread, of 100,000 labels, 128 values and a batch of
//! 256: 500 labels of its own; for a shared list 2,000 draws, or 10 labels of each instance
//! (`examples/sampler_speed.rs`; bench/runs has 10,000 and a million labels too). Upkeep of tables
//! is at most 4 us beside that (512 labels a step), the chance of LSH 114 us and 16 us where
//! [`Weighting`] uses it.
//!
//! - **All labels** where there are few of them, and to compare everything else with.
//! - **Log-uniform**, **frequency** and **in-batch** for a sampled softmax: in trainings over
//!   300,000 labels they were as good as hard labels, and cheaper (bench/results/lns-race.md).
//! - **Uniform** labels for the body of the distribution; alone they learn more slowly.
//! - **MIDX** for a softmax whose draws follow the logits with a known chance.
//! - **LSH** for hard labels among very many; by label there is nothing to hash. With uniform
//!   labels beside them: alone they leave the other labels where they are, and learn badly.
//! - A **mixture** for sums over labels: without bias whatever its hard labels are.
//! - **ANN** for the hard labels of top-k among many labels, at the price of a search.
//! - **Top-k** is a yardstick: it costs as much as all logits.
//!
//! # What lists mean
//! - A list is ascending and has each label once. It may hold true labels, which a head scores as
//!   true, whatever they count as false ones. LSH, top-k, ANN, in-batch and mixtures leave out what is
//!   true of a list's own instance.
//! - `weight` multiplies loss and gradient of a false label in sums over labels; `log_q` is taken
//!   from its logit in a softmax; [`Weighting`] says how both follow from the chance pi.
//! - Lists of their own depend on the instance, the epoch, vectors and weights, not on the batch
//!   beside; shared ones on the step. Threads and the order of rows never matter.
//! - An empty range of labels gives empty lists; where more labels are wanted than there are, draws
//!   give all of them.

mod alias;
mod all;
mod ann;
mod candidates;
mod drawn;
mod error;
mod in_batch;
mod lists;
mod lsh;
mod midx;
mod mixture;
mod params;
mod subset;
mod top_k;
mod weighting;
mod weights;

pub use all::AllLabels;
pub use ann::{Ann, AnnParams, ScheduleParams, Scheduled};
pub use candidates::{CandidateList, Candidates, SampleCost};
pub use drawn::{Drawn, DrawnError};
pub use error::SampleError;
pub use in_batch::InBatch;
pub use lsh::{Lsh, LshBy, LshParams};
pub use midx::{Midx, MidxParams};
pub use mixture::Mixture;
pub use params::{NegativeParams, SamplerData, SamplerParams, SamplerParamsError};
pub use top_k::TopLogits;
pub use weighting::Weighting;
pub use weights::LabelWeights;

use crate::state::State;
use crate::{Step, StepError, Targets};
use serde::{Deserialize, Serialize};
use std::fmt::Debug;
use std::ops::Range;
use thiserror::Error;
use xc_sparse::DenseRows;

/// The instances of a batch, as a sampler sees them.
#[derive(Clone, Copy, Debug)]
pub struct Queries<'a> {
    /// Their numbers among all training instances.
    pub instances: &'a [u32],
    /// What the encoder made of them: one row an instance.
    pub vectors: DenseRows<'a>,
    /// Their true labels.
    pub targets: Targets<'a>,
}

/// Chooses labels for the instances of a step.
pub trait Sampler: State + Debug {
    /// Adds labels out of `labels`: one list for the whole batch, or one for each instance. The
    /// true ones need not be among them: a head scores them anyway. The same step gives the same
    /// labels at any number of threads.
    ///
    /// `weights` are those of the labels, where the head has a row for each.
    ///
    /// # Errors
    /// What the sampler uses fails.
    fn sample(
        &self,
        at: Step,
        queries: Queries<'_>,
        weights: Option<LabelWeights<'_>>,
        labels: Range<u32>,
        out: &mut Candidates,
    ) -> Result<(), StepError>;

    /// Hears that a step is done and which labels have changed: tables and graphs follow now, or
    /// when their schedule says. `moved` has the length of the change of each label's row and bias
    /// together, or nothing where the head does not know.
    ///
    /// # Errors
    /// What the sampler uses fails.
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

    /// Whether [`Sampler::log_q`] answers.
    fn knows_log_q(&self) -> bool {
        false
    }

    /// The `log_q` that labels have, or would have, in list `list` of what [`Sampler::sample`]
    /// gives for the same step, queries and weights: one for each of `wanted`, in place of what
    /// `out` holds. Minus infinity where a label is never drawn.
    ///
    /// # Errors
    /// What the sampler uses fails; by default, that the chances are not known.
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

    /// A copy with all that it keeps.
    fn clone_box(&self) -> Box<dyn Sampler>;
}

/// A loss needs the chances of labels, and the sampler does not know them.
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
