//! The graph: its edges, how it is built and changed, judged and stored.

pub(crate) mod build;
pub(crate) mod change;
pub(crate) mod choose;
pub(crate) mod connect;
pub(crate) mod drift_check;
pub(crate) mod edges;
#[cfg(feature = "store")]
pub(crate) mod file;
pub(crate) mod prune;
pub(crate) mod query_edges;
pub(crate) mod refresh_policy;
pub(crate) mod state;
pub(crate) mod whole;
