//! An encoder of tokens of texts: a transformer, and layers above it.

use super::encoding::Encoding;
use super::error::{ClassifierParamsError, number};
use super::file::NamedShape;
use super::learning::LearningParams;
use super::{Input, InputKind};
use serde::{Deserialize, Serialize};
use xc_dense::MatmulPrecision;
use xc_nn::Init;
use xc_nn::encoder::transformer::{IS_BUILT, Transformer, TransformerLearning, TransformerParams};

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

impl Encoding for TokensParams {
    fn input(&self) -> InputKind {
        InputKind::Tokens
    }

    fn widths(&self) -> &[usize] {
        &self.widths
    }

    fn widths_mut(&mut self) -> &mut Vec<usize> {
        &mut self.widths
    }

    fn lowest_width(&self, _: usize) -> usize {
        self.transformer.vector_width()
    }

    fn shapes(&self, _: usize) -> Vec<NamedShape> {
        self.transformer.arrays()
    }

    fn check(&self, n_features: usize) -> Result<(), ClassifierParamsError> {
        self.transformer.check()?;
        if n_features != self.transformer.vocabulary && n_features != usize::MAX {
            return number("the number of tokens", n_features as f64, "that of the transformer");
        }
        if IS_BUILT { Ok(()) } else { Err(ClassifierParamsError::NoTransformer) }
    }

    fn check_learning(&self, learning: &LearningParams) -> Result<(), ClassifierParamsError> {
        Ok(learning.tokens.layers.check(self.transformer.layers)?)
    }

    fn build(&self, _: usize, learning: &LearningParams, precision: MatmulPrecision, init: Init) -> Input {
        let layers = TransformerLearning { pooled_dropout: learning.input_dropout, ..learning.tokens.layers };
        let made = Transformer::new(self.transformer.clone(), layers, init);
        let made = made.unwrap_or_else(|e| panic!("a transformer that was checked: {e}"));
        Input::Tokens(Box::new(made.with_products(precision)))
    }
}
