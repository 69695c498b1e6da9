//! Classifiers: an encoder, a head over the labels, and a loss.
//!
//! ```text
//!   sparse features ──▶ embeddings, summed ─┐                              ┌─▶ head::Dense   every unit per label
//!                                           ├─▶ (dense layers, ReLU) ──────┤
//!                                           │                              ├─▶ head::Sampled the same; a step scores some labels
//!   vectors ────────────────────────────────┘                              └─▶ head::Sparse  a few units per label
//! ```
//!
//! What a classifier consists of is data ([`ClassifierParams`]); values that go together have names ([`KINDS`], and the
//! presets of `xc-train`). All share one file format and one way to answer: labels are ranked by their logits, scores are
//! computed afterwards.
//!
//! ```
//! use xc_sparse::{CsrMatrix, LabelRows};
//! use xc_model::classifier::{Classifier, ClassifierParams, DENSE, EncoderParams, Only};
//! use xc_nn::Rows;
//!
//! let params = ClassifierParams { encoder: EncoderParams::bag([8]), ..ClassifierParams::default() };
//! let model = Classifier::new(DENSE, 100, 20, params)?;
//! let queries = CsrMatrix::try_new((1, 100), vec![0, 2], vec![3, 70], vec![0.6, 0.8])?;
//! let queries = Rows::Sparse(queries.view());
//! let answers = model.predict(queries, 5, Only::All, &mut Default::default())?;
//! assert_eq!(answers.row(0).len(), 5);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # When not to use it
//! For few labels, or labels that are linear in the features, use a tree (`xc-tree`), which trains in
//! seconds. Where even a sparse layer is too large: [`crate::mach`].
//!
//! # References
//! `[schultheis2023uniform]` for the sparse layer. *Differs in*: inputs of the output layer are
//! rounded to bf16; weights may be, down to eight bits; a step may score drawn labels; the encoder
//! may learn.

#[cfg(feature = "cuda")]
mod cuda;
mod encoder;
mod encoding;
mod error;
mod file;
mod input;
mod learning;
mod lists;
mod nearest;
mod output;
mod params;
mod place;
mod precision_fit;
mod predict;
mod scores;
mod tokens;
mod wide;

#[cfg(feature = "cuda")]
pub use cuda::{DeviceClassifier, DevicePredictError};
pub use encoder::{BagParams, EncoderParams, MAX_UNITS, VectorsParams};
pub use error::{ClassifierParamsError, PredictError};
pub use file::OpenClassifierError;
pub use file::WIDE;
#[cfg(feature = "convert")]
pub(crate) use file::{WIDE_FEATURES, WIDE_PREFIX, write_wide};
pub use input::Input;
pub use learning::{ConnectionLearning, EmbeddingInit, LearningParams};
pub use nearest::{LabelIndex, LabelIndexError};
pub use output::{Output, OutputScratch};
pub use params::{CandidateHeadParams, ClassifierParams, HeadParams, SparseHeadParams, Wiring};
pub use precision_fit::LostPrecision;
pub(crate) use predict::Logits;
pub use predict::{BATCH, ClassifierScratch, Only};
pub use tokens::{TokensLearning, TokensParams};
pub use wide::{
    USUAL_MARGIN_WEIGHT, USUAL_WEIGHT, WEIGHTS, Wide, WideLearning, WideParams, WideParts, WideScratch, usual_weight,
};
pub use xc_sparse::rows::InputKind;

use thiserror::Error;
use xc_nn::encoder::Stack;
use xc_nn::{Head, Init, Loss, Network};

/// One output layer over all labels.
pub const DENSE: &str = "dense";
/// A sparse output layer over a wide layer.
pub const UNIFORM: &str = "uniform";
/// An output layer whose steps score some labels.
pub const LNS: &str = "lns";
/// The same with the labels that are most easily mistaken for true ones, and uniform ones.
pub const ASTRA: &str = "astra";

/// Every kind of classifier that a folder can state.
pub const KINDS: [&str; 4] = [DENSE, UNIFORM, LNS, ASTRA];

/// The network of a classifier.
pub type ClassifierNetwork = Network<Stack<Input>, Output>;

/// A network whose outputs are labels, with the loss that ranks them.
#[derive(Clone, Debug)]
pub struct Classifier {
    kind: &'static str,
    params: ClassifierParams,
    n_features: usize,
    network: ClassifierNetwork,
    /// Whether the parameters say how it learns: not where it was opened.
    knows_learning: bool,
    /// Rankers beside the network, over the same features.
    wide: Option<Wide>,
    index: Option<LabelIndex>,
    /// What scores are made by; `None`: the loss.
    scale: Option<ScoreScale>,
}

/// What a score is of a label's logit. Labels are ranked by their logits, whatever it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScoreScale {
    /// What this loss makes of it.
    Of(Loss),
    /// The logit.
    Logit,
}

/// A name that is no scale of scores.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("a network has no post-processor {got:?}; expected one of softmax, sigmoid, l2-hinge and noop")]
pub struct ScoreScaleError {
    /// The name.
    pub got: String,
}

impl std::str::FromStr for ScoreScale {
    type Err = ScoreScaleError;

    fn from_str(name: &str) -> Result<Self, ScoreScaleError> {
        match name {
            "softmax" => Ok(Self::Of(Loss::Softmax)),
            "sigmoid" => Ok(Self::Of(Loss::Bce)),
            "l2-hinge" => Ok(Self::Of(Loss::SquaredHinge)),
            "noop" => Ok(Self::Logit),
            _ => Err(ScoreScaleError { got: name.to_owned() }),
        }
    }
}

/// The kind called so.
fn named(kind: &str) -> Option<&'static str> {
    KINDS.into_iter().find(|known| *known == kind)
}

impl Classifier {
    /// A classifier that has learned nothing, over instances of `n_features` features or values.
    /// `kind` is what its folder will state: one of [`KINDS`].
    ///
    /// # Errors
    /// As [`ClassifierParams::check`].
    ///
    /// # Panics
    /// If there is no such kind.
    pub fn new(
        kind: &str,
        n_features: usize,
        n_labels: usize,
        params: ClassifierParams,
    ) -> Result<Self, ClassifierParamsError> {
        let kind = named(kind).unwrap_or_else(|| panic!("{kind:?} is no kind of classifier"));
        params.check(n_features, n_labels)?;
        let init = Init::Random { seed: params.learning.seed };
        let output = params.output(n_features, n_labels, init)?;
        let network = Network::new(params.encoder(n_features, init), output);
        Ok(Self { kind, params, n_features, network, knows_learning: true, wide: None, index: None, scale: None })
    }

    /// The kind that its folder states.
    pub fn kind(&self) -> &'static str {
        self.kind
    }

    /// Answers with these scores, or with `None` with those of the loss that it was trained with; gives what it was told
    /// before.
    pub fn set_scale(&mut self, scale: Option<ScoreScale>) -> Option<ScoreScale> {
        std::mem::replace(&mut self.scale, scale)
    }

    /// What scores are made of logits: by default what the loss makes of them; with a wide term sigmoids of its logits,
    /// which are no probabilities.
    pub fn scale(&self) -> ScoreScale {
        let loss = if self.wide.is_some() { Loss::Bce } else { self.params.loss };
        self.scale.unwrap_or(ScoreScale::Of(loss))
    }

    /// The wide term, where there is one.
    pub fn wide(&self) -> Option<&Wide> {
        self.wide.as_ref()
    }

    /// Answers with a wide term from now on, or without.
    ///
    /// # Panics
    /// If instances are vectors, or the term is of other labels, or of other features where instances have them.
    pub fn set_wide(&mut self, wide: Option<Wide>) {
        if let Some(wide) = &wide {
            let input = self.params.encoder.input();
            assert!(input != InputKind::Dense, "a wide term of vectors");
            // Beside tokens stand features of their own.
            let n_features = if input == InputKind::Sparse { self.n_features } else { wide.rankers.n_features() };
            let (got, expected) = ((wide.rankers.n_labels(), wide.rankers.n_features()), (self.n_labels(), n_features));
            assert_eq!(got, expected, "labels and features of the wide term");
        }
        self.wide = wide;
    }

    /// What it is made of.
    pub fn params(&self) -> &ClassifierParams {
        &self.params
    }

    /// Number of features of an instance, or values of a vector.
    pub fn n_features(&self) -> usize {
        self.n_features
    }

    /// Number of labels.
    pub fn n_labels(&self) -> usize {
        self.network.head().labels().len()
    }

    /// The network.
    pub fn network(&self) -> &ClassifierNetwork {
        &self.network
    }

    /// The network, to be trained.
    pub fn network_mut(&mut self) -> &mut ClassifierNetwork {
        &mut self.network
    }

    /// The transformer below the head, where instances are tokens.
    pub fn transformer(&self) -> Option<&xc_nn::encoder::transformer::Transformer> {
        match self.network.encoder().below() {
            Input::Tokens(transformer) => Some(transformer),
            _ => None,
        }
    }

    /// The transformer below the head, to be changed, where instances are tokens.
    pub fn transformer_mut(&mut self) -> Option<&mut xc_nn::encoder::transformer::Transformer> {
        match self.network.encoder_mut().below_mut() {
            Input::Tokens(transformer) => Some(transformer),
            _ => None,
        }
    }
}

impl ClassifierParams {
    /// As `config.json` keeps what answers depend on.
    pub(crate) fn to_value(&self) -> serde_json::Value {
        // Numbers and names only.
        xc_store::to_parameter(self)
    }
}
