//! Answers.

use super::{Input, Output, UniformModel};
use crate::encoder::Stack;
use crate::head::{Sparse, each_row};
use crate::step::in_memory;
use crate::{Activations, Batch, Encoder, Features, Head, Loss, Mode, Parameter, Scratch};
use rayon::prelude::*;
use xc_sparse::rank::{LabelId, RankedBatch, Scored, TopK};
use xc_sparse::uniform::LANES;

/// Buffers of answering; they grow to the largest batch and stay.
#[derive(Default)]
pub struct UniformScratch {
    batch: Batch,
    vectors: Activations,
    logits: Activations,
    workspace: Scratch<Stack<Input>, Output>,
    encoder: <Stack<Input> as Encoder>::Scratch,
}

/// Queries that are scored together.
const BATCH: usize = 256;

impl UniformModel {
    /// The `k` best labels of each query, scored as the loss says.
    ///
    /// *Cost*: all labels of every query, `s` multiplications each; matrices of logits exist for a dense output layer alone. Up to 32 queries
    /// cost what one does in the output layer. One query is shared by all threads.
    ///
    /// # Panics
    /// If queries are not of the kind and width that the model wants.
    pub fn predict_batch(&self, queries: Features<'_>, k: usize, scratch: &mut UniformScratch) -> RankedBatch {
        let mut out = RankedBatch::new();
        let loss = self.params.loss;
        for first in (0..queries.len()).step_by(BATCH) {
            scratch.batch.fill_features(queries, first..queries.len().min(first + BATCH));
            if !loss.is_separable() {
                self.push_by_logits(scratch, &mut out, |_, scores, top| {
                    top.reset(k);
                    scores.iter().zip(0..).for_each(|(&score, label)| top.push(Scored { label, score }));
                });
                continue;
            }
            for mut ranked in in_memory(self.network.rank(&scratch.batch, None, k, &mut scratch.workspace)) {
                show(&mut ranked.best, loss);
                out.push_row(&ranked.best);
            }
        }
        out
    }

    /// The `k` best of the labels that `candidates` gives for the query of this number; scores are those of
    /// [`UniformModel::predict_batch`].
    ///
    /// *Cost*: the layers below, then the labels that are a candidate of any of 32 queries.
    ///
    /// # Panics
    /// If queries are not of the kind and width that the model wants, or a candidate is not below `n_labels()`.
    pub fn predict_candidates<'c>(
        &self,
        queries: Features<'_>,
        candidates: impl Fn(usize) -> &'c [LabelId] + Sync,
        k: usize,
        scratch: &mut UniformScratch,
    ) -> RankedBatch {
        let mut out = RankedBatch::new();
        let loss = self.params.loss;
        for first in (0..queries.len()).step_by(BATCH) {
            scratch.batch.fill_features(queries, first..queries.len().min(first + BATCH));
            let (Output::Sparse(sparse), true) = (self.network.head(), loss.is_separable()) else {
                self.push_by_logits(scratch, &mut out, |at, scores, top| {
                    top.reset(k);
                    candidates(first + at)
                        .iter()
                        .for_each(|&label| top.push(Scored { label, score: scores[label as usize] }));
                });
                continue;
            };
            let UniformScratch { batch, vectors, encoder, .. } = scratch;
            in_memory(self.network.encoder().forward(batch, Mode::Predict, vectors, encoder));
            let blocks: Vec<usize> = (0..batch.len()).step_by(LANES).collect();
            let answers: Vec<Vec<Vec<Scored>>> = blocks
                .into_par_iter()
                .map(|from| {
                    let rows = from..batch.len().min(from + LANES);
                    let lists: Vec<&[LabelId]> = rows.clone().map(|at| candidates(first + at)).collect();
                    choose(sparse, vectors, rows.start, &lists, k)
                })
                .collect();
            for mut row in answers.into_iter().flatten() {
                show(&mut row, loss);
                out.push_row(&row);
            }
        }
        out
    }

    /// Answers the batch of the scratch from a matrix of scores.
    fn push_by_logits(
        &self,
        scratch: &mut UniformScratch,
        out: &mut RankedBatch,
        choose: impl Fn(usize, &[f32], &mut TopK) + Sync,
    ) {
        let UniformScratch { batch, logits, workspace, .. } = scratch;
        in_memory(self.network.logits(batch, logits, workspace));
        let loss = self.params.loss;
        let ranked = each_row(logits, |at, row, top| {
            loss.scores(row);
            choose(at, row, top);
            top.sorted().to_vec()
        });
        ranked.iter().for_each(|row| out.push_row(row));
    }
}

/// The best of the candidates of up to [`LANES`] queries by their logits: a layer of the labels that are any query's candidate scores all
/// of them side by side.
fn choose(sparse: &Sparse, vectors: &Activations, first: usize, lists: &[&[LabelId]], k: usize) -> Vec<Vec<Scored>> {
    let mut labels = lists.concat();
    labels.sort_unstable();
    labels.dedup();
    let mut bias = Parameter::zeros(labels.len(), 1, crate::Decay::No);
    let biases = sparse.bias().values();
    bias.values_mut().iter_mut().zip(&labels).for_each(|(to, &label)| *to = biases[label as usize]);
    let some = Sparse::from_parts(*sparse.params(), sparse.connections().select(&labels), bias);
    let width = vectors.width();
    let mut input = Activations::default();
    input.reshape(lists.len(), width);
    input.values_mut().copy_from_slice(&vectors.values()[first * width..(first + lists.len()) * width]);
    let mut logits = Activations::default();
    in_memory(some.logits(&input, &mut logits, &mut Default::default()));
    let mut top = TopK::new(k);
    let rows = lists.iter().enumerate().map(|(at, list)| {
        top.reset(k);
        for &label in *list {
            let place = labels.partition_point(|&other| other < label);
            top.push(Scored { label, score: logits.values()[at * labels.len() + place] });
        }
        top.sorted().to_vec()
    });
    rows.collect()
}

/// Logits, best first, become scores. Where the loss gives two labels the same score, though one logit is larger, the scores are set one step
/// of f32 apart: a file of answers keeps the order that way.
fn show(row: &mut [Scored], loss: Loss) {
    let mut scores: Vec<f32> = row.iter().map(|s| s.score).collect();
    loss.scores(&mut scores);
    let mut above: Option<(f32, f32)> = None;
    for (item, score) in row.iter_mut().zip(scores) {
        let logit = item.score;
        item.score = match above {
            Some((higher, shown)) if logit < higher && score >= shown && shown > 0.0 => shown.next_down(),
            // Equal logits share what was shown.
            Some((higher, shown)) if logit == higher => shown,
            _ => score,
        };
        above = Some((logit, item.score));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scores_keep_the_order_of_logits_that_a_loss_does_not_tell_apart() {
        let mut row: Vec<Scored> = [3.0, 2.0, 2.0, 1.5, 0.0, -40.0, -41.0]
            .iter()
            .zip(0..)
            .map(|(&score, label)| Scored { label, score })
            .collect();
        show(&mut row, Loss::SquaredHinge);
        let scores: Vec<f32> = row.iter().map(|s| s.score).collect();
        assert_eq!(scores[0], 1.0);
        assert_eq!(scores[1], scores[2]);
        assert!(scores[0] > scores[1] && scores[2] > scores[3] && scores[3] > 0.9999 && scores[3] > scores[4]);
        assert!((scores[4] - (-1.0f32).exp()).abs() < 1e-6);
        assert_eq!(&scores[5..], [0.0, 0.0]);
    }
}
