#![doc = include_str!("../README.md")]
//!
//! From a `.npy` file (`examples/neighbours.rs`):
//!
//! ```
//! use xc_ann::{BuildParams, Index, Metric, Silent, SearchScratch};
//! use xc_data::read_npy;
//!
//! # use xc_data::write_npy;
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("rows.npy");
//! # let values: Vec<f32> = (0..1000 * 8).map(|i| ((i * 7919) % 1009) as f32).collect();
//! # write_npy(&mut std::fs::File::create(&path)?, 1000, 8, &values)?;
//! let rows = read_npy(&path, &Default::default())?;
//! let query = rows.view().row(42).to_vec();
//! let index = Index::build(rows.values, rows.columns, &BuildParams::new(Metric::L2), &Silent)?;
//! let found = index.nearest(&query, 10, &mut SearchScratch::default())?;
//! assert_eq!((found.len(), found[0].label), (10, 42));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The same rows and settings give the same bytes and answers at any number of threads, on every
//! instruction set, for a query alone or among others.
//!
//! # Metrics
//! [`Metric`]: Euclidean distance, cosine, and inner products of rows of any length, searched directly
//! and not through distances. Codes have a scale for each row, so that long rows are not clipped.
//!
//! # Search width
//! The slack of a [`Scope::Beam`] is the share by which a vertex may be further off than the last answer and still be
//! visited. In addition to the graph there may be cells ([`BuildParams::cells`]) of rows near each
//! other; a search may compare some of them instead ([`Scope::Cells`]). [`Graph::fit`] finds the smallest width
//! and number of cells that reach a recall, and which of the two compares less; a build does so with
//! vectors between rows (under inner products with rows), for a recall of 0.95 among ten answers or fewer. Fitting with real queries is more accurate, and under
//! inner products [`Graph::build_for`] also makes edges for them, since queries may be distributed
//! differently from rows.
//!
//! # Rows that change
//! [`Graph::insert`], [`Graph::delete`], and [`Graph::refresh`] for rows that all moved a little, as
//! the weights of a classifier do between two epochs; [`Graph::recode`] for the codes of some rows that
//! have just moved. A graph can be cloned at no cost: threads can search the old one while a clone is
//! changed.
//!
//! # Sparse rows
//! [`InvertedIndex`] has lists of rows by column. Its answers are exact.
//!
//! # Main types
//!
//! | type | what it is |
//! |---|---|
//! | [`Index`] | rows and a graph over them |
//! | [`Graph`] | the graph alone; rows stay with the caller |
//! | [`BuildParams`], [`SearchParams`], [`Scope`] | settings |
//! | [`SearchScratch`] | buffers of a searching thread |
//! | [`Lengths`] | which answers of inner products are proven |
//! | [`kmeans::Codebook`] | k-means words, which define the cells |
//! | [`Filter`] | which rows may be answers |
//! | [`InvertedIndex`], [`InvertedScratch`] | an index of sparse rows, and the buffers of a thread that searches it |
//! | [`Refresh`], [`Refreshed`] | how a graph is updated to rows that moved |
//! | [`exact`](fn@exact), [`recall`] | exact answers by comparing all rows, and the share of them that was found |
//!
//! # References
//! `[subramanya2019diskann]` (graph and pruning), `[manohar2024parlayann]` (batches),
//! `[aguerrebere2023similarity]` (codes with re-ranking), `[aljazzazi2025distance]` (when to stop),
//! `[chen2024roargraph]` (edges for queries distributed differently from rows), `[jegou2011product]`
//! (cells), `[turtle1995query]` (lists that need not be read).

#![deny(unsafe_code)] // product/ and cuda alone may have it

mod code;
#[cfg(feature = "cuda")]
pub mod cuda;
mod error;
mod graph;
mod index;
mod inverted;
mod metric;
mod observe;
mod params;
mod search;

pub use code::kmeans;
#[cfg(feature = "store")]
pub use error::OpenGraphError;
pub use error::{BuildError, QueryError};
#[cfg(feature = "store")]
pub use graph::file::KIND;
pub use graph::refresh_policy::{Refresh, Refreshed};
pub use graph::state::{GraphState, GraphStateError};
pub use graph::whole::{Graph, GraphStats};
pub use index::Index;
#[cfg(feature = "store")]
pub use inverted::INVERTED_KIND;
pub use inverted::{InvertedIndex, InvertedScratch, SparseEffort};
pub use metric::Metric;
pub use observe::BuildEvent;
pub use params::{BuildParams, Fitted, Scope, SearchParams};
pub use search::beam::SearchStats;
pub use search::best::rerank_candidates;
pub use search::exact::{exact, recall};
pub use search::filter::Filter;
pub use search::norm_bounds::Lengths;
pub use search::query::SearchScratch;
/// Who follows a build.
pub use xc_buffer::{Observer, Silent};
/// The crate of the rows, ranked lists and files in signatures here.
pub use xc_sparse;
