#![doc = include_str!("../README.md")]
//!
//! | module | |
//! |---|---|
//! | [`fit()`], [`training`] | training by the name of a kind and of its settings |
//! | [`fit_of`] | a kind with its settings as a value, to be trained on data in memory |
//! | [`data`] | files and arrays that are named: read, blended over, calibrated to, embedded |
//! | [`settings`] | every setting of training: a row of a table |
//! | [`training::plan`] | what a run would do: the value of every setting, and where it comes from |
//! | [`tuning`], [`tune`] | the search for good settings, by training runs or of anything that has scores |
//! | `plot` (feature `plot`) | pictures of lines over a common axis, as SVG |

#![deny(unsafe_code)]

pub mod data;
#[cfg(feature = "plot")]
pub mod plot;
pub mod settings;
pub mod training;
pub mod tune;
pub mod tuning;

pub use settings::kinds::{Build, KINDS, rows, tables};
pub use training::{Training, fit, fit_of};
/// The crate of the types in signatures here.
pub use xc_train;
