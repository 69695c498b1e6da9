//! MACH: L labels are hashed into the B buckets of R independent repetitions, and decoded from bucket
//! scores.
//!
//! Instead of one classifier over L labels, R small classifiers over B buckets are trained
//! (elsewhere), each with its own hash function. A label's score combines what the R classifiers give
//! its buckets: the labels of a bucket share its score, but hardly any two labels share their buckets
//! in all repetitions.
//!
//! ```text
//!   label      h_0   h_1   h_2          classifier 0   classifier 1   classifier 2
//!   cat         2     0     1           P_0(2) = 0.8   P_1(0) = 0.7   P_2(1) = 0.9     mean 0.80
//!   dog         2     1     0           P_0(2) = 0.8   P_1(1) = 0.1   P_2(0) = 0.0     mean 0.30
//!   cow         1     1     1           P_0(1) = 0.1   P_1(1) = 0.1   P_2(1) = 0.9     mean 0.37
//! ```
//!
//! Memory is R B numbers per query and nothing per label: hashes are computed, and with the prime
//! family the labels of a bucket are too ([`Assignment`]).
//!
//! ```
//! use xc_hash::universal::{Family, FamilyParams};
//! use xc_mach::{Assignment, BucketScores, Decoder, DecodeScratch, Effort};
//!
//! let params = FamilyParams { family: Family::Prime, n_keys: 100_000, n_buckets: 500, seed: 1 };
//! let assignment = Assignment::first(params, 8)?;
//! // Classifiers that are sure of label 4711.
//! let mut scores = vec![0.001f32; 8 * 500];
//! for position in 0..8 {
//!     scores[position * 500 + assignment.bucket(position, 4711) as usize] = 0.5;
//! }
//! let scores = BucketScores::try_new(&scores, 8, 500)?;
//! let (mut scratch, mut best) = (DecodeScratch::default(), Vec::new());
//! let certificate = assignment.decode(&scores, Decoder::Mean, 1, Effort::Exact, &mut scratch, &mut best)?;
//! assert_eq!(best[0].label, 4711);
//! assert!(certificate.exact && certificate.labels_touched < 2_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Speed on one thread of a 2-core machine with AVX-512, L = 50M, B = 20K, R = 32, synthetic scores
//! (`benches/decode_bench.rs`): a full scan takes 0.85 s per query (median 3.5 s). The exact mean
//! decode takes 0.8, 4.0 and 5.1 ms for k = 1, 10 and 100 if the classifiers are sure of 5 labels; 1.2,
//! 5.4 and 19 ms for 20 labels of little mass; and 1.6 s for nearly uniform scores, an attempt followed
//! by a scan. Decoding needs 2 to 14 MB.
//!
//! # When not to use it
//! If one output layer over all labels fits in memory and time: it distinguishes labels that share
//! their buckets. If labels have features or text that a tree could cluster by.
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
