//! What is impossible about a classifier, and why it has no answer.

use thiserror::Error;
use xc_buffer::dtype::DType;
use xc_nn::sampler::SamplerParamsError;
use xc_sparse::rank::LabelId;
use xc_sparse::rows::WrongInput;
use xc_sparse::uniform::ConnectionsError;

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
    /// A loss that no file can name.
    #[error("loss {got:?} of your own, expected softmax, bce, nce or squared-hinge; xc_nn::Network takes any loss")]
    OwnLoss {
        /// Its name.
        got: &'static str,
    },
    /// A sampler that is impossible.
    #[error(transparent)]
    Sampler(#[from] SamplerParamsError),
    /// A sparse layer has no row of weights for each label.
    #[error("a sampler that looks for labels by their weights, expected one that does not: the layer is sparse")]
    NeedsRows,
    /// A transformer, in a build without it.
    #[error("an encoder of tokens of texts, which this build lacks (feature transformer)")]
    NoTransformer,
    /// A transformer that is impossible, or cannot learn so.
    #[error("transformer: {0}")]
    Transformer(#[from] xc_nn::encoder::transformer::TransformerParamsError),
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
    /// More connections per label than units, or none.
    #[error(transparent)]
    Connections(#[from] ConnectionsError),
    /// Moments of a type that is too coarse for them.
    #[error("moments of {}, expected f32 or bf16", got.short_name())]
    Moments {
        /// The type.
        got: DType,
    },
    /// Rankers of a wide term in a type that is not made for them.
    #[error("wide.precision is {}, expected f32, bf16 or f16", got.short_name())]
    Rankers {
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

/// Why a query has no answer.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum PredictError {
    /// Its values are so large that logits are not finite.
    #[error("query {query}: its values are too large: logits are not finite")]
    NotFinite {
        /// Number of the query, from 0.
        query: usize,
    },
    /// A vector for a classifier of sparse features, or the other way round.
    #[error(transparent)]
    Kind(#[from] WrongInput),
    /// Another number of features or values.
    #[error("queries of {got} {unit}, expected {expected}")]
    Width {
        /// Of the queries.
        got: usize,
        /// Of the classifier.
        expected: usize,
        /// What is counted.
        unit: &'static str,
    },
    /// A feature that is none.
    #[error("feature {feature} is out of range, expected an id below {n_features}")]
    Feature {
        /// The feature.
        feature: u32,
        /// Number of features.
        n_features: usize,
    },
    /// Tokens alone, where a wide term needs features of the words.
    #[error("query {query}: tokens alone, expected features of its words beside them: the network has a wide term")]
    NoWords {
        /// Number of the query, from 0.
        query: usize,
    },
    /// Features of words that are not those of the wide term.
    #[error("queries with {got} features of words, expected {expected}")]
    Words {
        /// Of the queries.
        got: usize,
        /// Of the wide term.
        expected: usize,
    },
    /// More tokens than there are positions.
    #[error("query {query}: {got} tokens, expected at most {most}")]
    TooManyTokens {
        /// Number of the query, from 0.
        query: usize,
        /// Its tokens.
        got: usize,
        /// Positions.
        most: usize,
    },
    /// A candidate that is no label.
    #[error("query {query}: candidate {label} is out of range, expected an id below {n_labels}")]
    Candidate {
        /// Number of the query, from 0.
        query: usize,
        /// The candidate.
        label: LabelId,
        /// Number of labels.
        n_labels: usize,
    },
}

pub(super) fn number(name: &'static str, got: f64, expected: &'static str) -> Result<(), ClassifierParamsError> {
    Err(ClassifierParamsError::Number { name, got, expected })
}
