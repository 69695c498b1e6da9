//! Features of the words of a text beside its tokens: what a network over a transformer and its wide term read.
//!
//! ```text
//!   text ─┬─▶ tokenizer ──▶ ids, the first of them ──▶ transformer ──▶ network
//!         └─▶ text pipeline ──▶ features of all words ──────────────▶ wide term
//! ```

#[cfg(feature = "transformer")]
use super::later_version;
#[cfg(feature = "transformer")]
use super::tokenizer::{Tokenizer, TokenizerError};
use serde::{Deserialize, Serialize};
use serde_json::Value;
#[cfg(feature = "transformer")]
use std::path::{Path, PathBuf};
use std::sync::Arc;
#[cfg(feature = "transformer")]
use thiserror::Error;
#[cfg(feature = "transformer")]
use xc_hash::text::OpenPipelineError;
use xc_hash::text::{Pipeline, PipelineParts, TextsTaken, Tokenise, TokeniseError};
use xc_sparse::CsrMatrix;
use xc_sparse::rows::Texts;

/// The kind that a stored description states.
pub(super) const KIND: &str = "tokens-and-words";
const VERSION: u32 = 1;
/// What the names of the arrays of the words' pipeline begin with.
pub(super) const PREFIX: &str = "words.";

/// What makes tokens of texts, and features of all their words.
#[derive(Debug)]
pub struct TokensAndWords {
    tokens: Arc<dyn Tokenise>,
    words: Pipeline,
}

/// What a model's folder says of both.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    kind: Kind,
    version: u32,
    /// As of a pipeline of tokens.
    tokens: Value,
    /// As of a pipeline of features.
    words: Value,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    TokensAndWords,
}

/// Why a model's folder makes no tokens and words.
#[cfg(feature = "transformer")]
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TokensAndWordsError {
    /// A description that is none.
    #[error("{}: description of tokens and words", path.display())]
    Config {
        /// The folder.
        path: PathBuf,
        /// Position and cause.
        source: serde_json::Error,
    },
    /// A description of another version.
    #[error("{}: tokens and words of version {got}; version {VERSION} is expected", path.display())]
    Version {
        /// The folder.
        path: PathBuf,
        /// The version.
        got: u64,
    },
    /// What makes the tokens.
    #[error(transparent)]
    Tokenizer(#[from] TokenizerError),
    /// What makes features of words.
    #[error("{}: words beside tokens", path.display())]
    Words {
        /// The folder.
        path: PathBuf,
        /// What is wrong.
        source: OpenPipelineError,
    },
}

impl TokensAndWords {
    /// Both, for the same texts.
    pub fn new(tokens: Arc<dyn Tokenise>, words: Pipeline) -> Self {
        Self { tokens, words }
    }

    /// Whether the description of a model's pipeline is of both.
    pub fn describes(config: &Value) -> bool {
        config.get("kind").and_then(Value::as_str) == Some(KIND)
    }

    /// The description of the tokens alone, where one is of both.
    #[cfg(feature = "convert")]
    pub(crate) fn tokens_alone(config: &Value) -> Option<&Value> {
        Some(config).filter(|config| Self::describes(config))?.get("tokens")
    }

    /// Puts together what [`Tokenise::to_parts`] gave; `folder` is what messages call it.
    ///
    /// # Errors
    /// See [`TokensAndWordsError`].
    #[cfg(feature = "transformer")]
    pub fn from_parts(folder: &Path, parts: PipelineParts) -> Result<Self, TokensAndWordsError> {
        let path = || folder.to_owned();
        // The version first: a later description may have fields that this program would call unknown.
        if let Some(got) = later_version(&parts.config, VERSION) {
            return Err(TokensAndWordsError::Version { path: path(), got });
        }
        let stored = Stored::deserialize(&parts.config);
        let Stored { version, tokens, words, .. } =
            stored.map_err(|source| TokensAndWordsError::Config { path: path(), source })?;
        if version != VERSION {
            return Err(TokensAndWordsError::Version { path: path(), got: version.into() });
        }
        let (mut of_words, mut of_tokens) = (Vec::new(), Vec::new());
        for (name, array) in parts.arrays {
            match name.strip_prefix(PREFIX) {
                Some(short) => of_words.push((short.to_owned(), array)),
                None => of_tokens.push((name, array)),
            }
        }
        let tokens = Tokenizer::from_parts(folder, PipelineParts { config: tokens, arrays: of_tokens })?;
        let words = Pipeline::from_parts(PipelineParts { config: words, arrays: of_words });
        let words = words.map_err(|source| TokensAndWordsError::Words { path: path(), source })?;
        Ok(Self::new(Arc::new(tokens), words))
    }
}

impl Tokenise for TokensAndWords {
    fn n_tokens(&self) -> usize {
        self.tokens.n_tokens()
    }

    fn append(&self, text: &str, ids: &mut Vec<u32>) -> Result<(), TokeniseError> {
        self.tokens.append(text, ids)
    }

    fn token(&self, id: u32) -> Option<String> {
        self.tokens.token(id)
    }

    fn taken(&self) -> TextsTaken {
        self.tokens.taken()
    }

    fn words(&self) -> Option<&Pipeline> {
        Some(&self.words)
    }

    fn to_parts(&self) -> PipelineParts {
        let PipelineParts { config: tokens, mut arrays } = self.tokens.to_parts();
        let PipelineParts { config: words, arrays: of_words } = self.words.to_parts();
        arrays.extend(of_words.into_iter().map(|(name, array)| (format!("{PREFIX}{name}"), array)));
        let stored = Stored { kind: Kind::TokensAndWords, version: VERSION, tokens, words };
        // Numbers and names only.
        PipelineParts { config: serde_json::to_value(&stored).unwrap_or(Value::Null), arrays }
    }
}

/// The features of texts; a text alone starts no pool.
pub(crate) fn features(pipeline: &Pipeline, texts: Texts<'_>) -> CsrMatrix {
    if texts.len() > 1 {
        let rows = match texts {
            Texts::Slices(texts) => pipeline.transform_batch(texts),
            Texts::Strings(texts) => pipeline.transform_batch(texts),
        };
        return CsrMatrix::from_checked((texts.len(), rows.n_features), rows.indptr, rows.indices, rows.values);
    }
    let (mut indptr, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    let mut scratch = pipeline.scratch();
    for text in texts.iter() {
        let (features, weights) = pipeline.transform_one(text, &mut scratch);
        indices.extend_from_slice(features);
        values.extend_from_slice(weights);
        indptr.push(indices.len());
    }
    CsrMatrix::from_checked((texts.len(), pipeline.n_features()), indptr, indices, values)
}
