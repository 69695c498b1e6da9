//! Hash functions, and text to weighted features.
//!
//! A text becomes a sparse row in five steps, all defined by one value that training stores and
//! serving loads:
//!
//! ```text
//!   "The Cat sat"  ─▶ the cat sat ─▶ the │ cat │ sat ─▶ 17 │ 3 │ 12 ─▶ counts ─▶ 3: 0.61  12: 0.52  17: 0.59
//!                  normalise       words, n-grams     vocabulary or hash       tf-idf, norm
//! ```
//!
//! A term's feature is its rank in a vocabulary learned from training texts, or its hash (no memory,
//! but collisions). Several kinds of terms can be combined, each with its own range of features.
//!
//! ```
//! use xc_hash::text::{Block, Pipeline, PipelineParams};
//!
//! let train = ["rules of the transport committee", "the committee on fisheries", "fisheries and transport"];
//! // Words known from two texts or more, then word pairs hashed to 1024 slots.
//! let blocks = vec![Block::words(1, 1), Block::words(2, 2).hashed(1024)];
//! let pipeline = Pipeline::fit(PipelineParams { blocks, ..PipelineParams::default() }, &train)?;
//! let rows = pipeline.transform_batch(&train);
//! assert_eq!((rows.iter().len(), rows.n_features), (3, 4 + 1024));
//!
//! // The model keeps `to_parts()`; what opens them again makes the same features, bit for bit.
//! let served = Pipeline::from_parts(pipeline.to_parts())?;
//! let mut scratch = served.scratch();
//! let (features, values) = served.transform_one(train[0], &mut scratch);
//! assert_eq!(rows.iter().next(), Some((features, values)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # When not to use it
//! If word order, or meaning beyond shared words, matters, an encoder does better. If the features
//! exist already, only [`text::RowWeights`] (tf-idf and norms on sparse rows) is of use. Text without
//! spaces between words (Chinese, Thai) needs character n-grams ([`text::Grams::Chars`]), since a
//! whole clause is one word here.
//!
//! # Main types
//!
//! | type | what it is |
//! |---|---|
//! | [`text::PipelineParams`] | what becomes a feature and how it is weighted |
//! | [`text::Pipeline`] | the fitted pipeline: texts in, rows out |
//! | [`text::Block`] | one kind of terms ([`text::Grams`]) and their slots ([`text::Slots`]) |
//! | [`text::Vocabulary`] | terms and their ids |
//! | [`text::RowWeights`] | tf-idf and norms ([`text::Weighting`]) for rows of counts |
//! | [`text::Featurizer`] | what a model stores: a pipeline or row weights, or what makes tokens or vectors of texts |
//! | [`murmur3_32`] | the hash of bytes |
//! | [`universal::FamilyParams`] | parameters of a function from keys to buckets, of one of four 2-universal families |
//! | [`universal::BucketHash`] | the trait of such functions |
//! | [`stream::Stream`], [`stream::Order`] | random numbers and permutations named by a seed, a purpose and a path |
//!
//! Speed on one core of a shared 2-core Zen 4 machine, 213 MB of English legal text: word unigrams
//! are fitted at 105 MB/s and transformed at 83, hashed unigrams with idf at 74 and 61, uni- and
//! bigrams at 36 and 34 (`benches/time_a_file.rs`).
//!
//! # References
//! Feature hashing: `[weinberger2009hashing]`. The formats and rules follow scikit-learn 1.9.1 and are
//! tested against rows frozen from it; [`text`] states the rules and the differences.

#![forbid(unsafe_code)]

pub mod murmur3;
pub mod stream;
#[cfg(feature = "text")]
pub mod text;
pub mod universal;

pub use murmur3::murmur3_32;
