//! Adam and AdamW.

use super::{Optimizer, Step};
use crate::RowsMut;
use xc_sparse::vectorised;

/// Adam with decoupled weight decay (AdamW); without decay it is Adam.
///
/// ```text
///   m = b1 m + (1 - b1) g        v = b2 v + (1 - b2) g^2
///   value -= rate * weight_decay * value
///   value -= rate * (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + epsilon)
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adam {
    /// Decay rates of the moments, b1 and b2.
    pub betas: [f64; 2],
    /// Added to the root, against division by zero.
    pub epsilon: f64,
    /// Decoupled weight decay; 0 is plain Adam.
    pub weight_decay: f64,
}

impl Default for Adam {
    /// 0.9, 0.999 and 1e-8 (the values of the Adam paper); no decay.
    fn default() -> Self {
        Self { betas: [0.9, 0.999], epsilon: 1e-8, weight_decay: 0.0 }
    }
}

impl Adam {
    /// AdamW with this weight decay.
    pub fn with_decay(weight_decay: f64) -> Self {
        Self { weight_decay, ..Self::default() }
    }
}

impl Optimizer for Adam {
    fn name(&self) -> &'static str {
        if self.weight_decay == 0.0 { "adam" } else { "adamw" }
    }

    fn n_moments(&self) -> usize {
        2
    }

    fn step(&self, number: u64, rate: f64, gradient_scale: f64) -> Step {
        // b^t is 0 long before t passes i32.
        let t = i32::try_from(number + 1).unwrap_or(i32::MAX);
        let corrections = self.betas.map(|b| (1.0 - b.powi(t)) as f32);
        Step { corrections, ..Step::new(rate, gradient_scale, self.weight_decay) }
    }

    fn apply(&self, slot: RowsMut<'_>, gradient: &[f32], step: &Step) {
        let [b1, b2] = self.betas.map(|b| b as f32);
        // Differences in f64: 1 - 0.999 in f32 would be wrong in the fifth digit.
        let [c1, c2] = self.betas.map(|b| (1.0 - b) as f32);
        let (kept, scale, epsilon) = (1.0 - step.decay, step.gradient_scale, self.epsilon as f32);
        let (rate, root) = (step.rate / step.corrections[0], step.corrections[1].sqrt());
        let inverse_root = 1.0 / root;
        vectorised(|| {
            let moments = slot.first.iter_mut().zip(slot.second);
            for ((value, (m, v)), &g) in slot.values.iter_mut().zip(moments).zip(gradient) {
                let g = g * scale;
                *m = b1 * *m + c1 * g;
                *v = b2 * *v + c2 * (g * g);
                *value = *value * kept - rate * *m / (v.sqrt() * inverse_root + epsilon);
            }
        });
    }

    fn settings(&self) -> String {
        format!("{self:?}")
    }
}
