//! Sparse rows, the products that score labels with them, and ranked lists. It takes whoever multiplies sparse rows.
//!
//! A product of a row and a model's weights gives scores, and the best scores form a ranked list. The model crates share these
//! pieces, and each adds its own way of finding the labels worth scoring.
//!
//! ```text
//!   data file ─▶ xc-data ─▶ rows ─▶ chunked │ uniform ─▶ scores ─▶ rank ─▶ best labels
//!                                      ▲
//!   model folder ─▶ xc-store ─▶ buffers, mapped
//! ```
//!
//! ```
//! use xc_sparse::chunked::{Choice, ChunkRows, ChunkedLevel, ProductScratch, QueryScratch, SlotMap, margins};
//! use xc_sparse::rank::{Scored, TopK};
//! use xc_buffer::DType;
//! use xc_sparse::SparseRow;
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
//! belong in `xc_dense`: a sparse product reads an index with each weight.
//!
//! # Modules
//!
//! | module | what it is for |
//! |---|---|
//! | [`rows`] | features, labels and tokens of many instances; grouping, sorting, unit length |
//! | [`rank`] | the order of a ranking, the k best, lists of many queries |
//! | [`chunked`] | weights of a tree's level, siblings side by side |
//! | [`uniform`] | weights of labels connected with few inputs, and products in both directions |
//! | [`ranker_weights`] | a sparse row of weights per label, and the logits of listed labels |
//!
//! # Features
//! `store`, on by default: matrices and weights on disk. Without it no file is opened.
//!
//! # References
//! `[etter2022mscm]` for the chunks, `[schultheis2023uniform]` for the uniform layer; each module
//! documents its differences.

#![deny(unsafe_code)] // kernels, buffers and constructors without checks alone may have it

pub mod chunked;
pub mod rank;
pub mod ranker_weights;
pub mod rows;
pub mod uniform;

pub use rows::{
    CscMatrix, CscView, CsrMatrix, CsrView, Dataset, LabelRows, LabelRowsError, MatrixError, SparseRow, SparseRowError,
};
