//! Optimisers: what a gradient does to the values.
//!
//! An optimiser is data: a name and its settings, which can be stored in files and logs and passed to
//! kernels. Every rule works on one range of values at a time, so the dense and the row-sparse form are
//! the same code: it is called for every row of a dense layer, and only for the touched rows of an
//! embedding table.
//!
//! ```text
//!   sgd        v = momentum v + g                            value -= rate v             (without momentum: rate g)
//!   adam       m = b1 m + (1 - b1) g   v = b2 v + (1 - b2) g^2
//!              value -= rate (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + epsilon)
//!   adagrad    v = v + g^2                                   value -= rate g / (sqrt(v) + epsilon)
//!   row-adagrad   the same with one v a row: v = v + mean of the row's g^2
//!   each after value -= rate weight_decay value              (decoupled: adam becomes AdamW)
//! ```
//!
//! # Untouched rows
//! A row without gradient in a step is left unchanged: neither its values nor its moments change, and
//! weight decay does not apply to it. Moments are *lazy*: when the row is next touched they continue
//! from where they were, as if no time had passed, while Adam's bias corrections count all steps of the
//! training. (PyTorch's `SparseAdam` does the same.)

use crate::RowsMut;
use serde::{Deserialize, Serialize};
use xc_buffer::vectorised;

/// A rule for changing values by their gradients.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "lowercase", deny_unknown_fields)]
pub enum Optimizer {
    /// Gradient descent, with momentum where it is above 0.
    Sgd {
        /// Share of the velocity that is kept from step to step.
        momentum: f64,
        /// Decoupled weight decay.
        weight_decay: f64,
    },
    /// Adam; with weight decay AdamW.
    Adam {
        /// Decay rates of the moments, b1 and b2.
        betas: [f64; 2],
        /// Added to the root, against division by zero.
        epsilon: f64,
        /// Decoupled weight decay; 0 is plain Adam.
        weight_decay: f64,
    },
    /// Adagrad.
    Adagrad {
        /// Added to the root, against division by zero.
        epsilon: f64,
        /// Decoupled weight decay.
        weight_decay: f64,
    },
    /// Adagrad with one accumulator per row: a step over few rows of a large table reads and writes half as
    /// much as with Adagrad, a third of Adam. An array without rows of equal length (the connections of a
    /// sparse layer) has one accumulator per value.
    #[serde(rename = "row-adagrad")]
    RowAdagrad {
        /// Added to the root, against division by zero.
        epsilon: f64,
        /// Decoupled weight decay.
        weight_decay: f64,
    },
}

/// The moments that an optimiser keeps for a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moments {
    /// Number of moments: 0, 1 or 2.
    pub n: usize,
    /// Whether they are kept per row; else per value.
    pub by_row: bool,
}

impl Moments {
    /// No moments.
    pub const NONE: Self = Self { n: 0, by_row: false };

    /// Length of one moment for rows of a given width.
    pub fn len(&self, rows: usize, width: usize) -> usize {
        if self.by_row { rows } else { rows.saturating_mul(width) }
    }

    /// True if there are no moments.
    pub fn is_empty(&self) -> bool {
        self.n == 0
    }
}

impl Default for Optimizer {
    /// [`Optimizer::adam`].
    fn default() -> Self {
        Self::adam()
    }
}

impl Optimizer {
    /// Plain gradient descent.
    pub const fn sgd() -> Self {
        Self::Sgd { momentum: 0.0, weight_decay: 0.0 }
    }

    /// Gradient descent with momentum 0.9, the usual value.
    pub const fn momentum() -> Self {
        Self::Sgd { momentum: 0.9, weight_decay: 0.0 }
    }

    /// Adam with 0.9, 0.999 and 1e-8, the values of its paper.
    pub const fn adam() -> Self {
        Self::Adam { betas: [0.9, 0.999], epsilon: 1e-8, weight_decay: 0.0 }
    }

    /// Adagrad with 1e-10 in its denominator, as PyTorch has it.
    pub const fn adagrad() -> Self {
        Self::Adagrad { epsilon: 1e-10, weight_decay: 0.0 }
    }

    /// Adagrad by rows, with 1e-10 in its denominator.
    pub const fn row_adagrad() -> Self {
        Self::RowAdagrad { epsilon: 1e-10, weight_decay: 0.0 }
    }

    /// The same rule with a decoupled weight decay.
    pub const fn with_weight_decay(mut self, decay: f64) -> Self {
        match &mut self {
            Self::Sgd { weight_decay, .. }
            | Self::Adam { weight_decay, .. }
            | Self::Adagrad { weight_decay, .. }
            | Self::RowAdagrad { weight_decay, .. } => *weight_decay = decay,
        }
        self
    }

    /// Its decoupled weight decay.
    pub const fn weight_decay(&self) -> f64 {
        match *self {
            Self::Sgd { weight_decay, .. }
            | Self::Adam { weight_decay, .. }
            | Self::Adagrad { weight_decay, .. }
            | Self::RowAdagrad { weight_decay, .. } => weight_decay,
        }
    }

    /// Name in logs.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Sgd { momentum: 0.0, .. } => "sgd",
            Self::Sgd { .. } => "momentum",
            Self::Adam { weight_decay: 0.0, .. } => "adam",
            Self::Adam { .. } => "adamw",
            Self::Adagrad { .. } => "adagrad",
            Self::RowAdagrad { .. } => "row-adagrad",
        }
    }

    /// The moments kept from step to step.
    pub fn moments(&self) -> Moments {
        let n = match self {
            Self::Sgd { momentum: 0.0, .. } => 0,
            Self::Sgd { .. } | Self::Adagrad { .. } | Self::RowAdagrad { .. } => 1,
            Self::Adam { .. } => 2,
        };
        Moments { n, by_row: matches!(self, Self::RowAdagrad { .. }) }
    }

    /// The change in step `number` (from 0) at learning rate `rate`, for gradients that are multiplied by
    /// `gradient_scale` first.
    pub fn change(self, number: u64, rate: f64, gradient_scale: f64) -> Change {
        // b^t is 0 long before t passes i32.
        let t = i32::try_from(number + 1).unwrap_or(i32::MAX);
        let corrections = match self {
            Self::Adam { betas, .. } => betas.map(|b| (1.0 - b.powi(t)) as f32),
            Self::Sgd { .. } | Self::Adagrad { .. } | Self::RowAdagrad { .. } => [1.0; 2],
        };
        let decay = (rate * self.weight_decay()) as f32;
        Change { optimizer: self, rate: rate as f32, gradient_scale: gradient_scale as f32, decay, corrections }
    }
}

/// An optimiser with the numbers of one step, the same for every value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// The rule.
    pub optimizer: Optimizer,
    /// Learning rate.
    pub rate: f32,
    /// Factor applied to gradients first: below 1 when the norm is clipped.
    pub gradient_scale: f32,
    /// Share by which a value shrinks towards 0: rate times weight decay.
    pub decay: f32,
    /// Divisors that correct moments for their bias towards the initial zeros.
    pub corrections: [f32; 2],
}

impl Change {
    /// Changes a stretch of values, and their moments, by a gradient of the same length.
    pub(crate) fn apply(&self, rows: RowsMut<'_>, gradient: &[f32]) {
        match self.optimizer {
            Optimizer::Sgd { momentum: 0.0, .. } => self.descend(rows.values, gradient),
            Optimizer::Sgd { momentum, .. } => self.momentum(rows, gradient, momentum as f32),
            Optimizer::Adam { betas, epsilon, .. } => self.adam(rows, gradient, betas, epsilon as f32),
            Optimizer::Adagrad { epsilon, .. } => self.adagrad(rows, gradient, epsilon as f32),
            Optimizer::RowAdagrad { epsilon, .. } if rows.first.len() < rows.values.len() => {
                self.row_adagrad(rows, gradient, epsilon as f32);
            }
            Optimizer::RowAdagrad { epsilon, .. } => self.adagrad(rows, gradient, epsilon as f32),
        }
    }

    fn descend(&self, values: &mut [f32], gradient: &[f32]) {
        let (kept, rate) = (1.0 - self.decay, self.rate * self.gradient_scale);
        vectorised(|| {
            for (value, &g) in values.iter_mut().zip(gradient) {
                *value = *value * kept - rate * g;
            }
        });
    }

    fn momentum(&self, rows: RowsMut<'_>, gradient: &[f32], share: f32) {
        let (kept, rate, scale) = (1.0 - self.decay, self.rate, self.gradient_scale);
        vectorised(|| {
            for ((value, velocity), &g) in rows.values.iter_mut().zip(rows.first).zip(gradient) {
                *velocity = share * *velocity + scale * g;
                *value = *value * kept - rate * *velocity;
            }
        });
    }

    fn adam(&self, rows: RowsMut<'_>, gradient: &[f32], betas: [f64; 2], epsilon: f32) {
        let [b1, b2] = betas.map(|b| b as f32);
        // Differences in f64: 1 - 0.999 in f32 would be wrong in the fifth digit.
        let [c1, c2] = betas.map(|b| (1.0 - b) as f32);
        let (kept, scale) = (1.0 - self.decay, self.gradient_scale);
        let (rate, inverse_root) = (self.rate / self.corrections[0], 1.0 / self.corrections[1].sqrt());
        vectorised(|| {
            let moments = rows.first.iter_mut().zip(rows.second);
            for ((value, (m, v)), &g) in rows.values.iter_mut().zip(moments).zip(gradient) {
                let g = g * scale;
                *m = b1 * *m + c1 * g;
                *v = b2 * *v + c2 * (g * g);
                *value = *value * kept - rate * *m / (v.sqrt() * inverse_root + epsilon);
            }
        });
    }

    fn adagrad(&self, rows: RowsMut<'_>, gradient: &[f32], epsilon: f32) {
        let (kept, rate, scale) = (1.0 - self.decay, self.rate, self.gradient_scale);
        vectorised(|| {
            for ((value, v), &g) in rows.values.iter_mut().zip(rows.first).zip(gradient) {
                let g = g * scale;
                *v += g * g;
                *value = *value * kept - rate * g / (v.sqrt() + epsilon);
            }
        });
    }

    fn row_adagrad(&self, rows: RowsMut<'_>, gradient: &[f32], epsilon: f32) {
        let (kept, rate, scale) = (1.0 - self.decay, self.rate, self.gradient_scale);
        let width = rows.values.len() / rows.first.len().max(1);
        let rows = rows.values.chunks_exact_mut(width.max(1)).zip(rows.first);
        for ((values, v), gradient) in rows.zip(gradient.chunks_exact(width.max(1))) {
            let squares = vectorised(|| {
                let mut lanes = [0.0f32; 16];
                let (groups, rest) = gradient.as_chunks::<16>();
                for group in groups {
                    lanes.iter_mut().zip(group).for_each(|(lane, g)| *lane += g * g);
                }
                lanes.iter_mut().zip(rest).for_each(|(lane, g)| *lane += g * g);
                lanes.iter().sum::<f32>()
            });
            *v += scale * scale * squares / width as f32;
            let rate = rate * scale / (v.sqrt() + epsilon);
            vectorised(|| values.iter_mut().zip(gradient).for_each(|(value, &g)| *value = *value * kept - rate * g));
        }
    }
}

#[cfg(test)]
mod tests;
