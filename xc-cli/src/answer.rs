//! A model with everything a query has to be told: the same for one query and for many, whatever the kind of model.

use crate::data::{Query, QueryRows};
use crate::error::{CliError, chain};
use crate::model::{DecoderName, Model, System};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use xc_mach::{Certificate, Effort};
use xc_sparse::DenseMatrix;
use xc_sparse::chunked::Choice;
use xc_sparse::rank::{LabelId, RankedBatch, Scored};
use xc_sparse::{CsrMatrix, LabelRows, SparseRow};
use xc_train::classifier::{self, Classifier, PredictScratch as ClassifierScratch, QueryRow};
use xc_train::mach::{Answers, Asking, MachModel, MachScratch};
use xc_tree::{PredictParams, PredictScratch, Restriction, TreeModel};

/// How a model searches; each option belongs to one kind of model.
#[derive(clap::Args, Clone, Debug)]
#[command(next_help_heading = "Search options")]
pub(crate) struct SearchArgs {
    /// Clusters kept per level of a tree: wider is slower and finds more [default: the model's]
    #[arg(long, value_name = "B")]
    beam: Option<usize>,
    /// What ranks the labels of a MACH model [default: the model's]
    #[arg(long, value_name = "NAME", value_enum)]
    decoder: Option<DecoderName>,
    /// Stop the decode of a MACH model after about so many labels, certain or not [default: when the answer is certain]
    #[arg(long, value_name = "N")]
    max_labels: Option<u64>,
    /// Ask these repetitions of a MACH model alone, e.g. 0-3,7
    #[arg(long, value_name = "LIST", value_parser = parse_numbers)]
    repetitions: Option<Numbers>,
}

/// Numbers of repetitions.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Numbers(Vec<u32>);

fn parse_numbers(text: &str) -> Result<Numbers, String> {
    let wrong = |part: &str| format!("met {part:?}, wanted numbers and ranges such as 0-3,7");
    let mut numbers = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let bounds: Option<(u32, u32)> = first.trim().parse().ok().zip(last.trim().parse().ok());
        match bounds {
            Some((first, last)) if first <= last && last - first < 1 << 16 => numbers.extend(first..=last),
            _ => return Err(wrong(part)),
        }
    }
    Ok(Numbers(numbers))
}

impl SearchArgs {
    /// Numbers of the repetitions that were named.
    pub(crate) fn repetitions(&self) -> Option<&[u32]> {
        self.repetitions.as_ref().map(|numbers| &*numbers.0)
    }
}

/// Which labels are scored.
pub(crate) enum Only {
    /// All that the model finds.
    All,
    /// These, ascending.
    Labels(Vec<LabelId>),
    /// For each query its own.
    Candidates(LabelRows),
}

/// Asks one model one kind of question.
pub(crate) struct Asker<'m> {
    how: How<'m>,
    only: Only,
    top_k: usize,
    min_score: Option<f32>,
    input: String,
    proven: AtomicU64,
    unproven: AtomicU64,
}

enum How<'m> {
    Tree { tree: &'m TreeModel, params: PredictParams, restriction: Option<Restriction> },
    Classifier(&'m Classifier),
    Mach(&'m MachModel, Asking),
}

/// Memory of one thread's queries.
#[derive(Default)]
pub(crate) struct AskScratch {
    tree: PredictScratch,
    mach: MachScratch,
    classifier: ClassifierScratch,
}

impl<'m> Asker<'m> {
    /// `input` names where the queries come from, for errors.
    ///
    /// # Errors
    /// An option that the kind of model does not have.
    pub(crate) fn new(
        model: &'m Model,
        top_k: usize,
        search: &SearchArgs,
        choice: Choice,
        only: Only,
        input: String,
    ) -> Result<Self, CliError> {
        if search.beam == Some(0) {
            return Err(CliError::usage("--beam 0: at least 1 is wanted"));
        }
        let belongs = |given: bool, option: &str, kind: &str| {
            if given && model.kind() != kind {
                let met = model.kind();
                return Err(CliError::usage(format_args!("--{option}: the model is of kind {met:?}, wanted {kind:?}")));
            }
            Ok(())
        };
        belongs(search.beam.is_some(), "beam", xc_tree::KIND)?;
        belongs(search.decoder.is_some(), "decoder", xc_train::mach::KIND)?;
        belongs(search.max_labels.is_some(), "max-labels", xc_train::mach::KIND)?;
        let how = match &model.system {
            System::Tree(tree) => {
                let params = PredictParams::new(tree, top_k);
                let params = search.beam.map_or(params, |beam| params.with_beam(beam)).with_choice(choice);
                let restriction = match &only {
                    Only::Labels(labels) => Some(restrict(tree, labels)?),
                    _ => None,
                };
                How::Tree { tree, params, restriction }
            }
            System::Classifier(classifier) => How::Classifier(classifier),
            System::Mach(mach) => {
                let mut asking = mach.asking(top_k);
                if let Some(decoder) = search.decoder {
                    asking.decoder = decoder.decoder();
                }
                if let Some(n) = search.max_labels {
                    asking.effort = Effort::Labels(n);
                }
                How::Mach(mach, asking)
            }
        };
        let (proven, unproven) = Default::default();
        Ok(Self { how, only, top_k, min_score: None, input, proven, unproven })
    }

    /// Leaves out labels with a smaller score.
    pub(crate) fn with_min_score(self, min_score: Option<f32>) -> Self {
        Self { min_score, ..self }
    }

    /// The parameters of a tree's search, where a tree is asked.
    pub(crate) fn tree_params(&self) -> Option<&PredictParams> {
        match &self.how {
            How::Tree { params, .. } => Some(params),
            _ => None,
        }
    }

    /// Answers the query of this number.
    pub(crate) fn one(
        &self,
        number: usize,
        query: Query<'_>,
        scratch: &mut AskScratch,
        answer: &mut Vec<Scored>,
    ) -> Result<(), CliError> {
        match (&self.how, &self.only) {
            (How::Tree { tree, params, restriction }, only) => {
                let own = match only {
                    Only::Candidates(rows) => Some(restrict(tree, rows.row(number))?),
                    _ => None,
                };
                match own.as_ref().or(restriction.as_ref()) {
                    Some(only) => tree.predict_restricted(query.sparse(), only, self.top_k, &mut scratch.tree, answer),
                    None => tree.predict_one(query.sparse(), params, &mut scratch.tree, answer),
                }
            }
            (How::Mach(mach, asking), Only::All) => {
                let certificate = mach
                    .predict_one(query.sparse(), asking, &mut scratch.mach, answer)
                    .map_err(|e| self.failed(number, &e))?;
                self.note(&certificate);
            }
            (How::Mach(mach, _), _) => {
                self.alone(number, query, mach.n_features(), scratch)?.row(0).clone_into(answer);
            }
            (How::Classifier(classifier), only) => {
                let row = match query {
                    Query::Sparse(row) => QueryRow::Sparse(row),
                    Query::Dense(values) => QueryRow::Dense(values),
                };
                let labels = match only {
                    Only::All => None,
                    Only::Labels(labels) => Some(&labels[..]),
                    Only::Candidates(rows) => Some(rows.row(number)),
                };
                classifier
                    .predict_one(row, self.top_k, labels, &mut scratch.classifier, answer)
                    .map_err(|e| self.failed(number, &e))?;
            }
        }
        self.cut(answer);
        Ok(())
    }

    /// Answers one query as a batch of one.
    fn alone(
        &self,
        number: usize,
        query: Query<'_>,
        n_features: usize,
        scratch: &mut AskScratch,
    ) -> Result<RankedBatch, CliError> {
        self.batch_of(number..number + 1, &single(query, n_features), scratch)
    }

    /// Answers queries, the first of which has the number `first`.
    pub(crate) fn batch(&self, first: usize, queries: &QueryRows) -> Result<RankedBatch, CliError> {
        let batch = self.batch_of(first..first + queries.rows(), queries, &mut AskScratch::default())?;
        if self.min_score.is_none() {
            return Ok(batch);
        }
        let mut kept = RankedBatch::new();
        let mut row = Vec::new();
        for answer in batch.iter() {
            answer.clone_into(&mut row);
            self.cut(&mut row);
            kept.push_row(&row);
        }
        Ok(kept)
    }

    fn batch_of(
        &self,
        numbers: Range<usize>,
        queries: &QueryRows,
        scratch: &mut AskScratch,
    ) -> Result<RankedBatch, CliError> {
        let candidates = |at: usize| match &self.only {
            Only::Labels(labels) => &labels[..],
            Only::Candidates(rows) => rows.row(numbers.start + at),
            Only::All => &[],
        };
        match (&self.how, &self.only) {
            (How::Tree { tree, params, .. }, Only::All) => Ok(tree.predict_batch(queries.sparse().view(), params)),
            (How::Tree { .. }, _) => {
                let answers = (0..queries.rows()).into_par_iter().map_init(AskScratch::default, |scratch, i| {
                    let mut answer = Vec::new();
                    self.one(numbers.start + i, queries.get(i), scratch, &mut answer)?;
                    Ok(answer)
                });
                let answers: Vec<Vec<Scored>> = answers.collect::<Result<_, CliError>>()?;
                let mut batch = RankedBatch::new();
                answers.iter().for_each(|answer| batch.push_row(answer));
                Ok(batch)
            }
            (How::Classifier(classifier), only) => {
                let rows;
                let only = match only {
                    Only::All => classifier::Only::All,
                    Only::Labels(labels) => classifier::Only::Labels(labels),
                    Only::Candidates(all) => {
                        rows = LabelRows::from_lists(numbers.clone().map(|i| all.row(i)), all.n_labels())
                            .unwrap_or_else(|e| panic!("a part of label rows is none: {e}"));
                        classifier::Only::Rows(&rows)
                    }
                };
                classifier
                    .predict(queries.features(), self.top_k, only, &mut scratch.classifier)
                    .map_err(|e| self.failed(numbers.start, &e))
            }
            (How::Mach(mach, asking), Only::All) => {
                let Answers { ranked, certificates } =
                    mach.predict_batch(queries.features(), asking).map_err(|e| self.failed(numbers.start, &e))?;
                certificates.iter().for_each(|certificate| self.note(certificate));
                Ok(ranked)
            }
            (How::Mach(mach, asking), _) => mach
                .predict_candidates(queries.features(), candidates, self.top_k, asking.decoder)
                .map_err(|e| self.failed(numbers.start, &e)),
        }
    }

    /// Answers stand best first, so what is too small stands at the end.
    fn cut(&self, answer: &mut Vec<Scored>) {
        if let Some(min) = self.min_score {
            answer.truncate(answer.partition_point(|s| s.score >= min));
        }
    }

    fn note(&self, certificate: &Certificate) {
        let count = if certificate.exact { &self.proven } else { &self.unproven };
        count.fetch_add(1, Ordering::Relaxed);
    }

    /// How many answers of a decode are proven to be those of a full scan, and how many are not.
    pub(crate) fn proven(&self) -> (u64, u64) {
        (self.proven.load(Ordering::Relaxed), self.unproven.load(Ordering::Relaxed))
    }

    fn failed(&self, first: usize, error: &dyn std::error::Error) -> CliError {
        CliError::usage(format_args!("{}: instances from {first} on: {}", self.input, chain(error)))
    }
}

fn restrict(tree: &TreeModel, labels: &[LabelId]) -> Result<Restriction, CliError> {
    tree.restrict(labels).map_err(|e| CliError::usage(chain(&e)))
}

/// One query as several.
fn single(query: Query<'_>, n_features: usize) -> QueryRows {
    match query {
        Query::Sparse(SparseRow { indices, values }) => {
            let indptr = vec![0, indices.len()];
            QueryRows::Sparse(CsrMatrix::new((1, n_features), indptr, indices.to_vec(), values.to_vec()))
        }
        Query::Dense(values) => {
            QueryRows::Dense(DenseMatrix { rows: 1, columns: values.len(), values: values.to_vec() })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_are_named_by_numbers_and_ranges() {
        assert_eq!(parse_numbers("0-3, 7"), Ok(Numbers(vec![0, 1, 2, 3, 7])));
        for text in ["", "3-1", "a", "1-", "-1", "0..3", "0-4000000000"] {
            assert!(parse_numbers(text).unwrap_err().contains("wanted numbers and ranges"), "{text}");
        }
    }
}
