//! What trainers alone read of a classifier's parameters: no answer depends on it.

use super::WideLearning;
use super::error::{ClassifierParamsError, number};
use serde::{Deserialize, Serialize};
use xc_buffer::dtype::DType;
use xc_nn::head::sparse::Rewire;
use xc_nn::sampler::{LshParams, NegativeParams, SamplerParams, SamplerParamsError, Weighting};
use xc_nn::{Activation, Loss};
use xc_store::{Container, OpenError};

/// How a classifier learns, beside the settings of the trainer: initial values, dropout, which labels a step scores,
/// how connections change.
///
/// A file keeps it under the name of its own ([`LearningParams::NAME`]), where fields that a reader does not know are
/// passed over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LearningParams {
    /// Names the random streams of initial values.
    pub seed: u64,
    /// Initial embeddings of sparse features.
    pub init: EmbeddingInit,
    /// Share of the learning rate for the embeddings; at 0 they stay.
    pub embedding_rate: f32,
    /// Chance that a value that comes in is dropped in training: of a vector, or of the sum of
    /// embeddings.
    pub input_dropout: f32,
    /// The same for the values of each layer above.
    pub dropout: f32,
    /// Which labels a step scores, of a head that may score some; a sparse head reads the sampler alone.
    pub negatives: NegativeParams,
    /// How the connections of a sparse head are trained.
    pub connections: ConnectionLearning,
    /// How rankers over sparse features are learned beside the network, where they are: after the last epoch, against
    /// the false labels that its steps scored highest.
    pub wide: Option<WideLearning>,
    /// How a transformer learns, and what it begins with; encoders of other instances do not read it. As usual, it is not
    /// written, so that builds with and without transformers write the same bytes where there is none.
    #[serde(default, skip_serializing_if = "super::TokensLearning::is_usual")]
    pub tokens: super::TokensLearning,
}

/// Initial embeddings of sparse features.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EmbeddingInit {
    /// Random values.
    Random,
    /// Latent semantic analysis (a truncated SVD) of the training rows.
    Lsa,
}

impl EmbeddingInit {
    /// Usual share of the learning rate for such embeddings. A tenth is a guess.
    pub fn usual_rate(self) -> f32 {
        match self {
            Self::Random => 1.0,
            Self::Lsa => 0.1,
        }
    }

    /// What usually becomes of sums of such embeddings: those of an analysis have a meaning of their own.
    pub fn usual_activation(self) -> Activation {
        match self {
            Self::Random => Activation::Relu,
            Self::Lsa => Activation::Identity,
        }
    }
}

/// How the connections of a sparse head are trained.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ConnectionLearning {
    /// Type of the optimiser's moments: f32 or bf16.
    pub moments: DType,
    /// Whether steps screen labels in 8 bits where that pays ([`Screening`](xc_nn::head::sparse::Screening)). Only
    /// with the squared hinge.
    pub screening: bool,
    /// Steps between two changes of the connections; 0: they stay.
    pub rewire_every: u64,
    /// Share of the connections that are replaced, the weakest.
    pub rewire_fraction: f64,
}

impl ConnectionLearning {
    /// Steps of so many instances between two changes of the connections: those that take 32,000.
    pub fn usual_rewire_every(batch_size: usize) -> u64 {
        (32_000 / batch_size.max(1) as u64).max(1)
    }

    /// How connections change.
    pub fn rewire(&self) -> Option<Rewire> {
        let Self { rewire_every: every, rewire_fraction: fraction, .. } = *self;
        (every > 0 && fraction > 0.0).then_some(Rewire { every, fraction })
    }

    fn check(&self, fan_in: usize, n_labels: usize) -> Result<(), ClassifierParamsError> {
        if !(0.0..=1.0).contains(&self.rewire_fraction) {
            return number("rewire_fraction", self.rewire_fraction, "a share from 0 to 1");
        }
        if !matches!(self.moments, DType::F32 | DType::Bf16) {
            return Err(ClassifierParamsError::Moments { got: self.moments });
        }
        if self.rewire().is_some() && n_labels.saturating_mul(fan_in) >= u32::MAX as usize {
            return Err(ClassifierParamsError::TooMany { labels: n_labels, fan_in });
        }
        Ok(())
    }
}

impl Default for ConnectionLearning {
    /// The paper's rewiring: a tenth every 1,000 steps of 32 instances.
    fn default() -> Self {
        Self { moments: DType::F32, screening: true, rewire_every: Self::usual_rewire_every(32), rewire_fraction: 0.1 }
    }
}

impl Default for LearningParams {
    /// Random embeddings, no dropout, all labels.
    fn default() -> Self {
        Self {
            seed: 0,
            init: EmbeddingInit::Random,
            embedding_rate: EmbeddingInit::Random.usual_rate(),
            input_dropout: 0.0,
            dropout: 0.0,
            negatives: SamplerParams::All.into(),
            connections: ConnectionLearning::default(),
            wide: None,
            tokens: Default::default(),
        }
    }
}

impl LearningParams {
    /// The parameter of a folder that holds them.
    pub const NAME: &'static str = "learning";

    /// Those that a folder keeps, where it does.
    ///
    /// # Errors
    /// A value that there is not.
    pub fn of(container: &Container) -> Result<Option<Self>, OpenError> {
        container.parameters().contains_key(Self::NAME).then(|| container.parameter(Self::NAME)).transpose()
    }

    /// Says whether the rates are some.
    pub(super) fn check_rates(&self) -> Result<(), ClassifierParamsError> {
        for (name, rate) in [("input_dropout", self.input_dropout), ("dropout", self.dropout)] {
            if !(0.0..1.0).contains(&rate) {
                return number(name, f64::from(rate), "a rate from 0 to below 1");
            }
        }
        if !(self.embedding_rate >= 0.0 && self.embedding_rate.is_finite()) {
            return number("embedding_rate", f64::from(self.embedding_rate), "a share of the learning rate, 0 or more");
        }
        self.wide.map_or(Ok(()), |wide| wide.check())
    }

    /// Says whether a sparse head of so many connections per label, and `n_labels` labels, can learn so.
    pub(super) fn check_connections(&self, fan_in: usize, n_labels: usize) -> Result<(), ClassifierParamsError> {
        let sampler = self.negatives.sampler;
        sampler.check()?;
        if sampler.needs_rows() {
            return Err(ClassifierParamsError::NeedsRows);
        }
        self.connections.check(fan_in, n_labels)
    }

    /// Says whether a head of `n_labels` labels over vectors of `width`, whose steps score some labels, can learn so.
    pub(super) fn check_candidates(
        &self,
        loss: Loss,
        n_labels: usize,
        width: usize,
    ) -> Result<(), ClassifierParamsError> {
        let NegativeParams { sampler, uniform, weighting, .. } = self.negatives;
        if let SamplerParams::LshEmbedding(params) | SamplerParams::LshLabel(params) = sampler
            && n_labels > 0
            && width < usize::MAX
        {
            LshParams::sizing(&params, n_labels as u64, width).map_err(SamplerParamsError::from)?;
        }
        self.negatives.check()?;
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
