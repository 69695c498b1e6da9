#![doc = include_str!("../README.md")]
//!
//! | module | |
//! |---|---|
//! | [`preset`], [`astra`], [`skipgram`] | kinds of networks: values that go together |
//! | [`network`] | a network of any kind before it is trained, as parameters |
//! | [`kinds`] | kinds of models as values: usual parameters, changed, checked, trained |
//! | [`fit()`], [`mod@fit`] | training from files or memory to a model |
//! | [`learn`] | initial values, the weight of a wide term, and memory of training |
//! | [`blend`], [`mod@calibrate`] | fits of several models as one, and of probabilities |
//! | [`merge`] | parts of a model that were trained apart |
//! | [`settings`], [`tune`] | the settings of training as a table; the search for good ones |
//! | `plot` (feature `plot`) | pictures of lines over a common axis, as SVG |

#![deny(unsafe_code)]

pub mod astra;
pub mod blend;
pub mod calibrate;
pub mod fit;
pub mod learn;
pub mod merge;
pub mod network;
#[cfg(feature = "plot")]
pub mod plot;
pub mod preset;
pub mod settings;
pub mod skipgram;
pub mod tune;

pub use fit::{fit, kinds};
/// The crates of the types in signatures here.
pub use {xc_ann, xc_hash, xc_mach, xc_metrics, xc_model, xc_nn, xc_sparse, xc_tree};
