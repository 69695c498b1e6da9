//! Label trees: clustering, linear rankers, and beam search with masked sparse chunk multiplication.
//!
//! A query walks down a tree of clusters. At each level the children of the best clusters are scored, all children of
//! one cluster together (see [`xc_sparse::chunked`]), and the `beam` best go on; the nodes of the last level are
//! the labels [etter2022mscm].
//!
//! | here is | give me | by |
//! |---|---|---|
//! | the parts of trees | a model | [`TreeModel::from_parts`] |
//! | a model folder | a model | [`TreeModel::open`] |
//! | a query | its best labels | [`TreeModel::predict_one`] |
//! | many queries | their best labels | [`TreeModel::predict_batch`] |
//! | a query and some labels | their scores | [`TreeModel::restrict`], [`TreeModel::predict_restricted`] |

mod batch;
mod beam;
mod file;
mod model;
pub mod omikuji;
mod parts;
pub mod pecos;
mod post;
mod restrict;
mod select;
mod topology;
mod untrained;

pub use beam::{PredictParams, PredictScratch};
pub use file::{Check, KIND, OpenTreeError};
pub use model::{BuildError, ModelInfo, Tree, TreeModel};
pub use parts::TreeParts;
pub use post::{PostProcessor, UnknownPostProcessor};
pub use restrict::{Restriction, UnknownLabel};
pub use topology::{Topology, TopologyError};
pub use untrained::{Untrained, UntrainedError, UntrainedParams};
