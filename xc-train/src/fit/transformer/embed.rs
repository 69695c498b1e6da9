//! Vectors of texts by a transformer as it comes: nothing is trained.

use crate::network::Pretrained;
use std::path::PathBuf;
use xc_dense::MatmulPrecision;

/// Which vectors texts are to have.
#[derive(Clone, Debug, PartialEq)]
pub struct Embed {
    /// What makes them.
    pub pretrained: Pretrained,
    /// What its products multiply.
    pub precision: MatmulPrecision,
    /// Whether vectors are scaled to length 1.
    pub normalise: bool,
}

impl Embed {
    /// Vectors of length 1 by the transformer in a folder.
    pub fn new(from: impl Into<PathBuf>) -> Self {
        Self { pretrained: Pretrained::new(from), precision: MatmulPrecision::F32, normalise: true }
    }
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
