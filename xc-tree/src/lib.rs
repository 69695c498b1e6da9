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

mod batch;
mod beam;
mod checkpoint;
mod cluster;
mod file;
mod groups;
mod head;
mod labels;
mod linear;
mod model;
mod observe;
pub mod omikuji;
mod parts;
pub mod pecos;
mod post;
mod restrict;
mod select;
mod stream;
mod topology;
mod train;
mod untrained;

pub use beam::{PredictParams, PredictScratch};
pub use checkpoint::CheckpointError;
pub use cluster::{ClusterMethod, ClusterParams};
pub use file::{Check, KIND, OpenTreeError};
pub use groups::group_labels;
pub use labels::{LabelRepresentation, LabelVectors};
pub use linear::{LinearParams, Loss};
pub use model::{BuildError, ModelInfo, Tree, TreeModel};
pub use observe::{Event, Observer, Silent};
pub use parts::TreeParts;
pub use post::{PostProcessor, UnknownPostProcessor};
pub use restrict::{Restriction, UnknownLabel};
pub use topology::{Topology, TopologyError};
pub use train::{
    CheckTreeParamsError, Negatives, Preset, TrainError, TrainInput, TreeParams, UnknownPreset, Unseen,
    estimate_peak_bytes, train_tree, train_trees,
};
pub use untrained::{Untrained, UntrainedError, UntrainedParams};
