#![doc = include_str!("../README.md")]
//!
//! | module | |
//! |---|---|
//! | [`preset`], [`astra`], [`skipgram`] | kinds of networks: values that go together |
//! | [`network`] | a network of any kind before it is trained, as parameters |
//! | [`kinds`] | kinds of models as values: usual parameters, changed, checked, trained |
//! | [`fit`] | parts of a training run: instances of rows in memory, the run, who watches, where the model goes |
//! | [`learn`] | initial values, the weight of a wide term, and memory of training |
//! | [`blend`], [`mod@calibrate`] | fits of several models as one, and of probabilities |
//! | [`names`] | labels found by their own texts |
//! | [`merge`] | parts of a model that were trained apart |

#![deny(unsafe_code)]

pub mod astra;
pub mod blend;
pub mod calibrate;
pub mod fit;
pub mod learn;
pub mod merge;
pub mod names;
pub mod network;
pub mod preset;
pub mod skipgram;

pub use fit::kinds;
/// The crates of the types in signatures here.
pub use {xc_ann, xc_hash, xc_mach, xc_metrics, xc_model, xc_nn, xc_sparse, xc_tree};
