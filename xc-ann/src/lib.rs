//! Nearest neighbours and largest inner products.

#![deny(unsafe_code)] // product/ alone may have it

mod attach;
mod best;
mod build;
mod change;
mod codes;
mod error;
mod exact;
#[cfg(feature = "store")]
mod file;
mod filter;
mod fit;
mod graph;
mod index;
mod items;
mod metric;
mod pool;
mod product;
mod prune;
mod query;
mod search;

pub use change::{Refresh, Refreshed};
pub use error::{BuildError, QueryError};
pub use exact::{exact, recall};
#[cfg(feature = "store")]
pub use file::{KIND, OpenGraphError};
pub use filter::Filter;
pub use fit::Fitted;
pub use index::{BuildParams, Graph, GraphStats, Observer, Quiet};
pub use metric::Metric;
pub use query::{Scratch, SearchParams};
pub use search::Effort;
