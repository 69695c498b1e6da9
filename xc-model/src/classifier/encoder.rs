//! What is below the head of a classifier: a kind of encoder, and layers above it.

use super::encoding::Encoding;
use super::error::{ClassifierParamsError, number};
use super::file::NamedShape;
use super::learning::LearningParams;
use super::tokens::TokensParams;
use super::{EmbeddingInit, Input, InputKind};
use serde::{Deserialize, Serialize};
use xc_dense::MatmulPrecision;
use xc_nn::encoder::{Bag, Precomputed};
use xc_nn::{Activation, Init};

/// Units of a layer, at most: products of the sizes of a network are numbers then.
pub const MAX_UNITS: usize = 1 << 24;

/// The layers below the head.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum EncoderParams {
    /// Weighted features, whose embeddings are summed.
    Bag(BagParams),
    /// Vectors that were computed elsewhere.
    Vectors(VectorsParams),
    /// Tokens of texts.
    Tokens(TokensParams),
}

/// An encoder of weighted features.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BagParams {
    /// Width of the embeddings, then the units of each layer above.
    pub widths: Vec<usize>,
    /// What becomes of a sum of embeddings.
    pub activation: Activation,
}

/// An encoder of vectors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VectorsParams {
    /// Units of each layer; there may be none.
    pub widths: Vec<usize>,
}

impl EncoderParams {
    /// Weighted features, of which the first width is that of the embeddings; sums go through a ReLU.
    pub fn bag(widths: impl Into<Vec<usize>>) -> Self {
        Self::Bag(BagParams { widths: widths.into(), activation: Activation::Relu })
    }

    /// Vectors, and layers of so many units over them.
    pub fn vectors(widths: impl Into<Vec<usize>>) -> Self {
        Self::Vectors(VectorsParams { widths: widths.into() })
    }

    /// What its kind says.
    pub(super) fn kind(&self) -> &dyn Encoding {
        match self {
            Self::Bag(of) => of,
            Self::Vectors(of) => of,
            Self::Tokens(of) => of,
        }
    }

    fn kind_mut(&mut self) -> &mut dyn Encoding {
        match self {
            Self::Bag(of) => of,
            Self::Vectors(of) => of,
            Self::Tokens(of) => of,
        }
    }

    /// What an instance is.
    pub fn input(&self) -> InputKind {
        self.kind().input()
    }

    /// Units of each layer, input first; of sparse features the first is the width of their embeddings.
    pub fn widths(&self) -> &[usize] {
        self.kind().widths()
    }

    /// The same, to be changed.
    pub fn widths_mut(&mut self) -> &mut Vec<usize> {
        self.kind_mut().widths_mut()
    }

    /// What becomes of sums of embeddings; vectors and tokens have none.
    pub fn activation(&self) -> Option<Activation> {
        self.kind().activation()
    }

    /// The same, to be changed.
    pub fn activation_mut(&mut self) -> Option<&mut Activation> {
        self.kind_mut().activation_mut()
    }

    /// Of an encoder of tokens, what it is.
    pub fn tokens(&self) -> Option<&TokensParams> {
        match self {
            Self::Tokens(of) => Some(of),
            Self::Bag(_) | Self::Vectors(_) => None,
        }
    }

    pub(super) fn check(&self, n_features: usize) -> Result<(), ClassifierParamsError> {
        let (widths, needs_one) = (self.widths(), self.input() == InputKind::Sparse);
        let wrong = |expected| Err(ClassifierParamsError::Widths { got: widths.to_vec(), expected });
        if widths.contains(&0) || (needs_one && widths.is_empty()) {
            return wrong(if needs_one { "at least one width, none of them 0" } else { "no width of 0" });
        }
        if widths.iter().any(|&width| width > MAX_UNITS) {
            return wrong("at most 16777216 units in a layer");
        }
        if !needs_one && n_features == 0 {
            return number("the width of the vectors", 0.0, "at least 1");
        }
        self.kind().check(n_features)
    }

    /// Width of the vectors that the head gets, for instances of `n_features`.
    pub fn top_width(&self, n_features: usize) -> usize {
        self.widths().last().copied().unwrap_or_else(|| self.kind().lowest_width(n_features))
    }

    /// Width of the vectors below all layers, for instances of `n_features`.
    pub fn lowest_width(&self, n_features: usize) -> usize {
        self.kind().lowest_width(n_features)
    }

    /// Most tokens of an instance, where instances are tokens.
    pub fn most_tokens(&self) -> Option<usize> {
        self.tokens().map(|of| of.transformer.positions)
    }

    /// Units of the dense layers: those above the embeddings, or above the vectors.
    pub fn layer_widths(&self) -> impl Iterator<Item = usize> + '_ {
        let below = usize::from(self.input() == InputKind::Sparse);
        self.widths().iter().skip(below).copied()
    }
}

impl Encoding for BagParams {
    fn input(&self) -> InputKind {
        InputKind::Sparse
    }

    fn widths(&self) -> &[usize] {
        &self.widths
    }

    fn widths_mut(&mut self) -> &mut Vec<usize> {
        &mut self.widths
    }

    fn activation(&self) -> Option<Activation> {
        Some(self.activation)
    }

    fn activation_mut(&mut self) -> Option<&mut Activation> {
        Some(&mut self.activation)
    }

    fn lowest_width(&self, _: usize) -> usize {
        self.widths[0]
    }

    fn shapes(&self, n_features: usize) -> Vec<NamedShape> {
        let width = self.widths[0];
        vec![("bag.table".to_owned(), [n_features, width]), ("bag.bias".to_owned(), [width, 1])]
    }

    fn build(&self, n_features: usize, learning: &LearningParams, _: MatmulPrecision, init: Init) -> Input {
        let init = if learning.init == EmbeddingInit::Lsa { Init::Zeros } else { init };
        Input::Bag(Bag::new(n_features, self.widths[0], self.activation, learning.input_dropout, init))
    }
}

impl Encoding for VectorsParams {
    fn input(&self) -> InputKind {
        InputKind::Dense
    }

    fn widths(&self) -> &[usize] {
        &self.widths
    }

    fn widths_mut(&mut self) -> &mut Vec<usize> {
        &mut self.widths
    }

    fn lowest_width(&self, n_features: usize) -> usize {
        n_features
    }

    fn shapes(&self, _: usize) -> Vec<NamedShape> {
        Vec::new()
    }

    fn build(&self, n_features: usize, learning: &LearningParams, _: MatmulPrecision, _: Init) -> Input {
        Input::Vectors(Precomputed::new(n_features).with_dropout(learning.input_dropout))
    }
}
