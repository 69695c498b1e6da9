//! Features of the words of a text beside its tokens: what a network over a transformer and its wide term read.
//!
//! ```text
//!   text ─┬─▶ tokenizer ──▶ ids, the first of them ──▶ transformer ──▶ network
//!         └─▶ text pipeline ──▶ features of all words ──────────────▶ wide term
//! ```

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use xc_hash::text::{Pipeline, PipelineParts, TextsTaken, Tokenise, TokeniseError};
use xc_sparse::CsrMatrix;
use xc_sparse::rows::Texts;

/// The kind that a stored description states.
pub(super) const KIND: &str = "tokens-and-words";
pub(super) const VERSION: u32 = 1;
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
pub(super) struct Stored {
    kind: Kind,
    pub(super) version: u32,
    /// As of a pipeline of tokens.
    pub(super) tokens: Value,
    /// As of a pipeline of features.
    pub(super) words: Value,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    TokensAndWords,
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
