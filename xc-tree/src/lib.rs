//! Label trees: training, storage and search.
//!
//! A query descends a tree of clusters. At each level the children of the best clusters are scored,
//! all children of one cluster together (see [`xc_sparse::chunked`]), and the `beam` best are kept;
//! the nodes of the last level are the labels (`[etter2022mscm]`).
//!
//! ```text
//!                 root                    query  ──▶ level 0: score 0 1, keep the beam's best
//!            0 ───┴─── 1                         ──▶ level 1: score the children of those
//!         ┌──┴──┐    ┌─┴──┐                      ──▶ last level: nodes are labels; the top k are the answer
//!    label 7    0    4    1
//! ```
//!
//! ```
//! # #[cfg(not(feature = "train"))]
//! # fn main() {}
//! # #[cfg(feature = "train")]
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use xc_sparse::{CsrMatrix, LabelRows, SparseRow};
//! use xc_tree::{TrainInput, TreeModel, TreeParams};
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("my.model");
//!
//! // Four instances; features 0 and 1 speak for label 0, 2 and 3 for label 1. Feature 4 says nothing.
//! let (indptr, indices) = (vec![0, 2, 4, 6, 8], vec![0, 4, 1, 4, 2, 4, 3, 4]);
//! let features = CsrMatrix::try_new((4, 5), indptr, indices, vec![1.0; 8])?;
//! let labels = LabelRows::from_lists([[0], [0], [1], [1]], 2)?;
//!
//! let model = TreeModel::train(&TrainInput::new(features.view(), &labels), &TreeParams::default())?;
//! model.save(&path)?;
//!
//! let model = TreeModel::open(&path)?;
//! let answer = model.predict(SparseRow::try_new(&[0, 1], &[1.0, 1.0])?, 5)?;
//! assert_eq!(answer[0].label, 0);
//! # Ok(())
//! # }
//! ```
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
//!
//! # Features
//! `train`: training. `import`: models of PECOS and omikuji. `text`: a model with its text pipeline
//! in one folder. All are on by default; a program that only predicts can turn them off and not compile
//! them. `cuda` is off: batches on a CUDA device.
//!
//! # When not to use it
//! Below about 100 labels a tree has one level: one ranker per label, and no search. For dense feature
//! vectors use the networks of `xc-train`.

#![deny(unsafe_code, missing_debug_implementations)] // the exceptions are `trusted` and launches of kernels

#[cfg(feature = "cuda")]
mod cuda;
#[cfg(feature = "import")]
pub mod import;
mod model;
mod predict;
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
#[cfg(feature = "train")]
pub use train::rankers;
#[cfg(feature = "train")]
pub use train::{
    CHECKPOINT, CheckTreeParamsError, ClusterMethod, ClusterParams, Event, KeptError, LabelRepresentation,
    LabelVectors, LinearParams, Loss, Negatives, NoObserver, Observer, PART_KIND, PartsError, Preset, StoredTrees,
    TrainError, TrainInput, TrainedPart, TreeMemory, TreeParams, UnknownPreset, Unseen, checkpoint_key, part_key,
    train_out_of_core, train_part, train_tree, train_trees,
};
/// The crate of devices and their errors in signatures here.
#[cfg(feature = "cuda")]
pub use xc_kernels;
/// The crate of the rows, ranked lists and files in signatures here.
pub use xc_sparse;
