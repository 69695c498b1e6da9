//! Plain gradient descent.

use super::{Optimizer, Step};
use crate::RowsMut;
use xc_sparse::vectorised;

/// `value -= rate * gradient`, after `value -= rate * weight_decay * value`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sgd {
    /// Decoupled weight decay.
    pub weight_decay: f64,
}

impl Optimizer for Sgd {
    fn name(&self) -> &'static str {
        "sgd"
    }

    fn n_moments(&self) -> usize {
        0
    }

    fn step(&self, _: u64, rate: f64, gradient_scale: f64) -> Step {
        Step::new(rate, gradient_scale, self.weight_decay)
    }

    fn apply(&self, slot: RowsMut<'_>, gradient: &[f32], step: &Step) {
        let (kept, rate) = (1.0 - step.decay, step.rate * step.gradient_scale);
        vectorised(|| {
            for (value, &g) in slot.values.iter_mut().zip(gradient) {
                *value = *value * kept - rate * g;
            }
        });
    }

    fn settings(&self) -> String {
        format!("{self:?}")
    }
}
