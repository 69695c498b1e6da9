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
