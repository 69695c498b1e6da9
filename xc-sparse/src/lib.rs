#![doc = include_str!("../README.md")]
//!
//! # Modules
//!
//! | module | what it is for |
//! |---|---|
//! | [`rows`] | features, labels and tokens of many instances; grouping, sorting, unit length |
//! | [`rank`] | the order of a ranking, the k best, lists of many queries |
//! | [`chunked`] | weights of a tree's level, siblings side by side |
//! | [`uniform`] | weights of labels connected with few inputs, and products in both directions |
//!
//! # References
//! `[etter2022mscm]` for the chunks, `[schultheis2023uniform]` for the uniform layer; each module
//! documents its differences.

#![deny(unsafe_code)] // kernels, buffers and constructors without checks alone may have it

pub mod chunked;
pub mod rank;
pub mod rows;
pub mod uniform;

pub use rows::{
    CscMatrix, CscView, CsrMatrix, CsrView, Dataset, LabelRows, LabelRowsError, MatrixError, SparseRow, SparseRowError,
};
