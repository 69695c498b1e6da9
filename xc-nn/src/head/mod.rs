//! Heads: from vectors to logits of outputs, and back.
//!
//! ```
//! use xc_dense::DenseRows;
//! use xc_sparse::LabelRows;
//! use xc_nn::encoder::Precomputed;
//! use xc_nn::head::{Dense, Ranked};
//! use xc_nn::{Batch, Examples, Rows, Init, Network, Scratch};
//!
//! // Vectors that were computed elsewhere, below a layer of three outputs whose weights are still 0.
//! let (vectors, labels) = ([1.0, 0.0, 0.0, 1.0], LabelRows::from_lists([[2], [1]], 3)?);
//! let examples = Examples::try_new(Rows::Dense(DenseRows::new(&vectors, 2)), &labels)?;
//! let mut head = Dense::new(3, 2, Init::Zeros);
//! head.bias_mut().copy_from_slice(&[0.1, 0.5, 0.3]);
//! let network = Network::new(Precomputed::new(2), head);
//!
//! let (mut batch, mut best) = (Batch::default(), Ranked::default());
//! batch.fill(&examples, &[0, 1]);
//! network.rank(&batch, None, 2, &mut Scratch::default(), &mut best)?;
//! assert_eq!(best.best.row(0).iter().map(|s| s.label).collect::<Vec<_>>(), [1, 2]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod candidates;
mod chosen;
mod dense;
mod hardest;
pub mod sparse;
mod tiled;

pub use candidates::{Sampled, SampledParams, SampledScratch};
pub use dense::{Dense, DenseScratch};
pub use sparse::Sparse;

use crate::loss::{Stretch, Total};
use crate::state::State;
use crate::{Activations, Loss, Mode, StepCost, StepError, Targets, Update};
use hardest::Hardest;
use rayon::prelude::*;
use std::ops::Range;
use xc_buffer::sums::Blocks;
use xc_sparse::rank::{RankedBatch, Scored, TopK};

/// The answers to the instances of a batch; owned by the caller and reused from batch to batch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ranked {
    /// The best outputs of each instance by their logits, best first.
    pub best: RankedBatch,
    /// The loss of each instance if targets were given; else empty.
    pub losses: Vec<f64>,
}

/// The output layer. It calls the loss itself, since a head that scores only some labels chooses them.
///
/// A training step calls either `step`, or `loss`, `backward` and `update` in this order with the same
/// input and scratch; `squared_norm` may come before `update`, and `backward` is left out if the
/// gradient is not needed.
pub trait Head: State {
    /// The output of an encoder: [`Activations`] if vectors are in this process's memory.
    type Input;
    /// Buffers of a step; they grow to the largest batch and stay.
    type Scratch: Default + Send;

    /// Length of the input vectors.
    fn width(&self) -> usize;

    /// The labels that this head scores, by their ids in targets and answers.
    fn labels(&self) -> Range<u32>;

    /// Mean loss of a batch. Leaves its gradient with respect to the logits in the scratch. In training a
    /// head may choose labels, use dropout or screen; in [`Mode::Predict`] all labels are scored.
    ///
    /// # Errors
    /// What the head uses fails.
    fn loss(
        &self,
        input: &Self::Input,
        targets: Targets<'_>,
        loss: Loss,
        mode: Mode,
        scratch: &mut Self::Scratch,
    ) -> Result<f64, StepError>;

    /// Gradient with respect to the input.
    ///
    /// # Errors
    /// What the head uses fails.
    fn backward(&self, gradient: &mut Self::Input, scratch: &mut Self::Scratch) -> Result<(), StepError>;

    /// Sum of squares of the gradient with respect to all parameters. Default: an error, for heads whose
    /// gradients cannot be clipped.
    ///
    /// # Errors
    /// What the head uses fails.
    fn squared_norm(&self, input: &Self::Input, scratch: &mut Self::Scratch) -> Result<f64, StepError> {
        let _ = (input, scratch);
        Err(StepError::new("head", "it has no norm of its gradient: nothing can be clipped"))
    }

    /// Changes the parameters by their gradient.
    ///
    /// # Errors
    /// What the head uses fails.
    fn update(&mut self, input: &Self::Input, scratch: &mut Self::Scratch, update: &Update) -> Result<(), StepError>;

    /// A whole step: mean loss of the batch before the change, gradient with respect to the input
    /// (when it is asked for) by the parameters before the change, and the change.
    ///
    /// By default it consists of `loss`, `backward` and `update`, and nothing changes if the loss is not
    /// finite. A head may fuse the three, so that the logits of only a few labels exist at a time; the
    /// result is exactly the same, but if the loss is not finite, some labels may already have changed. A
    /// training ends there.
    ///
    /// A training run that clips gradients needs their norm before anything changes, and calls the three
    /// methods instead.
    ///
    /// # Errors
    /// What the head uses fails.
    fn step(
        &mut self,
        input: &Self::Input,
        targets: Targets<'_>,
        loss: Loss,
        update: &Update,
        gradient: Option<&mut Self::Input>,
        scratch: &mut Self::Scratch,
    ) -> Result<f64, StepError> {
        let value = self.loss(input, targets, loss, Mode::Train(update.at), scratch)?;
        if value.is_finite() {
            if let Some(gradient) = gradient {
                self.backward(gradient, scratch)?;
            }
            self.update(input, scratch, update)?;
        }
        Ok(value)
    }

    /// The cost of the last training step, if the head counts it.
    fn cost(&self, scratch: &Self::Scratch) -> StepCost {
        let _ = scratch;
        StepCost::default()
    }

    /// From now on each training step with this scratch leaves the `n` false labels of the largest logits of
    /// each instance in it; 0: none. Nothing that is learned depends on it. Default: nothing is collected.
    ///
    /// *Cost*: a comparison for each logit of a step. *Memory*: 28 bytes for each of `batch x n`, at least half a
    /// kilobyte an instance.
    fn collect(&self, n: usize, scratch: &mut Self::Scratch) {
        let _ = (n, scratch);
    }

    /// The false labels of the largest logits of the last training step, among those that it scored:
    /// `batch x n`, best first, of equal logits the smaller label first, filled up with [`u32::MAX`] where
    /// there are fewer. Logits count as they are, without what a loss takes away from them where a sampler
    /// chose the labels. Empty if the head does not collect.
    fn collected<'s>(&self, scratch: &'s Self::Scratch) -> &'s [u32] {
        let _ = scratch;
        &[]
    }

    /// Logits of every label; one row per instance.
    ///
    /// # Errors
    /// What the head uses fails.
    fn logits(
        &self,
        input: &Self::Input,
        logits: &mut Activations,
        scratch: &mut Self::Scratch,
    ) -> Result<(), StepError>;

    /// The `k` best labels of each instance by their logits, and the loss of each if targets are
    /// given, in place of what `out` holds. By default from the logits of the whole batch; a head
    /// of very many labels does without them.
    ///
    /// # Errors
    /// What the head uses fails.
    fn rank(
        &self,
        input: &Self::Input,
        truth: Option<(Targets<'_>, Loss)>,
        k: usize,
        scratch: &mut Self::Scratch,
        out: &mut Ranked,
    ) -> Result<(), StepError> {
        let mut logits = Activations::default();
        self.logits(input, &mut logits, scratch)?;
        rank_rows(&mut logits, self.labels().start, truth, k, &mut RowScratch::default(), out);
        Ok(())
    }
}

/// Memory of ranking the rows of a batch; it grows to the largest batch and stays.
pub type RowScratch = Vec<RowRank>;

/// What is kept of a row.
#[derive(Debug)]
pub struct RowRank {
    /// Its best labels.
    pub top: TopK,
    /// The row's loss, or whatever its ranking is judged by.
    pub loss: f64,
    /// What is known of its logits so far, where a loss wants to know all.
    pub total: Total,
    /// Labels that rank among the answered ones, and these, where answers are chosen from some labels.
    pub above: Vec<Scored>,
}

impl Default for RowRank {
    fn default() -> Self {
        Self { top: TopK::default(), loss: 0.0, total: Total::EMPTY, above: Vec::new() }
    }
}

/// Calls `work` with each row of logits and its place in `scratch`, of which the first rows are
/// then those of the batch.
pub fn each_row<'s>(
    logits: &mut Activations,
    scratch: &'s mut RowScratch,
    work: impl Fn(usize, &mut [f32], &mut RowRank) + Sync,
) -> &'s mut [RowRank] {
    let (n, width) = (logits.len(), logits.width());
    if scratch.len() < n {
        scratch.resize_with(n, RowRank::default);
    }
    let ranks = &mut scratch[..n];
    match &mut *ranks {
        // One query stays with the thread that asks.
        [rank] => work(0, logits.values_mut(), rank),
        ranks if width == 0 => ranks.iter_mut().enumerate().for_each(|(i, rank)| work(i, &mut [], rank)),
        ranks => {
            let rows = logits.values_mut().par_chunks_exact_mut(width).zip(ranks);
            rows.enumerate().for_each(|(i, (row, rank))| work(i, row, rank));
        }
    }
    ranks
}

/// Replaces the logits of all labels by their gradients, each instance's sums in one order. Gives
/// the mean loss.
fn judge_rows(
    logits: &mut Activations,
    targets: Targets<'_>,
    loss: Loss,
    order: &Blocks,
    losses: &mut Vec<f64>,
    hardest: &mut Hardest,
) -> f64 {
    let (n, n_labels) = (logits.len(), logits.width());
    losses.clear();
    losses.resize(n, 0.0);
    let rows = logits.values_mut().par_chunks_exact_mut(n_labels.max(1));
    rows.zip(&mut *losses).zip(hardest.selections()).enumerate().for_each(|(i, ((row, out), selection))| {
        let positives = targets.row(i);
        selection.offer(row, Stretch { first: 0, positives, n_positives: positives.len() }, |label| label as u32);
        *out = loss.of_blocks(row, order, positives, (1.0 / n as f64) as f32);
    });
    hardest.finish();
    losses.iter().sum::<f64>() / n as f64
}

/// What [`Head::rank`] answers, from the logits of the labels from `first` on, which are used up.
pub(crate) fn rank_rows(
    logits: &mut Activations,
    first: u32,
    truth: Option<(Targets<'_>, Loss)>,
    k: usize,
    scratch: &mut RowScratch,
    out: &mut Ranked,
) {
    let ranks = each_row(logits, scratch, |i, row, RowRank { top, loss: value, .. }| {
        top.reset(k);
        row.iter().zip(first..).for_each(|(&score, label)| top.push(Scored { label, score }));
        top.sorted();
        *value = truth.map_or(0.0, |(targets, loss)| loss.of_row(row, targets.row(i), 1.0));
    });
    out.best.clear();
    out.losses.clear();
    for RowRank { top, loss, .. } in ranks {
        // They are sorted.
        out.best.push_row(top.best());
        out.losses.extend(truth.map(|_| *loss));
    }
}
