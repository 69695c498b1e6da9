//! Questions to a model: bucket scores of all repetitions, decoded.

use super::MachModel;
use crate::classifier::Logits;
use rayon::prelude::*;
use thiserror::Error;
use xc_buffer::parallel::for_each_part;
use xc_mach::{BucketScores, BucketScoresError, Certificate, DecodeScratch, Decoder, Effort, NoListsError};
use xc_nn::{Row, Rows};
use xc_sparse::rank::{LabelId, RankedBatch, Scored, TopK};

/// Bytes of bucket scores that a batch holds at a time.
const SCORES_BYTES: usize = 128 << 20;
/// Queries that go through the networks together, at most.
const BATCH: usize = 256;

/// How a query is asked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Asking {
    /// Labels of an answer, at most.
    pub top_k: usize,
    /// What ranks labels. Default: the model's.
    pub decoder: Option<Decoder>,
    /// How far a decode goes.
    pub effort: Effort,
}

impl Asking {
    /// The `k` best labels by the model's own decoder, exact.
    pub const fn top(k: usize) -> Self {
        Self { top_k: k, decoder: None, effort: Effort::Exact }
    }
}

/// Answers of a batch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MachAnswers {
    /// The labels.
    pub ranked: RankedBatch,
    /// What is known of each answer.
    pub certificates: Vec<Certificate>,
}

/// Why a query has no answer.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum AnswerError {
    /// Its features are so large that scores are not finite.
    #[error("query {query}")]
    Scores {
        /// Number of the query, from 0.
        query: usize,
        /// The score.
        source: BucketScoresError,
    },
    /// The family of the hash functions needs lists of labels, which the model makes when it is
    /// made.
    #[error(transparent)]
    Lists(#[from] NoListsError),
}

/// Takes bucket scores as [`MachModel::blocks`] hands them out.
pub(super) type Visit<'v, E> = dyn FnMut(usize, &[f32]) -> Result<(), E> + 'v;

/// Memory of answering one query after the other; it grows to what is needed and stays.
#[derive(Default)]
pub struct MachScratch {
    logits: Logits,
    scores: Vec<f32>,
    decode: DecodeScratch,
    values: Vec<f32>,
    top: TopK,
}

impl MachModel {
    pub(crate) fn decoder(&self, asking: &Asking) -> Decoder {
        asking.decoder.unwrap_or(self.params.decoder)
    }

    /// Answers queries.
    ///
    /// *Cost*: R networks, and the decode ([`xc_mach::Assignment::decode`]); 128 MiB of bucket
    /// scores at the most, but for one query.
    ///
    /// *Determinism*: the same answers at any number of threads and in any batches.
    ///
    /// # Errors
    /// A query whose scores are not finite.
    ///
    /// # Panics
    /// If queries have another number of features.
    pub fn predict_batch(&self, queries: Rows<'_>, asking: &Asking) -> Result<MachAnswers, AnswerError> {
        let mut answers = MachAnswers::default();
        self.blocks(queries, |first, scores| -> Result<(), AnswerError> {
            let block: Vec<_> = scores
                .par_chunks_exact(self.query_len())
                .enumerate()
                .map_init(DecodeScratch::default, |scratch, (at, scores)| {
                    let scores = self.checked(first + at, scores)?;
                    let mut out = Vec::new();
                    let (decoder, Asking { top_k, effort, .. }) = (self.decoder(asking), *asking);
                    let certificate = self.assignment.decode(&scores, decoder, top_k, effort, scratch, &mut out)?;
                    Ok((out, certificate))
                })
                .collect::<Result<_, AnswerError>>()?;
            for (row, certificate) in block {
                answers.ranked.push_row(&row);
                answers.certificates.push(certificate);
            }
            Ok(())
        })?;
        Ok(answers)
    }

    /// Answers queries from the labels that `candidates` gives for the query of each number.
    ///
    /// *Cost*: R networks, R look-ups a candidate.
    ///
    /// # Errors
    /// A query whose scores are not finite.
    ///
    /// # Panics
    /// If queries have another number of features, or a candidate is not below `n_labels()`.
    pub fn predict_candidates<'c>(
        &self,
        queries: Rows<'_>,
        candidates: impl Fn(usize) -> &'c [LabelId] + Sync,
        top_k: usize,
        decoder: Decoder,
    ) -> Result<RankedBatch, AnswerError> {
        self.candidates_in(|visit| self.blocks(queries, visit), candidates, top_k, decoder)
    }

    /// The same of the queries whose bucket scores `blocks` hands to its argument.
    pub(super) fn candidates_in<'c, E: From<AnswerError>>(
        &self,
        blocks: impl FnOnce(&mut Visit<'_, E>) -> Result<(), E>,
        candidates: impl Fn(usize) -> &'c [LabelId] + Sync,
        top_k: usize,
        decoder: Decoder,
    ) -> Result<RankedBatch, E> {
        let mut ranked = RankedBatch::new();
        blocks(&mut |first, scores| {
            ranked.append(&self.candidates_of(first, scores, &candidates, top_k, decoder)?);
            Ok(())
        })?;
        Ok(ranked)
    }

    /// Answers to the queries from `first` on, whose bucket scores these are, from their candidates.
    fn candidates_of<'c>(
        &self,
        first: usize,
        scores: &[f32],
        candidates: &(impl Fn(usize) -> &'c [LabelId] + Sync),
        top_k: usize,
        decoder: Decoder,
    ) -> Result<RankedBatch, AnswerError> {
        let answer = |(scratch, values, top): &mut (DecodeScratch, Vec<f32>, TopK), (at, scores): (usize, &[f32])| {
            let scores = self.checked(first + at, scores)?;
            let labels = candidates(first + at);
            self.assignment.score_labels(&scores, decoder, labels, scratch, values);
            top.reset(top_k);
            labels.iter().zip(&*values).for_each(|(&label, &score)| top.push(Scored { label, score }));
            Ok(top.sorted().to_vec())
        };
        let queries = scores.par_chunks_exact(self.query_len()).enumerate();
        let rows: Vec<Vec<Scored>> = queries.map_init(Default::default, answer).collect::<Result<_, AnswerError>>()?;
        let mut ranked = RankedBatch::new();
        rows.iter().for_each(|row| ranked.push_row(row));
        Ok(ranked)
    }

    /// Answers one query into `out`.
    ///
    /// # Errors
    /// Its scores are not finite.
    ///
    /// # Panics
    /// If it is not of the model's input ([`crate::classifier::EncoderParams`]), or of another width.
    pub fn predict_one(
        &self,
        query: Row<'_>,
        asking: &Asking,
        scratch: &mut MachScratch,
        out: &mut Vec<Scored>,
    ) -> Result<Certificate, AnswerError> {
        let MachScratch { logits, scores, decode, .. } = scratch;
        logits.fill_one(query, self.n_features);
        scores.resize(self.query_len(), 0.0);
        self.score(logits, scores);
        let scores = self.checked(0, scores)?;
        Ok(self.assignment.decode(&scores, self.decoder(asking), asking.top_k, asking.effort, decode, out)?)
    }

    /// Answers one query from the labels `candidates` into `out`.
    ///
    /// # Errors
    /// Its scores are not finite.
    ///
    /// # Panics
    /// As [`MachModel::predict_one`], or if a candidate is not below `n_labels()`.
    pub fn predict_one_of(
        &self,
        query: Row<'_>,
        candidates: &[LabelId],
        asking: &Asking,
        scratch: &mut MachScratch,
        out: &mut Vec<Scored>,
    ) -> Result<(), AnswerError> {
        let MachScratch { logits, scores, decode, values, top } = scratch;
        logits.fill_one(query, self.n_features);
        scores.resize(self.query_len(), 0.0);
        self.score(logits, scores);
        let scores = self.checked(0, scores)?;
        self.assignment.score_labels(&scores, self.decoder(asking), candidates, decode, values);
        top.reset(asking.top_k);
        candidates.iter().zip(&*values).for_each(|(&label, &score)| top.push(Scored { label, score }));
        top.sorted().clone_into(out);
        Ok(())
    }

    /// Hands bucket scores to `visit`, some queries at a time: the number of the first query, then
    /// for each of them R rows of B scores.
    ///
    /// # Errors
    /// Those of `visit`.
    ///
    /// # Panics
    /// If queries have another number of features.
    pub fn blocks<F>(&self, queries: Rows<'_>, mut visit: impl FnMut(usize, &[f32]) -> Result<(), F>) -> Result<(), F> {
        let size = self.batch_size();
        let (mut logits, mut scores) = (Logits::default(), Vec::new());
        for first in (0..queries.len()).step_by(size) {
            let rows = first..queries.len().min(first + size);
            scores.resize(rows.len() * self.query_len(), 0.0);
            logits.fill(queries, rows);
            self.score(&mut logits, &mut scores);
            visit(first, &scores)?;
        }
        Ok(())
    }

    /// Bucket scores of the queries in `logits`: one query after the other.
    fn score(&self, logits: &mut Logits, scores: &mut [f32]) {
        let loss = self.params.classifier.loss;
        let n_buckets = self.assignment.n_buckets();
        for (position, classifier) in self.classifiers.iter().enumerate() {
            let logits = logits.of(classifier);
            for_each_part(scores, self.query_len(), |query, scores| {
                let row = &mut scores[position * n_buckets..][..n_buckets];
                row.copy_from_slice(&logits[query * n_buckets..][..n_buckets]);
                loss.scores(row);
            });
        }
    }

    /// Queries that go through the networks together.
    pub(super) fn batch_size(&self) -> usize {
        (SCORES_BYTES / 4 / self.query_len()).clamp(1, BATCH)
    }

    /// Bucket scores of a query, R B.
    pub(super) fn query_len(&self) -> usize {
        self.classifiers.len() * self.assignment.n_buckets()
    }

    fn checked<'s>(&self, query: usize, scores: &'s [f32]) -> Result<BucketScores<'s>, AnswerError> {
        let (n_repetitions, n_buckets) = (self.classifiers.len(), self.assignment.n_buckets());
        BucketScores::try_new(scores, n_repetitions, n_buckets).map_err(|source| AnswerError::Scores { query, source })
    }
}
