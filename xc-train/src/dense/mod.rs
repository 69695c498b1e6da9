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

pub use file::KIND;

use crate::head::each_row;
use crate::shape::{BagNetwork, NetworkParams, Room, begin_at_prior};
use crate::step::in_memory;
use crate::trainer::{Sample, Summary, TrainError};
use crate::{Features, Init, Trainer};
use xc_sparse::rank::{LabelId, RankedBatch, Scored, TopK};
use xc_sparse::{CsrView, Rows};

/// A network whose outputs are the labels.
#[derive(Clone, Debug)]
pub struct DenseModel {
    params: NetworkParams,
    network: BagNetwork,
}

/// Queries that are scored together.
const BATCH: usize = 256;

impl DenseModel {
    /// A network that has learned nothing.
    ///
    /// # Panics
    /// If [`NetworkParams::check`] fails.
    pub fn new(n_features: usize, n_labels: usize, params: NetworkParams) -> Self {
        let network = params.network(n_features, n_labels, Init::Random { seed: params.seed });
        Self { params, network }
    }

    /// Puts the biases of the labels at how often each is true in a sample: part of the first values, so it comes before the
    /// training.
    pub fn begin(&mut self, train: &Sample<'_>) {
        begin_at_prior(&mut self.network, train, self.params.loss);
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
    pub fn params(&self) -> &NetworkParams {
        &self.params
    }

    /// Number of features of a query.
    pub fn n_features(&self) -> usize {
        self.network.encoder().below().n_features()
    }

    /// Number of labels.
    pub fn n_labels(&self) -> usize {
        crate::Head::labels(self.network.head()).len()
    }

    /// The network.
    pub fn network(&self) -> &BagNetwork {
        &self.network
    }

    /// The `k` best labels of each query, scored as the loss says: probabilities for softmax.
    ///
    /// *Cost*: all labels of every query; O(labels * width) multiplications each.
    ///
    /// # Panics
    /// If queries have another number of features.
    pub fn predict_batch(&self, queries: CsrView<'_>, k: usize) -> RankedBatch {
        self.ranked(queries, |_, scores, top| {
            top.reset(k);
            scores.iter().zip(0..).for_each(|(&score, label)| top.push(Scored { label, score }));
        })
    }

    /// The `k` best of the labels that `candidates` gives for the query of this number.
    ///
    /// *Cost*: that of [`DenseModel::predict_batch`].
    ///
    /// # Panics
    /// If queries have another number of features, or a candidate is not below `n_labels()`.
    pub fn predict_candidates<'c>(
        &self,
        queries: CsrView<'_>,
        candidates: impl Fn(usize) -> &'c [LabelId] + Sync,
        k: usize,
    ) -> RankedBatch {
        self.ranked(queries, |query, scores, top| {
            top.reset(k);
            candidates(query).iter().for_each(|&label| top.push(Scored { label, score: scores[label as usize] }));
        })
    }

    fn ranked(&self, queries: CsrView<'_>, choose: impl Fn(usize, &[f32], &mut TopK) + Sync) -> RankedBatch {
        let features = Features::Sparse(Rows::new(queries));
        let Room { mut batch, mut logits, mut workspace } = Room::default();
        let loss = self.params.loss;
        let mut out = RankedBatch::new();
        for first in (0..features.len()).step_by(BATCH) {
            batch.fill_features(features, first..features.len().min(first + BATCH));
            in_memory(self.network.logits(&batch, &mut logits, &mut workspace));
            let ranked = each_row(&mut logits, |at, row, top| {
                loss.scores(row);
                choose(first + at, row, top);
                top.sorted().to_vec()
            });
            ranked.iter().for_each(|row| out.push_row(row));
        }
        out
    }
}
