//! Label trees: clustering, linear rankers, and beam search with masked sparse chunk multiplication.
//!
//! A query walks down a tree of clusters. At each level the children of the best clusters are scored, all children of
//! one cluster together (see [`xc_sparse::chunked`]), and the `beam` best go on; the nodes of the last level are
//! the labels (etter2022mscm).
//!
//! | here is | give me | by |
//! |---|---|---|
//! | features and labels | the parts of trees | [`train_trees`] |
//! | the parts of trees | a model | [`TreeModel::from_parts`] |
//! | a model folder | a model | [`TreeModel::open`] |
//! | a query | its best labels | [`TreeModel::predict_one`] |
//! | many queries | their best labels | [`TreeModel::predict_batch`] |
//! | a query and some labels | their scores | [`TreeModel::restrict`], [`TreeModel::predict_restricted`] |

#[cfg(feature = "import")]
pub mod import;
mod model;
mod predict;
#[cfg(feature = "train")]
mod train;

pub use model::{
    BuildError, Check, KIND, ModelInfo, OpenTreeError, PostProcessor, Topology, TopologyError, Tree, TreeModel,
    TreeParts, UnknownPostProcessor,
};
pub use predict::{PredictParams, PredictScratch, Restriction, UnknownLabel};
#[cfg(feature = "train")]
pub use train::{
    CheckTreeParamsError, CheckpointError, ClusterMethod, ClusterParams, Event, LabelRepresentation, LabelVectors,
    LinearParams, Loss, Negatives, NoObserver, Observer, Preset, TrainError, TrainInput, TreeParams, UnknownPreset,
    Unseen, estimate_peak_bytes, group_labels, train_tree, train_trees,
};
