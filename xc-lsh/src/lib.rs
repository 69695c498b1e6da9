#![doc = include_str!("../README.md")]
//!
//! Keys are the same on every instruction set, at any number of threads, and for a row alone or among
//! others.
//!
//! # Which family
//!
//! | family | rows | similar means | a code is |
//! |---|---|---|---|
//! | [`SimHash`] | dense or sparse vectors | small angle | the side of a random hyperplane |
//! | [`Wta`] | dense vectors | coordinates in a similar order | the position of the largest of m coordinates |
//! | [`Dwta`] | sparse rows | the same features, in a similar order | the position of a bin's largest feature |
//! | [`MinHash`] | sets | large common share | bits of the least element of a random order |
//!
//! [`FamilyParams::build`] draws any of them from its parameters; each is a [`Family`].
//!
//! # Main types
//!
//! | type | what it is |
//! |---|---|
//! | [`FamilyParams`], [`FamilyKind`] | the choice of functions, as data |
//! | [`Family`] | rows to keys, probability of a code |
//! | [`Keys`] | keys of many rows |
//! | [`Probes`] | the keys that a row nearly had |
//! | [`Tables`] | items by key: queries, updates |
//! | [`NormRanges`](norm_bands::NormRanges) | largest inner products instead of cosines |
//! | [`Upkeep`] | which items are rehashed, and when |
//! | [`TableSizing`] | how many codes, and how much memory |
//! | [`theory`] | probabilities of keys and tables |
//!
//! # References
//! `[charikar2002similarity]`, `[yagnik2011power]`, `[chen2018densified]`,
//! `[broder1997resemblance]`; each module documents its differences.

#![deny(unsafe_code)] // product/ and cuda alone may have it

mod borrow;
mod build;
#[cfg(feature = "cuda")]
pub mod cuda;
pub mod dwta;
mod family;
mod keys;
pub mod minhash;
pub mod norm_bands;
mod params;
pub mod probe;
mod product;
mod scratch;
pub mod simhash;
mod sizing;
pub mod tables;
pub mod theory;
pub mod upkeep;
pub mod wta;

pub use dwta::Dwta;
pub use family::{Alternative, Family, HashError};
pub use keys::Keys;
pub use minhash::MinHash;
pub use params::{FamilyKind, FamilyParams, FamilyParamsError, Minima, Projection};
pub use probe::Probes;
pub use scratch::KeyScratch;
pub use simhash::SimHash;
pub use sizing::{TableSizing, TableSizingError};
pub use tables::Tables;
pub use upkeep::Upkeep;
pub use wta::Wta;
/// The crate of the rows and files in signatures here.
pub use xc_sparse;
