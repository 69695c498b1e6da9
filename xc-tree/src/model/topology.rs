//! The shape of a label tree, apart from its weights.

use thiserror::Error;

/// The children of every node, level by level.
///
/// Level 0 holds the children of the root. The children of a node are contiguous, so a level is a list
/// of boundaries; the nodes of the last level are the leaves, and each leaf is one label.
///
/// ```text
///   root ── 0 ── leaves 0 1 2          levels[0] = [0, 2]        one parent (the root), two children
///        └─ 1 ── leaves 3 4            levels[1] = [0, 3, 5]     two parents, five children
///                                      labels    = [7, 0, 4, 1, 9]   label of each leaf
/// ```
///
/// # Invariants
/// At least one level; level 0 has one parent; each level has as many parents as the level above
/// has children; boundaries start with 0 and never decrease; `labels` has one entry per leaf, without
/// repetition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    levels: Vec<Vec<u32>>,
    labels: Vec<u32>,
}

/// Why arrays do not describe a tree.
#[derive(Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum TopologyError {
    /// No level at all.
    #[error("a tree needs at least one level")]
    Empty,
    /// Level `level` does not fit the one above.
    #[error("level {level}: {got} parents, expected {expected}")]
    Parents {
        /// The level.
        level: usize,
        /// Parents found.
        got: usize,
        /// Parents expected.
        expected: usize,
    },
    /// Boundaries decrease or do not start with 0.
    #[error("level {level}: boundaries must start with 0 and never fall")]
    Boundaries {
        /// The level.
        level: usize,
    },
    /// Leaves and labels differ in number.
    #[error("{got} leaf labels, expected {expected}")]
    Leaves {
        /// Labels found.
        got: usize,
        /// Leaves present.
        expected: usize,
    },
    /// A label out of range or repeated.
    #[error("leaf {leaf} carries label {label}, which is repeated or not below {n_labels}")]
    Label {
        /// The leaf.
        leaf: usize,
        /// Its label.
        label: u32,
        /// Number of labels.
        n_labels: usize,
    },
}

impl Topology {
    /// Checks and wraps. `n_labels` may exceed the number of leaves: labels without a leaf are
    /// never predicted.
    pub fn try_new(levels: Vec<Vec<u32>>, labels: Vec<u32>, n_labels: usize) -> Result<Self, TopologyError> {
        let mut expected = 1;
        for (level, ptr) in levels.iter().enumerate() {
            if ptr.len() != expected + 1 {
                return Err(TopologyError::Parents { level, got: ptr.len().saturating_sub(1), expected });
            }
            if ptr[0] != 0 || ptr.windows(2).any(|w| w[0] > w[1]) {
                return Err(TopologyError::Boundaries { level });
            }
            expected = ptr[ptr.len() - 1] as usize;
        }
        if levels.is_empty() {
            return Err(TopologyError::Empty);
        }
        if labels.len() != expected {
            return Err(TopologyError::Leaves { got: labels.len(), expected });
        }
        let mut seen = vec![false; n_labels];
        for (leaf, &label) in labels.iter().enumerate() {
            match seen.get_mut(label as usize) {
                Some(s) if !*s => *s = true,
                _ => return Err(TopologyError::Label { leaf, label, n_labels }),
            }
        }
        Ok(Self { levels, labels })
    }

    /// Number of levels, the root not counted.
    pub fn depth(&self) -> usize {
        self.levels.len()
    }

    /// Boundaries of level `level`: the children of its parent `p` are `b[p]..b[p + 1]`.
    pub fn boundaries(&self, level: usize) -> &[u32] {
        &self.levels[level]
    }

    /// Number of nodes of level `level` (children, not parents).
    pub fn n_nodes(&self, level: usize) -> usize {
        self.levels[level][self.levels[level].len() - 1] as usize
    }

    /// Label of each leaf.
    pub fn labels(&self) -> &[u32] {
        &self.labels
    }
}
