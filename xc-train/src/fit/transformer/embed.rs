//! Vectors of texts by a transformer as it comes: nothing is trained.

use std::path::PathBuf;
use xc_dense::MatmulPrecision;

/// Which vectors texts are to have.
#[derive(Clone, Debug, PartialEq)]
pub struct Embed {
    /// The folder of the transformer, as HuggingFace's libraries write it.
    pub from: PathBuf,
    /// Tokens of a text, at most, special ones included.
    pub max_tokens: usize,
    /// What stands before every text; the folder's own default prompt where nothing is said.
    pub prefix: Option<String>,
    /// What its products multiply.
    pub precision: MatmulPrecision,
    /// Whether vectors are scaled to length 1.
    pub normalise: bool,
}

/// What was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Embedded {
    /// Vectors.
    pub rows: usize,
    /// Values of each.
    pub width: usize,
    /// Tokens of all texts.
    pub tokens: u64,
}
