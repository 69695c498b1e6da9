#![doc = include_str!("../README.md")]
//!
//! Speed on one thread of a 2-core machine with AVX-512, L = 50M, B = 20K, R = 32, synthetic scores
//! (`benches/decode_bench.rs`): a full scan takes 0.85 s per query (median 1.5 s). The exact mean
//! decode takes 0.8, 4.0 and 5.1 ms for k = 1, 10 and 100 if the classifiers are sure of 5 labels; 1.2,
//! 5.4 and 19 ms for 20 labels of little mass; and 1.6 s for nearly uniform scores, an attempt followed
//! by a scan. Decoding needs 2 to 14 MB.
//!
//! # Main types
//!
//! | type | what it is |
//! |---|---|
//! | [`Assignment`] | label to bucket in each repetition, bucket to labels; the decoders are its methods |
//! | [`BucketScores`] | the classifiers' scores for one query |
//! | [`Decoder`] | mean, min or median |
//! | [`Effort`], [`Certificate`] | how far a decode goes, and what it proves |
//! | [`Sizing`], [`repetitions_needed`] | the required R and B, and their cost |
//! | [`UsualSize`] | R, B and the family for a number of labels |
//!
//! # References
//! `[medini2019mach]`. *Differs in*: an exact decode that visits few labels ([`Assignment::decode`]),
//! and buckets whose labels are listed without tables.

#![deny(unsafe_code)] // product/ alone may have it

mod assign;
mod certify;
#[cfg(feature = "cuda")]
mod cuda;
mod decode;
mod product;
mod sizing;

pub use assign::{AssignError, Assignment, BucketLists, NoListsError};
pub use certify::{expected_indistinguishable_pairs, indistinguishable_labels};
#[cfg(feature = "cuda")]
pub use cuda::{DeviceAssignment, DeviceScanError};
pub use decode::{BucketScores, BucketScoresError, Certificate, DecodeScratch, Decoder, Effort};
pub use sizing::{Sizing, SizingError, UsualSize, repetitions_needed};
/// The crate of the families of hash functions in signatures here.
pub use xc_hash;
/// The crate of the ranked lists in signatures here.
pub use xc_sparse;
