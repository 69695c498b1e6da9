//! Vectors of texts by a transformer as it comes: nothing is trained.

use crate::network::Pretrained;
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
