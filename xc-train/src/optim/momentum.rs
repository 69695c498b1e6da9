//! Gradient descent with momentum.

use super::{Optimizer, Step};
use crate::RowsMut;
use xc_sparse::vectorised;

/// `velocity = momentum * velocity + gradient`, then `value -= rate * velocity`, with decoupled weight decay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Momentum {
    /// Share of the velocity that is kept.
    pub momentum: f64,
    /// Decoupled weight decay.
    pub weight_decay: f64,
}

impl Default for Momentum {
    /// Momentum 0.9, the usual value; no decay.
    fn default() -> Self {
        Self { momentum: 0.9, weight_decay: 0.0 }
    }
}

impl Optimizer for Momentum {
    fn name(&self) -> &'static str {
        "momentum"
    }

    fn n_moments(&self) -> usize {
        1
    }

    fn step(&self, _: u64, rate: f64, gradient_scale: f64) -> Step {
        Step::new(rate, gradient_scale, self.weight_decay)
    }

    fn apply(&self, slot: RowsMut<'_>, gradient: &[f32], step: &Step) {
        let (kept, share) = (1.0 - step.decay, self.momentum as f32);
        let (rate, scale) = (step.rate, step.gradient_scale);
        vectorised(|| {
            for ((value, velocity), &g) in slot.values.iter_mut().zip(slot.first).zip(gradient) {
                *velocity = share * *velocity + scale * g;
                *value = *value * kept - rate * *velocity;
            }
        });
    }

    fn settings(&self) -> String {
        format!("{self:?}")
    }
}
