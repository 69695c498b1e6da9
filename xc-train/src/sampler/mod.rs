//! Which labels a step scores beside the true ones, where scoring all of them costs too much.
//!
//! ```text
//!   vectors, targets, weights ──▶ Sampler::sample ──▶ Candidates { labels, weight, log q } ──▶ head
//!   rows that changed         ──▶ Sampler::changed
//! ```
//!
//! A sampler sees the vectors of the batch, the numbers of its instances and the weights of the
//! labels, so that it may look for labels that are hard to tell from the true ones. It is a
//! [`State`]: tables and graphs that it keeps go into checkpoints.

mod alias;
mod all;
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
