//! An encoder of tokens of texts: a transformer, and layers above it.

use serde::{Deserialize, Serialize};
use xc_nn::encoder::transformer::{TransformerLearning, TransformerParams};

/// An encoder of tokens.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokensParams {
    /// The transformer.
    pub transformer: TransformerParams,
    /// Units of each layer above it; there may be none.
    pub widths: Vec<usize>,
}

/// How a transformer below a classifier learns, and what it begins with.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TokensLearning {
    /// How its layers learn.
    pub layers: TransformerLearning,
    /// Hash of the weights that it begins with; nothing where they are drawn.
    pub begins_with: Option<String>,
}

impl TokensLearning {
    pub(super) fn is_usual(&self) -> bool {
        *self == Self::default()
    }
}
