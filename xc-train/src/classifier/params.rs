//! What a classifier is made of, and what is impossible about one.

#[cfg(feature = "transformer")]
use super::TokensParams;
use super::error::{ClassifierParamsError, number};
use super::learning::{EmbeddingInit, LearningParams};
use super::{Input, InputKind, Output};
use serde::{Deserialize, Deserializer, Serialize};
#[cfg(feature = "transformer")]
use xc_nn::encoder::transformer::Transformer;
use xc_nn::encoder::{Bag, Precomputed, Stack};
use xc_nn::head::sparse::{Screening, SparseParams};
use xc_nn::head::{Dense, Sampled, SampledParams, Sparse};
use xc_nn::{Activation, Init, Loss};
use xc_sparse::dense::MatmulPrecision;
use xc_sparse::dtype::DType;
use xc_sparse::uniform::check_shape;

/// What a classifier is: an encoder, a head, and the loss that they learn by.
///
/// Answers depend on all of it but [`ClassifierParams::learning`], which a file keeps apart and nobody who answers
/// reads: a classifier that was opened has the default there.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClassifierParams {
    /// From an instance to a vector.
    pub encoder: EncoderParams,
    /// From the vector to a logit for each label.
    pub head: HeadParams,
    /// What errors cost, and how logits become scores.
    pub loss: Loss,
    /// What dense layers multiply.
    pub precision: MatmulPrecision,
    /// What trainers alone read.
    #[serde(skip)]
    pub learning: LearningParams,
}

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
    #[cfg(feature = "transformer")]
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

/// The output layer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum HeadParams {
    /// Each label is connected with every unit.
    #[serde(deserialize_with = "nothing_more")]
    Dense,
    /// Each label is connected with a few units (`[schultheis2023uniform]`).
    Sparse(SparseHeadParams),
    /// Each label is connected with every unit; a step scores some labels.
    Candidates(CandidateHeadParams),
}

/// A head without fields: serde would pass over some.
fn nothing_more<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Nothing {}
    Nothing::deserialize(deserializer).map(|_| ())
}

/// A dense output layer whose steps score the true labels and those that a sampler chooses
/// ([`LearningParams::negatives`]).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CandidateHeadParams {
    /// Type of the labels' rows: f32 or bf16.
    pub rows: DType,
}

impl CandidateHeadParams {
    /// The layer's own parameters.
    pub(super) fn layer(&self, precision: MatmulPrecision, learning: &LearningParams) -> SampledParams {
        SampledParams { rows: self.rows, precision, lists: learning.negatives.lists }
    }

    fn check(&self) -> Result<(), ClassifierParamsError> {
        if !matches!(self.rows, DType::F32 | DType::Bf16) {
            return Err(ClassifierParamsError::Rows { got: self.rows });
        }
        Ok(())
    }
}

/// Which units a label is connected with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wiring {
    /// Equally many for every label.
    Uniform,
    /// As many on average, more for some labels than for others.
    Unstructured,
}

/// A sparse output layer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SparseHeadParams {
    /// Connections per label; on average where labels differ.
    pub fan_in: usize,
    /// How they are spread.
    pub wiring: Wiring,
    /// Type of the weights.
    pub weights: DType,
}

impl Default for SparseHeadParams {
    /// 32 connections, the same for each label, in f32.
    fn default() -> Self {
        Self { fan_in: 32, wiring: Wiring::Uniform, weights: DType::F32 }
    }
}

impl ClassifierParams {
    /// Says whether there is such a classifier of instances of `n_features` (features, or values of
    /// a vector) and `n_labels` labels, and whether it can learn so.
    ///
    /// # Errors
    /// The first thing that is impossible.
    pub fn check(&self, n_features: usize, n_labels: usize) -> Result<(), ClassifierParamsError> {
        self.check_shape(n_features)?;
        self.learning.check_rates()?;
        #[cfg(feature = "transformer")]
        if let EncoderParams::Tokens(of) = &self.encoder {
            self.learning.tokens.layers.check(of.transformer.layers)?;
        }
        match &self.head {
            HeadParams::Dense => Ok(()),
            HeadParams::Candidates(_) => {
                self.learning.check_candidates(self.loss, n_labels, self.encoder.top_width(n_features))
            }
            HeadParams::Sparse(head) => self.learning.check_connections(head.fan_in, n_labels),
        }
    }

    /// The same of what answers depend on.
    pub(super) fn check_shape(&self, n_features: usize) -> Result<(), ClassifierParamsError> {
        if let Loss::Own(loss) = self.loss {
            return Err(ClassifierParamsError::OwnLoss { got: loss.name() });
        }
        self.encoder.check(n_features)?;
        let width = self.encoder.top_width(n_features);
        match &self.head {
            HeadParams::Candidates(head) => head.check(),
            _ if self.loss == Loss::Nce => Err(ClassifierParamsError::Nce { got: "a head that scores all labels" }),
            HeadParams::Dense => Ok(()),
            HeadParams::Sparse(head) => Ok(check_shape(width, head.fan_in)?),
        }
    }

    /// The layers below the head, initial values as `init` says; LSA embeddings are zeros until
    /// [`Classifier::initialise`](super::Classifier::initialise).
    pub(super) fn encoder(&self, n_features: usize, init: Init) -> Stack<Input> {
        let LearningParams { embedding_rate, input_dropout, dropout, .. } = self.learning;
        let input = match &self.encoder {
            EncoderParams::Bag(bag) => {
                let init = if self.uses_lsa() { Init::Zeros } else { init };
                Input::Bag(Bag::new(n_features, bag.widths[0], bag.activation, input_dropout, init))
            }
            EncoderParams::Vectors(_) => Input::Vectors(Precomputed::new(n_features).with_dropout(input_dropout)),
            #[cfg(feature = "transformer")]
            EncoderParams::Tokens(TokensParams { transformer, .. }) => {
                let mut learning = self.learning.tokens.layers;
                learning.pooled_dropout = input_dropout;
                let made = Transformer::new(transformer.clone(), learning, init);
                let made = made.unwrap_or_else(|e| panic!("a transformer that was checked: {e}"));
                Input::Tokens(Box::new(made.with_products(self.precision)))
            }
        };
        self.encoder
            .layer_widths()
            .fold(Stack::new(input).with_share_below(embedding_rate), |below, width| {
                below.push(width, Activation::Relu, dropout, init)
            })
            .with_products(self.precision)
    }

    /// The output layer, initial values as `init` says.
    pub(super) fn output(
        &self,
        n_features: usize,
        n_labels: usize,
        init: Init,
    ) -> Result<Output, ClassifierParamsError> {
        let width = self.encoder.top_width(n_features);
        Ok(match &self.head {
            HeadParams::Dense => Output::Dense(Dense::new(n_labels, width, init).with_products(self.precision)),
            HeadParams::Candidates(head) => {
                Output::Candidates(Sampled::new(n_labels, width, head.layer(self.precision, &self.learning), init))
            }
            HeadParams::Sparse(head) => {
                Output::Sparse(self.as_trained(Sparse::new(n_labels, width, head.layer(&self.learning), init)?))
            }
        })
    }

    /// Whether steps may screen labels.
    pub(super) fn screens(&self) -> bool {
        let is_sparse = matches!(self.head, HeadParams::Sparse(_));
        is_sparse && self.learning.connections.screening && self.loss == Loss::SquaredHinge
    }

    /// The layer with what a step does.
    pub(super) fn as_trained(&self, layer: Sparse) -> Sparse {
        let screening = if self.screens() { Screening::WherePays } else { Screening::Never };
        layer.with_screening(screening)
    }

    /// Whether embeddings begin at a latent semantic analysis of the training rows.
    pub fn uses_lsa(&self) -> bool {
        self.encoder.input() == InputKind::Sparse && self.learning.init == EmbeddingInit::Lsa
    }
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

    /// What an instance is.
    pub fn input(&self) -> InputKind {
        match self {
            Self::Bag(_) => InputKind::Sparse,
            Self::Vectors(_) => InputKind::Dense,
            #[cfg(feature = "transformer")]
            Self::Tokens(_) => InputKind::Tokens,
        }
    }

    /// Units of each layer, input first; of sparse features the first is the width of their embeddings.
    pub fn widths(&self) -> &[usize] {
        match self {
            Self::Bag(BagParams { widths, .. }) | Self::Vectors(VectorsParams { widths }) => widths,
            #[cfg(feature = "transformer")]
            Self::Tokens(TokensParams { widths, .. }) => widths,
        }
    }

    /// The same, to be changed.
    pub fn widths_mut(&mut self) -> &mut Vec<usize> {
        match self {
            Self::Bag(BagParams { widths, .. }) | Self::Vectors(VectorsParams { widths }) => widths,
            #[cfg(feature = "transformer")]
            Self::Tokens(TokensParams { widths, .. }) => widths,
        }
    }

    /// What becomes of sums of embeddings; vectors and tokens have none.
    pub fn activation(&self) -> Option<Activation> {
        match self {
            Self::Bag(bag) => Some(bag.activation),
            _ => None,
        }
    }

    /// The same, to be changed.
    pub fn activation_mut(&mut self) -> Option<&mut Activation> {
        match self {
            Self::Bag(bag) => Some(&mut bag.activation),
            _ => None,
        }
    }

    fn check(&self, n_features: usize) -> Result<(), ClassifierParamsError> {
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
        #[cfg(feature = "transformer")]
        if let Self::Tokens(TokensParams { transformer, .. }) = self {
            transformer.check()?;
            if n_features != transformer.vocabulary && n_features != usize::MAX {
                return number("the number of tokens", n_features as f64, "that of the transformer");
            }
        }
        Ok(())
    }

    /// Width of the vectors that the head gets, for instances of `n_features`.
    pub fn top_width(&self, n_features: usize) -> usize {
        self.widths().last().copied().unwrap_or_else(|| self.lowest_width(n_features))
    }

    /// Most tokens of an instance, where instances are tokens.
    pub fn most_tokens(&self) -> Option<usize> {
        match self {
            Self::Bag(_) | Self::Vectors(_) => None,
            #[cfg(feature = "transformer")]
            Self::Tokens(of) => Some(of.transformer.positions),
        }
    }

    /// Width of the vectors below all layers, for instances of `n_features`.
    pub(super) fn lowest_width(&self, n_features: usize) -> usize {
        match self {
            Self::Bag(bag) => bag.widths[0],
            Self::Vectors(_) => n_features,
            #[cfg(feature = "transformer")]
            Self::Tokens(of) => of.transformer.vector_width(),
        }
    }

    /// Units of the dense layers: those above the embeddings, or above the vectors.
    pub(super) fn layer_widths(&self) -> impl Iterator<Item = usize> + '_ {
        let below = usize::from(self.input() == InputKind::Sparse);
        self.widths().iter().skip(below).copied()
    }
}

impl SparseHeadParams {
    /// The layer's own parameters.
    pub fn layer(&self, learning: &LearningParams) -> SparseParams {
        let Self { fan_in: per_output, weights, .. } = *self;
        let (uniform, of) = (self.wiring == Wiring::Uniform, learning.connections);
        SparseParams { per_output, uniform, weights, moments: of.moments, rewire: of.rewire() }
    }
}
