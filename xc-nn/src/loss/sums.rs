//! Losses that add up over the labels.

use super::{Stretch, exp, log1p_exp_neg_abs, sum_mut};
use xc_buffer::{Loop, vectorised_loop};

#[inline(always)]
pub(super) fn sigmoid(z: f32) -> f32 {
    let e = exp(-z.abs());
    let small = e / (1.0 + e);
    if z >= 0.0 { 1.0 - small } else { small }
}

/// Loss and derivative of one logit under binary cross-entropy.
#[inline(always)]
pub(super) fn bce_of_one(z: f32, is_true: bool) -> (f32, f32) {
    let positive = if z < 0.0 { 0.0 } else { z };
    let loss = log1p_exp_neg_abs(z) + positive;
    let gradient = sigmoid(z);
    if is_true { (loss - z, gradient - 1.0) } else { (loss, gradient) }
}

/// Loss and derivative of one logit under the squared hinge.
#[inline(always)]
pub(super) fn hinge_of_one(z: f32, is_true: bool) -> (f32, f32) {
    let slack = slack(if is_true { z } else { -z });
    (slack * slack, if is_true { -2.0 * slack } else { 2.0 * slack })
}

/// How much of a margin of 1 is missing.
#[inline(always)]
fn slack(margin: f32) -> f32 {
    if margin >= 1.0 { 0.0 } else { 1.0 - margin }
}

pub(super) fn bce(logits: &mut [f32], of: Stretch<'_>, scale: f32) -> f64 {
    let at_positives: f64 = of.positives.iter().map(|&j| f64::from(logits[(j - of.first) as usize])).sum();
    let sum = vectorised_loop(Sigmoids { logits, scale });
    for &j in of.positives {
        logits[(j - of.first) as usize] -= scale;
    }
    sum - at_positives
}

/// Turns logits into gradients as if nothing were true; gives the loss.
struct Sigmoids<'a> {
    logits: &'a mut [f32],
    scale: f32,
}

impl Loop for Sigmoids<'_> {
    type Output = f64;

    #[inline(always)]
    fn run(self) -> f64 {
        sum_mut(self.logits, |z| {
            let (loss, gradient) = bce_of_one(*z, false);
            *z = gradient * self.scale;
            loss
        })
    }
}

/// Turns logits into gradients of the squared hinge; gives the loss.
pub(super) struct Hinges<'a> {
    pub(super) logits: &'a mut [f32],
    pub(super) of: Stretch<'a>,
    pub(super) scale: f32,
}

impl Loop for Hinges<'_> {
    type Output = f64;

    #[inline(always)]
    fn run(self) -> f64 {
        let Self { logits, of, scale } = self;
        let (mut at, mut total) = (0, 0.0);
        for j in of.positives.iter().map(|&j| (j - of.first) as usize) {
            let (stretch, one) = logits[at..=j].split_at_mut(j - at);
            total += negatives(stretch, scale) + f64::from(slack(one[0])).powi(2);
            one[0] = -2.0 * scale * slack(one[0]);
            at = j + 1;
        }
        total + negatives(&mut logits[at..], scale)
    }
}

#[inline(always)]
fn negatives(logits: &mut [f32], scale: f32) -> f64 {
    sum_mut(logits, |z| {
        let slack = slack(-*z);
        *z = 2.0 * scale * slack;
        slack * slack
    })
}
