//! Exact scans, graphs and inverted lists.

mod exact;
#[cfg(feature = "store")]
mod graph;
#[cfg(feature = "store")]
mod inverted;
