//! Sparse rows, the products that score labels with them, ranked lists, and their file formats: the
//! base crate of xc.
//!
//! Data files are read into rows, a product of a row and a model's weights gives scores, and the best
//! scores form a ranked list. The model crates share these pieces, and each adds its own way of
//! finding the labels worth scoring.
//!
//! ```text
//!   data file ─▶ io ─▶ rows ─▶ chunked │ uniform │ dense ─▶ scores ─▶ rank ─▶ best labels
//!                                 ▲  the products, compiled by simd for each instruction set
//!   model folder ─▶ store ─▶ buffer (mapped), dtype
//! ```
//!
//! ```
//! use xc_sparse::chunked::{Choice, ChunkRows, ChunkedLevel, ProductScratch, QueryScratch, SlotMap, margins};
//! use xc_sparse::rank::{Scored, TopK};
//! use xc_sparse::{DType, SparseRow};
//!
//! // Three labels below one parent: entries (feature, label, weight), and a bias each.
//! let weights = vec![(2, 0, 0.5), (2, 2, -1.0), (9, 1, 2.0)];
//! let parent = ChunkRows::from_entries(3, weights, vec![0.0, -1.0, 0.0])?;
//! // How often each of 10 features occurs: where their rows will be looked for.
//! let map = SlotMap::new(&[0, 0, 2, 0, 0, 0, 0, 0, 0, 1]);
//! let level = ChunkedLevel::pack(&[parent], &map, DType::F32)?;
//!
//! // A query with features 2 and 9, and the scores of the three.
//! let (mut query, mut scratch, mut scores) = (QueryScratch::default(), ProductScratch::default(), Vec::new());
//! let query = query.prepare(SparseRow::try_new(&[2, 9], &[1.0, 2.0])?, &map);
//! margins(&level.view(), &query, &[0], Choice::Auto, &mut scratch, &mut scores);
//! assert_eq!(scores, [0.5, 3.0, -1.0]);
//!
//! let mut best = TopK::new(2);
//! (0..).zip(&scores).for_each(|(label, &score)| best.push(Scored { label, score }));
//! assert_eq!(best.sorted(), [Scored { label: 1, score: 3.0 }, Scored { label: 0, score: 0.5 }]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # When not to use it
//! For general sparse algebra use `sprs`; for decompositions, `faer`. Weights that are mostly nonzero
//! belong in [`dense`]: a sparse product reads an index with each weight.
//!
//! # Modules
//!
//! | module | what it is for | feature |
//! |---|---|---|
//! | [`rows`] | features, labels and dense vectors of many instances; grouping, sorting, unit length | |
//! | [`rank`] | the order of a ranking, the k best, lists of many queries | |
//! | [`chunked`] | weights of a tree's level, siblings side by side | |
//! | [`uniform`] | weights of labels connected with few inputs, and products in both directions | |
//! | [`ranker_weights`] | a sparse row of weights per label, and the logits of listed labels | |
//! | [`dense`] | the blocked product of dense matrices | |
//! | [`sums`] | the order of sums over labels or instances, however the work is divided | |
//! | [`simd`] | which instruction set runs, and loops compiled for each | |
//! | [`buffer`], [`dtype`] | arrays in memory or in a mapped file, and their number types | |
//! | [`atomic`] | files and folders that appear under their name only when complete | `store` |
//! | [`store`] | a model on disk: a folder of named arrays | `store` |
//! | [`io`] | XC text, svmlight, fastText, JSONL, CSV and TSV, npy and npz, vectors (fvecs, fbin, ...), predictions | `io` |
//!
//! # Features
//! `store` and `io` (which needs `store`) are on by default. Without them no file is opened.
//!
//! # References
//! `[etter2022mscm]` for the chunks, `[schultheis2023uniform]` for the uniform layer; each module
//! documents its differences.

#![deny(unsafe_code)] // kernels, buffers and constructors without checks alone may have it

#[cfg(feature = "store")]
pub mod atomic;
pub mod buffer;
mod cancel;
pub mod chunked;
pub mod dense;
pub mod dtype;
#[cfg(feature = "io")]
pub mod io;
pub mod parallel;
mod part;
pub mod rank;
pub mod ranker_weights;
pub mod rows;
pub mod simd;
#[cfg(feature = "store")]
pub mod store;
pub mod sums;
pub mod uniform;

pub use buffer::{Buffer, FloatBuffer};
pub use cancel::Cancel;
pub use dtype::DType;
pub use part::{Part, PartError};
pub use rows::{
    CscMatrix, CscView, CsrMatrix, CsrView, Dataset, DenseMatrix, DenseRows, LabelRows, LabelRowsError, MatrixError,
    SparseRow, SparseRowError,
};
pub use simd::{Isa, Loop, vectorised, vectorised_loop, vectorised_loop_on};
