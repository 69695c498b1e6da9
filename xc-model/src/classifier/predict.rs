//! Answers: labels ranked by their logits, then scored.

use super::error::PredictError;
use super::nearest::{LabelIndex, NearScratch};
use super::place::{ChooseScratch, EncoderScratch, NetworkScratch, Place};
use super::scores::{Scores, rivals};
use super::wide::{WideParts, WideScratch, strength};
use super::{Classifier, InputKind, Output, ScoreScale};
use rayon::prelude::*;
use std::ops::Range;
use xc_buffer::parallel::in_pool;
use xc_nn::head::sparse::OneScratch;
use xc_nn::head::{Ranked, RowRank, RowScratch, each_row};
use xc_nn::in_memory;
use xc_nn::loss::Total;
use xc_nn::{Activations, Batch, Loss, Row, Rows};
use xc_sparse::LabelRows;
use xc_sparse::rank::{LabelId, RankedBatch, Scored};
use xc_sparse::rows::WrongInput;
use xc_sparse::uniform::LANES;

/// Which labels may be answered.
#[derive(Clone, Copy, Debug)]
pub enum Only<'a> {
    /// Every label.
    All,
    /// These, for every query.
    Labels(&'a [LabelId]),
    /// Those that the classifier's index finds; every label where it has none.
    Near(xc_ann::Scope),
    /// For each query those of its own row.
    Rows {
        /// The rows.
        rows: &'a LabelRows,
        /// Which of them is the first query's.
        first: usize,
    },
}

impl<'a> Only<'a> {
    /// The labels for a query; `None` for all.
    pub fn of(self, query: usize) -> Option<&'a [LabelId]> {
        match self {
            Self::All | Self::Near(_) => None,
            Self::Labels(labels) => Some(labels),
            Self::Rows { rows, first } => Some(rows.row(first + query)),
        }
    }
}

/// Buffers of answering; they grow to the largest batch and stay.
#[derive(Default)]
pub struct ClassifierScratch {
    batch: Batch,
    vectors: Activations,
    logits: Activations,
    network: NetworkScratch,
    encoder: EncoderScratch,
    ranked: Ranked,
    ranks: RowScratch,
    one: OneScratch,
    row: Vec<Scored>,
    list: Vec<Scored>,
    scores: Scores,
    near: NearScratch,
    wide: WideScratch,
}

/// Queries and their logits under one classifier after the other.
#[derive(Default)]
pub(crate) struct Logits {
    batch: Batch,
    logits: Activations,
    network: NetworkScratch,
}

impl Logits {
    /// Takes one query.
    pub(crate) fn fill_one(&mut self, query: Row<'_>, n_features: usize) {
        self.batch.fill_one(query, n_features);
    }

    /// Takes some queries.
    pub(crate) fn fill(&mut self, queries: Rows<'_>, rows: impl ExactSizeIterator<Item = usize>) {
        self.batch.fill_features(queries, rows);
    }

    /// The logits of every label of the classifier, one row per query.
    pub(crate) fn of(&mut self, classifier: &Classifier) -> &mut [f32] {
        in_memory(classifier.network.logits(&self.batch, &mut self.logits, &mut self.network));
        self.logits.values_mut()
    }
}

/// Queries that are scored together.
pub const BATCH: usize = 256;
/// Fewer queries a thread are answered by all threads together.
const APART: usize = 2 * LANES;
/// Logits that exist at a time, where they do: 64 MiB.
pub(super) const LOGITS: usize = 16 << 20;

impl Classifier {
    /// The `k` best labels of each query, best first. Labels are ranked by their logits; scores are
    /// what the loss makes of them, between 0 and 1, and strictly smaller where the logit is
    /// smaller (by the least step of f32 where the loss does not tell them apart).
    ///
    /// *Cost*: every label of each query; with candidates those of 32 queries together, where the
    /// head is sparse. Up to 32 queries cost what one does in a sparse head. One query is shared by
    /// all threads.
    ///
    /// With [`Only::Near`] the labels that the index finds are scored, from their exact logits; where the
    /// loss compares all labels (softmax) a score is a share among those that were found.
    ///
    /// *Determinism*: the same answers in any batches and at any number of threads.
    ///
    /// # Errors
    /// See [`PredictError`].
    pub fn predict(
        &self,
        queries: Rows<'_>,
        k: usize,
        only: Only<'_>,
        scratch: &mut ClassifierScratch,
    ) -> Result<RankedBatch, PredictError> {
        self.check_width(queries.kind(), queries.width())?;
        if let Rows::Tokens(rows) = queries {
            (0..rows.len()).try_for_each(|query| self.check_length(query, rows.row(query)))?;
            match (&self.wide, rows.words()) {
                (Some(_), None) if !rows.is_empty() => return Err(PredictError::NoWords { query: 0 }),
                (Some(wide), Some(words)) if words.cols() != wide.rankers.n_features() => {
                    let (got, expected) = (words.cols(), wide.rankers.n_features());
                    return Err(PredictError::Words { got, expected });
                }
                _ => {}
            }
        }
        self.check_candidates(queries.len(), only)?;
        // Outside a pool none is started for it.
        let n_threads = if in_pool() { rayon::current_num_threads() } else { 1 };
        let n = queries.len();
        let at_once = |n_tasks: usize| (LOGITS / n_tasks / self.n_labels().max(1)).clamp(1, BATCH);
        // Each thread answers queries of its own where there are enough for all of them.
        let of_each = at_once(n_threads).min(n.div_ceil(n_threads).next_multiple_of(LANES));
        if n_threads == 1 || of_each < APART || n < n_threads * APART {
            return self.predict_at(&self.network, queries, 0..n, at_once(1), k, only, scratch);
        }
        let firsts: Vec<usize> = (0..n).step_by(of_each).collect();
        let answer = |scratch: &mut ClassifierScratch, first: usize| {
            self.predict_at(&self.network, queries, first..n.min(first + of_each), of_each, k, only, scratch)
        };
        let answers: Vec<_> = firsts.into_par_iter().map_init(ClassifierScratch::default, answer).collect();
        let mut out = RankedBatch::new();
        // In order, so that the first error is given.
        answers.into_iter().try_for_each(|answers| answers.map(|answers| out.append(&answers)))?;
        Ok(out)
    }

    /// Answers some of the queries, `size` together, with the network computed at a place.
    pub(super) fn predict_at<P: Place>(
        &self,
        place: &P,
        queries: Rows<'_>,
        range: Range<usize>,
        size: usize,
        k: usize,
        only: Only<'_>,
        scratch: &mut ClassifierScratch,
    ) -> Result<RankedBatch, P::Error> {
        let mut out = RankedBatch::new();
        for first in range.clone().step_by(size) {
            scratch.batch.fill_features(queries, first..range.end.min(first + size));
            self.answer(place, first, k, only, scratch, |row| out.push_row(row))?;
        }
        Ok(out)
    }

    /// As [`Classifier::predict`] for one query; `only` are the labels to choose from.
    ///
    /// # Errors
    /// See [`PredictError`].
    pub fn predict_one(
        &self,
        query: Row<'_>,
        k: usize,
        only: Only<'_>,
        scratch: &mut ClassifierScratch,
        out: &mut Vec<Scored>,
    ) -> Result<(), PredictError> {
        match query {
            Row::Sparse(row) => {
                self.check_width(InputKind::Sparse, self.n_features)?;
                if let Some(&feature) = row.indices().iter().find(|&&f| f as usize >= self.n_features) {
                    return Err(PredictError::Feature { feature, n_features: self.n_features });
                }
            }
            Row::Tokens(row) => {
                self.check_width(InputKind::Tokens, self.n_features)?;
                if let Some(&feature) = row.ids.iter().find(|&&id| id as usize >= self.n_features) {
                    return Err(PredictError::Feature { feature, n_features: self.n_features });
                }
                self.check_length(0, row.ids)?;
                if let Some(wide) = &self.wide {
                    let (words, n_features) =
                        (row.words.ok_or(PredictError::NoWords { query: 0 })?, wide.rankers.n_features());
                    if let Some(&feature) = words.indices().iter().find(|&&f| f as usize >= n_features) {
                        return Err(PredictError::Feature { feature, n_features });
                    }
                }
            }
            other => self.check_width(other.kind(), other.values().len())?,
        }
        scratch.batch.fill_one(query, self.n_features);
        self.check_candidates(1, only)?;
        out.clear();
        self.answer(&self.network, 0, k, only, scratch, |row| out.extend_from_slice(row))
    }

    /// Makes scores of the logits of the whole, of which the first `n` were ranked again; none where one is not finite.
    fn finish_wide(&self, row: &mut [Scored], n: usize, scores: &mut Scores) -> Option<()> {
        match self.scale() {
            ScoreScale::Logit => row.iter().all(|s| s.score.is_finite()).then_some(()),
            ScoreScale::Of(loss) => {
                scores.among_first(row, n, loss);
                scores.are_finite(row).then(|| scores.order(row))
            }
        }
    }

    /// The logit of a label for each query.
    pub(crate) fn logits_of(&self, queries: Rows<'_>, label: LabelId) -> Vec<f32> {
        let (mut logits, n_labels) = (Logits::default(), self.n_labels());
        let (n, size) = (queries.len(), (LOGITS / n_labels.max(1)).clamp(1, BATCH));
        let mut out = Vec::with_capacity(n);
        for first in (0..n).step_by(size) {
            logits.fill(queries, first..n.min(first + size));
            out.extend(logits.of(self).chunks_exact(n_labels).map(|row| row[label as usize]));
        }
        out
    }

    /// What the logit of a label consists of, for a query that was checked; nothing without a wide term.
    pub(crate) fn wide_parts(&self, query: Row<'_>, label: LabelId) -> Option<WideParts> {
        let (wide, words) = (self.wide.as_ref()?, query.words()?);
        let mut logits = Logits::default();
        logits.fill_one(query, self.n_features);
        let (loss, logits, mut total) = (self.params.loss, logits.of(self), Total::EMPTY);
        if !loss.is_separable() {
            total.add(loss, logits);
        }
        let mut network = [logits[label as usize]];
        strength(loss, &mut network, total);
        let value = |feature: u32| words.indices().binary_search(&feature).ok().map(|at| words.values()[at]);
        let parts = wide.rankers.row(label).filter_map(|(feature, weight)| Some((feature, weight * value(feature)?)));
        let (parts, bias) = (parts.collect(), wide.rankers.bias()[label as usize]);
        Some(WideParts { network: wide.params.weight * network[0], bias, parts })
    }

    pub(super) fn check_width(&self, got: InputKind, width: usize) -> Result<(), PredictError> {
        let expected = self.params.encoder.input();
        if got != expected {
            return Err(WrongInput { got, expected }.into());
        }
        if width != self.n_features {
            let unit = match got {
                InputKind::Sparse => "features",
                InputKind::Tokens => "tokens",
                InputKind::Dense | InputKind::Text => "values",
            };
            return Err(PredictError::Width { got: width, expected: self.n_features, unit });
        }
        Ok(())
    }

    /// Refuses a query of more tokens than there are positions.
    fn check_length(&self, query: usize, ids: &[u32]) -> Result<(), PredictError> {
        match self.params.encoder.most_tokens() {
            Some(most) if ids.len() > most => Err(PredictError::TooManyTokens { query, got: ids.len(), most }),
            _ => Ok(()),
        }
    }

    pub(super) fn check_candidates(&self, n_queries: usize, only: Only<'_>) -> Result<(), PredictError> {
        let n_labels = self.n_labels();
        let check = |query: usize, labels: &[LabelId]| match labels.iter().find(|&&l| l as usize >= n_labels) {
            Some(&label) => Err(PredictError::Candidate { query, label, n_labels }),
            None => Ok(()),
        };
        match only {
            Only::All | Only::Near(_) => Ok(()),
            Only::Labels(labels) => check(0, labels),
            Only::Rows { rows, first } => (0..n_queries).try_for_each(|query| check(query, rows.row(first + query))),
        }
    }

    /// Answers the batch of the scratch, whose first query has the number `first`.
    fn answer<P: Place>(
        &self,
        place: &P,
        first: usize,
        k: usize,
        only: Only<'_>,
        scratch: &mut ClassifierScratch,
        mut push: impl FnMut(&[Scored]),
    ) -> Result<(), P::Error> {
        // A wide term takes the network's logits for what its loss makes of them, and has logits of its own.
        let network_scale = if self.wide.is_some() { ScoreScale::Of(self.params.loss) } else { self.scale() };
        // Logits need no look at the others, as scores of this loss do not.
        let loss = if let ScoreScale::Of(loss) = network_scale { loss } else { Loss::Bce };
        let n_answers = k;
        let k = self.wide.as_ref().map_or(k, |wide| k.max(wide.params.labels));
        let ClassifierScratch {
            batch,
            vectors,
            logits,
            network,
            encoder,
            ranked,
            ranks,
            one,
            row,
            list,
            scores,
            near,
            wide: wide_scratch,
        } = scratch;
        let not_finite = |at: usize| PredictError::NotFinite { query: first + at };
        // Scores of all labels, where the loss does not make each of its own logit.
        let mut of_all: Option<&Activations> = None;
        // Of candidates, labels that are none and rank among them.
        let mut others: &[RowRank] = &[];
        let answers = |index: &&LabelIndex| matches!(only, Only::Near(_)) && index.answers(batch.len(), loss);
        let index = self.index.as_ref().filter(answers);
        match (self.network.head(), only, index) {
            (_, Only::Near(scope), Some(index)) => {
                place.vectors(batch, vectors, encoder)?;
                self.rank_near(index, scope, vectors, k, near, &mut ranked.best).map_err(|e| match e {
                    xc_ann::QueryError::NotFinite { query } => not_finite(query),
                    e => panic!("a search that was checked: {e}"),
                })?;
            }
            (_, Only::All | Only::Near(_), _) if loss.is_separable() => {
                place.rank(batch, k, network, ranked)?;
            }
            (Output::Sparse(_), Only::Labels(_) | Only::Rows { .. }, _) if loss.is_separable() => {
                let labels = |at: usize| only.of(first + at).unwrap_or_default();
                let scratch = ChooseScratch { vectors, encoder, one, row };
                place.choose(batch, labels, k, scratch, &mut ranked.best)?;
            }
            _ => {
                place.logits(batch, logits, network)?;
                let ranks = each_row(logits, ranks, |at, row, RowRank { top, loss: worst, total, above }| {
                    *worst = if row.iter().all(|z| z.is_finite()) { 0.0 } else { f64::NAN };
                    top.reset(k);
                    let mut push = |label: LabelId| top.push(Scored { label, score: row[label as usize] });
                    match only.of(first + at) {
                        Some(labels) => labels.iter().for_each(|&label| push(label)),
                        None => (0..row.len() as u32).for_each(push),
                    }
                    above.clear();
                    let best = top.sorted();
                    if self.wide.is_some() {
                        *total = Total::EMPTY;
                        total.add(loss, row);
                        return;
                    }
                    if only.of(first + at).is_some() && network_scale != ScoreScale::Logit {
                        rivals(row, best, loss, above);
                    }
                    if !loss.is_separable() {
                        loss.scores(row);
                    }
                });
                ranked.best.clear();
                for (at, RowRank { top, loss: worst, .. }) in ranks.iter_mut().enumerate() {
                    if !worst.is_finite() {
                        return Err(not_finite(at).into());
                    }
                    ranked.best.push_row(top.best());
                }
                others = ranks;
                of_all = (!loss.is_separable()).then_some(&*logits);
            }
        }
        let mut of_found = &mut near.logits[..];
        for (at, best) in ranked.best.iter().enumerate() {
            best.clone_into(row);
            let found = index.filter(|index| index.graph().is_some()).map(|_| near.found.row(at));
            let candidates = found.map(<[Scored]>::len).or(only.of(first + at).map(<[LabelId]>::len));
            let expected = k.min(candidates.unwrap_or(self.n_labels()));
            let is_short = row.len() < expected;
            if let Some(wide) = &self.wide {
                let of_found = found.map(|found| of_found.split_off_mut(..found.len()).unwrap_or_default());
                let total = match (of_found, others.get(at)) {
                    (Some(logits), _) => {
                        let mut total = Total::EMPTY;
                        total.add(loss, logits);
                        total
                    }
                    (None, of) => of.map_or(Total::EMPTY, |of| of.total),
                };
                if is_short || !row.iter().all(|s| s.score.is_finite()) {
                    return Err(not_finite(at).into());
                }
                let words = batch.words(at).unwrap_or_else(|| panic!("a query without words, which was checked"));
                wide.rank(words, (loss, total), row, wide_scratch);
                self.finish_wide(row, wide.params.labels, scores).ok_or_else(|| not_finite(at))?;
                push(&row[..n_answers.min(row.len())]);
                continue;
            }
            let above = others.get(at).map_or(&[][..], |of| &of.above);
            let lowest = above.last().map_or(f32::INFINITY, |s| s.score);
            list.clear();
            list.extend_from_slice(above);
            list.extend(row.iter().filter(|s| s.score < lowest));
            match (of_all, found) {
                (Some(all), _) => scores.pick(list, all.row(at)),
                (None, Some(found)) if !loss.is_separable() => {
                    let all = of_found.split_off_mut(..found.len()).unwrap_or_default();
                    loss.scores(all);
                    scores.of_found(list, found, all);
                }
                _ => scores.of(list, loss),
            }
            if is_short || !scores.are_finite(list) {
                return Err(not_finite(at).into());
            }
            if network_scale != ScoreScale::Logit {
                scores.order(list);
                // Those of the row stand in the list, in the same order.
                let mut listed = list.iter();
                row.iter_mut().for_each(|s| s.score = listed.find(|l| l.label == s.label).map_or(s.score, |l| l.score));
            }
            push(row);
        }
        Ok(())
    }
}
