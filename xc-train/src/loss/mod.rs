//! Losses: what an error costs, and its gradient with respect to the logits.

mod softmax;
mod sums;

pub use softmax::Softmax;
pub use sums::{Bce, SquaredHinge};

/// A loss over the outputs of one instance.
///
/// The loss of a batch is the mean over its instances.
pub trait Loss: Send + Sync {
    /// Name in configurations and logs.
    fn name(&self) -> &'static str;

    /// Gives the loss of one instance and replaces its logits by `scale` times the gradient with respect to them.
    ///
    /// `positives` are the true outputs, ascending and unique. A logit that is not finite makes the loss so, or the
    /// gradient; nothing panics.
    fn gradient(&self, logits: &mut [f32], positives: &[u32], scale: f32) -> f64;

    /// Replaces logits by scores between 0 and 1.
    fn scores(&self, logits: &mut [f32]);

    /// The loss of each output, if that of an instance is their sum.
    fn separable(&self) -> Option<Separable> {
        None
    }
}

/// Losses that add up over the outputs, one output at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Separable {
    /// See [`Bce`].
    Bce,
    /// See [`SquaredHinge`].
    SquaredHinge,
}

impl Separable {
    /// A logit at or below this has neither loss nor gradient where the output is false.
    pub fn no_loss_below(self) -> f32 {
        match self {
            Self::Bce => f32::NEG_INFINITY,
            Self::SquaredHinge => -1.0,
        }
    }

    /// Loss of a logit and its derivative. NaN gives NaN.
    #[inline(always)]
    pub fn one(self, z: f32, is_true: bool) -> (f32, f32) {
        match self {
            Self::Bce => {
                let positive = if z < 0.0 { 0.0 } else { z };
                let loss = log1p_exp_neg_abs(z) + positive;
                let gradient = sums::sigmoid(z);
                if is_true { (loss - z, gradient - 1.0) } else { (loss, gradient) }
            }
            Self::SquaredHinge => {
                let margin = if is_true { z } else { -z };
                let slack = if margin >= 1.0 { 0.0 } else { 1.0 - margin };
                (slack * slack, if is_true { -2.0 * slack } else { 2.0 * slack })
            }
        }
    }
}

/// e^x for x <= 88, elementwise without branches; relative error below 3e-7; 0 below -87.3.
///
/// Cody-Waite reduction to |r| <= ln 2 / 2 and a polynomial of degree 6.
#[inline(always)]
fn exp(x: f32) -> f32 {
    // Adding and taking away 1.5 * 2^23 rounds to the nearest integer.
    const ROUND: f32 = 12_582_912.0;
    let clamped = x.clamp(-87.3, 88.0);
    let n = clamped * std::f32::consts::LOG2_E + ROUND;
    let bits = n.to_bits().wrapping_sub(ROUND.to_bits());
    let n = n - ROUND;
    let r = clamped - n * 0.693_359_4 + n * 2.121_944_4e-4;
    let mut p = 1.0 / 720.0;
    for c in [1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
        p = p * r + c;
    }
    let scale = f32::from_bits(bits.wrapping_add(127) << 23);
    // A logit far below the largest adds nothing; NaN stays NaN.
    if x < -87.3 { 0.0 } else { p * scale }
}

/// ln(1 + e^-|x|), elementwise without branches; absolute error below 1e-6.
#[inline(always)]
fn log1p_exp_neg_abs(x: f32) -> f32 {
    // ln(1 + z) = 2 atanh(s) with s = z / (2 + z) <= 1/3.
    let z = exp(-x.abs());
    let s = z / (2.0 + z);
    let q = s * s;
    let mut p = 1.0 / 13.0;
    for c in [1.0 / 11.0, 1.0 / 9.0, 1.0 / 7.0, 1.0 / 5.0, 1.0 / 3.0, 1.0] {
        p = p * q + c;
    }
    2.0 * s * p
}

/// Partial sums side by side, so that a sum can be computed in vectors and still has one order.
const LANES: usize = 16;
/// Values after which partial sums go over into f64.
const RUN: usize = 1024;

/// Sum of `f` over the values, which `f` may change: in lanes of f32 over runs, then in f64, always in one order.
#[inline(always)]
fn sum_mut(values: &mut [f32], f: impl Fn(&mut f32) -> f32) -> f64 {
    let mut total = 0.0f64;
    for run in values.chunks_mut(RUN) {
        let mut lanes = [0.0f32; LANES];
        let (whole, rest) = run.as_chunks_mut::<LANES>();
        for group in whole {
            for (lane, value) in lanes.iter_mut().zip(group) {
                *lane += f(value);
            }
        }
        for (lane, value) in lanes.iter_mut().zip(rest) {
            *lane += f(value);
        }
        total += lanes.iter().map(|&l| f64::from(l)).sum::<f64>();
    }
    total
}

#[cfg(test)]
mod tests;
