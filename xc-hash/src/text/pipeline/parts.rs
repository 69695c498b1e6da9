//! A pipeline as a small JSON value and plain arrays, and back: what a model file keeps.
//!
//! The layout is written down in `docs/formats/pipeline.md`.

use super::super::block::{BlockError, FittedSlots, MAX_FEATURES, Slots, lay_out};
use super::super::tokens::{TextsTaken, Tokenise, Vectorise};
use super::super::vocabulary::{Vocabulary, VocabularyError};
use super::super::weighting::{Idf, RowWeights, TermWeighting};
use super::{Pipeline, PipelineParams};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use thiserror::Error;

const VERSION: u32 = 1;

/// One stored array.
#[derive(Clone, Debug, PartialEq)]
pub enum PartArray {
    /// 32-bit floats.
    F32(Vec<f32>),
    /// 32-bit unsigned numbers.
    U32(Vec<u32>),
    /// Bytes.
    U8(Vec<u8>),
}

impl PartArray {
    fn kind(&self) -> &'static str {
        match self {
            PartArray::F32(_) => "f32",
            PartArray::U32(_) => "u32",
            PartArray::U8(_) => "u8",
        }
    }
}

/// A stored pipeline: the JSON and the named arrays, in any order.
#[derive(Clone, Debug, PartialEq)]
pub struct PipelineParts {
    /// Version, parameters and counts.
    pub config: Value,
    /// Names are plain: letters, digits, `_`.
    pub arrays: Vec<(String, PartArray)>,
}

/// The JSON side.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Config {
    kind: Kind,
    version: u32,
    n_texts: u64,
    n_features: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    params: Option<PipelineParams>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    weighting: Option<TermWeighting>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    Text,
    Rows,
}

/// Why stored parts are not a pipeline.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenPipelineError {
    /// The JSON does not have the expected form.
    #[error("pipeline config")]
    Config(#[from] serde_json::Error),
    /// Written by a newer program.
    #[error("pipeline version {got}; this program reads up to {VERSION}")]
    Version {
        /// The version found.
        got: u64,
    },
    /// Parts of the other kind (text, or weights of rows).
    #[error("pipeline config: kind is {got:?}, expected {expected:?}")]
    Kind {
        /// The kind found.
        got: &'static str,
        /// The kind expected.
        expected: &'static str,
    },
    /// A field that this kind needs is absent.
    #[error("pipeline config: field {field:?} is missing")]
    MissingField {
        /// The field.
        field: &'static str,
    },
    /// The parameters make no sense.
    #[error("pipeline parameters")]
    Params(#[from] BlockError),
    /// An array is absent.
    #[error("array {name:?} is missing")]
    MissingArray {
        /// Its name.
        name: String,
    },
    /// An array nobody asked for, or the same name twice.
    #[error("array {name:?} is not part of this pipeline, or is there twice")]
    ExtraArray {
        /// Its name.
        name: String,
    },
    /// An array of another type.
    #[error("array {name:?} holds {got}, expected {expected}")]
    ArrayType {
        /// Its name.
        name: String,
        /// Type found.
        got: &'static str,
        /// Type expected.
        expected: &'static str,
    },
    /// An array of another length.
    #[error("array {name:?} has {got} entries, expected {expected}")]
    ArrayLength {
        /// Its name.
        name: String,
        /// Length found.
        got: usize,
        /// Length expected.
        expected: usize,
    },
    /// An idf that cannot be: ln of a number of texts never comes near 64.
    #[error("idf of feature {feature} is {value}; it must lie between 0 and 64")]
    Idf {
        /// The feature; with a fold, the slot.
        feature: usize,
        /// The value found.
        value: f32,
    },
    /// The number of features is not what the blocks add up to, or what they are folded into.
    #[error("pipeline config: n_features is {got}, the parameters and arrays make {expected}")]
    Width {
        /// The number found.
        got: u64,
        /// The number expected.
        expected: u64,
    },
    /// A vocabulary is damaged.
    #[error("vocabulary of block {block}")]
    Vocabulary {
        /// The block, from 0.
        block: usize,
        /// What is wrong.
        source: VocabularyError,
    },
}

/// Arrays that have not been taken yet.
struct Shelf(Vec<(String, PartArray)>);

impl Shelf {
    fn new(arrays: Vec<(String, PartArray)>) -> Result<Self, OpenPipelineError> {
        let mut seen = std::collections::HashSet::new();
        match arrays.iter().find(|(name, _)| !seen.insert(name.as_str())) {
            Some((name, _)) => Err(OpenPipelineError::ExtraArray { name: name.clone() }),
            None => Ok(Self(arrays)),
        }
    }

    fn take(&mut self, name: &str) -> Result<PartArray, OpenPipelineError> {
        match self.0.iter().position(|(n, _)| n == name) {
            Some(at) => Ok(self.0.swap_remove(at).1),
            None => Err(OpenPipelineError::MissingArray { name: name.into() }),
        }
    }

    fn take_f32(&mut self, name: &str) -> Result<Vec<f32>, OpenPipelineError> {
        match self.take(name)? {
            PartArray::F32(array) => Ok(array),
            other => Err(OpenPipelineError::ArrayType { name: name.into(), got: other.kind(), expected: "f32" }),
        }
    }

    fn take_u32(&mut self, name: &str) -> Result<Vec<u32>, OpenPipelineError> {
        match self.take(name)? {
            PartArray::U32(array) => Ok(array),
            other => Err(OpenPipelineError::ArrayType { name: name.into(), got: other.kind(), expected: "u32" }),
        }
    }

    fn take_u8(&mut self, name: &str) -> Result<Vec<u8>, OpenPipelineError> {
        match self.take(name)? {
            PartArray::U8(array) => Ok(array),
            other => Err(OpenPipelineError::ArrayType { name: name.into(), got: other.kind(), expected: "u8" }),
        }
    }

    fn close(self) -> Result<(), OpenPipelineError> {
        match self.0.into_iter().next() {
            Some((name, _)) => Err(OpenPipelineError::ExtraArray { name }),
            None => Ok(()),
        }
    }

    /// The idf, checked, or nothing where the weighting has none.
    fn take_idf(&mut self, weighting: TermWeighting, n_features: usize) -> Result<Vec<f32>, OpenPipelineError> {
        if weighting.idf == Idf::None {
            return Ok(Vec::new());
        }
        let idf = self.take_f32("idf")?;
        if idf.len() != n_features {
            return Err(OpenPipelineError::ArrayLength { name: "idf".into(), got: idf.len(), expected: n_features });
        }
        match idf.iter().position(|v| !(0.0..=64.0).contains(v)) {
            Some(feature) => Err(OpenPipelineError::Idf { feature, value: idf[feature] }),
            None => Ok(idf),
        }
    }
}

fn read_config(config: &Value, expected: Kind) -> Result<Config, OpenPipelineError> {
    // The version first: a newer config may have fields that this program would call unknown.
    if let Some(got) = config.get("version").and_then(Value::as_u64)
        && got > VERSION as u64
    {
        return Err(OpenPipelineError::Version { got });
    }
    let config = Config::deserialize(config)?;
    if config.kind != expected {
        let name = |kind| if kind == Kind::Text { "text" } else { "rows" };
        return Err(OpenPipelineError::Kind { got: name(config.kind), expected: name(expected) });
    }
    if config.n_features > MAX_FEATURES {
        return Err(BlockError::TooWide { n_features: config.n_features }.into());
    }
    Ok(config)
}

fn write_config(config: Config) -> Value {
    // Structs of numbers, enums and finite floats always have a JSON form: `check` keeps NaN out of
    // the parameters.
    serde_json::to_value(config).unwrap_or(Value::Null)
}

impl Pipeline {
    /// Takes the pipeline apart for storing; [`Self::from_parts`] gives back an equal one.
    pub fn into_parts(self) -> PipelineParts {
        let mut arrays = Vec::new();
        let (n_texts, n_features) = (self.n_texts(), self.n_features() as u64);
        for (i, block) in self.blocks.into_iter().enumerate() {
            if let FittedSlots::Vocabulary { vocabulary, .. } = block.slots {
                let (bytes, ends) = vocabulary.into_arrays();
                arrays.push((format!("block{i}_terms"), PartArray::U8(bytes)));
                arrays.push((format!("block{i}_term_ends"), PartArray::U32(ends)));
            }
        }
        if self.params.weighting.idf != Idf::None {
            arrays.push(("idf".into(), PartArray::F32(self.weights.into_idf())));
        }
        let (kind, version, params) = (Kind::Text, VERSION, Some(self.params));
        let config = write_config(Config { kind, version, n_texts, n_features, params, weighting: None });
        PipelineParts { config, arrays }
    }

    /// As [`Self::into_parts`], on a copy.
    pub fn to_parts(&self) -> PipelineParts {
        self.clone().into_parts()
    }

    /// Puts stored parts together again. *Cost*: O(arrays), tens of nanoseconds a term of
    /// vocabulary.
    ///
    /// # Errors
    /// Anything that [`Self::into_parts`] would not have written: see [`OpenPipelineError`]. Never
    /// panics.
    pub fn from_parts(parts: PipelineParts) -> Result<Self, OpenPipelineError> {
        let config = read_config(&parts.config, Kind::Text)?;
        let params = config.params.ok_or(OpenPipelineError::MissingField { field: "params" })?;
        params.check()?;
        let mut shelf = Shelf::new(parts.arrays)?;
        let mut learned = Vec::new();
        for (i, &block) in params.blocks.iter().enumerate() {
            let vocabulary = match block.slots {
                Slots::Hashed(_) => None,
                Slots::Vocabulary(_) => {
                    let bytes = shelf.take_u8(&format!("block{i}_terms"))?;
                    let ends = shelf.take_u32(&format!("block{i}_term_ends"))?;
                    let vocabulary = Vocabulary::try_new(bytes, ends)
                        .map_err(|source| OpenPipelineError::Vocabulary { block: i, source })?;
                    Some(vocabulary)
                }
            };
            learned.push((block, vocabulary));
        }
        let (blocks, n_slots) = lay_out(learned, params.oov_slots)?;
        let expected = params.fold.map_or(n_slots as u64, |fold| fold.n_features as u64);
        if config.n_features != expected {
            return Err(OpenPipelineError::Width { got: config.n_features, expected });
        }
        let idf = shelf.take_idf(params.weighting, n_slots)?;
        shelf.close()?;
        let weights = RowWeights::from_raw(params.weighting, config.n_texts, n_slots, idf);
        Ok(Self { params, blocks, weights })
    }
}

impl RowWeights {
    /// Takes the weights apart for storing.
    pub fn into_parts(self) -> PipelineParts {
        let (weighting, n_texts, n_features) = (self.weighting(), self.n_instances(), self.n_features() as u64);
        let config = Config {
            kind: Kind::Rows,
            version: VERSION,
            n_texts,
            n_features,
            params: None,
            weighting: Some(weighting),
        };
        let mut arrays = Vec::new();
        if weighting.idf != Idf::None {
            arrays.push(("idf".into(), PartArray::F32(self.into_idf())));
        }
        PipelineParts { config: write_config(config), arrays }
    }

    /// Puts stored parts together again.
    ///
    /// # Errors
    /// Anything that [`Self::into_parts`] would not have written. Never panics.
    pub fn from_parts(parts: PipelineParts) -> Result<Self, OpenPipelineError> {
        let config = read_config(&parts.config, Kind::Rows)?;
        let weighting = config.weighting.ok_or(OpenPipelineError::MissingField { field: "weighting" })?;
        let n_features = config.n_features as usize;
        let mut shelf = Shelf::new(parts.arrays)?;
        let idf = shelf.take_idf(weighting, n_features)?;
        shelf.close()?;
        Ok(Self::from_raw(weighting, config.n_texts, n_features, idf))
    }
}

/// What a model keeps of the way its features are made: from text, from counted rows, to be told
/// apart by `kind`; or of the way its tokens are.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Featurizer {
    /// Text to rows.
    Text(Pipeline),
    /// Rows of counts to weighted rows.
    Rows(RowWeights),
    /// Text to tokens. Its parts are put together again by the crate that has the tokenizer.
    Tokens(Arc<dyn Tokenise>),
    /// Text to vectors, in the same way.
    Vectors(Arc<dyn Vectorise>),
}

impl PartialEq for Featurizer {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Text(a), Self::Text(b)) => a == b,
            (Self::Rows(a), Self::Rows(b)) => a == b,
            (Self::Tokens(a), Self::Tokens(b)) => Arc::ptr_eq(a, b) || a.to_parts() == b.to_parts(),
            (Self::Vectors(a), Self::Vectors(b)) => Arc::ptr_eq(a, b) || a.to_parts() == b.to_parts(),
            _ => false,
        }
    }
}

impl Featurizer {
    /// Width of the rows that come out; of tokens the number that there are.
    pub fn n_features(&self) -> usize {
        match self {
            Featurizer::Text(pipeline) => pipeline.n_features(),
            Featurizer::Rows(weights) => weights.n_features(),
            Featurizer::Tokens(tokeniser) => tokeniser.n_tokens(),
            Featurizer::Vectors(made) => made.width(),
        }
    }

    /// Texts of which tokens were made so far; nothing where no tokens are.
    pub fn taken(&self) -> Option<TextsTaken> {
        match self {
            Featurizer::Text(_) | Featurizer::Rows(_) => None,
            Featurizer::Tokens(tokeniser) => Some(tokeniser.taken()),
            Featurizer::Vectors(made) => Some(made.tokens().taken()),
        }
    }

    /// A copy, taken apart for storing.
    pub fn to_parts(&self) -> PipelineParts {
        match self {
            Featurizer::Text(pipeline) => pipeline.to_parts(),
            Featurizer::Rows(weights) => weights.clone().into_parts(),
            Featurizer::Tokens(tokeniser) => tokeniser.to_parts(),
            Featurizer::Vectors(made) => made.to_parts(),
        }
    }

    /// Puts stored parts of text or rows together again.
    ///
    /// # Errors
    /// Those of [`Pipeline::from_parts`] and [`RowWeights::from_parts`].
    pub fn from_parts(parts: PipelineParts) -> Result<Self, OpenPipelineError> {
        match parts.config.get("kind").and_then(Value::as_str) {
            Some("rows") => RowWeights::from_parts(parts).map(Featurizer::Rows),
            _ => Pipeline::from_parts(parts).map(Featurizer::Text),
        }
    }
}
