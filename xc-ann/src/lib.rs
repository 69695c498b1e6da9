//! Nearest neighbours and largest inner products.

#![deny(unsafe_code)] // product/ alone may have it

mod best;
mod build;
mod codes;
mod error;
mod graph;
mod index;
mod items;
mod metric;
mod pool;
mod product;
mod prune;
mod search;

pub use error::{BuildError, QueryError};
pub use index::{BuildParams, Graph, Scratch, SearchParams};
pub use metric::Metric;
pub use search::Effort;
