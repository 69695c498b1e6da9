//! The baseline: a network with one output a label.
//!
//! ```text
//!   sparse features ──▶ Bag ──▶ (dense layers) ──▶ head::Dense, one row a label ──▶ exact scan for the best k
//! ```
//!
//! # When not to use it
//! Weights, their moments and every step grow with labels * width; from some hundred thousand labels on this is what the
//! other systems avoid.

mod file;

pub use file::{KIND, OpenDenseError};

use crate::encoder::{Bag, Stack};
use crate::loss::{Bce, Softmax, SquaredHinge};
use crate::trainer::{Sample, Summary, TrainError};
use crate::{Activation, Activations, Batch, Features, Loss, Network, Trainer, Workspace, head};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use xc_sparse::CsrView;
use xc_sparse::Rows;
use xc_sparse::rank::{RankedBatch, Scored, TopK};

/// Shape of the network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DenseParams {
    /// Widths: that of the bag, then of each dense layer above it. Default: one of 512 (a guess).
    pub widths: Vec<usize>,
    /// Chance that a hidden value is dropped in training, in [0, 1). Default 0.
    pub dropout: f32,
    /// Default: softmax.
    pub loss: LossKind,
    /// Names the streams of first values. Default 0.
    pub seed: u64,
}

impl Default for DenseParams {
    fn default() -> Self {
        Self { widths: vec![512], dropout: 0.0, loss: LossKind::Softmax, seed: 0 }
    }
}

/// A loss by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LossKind {
    /// [`Softmax`].
    Softmax,
    /// [`Bce`].
    Bce,
    /// [`SquaredHinge`].
    SquaredHinge,
}

impl LossKind {
    /// The loss.
    pub fn loss(self) -> &'static dyn Loss {
        match self {
            Self::Softmax => &Softmax,
            Self::Bce => &Bce,
            Self::SquaredHinge => &SquaredHinge,
        }
    }
}

/// A network whose outputs are the labels.
#[derive(Clone, Debug)]
pub struct DenseModel {
    params: DenseParams,
    network: Network<Stack<Bag>, head::Dense>,
}

/// Queries that are scored together.
const BATCH: usize = 256;

impl DenseModel {
    /// A network that has learned nothing.
    ///
    /// # Panics
    /// If there is no width, or dropout is not in [0, 1).
    pub fn new(n_features: usize, n_labels: usize, params: DenseParams) -> Self {
        assert!(!params.widths.is_empty(), "no width, wanted at least that of the bag");
        let DenseParams { ref widths, dropout, seed, .. } = params;
        let mut encoder = Stack::new(Bag::new(n_features, widths[0], Activation::Relu, dropout, seed));
        for &width in &widths[1..] {
            encoder = encoder.push(width, Activation::Relu, dropout, seed);
        }
        let head = head::Dense::new(n_labels, widths[widths.len() - 1], seed);
        Self { params, network: Network::new(encoder, head) }
    }

    /// Trains; the trainer's loss should be that of the parameters.
    ///
    /// # Errors
    /// As [`Trainer::train`].
    pub fn train(
        &mut self,
        trainer: &mut Trainer<'_>,
        train: &Sample<'_>,
        validation: Option<&Sample<'_>>,
    ) -> Result<Summary, TrainError> {
        trainer.train(&mut self.network, train, validation)
    }

    /// The shape.
    pub fn params(&self) -> &DenseParams {
        &self.params
    }

    /// Number of features of a query.
    pub fn n_features(&self) -> usize {
        self.network.encoder().below().n_features()
    }

    /// Number of labels.
    pub fn n_labels(&self) -> usize {
        crate::Head::n_outputs(self.network.head())
    }

    /// The network.
    pub fn network(&self) -> &Network<Stack<Bag>, head::Dense> {
        &self.network
    }

    /// The `k` best labels of each query, scored as the loss says: probabilities for softmax.
    ///
    /// *Cost*: all labels of every query; O(labels * width) multiplications each.
    ///
    /// # Panics
    /// If queries have another number of features.
    pub fn predict_batch(&self, queries: CsrView<'_>, k: usize) -> RankedBatch {
        let features = Features::Sparse(Rows::new(queries));
        let (mut batch, mut logits, mut workspace) = (Batch::default(), Activations::default(), Workspace::default());
        let loss = self.params.loss.loss();
        let mut out = RankedBatch::new();
        for first in (0..features.len()).step_by(BATCH) {
            batch.fill_features(features, first..features.len().min(first + BATCH));
            self.network.logits(&batch, &mut logits, &mut workspace);
            let rows = logits.values_mut().par_chunks_exact_mut(self.n_labels().max(1));
            let ranked: Vec<Vec<Scored>> = rows
                .map(|row| {
                    loss.scores(row);
                    let mut top = TopK::new(k);
                    row.iter().zip(0..).for_each(|(&score, label)| top.push(Scored { label, score }));
                    top.sorted().to_vec()
                })
                .collect();
            ranked.iter().for_each(|row| out.push_row(row));
        }
        out
    }
}
