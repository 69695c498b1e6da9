//! Text to weighted features as one value: fitted in training, stored in the model, and identical
//! when serving.
//!
//! ```text
//!   text ─▶ normalise ─▶ words, characters ─▶ n-grams of each block ─▶ slots ─▶ counts ─▶ weights ─▶ (fold) ─▶ norm ─▶ row
//! ```

mod fit;
mod fold;
mod parts;

pub use fit::{FitPipelineError, FitStreamError, TextSink};
pub use parts::{Featurizer, OpenPipelineError, PartArray, PipelineParts};

use super::Grams;
use super::block::{
    Block, BlockError, FittedBlock, FittedSlots, HashSign, HashingParams, MAX_FEATURES, Slots, VocabularyParams,
    lay_out,
};
use super::ngrams::Chars;
use super::normalise::{Accents, Case, normalise};
use super::tokenise::{TokenRule, Words};
use super::vocabulary::Vocabulary;
use super::weighting::{Idf, Norm, RowWeights, TermWeighting, Tf};
use fold::FoldScratch;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// Features of many texts: row `i` has the entries `indptr[i]..indptr[i + 1]`, features ascending and
/// unique.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FeatureRows {
    /// Width of a row: features are below it.
    pub n_features: usize,
    /// Where each row begins, from 0, and the number of entries.
    pub indptr: Vec<usize>,
    /// The features of the entries, row after row.
    pub indices: Vec<u32>,
    /// The values of the entries.
    pub values: Vec<f32>,
}

impl FeatureRows {
    /// Features and values of each row, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&[u32], &[f32])> {
        self.indptr.windows(2).map(|w| (&self.indices[w[0]..w[1]], &self.values[w[0]..w[1]]))
    }
}

/// What a pipeline does; the default suits most extreme classification of text.
///
/// Default: lower case, words of two characters and more, unigrams that occur in two texts or more,
/// tf-idf ((1 + ln tf) * (ln((1 + n)/(1 + df)) + 1)), rows of length 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PipelineParams {
    /// What happens to capital letters.
    pub case: Case,
    /// What happens to accents.
    pub accents: Accents,
    /// What a word is.
    pub tokens: TokenRule,
    /// Words of fewer characters are dropped. Default 2, as scikit-learn; 1 keeps single letters
    /// and digits.
    pub min_token_chars: u32,
    /// Kinds of features, each with its own slots.
    pub blocks: Vec<Block>,
    /// Slots after all blocks for the terms that a vocabulary block without own slots does not
    /// know, by hash (seeded with the number of the block). Default 0: such terms are dropped.
    #[serde(skip_serializing_if = "is_zero")]
    pub oov_slots: u32,
    /// Counts to weights, over all slots at once.
    pub weighting: TermWeighting,
    /// Folds all slots into this many features by hash, between the idf and the norm. Default: every
    /// slot is a feature.
    ///
    /// The hash is that of the slot's number, as 4 little-endian bytes: scikit-learn's
    /// `murmurhash3_32(slot, seed)`; feature and sign come of it as in `FeatureHasher`.
    /// `[weinberger2009hashing]`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fold: Option<HashingParams>,
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

impl Default for PipelineParams {
    fn default() -> Self {
        Self {
            case: Case::Lower,
            accents: Accents::Keep,
            tokens: TokenRule::Words,
            min_token_chars: 2,
            blocks: vec![Block::words(1, 1)],
            oov_slots: 0,
            weighting: TermWeighting::default(),
            fold: None,
        }
    }
}

impl PipelineParams {
    /// scikit-learn's `HashingVectorizer(n_features)`: unigrams hashed with alternate signs,
    /// counts, L2 rows.
    pub fn hashing_vectorizer(n_features: u32) -> Self {
        let slots = Slots::Hashed(HashingParams { n_features, seed: 0, sign: HashSign::Alternate });
        Self {
            blocks: vec![Block { grams: Grams::Words { min: 1, max: 1 }, slots, scale: 1.0 }],
            weighting: TermWeighting { tf: Tf::Raw, idf: Idf::None, norm: Norm::L2 },
            ..Self::default()
        }
    }

    /// Whether the values make sense together.
    ///
    /// # Errors
    /// The first block that does not, and why; shared slots that nothing reaches; a fold into no
    /// feature or too many.
    pub fn check(&self) -> Result<(), BlockError> {
        if self.blocks.is_empty() {
            return Err(BlockError::None);
        }
        self.blocks.iter().enumerate().try_for_each(|(i, block)| block.check(i))?;
        let shares = |b: &Block| matches!(b.slots, Slots::Vocabulary(v) if v.oov_slots == 0);
        if self.oov_slots > 0 && !self.blocks.iter().any(shares) {
            return Err(BlockError::OovUnused { oov_slots: self.oov_slots });
        }
        match self.fold {
            Some(HashingParams { n_features, .. }) if n_features == 0 || n_features as u64 > MAX_FEATURES => {
                Err(BlockError::Fold { n_features })
            }
            _ => Ok(()),
        }
    }
}

/// A fitted pipeline: text in, weighted feature rows out.
///
/// ```
/// use xc_hash::text::{Pipeline, PipelineParams};
/// let train = ["the cat sat", "the dog sat", "a dog and a cat"];
/// let pipeline = Pipeline::fit(PipelineParams::default(), &train)?;
/// assert_eq!(pipeline.n_features(), 4); // cat dog sat the: each in two texts
/// assert_eq!((pipeline.term(0), pipeline.term(4)), (Some("cat"), None));
/// let rows = pipeline.transform_batch(&train);
/// assert_eq!((rows.iter().len(), rows.n_features, rows.values.len()), (3, 4, 8));
///
/// let mut scratch = pipeline.scratch();
/// let (features, values) = pipeline.transform_one("The CAT, the hat", &mut scratch);
/// assert_eq!(features, [0, 3]);
/// assert!(values[1] > values[0]); // "the" twice
/// # Ok::<(), xc_hash::text::FitPipelineError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Pipeline {
    params: PipelineParams,
    blocks: Vec<FittedBlock>,
    weights: RowWeights,
}

/// Memory that [`Pipeline::transform_one`] reuses; grows to the longest text seen, some 40 bytes a
/// term.
#[derive(Clone, Debug, Default)]
pub struct PipelineScratch {
    cut: Cut,
    /// Slot * 2 + (1 if the term counts negatively).
    keys: Vec<u32>,
    features: Vec<u32>,
    values: Vec<f32>,
    fold: FoldScratch,
}

/// One text, normal and cut.
#[derive(Clone, Debug, Default)]
struct Cut {
    normal: String,
    words: Words,
    chars: Chars,
}

impl Cut {
    fn cut(&mut self, params: &PipelineParams, text: &str) {
        normalise(text, params.case, params.accents, &mut self.normal);
        if params.blocks.iter().any(|b| b.grams.of_words()) {
            self.words.cut(&self.normal, params.tokens, params.min_token_chars);
        }
        let plain = params.blocks.iter().any(|b| matches!(b.grams, Grams::Chars { .. }));
        let in_words = params.blocks.iter().any(|b| matches!(b.grams, Grams::CharsInWords { .. }));
        if plain || in_words {
            self.chars.cut(&self.normal, plain, in_words);
        }
    }
}

impl Pipeline {
    /// A pipeline that counts the terms of one existing vocabulary: a term's id is its feature. Only the
    /// normalisation and tokenisation parameters are used; blocks and weighting are replaced.
    ///
    /// # Errors
    /// More terms than there may be features.
    pub fn of_words(params: PipelineParams, vocabulary: Vocabulary) -> Result<Self, BlockError> {
        let block = Block { slots: Slots::Vocabulary(VocabularyParams::default()), ..Block::words(1, 1) };
        let weighting = TermWeighting { tf: Tf::Raw, idf: Idf::None, norm: Norm::None };
        let params = PipelineParams { blocks: vec![block], oov_slots: 0, weighting, fold: None, ..params };
        let (blocks, n_slots) = lay_out(vec![(block, Some(vocabulary))], 0)?;
        Ok(Self { params, blocks, weights: RowWeights::from_raw(weighting, 0, n_slots, Vec::new()) })
    }

    /// What the pipeline does.
    pub fn params(&self) -> &PipelineParams {
        &self.params
    }

    /// Width of a row.
    pub fn n_features(&self) -> usize {
        self.params.fold.map_or(self.n_slots(), |fold| fold.n_features as usize)
    }

    /// Number of slots before they are folded; without a fold, the number of features.
    pub fn n_slots(&self) -> usize {
        self.weights.n_features()
    }

    /// Number of texts fitted on.
    pub fn n_texts(&self) -> u64 {
        self.weights.n_instances()
    }

    /// The weighting with the idf of each slot.
    pub fn weights(&self) -> &RowWeights {
        &self.weights
    }

    /// The terms of a block; `None` if it is hashed.
    ///
    /// # Panics
    /// If there is no such block.
    pub fn vocabulary(&self, block: usize) -> Option<&Vocabulary> {
        match &self.blocks[block].slots {
            FittedSlots::Vocabulary { vocabulary, .. } => Some(vocabulary),
            FittedSlots::Hashed(_) => None,
        }
    }

    /// The term that a feature counts; `None` if several may: a hashed one, or one that slots are folded to.
    pub fn term(&self, feature: u32) -> Option<&str> {
        if self.params.fold.is_some() {
            return None;
        }
        self.blocks.iter().find_map(|block| match &block.slots {
            FittedSlots::Vocabulary { vocabulary, .. } => {
                let id = feature.checked_sub(block.first)?;
                ((id as usize) < vocabulary.len()).then(|| vocabulary.term(id))
            }
            FittedSlots::Hashed(_) => None,
        })
    }

    /// Empty memory for [`Self::transform_one`].
    pub fn scratch(&self) -> PipelineScratch {
        PipelineScratch::default()
    }

    /// One text: feature ids, ascending and unique, and as many weights.
    ///
    /// The same bits as the text's row in [`Self::transform_batch`]. A text without known terms is
    /// an empty row. *Cost*: tens of nanoseconds a term; no allocation once the scratch has seen a
    /// text as long (accent stripping aside, whose decomposition may allocate on long runs of
    /// combining marks).
    pub fn transform_one<'s>(&self, text: &str, scratch: &'s mut PipelineScratch) -> (&'s [u32], &'s [f32]) {
        self.count(text, scratch);
        let PipelineScratch { features, values, fold, .. } = scratch;
        self.weights.weigh_terms(features, values);
        self.scale(features, values);
        if let Some(params) = self.params.fold {
            fold.fold(params, features, values);
        }
        self.weights.norm(values);
        (features, values)
    }

    /// Many texts, in parallel. *Shapes*: texts x `n_features()`. *Determinism*: each row alone, at
    /// any number of threads.
    pub fn transform_batch<T: AsRef<str> + Sync>(&self, texts: &[T]) -> FeatureRows {
        const PIECE: usize = 64;
        let pieces: Vec<(Vec<usize>, Vec<u32>, Vec<f32>)> = texts
            .par_chunks(PIECE)
            .map_init(PipelineScratch::default, |scratch, texts| {
                let (mut ends, mut features, mut values) = (Vec::with_capacity(texts.len()), Vec::new(), Vec::new());
                for text in texts {
                    let (f, v) = self.transform_one(text.as_ref(), scratch);
                    features.extend_from_slice(f);
                    values.extend_from_slice(v);
                    ends.push(features.len());
                }
                (ends, features, values)
            })
            .collect();
        let nnz = pieces.iter().map(|p| p.1.len()).sum();
        let mut indptr = Vec::with_capacity(texts.len() + 1);
        let (mut indices, mut values) = (Vec::with_capacity(nnz), Vec::with_capacity(nnz));
        indptr.push(0);
        for (ends, features, weights) in pieces {
            let base = indices.len();
            indptr.extend(ends.into_iter().map(|end| base + end));
            indices.extend_from_slice(&features);
            values.extend_from_slice(&weights);
        }
        FeatureRows { n_features: self.n_features(), indptr, indices, values }
    }

    /// Fills `features` and `values` with slots and counts.
    fn count(&self, text: &str, scratch: &mut PipelineScratch) {
        let PipelineScratch { cut, keys, features, values, .. } = scratch;
        cut.cut(&self.params, text);
        keys.clear();
        for block in &self.blocks {
            block.grams.visit(&cut.words, &cut.chars, |term| {
                if let Some((slot, negative)) = block.slot(term) {
                    keys.push(slot << 1 | negative as u32);
                }
            });
        }
        keys.sort_unstable();
        features.clear();
        values.clear();
        for run in keys.chunk_by(|a, b| a >> 1 == b >> 1) {
            // Sorted, so the negative ones stand at the end.
            let positive = run.partition_point(|key| key & 1 == 0) as i64;
            let count = 2 * positive - run.len() as i64;
            if count != 0 {
                features.push(run[0] >> 1);
                values.push(count as f32);
            }
        }
    }

    fn scale(&self, features: &[u32], values: &mut [f32]) {
        if self.blocks.iter().all(|b| b.scale == 1.0) {
            return;
        }
        for block in &self.blocks {
            let from = features.partition_point(|&f| f < block.first);
            let to = from + features[from..].partition_point(|&f| f - block.first < block.width);
            values[from..to].iter_mut().for_each(|v| *v *= block.scale);
        }
    }
}
