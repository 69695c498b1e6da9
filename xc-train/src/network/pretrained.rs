//! A transformer that was trained before, and what is done with it.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use xc_nn::encoder::transformer::TransformerLearning;
use xc_nn::{Optimizer, UpdateRule};

/// What makes vectors of instances.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EncoderName {
    /// Embeddings of features, or vectors as they come.
    #[default]
    Features,
    /// A transformer over tokens of texts.
    Transformer,
    /// Vectors of texts by a transformer that is not trained.
    Frozen,
}

/// A transformer, and how it reads a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pretrained {
    /// Its folder, as HuggingFace's libraries write it.
    pub from: PathBuf,
    /// Tokens of a text, at most, special ones included.
    pub max_tokens: usize,
    /// What stands before every text; the folder's own default prompt where nothing is said.
    pub prefix: Option<String>,
}

impl Pretrained {
    /// The transformer of a folder, with 64 tokens of a text.
    pub fn new(from: impl Into<PathBuf>) -> Self {
        Self { from: from.into(), max_tokens: 64, prefix: None }
    }
}

/// An encoder of texts below a network.
#[derive(Clone, Debug, PartialEq)]
pub struct TextEncoder {
    /// What makes vectors.
    pub encoder: EncoderName,
    /// The transformer that it begins with.
    pub pretrained: Pretrained,
    /// How its layers learn.
    pub layers: TransformerLearning,
    /// Its optimiser and rate.
    pub rule: UpdateRule,
    /// Whether what frozen layers make of training texts stays in memory.
    pub cache_states: bool,
}

impl Default for TextEncoder {
    /// Features: no transformer. One has the rate 0.0001, which has not been searched for.
    fn default() -> Self {
        Self {
            encoder: EncoderName::Features,
            pretrained: Pretrained::new(""),
            layers: TransformerLearning::default(),
            rule: UpdateRule { optimizer: Optimizer::adam().with_weight_decay(0.01), rate: 1e-4 },
            cache_states: false,
        }
    }
}
