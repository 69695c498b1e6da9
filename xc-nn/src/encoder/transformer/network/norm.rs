//! Layer normalisation of the sum of two states.
//!
//! ```text
//!   s = x + r     hat = (s - mean(s)) / sqrt(variance(s) + epsilon)     y = hat * gain + bias
//! ```

use super::lanes::sum;
use super::ragged::in_blocks;
use crate::layer::{Named, squares};
use crate::parameter::{Decay, Parameter};
use crate::{Activations, Update};
use rayon::prelude::*;
use xc_buffer::{Loop, vectorised_loop};

/// Columns of a task that adds up the gradient of gains.
const COLUMNS: usize = 128;

/// Gains and biases of a normalisation.
#[derive(Clone, Debug)]
pub(super) struct Norm {
    pub(super) gain: Parameter,
    pub(super) bias: Parameter,
    epsilon: f32,
}

/// What a normalisation keeps for its gradient.
#[derive(Default)]
pub(super) struct Normalised {
    hat: Activations,
    /// 1 / sqrt(variance + epsilon) of each row.
    scale: Vec<f32>,
}

/// The gradient of gains and biases.
#[derive(Default)]
pub(super) struct NormGradient {
    gain: Vec<f32>,
    bias: Vec<f32>,
}

impl Norm {
    /// Gains of 1, biases of 0.
    pub(super) fn new(width: usize, epsilon: f32) -> Self {
        let gain = Parameter::new(vec![1.0; width], 1, Decay::No);
        Self { gain, bias: Parameter::zeros(width, 1, Decay::No), epsilon }
    }

    /// Normalises `x`, to which `residual` is added where there is one.
    pub(super) fn forward(
        &self,
        is_alone: bool,
        x: &Activations,
        residual: Option<&Activations>,
        kept: &mut Normalised,
        out: &mut Activations,
    ) {
        let (n, width) = (x.len(), x.width());
        let Normalised { hat, scale } = kept;
        hat.reshape(n, width);
        out.reshape(n, width);
        scale.resize(n, 0.0);
        let parts = [(hat.values_mut(), width), (&mut scale[..], 1), (out.values_mut(), width)];
        in_blocks(is_alone, n, parts, &|first, [hat, scale, out]| {
            let of = first * width..first * width + out.len();
            let residual = residual.map(|residual| &residual.values()[of.clone()]);
            let x = &x.values()[of];
            let (gain, bias, epsilon) = (self.gain.values(), self.bias.values(), self.epsilon);
            vectorised_loop(Forward { x, residual, hat, scale, out, gain, bias, epsilon });
        });
    }

    /// The output again, of what was kept.
    pub(super) fn again(&self, kept: &Normalised, out: &mut Activations) {
        let (n, width) = (kept.hat.len(), kept.hat.width());
        out.reshape(n, width);
        in_blocks(false, n, [(out.values_mut(), width)], &|first, [out]| {
            let hat = &kept.hat.values()[first * width..][..out.len()];
            vectorised_loop(Again { hat, out, gain: self.gain.values(), bias: self.bias.values() });
        });
    }

    /// Turns the gradient of the output into that of the sum, and adds up that of gains and biases.
    pub(super) fn backward(&self, kept: &Normalised, gradient: &mut Activations, own: &mut NormGradient) {
        let (n, width) = (gradient.len(), gradient.width());
        for sums in [&mut own.gain, &mut own.bias] {
            sums.clear();
            sums.resize(width, 0.0);
        }
        let columns = own.gain.par_chunks_mut(COLUMNS).zip(own.bias.par_chunks_mut(COLUMNS)).enumerate();
        columns.for_each(|(part, (gain, bias))| {
            let (gradient, hat) = (gradient.values(), kept.hat.values());
            vectorised_loop(Columns { gradient, hat, width, first: part * COLUMNS, gain, bias });
        });
        in_blocks(false, n, [(gradient.values_mut(), width)], &|first, [gradient]| {
            let hat = &kept.hat.values()[first * width..][..gradient.len()];
            let scale = &kept.scale[first..];
            vectorised_loop(Backward { hat, scale, gain: self.gain.values(), gradient });
        });
    }

    pub(super) fn squared_norm(own: &NormGradient) -> f64 {
        squares(&own.gain) + squares(&own.bias)
    }

    pub(super) fn update(&mut self, own: &NormGradient, update: &Update) {
        self.gain.rows_mut().update(&own.gain, &update.change);
        self.bias.rows_mut().update(&own.bias, &update.change);
    }

    pub(super) fn parameters(&self, name: &str) -> [Named<&Parameter>; 2] {
        let Self { gain, bias, .. } = self;
        [("gain", gain), ("bias", bias)].map(|(of, parameter)| Named { name: format!("{name}.{of}"), parameter })
    }

    pub(super) fn parameters_mut(&mut self, name: &str) -> [Named<&mut Parameter>; 2] {
        let Self { gain, bias, .. } = self;
        [("gain", gain), ("bias", bias)].map(|(of, parameter)| Named { name: format!("{name}.{of}"), parameter })
    }
}

struct Forward<'a> {
    x: &'a [f32],
    residual: Option<&'a [f32]>,
    hat: &'a mut [f32],
    scale: &'a mut [f32],
    out: &'a mut [f32],
    gain: &'a [f32],
    bias: &'a [f32],
    epsilon: f32,
}

impl Loop for Forward<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { x, residual, hat, scale, out, gain, bias, epsilon } = self;
        let width = gain.len();
        let rows = hat.chunks_exact_mut(width).zip(out.chunks_exact_mut(width)).zip(x.chunks_exact(width));
        for (i, (((hat, out), x), scale)) in rows.zip(scale).enumerate() {
            match residual {
                Some(residual) => {
                    let residual = &residual[i * width..][..width];
                    hat.iter_mut().zip(x).zip(residual).for_each(|((sum, x), r)| *sum = x + r);
                }
                None => hat.copy_from_slice(x),
            }
            let mean = sum(width, |i| hat[i]) / width as f32;
            let variance = sum(width, |i| {
                let apart = hat[i] - mean;
                apart * apart
            }) / width as f32;
            *scale = 1.0 / (variance + epsilon).sqrt();
            let scale = *scale;
            for ((hat, out), (gain, bias)) in hat.iter_mut().zip(out).zip(gain.iter().zip(bias)) {
                *hat = (*hat - mean) * scale;
                *out = *hat * gain + bias;
            }
        }
    }
}

struct Again<'a> {
    hat: &'a [f32],
    out: &'a mut [f32],
    gain: &'a [f32],
    bias: &'a [f32],
}

impl Loop for Again<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { hat, out, gain, bias } = self;
        for (hat, out) in hat.chunks_exact(gain.len()).zip(out.chunks_exact_mut(gain.len())) {
            for ((hat, out), (gain, bias)) in hat.iter().zip(out).zip(gain.iter().zip(bias)) {
                *out = *hat * gain + bias;
            }
        }
    }
}

/// Sums over all rows, of the columns from `first` on.
struct Columns<'a> {
    gradient: &'a [f32],
    hat: &'a [f32],
    width: usize,
    first: usize,
    gain: &'a mut [f32],
    bias: &'a mut [f32],
}

impl Loop for Columns<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { gradient, hat, width, first, gain, bias } = self;
        let n = gain.len();
        for (gradient, hat) in gradient.chunks_exact(width).zip(hat.chunks_exact(width)) {
            let (gradient, hat) = (&gradient[first..first + n], &hat[first..first + n]);
            for ((g, h), (gain, bias)) in gradient.iter().zip(hat).zip(gain.iter_mut().zip(&mut *bias)) {
                *gain += g * h;
                *bias += g;
            }
        }
    }
}

struct Backward<'a> {
    hat: &'a [f32],
    scale: &'a [f32],
    gain: &'a [f32],
    gradient: &'a mut [f32],
}

impl Loop for Backward<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { hat, scale, gain, gradient } = self;
        let width = gain.len();
        for ((hat, g), scale) in hat.chunks_exact(width).zip(gradient.chunks_exact_mut(width)).zip(scale) {
            g.iter_mut().zip(gain).for_each(|(g, gain)| *g *= gain);
            let mean = sum(width, |i| g[i]) / width as f32;
            let along = sum(width, |i| g[i] * hat[i]) / width as f32;
            g.iter_mut().zip(hat).for_each(|(g, hat)| *g = scale * (*g - mean - hat * along));
        }
    }
}
