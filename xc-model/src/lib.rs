#![doc = include_str!("../README.md")]
//!
//! ```text
//!   text, counts ──▶ pipeline ──▶ features, vectors ──▶ one kind of model ──▶ best labels, without the excluded ones
//! ```
//!
//! A [`Model`] can be shared by any number of threads; each has its own [`Scratch`] and [`Answer`].
//! Batches are divided among the threads of the rayon pool that the caller is in (`pool.install(|| ...)`),
//! or else of the global one. A single query outside a pool is answered by the calling thread alone, and
//! starts no pool.
//!
//! | module | |
//! |---|---|
//! | [`classifier`], [`mach`], [`label_texts`], [`skipgram`] | kinds of models, beside the trees of `xc-tree` |
//! | [`blend`], [`calibrate`] | several models as one; scores as probabilities |
//! | [`Kind`], [`Answering`], [`NetworkModel`] | custom kinds |
//! | [`explain`] | why a label got its score |
//! | `requests` (feature `requests`) | lines of JSON, text or features as queries, and their answers |
//! | [`tokens`] | texts as tokens and as vectors; tokenizers (feature `transformer`) |
//! | [`training_rows`] | which rows a model was trained on |
//!
//! # When not to use it
//! To train: `xc-train`. To serve trees alone: [`xc_tree::TreeModel`] needs nothing of this crate.

#![deny(unsafe_code)]

pub mod blend;
pub mod calibrate;
mod calibrated;
#[cfg(feature = "convert")]
mod change;
pub mod classifier;
#[cfg(feature = "convert")]
mod convert;
#[cfg(feature = "cuda")]
mod device;
pub mod explain;
mod explained;
mod features;
mod index;
#[cfg(feature = "data")]
mod input;
mod inspect;
mod kind;
mod kinds;
pub mod label_texts;
pub mod mach;
pub mod message;
mod model;
mod names;
mod network;
mod open;
mod open_error;
mod query;
#[cfg(feature = "requests")]
pub mod requests;
mod rest;
mod save;
mod scratch;
pub mod skipgram;
pub mod tokens;
pub mod training_rows;

#[cfg(feature = "convert")]
pub use change::{ChangeError, Changed, Changes};
#[cfg(feature = "convert")]
pub use convert::{ConvertError, FOREIGN_FORMATS, ImportOptions, import};
#[cfg(feature = "cuda")]
pub use device::DeviceError;
pub use explained::largest_parts;
pub use index::{IndexError, IndexFit, IndexWarning, label_index_params};
#[cfg(feature = "data")]
pub use input::{read_form, write_form};
pub use inspect::inspected;
pub use kind::{
    Answering, Ask, Cell, Description, InfoTable, Kind, ModelShape, OpenKind, OpenOptions, Opened, Told, UseIndex,
};
pub use kinds::blend::{MAX_MEMBERS, MembersError, members, write_blend};
pub use model::Model;
#[cfg(feature = "data")]
pub use names::dictionary;
pub use network::{NetworkModel, NetworkScratch};
pub use open::{open_container, tables};
pub use open_error::OpenModelError;
pub use query::{
    Answer, Answers, BatchError, Candidates, Excluded, QueryError, QueryOptions, ScoreOptions, SearchOptions,
    WrongAnswer,
};
pub use save::Extras;
pub use scratch::Scratch;
pub use tokens::read_pipeline;
pub use training_rows::{TrainingRows, TrainingRowsError};
pub use xc_sparse::rows::{InputKind, OwnedRows, Row, Rows, Texts};
pub use xc_tree::text::{PIPELINE_PREFIX, StoredPipelineError, write_pipeline};
/// The crates of the types in signatures here.
pub use {xc_ann, xc_hash, xc_mach, xc_nn, xc_sparse, xc_tree};

/// The standard kinds.
fn standard() -> &'static [kind::Kind] {
    &kinds::STANDARD
}
