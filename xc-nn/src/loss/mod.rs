//! Losses: what an error costs, and its gradient with respect to the logits.
//!
//! A named loss is data: a file, a log or a kernel only needs its name. One of your own is a
//! [`LossFunction`]. Where a loss looks at all logits of an instance at once, as softmax does, it
//! splits into a maximum, a sum and then the gradient, so that a head can go over its labels a tile at
//! a time.
//!
//! ```text
//!   softmax         ln sum_j e^z_j - 1/n sum_(true) z_j       p_j - (1/n if true)                 n true labels
//!   bce             sum_j ln(1 + e^z_j) - [j true] z_j        sigmoid(z_j) - [j true]
//!   nce             as bce, of z_j - log q_j: over labels where label j is present with probability q_j; over all labels q_j = 1
//!   squared-hinge   sum_j max(0, 1 - y_j z_j)^2               -2 y_j max(0, 1 - y_j z_j)          y_j: 1 where true, else -1
//! ```
//!
//! The loss of a batch is the mean over its instances. Sums over labels are not averaged: every label
//! has weight 1.

mod candidates;
mod own;
mod softmax;
mod sums;

pub use candidates::Corrections;
pub use own::LossFunction;

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;
use xc_buffer::simd::exp;
use xc_buffer::sums::Blocks;
use xc_buffer::{vectorised, vectorised_loop};

/// A loss over the labels of one instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loss {
    /// Cross-entropy between softmax probabilities and a target spread evenly over the true labels.
    /// An instance without a true label has loss and gradient 0. Scores are the probabilities.
    Softmax,
    /// Binary cross-entropy on every label, added up. Scores are sigmoids.
    Bce,
    /// Noise-contrastive estimation: binary cross-entropy that tells true labels from those that a
    /// sampler drew. The logit learns the logarithm of the label's probability, which is the score.
    Nce,
    /// Squared hinge on every label, added up. A score is e^(-max(0, 1 - z)^2).
    SquaredHinge,
    /// A loss of your own. Files do not name it.
    #[serde(skip)]
    Own(&'static dyn LossFunction),
}

/// No loss has this name.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("loss {got:?}, expected softmax, bce, nce or squared-hinge")]
pub struct LossError {
    /// The name.
    pub got: String,
}

/// What a loss knows of all logits of an instance before it looks at some of them: the largest, and
/// the sum of e^(logit - largest). Losses that add up over labels need nothing; for them any value
/// will do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Total {
    /// The largest logit.
    pub max: f32,
    /// The sum.
    pub sum: f64,
}

/// Which labels of an instance a stretch of logits belongs to.
#[derive(Clone, Copy, Debug)]
pub struct Stretch<'a> {
    /// Label of the first logit.
    pub first: u32,
    /// True labels among those of the stretch, ascending and unique.
    pub positives: &'a [u32],
    /// True labels of the instance, wherever they are.
    pub n_positives: usize,
}

impl Total {
    /// That of no logits.
    pub const EMPTY: Self = Self { max: f32::NEG_INFINITY, sum: 0.0 };

    /// Takes in more logits.
    pub fn add(&mut self, loss: Loss, logits: &[f32]) {
        let max = loss.max(logits);
        // Labels that were taken out have no part in it; the sum of numbers that are none is none.
        if max == f32::NEG_INFINITY && logits.iter().all(|&z| z == max) {
            return;
        }
        self.merge(Self { max, sum: loss.sum(logits, max) });
    }

    /// Takes in what is known of other logits.
    pub fn merge(&mut self, other: Self) {
        let (high, low) = if other.max > self.max { (other, *self) } else { (*self, other) };
        // Nothing adds nothing; infinities make the sum no number.
        let added = if low.sum == 0.0 { 0.0 } else { low.sum * f64::from(low.max - high.max).exp() };
        *self = Self { max: high.max, sum: high.sum + added };
    }
}

impl Loss {
    /// All that have a name here.
    pub const ALL: [Self; 4] = [Self::Softmax, Self::Bce, Self::Nce, Self::SquaredHinge];

    /// Name in configurations and logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Softmax => "softmax",
            Self::Bce => "bce",
            Self::Nce => "nce",
            Self::SquaredHinge => "squared-hinge",
            Self::Own(loss) => loss.name(),
        }
    }

    /// Whether the loss of an instance is a sum over labels: then no logit matters for the gradient
    /// of another.
    pub fn is_separable(self) -> bool {
        self != Self::Softmax
    }

    /// A logit at or below this has neither loss nor gradient where the label is false; minus
    /// infinity if there is no such logit.
    pub fn margin(self) -> f32 {
        match self {
            Self::Softmax | Self::Bce | Self::Nce => f32::NEG_INFINITY,
            Self::SquaredHinge => -1.0,
            Self::Own(loss) => loss.margin(),
        }
    }

    /// The largest of some logits. Those of an instance have the largest of its stretches.
    pub fn max(self, logits: &[f32]) -> f32 {
        match self {
            Self::Softmax => softmax::max(logits),
            _ => f32::NEG_INFINITY,
        }
    }

    /// The part of [`Total::sum`] that some logits have, where `max` is the largest of all. Those
    /// of stretches add up.
    pub fn sum(self, logits: &[f32], max: f32) -> f64 {
        match self {
            Self::Softmax => softmax::sum(logits, max),
            _ => 0.0,
        }
    }

    /// The loss of an instance beside what [`Loss::gradient`] gives of its stretches.
    pub fn of_total(self, total: Total, n_positives: usize) -> f64 {
        match self {
            Self::Softmax if n_positives > 0 => total.sum.ln() + f64::from(total.max),
            _ => 0.0,
        }
    }

    /// Gives the loss of a stretch of logits and replaces them by `scale` times the gradient with
    /// respect to them.
    ///
    /// # Panics
    /// If a true label lies outside the stretch.
    pub fn gradient(self, logits: &mut [f32], of: Stretch<'_>, total: Total, scale: f32) -> f64 {
        match self {
            Self::Softmax => softmax::gradient(logits, of, total, scale),
            Self::Bce | Self::Nce => sums::bce(logits, of, scale),
            Self::SquaredHinge => vectorised_loop(sums::Hinges { logits, of, scale }),
            Self::Own(loss) => own::gradient(loss, logits, of, scale),
        }
    }

    /// Maximum, sum and gradient of all logits of an instance: gives its loss and replaces them by
    /// `scale` times the gradient.
    ///
    /// `positives` are the true labels, ascending and unique. A logit that is not finite makes the
    /// loss so, or the gradient; nothing panics.
    pub fn of_row(self, logits: &mut [f32], positives: &[u32], scale: f32) -> f64 {
        self.of_blocks(logits, &Blocks::whole(logits.len()), positives, scale)
    }

    /// [`Loss::of_row`] with its sums over labels in the order of `blocks`.
    ///
    /// # Panics
    /// If the blocks are of another number of labels, or there is no such true label.
    pub fn of_blocks(self, logits: &mut [f32], blocks: &Blocks, positives: &[u32], scale: f32) -> f64 {
        assert!(blocks.n_items() == logits.len(), "{} logits, leaves for {}", logits.len(), blocks.n_items());
        if self.is_separable() {
            let n_positives = positives.len();
            let mut rest = positives;
            let loss = blocks.sum(|leaf| {
                let (here, later) = rest.split_at(rest.partition_point(|&label| (label as usize) < leaf.end));
                rest = later;
                let of = Stretch { first: leaf.start as u32, positives: here, n_positives };
                self.gradient(&mut logits[leaf], of, Total::EMPTY, scale)
            });
            assert!(rest.is_empty(), "true label {} of {} labels", rest[0], blocks.n_items());
            return loss;
        }
        if positives.is_empty() {
            logits.fill(0.0);
            return 0.0;
        }
        softmax::of_blocks(logits, blocks, positives, scale)
    }

    /// Loss and derivative of one logit, for an instance of this total and so many true labels. NaN
    /// gives NaN.
    ///
    /// The loss is that of the logit alone; see [`Loss::of_total`].
    #[inline(always)]
    pub fn loss_and_gradient(self, z: f32, is_true: bool, share: Shares) -> (f32, f32) {
        match self {
            Self::Softmax => share.of(z, is_true),
            Self::Bce | Self::Nce => sums::bce_of_one(z, is_true),
            Self::SquaredHinge => sums::hinge_of_one(z, is_true),
            Self::Own(loss) => loss.loss_and_gradient(z, is_true),
        }
    }

    /// Replaces all logits of an instance by scores between 0 and 1, in the same order.
    pub fn scores(self, logits: &mut [f32]) {
        match self {
            Self::Softmax => softmax::scores(logits),
            Self::Bce => vectorised(|| logits.iter_mut().for_each(|z| *z = sums::sigmoid(*z))),
            Self::Nce => vectorised(|| logits.iter_mut().for_each(|z| *z = exp(if *z > 0.0 { 0.0 } else { *z }))),
            Self::SquaredHinge => vectorised(|| {
                for z in logits {
                    let slack = if *z >= 1.0 { 0.0 } else { 1.0 - *z };
                    *z = exp(-(slack * slack));
                }
            }),
            Self::Own(loss) => logits.iter_mut().for_each(|z| *z = loss.score(*z)),
        }
    }

    /// Replaces logits by the logarithms of their scores, which stay apart where scores are too small for an f32. `total`
    /// is that of the labels which a softmax compares.
    pub fn log_scores(self, logits: &mut [f32], total: Total) {
        let log_sum = total.sum.ln() as f32;
        let log_of = |z: f32| match self {
            Self::Softmax => z - total.max - log_sum,
            Self::Bce => z.min(0.0) - log1p_exp_neg_abs(z),
            Self::Nce => z.min(0.0),
            Self::SquaredHinge => {
                let slack = if z >= 1.0 { 0.0 } else { 1.0 - z };
                -(slack * slack)
            }
            Self::Own(loss) => loss.score(z).max(f32::MIN_POSITIVE).ln(),
        };
        logits.iter_mut().for_each(|z| *z = log_of(*z));
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Loss {
    type Err = LossError;

    fn from_str(name: &str) -> Result<Self, LossError> {
        let found = Self::ALL.into_iter().find(|loss| loss.name() == name);
        found.ok_or_else(|| LossError { got: name.to_owned() })
    }
}

/// What each logit of an instance is told of the others, ready for use: see [`Total`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shares {
    max: f32,
    /// 1 over the sum, or 0 for an instance without a true label.
    probability: f32,
    /// 1 over the number of true labels, or 0.
    target: f32,
}

impl Shares {
    /// For a loss that adds up over labels.
    pub const NONE: Self = Self { max: 0.0, probability: 0.0, target: 0.0 };

    /// Of an instance of so many true labels.
    pub fn new(total: Total, n_positives: usize) -> Self {
        let share = |of: f64| if n_positives == 0 { 0.0 } else { (1.0 / of) as f32 };
        Self { max: total.max, probability: share(total.sum), target: share(n_positives as f64) }
    }

    #[inline(always)]
    fn of(self, z: f32, is_true: bool) -> (f32, f32) {
        let target = if is_true { self.target } else { 0.0 };
        let loss = if is_true { -z * target } else { 0.0 };
        (loss, exp(z - self.max) * self.probability - target)
    }
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

/// Sum of `f` over the values, which `f` may change: in lanes of f32 over runs, then in f64, always
/// in one order.
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
