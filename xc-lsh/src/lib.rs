//! Locality-sensitive hashing: families of functions under which similar rows tend to share keys.
//!
//! A key consists of K codes, and each of L tables has its own functions. Two rows agree in a code
//! with a probability p that depends on their similarity and is known in closed form; they share the
//! key of a table with probability p^K, and of at least one table with 1 - (1 - p^K)^L.
//!
//! ```text
//!   row ──▶ K L codes ──▶ L keys of 32 bits ──▶ one bucket in each of L tables
//!           Family        Keys                  Tables
//! ```
//!
//! ```
//! use xc_lsh::{Keys, Kind, Scratch, Sizing, theory};
//! use xc_dense::DenseRows;
//!
//! // 10,000 labels in at most 30 tables, for 100 candidates that have nothing to do with a query.
//! let sizing = Sizing::try_new(10_000, 30, 100.0, Kind::Wta { bin: 8 }, 32)?;
//! let family = sizing.params(7).build()?;
//! let n_tables = sizing.n_tables();
//! assert!(sizing.n_codes() > 3 && n_tables <= 30);
//!
//! // Two vectors that are nearly the same, and one that is not.
//! let vector: Vec<f32> = (0..32).map(|i| ((i * 37) % 32) as f32).collect();
//! let close: Vec<f32> = vector.iter().enumerate().map(|(i, v)| v + (i % 3) as f32).collect();
//! let other: Vec<f32> = (0..32).map(|i| ((i * 23 + 5) % 32) as f32).collect();
//! let rows = [vector, close, other].concat();
//! let (mut keys, mut scratch) = (Keys::new(n_tables as usize), Scratch::default());
//! family.keys_dense(DenseRows::new(&rows, 32), &mut keys, &mut scratch)?;
//! let shared = |a: usize, b: usize| keys.row(a).iter().zip(keys.row(b)).filter(|(a, b)| a == b).count();
//! assert!(shared(0, 1) > 5 && shared(0, 2) < 3);
//!
//! // How likely it is that some table finds a vector of correlation 0.95.
//! assert!(theory::inclusion(family.probability(0.95), sizing.n_codes(), n_tables) > 0.9);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
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
//! # When not to use it
//! To find as many of the nearest vectors as possible: a graph finds more of them in less time.
//! Hashing is for data that change constantly, and for candidates whose probability must be known.
//!
//! # Main types
//!
//! | type | what it is |
//! |---|---|
//! | [`FamilyParams`], [`Kind`] | the choice of functions, as data |
//! | [`Family`] | rows to keys, probability of a code |
//! | [`Keys`] | keys of many rows |
//! | [`Probes`] | the keys that a row nearly had |
//! | [`Tables`] | items by key: queries, updates |
//! | [`NormBands`](norm_bands::NormBands) | largest inner products instead of cosines |
//! | [`Upkeep`] | which items are rehashed, and when |
//! | [`Sizing`] | how many codes, and how much memory |
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
pub use params::{FamilyParams, FamilyParamsError, Kind, Minima, Projection};
pub use probe::Probes;
pub use scratch::Scratch;
pub use simhash::SimHash;
pub use sizing::{Sizing, SizingError};
pub use tables::Tables;
pub use upkeep::Upkeep;
pub use wta::Wta;
/// The crate of the rows and files in signatures here.
pub use xc_sparse;
