#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]

#[cfg(feature = "train")]
mod fit;
mod trees;

#[cfg(feature = "train")]
pub use fit::{BoostParams, fit};
pub use trees::{BoostedTree, BoostedTrees, LEAVES, LEVELS, SPLITS, TreesError};
