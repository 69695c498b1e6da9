//! Rows of numbers between layers, and activation functions.

use crate::Step;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use xc_buffer::vectorised;
use xc_dense::{MatMut, MatRef};
use xc_hash::stream::{Purpose, name};

/// Dense rows, one per instance, in a buffer that only grows.
///
/// *Shapes*: `len()` rows of `width()` values, row-major.
#[derive(Clone, Debug, Default)]
pub struct Activations {
    values: Vec<f32>,
    rows: usize,
    width: usize,
}

impl Activations {
    /// Sets the shape. The values are unspecified afterwards. No allocation up to the largest shape
    /// seen.
    pub fn reshape(&mut self, rows: usize, width: usize) {
        (self.rows, self.width) = (rows, width);
        if self.values.len() < rows * width {
            self.values.resize(rows * width, 0.0);
        }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// True when there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Values of a row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// All values, row after row.
    pub fn values(&self) -> &[f32] {
        &self.values[..self.rows * self.width]
    }

    /// All values, row after row.
    pub fn values_mut(&mut self) -> &mut [f32] {
        &mut self.values[..self.rows * self.width]
    }

    /// Row `i`.
    ///
    /// # Panics
    /// If `i >= len()`.
    pub fn row(&self, i: usize) -> &[f32] {
        &self.values()[i * self.width..][..self.width]
    }

    /// Becomes a copy of other rows.
    pub fn copy_from(&mut self, other: &Self) {
        self.reshape(other.rows, other.width);
        self.values_mut().copy_from_slice(other.values());
    }

    pub(crate) fn matrix(&self) -> MatRef<'_> {
        MatRef::new(self.values(), self.rows, self.width)
    }

    pub(crate) fn matrix_mut(&mut self) -> MatMut<'_> {
        let (rows, width) = (self.rows, self.width);
        MatMut::new(self.values_mut(), rows, width)
    }
}

/// Whether a pass is for training or prediction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// A training step: dropout is on.
    Train(Step),
    /// No dropout.
    Predict,
}

/// The activation function of a layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Activation {
    /// Unchanged.
    Identity,
    /// max(0, x). The derivative at 0 is taken as 0.
    #[default]
    Relu,
}

/// Activation, then dropout, of one layer.
///
/// A value is dropped when a hash of (seed, step, layer, instance, position) falls below the rate;
/// kept ones are divided by 1 - rate. No mask is stored.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct ActivationDropout {
    pub(crate) activation: Activation,
    /// Chance that a value is dropped, in [0, 1).
    pub(crate) dropout: f32,
    /// Tells the masks of a network's layers apart.
    pub(crate) layer: u64,
}

impl ActivationDropout {
    /// Activates and drops rows, which are those of the first instances.
    pub(crate) fn forward(&self, mode: Mode, instances: &[u32], width: usize, rows: &mut [f32]) {
        let mask = self.mask(mode);
        let relu = self.activation == Activation::Relu;
        vectorised(|| {
            if relu {
                rows.iter_mut().for_each(|y| *y = if *y > 0.0 { *y } else { 0.0 });
            }
            if let Some(mask) = mask {
                mask.drop(instances, width, rows);
            }
        });
    }

    /// Turns the gradient of the output into that of the sums.
    pub(crate) fn backward(&self, mode: Mode, instances: &[u32], output: &Activations, gradient: &mut Activations) {
        let (mask, relu, width) = (self.mask(mode), self.activation == Activation::Relu, output.width());
        if !relu && mask.is_none() {
            return;
        }
        let block = (BLOCK * width).max(1);
        let pairs = gradient.values_mut().par_chunks_mut(block).zip(output.values().par_chunks(block));
        pairs.zip(instances.par_chunks(BLOCK)).for_each(|((gradient, output), instances)| {
            vectorised(|| match mask {
                // A positive output was kept and was positive before.
                _ if relu => {
                    let scale = mask.map_or(1.0, |m| m.scale);
                    gradient.iter_mut().zip(output).for_each(|(g, &y)| *g = if y > 0.0 { *g * scale } else { 0.0 });
                }
                Some(mask) => mask.drop(instances, width, gradient),
                None => {}
            });
        });
    }

    fn mask(&self, mode: Mode) -> Option<Mask> {
        match mode {
            Mode::Train(Step { number, seed, .. }) if self.dropout > 0.0 => Some(Mask {
                key: name(seed, Purpose::Dropout, &[number, self.layer]),
                dropped_below: (f64::from(self.dropout) * 4_294_967_296.0) as u32,
                scale: 1.0 / (1.0 - self.dropout),
            }),
            _ => None,
        }
    }
}

/// Rows that one task of a pass over a batch takes.
pub(crate) const BLOCK: usize = 8;

#[derive(Clone, Copy)]
struct Mask {
    key: u64,
    dropped_below: u32,
    scale: f32,
}

impl Mask {
    /// Drops values of rows, one row an instance, and divides those that are kept by the share of
    /// them.
    #[inline(always)]
    fn drop(self, instances: &[u32], width: usize, rows: &mut [f32]) {
        for (row, &instance) in rows.chunks_exact_mut(width.max(1)).zip(instances) {
            let first = u64::from(instance) * width as u64;
            for (i, value) in row.iter_mut().enumerate() {
                *value = if self.keeps(first + i as u64) { *value * self.scale } else { 0.0 };
            }
        }
    }

    /// A 32-bit integer hash with two multiplications, keyed before and in between; simple enough
    /// for vectors.
    #[inline(always)]
    fn keeps(self, at: u64) -> bool {
        let mut h = (at as u32) ^ (self.key as u32) ^ ((at >> 32) as u32).wrapping_mul(0x9e37_79b9);
        h = (h ^ (h >> 16)).wrapping_mul(0x7feb_352d) ^ ((self.key >> 32) as u32);
        h = (h ^ (h >> 15)).wrapping_mul(0x846c_a68b);
        (h ^ (h >> 16)) >= self.dropped_below
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn train(seed: u64, number: u64) -> Mode {
        Mode::Train(Step { number, epoch: 0, seed })
    }

    fn dropped(mode: Mode, layer: u64, n: usize) -> Vec<f32> {
        let (mut rows, instances) = (vec![1.0; n], (0..n as u32).collect::<Vec<_>>());
        ActivationDropout { activation: Activation::Identity, dropout: 0.3, layer }
            .forward(mode, &instances, 1, &mut rows);
        rows
    }

    #[test]
    fn masks_follow_seed_step_and_layer() {
        let n = 100_000;
        let base = dropped(train(1, 2), 3, n);
        assert_eq!(base, dropped(train(1, 2), 3, n));
        assert!(dropped(Mode::Predict, 3, n).iter().all(|&v| v == 1.0));
        let kept = |v: &[f32]| v.iter().filter(|&&v| v != 0.0).count() as f64 / n as f64;
        // Standard deviation of the share: sqrt(0.21 / n) = 0.00145; five of them.
        assert!((kept(&base) - 0.7).abs() < 0.0073, "{}", kept(&base));
        assert!(base.iter().all(|&v| v == 0.0 || v == 1.0 / 0.7));
        for other in [dropped(train(2, 2), 3, n), dropped(train(1, 3), 3, n), dropped(train(1, 2), 4, n)] {
            let both: Vec<f32> = base.iter().zip(&other).map(|(a, b)| a * b).collect();
            assert!((kept(&both) - 0.49).abs() < 0.008, "masks are not independent: {}", kept(&both));
        }
        // Neighbours too.
        let pairs: Vec<f32> = base.windows(2).map(|w| w[0] * w[1]).collect();
        assert!((kept(&pairs) - 0.49).abs() < 0.008);
    }

    #[test]
    fn a_mask_does_not_depend_on_the_blocks() {
        let mode = train(5, 0);
        let finish = ActivationDropout { activation: Activation::Relu, dropout: 0.5, layer: 0 };
        let mut whole: Vec<f32> = (0..60).map(|i| i as f32 - 20.0).collect();
        let mut parts = whole.clone();
        let instances = [7, 0, 3, 4, 1 << 31, 9];
        finish.forward(mode, &instances, 10, &mut whole);
        for (i, row) in parts.chunks_mut(10).enumerate() {
            finish.forward(mode, &instances[i..], 10, row);
        }
        assert_eq!(whole, parts);
        let (mut output, mut gradient) = (Activations::default(), Activations::default());
        output.reshape(6, 10);
        gradient.reshape(6, 10);
        output.values_mut().copy_from_slice(&whole);
        gradient.values_mut().fill(1.0);
        finish.backward(mode, &instances, &output, &mut gradient);
        for (&g, &y) in gradient.values().iter().zip(&whole) {
            assert_eq!(g, if y > 0.0 { 2.0 } else { 0.0 });
        }
    }
}
