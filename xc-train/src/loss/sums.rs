//! Losses that add up over the outputs.

use super::{Loss, Separable, exp, log1p_exp_neg_abs, sum_mut};
use xc_sparse::{Loop, vectorised, vectorised_loop};

/// Binary cross-entropy on every output, added up over the outputs (not averaged: a tail output counts as it stands).
///
/// ```text
///   loss = sum_j ln(1 + e^z_j) - [j true] z_j             gradient_j = sigmoid(z_j) - [j true]
/// ```
///
/// `scores` gives sigmoids.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bce;

#[inline(always)]
pub(super) fn sigmoid(z: f32) -> f32 {
    let e = exp(-z.abs());
    let small = e / (1.0 + e);
    if z >= 0.0 { 1.0 - small } else { small }
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
            let loss = log1p_exp_neg_abs(*z) + if *z < 0.0 { 0.0 } else { *z };
            *z = sigmoid(*z) * self.scale;
            loss
        })
    }
}

impl Loss for Bce {
    fn name(&self) -> &'static str {
        "bce"
    }

    fn gradient(&self, logits: &mut [f32], positives: &[u32], scale: f32) -> f64 {
        let at_positives: f64 = positives.iter().map(|&j| f64::from(logits[j as usize])).sum();
        let sum = vectorised_loop(Sigmoids { logits, scale });
        for &j in positives {
            logits[j as usize] -= scale;
        }
        sum - at_positives
    }

    fn scores(&self, logits: &mut [f32]) {
        vectorised(|| logits.iter_mut().for_each(|z| *z = sigmoid(*z)));
    }

    fn separable(&self) -> Option<Separable> {
        Some(Separable::Bce)
    }
}

/// Squared hinge on every output, added up over the outputs; y is 1 where true, -1 elsewhere.
///
/// ```text
///   loss = sum_j max(0, 1 - y_j z_j)^2                    gradient_j = -2 y_j max(0, 1 - y_j z_j)
/// ```
///
/// `scores` maps a margin m to e^(-max(0, 1 - m)^2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SquaredHinge;

/// Turns logits into gradients; gives the loss.
struct Hinges<'a> {
    logits: &'a mut [f32],
    positives: &'a [u32],
    scale: f32,
}

impl Loop for Hinges<'_> {
    type Output = f64;

    #[inline(always)]
    fn run(self) -> f64 {
        let Self { logits, positives, scale } = self;
        let slack = |margin: f32| if margin >= 1.0 { 0.0 } else { 1.0 - margin };
        let (mut at, mut total) = (0, 0.0);
        for &j in positives {
            let (stretch, one) = logits[at..=j as usize].split_at_mut(j as usize - at);
            total += negatives(stretch, scale) + f64::from(slack(one[0])).powi(2);
            one[0] = -2.0 * scale * slack(one[0]);
            at = j as usize + 1;
        }
        total + negatives(&mut logits[at..], scale)
    }
}

impl Loss for SquaredHinge {
    fn name(&self) -> &'static str {
        "squared-hinge"
    }

    fn gradient(&self, logits: &mut [f32], positives: &[u32], scale: f32) -> f64 {
        vectorised_loop(Hinges { logits, positives, scale })
    }

    fn scores(&self, logits: &mut [f32]) {
        vectorised(|| {
            for z in logits {
                let slack = if *z >= 1.0 { 0.0 } else { 1.0 - *z };
                *z = exp(-(slack * slack));
            }
        });
    }

    fn separable(&self) -> Option<Separable> {
        Some(Separable::SquaredHinge)
    }
}

#[inline(always)]
fn negatives(logits: &mut [f32], scale: f32) -> f64 {
    sum_mut(logits, |z| {
        let slack = if *z <= -1.0 { 0.0 } else { 1.0 + *z };
        *z = 2.0 * scale * slack;
        slack * slack
    })
}
