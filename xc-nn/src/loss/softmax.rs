//! Softmax cross-entropy.

use super::{LANES, Loss, Stretch, Total, exp, sum_mut};
use xc_buffer::sums::Blocks;
use xc_buffer::{Loop, vectorised, vectorised_loop};

/// All at once: the exponentials that the sum is made of become the gradient.
pub(super) fn of_blocks(logits: &mut [f32], blocks: &Blocks, positives: &[u32], scale: f32) -> f64 {
    let of = Stretch { first: 0, positives, n_positives: positives.len() };
    let loss = at_positives(logits, of);
    let max = max(logits);
    let sum = blocks.sum(|leaf| vectorised_loop(Exponentials { logits: &mut logits[leaf], max }));
    to_gradient(logits, of, sum, scale);
    loss + Loss::Softmax.of_total(Total { max, sum }, of.n_positives)
}

pub(super) fn gradient(logits: &mut [f32], of: Stretch<'_>, total: Total, scale: f32) -> f64 {
    if of.n_positives == 0 {
        logits.fill(0.0);
        return 0.0;
    }
    let loss = at_positives(logits, of);
    vectorised(|| logits.iter_mut().for_each(|z| *z = exp(*z - total.max)));
    to_gradient(logits, of, total.sum, scale);
    loss
}

pub(super) fn scores(logits: &mut [f32]) {
    let max = max(logits);
    let factor = (1.0 / vectorised_loop(Exponentials { logits, max })) as f32;
    vectorised(|| logits.iter_mut().for_each(|e| *e *= factor));
}

pub(super) fn max(logits: &[f32]) -> f32 {
    vectorised_loop(Max(logits))
}

pub(super) fn sum(logits: &[f32], max: f32) -> f64 {
    vectorised_loop(Sum { logits, max })
}

fn at_positives(logits: &[f32], of: Stretch<'_>) -> f64 {
    let sum: f64 = of.positives.iter().map(|&j| f64::from(logits[(j - of.first) as usize])).sum();
    -sum / of.n_positives as f64
}

/// Exponentials to the gradient.
fn to_gradient(exponentials: &mut [f32], of: Stretch<'_>, sum: f64, scale: f32) {
    let factor = (f64::from(scale) / sum) as f32;
    vectorised(|| exponentials.iter_mut().for_each(|e| *e *= factor));
    let target = (f64::from(scale) / of.n_positives as f64) as f32;
    for &j in of.positives {
        exponentials[(j - of.first) as usize] -= target;
    }
}

struct Max<'a>(&'a [f32]);

impl Loop for Max<'_> {
    type Output = f32;

    #[inline(always)]
    fn run(self) -> f32 {
        let mut lanes = [f32::NEG_INFINITY; LANES];
        let (whole, rest) = self.0.as_chunks::<LANES>();
        for group in whole {
            for (lane, &z) in lanes.iter_mut().zip(group) {
                *lane = if z > *lane { z } else { *lane };
            }
        }
        lanes.iter().chain(rest).fold(f32::NEG_INFINITY, |a, &b| a.max(b))
    }
}

/// Replaces logits by e^(logit - largest); gives their sum.
struct Exponentials<'a> {
    logits: &'a mut [f32],
    max: f32,
}

impl Loop for Exponentials<'_> {
    type Output = f64;

    #[inline(always)]
    fn run(self) -> f64 {
        sum_mut(self.logits, |z| {
            *z = exp(*z - self.max);
            *z
        })
    }
}

/// The sum alone.
struct Sum<'a> {
    logits: &'a [f32],
    max: f32,
}

impl Loop for Sum<'_> {
    type Output = f64;

    #[inline(always)]
    fn run(self) -> f64 {
        /// Logits that are copied at a time; a whole number of runs, so that sums come in the order
        /// of [`Exponentials`].
        const PART: usize = super::RUN;
        let mut part = [0.0f32; PART];
        let mut total = 0.0;
        for logits in self.logits.chunks(PART) {
            let part = &mut part[..logits.len()];
            part.copy_from_slice(logits);
            total += Exponentials { logits: part, max: self.max }.run();
        }
        total
    }
}
