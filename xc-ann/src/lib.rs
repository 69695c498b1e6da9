//! Nearest neighbours and largest inner products: a graph over 8-bit codes of the rows, searched best
//! first, and answers ranked by the exact rows.
//!
//! ```text
//!   rows ─▶ codes, 8 bits a coordinate ─▶ graph: up to 32 edges a row
//!   query ─▶ code ─▶ some hundred comparisons along the edges ─▶ 1.1 k rows compared exactly ─▶ k best
//!              └───▶ all codes of the nearest cells, where that is faster ───▲
//! ```
//!
//! ```
//! use xc_ann::{BuildParams, Index, Metric, NoObserver, Scratch};
//!
//! let rows: Vec<f32> = (0..1000 * 8).map(|i| ((i * 7919) % 1009) as f32).collect();
//! let query = rows[8 * 42..8 * 43].to_vec();
//! let index = Index::build(rows, 8, &BuildParams::new(Metric::L2), &NoObserver)?;
//! let found = index.nearest(&query, 5, &mut Scratch::default())?;
//! assert_eq!((found[0].label, found[0].score), (42, 0.0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! From a `.npy` file: `examples/neighbours.rs`.
//!
//! The same rows and settings give the same bytes and answers at any number of threads, on every
//! instruction set, for a query alone or among others.
//!
//! # What is compared
//! [`Metric`]: Euclidean distance, cosine, and inner products of rows of any length, without a
//! detour over distances. Codes have a scale for each row, so that long rows are not cut off.
//!
//! # How far to look
//! [`Scope::width`] is the share by which a vertex may be further off than the last answer and
//! still be looked at. Beside the graph there may be cells ([`BuildParams::cells`]), whose rows are near to each
//! other; [`Scope::cells`] of them are compared instead. [`Graph::fit`] finds the least that reaches a recall, and
//! which of both compares less; a build does so with
//! vectors between rows, for a recall of 0.95. With queries of one's own it is closer to the truth, and
//! under inner products [`Graph::build_for`] makes edges for them too: queries may be another kind of
//! vectors than rows.
//!
//! # Rows that change
//! [`Graph::insert`], [`Graph::delete`], and [`Graph::refresh`] for rows that all moved a little, as
//! the weights of a classifier do between two epochs; [`Graph::recode`] for codes of some that moved just now. A graph can be cloned at no cost: threads go on
//! with the old one while a clone is changed.
//!
//! # Sparse rows
//! [`InvertedIndex`] has lists of rows by column. Its answers are exact.
//!
//! # When not to use it
//! For a thousand rows an exact scan ([`exact`]) will do. For candidates whose
//! probability has to be known, and rows that change all the time, there is xc-lsh.
//!
//! # Main types
//!
//! | type | what it is |
//! |---|---|
//! | [`Index`] | rows and a graph over them |
//! | [`Graph`] | the graph alone; rows stay with the caller |
//! | [`BuildParams`], [`SearchParams`], [`Scope`] | settings |
//! | [`Scratch`] | what a thread searches with |
//! | [`Lengths`] | which answers of inner products are proven |
//! | [`kmeans::Codebook`] | what makes cells |
//! | [`Filter`] | which rows may be answers |
//! | [`InvertedIndex`], [`InvertedScratch`] | sparse rows, and what a thread searches them with |
//! | [`Refresh`], [`Refreshed`] | how a graph follows its rows |
//! | [`exact`](fn@exact), [`recall`] | all rows compared, and what was found of that |
//!
//! # References
//! `[subramanya2019diskann]` (graph and pruning), `[manohar2024parlayann]` (batches),
//! `[aguerrebere2023similarity]` (codes with re-ranking), `[aljazzazi2025distance]` (when to stop),
//! `[chen2024roargraph]` (edges for queries of another kind than rows), `[jegou2011product]` (cells), `[turtle1995query]` (lists that need
//! not be read).

#![deny(unsafe_code)] // product/ alone may have it

mod asked;
mod attach;
mod best;
mod build;
mod cells;
mod change;
mod choose;
mod codes;
mod edges;
mod error;
mod exact;
#[cfg(feature = "store")]
mod file;
mod filter;
mod fit;
mod graph;
mod index;
mod inverted;
mod items;
mod judge;
pub mod kmeans;
mod lengths;
mod metric;
mod observe;
mod params;
mod parts;
mod pool;
mod product;
mod prune;
mod query;
mod search;
mod state;
mod visited;

pub use best::spared;
pub use change::{Refresh, Refreshed};
#[cfg(feature = "store")]
pub use error::OpenGraphError;
pub use error::{BuildError, QueryError};
pub use exact::{exact, recall};
#[cfg(feature = "store")]
pub use file::KIND;
pub use filter::Filter;
pub use graph::{Graph, GraphStats};
pub use index::Index;
#[cfg(feature = "store")]
pub use inverted::INVERTED_KIND;
pub use inverted::{InvertedIndex, InvertedScratch, SparseEffort};
pub use lengths::Lengths;
pub use metric::Metric;
pub use observe::{Event, NoObserver, Observer};
pub use params::{BuildParams, Fitted, Scope, SearchParams};
pub use query::Scratch;
pub use search::Effort;
pub use state::{GraphState, GraphStateError};
