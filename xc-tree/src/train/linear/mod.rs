//! One linear ranker a node: which children of a cluster does an instance belong to?
//!
//! All children of one parent share its instances, so they are solved together: the instances are
//! gathered once with their features renumbered ([`block`]), and up to 16 children advance side by
//! side, one in each SIMD lane ([`lanes`]). A ranker whose instances are its own is a group of one.
//! [`reference`] is the same algorithm without lanes and defines the answer.

mod aligned;
pub(crate) mod block;
pub(crate) mod group;
mod lanes;
mod logistic;
#[cfg(test)]
pub(super) mod reference;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

/// What a ranker minimises: `|w|^2 / 2 + sum_i cost_i * loss(y_i * (w . x_i))`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loss {
    /// `max(0, 1 - m)^2`, by dual coordinate descent with shrinking (`[hsieh2008dual]`).
    SquaredHinge,
    /// `ln(1 + exp(-m))`, by dual coordinate descent (`[yu2011dual]`), one ranker at a time.
    Logistic,
}

impl Loss {
    /// The cost that rankers of this loss have by default. The logistic loss of a margin beyond 1 is
    /// not 0, and its slope is at most 1: it takes more of it to outweigh the regulariser.
    pub fn usual_cost(self) -> f32 {
        match self {
            Self::SquaredHinge => 1.0,
            Self::Logistic => 10.0,
        }
    }

    /// The magnitude below which weights of such rankers are dropped by default.
    pub fn usual_prune_below(self) -> f32 {
        match self {
            Self::SquaredHinge => 0.1,
            Self::Logistic => 0.2,
        }
    }
}

/// How rankers are trained and what is kept of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LinearParams {
    /// The loss.
    pub loss: Loss,
    /// Weight of the loss against the regulariser (liblinear's C); above 0.
    pub cost: f32,
    /// Further factor of the cost of positives; above 0.
    pub positive_cost: f32,
    /// Further factor of the cost of negatives; above 0.
    pub negative_cost: f32,
    /// Value of the bias input, 0 for none.
    pub bias: f32,
    /// A ranker is done when its dual gradients differ by at most this (liblinear's eps); above 0.
    pub tolerance: f32,
    /// Passes over the instances, at most; 1 or more.
    pub max_passes: usize,
    /// Weights below this magnitude are dropped; 0 keeps all that are not 0.
    pub prune_below: f32,
    /// Weights of one ranker that are kept at most: its largest by magnitude.
    pub max_weights: Option<usize>,
}

impl Default for LinearParams {
    fn default() -> Self {
        Self::of(Loss::SquaredHinge)
    }
}

impl LinearParams {
    /// The default parameters of rankers of a loss, which its cost and pruning suit
    /// (`bench/decisions/tree-defaults.md`).
    pub fn of(loss: Loss) -> Self {
        Self {
            loss,
            cost: loss.usual_cost(),
            positive_cost: 1.0,
            negative_cost: 1.0,
            bias: 1.0,
            tolerance: 0.1,
            max_passes: 100,
            prune_below: loss.usual_prune_below(),
            max_weights: None,
        }
    }

    /// Parameters of rankers whose labels have rows of their own ([`rankers`](crate::rankers)), of length 1: squared
    /// hinge, cost 2, bias input 1, at most 20 passes, weights below 0.1 dropped.
    ///
    /// The tolerance is 0.1: dual gradients whose magnitudes are at most 0.05 differ by at most that.
    pub fn of_own_rows() -> Self {
        Self { cost: 2.0, max_passes: 20, prune_below: 0.1, tolerance: 0.1, bias: 1.0, ..Self::of(Loss::SquaredHinge) }
    }
}
