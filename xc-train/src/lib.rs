#![cfg_attr(feature = "fit", doc = include_str!("../README.md"))]
//!
//! | module | |
//! |---|---|
//! | [`classifier`], [`astra`], [`mach`], [`skipgram`] | kinds of models, and presets of their settings |
//! | [`model`] | any model: open, ask, change, convert, merge |
//! | `network` (feature `train`) | a network of any kind before it is trained, as parameters |
//! | [`blend`], [`calibrate`] | several models as one; scores as probabilities |
//! | `fit` (feature `fit`) | training from files or memory to a model folder |
//! | `plot` (feature `plot`) | pictures of lines over a common axis, as SVG |
//! | [`tokens`] | texts as tokens and as vectors; tokenizers (feature `transformer`) |
//! | `settings`, `tune` (feature `train`) | the settings of training as a table; the search for good ones |

#![deny(unsafe_code)]

pub mod astra;
pub mod blend;
pub mod calibrate;
pub mod classifier;
#[cfg(feature = "fit")]
pub mod fit;
pub mod mach;
pub mod message;
pub mod model;
#[cfg(feature = "train")]
pub mod network;
#[cfg(feature = "plot")]
pub mod plot;
#[cfg(feature = "train")]
pub mod settings;
pub mod skipgram;
pub mod tokens;
#[cfg(feature = "train")]
pub mod tune;

#[cfg(feature = "fit")]
pub use fit::fit;
pub use model::Model;
/// The crates of the types in signatures here.
pub use {xc_ann, xc_hash, xc_mach, xc_metrics, xc_nn, xc_sparse, xc_tree};
