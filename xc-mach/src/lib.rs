//! MACH: L labels hashed into the B buckets of R independent repetitions, and found again.
//!
//! Instead of one classifier over L labels, R small ones over B buckets each are trained
//! (elsewhere), every one under its own hash function. A label scores by what the R classifiers
//! give to its buckets: the labels of a bucket share its score, but hardly two labels share their
//! buckets in all repetitions.
//!
//! ```text
//!   label      h_0   h_1   h_2          classifier 0   classifier 1   classifier 2
//!   cat         2     0     1           P_0(2) = 0.8   P_1(0) = 0.7   P_2(1) = 0.9     mean 0.80
//!   dog         2     1     0           P_0(2) = 0.8   P_1(1) = 0.1   P_2(0) = 0.0     mean 0.30
//!   cow         1     1     1           P_0(1) = 0.1   P_1(1) = 0.1   P_2(1) = 0.9     mean 0.37
//! ```
//!
//! Memory is R B numbers a query and nothing a label: hashes are computed, and with the family
//! modulo a small prime the labels of a bucket are too ([`Assignment`]).
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
//! Speed on one thread of a 2-core machine with AVX-512, L = 50M, B = 20K, R = 32, made-up scores
//! (`examples/decode_bench.rs`): a full scan takes 0.85 s a query (median 3.5 s); the exact mean
//! decode of classifiers that are sure of 5 labels takes 0.8, 4.0 and 5.1 ms for k = 1, 10 and 100,
//! of 20 labels of little mass 1.2, 5.4 and 19 ms; of nearly uniform scores 1.6 s, a scan after an
//! attempt. Decoding needs 2 to 14 MB.
//!
//! # When not to use it
//! Where one output layer fits the memory and the time: it tells labels apart that share their
//! buckets. Where labels have features or text of their own that a tree could cluster by.
//!
//! # Main types
//!
//! | type | what it is |
//! |---|---|
//! | [`Assignment`] | label to bucket in each repetition, bucket to labels; the decoders are its methods |
//! | [`BucketScores`] | what the classifiers say of one query |
//! | [`Decoder`] | mean, min or median |
//! | [`Effort`], [`Certificate`] | how far a decode goes, and what it proves |
//! | [`Sizing`], [`repetitions_needed`] | what R and B have to be, and what they cost |
//! | [`UsualSize`] | R, B and the family for a number of labels |
//!
//! # References
//! `[medini2019mach]`. *Differs in*: an exact decode that looks at few labels
//! ([`Assignment::decode`]), and buckets that are listed without tables.

#![deny(unsafe_code)] // product/ alone may have it

mod assign;
mod certify;
mod decode;
mod product;
mod sizing;

pub use assign::{AssignError, Assignment, BucketLists, NoListsError};
pub use certify::{expected_indistinguishable_pairs, indistinguishable_labels};
pub use decode::{BucketScores, BucketScoresError, Certificate, DecodeScratch, Decoder, Effort};
pub use sizing::{Sizing, SizingError, UsualSize, repetitions_needed};
