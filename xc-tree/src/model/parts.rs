//! A label tree as plain parts: what trainers and importers produce and what a model is built from.

use super::Topology;
use xc_sparse::chunked::ChunkRows;

/// Shape and weights of one tree before they are packed for prediction.
///
/// # Invariants
/// `levels.len() == topology.depth()`; `levels[l]` has one [`ChunkRows`] per parent of level `l`, in
/// order, with as many columns as that parent has children. Bias weights are in `ChunkRows::bias`,
/// already multiplied by the value of the bias input (they are added once, after all features).
#[derive(Clone, Debug)]
pub struct TreeParts {
    /// The shape of the tree.
    pub topology: Topology,
    /// Weights of each level, one chunk per parent.
    pub levels: Vec<Vec<ChunkRows>>,
}

/// How many weights trees have, and how many of their nodes have none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WeightCounts {
    /// Weights, without biases.
    pub weights: usize,
    /// Nodes below the roots: clusters and labels.
    pub nodes: usize,
    /// Nodes whose ranker has no weight but its bias: they say the same of every query.
    pub bare: usize,
}

impl WeightCounts {
    /// Share of the nodes that have no weight, in a sound model at most. With the default parameters it
    /// is below 0.001 on nine data sets (`bench/decisions/tree-row-length.md`).
    pub const MOST_BARE: f64 = 0.05;

    /// Whether so many nodes have no weight that pruning has probably taken what the rankers learned.
    pub fn is_pruned_away(&self) -> bool {
        self.bare as f64 > Self::MOST_BARE * self.nodes as f64
    }

    /// Counts the children of one parent.
    pub(crate) fn add(&mut self, chunk: &ChunkRows) {
        let mut has_weight = vec![false; chunk.n_columns];
        chunk.columns.iter().for_each(|&column| has_weight[column as usize] = true);
        self.weights += chunk.values.len();
        self.nodes += chunk.n_columns;
        self.bare += has_weight.iter().filter(|has| !**has).count();
    }
}
