//! Softmax cross-entropy.

use super::{LANES, Loss, exp, sum_mut};
use xc_sparse::{Loop, vectorised, vectorised_loop};

/// Cross-entropy between softmax probabilities and a target spread evenly over the true outputs: with n of them each
/// has the target 1/n.
///
/// ```text
///   loss = ln sum_j e^z_j  -  1/n sum_(true) z_j          gradient_j = p_j - (1/n if true)
/// ```
///
/// An instance without a true output has loss and gradient 0. `scores` gives the probabilities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Softmax;

impl Loss for Softmax {
    fn name(&self) -> &'static str {
        "softmax"
    }

    fn gradient(&self, logits: &mut [f32], positives: &[u32], scale: f32) -> f64 {
        if positives.is_empty() {
            logits.fill(0.0);
            return 0.0;
        }
        let share = 1.0 / positives.len() as f64;
        let at_positives = positives.iter().map(|&j| f64::from(logits[j as usize])).sum::<f64>() * share;
        let (max, sum) = exponentials(logits);
        let factor = (f64::from(scale) / sum) as f32;
        vectorised(|| logits.iter_mut().for_each(|e| *e *= factor));
        for &j in positives {
            logits[j as usize] -= (f64::from(scale) * share) as f32;
        }
        sum.ln() + f64::from(max) - at_positives
    }

    fn scores(&self, logits: &mut [f32]) {
        let (_, sum) = exponentials(logits);
        let factor = (1.0 / sum) as f32;
        vectorised(|| logits.iter_mut().for_each(|e| *e *= factor));
    }
}

/// Replaces logits by e^(logit - largest); gives the largest and the sum.
fn exponentials(logits: &mut [f32]) -> (f32, f64) {
    vectorised_loop(Exponentials(logits))
}

struct Exponentials<'a>(&'a mut [f32]);

impl Loop for Exponentials<'_> {
    type Output = (f32, f64);

    #[inline(always)]
    fn run(self) -> (f32, f64) {
        let logits = self.0;
        let mut lanes = [f32::NEG_INFINITY; LANES];
        let (whole, rest) = logits.as_chunks::<LANES>();
        for group in whole {
            for (lane, &z) in lanes.iter_mut().zip(group) {
                *lane = if z > *lane { z } else { *lane };
            }
        }
        let max = lanes.iter().chain(rest).fold(f32::NEG_INFINITY, |a, &b| a.max(b));
        let sum = sum_mut(logits, |z| {
            *z = exp(*z - max);
            *z
        });
        (max, sum)
    }
}
