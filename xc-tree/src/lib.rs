#![cfg_attr(feature = "train", doc = include_str!("../README.md"))]
//!
//! [`TreeParams`] holds all settings of a model, including row normalisation, post-processor and beam;
//! the folder stores them, and every prediction follows them.
//!
//! | from | to | use |
//! |---|---|---|
//! | features and labels | a model | [`TreeModel::train`] |
//! | the same, with progress, cancelling, a checkpoint | a model | [`TreeModel::train_with`] |
//! | the same, too large for memory | the arrays of a model | [`train_out_of_core`], [`StoredTrees::write`] |
//! | rows that each label is true on, and is told from | a ranker for each label, without a tree | [`rankers::solve`] |
//! | a model folder | a model | [`TreeModel::open`] |
//! | an open container | a model | [`TreeModel::from_container`] |
//! | your own trees, or those of another system ([`import`]) | a model | [`TreeModel::from_parts`] |
//! | a model, and changes to it | another model | [`TreeModel::changed`] |
//! | a query | its best labels | [`TreeModel::predict`] |
//! | one query at a time, without allocating | their best labels | [`TreeModel::predict_one`] |
//! | many queries at once | their best labels | [`TreeModel::predict_batch`] |
//! | the same on a CUDA device (feature `cuda`) | their best labels | `TreeModel::on`, `DeviceTrees::predict_batch` |
//! | a text | its best labels | [`text::TextModel`] |
//! | a query and some labels | their scores | [`TreeModel::restrict`], [`TreeModel::predict_restricted`] |
//! | rankers without a tree, a query and some labels | their logits | [`RankerWeights::logits`] |

#![deny(unsafe_code, missing_debug_implementations)] // the exceptions are `trusted` and launches of kernels

#[cfg(feature = "cuda")]
mod cuda;
#[cfg(feature = "import")]
pub mod import;
mod model;
mod predict;
mod ranker_weights;
#[cfg(feature = "text")]
pub mod text;
#[cfg(feature = "train")]
mod train;

#[cfg(feature = "cuda")]
pub use cuda::{DeviceQueryError, DeviceTrees};
pub use model::trusted;
pub use model::{
    BuildError, KIND, ModelInfo, OpenTreeError, PostProcessor, Topology, TopologyError, Tree, TreeChangeError,
    TreeChanges, TreeModel, TreeParts, UnknownPostProcessor, WeightCounts,
};
pub use predict::{PathNode, PredictParams, PredictScratch, QueryError, Restriction, UnknownLabel};
pub use ranker_weights::{LogitScratch, RankerWeights, RankerWeightsError};
#[cfg(feature = "train")]
pub use train::rankers;
#[cfg(feature = "train")]
pub use train::{
    CHECKPOINT, CheckTreeParamsError, ClusterMethod, ClusterParams, KeptError, LabelRepresentation, LabelVectors,
    LinearParams, Loss, Negatives, PART_KIND, PartsError, Preset, StoredTrees, TrainError, TrainInput, TrainedPart,
    TreeEvent, TreeMemory, TreeParams, UnknownPreset, Unseen, checkpoint_key, part_key, train_out_of_core, train_part,
    train_tree, train_trees,
};
/// Who follows training.
#[cfg(feature = "train")]
pub use xc_buffer::{Observer, Silent};
/// The crate of devices and their errors in signatures here.
#[cfg(feature = "cuda")]
pub use xc_kernels;
/// The crate of the rows, ranked lists and files in signatures here.
pub use xc_sparse;
