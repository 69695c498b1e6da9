//! Optimisers: what a gradient does to the values.
//!
//! Every rule works on one stretch of values at a time, so the dense and the row-sparse form are the same code: the
//! trainer calls it for every row of a dense layer and for the touched rows alone of an embedding table.
//!
//! # Untouched rows
//! A row without gradient in a step is left as it is: neither its values nor its moments change, and weight decay does
//! not reach it. Moments are *lazy*: when a row is met again they continue from where they were, as if no time had
//! passed, while Adam's bias corrections count all steps of the training. (PyTorch's `SparseAdam` does the same.)

mod adam;
mod momentum;
mod sgd;

pub use adam::Adam;
pub use momentum::Momentum;
pub use sgd::Sgd;

use crate::RowsMut;

/// Numbers of one step, the same for every value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Learning rate.
    pub rate: f32,
    /// What gradients are multiplied with first: below 1 when the norm is clipped.
    pub gradient_scale: f32,
    /// Share by which a value shrinks towards 0: rate times weight decay; 0 for biases.
    pub decay: f32,
    /// What moments are divided by, where they are biased towards their first zeros.
    pub corrections: [f32; 2],
}

impl Step {
    /// The numbers of a rule whose moments need no correction.
    pub(crate) fn new(rate: f64, gradient_scale: f64, weight_decay: f64) -> Self {
        let decay = (rate * weight_decay) as f32;
        Self { rate: rate as f32, gradient_scale: gradient_scale as f32, decay, corrections: [1.0; 2] }
    }

    /// The same step at a share of the learning rate.
    pub(crate) fn at_share(self, share: f32) -> Self {
        Self { rate: self.rate * share, decay: self.decay * share, ..self }
    }
}

/// A rule for changing values by their gradients.
pub trait Optimizer: Send + Sync {
    /// Name in configurations and logs.
    fn name(&self) -> &'static str;

    /// How many numbers are remembered for each value: 0, 1 or 2.
    fn n_moments(&self) -> usize;

    /// The numbers of step `number` (from 0) at learning rate `rate`.
    fn step(&self, number: u64, rate: f64, gradient_scale: f64) -> Step;

    /// Changes a stretch of values, and their moments, by a gradient of the same length.
    ///
    /// Weight decay is that of the *step*, which the parameter may have turned off.
    fn apply(&self, slot: RowsMut<'_>, gradient: &[f32], step: &Step);

    /// All settings as text, to tell two trainings apart.
    fn settings(&self) -> String;
}

#[cfg(test)]
mod tests;
