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

    /// Texts whose ids were asked for so far.
    fn taken(&self) -> TextsTaken;

    /// What a token is called; nothing where no token has the id.
    fn token(&self, id: u32) -> Option<String>;

    /// What makes features of the words of a text, which stand beside its tokens, where they do.
    fn words(&self) -> Option<&Pipeline> {
        None
    }

    /// What a model's folder keeps of it.
    fn to_parts(&self) -> PipelineParts;
}

/// Texts of which a tokenizer made ids, and those that have more tokens than it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextsTaken {
    /// Texts.
    pub texts: u64,
    /// Those of them that were cut.
    pub cut: u64,
    /// Tokens of a text, at most.
    pub max_tokens: usize,
}

impl TextsTaken {
    /// Those behind an earlier count.
    pub fn since(self, before: Self) -> Self {
        Self { texts: self.texts.wrapping_sub(before.texts), cut: self.cut.wrapping_sub(before.cut), ..self }
    }

    /// What is to be said of texts that were cut; nothing where none was.
    pub fn note(self) -> Option<String> {
        let Self { texts, cut, max_tokens } = self;
        let are = if cut == 1 { "is" } else { "are" };
        (cut > 0).then(|| format!("of {texts} texts {cut} {are} cut at {max_tokens} tokens"))
    }
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
