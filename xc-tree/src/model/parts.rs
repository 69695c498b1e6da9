//! A label tree as plain parts: what trainers and importers produce and what a model is built from.

use super::Topology;
use xc_sparse::chunked::ChunkRows;

/// Shape and weights of one tree before they are packed for prediction.
///
/// # Invariants
/// `levels.len() == topology.depth()`; `levels[l]` has one [`ChunkRows`] a parent of level `l`, in
/// order, with as many columns as that parent has children. Bias weights stand in
/// `ChunkRows::bias`, already multiplied by the value of the bias input (they are added once, after
/// all features).
#[derive(Clone, Debug)]
pub struct TreeParts {
    /// Which node hangs below which.
    pub topology: Topology,
    /// Weights of each level, one chunk a parent.
    pub levels: Vec<Vec<ChunkRows>>,
}
