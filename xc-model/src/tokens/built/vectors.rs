//! Vectors of texts by a transformer as it comes: nothing of it is trained.
//!
//! ```text
//!   text ──▶ tokenizer ──▶ ids ──▶ transformer ──▶ vector, at length 1 where that is wanted
//! ```
//!
//! A model's folder keeps the weights and the tokenizer, so that it answers texts without the folder that both come from.

use super::super::{tokenise, vectorise};
use super::later_version;
use super::tokenizer::{ARRAY, Tokenizer, TokenizerError};
use crate::message::chain;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use thiserror::Error;
use xc_dense::DenseMatrix;
use xc_dense::MatmulPrecision;
use xc_hash::text::{Featurizer, PartArray, PipelineParts, Tokenise, TokeniseError, Vectorise, VectoriseError};
use xc_nn::encoder::transformer::{Transformer, TransformerParams, TransformerParamsError, TransformerScratch};
use xc_nn::state::State as _;
use xc_nn::{Activations, Batch, Encoder, Init, Mode};
use xc_sparse::rows::{Rows, Texts, TokenRows, normalise};

/// The kind that a stored description states.
const KIND: &str = "vectors";
const VERSION: u32 = 1;
/// Texts that go through the layers together.
const TOGETHER: usize = 32;

/// A transformer with its tokenizer, as it comes.
///
/// *Determinism*: a text's vector has the same bits alone and among others, at any number of threads.
pub struct TextVectors {
    tokenizer: Tokenizer,
    transformer: Transformer,
    precision: MatmulPrecision,
    normalise: bool,
    /// Those that nobody works with now.
    idle: Mutex<Vec<Buffers>>,
}

/// Memory of a pass through the layers.
#[derive(Default)]
struct Buffers {
    batch: Batch,
    states: Activations,
    scratch: TransformerScratch,
}

/// What a model's folder says of its vectors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    kind: Kind,
    version: u32,
    /// As of a pipeline of tokens.
    tokens: Value,
    transformer: TransformerParams,
    precision: MatmulPrecision,
    normalise: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    Vectors,
}

/// Why a model's folder makes no vectors.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TextVectorsError {
    /// A description that is none.
    #[error("{}: description of vectors", path.display())]
    Config {
        /// The folder.
        path: PathBuf,
        /// Position and cause.
        source: serde_json::Error,
    },
    /// A description of a later version.
    #[error("{}: vectors of version {got}; version {VERSION} is expected", path.display())]
    Version {
        /// The folder.
        path: PathBuf,
        /// The version.
        got: u64,
    },
    /// Its tokenizer.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    /// An impossible transformer.
    #[error("{}: transformer of texts", path.display())]
    Params {
        /// The folder.
        path: PathBuf,
        /// What is impossible.
        source: TransformerParamsError,
    },
    /// A tokenizer that is not the transformer's.
    #[error("{}: texts of {got} {what}; the transformer takes {expected}", path.display())]
    Tokens {
        /// The folder.
        path: PathBuf,
        /// What the two differ in.
        what: &'static str,
        /// That of the tokenizer.
        got: usize,
        /// That of the transformer.
        expected: usize,
    },
    /// An array that is missing, or of another size or type.
    #[error("{}: array {name:?} of the transformer of texts: {got}; {expected} numbers of type F32 are expected", path.display())]
    Array {
        /// The folder.
        path: PathBuf,
        /// The array.
        name: String,
        /// What there is.
        got: String,
        /// Values that there should be.
        expected: usize,
    },
    /// A weight that is no number.
    #[error("{}: array {name:?} of the transformer of texts: value {at} is not finite", path.display())]
    NotFinite {
        /// The folder.
        path: PathBuf,
        /// The array.
        name: String,
        /// The position.
        at: usize,
    },
    /// An array that belongs to nothing.
    #[error("{}: array {name:?} belongs to no part of the transformer of texts", path.display())]
    Unknown {
        /// The folder.
        path: PathBuf,
        /// The array.
        name: String,
    },
}

impl TextVectors {
    /// A transformer and its tokenizer, with what its products multiply, and whether vectors are scaled to length 1. `path`
    /// is what messages call them.
    ///
    /// # Errors
    /// Tokens that the transformer does not know, or more than it has positions for.
    pub fn new(
        path: &Path,
        tokenizer: Tokenizer,
        transformer: Transformer,
        precision: MatmulPrecision,
        normalise: bool,
    ) -> Result<Self, TextVectorsError> {
        let of = transformer.params();
        let differ = |what, got, expected| TextVectorsError::Tokens { path: path.to_owned(), what, got, expected };
        if tokenizer.n_tokens() != of.vocabulary {
            return Err(differ("tokens of a vocabulary of that size", tokenizer.n_tokens(), of.vocabulary));
        }
        if tokenizer.max_tokens() > of.positions {
            return Err(differ("tokens at most", tokenizer.max_tokens(), of.positions));
        }
        let transformer = transformer.with_products(precision);
        Ok(Self { tokenizer, transformer, precision, normalise, idle: Mutex::default() })
    }

    /// Whether the description of a model's pipeline is of vectors.
    pub fn describes(config: &Value) -> bool {
        config.get("kind").and_then(Value::as_str) == Some(KIND)
    }

    /// Puts together what [`Vectorise::to_parts`] gave; `folder` is what messages call it.
    ///
    /// # Errors
    /// See [`TextVectorsError`].
    pub fn from_parts(folder: &Path, parts: PipelineParts) -> Result<Self, TextVectorsError> {
        let path = || folder.to_owned();
        let config = |source| TextVectorsError::Config { path: path(), source };
        // The version first: a later description may have fields that this program would call unknown.
        if let Some(got) = later_version(&parts.config, VERSION) {
            return Err(TextVectorsError::Version { path: path(), got });
        }
        let Stored { version, tokens, transformer: of, precision, normalise, .. } =
            Stored::deserialize(&parts.config).map_err(config)?;
        if version != VERSION {
            return Err(TextVectorsError::Version { path: path(), got: version.into() });
        }
        let (of_tokenizer, weights): (Vec<_>, Vec<_>) = parts.arrays.into_iter().partition(|(name, _)| name == ARRAY);
        let tokenizer = Tokenizer::from_parts(folder, PipelineParts { config: tokens, arrays: of_tokenizer })?;
        let impossible = |source| TextVectorsError::Params { path: path(), source };
        of.check().map_err(impossible)?;
        let mut weights: BTreeMap<String, PartArray> = weights.into_iter().collect();
        let missing =
            |name: String, got: String, expected| TextVectorsError::Array { path: path(), name, got, expected };
        // Sizes are those of arrays that there are before any memory is taken for them.
        if of.layers > weights.len() {
            let name = format!("transformer.layer{}", of.layers);
            return Err(missing(name, "missing".to_owned(), of.width));
        }
        for (name, [rows, columns]) in of.arrays() {
            let expected = rows.saturating_mul(columns);
            let got = match weights.get(&name) {
                Some(PartArray::F32(values)) if values.len() == expected => continue,
                Some(PartArray::F32(values)) => format!("{} numbers", values.len()),
                Some(PartArray::U32(_) | PartArray::U8(_)) => "of another type".to_owned(),
                None => "missing".to_owned(),
            };
            return Err(missing(name, got, expected));
        }
        let mut transformer = Transformer::new(of, Default::default(), Init::Zeros).map_err(impossible)?;
        for named in transformer.parameters_mut() {
            let Some(PartArray::F32(values)) = weights.remove(&named.name) else {
                panic!("{}: an array that was found", named.name)
            };
            if let Some(at) = values.iter().position(|value| !value.is_finite()) {
                return Err(TextVectorsError::NotFinite { path: path(), name: named.name, at });
            }
            named.parameter.values_mut().copy_from_slice(&values);
        }
        if let Some(name) = weights.into_keys().next() {
            return Err(TextVectorsError::Unknown { path: path(), name });
        }
        Self::new(folder, tokenizer, transformer, precision, normalise)
    }

    /// Vectors of texts, and how many tokens these had.
    ///
    /// # Errors
    /// The first text that has no vector, from 0, and why.
    pub fn of(&self, texts: Texts<'_>) -> Result<(DenseMatrix, u64), VectoriseError> {
        let untold = |(at, TokeniseError { why })| VectoriseError { at, why };
        let tokens = tokenise(&self.tokenizer, texts).map_err(untold)?;
        Ok((vectorise(self, tokens.view())?, tokens.view().ids().len() as u64))
    }

    /// As a model keeps it.
    pub fn into_featurizer(self) -> Featurizer {
        Featurizer::Vectors(Arc::new(self))
    }
}

impl Vectorise for TextVectors {
    fn width(&self) -> usize {
        self.transformer.width()
    }

    fn tokens(&self) -> &dyn Tokenise {
        &self.tokenizer
    }

    fn append(&self, tokens: &[&[u32]], vectors: &mut Vec<f32>) -> Result<(), VectoriseError> {
        let refused = |at, error: &dyn Error| VectoriseError { at, why: chain(error) };
        // Whoever works has taken the buffers out; what a panic went through is lost. Nobody waits for the lock: in a
        // process that was forked it may be held for ever.
        let taken = self.idle.try_lock().ok().and_then(|mut idle| idle.pop());
        let mut buffers = taken.unwrap_or_default();
        for (first, some) in (0..).step_by(TOGETHER).zip(tokens.chunks(TOGETHER)) {
            let mut rows = TokenRows::new(self.tokenizer.n_tokens());
            for (at, ids) in (first..).zip(some) {
                rows.push(ids).map_err(|e| refused(at, &e))?;
            }
            let most = self.transformer.params().positions;
            if let Some((at, ids)) = (first..).zip(some).find(|(_, ids)| ids.len() > most) {
                let why = format!("{} tokens, at most {most} are expected", ids.len());
                return Err(VectoriseError { at, why });
            }
            let Buffers { batch, states, scratch } = &mut buffers;
            batch.fill_features(Rows::Tokens(rows.view()), 0..some.len());
            self.transformer.forward(batch, Mode::Predict, states, scratch).map_err(|e| refused(first, &e))?;
            let width = self.transformer.width();
            for (at, vector) in (first..).zip(states.values_mut().chunks_exact_mut(width)) {
                if vector.iter().any(|v| !v.is_finite()) {
                    return Err(VectoriseError { at, why: "its vector is not finite".to_owned() });
                }
                if self.normalise {
                    normalise(vector);
                }
                vectors.extend_from_slice(vector);
            }
        }
        if let Ok(mut idle) = self.idle.try_lock() {
            idle.push(buffers);
        }
        Ok(())
    }

    fn to_parts(&self) -> PipelineParts {
        let PipelineParts { config: tokens, mut arrays } = self.tokenizer.to_parts();
        let stored = Stored {
            kind: Kind::Vectors,
            version: VERSION,
            tokens,
            transformer: self.transformer.params().clone(),
            precision: self.precision,
            normalise: self.normalise,
        };
        let of_weights = self.transformer.parameters().into_iter();
        arrays.extend(of_weights.map(|named| (named.name, PartArray::F32(named.parameter.values().to_vec()))));
        // Numbers and names only.
        PipelineParts { config: serde_json::to_value(&stored).unwrap_or(Value::Null), arrays }
    }
}

impl fmt::Debug for TextVectors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tokenizer, transformer, precision, normalise, .. } = self;
        let mut shown = f.debug_struct("TextVectors");
        shown.field("tokens", &tokenizer.max_tokens()).field("transformer", transformer.params());
        shown.field("precision", precision).field("normalise", normalise).finish()
    }
}
