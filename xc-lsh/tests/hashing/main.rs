//! Hash functions, tables over them, and what they promise.

mod contract;
mod draws;
mod examples;
mod norm_bands;
mod simhash;
mod sparse;
#[cfg(feature = "store")]
mod store;
mod tables;
mod upkeep;
mod wta;
