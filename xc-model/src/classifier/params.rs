//! What a classifier is made of, and what is impossible about one.

use super::encoder::EncoderParams;
use super::error::ClassifierParamsError;
use super::learning::{EmbeddingInit, LearningParams};
use super::{Input, InputKind, Output};
use serde::{Deserialize, Deserializer, Serialize};
use xc_buffer::dtype::DType;
use xc_dense::MatmulPrecision;
use xc_nn::encoder::Stack;
use xc_nn::head::sparse::{Screening, SparseParams};
use xc_nn::head::{Dense, Sampled, SampledParams, Sparse};
use xc_nn::{Activation, Init, Loss};
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

impl Default for ClassifierParams {
    /// Sparse features, embeddings of 512 values, all labels in every step, a multi-label loss.
    fn default() -> Self {
        Self {
            encoder: EncoderParams::bag([512]),
            head: HeadParams::Dense,
            loss: Loss::Bce,
            precision: MatmulPrecision::F32,
            learning: LearningParams::default(),
        }
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
        self.encoder.kind().check_learning(&self.learning)?;
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
    /// they are analysed.
    pub(super) fn encoder(&self, n_features: usize, init: Init) -> Stack<Input> {
        let LearningParams { embedding_rate, dropout, .. } = self.learning;
        let input = self.encoder.kind().build(n_features, &self.learning, self.precision, init);
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
    pub fn screens(&self) -> bool {
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

impl SparseHeadParams {
    /// The layer's own parameters.
    pub fn layer(&self, learning: &LearningParams) -> SparseParams {
        let Self { fan_in: per_output, weights, .. } = *self;
        let (uniform, of) = (self.wiring == Wiring::Uniform, learning.connections);
        SparseParams { per_output, uniform, weights, moments: of.moments, rewire: of.rewire() }
    }
}
