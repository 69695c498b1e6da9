//! What a classifier is made of, and what is impossible about one.

use super::{Input, Output};
use crate::encoder::{Bag, Precomputed, Stack};
use crate::head::differentiated::Layout;
use crate::head::sparse::{Rewire, Screening, SparseParams};
use crate::head::{BlockShare, BlockShareError, Dense, Differentiated, Sampled, SampledParams, Sparse};
use crate::sampler::{
    AnnParams, Lists, LshParams, MidxParams, NegativeParams, SamplerParams, SamplerParamsError, ScheduleParams,
    Weighting,
};
use crate::{Activation, Init, Loss};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use xc_sparse::dense::MatmulPrecision;
use xc_sparse::dtype::DType;
use xc_sparse::uniform::{ConnectionsError, check_shape};

/// What a classifier is: an encoder, a head, and the loss that they learn by.
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
    /// Names the random streams of initial values.
    pub seed: u64,
}

/// What an instance is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InputKind {
    /// Weighted features: their embeddings are learned and summed.
    Sparse,
    /// A vector that was computed elsewhere.
    Dense,
}

/// Initial embeddings of sparse features, and what becomes of their sums.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EmbeddingInit {
    /// Random values; sums go through a ReLU.
    Random,
    /// Random values; sums are handed on as they are.
    Linear,
    /// Latent semantic analysis (a truncated SVD) of the training rows; sums are handed on as they
    /// are.
    Lsa,
}

impl EmbeddingInit {
    /// Usual share of the learning rate for such embeddings. A tenth is a guess.
    pub fn usual_rate(self) -> f32 {
        match self {
            Self::Random | Self::Linear => 1.0,
            Self::Lsa => 0.1,
        }
    }
}

/// Units of a layer, at most: products of the sizes of a network are numbers then.
pub const MAX_UNITS: usize = 1 << 24;

/// The layers below the head.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EncoderParams {
    /// What an instance is.
    pub input: InputKind,
    /// Units of each layer, input first. Sparse features: the first is the width of their
    /// embeddings. Vectors need no layer.
    pub widths: Vec<usize>,
    /// Initial embeddings of sparse features.
    pub init: EmbeddingInit,
    /// Share of the learning rate for the embeddings; at 0 they stay.
    pub embedding_rate: f32,
    /// Chance that a value that comes in is dropped in training: of a vector, or of the sum of
    /// embeddings.
    pub input_dropout: f32,
    /// The same for the values of each layer above.
    pub dropout: f32,
}

/// The output layer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum HeadParams {
    /// Each label is connected with every unit.
    Dense,
    /// Each label is connected with a few units (`[schultheis2023uniform]`).
    Sparse(SparseHeadParams),
    /// Each label is connected with every unit; a step scores some labels.
    Candidates(CandidateHeadParams),
    /// Frequent labels are connected with more units than rare ones (`[chen2016strategies]`).
    Differentiated(DifferentiatedHeadParams),
}

/// A dense output layer in blocks of labels by frequency, each of which reads units of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DifferentiatedHeadParams {
    /// What each block has of the labels and units, the most frequent labels first.
    pub blocks: Vec<BlockShare>,
}

impl Default for DifferentiatedHeadParams {
    /// Half of the units for the tenth of the labels that are most frequent, a quarter for the next
    /// three tenths, a quarter for the rest: guesses.
    fn default() -> Self {
        let block = |labels, units| BlockShare { labels, units };
        Self { blocks: vec![block(0.1, 0.5), block(0.3, 0.25), block(0.6, 0.25)] }
    }
}

impl DifferentiatedHeadParams {
    /// The blocks of so many labels and units.
    pub(super) fn layout(&self, n_labels: usize, width: usize) -> Layout {
        Layout::try_new(&self.blocks, n_labels, width).unwrap_or_else(|e| panic!("blocks that were checked: {e}"))
    }
}

/// A dense output layer whose steps score the true labels and those that a sampler chooses.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CandidateHeadParams {
    /// Type of the labels' rows: f32 or bf16.
    pub rows: DType,
    /// Which labels a step scores.
    pub negatives: NegativeParams,
}

impl CandidateHeadParams {
    /// The layer's own parameters.
    pub(super) fn layer(&self, precision: MatmulPrecision) -> SampledParams {
        SampledParams { rows: self.rows, precision, lists: self.negatives.lists }
    }

    /// Labels that a step scores at most, where they are not all.
    pub fn listed(&self, batch: usize) -> Option<usize> {
        let of_instances = |one: usize| match self.negatives.lists {
            Lists::Shared => one.saturating_mul(batch),
            Lists::Own => one,
        };
        let one = match self.negatives.sampler {
            SamplerParams::All => return None,
            SamplerParams::Uniform { per_list }
            | SamplerParams::LogUniform { per_list }
            | SamplerParams::Frequency { per_list, .. } => per_list,
            SamplerParams::InBatch => 0,
            SamplerParams::TopK { per_instance }
            | SamplerParams::Ann(AnnParams { per_instance, .. })
            | SamplerParams::LabelText(AnnParams { per_instance, .. })
            | SamplerParams::Schedule(ScheduleParams { per_instance, .. }) => of_instances(per_instance),
            SamplerParams::LshEmbedding(LshParams { candidates, .. })
            | SamplerParams::LshLabel(LshParams { candidates, .. }) => of_instances(candidates),
            SamplerParams::Midx(MidxParams { per_instance, .. }) => of_instances(per_instance),
        };
        let list = one.saturating_add(self.negatives.uniform);
        // True labels of the batch: eight an instance is a guess.
        let lists = if self.negatives.lists == Lists::Own { batch } else { 1 };
        Some(list.saturating_mul(lists).saturating_add(batch.saturating_mul(8)))
    }

    fn check(&self, loss: Loss, n_labels: usize, width: usize) -> Result<(), ClassifierParamsError> {
        if let SamplerParams::LshEmbedding(params) | SamplerParams::LshLabel(params) = self.negatives.sampler
            && n_labels > 0
            && width < usize::MAX
        {
            params.sizing(n_labels as u64, width).map_err(SamplerParamsError::from)?;
        }
        if !matches!(self.rows, DType::F32 | DType::Bf16) {
            return Err(ClassifierParamsError::Rows { got: self.rows });
        }
        self.negatives.check()?;
        let NegativeParams { sampler, uniform, weighting, .. } = self.negatives;
        if loss == Loss::Nce {
            let got = match () {
                () if !sampler.knows_log_q() => "a sampler that does not know the chance of every label",
                () if uniform > 0 => "uniform labels in addition to those of the sampler",
                () if weighting != Weighting::LogQ => "another weighting than log-q",
                () => return Ok(()),
            };
            return Err(ClassifierParamsError::Nce { got });
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
    /// Type of the optimiser's moments: f32 or bf16.
    pub moments: DType,
    /// Whether steps screen labels in 8 bits where that pays ([`Screening`]). Only with the squared
    /// hinge.
    pub screening: bool,
    /// Steps between two changes of the connections; 0: they stay.
    pub rewire_every: u64,
    /// Share of the connections that are replaced, the weakest.
    pub rewire_fraction: f64,
    /// Which labels a step scores.
    pub sampler: SamplerParams,
}

impl SparseHeadParams {
    /// Steps of so many instances between two changes of the connections: those that take 32,000.
    pub fn usual_rewire_every(batch_size: usize) -> u64 {
        (32_000 / batch_size.max(1) as u64).max(1)
    }
}

impl Default for SparseHeadParams {
    /// 32 connections and the paper's rewiring (a tenth every 1,000 steps of 32 instances).
    fn default() -> Self {
        Self {
            fan_in: 32,
            wiring: Wiring::Uniform,
            weights: DType::F32,
            moments: DType::F32,
            screening: true,
            rewire_every: Self::usual_rewire_every(32),
            rewire_fraction: 0.1,
            sampler: SamplerParams::All,
        }
    }
}

/// A classifier that is impossible.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum ClassifierParamsError {
    /// A layer without units, or no layer at all.
    #[error("widths {got:?}, expected {expected}")]
    Widths {
        /// The widths.
        got: Vec<usize>,
        /// What they may be.
        expected: &'static str,
    },
    /// A sampler that is impossible.
    #[error(transparent)]
    Sampler(#[from] SamplerParamsError),
    /// A sparse layer has no row of weights for each label.
    #[error("a sampler that looks for labels by their weights, expected one that does not: the layer is sparse")]
    NeedsRows,
    /// A number outside its range.
    #[error("{name} is {got}, expected {expected}")]
    Number {
        /// Which.
        name: &'static str,
        /// Its value.
        got: f64,
        /// What it may be.
        expected: &'static str,
    },
    /// Rows of a type that is not made for them.
    #[error("rows of {}, expected f32 or bf16", got.short_name())]
    Rows {
        /// The type.
        got: DType,
    },
    /// Noise-contrastive estimation where chances are not known.
    #[error(
        "loss nce with {got}; expected a candidate head with labels drawn uniform, log-uniform or by frequency, weighting log-q"
    )]
    Nce {
        /// What is in the way.
        got: &'static str,
    },
    /// Shares of labels or units that make no blocks.
    #[error(transparent)]
    Blocks(#[from] BlockShareError),
    /// More connections per label than units, or none.
    #[error(transparent)]
    Connections(#[from] ConnectionsError),
    /// Moments of a type that is too coarse for them.
    #[error("moments of {}, expected f32 or bf16", got.short_name())]
    Moments {
        /// The type.
        got: DType,
    },
    /// More connections than rewiring can number.
    #[error("{labels} labels of {fan_in} connections, expected fewer than 2^32 connections in all, or no rewiring")]
    TooMany {
        /// Labels.
        labels: usize,
        /// Connections of each.
        fan_in: usize,
    },
}

fn number(name: &'static str, got: f64, expected: &'static str) -> Result<(), ClassifierParamsError> {
    Err(ClassifierParamsError::Number { name, got, expected })
}

impl ClassifierParams {
    /// Says whether there is such a classifier of instances of `n_features` (features, or values of
    /// a vector) and `n_labels` labels.
    ///
    /// # Errors
    /// The first thing that is impossible.
    pub fn check(&self, n_features: usize, n_labels: usize) -> Result<(), ClassifierParamsError> {
        self.encoder.check(n_features)?;
        match &self.head {
            HeadParams::Candidates(head) => head.check(self.loss, n_labels, self.encoder.top_width(n_features)),
            _ if self.loss == Loss::Nce => Err(ClassifierParamsError::Nce { got: "a head that scores all labels" }),
            HeadParams::Dense => Ok(()),
            HeadParams::Differentiated(head) => {
                Layout::try_new(&head.blocks, n_labels, self.encoder.top_width(n_features))?;
                Ok(())
            }
            HeadParams::Sparse(head) => head.check(self.encoder.top_width(n_features), n_labels),
        }
    }

    /// The layers below the head, initial values as `init` says; LSA embeddings are zeros until
    /// [`Classifier::initialise`](super::Classifier::initialise).
    pub(super) fn encoder(&self, n_features: usize, init: Init) -> Stack<Input> {
        let params = &self.encoder;
        let input = match params.input {
            InputKind::Sparse => {
                let (activation, init) = match params.init {
                    EmbeddingInit::Random => (Activation::Relu, init),
                    EmbeddingInit::Linear => (Activation::Identity, init),
                    EmbeddingInit::Lsa => (Activation::Identity, Init::Zeros),
                };
                let bag = Bag::new(n_features, params.widths[0], activation, params.input_dropout, init);
                Input::Bag(bag)
            }
            InputKind::Dense => Input::Vectors(Precomputed::new(n_features).with_dropout(params.input_dropout)),
        };
        params
            .layer_widths()
            .fold(Stack::new(input).with_share_below(params.embedding_rate), |below, width| {
                below.push(width, Activation::Relu, params.dropout, init)
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
            HeadParams::Differentiated(head) => {
                let layer = Differentiated::new(n_labels, width, &head.blocks, init)?;
                Output::Differentiated(layer.with_products(self.precision))
            }
            HeadParams::Candidates(head) => {
                Output::Candidates(Sampled::new(n_labels, width, head.layer(self.precision), init))
            }
            HeadParams::Sparse(head) => {
                Output::Sparse(self.as_trained(Sparse::new(n_labels, width, head.layer(), init)?))
            }
        })
    }

    /// Whether steps may screen labels.
    pub(super) fn screens(&self) -> bool {
        matches!(&self.head, HeadParams::Sparse(head) if head.screening) && self.loss == Loss::SquaredHinge
    }

    /// The layer with what a step does.
    pub(super) fn as_trained(&self, layer: Sparse) -> Sparse {
        let screening = if self.screens() { Screening::WherePays } else { Screening::Never };
        layer.with_screening(screening)
    }
}

impl EncoderParams {
    fn check(&self, n_features: usize) -> Result<(), ClassifierParamsError> {
        let needs_one = self.input == InputKind::Sparse;
        if self.widths.contains(&0) || (needs_one && self.widths.is_empty()) {
            let expected = if needs_one { "at least one width, none of them 0" } else { "no width of 0" };
            return Err(ClassifierParamsError::Widths { got: self.widths.clone(), expected });
        }
        if self.widths.iter().any(|&width| width > MAX_UNITS) {
            let expected = "at most 16777216 units in a layer";
            return Err(ClassifierParamsError::Widths { got: self.widths.clone(), expected });
        }
        if !needs_one && n_features == 0 {
            return number("the width of the vectors", 0.0, "at least 1");
        }
        for (name, rate) in [("input_dropout", self.input_dropout), ("dropout", self.dropout)] {
            if !(0.0..1.0).contains(&rate) {
                return number(name, f64::from(rate), "a rate from 0 to below 1");
            }
        }
        if !(self.embedding_rate >= 0.0 && self.embedding_rate.is_finite()) {
            return number("embedding_rate", f64::from(self.embedding_rate), "a share of the learning rate, 0 or more");
        }
        Ok(())
    }

    /// Width of the vectors that the head gets, for instances of `n_features`.
    pub fn top_width(&self, n_features: usize) -> usize {
        self.widths.last().copied().unwrap_or(n_features)
    }

    /// Units of the dense layers: those above the embeddings, or above the vectors.
    pub(super) fn layer_widths(&self) -> impl Iterator<Item = usize> + '_ {
        let below = usize::from(self.input == InputKind::Sparse);
        self.widths.iter().skip(below).copied()
    }

    /// Whether embeddings begin at a latent semantic analysis of the training rows.
    pub fn uses_lsa(&self) -> bool {
        self.input == InputKind::Sparse && self.init == EmbeddingInit::Lsa
    }
}

impl SparseHeadParams {
    fn check(&self, width: usize, n_labels: usize) -> Result<(), ClassifierParamsError> {
        if !(0.0..=1.0).contains(&self.rewire_fraction) {
            return number("rewire_fraction", self.rewire_fraction, "a share from 0 to 1");
        }
        self.sampler.check()?;
        if self.sampler.needs_rows() {
            return Err(ClassifierParamsError::NeedsRows);
        }
        if !matches!(self.moments, DType::F32 | DType::Bf16) {
            return Err(ClassifierParamsError::Moments { got: self.moments });
        }
        check_shape(width, self.fan_in)?;
        if self.rewire().is_some() && n_labels.saturating_mul(self.fan_in) >= u32::MAX as usize {
            return Err(ClassifierParamsError::TooMany { labels: n_labels, fan_in: self.fan_in });
        }
        Ok(())
    }

    /// How connections change.
    pub fn rewire(&self) -> Option<Rewire> {
        let Self { rewire_every: every, rewire_fraction: fraction, .. } = *self;
        (every > 0 && fraction > 0.0).then_some(Rewire { every, fraction })
    }

    /// The layer's own parameters.
    pub fn layer(&self) -> SparseParams {
        let Self { fan_in: per_output, weights, moments, .. } = *self;
        SparseParams { per_output, uniform: self.wiring == Wiring::Uniform, weights, moments, rewire: self.rewire() }
    }
}
