//! Heads: from vectors to logits of outputs, and back.

mod dense;
pub mod grouped;
pub mod sparse;

pub use dense::{Dense, DenseScratch};
pub use grouped::Grouped;
pub use sparse::Sparse;

use crate::state::State;
use crate::{Activations, Loss, Targets, Update};
use rayon::prelude::*;
use xc_sparse::rank::{Scored, TopK};

/// What an instance is answered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ranked {
    /// The best outputs by their logits, best first.
    pub best: Vec<Scored>,
    /// The loss, where targets were given.
    pub loss: f64,
}

/// The output layer. It calls the loss itself: a head that scores only some outputs chooses them.
///
/// A training step calls either `step`, or `loss`, `backward` and `update` in this order with the same input and scratch,
/// where `squared_norm` may come before `update` and `backward` is left out when nobody wants the gradient.
pub trait Head: State {
    /// Buffers of a step; they grow to the largest batch and stay.
    type Scratch: Default + Send;

    /// Length of the vectors that come in.
    fn width(&self) -> usize;

    /// Number of outputs.
    fn n_outputs(&self) -> usize;

    /// Mean loss of a batch. Leaves its gradient with respect to the logits in the scratch.
    fn loss(&self, input: &Activations, targets: Targets<'_>, loss: &dyn Loss, scratch: &mut Self::Scratch) -> f64;

    /// Gradient with respect to the input.
    fn backward(&self, gradient: &mut Activations, scratch: &mut Self::Scratch);

    /// Sum of squares of the gradient with respect to all parameters.
    fn squared_norm(&self, input: &Activations, scratch: &mut Self::Scratch) -> f64;

    /// Changes the parameters by their gradient.
    fn update(&mut self, input: &Activations, scratch: &mut Self::Scratch, update: &Update<'_>);

    /// A whole step: mean loss of the batch before the change, gradient with respect to the input (when it is wanted) by the
    /// parameters before the change, and the change.
    ///
    /// By default it is put together from `loss`, `backward` and `update`, and nothing changes when the loss is not finite. A
    /// head may fuse the three, so that logits of few outputs exist at a time; it does exactly what the three would do, but
    /// when the loss that it gives is not finite, it may already have changed some outputs. A training ends there.
    ///
    /// A training that clips gradients needs their norm before anything changes: it calls the parts.
    fn step(
        &mut self,
        input: &Activations,
        targets: Targets<'_>,
        loss: &dyn Loss,
        update: &Update<'_>,
        gradient: Option<&mut Activations>,
        scratch: &mut Self::Scratch,
    ) -> f64 {
        let met = self.loss(input, targets, loss, scratch);
        if met.is_finite() {
            if let Some(gradient) = gradient {
                self.backward(gradient, scratch);
            }
            self.update(input, scratch, update);
        }
        met
    }

    /// Logits of every output; one row an instance.
    fn logits(&self, input: &Activations, logits: &mut Activations, scratch: &mut Self::Scratch);

    /// The `k` best outputs of each instance by their logits, and the loss of each if targets are given. By default from the logits
    /// of the whole batch; a head of very many outputs does without them.
    fn rank(
        &self,
        input: &Activations,
        judged_by: Option<(Targets<'_>, &dyn Loss)>,
        k: usize,
        scratch: &mut Self::Scratch,
    ) -> Vec<Ranked> {
        let mut logits = Activations::default();
        self.logits(input, &mut logits, scratch);
        rank_rows(&mut logits, judged_by, k)
    }
}

/// Calls `work` with each row of logits and room for a ranking.
pub(crate) fn each_row<T: Send>(
    logits: &mut Activations,
    work: impl Fn(usize, &mut [f32], &mut TopK) -> T + Sync,
) -> Vec<T> {
    let (n, width) = (logits.len(), logits.width());
    if width == 0 {
        let mut top = TopK::new(0);
        return (0..n).map(|i| work(i, &mut [], &mut top)).collect();
    }
    let rows = logits.values_mut().par_chunks_exact_mut(width).enumerate();
    rows.map_init(|| TopK::new(0), |top, (i, row)| work(i, row, top)).collect()
}

/// What [`Head::rank`] answers, from the logits, which are used up.
pub(crate) fn rank_rows(
    logits: &mut Activations,
    judged_by: Option<(Targets<'_>, &dyn Loss)>,
    k: usize,
) -> Vec<Ranked> {
    each_row(logits, |i, row, top| {
        top.reset(k);
        row.iter().zip(0..).for_each(|(&score, label)| top.push(Scored { label, score }));
        let loss = judged_by.map_or(0.0, |(targets, loss)| loss.gradient(row, targets.row(i), 1.0));
        Ranked { best: top.sorted().to_vec(), loss }
    })
}
