//! Tokens and words of the same texts, as a model's folder keeps them.

use super::super::words::{PREFIX, Stored, TokensAndWords, VERSION};
use super::later_version;
use super::tokenizer::{Tokenizer, TokenizerError};
use serde::Deserialize as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use thiserror::Error;
use xc_hash::text::{OpenPipelineError, Pipeline, PipelineParts};

/// Why a model's folder makes no tokens and words.
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
    /// Puts together what [`Tokenise::to_parts`] gave; `folder` is what messages call it.
    ///
    /// # Errors
    /// See [`TokensAndWordsError`].
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
