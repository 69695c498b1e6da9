//! Terms to feature ids: by vocabulary, by hashing, several blocks side by side.
//!
//! ```text
//!   block 0  word unigrams, vocabulary of 3 terms, 2 slots for other words     slots 0 1 2 | 3 4
//!   block 1  character trigrams hashed to 8 slots                              slots 5 .. 12
//!   shared   4 slots for the other terms of vocabularies without own ones      slots 13 .. 16
//! ```
//!
//! A slot is the feature of the same number, unless slots are folded (`pipeline/fold.rs`).

use super::ngrams::Grams;
use super::vocabulary::Vocabulary;
use crate::murmur3_32;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Most features that all blocks have together: the lowest bit of a 32-bit key carries a sign.
pub(super) const MAX_FEATURES: u64 = 1 << 31;

/// Longest term, in words or characters: a text of n of them then has at most 64 n terms.
pub(super) const MAX_GRAM: u32 = 64;

/// Terms of one kind and where they go.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Block {
    /// Which runs of words or characters are terms.
    pub grams: Grams,
    /// How a term becomes a feature.
    pub slots: Slots,
    /// Factor on the block's weights before the row is normed, from 1e-6 to 1e6.
    #[serde(default = "one")]
    pub scale: f32,
}

fn one() -> f32 {
    1.0
}

/// How a term becomes a feature.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Slots {
    /// The term's rank among the terms kept in training.
    Vocabulary(VocabularyParams),
    /// The term's hash.
    Hashed(HashingParams),
}

/// Which terms of the training texts are kept.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct VocabularyParams {
    /// In at least so many texts. Default: 2 texts: half the terms of 1, at no loss beyond noise on
    /// two sets (`docs/which-model-when.md`, 2026-11-20).
    pub min_df: DfBound,
    /// In at most so many texts, if given.
    pub max_df: Option<DfBound>,
    /// At most so many terms, the most frequent ones (occurrences; equal counts: the smaller term).
    pub max_features: Option<u32>,
    /// Slots of this block for terms that were not kept, by hash. Default 0: such terms go to the
    /// slots that blocks share ([`PipelineParams::oov_slots`](super::PipelineParams::oov_slots)),
    /// or are dropped where there is none.
    pub oov_slots: u32,
}

impl Default for VocabularyParams {
    fn default() -> Self {
        Self { min_df: DfBound::Count(2), max_df: None, max_features: None, oov_slots: 0 }
    }
}

/// A bound on the number of texts that have a term.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DfBound {
    /// So many texts.
    Count(u32),
    /// This share of the texts, from 0 to 1.
    Fraction(f64),
}

impl DfBound {
    /// Whether this is the larger one for any number of texts.
    fn is_above(self, other: DfBound) -> bool {
        match (self, other) {
            (DfBound::Count(a), DfBound::Count(b)) => a > b,
            (DfBound::Fraction(a), DfBound::Fraction(b)) => a > b,
            _ => false,
        }
    }

    /// The smallest df that is not below this bound.
    pub(super) fn at_least(self, n_texts: u64) -> u32 {
        match self {
            DfBound::Count(count) => count,
            DfBound::Fraction(share) => (share * n_texts as f64).ceil() as u32,
        }
    }

    /// The largest df that is not above this bound.
    pub(super) fn at_most(self, n_texts: u64) -> u32 {
        match self {
            DfBound::Count(count) => count,
            DfBound::Fraction(share) => (share * n_texts as f64).floor() as u32,
        }
    }
}

/// Feature hashing as scikit-learn's `HashingVectorizer` and `FeatureHasher` do it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HashingParams {
    /// Number of slots; any number above 0. Default 2^18 (a guess).
    pub n_features: u32,
    /// Seed of murmur3. Default 0, as scikit-learn.
    pub seed: u32,
    /// Whether half of the terms count negatively.
    pub sign: HashSign,
}

impl Default for HashingParams {
    fn default() -> Self {
        Self { n_features: 1 << 18, seed: 0, sign: HashSign::Positive }
    }
}

/// Whether half of the terms count negatively, so that collisions cancel on average.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HashSign {
    /// Every term counts 1. Default: df and tf-idf stay what they mean.
    #[default]
    Positive,
    /// A term counts the sign of its hash. A slot whose terms cancel is absent from the row.
    Alternate,
}

/// The slot of a hash value: |h as signed| mod n.
#[inline]
pub(super) fn slot_of(hash: u32, n_slots: u32) -> u32 {
    // unsigned_abs gives 2^31 for -2^31, which is the case scikit-learn handles apart, to the same
    // effect.
    (hash as i32).unsigned_abs() % n_slots
}

/// Why blocks cannot be used.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum BlockError {
    /// No block at all.
    #[error("there is no block of features; at least one is needed")]
    None,
    /// Lengths of terms out of order, or too large.
    #[error("block {block}: terms of {min} to {max} words or characters; 1 <= min <= max <= {MAX_GRAM} is needed")]
    Grams {
        /// The block, from 0.
        block: usize,
        /// Shortest.
        min: u32,
        /// Longest.
        max: u32,
    },
    /// No slot to hash to.
    #[error("block {block}: n_features is 0; hashing needs at least one slot")]
    NoSlots {
        /// The block, from 0.
        block: usize,
    },
    /// A share of texts outside 0 to 1.
    #[error("block {block}: {name} is the fraction {value}; it must lie between 0 and 1")]
    Fraction {
        /// The block, from 0.
        block: usize,
        /// Which bound.
        name: &'static str,
        /// The value found.
        value: f64,
    },
    /// Bounds that no term can meet.
    #[error("block {block}: min_df is above max_df ({min:?}, {max:?}); no term can be kept")]
    BoundOrder {
        /// The block, from 0.
        block: usize,
        /// The lower bound.
        min: DfBound,
        /// The upper bound.
        max: DfBound,
    },
    /// A factor out of bounds.
    #[error("block {block}: scale is {value}; it must lie between 1e-6 and 1e6")]
    Scale {
        /// The block, from 0.
        block: usize,
        /// The value found.
        value: f32,
    },
    /// Shared slots that no term can reach.
    #[error("oov_slots is {oov_slots}, but no block has a vocabulary without slots of its own to send terms there")]
    OovUnused {
        /// Number of shared slots.
        oov_slots: u32,
    },
    /// Nothing to fold into.
    #[error("fold: n_features is {n_features}; it must lie between 1 and {MAX_FEATURES}")]
    Fold {
        /// The value found.
        n_features: u32,
    },
    /// Too many features.
    #[error("the blocks have {n_features} features together; at most {MAX_FEATURES} are possible")]
    TooWide {
        /// Number of features.
        n_features: u64,
    },
}

impl Block {
    /// Word n-grams of `min` to `max` words in a vocabulary of terms that occur in two texts or
    /// more.
    pub fn words(min: u32, max: u32) -> Self {
        Self { grams: Grams::Words { min, max }, slots: Slots::Vocabulary(VocabularyParams::default()), scale: 1.0 }
    }

    /// The same terms, hashed to `n_features` slots.
    pub fn hashed(self, n_features: u32) -> Self {
        Self { slots: Slots::Hashed(HashingParams { n_features, ..HashingParams::default() }), ..self }
    }

    pub(super) fn check(&self, block: usize) -> Result<(), BlockError> {
        let (min, max) = self.grams.range();
        if min == 0 || max < min || max > MAX_GRAM {
            return Err(BlockError::Grams { block, min, max });
        }
        if !(1e-6..=1e6).contains(&self.scale) {
            return Err(BlockError::Scale { block, value: self.scale });
        }
        match self.slots {
            Slots::Hashed(HashingParams { n_features: 0, .. }) => return Err(BlockError::NoSlots { block }),
            Slots::Hashed(_) => {}
            Slots::Vocabulary(params) => {
                for (name, bound) in [("min_df", Some(params.min_df)), ("max_df", params.max_df)] {
                    if let Some(DfBound::Fraction(value)) = bound
                        && !(0.0..=1.0).contains(&value)
                    {
                        return Err(BlockError::Fraction { block, name, value });
                    }
                }
                if let Some(max) = params.max_df
                    && params.min_df.is_above(max)
                {
                    return Err(BlockError::BoundOrder { block, min: params.min_df, max });
                }
            }
        }
        Ok(())
    }
}

/// A block with what it learned.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FittedBlock {
    pub(super) grams: Grams,
    pub(super) scale: f32,
    /// First slot of the block.
    pub(super) first: u32,
    /// Number of slots of its own.
    pub(super) width: u32,
    pub(super) slots: FittedSlots,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum FittedSlots {
    Vocabulary { vocabulary: Vocabulary, oov: OovSlots },
    Hashed(HashingParams),
}

/// Where the terms outside a vocabulary go: `n` slots from `first` on, none if `n` is 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OovSlots {
    first: u32,
    n: u32,
    /// Blocks that share slots hash differently: a short word and the same characters as n-gram are
    /// two terms.
    seed: u32,
}

impl FittedBlock {
    /// Slot of a term, and whether it counts negatively.
    #[inline]
    pub(super) fn slot(&self, term: &[u8]) -> Option<(u32, bool)> {
        match &self.slots {
            FittedSlots::Vocabulary { vocabulary, oov } => {
                let hash = murmur3_32(term, 0);
                match vocabulary.find(term, hash) {
                    Some(id) => Some((self.first + id, false)),
                    None if oov.n == 0 => None,
                    None => {
                        let hash = if oov.seed == 0 { hash } else { murmur3_32(term, oov.seed) };
                        Some((oov.first + slot_of(hash, oov.n), false))
                    }
                }
            }
            FittedSlots::Hashed(params) => {
                let hash = murmur3_32(term, params.seed);
                let negative = params.sign == HashSign::Alternate && (hash as i32) < 0;
                Some((self.first + slot_of(hash, params.n_features), negative))
            }
        }
    }
}

/// Places the blocks one after another, and `shared` slots for unknown terms after them. Each
/// vocabulary block brings its vocabulary. Returns the number of slots too.
pub(super) fn lay_out(
    learned: Vec<(Block, Option<Vocabulary>)>,
    shared: u32,
) -> Result<(Vec<FittedBlock>, usize), BlockError> {
    let width = |(block, vocabulary): &(Block, Option<Vocabulary>)| match block.slots {
        Slots::Hashed(params) => params.n_features as u64,
        Slots::Vocabulary(params) => vocabulary.as_ref().map_or(0, |v| v.len() as u64) + params.oov_slots as u64,
    };
    let shared_first: u64 = learned.iter().map(width).sum();
    let n_features = shared_first + shared as u64;
    if n_features > MAX_FEATURES {
        return Err(BlockError::TooWide { n_features });
    }
    let mut first = 0;
    let blocks = learned.into_iter().enumerate().map(|(i, learned)| {
        let width = width(&learned) as u32;
        let (block, vocabulary) = learned;
        let slots = match block.slots {
            Slots::Hashed(params) => FittedSlots::Hashed(params),
            Slots::Vocabulary(params) => {
                let vocabulary = vocabulary.unwrap_or_default();
                let oov = if params.oov_slots > 0 {
                    OovSlots { first: first + vocabulary.len() as u32, n: params.oov_slots, seed: 0 }
                } else {
                    OovSlots { first: shared_first as u32, n: shared, seed: i as u32 }
                };
                FittedSlots::Vocabulary { vocabulary, oov }
            }
        };
        let fitted = FittedBlock { grams: block.grams, scale: block.scale, first, width, slots };
        first += width;
        fitted
    });
    Ok((blocks.collect(), n_features as usize))
}
