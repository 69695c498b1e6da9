//! What the library of tokenizers and the transformer are needed for.

mod at_work;
mod checked;
#[cfg(feature = "convert")]
mod export;
mod pieces;
mod steps;
mod tokenizer;
mod vectors;
mod words;

pub use at_work::tokenizer_at_work;
#[cfg(feature = "convert")]
pub(crate) use export::write_transformer;
pub use tokenizer::{FILE, Tokenizer, TokenizerError};
pub use vectors::{TextVectors, TextVectorsError};
pub use words::TokensAndWordsError;

use super::TokensAndWords;
use std::sync::Arc;
use xc_hash::text::Featurizer;
use xc_store::Container;
use xc_tree::text::{StoredPipelineError, read_parts};

/// The version of a stored description, where it is later than the one that is known.
fn later_version(config: &serde_json::Value, known: u32) -> Option<u64> {
    config.get("version").and_then(serde_json::Value::as_u64).filter(|&got| got > u64::from(known))
}

/// What makes tokens or vectors of a model's texts, where its folder keeps that; `None` where it makes features.
pub(super) fn read(container: &Container) -> Result<Option<Featurizer>, StoredPipelineError> {
    let folder = container.folder();
    let is_of = |describes: fn(&serde_json::Value) -> bool| container.pipeline().is_some_and(describes);
    if is_of(Tokenizer::describes) {
        let made = read_parts(container)?.map(|parts| Tokenizer::from_parts(folder, parts)).transpose();
        let made = made.map_err(|error| StoredPipelineError::Tokens(Box::new(error)))?;
        return Ok(made.map(Tokenizer::into_featurizer));
    }
    if is_of(TokensAndWords::describes) {
        let made = read_parts(container)?.map(|parts| TokensAndWords::from_parts(folder, parts)).transpose();
        let made = made.map_err(|error| StoredPipelineError::Tokens(Box::new(error)))?;
        return Ok(made.map(|made| Featurizer::Tokens(Arc::new(made))));
    }
    if is_of(TextVectors::describes) {
        let made = read_parts(container)?.map(|parts| TextVectors::from_parts(folder, parts)).transpose();
        let made = made.map_err(|error| StoredPipelineError::Tokens(Box::new(error)))?;
        return Ok(made.map(TextVectors::into_featurizer));
    }
    Ok(None)
}
