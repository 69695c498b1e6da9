//! PECOS XLinear models and cluster chains: read from and written to the folders of that system
//! (libpecos 1.2.8).
//!
//! ```text
//!   FOLDER/ranker/param.json                depth
//!   FOLDER/ranker/{d}.model/param.json      bias, post-processor, beam of level d
//!   FOLDER/ranker/{d}.model/W.npz           weights: a column a child; the last row belongs to the bias
//!   FOLDER/ranker/{d}.model/C.npz           which child (row) hangs below which parent (column)
//! ```
//!
//! There, columns of `W` and rows of `C` share one numbering; for the last level it is that of the
//! labels. Here, the children of one node are neighbours. [`import`] therefore walks `C` from the
//! root and takes the columns in the order it meets them; it does not assume that inner levels are
//! in order already, though PECOS writes them so.
//!
//! Both forms are read: the `.npz` one that `save` writes, and the `.mmap_store` one that
//! `compile_mmap_model` writes.

mod clusters;
mod columns;
mod error;
mod export;
mod folder;
mod import;
mod matrix;
mod stored;

pub use clusters::{export_clusters, import_clusters};
pub use error::PecosError;
pub use export::export;
pub use import::import;

use crate::model::{PostProcessor, TreeParts};

/// What a PECOS XLinear folder holds.
#[derive(Clone, Debug)]
pub struct PecosModel {
    /// Shape and weights. Bias weights are multiplied by `bias` already.
    pub parts: TreeParts,
    /// Post-processor of every level (a model whose levels differ in it is refused).
    pub post: PostProcessor,
    /// Clusters kept per level when the caller asks for nothing else: the largest `only_topk` of
    /// the levels above the last, or that of the last when it is the only one.
    pub beam: usize,
    /// `only_topk` of every level; that of the last is the number of labels returned.
    pub level_top_k: Vec<usize>,
    /// Number of features, the bias not counted.
    pub n_features: usize,
    /// Number of labels.
    pub n_labels: usize,
    /// Value of the bias input (of the last level); 0 when there is none.
    pub bias: f32,
}

#[cfg(test)]
mod tests;
