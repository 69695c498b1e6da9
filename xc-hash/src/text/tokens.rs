//! Texts as ordered ids of tokens, and as vectors of these, which another crate makes.

use super::{Pipeline, PipelineParts};
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

    /// What makes features of the words of a text, which stand beside its tokens, where they do.
    fn words(&self) -> Option<&Pipeline> {
        None
    }

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

/// What makes vectors of texts, by way of their tokens: what a model of vectors keeps in place of a pipeline.
///
/// The same tokens give the same bits, alone and among others, whichever thread asks.
pub trait Vectorise: Debug + Send + Sync {
    /// Values of a vector.
    fn width(&self) -> usize;

    /// What makes the tokens.
    fn tokens(&self) -> &dyn Tokenise;

    /// Appends a vector for the tokens of each text.
    ///
    /// # Errors
    /// A text that has no vector; what was appended is of no use then.
    fn append(&self, tokens: &[&[u32]], vectors: &mut Vec<f32>) -> Result<(), VectoriseError>;

    /// What a model's folder keeps of it.
    fn to_parts(&self) -> PipelineParts;
}

/// A text that has no vector.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("a text has no vector: {why}")]
pub struct VectoriseError {
    /// The text's place among those asked for.
    pub at: usize,
    /// Why.
    pub why: String,
}
