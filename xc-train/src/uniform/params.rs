//! Shape of a uniform model, and what is impossible about one.

use super::{Input, Output};
use crate::encoder::{Bag, Precomputed, Stack};
use crate::head::grouped::Groups;
use crate::head::sparse::{Rewire, Screening, SparseParams, UniformNegatives};
use crate::head::{Dense, Sparse};
use crate::shape::{NamedShape, push_layer};
use crate::{Activation, Init, Loss, Network};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use thiserror::Error;
use xc_sparse::dense::MatmulPrecision;
use xc_sparse::uniform::{ConnectionsError, NumberType, check_shape};

/// Connections of a group: enough to send its gradient to many units, few beside those of the labels.
pub(super) const GROUP_CONNECTIONS: usize = 256;

/// The network of a uniform model.
pub type UniformNetwork = Network<Stack<Input>, Output>;

/// What a query is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InputKind {
    /// Weighted features, whose learned vectors are summed.
    #[default]
    Sparse,
    /// A vector that was computed elsewhere.
    Dense,
}

/// The values that the vectors of sparse features begin with, and what becomes of their sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FirstVectors {
    /// Random values; sums go through a ReLU.
    #[default]
    Random,
    /// Leading directions of the training rows, as latent semantic analysis finds them; sums are handed on as they are.
    Leading,
}

impl FirstVectors {
    /// Share of the learning rate at which such vectors learn unless something else is asked for. A tenth is a guess.
    pub fn usual_rate(self) -> f32 {
        match self {
            Self::Random => 1.0,
            Self::Leading => 0.1,
        }
    }
}

/// Which units a label is connected with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wiring {
    /// Equally many for every label.
    #[default]
    Uniform,
    /// As many on average, more for some labels than for others.
    Unstructured,
    /// All of them: an ordinary output layer.
    Dense,
}

/// Shape of a uniform model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UniformParams {
    /// What a query is. Default: sparse.
    pub input: InputKind,
    /// Widths of the layers below the intermediate one: of sparse features first the width of the bag. Default: one of 512 (a guess);
    /// vectors need none.
    pub widths: Vec<usize>,
    /// How the vectors of sparse features begin (the lowest of the widths). Default: leading directions, which generalise better below an intermediate
    /// layer; a stored model that does not say it: random.
    #[serde(default)]
    pub first_vectors: FirstVectors,
    /// Share of the learning rate at which they and the bag's bias learn; 0: they stay. Default: [`FirstVectors::usual_rate`] of leading directions, a stored
    /// model that does not say it: of random vectors.
    #[serde(default = "rate_of_random")]
    pub vector_rate: f32,
    /// Chance that a value that comes in is dropped in training: of a vector, or of the bag's sums. Default 0.1 (the paper: 0.1 to 0.2).
    pub input_dropout: f32,
    /// The same of the values of every layer above. Default 0.
    pub hidden_dropout: f32,
    /// Units of the intermediate layer (ReLU), H; none: the output layer stands on what is below. Default 32,768.
    pub intermediate: Option<usize>,
    /// Connections of a label, s; on average where labels differ, of no meaning where all are connected. Default 32.
    pub connections: usize,
    /// Default: uniform.
    pub wiring: Wiring,
    /// Type of the weights of connections. Default f32; all that a dense output layer has.
    pub weights: NumberType,
    /// Type of their moments, f32 or bf16. Default f32.
    pub moments: NumberType,
    /// What dense layers multiply. Default: bf16; a stored model that does not say it: f32.
    #[serde(default)]
    pub products: MatmulPrecision,
    /// Whether steps screen labels in 8 bits where that pays (see [`crate::head::sparse::Screening`]); only with the squared hinge, and not where gradients
    /// are clipped. Default: yes; a stored model that does not say it: no.
    #[serde(default)]
    pub screening: bool,
    /// Steps between two changes of the connections; 0: they stay. Default 1000 (the paper's, for batches of 32).
    pub rewire_every: u64,
    /// Share of the connections that are replaced, the weakest. Default 0.1 (the paper's).
    pub rewire_fraction: f64,
    /// Labels drawn for a step, evenly, beside those that are true in its batch; none: a step scores all labels.
    pub negatives: Option<usize>,
    /// Groups of labels that are learned beside the labels at first (see [`crate::head::grouped`]); none: no groups. Default: none.
    pub groups: Option<usize>,
    /// Epochs after which they no longer matter. Default 3 (a guess).
    pub group_epochs: u32,
    /// Default: squared hinge.
    pub loss: Loss,
    /// Names the streams of first values. Default 0.
    pub seed: u64,
}

impl Default for UniformParams {
    fn default() -> Self {
        Self {
            input: InputKind::Sparse,
            widths: vec![512],
            first_vectors: FirstVectors::Leading,
            vector_rate: FirstVectors::Leading.usual_rate(),
            input_dropout: 0.1,
            hidden_dropout: 0.0,
            intermediate: Some(32_768),
            connections: 32,
            wiring: Wiring::Uniform,
            weights: NumberType::F32,
            moments: NumberType::F32,
            products: MatmulPrecision::Bf16,
            screening: true,
            rewire_every: 1000,
            rewire_fraction: 0.1,
            negatives: None,
            groups: None,
            group_epochs: 3,
            loss: Loss::SquaredHinge,
            seed: 0,
        }
    }
}

/// A model that is impossible.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum UniformParamsError {
    /// A layer without units, or no layer at all.
    #[error("widths {met:?}, wanted {wanted}")]
    Widths {
        /// The widths.
        met: Vec<usize>,
        /// What they may be.
        wanted: &'static str,
    },
    /// A number outside its range.
    #[error("{name} is {met}, wanted {wanted}")]
    Number {
        /// Which.
        name: &'static str,
        /// Its value.
        met: f64,
        /// What it may be.
        wanted: &'static str,
    },
    /// More connections of a label than units, or none.
    #[error(transparent)]
    Connections(#[from] ConnectionsError),
    /// Moments of a type that is too coarse for them.
    #[error("moments of {}, wanted f32 or bf16", met.name())]
    Moments {
        /// The type.
        met: NumberType,
    },
    /// Something that a dense output layer does not have.
    #[error("a dense output layer has no {what}; wanted {wanted}")]
    Dense {
        /// What.
        what: &'static str,
        /// What is possible.
        wanted: &'static str,
    },
    /// More connections than rewiring can number.
    #[error("{labels} labels of {per_label} connections, wanted fewer than 2^32 connections in all, or no rewiring")]
    TooMany {
        /// Labels.
        labels: usize,
        /// Connections of each.
        per_label: usize,
    },
}

impl UniformParams {
    /// Says whether there is such a model of queries of `n_features` (features, or values of a vector) and so many labels.
    ///
    /// # Errors
    /// The first thing that is impossible.
    pub fn check(&self, n_features: usize, n_labels: usize) -> Result<(), UniformParamsError> {
        let needs_one = self.input == InputKind::Sparse;
        if self.widths.contains(&0) || (needs_one && self.widths.is_empty()) {
            let wanted = if needs_one { "at least one width, none of them 0" } else { "no width of 0" };
            return Err(UniformParamsError::Widths { met: self.widths.clone(), wanted });
        }
        if !needs_one && n_features == 0 {
            return number("the width of the vectors", 0.0, "at least 1");
        }
        for (name, rate) in [("input_dropout", self.input_dropout), ("hidden_dropout", self.hidden_dropout)] {
            if !(0.0..1.0).contains(&rate) {
                return number(name, f64::from(rate), "a rate from 0 to below 1");
            }
        }
        if !(self.vector_rate >= 0.0 && self.vector_rate.is_finite()) {
            return number("vector_rate", f64::from(self.vector_rate), "a share of the learning rate, 0 or more");
        }
        if self.intermediate == Some(0) {
            return number("intermediate", 0.0, "at least 1 unit, or no intermediate layer");
        }
        if !(0.0..=1.0).contains(&self.rewire_fraction) {
            return number("rewire_fraction", self.rewire_fraction, "a share from 0 to 1");
        }
        if self.negatives == Some(0) {
            return number("negatives", 0.0, "at least 1");
        }
        if self.groups == Some(0) {
            return number("groups", 0.0, "at least 1, or none");
        }
        if !matches!(self.moments, NumberType::F32 | NumberType::Bf16) {
            return Err(UniformParamsError::Moments { met: self.moments });
        }
        match self.wiring {
            Wiring::Dense => self.check_dense(),
            Wiring::Uniform | Wiring::Unstructured => self.check_sparse(n_features, n_labels),
        }
    }

    fn check_dense(&self) -> Result<(), UniformParamsError> {
        let refuse = |what, wanted| Err(UniformParamsError::Dense { what, wanted });
        if self.weights != NumberType::F32 {
            return refuse("weights of low precision", "f32");
        }
        if self.moments != NumberType::F32 {
            return refuse("moments of low precision", "f32");
        }
        if self.groups.is_some() {
            return refuse("groups of labels beside it", "none");
        }
        if self.negatives.is_some() {
            return refuse("choice of negatives", "all labels in each step");
        }
        Ok(())
    }

    fn check_sparse(&self, n_features: usize, n_labels: usize) -> Result<(), UniformParamsError> {
        let (per_label, n_inputs) = (self.connections, self.top_width(n_features));
        check_shape(n_inputs, per_label)?;
        let all = n_labels.saturating_mul(per_label);
        if self.rewire().is_some() && all >= u32::MAX as usize {
            return Err(UniformParamsError::TooMany { labels: n_labels, per_label });
        }
        Ok(())
    }

    /// Width of what the output layer stands on.
    pub fn top_width(&self, n_features: usize) -> usize {
        self.intermediate.or(self.widths.last().copied()).unwrap_or(n_features)
    }

    /// Widths of all dense layers: above the bag, or above the vectors.
    pub(super) fn layer_widths(&self) -> impl Iterator<Item = usize> + '_ {
        let below = match self.input {
            InputKind::Sparse => 1,
            InputKind::Dense => 0,
        };
        self.widths.iter().skip(below).copied().chain(self.intermediate)
    }

    /// Whether leading directions of the training rows are sought before the training.
    pub fn seeks_directions(&self) -> bool {
        self.input == InputKind::Sparse && self.first_vectors == FirstVectors::Leading
    }

    /// How connections change.
    pub fn rewire(&self) -> Option<Rewire> {
        let Self { rewire_every: every, rewire_fraction: fraction, .. } = *self;
        (every > 0 && fraction > 0.0).then_some(Rewire { every, fraction })
    }

    /// What the sparse output layer is; none where it is dense.
    pub fn sparse(&self) -> Option<SparseParams> {
        let uniform = match self.wiring {
            Wiring::Uniform => true,
            Wiring::Unstructured => false,
            Wiring::Dense => return None,
        };
        let Self { connections: per_output, weights, moments, .. } = *self;
        Some(SparseParams { per_output, uniform, weights, moments, rewire: self.rewire() })
    }

    /// How groups of labels are learned beside them in a training of so many instances: `of` has each label's group.
    pub(super) fn grouping(&self, of: Arc<[u32]>, n_train: usize, batch_size: usize) -> Groups {
        let n = of.iter().max().map_or(0, |&group| group as usize + 1);
        let steps = n_train.div_ceil(batch_size.max(1)) as u64 * u64::from(self.group_epochs);
        Groups { of, n, connections: GROUP_CONNECTIONS, weight: 1.0, steps }
    }

    /// The layers below the output layer.
    pub(super) fn encoder(&self, n_features: usize, first: Init) -> Stack<Input> {
        let input = match self.input {
            InputKind::Sparse => {
                let (activation, first) = match self.first_vectors {
                    FirstVectors::Random => (Activation::Relu, first),
                    FirstVectors::Leading => (Activation::Identity, Init::Zeros),
                };
                let bag = Bag::new(n_features, self.widths[0], activation, self.input_dropout, first);
                Input::Bag(bag)
            }
            InputKind::Dense => Input::Vectors(Precomputed::new(n_features).with_dropout(self.input_dropout)),
        };
        self.layer_widths()
            .fold(Stack::new(input).with_share_below(self.vector_rate), |below, width| {
                below.push(width, Activation::Relu, self.hidden_dropout, first)
            })
            .with_products(self.products)
    }

    /// The output layer, first values drawn.
    pub(super) fn output(&self, n_features: usize, n_labels: usize, first: Init) -> Result<Output, UniformParamsError> {
        let width = self.top_width(n_features);
        let Some(params) = self.sparse() else {
            return Ok(Output::Dense(Dense::new(n_labels, width, first).with_products(self.products)));
        };
        let sparse = Sparse::new(n_labels, width, params, first)?;
        Ok(Output::Sparse(self.as_trained(sparse)))
    }

    /// Whether steps may screen labels.
    pub(super) fn screens(&self) -> bool {
        self.screening && self.wiring != Wiring::Dense && self.loss == Loss::SquaredHinge
    }

    /// The layer with what a step does.
    pub(super) fn as_trained(&self, sparse: Sparse) -> Sparse {
        let negatives = self.negatives.map(|per_step| Arc::new(UniformNegatives { per_step }) as _);
        let screening = if self.screens() { Screening::WherePays } else { Screening::Never };
        sparse.with_negatives(negatives).with_screening(screening)
    }

    /// Names and shapes of the arrays of the layers below the output layer, in the order of their parameters.
    pub(super) fn encoder_arrays(&self, n_features: usize) -> Vec<NamedShape> {
        let mut out = Vec::new();
        let mut width = n_features;
        if self.input == InputKind::Sparse {
            width = self.widths[0];
            out.push(("bag.table".to_owned(), [n_features, width]));
            out.push(("bag.bias".to_owned(), [width, 1]));
        }
        for (below, units) in self.layer_widths().enumerate() {
            push_layer(&mut out, &format!("layer{}", below + 1), units, width);
            width = units;
        }
        out
    }
}

fn rate_of_random() -> f32 {
    FirstVectors::Random.usual_rate()
}

fn number(name: &'static str, met: f64, wanted: &'static str) -> Result<(), UniformParamsError> {
    Err(UniformParamsError::Number { name, met, wanted })
}
