//! Trees of decisions whose leaves add up to a logit.
//!
//! ```text
//!            x[3] > 0.7                  splits of a tree, level by level: 0 | 1 2 | 3 4 5 6 | 7 .. 14
//!           /          \                 leaves: 16, from left to right
//!     x[0] > 1.2     x[3] > 1.9
//! ```
//!
//! All trees have [`LEVELS`] levels; a branch that needs fewer is filled with splits that nothing passes.

use std::error::Error;
use std::fmt;
use xc_dense::DenseRows;

/// Comparisons from the root to a leaf.
pub const LEVELS: usize = 4;
/// Splits of a tree.
pub const SPLITS: usize = (1 << LEVELS) - 1;
/// Leaves of a tree.
pub const LEAVES: usize = 1 << LEVELS;

/// A tree.
#[derive(Clone, Debug, PartialEq)]
pub struct BoostedTree {
    /// Which feature each split looks at.
    pub features: [u16; SPLITS],
    /// Rows whose feature is above this go right, others and NaN left; infinity: all go left.
    pub thresholds: [f32; SPLITS],
    /// What each leaf adds.
    pub leaves: [f32; LEAVES],
}

/// A sum of trees.
#[derive(Clone, Debug, PartialEq)]
pub struct BoostedTrees {
    n: usize,
    bias: f32,
    trees: Vec<BoostedTree>,
}

/// Trees that give no logit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TreesError {
    /// A split looks at a feature that rows do not have.
    Feature,
    /// A threshold is NaN.
    Threshold,
    /// A leaf or the bias is not finite.
    Leaf,
}

impl fmt::Display for TreesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Feature => "a split looks at a feature that rows do not have",
            Self::Threshold => "a threshold is not a number",
            Self::Leaf => "a leaf or the bias is not a finite number",
        })
    }
}

impl Error for TreesError {}

/// Rows that go through a tree one after the other.
const BLOCK: usize = 64;

impl BoostedTrees {
    /// Trees over rows of `n` features, and what is added to their sum.
    ///
    /// # Errors
    /// See [`TreesError`].
    pub fn try_new(bias: f32, trees: Vec<BoostedTree>, n: usize) -> Result<Self, TreesError> {
        let is_there = |tree: &BoostedTree| tree.features.iter().all(|&at| usize::from(at) < n);
        match () {
            () if !trees.iter().all(is_there) => Err(TreesError::Feature),
            () if trees.iter().flat_map(|tree| tree.thresholds).any(f32::is_nan) => Err(TreesError::Threshold),
            () if !bias.is_finite() || !trees.iter().flat_map(|tree| tree.leaves).all(f32::is_finite) => {
                Err(TreesError::Leaf)
            }
            () => Ok(Self { n, bias, trees }),
        }
    }

    /// The trees, in the order in which their leaves are added.
    pub fn trees(&self) -> &[BoostedTree] {
        &self.trees
    }

    /// What is added to their sum.
    pub fn bias(&self) -> f32 {
        self.bias
    }

    /// Replaces `out` by the logit of each row.
    ///
    /// *Cost*: [`LEVELS`] comparisons a row and tree. *Determinism*: the same bits for a row alone and among others.
    ///
    /// # Panics
    /// If rows have another width than those of the fit.
    pub fn logits(&self, rows: DenseRows<'_>, out: &mut Vec<f32>) {
        assert!(rows.is_empty() || rows.width() == self.n, "rows of {} features, expected {}", rows.width(), self.n);
        out.clear();
        out.resize(rows.len(), self.bias);
        for (block, sums) in out.chunks_mut(BLOCK).enumerate() {
            for tree in &self.trees {
                for (at, sum) in sums.iter_mut().enumerate() {
                    *sum += tree.leaf(rows.row(block * BLOCK + at));
                }
            }
        }
    }
}

impl BoostedTree {
    /// What the leaf of a row adds.
    pub fn leaf(&self, row: &[f32]) -> f32 {
        let mut at = 0;
        for _ in 0..LEVELS {
            let goes_right = row[usize::from(self.features[at])] > self.thresholds[at];
            at = 2 * at + 1 + usize::from(goes_right);
        }
        self.leaves[at - SPLITS]
    }
}
