//! Texts as ordered ids of tokens, which a tokenizer of another crate makes.

use super::PipelineParts;
use std::fmt::Debug;
use thiserror::Error;

/// What makes ids of the tokens of texts, in their order: what a model of tokens keeps in place of a pipeline.
///
/// The same text gives the same ids, whichever thread asks.
pub trait Tokenise: Debug + Send + Sync {
    /// Number of tokens that there are: every id is below it.
    fn n_tokens(&self) -> usize;

    /// Appends the ids of a text, at most as many as a model takes.
    ///
    /// # Errors
    /// The tokenizer makes no ids of the text, or an id that there is not; nothing is appended then.
    fn append(&self, text: &str, ids: &mut Vec<u32>) -> Result<(), TokeniseError>;

    /// What a token is called; nothing where no token has the id.
    fn token(&self, id: u32) -> Option<String>;

    /// What a model's folder keeps of it.
    fn to_parts(&self) -> PipelineParts;
}

/// A text of which a tokenizer makes no ids.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("the tokenizer makes no tokens of a text: {why}")]
pub struct TokeniseError {
    /// What the tokenizer says.
    pub why: String,
}
