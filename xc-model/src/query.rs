//! Queries and answers of a model.

use crate::calibrate::ThresholdKind;
use crate::mach::AnswerError;
use std::fmt;
use thiserror::Error;
use xc_hash::text::{TokeniseError, VectoriseError};
use xc_mach::{Certificate, Decoder};
use xc_sparse::chunked::IteratorChoice;
use xc_sparse::rank::{LabelId, RankedBatch, Scored};
use xc_sparse::rows::{InputKind, Rows, WrongInput};
use xc_sparse::{LabelRows, SparseRow, SparseRowError};

/// The labels that may be answered.
#[derive(Clone, Copy, Debug, Default)]
pub enum Candidates<'a> {
    /// All that the model's search finds.
    #[default]
    All,
    /// These, whether or not a search would find them; in any order, repetitions count once.
    Labels(&'a [LabelId]),
    /// For each query of a batch its own.
    ByQuery {
        /// The lists.
        rows: &'a LabelRows,
        /// Which of them is the first query's.
        first: usize,
    },
}

impl<'a> Candidates<'a> {
    /// The candidates of query `i` of a batch; `None` where all labels are. In an [`Ask`](crate::Ask) they ascend, each
    /// once.
    ///
    /// # Panics
    /// If there is no such query.
    pub fn of(&self, i: usize) -> Option<&'a [LabelId]> {
        match self {
            Self::All => None,
            Self::Labels(labels) => Some(labels),
            Self::ByQuery { rows, first } => Some(rows.row(first + i)),
        }
    }

    /// The same for the queries from `i` on.
    pub(crate) fn from(&self, i: usize) -> Self {
        match *self {
            Self::ByQuery { rows, first } => Self::ByQuery { rows, first: first + i },
            same => same,
        }
    }

    /// The lists of some queries of a batch, where each has its own.
    ///
    /// # Panics
    /// If there is no such query.
    pub(crate) fn select(&self, numbers: &[u32]) -> Option<LabelRows> {
        match self {
            Self::ByQuery { rows, first } => Some(lists_of(rows, *first, numbers)),
            _ => None,
        }
    }

    /// Whether nothing restricts the labels.
    pub(crate) fn is_all(&self) -> bool {
        matches!(self, Self::All)
    }

    /// The same for query `i` alone.
    ///
    /// # Panics
    /// If there is no such query.
    pub fn at(&self, i: usize) -> Self {
        self.of(i).map_or(Self::All, Self::Labels)
    }
}

/// Labels never to answer; others take their places.
#[derive(Clone, Copy, Debug, Default)]
pub enum Excluded<'a> {
    /// None.
    #[default]
    None,
    /// These; in any order, repetitions count once.
    Labels(&'a [LabelId]),
    /// For each query of a batch its own.
    ByQuery {
        /// The lists.
        rows: &'a LabelRows,
        /// Which of them is the first query's.
        first: usize,
    },
}

impl<'a> Excluded<'a> {
    /// Those of query `i` of a batch.
    ///
    /// # Panics
    /// If there is no such query.
    pub(crate) fn of(&self, i: usize) -> &'a [LabelId] {
        match self {
            Self::None => &[],
            Self::Labels(labels) => labels,
            Self::ByQuery { rows, first } => rows.row(first + i),
        }
    }

    /// The same for the queries from `i` on.
    pub(crate) fn from(&self, i: usize) -> Self {
        match *self {
            Self::ByQuery { rows, first } => Self::ByQuery { rows, first: first + i },
            same => same,
        }
    }

    /// The lists of some queries of a batch, where each has its own.
    ///
    /// # Panics
    /// If there is no such query.
    #[cfg(feature = "requests")]
    pub(crate) fn select(&self, numbers: &[u32]) -> Option<LabelRows> {
        match self {
            Self::ByQuery { rows, first } => Some(lists_of(rows, *first, numbers)),
            _ => None,
        }
    }
}

/// The lists of these queries of a batch whose first has list `first`.
fn lists_of(rows: &LabelRows, first: usize, numbers: &[u32]) -> LabelRows {
    rows.select(&numbers.iter().map(|&i| first as u32 + i).collect::<Vec<_>>())
}

/// Options of a query. Default: the five best labels, searched with the settings saved in the model.
#[derive(Clone, Copy, Debug)]
pub struct QueryOptions<'a> {
    /// Queries are features that [`super::Model::features`] made: the model's pipeline is skipped.
    pub made: bool,
    /// Maximum number of labels answered; 0 answers none.
    pub top_k: usize,
    /// Labels with a smaller score are left out.
    pub min_score: Option<f32>,
    /// The labels to choose from.
    pub candidates: Candidates<'a>,
    /// Labels never to answer.
    pub exclude: Excluded<'a>,
    /// How the scores of a calibrated model are used.
    pub scores: ScoreOptions,
    /// How the model searches.
    pub search: SearchOptions,
}

impl Default for QueryOptions<'_> {
    fn default() -> Self {
        let (exclude, scores, search) = (Excluded::None, Default::default(), Default::default());
        let candidates = Candidates::All;
        Self { made: false, top_k: 5, min_score: None, candidates, exclude, scores, search }
    }
}

/// How the scores of a calibrated model are used, see [`crate::calibrate`]. By default they are
/// probabilities and no label is left out; a model that is not calibrated answers its own scores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScoreOptions {
    /// Answer the scores of the model itself, calibrated or not.
    pub raw: bool,
    /// Leave out labels below these thresholds of the calibration.
    pub threshold: Option<ThresholdKind>,
}

impl QueryOptions<'_> {
    /// The `k` best labels.
    pub fn top(k: usize) -> Self {
        Self { top_k: k, ..Self::default() }
    }
}

/// How a model searches. A setting that the kind of model does not have is refused; with candidates
/// nothing is searched, and `beam` and `max_labels` have no effect.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SearchOptions {
    /// Clusters kept per level of a tree. Default: the model's.
    pub beam: Option<usize>,
    /// How a MACH model combines bucket scores. Default: the model's.
    pub decoder: Option<Decoder>,
    /// Number of labels after which the decode of a MACH model stops, even if the answer is not certain.
    /// Default: when the answer is certain.
    pub max_labels: Option<u64>,
    /// How a query's features are intersected with the weights of a tree. Default: chosen for each query;
    /// answers do not depend on it.
    pub matching: Option<IteratorChoice>,
    /// The scope of a search of the label index. Default: the fitted one.
    pub scope: Option<xc_ann::Scope>,
    /// Score all labels, even if there is an index of them.
    pub exact: bool,
}

impl SearchOptions {
    /// Names of the settings that are given.
    pub(crate) fn given(&self) -> impl Iterator<Item = &'static str> {
        let names = [
            ("beam", self.beam.is_some()),
            ("decoder", self.decoder.is_some()),
            ("max-labels", self.max_labels.is_some()),
            ("iterator", self.matching.is_some()),
            (WIDTH, self.scope.is_some_and(|scope| scope.n_cells() == 0)),
            (CELLS, self.scope.is_some_and(|scope| scope.n_cells() > 0)),
            ("exact", self.exact),
        ];
        names.into_iter().filter_map(|(name, given)| given.then_some(name))
    }
}

/// Names of what an index is searched by.
pub(crate) const WIDTH: &str = "search-width";
pub(crate) const CELLS: &str = "cells";

/// The answer to one query; owned by the caller and reused from query to query.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// Labels, best first.
    pub labels: Vec<Scored>,
    /// Whether these are proven to be the best, if the kind of model can tell.
    pub certificate: Option<Certificate>,
    /// For a text, or features made of one: the number of its different terms that the model knows; for a
    /// blend, the largest of its members. If it is 0, `labels` is empty.
    pub known_terms: Option<usize>,
}

/// The answers to several queries.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answers {
    /// Labels of each query, best first.
    pub ranked: RankedBatch,
    /// A certificate for each query, if the kind of model has them; else empty.
    pub certificates: Vec<Certificate>,
    /// The number of known terms of each query, if the queries are texts or features made of them; else empty.
    pub known_terms: Vec<usize>,
}

impl Answers {
    /// Lists of labels, without certificates or terms.
    pub(crate) fn of(ranked: RankedBatch) -> Self {
        Self { ranked, ..Self::default() }
    }
}

/// Why a query has no answer.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum QueryError {
    /// Thresholds of a model without a calibration.
    #[error("the model is not calibrated, so it has no thresholds")]
    NotCalibrated,
    /// Thresholds are probabilities, and raw scores were asked for.
    #[error("thresholds of the calibration cut probabilities, not raw scores")]
    RawThreshold,
    /// The model takes another kind of input.
    #[error("the query is {got}; the model takes {expected}")]
    Input {
        /// What the query is.
        got: InputKind,
        /// What the model takes.
        expected: InputKind,
    },
    /// A vector or matrix of another width.
    #[error("the query has {got} {}; the model takes {expected}", if *dense { "values" } else { "features" })]
    Width {
        /// Width of the query.
        got: usize,
        /// Width that the model takes.
        expected: usize,
        /// Whether queries are vectors.
        dense: bool,
    },
    /// Features and values that do not form a sparse row.
    #[error(transparent)]
    Row(#[from] SparseRowError),
    /// A feature that the model does not have.
    #[error("feature {feature} at position {position}; the model has {n_features} features")]
    Feature {
        /// The feature.
        feature: u32,
        /// Its position in the row.
        position: usize,
        /// Number of features of the model.
        n_features: usize,
    },
    /// A text of which the model's tokenizer makes no tokens.
    #[error(transparent)]
    Tokenise(TokeniseError),
    /// A text of which the model's transformer makes no vector.
    #[error(transparent)]
    Vectorise(VectoriseError),
    /// Tokens alone, where the wide term of the model needs features of the words.
    #[error("tokens alone; the model has a wide term, so features of their words are expected beside them")]
    NoWords,
    /// Tokens beyond those that the model has positions for.
    #[error("the query has {got} tokens; the model takes at most {most}")]
    TooManyTokens {
        /// Tokens of the query.
        got: usize,
        /// Positions.
        most: usize,
    },
    /// A token that the model does not have.
    #[error("token {token} at position {position}; the model has {n_tokens} tokens")]
    Token {
        /// The token.
        token: u32,
        /// Its position in the row.
        position: usize,
        /// Number of tokens of the model.
        n_tokens: usize,
    },
    /// A value that is infinite or not a number.
    #[error("value {value} at position {position}; expected a finite number")]
    NotFinite {
        /// The value.
        value: f32,
        /// Its position in the row.
        position: usize,
    },
    /// A model of a custom kind gave an invalid answer.
    #[error("a model of kind {kind:?} answered {wrong}")]
    Answer {
        /// The kind.
        kind: &'static str,
        /// What is wrong with the answer.
        wrong: WrongAnswer,
    },
    /// A candidate or excluded label that the model does not have.
    #[error("label {label} is not in the model, which has {n_labels} labels")]
    Label {
        /// The label.
        label: LabelId,
        /// Number of labels of the model.
        n_labels: usize,
    },
    /// Too few lists of candidates or excluded labels.
    #[error("{got} lists of {what} for {expected} queries")]
    Lists {
        /// What is listed.
        what: &'static str,
        /// Number of lists.
        got: usize,
        /// Number of queries up to the last one.
        expected: usize,
    },
    /// A search width or cells for a model without an index.
    #[error("no index of the labels that is as new as the weights")]
    NoIndex {
        /// What was asked for.
        option: &'static str,
    },
    /// Cells of an index that has none.
    #[error("the index of the labels has no cells")]
    NoCells,
    /// A query that trees do not take.
    #[error(transparent)]
    Tree(#[from] xc_tree::QueryError),
    /// A search width or cells for an index whose answers are exact.
    #[error("the index of a sparse output layer answers exactly")]
    NoWidth {
        /// What was asked for.
        option: &'static str,
    },
    /// An invalid search width.
    #[error("search width {width}, expected a number above -1")]
    SearchWidth {
        /// What was asked for.
        width: f32,
    },
    /// A search option of another kind of model.
    #[error("models of kind {kind:?} have no option {option:?}")]
    Option {
        /// The option.
        option: &'static str,
        /// Kind of the model.
        kind: &'static str,
    },
    /// A beam that keeps nothing.
    #[error("beam 0; expected at least 1")]
    Beam,
    /// The smallest score is not a number.
    #[error("min_score is not a number")]
    MinScore,
    /// Features so large that scores are not finite.
    #[error("its values are too large: scores are not finite")]
    Scores,
    /// A message of a custom kind about the query.
    #[error("{0}")]
    Own(std::sync::Arc<str>),
    /// A MACH model cannot answer any query.
    #[error("no bucket scores")]
    Mach(#[source] AnswerError),
    /// The device fails that the model was put on.
    #[cfg(feature = "cuda")]
    #[error("the device fails")]
    Device(#[source] std::sync::Arc<xc_kernels::Error>),
}

impl QueryError {
    /// Whether the error is in the query, so that other queries may have answers; otherwise no query has one.
    pub fn is_of_query(&self) -> bool {
        #[cfg(feature = "cuda")]
        if matches!(self, Self::Device(_)) {
            return false;
        }
        !matches!(
            self,
            Self::NotCalibrated
                | Self::RawThreshold
                | Self::Lists { .. }
                | Self::NoIndex { .. }
                | Self::NoCells
                | Self::NoWidth { .. }
                | Self::SearchWidth { .. }
                | Self::Option { .. }
                | Self::Beam
                | Self::MinScore
                | Self::Mach(_)
        )
    }
}

/// What is wrong with the answer of a model of a custom kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WrongAnswer {
    /// Not one list for each query of a batch, or certificates or numbers of known terms for some queries only.
    Queries,
    /// More labels than were asked for.
    Length,
    /// A label that the model does not have.
    Label,
    /// A score that is infinite or not a number.
    Score,
    /// A label twice.
    Twice,
    /// Labels that are not best first, or labels of equal score that do not ascend.
    Order,
    /// A label that is not among the candidates.
    Candidate,
}

impl fmt::Display for WrongAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Queries => "other than one list for each query",
            Self::Length => "more labels than were asked for",
            Self::Label => "a label that the model does not have",
            Self::Score => "a score that is not finite",
            Self::Twice => "a label twice",
            Self::Order => "labels that are not best first, equal scores by ascending label",
            Self::Candidate => "a label that is not among the candidates",
        })
    }
}

impl BatchError {
    /// Of no query more than of another, and so of the first.
    pub(crate) fn first(source: impl Into<QueryError>) -> Self {
        Self { query: 0, source: source.into() }
    }
}

/// The query of a batch that has no answer.
#[derive(Clone, Debug, Error, PartialEq)]
#[error("query {query}")]
pub struct BatchError {
    /// Number of the query, from 0.
    pub query: usize,
    /// What is wrong.
    pub source: QueryError,
}

impl From<WrongInput> for QueryError {
    fn from(WrongInput { got, expected }: WrongInput) -> Self {
        Self::Input { got, expected }
    }
}

/// A sparse row that a model may be asked with. *Cost*: one pass.
pub(crate) fn check_row(row: SparseRow<'_>, n_features: usize) -> Result<(), QueryError> {
    let checked = row.check();
    // Values are looked at last, with their position.
    if let Err(error @ (SparseRowError::Lengths { .. } | SparseRowError::Order { .. })) = checked {
        return Err(error.into());
    }
    let indices = row.indices();
    match indices.last() {
        Some(&feature) if feature as usize >= n_features => {
            let position = indices.partition_point(|&f| (f as usize) < n_features);
            Err(QueryError::Feature { feature: indices[position], position, n_features })
        }
        _ if checked.is_ok() => Ok(()),
        _ => check_values(row.values()),
    }
}

/// Tokens that the model has.
pub(crate) fn check_tokens(ids: &[u32], n_tokens: usize) -> Result<(), QueryError> {
    match ids.iter().position(|&id| id as usize >= n_tokens) {
        Some(position) => Err(QueryError::Token { token: ids[position], position, n_tokens }),
        None => Ok(()),
    }
}

/// Values that are all finite.
pub(crate) fn check_values(values: &[f32]) -> Result<(), QueryError> {
    match values.iter().position(|v| !v.is_finite()) {
        Some(position) => Err(QueryError::NotFinite { value: values[position], position }),
        None => Ok(()),
    }
}

/// Labels that the model has.
pub(crate) fn check_labels(labels: &[LabelId], n_labels: usize) -> Result<(), QueryError> {
    match labels.iter().find(|&&label| label as usize >= n_labels) {
        Some(&label) => Err(QueryError::Label { label, n_labels }),
        None => Ok(()),
    }
}

/// Lists of labels that the model has, one for each of `n_queries` queries from `first` on.
pub(crate) fn check_lists(
    what: &'static str,
    rows: &LabelRows,
    first: usize,
    n_queries: usize,
    n_labels: usize,
) -> Result<(), QueryError> {
    let (got, expected) = (rows.len(), first + n_queries);
    if got < expected {
        return Err(QueryError::Lists { what, got, expected });
    }
    // Ids are below what the rows say; rows that allow for more may still hold none of those.
    if rows.n_labels() > n_labels {
        (first..expected).try_for_each(|i| check_labels(rows.row(i), n_labels))?;
    }
    Ok(())
}

/// Values that are all finite; the order of features and their range are what a matrix is made with.
pub(crate) fn check_rows(rows: Rows<'_>) -> Result<(), BatchError> {
    let check = |query| check_values(rows.row(query).values()).map_err(|source| BatchError { query, source });
    (0..rows.len()).try_for_each(check)
}

/// Labels in ascending order, each once.
pub(crate) fn sorted(labels: &[LabelId], out: &mut Vec<LabelId>) {
    labels.clone_into(out);
    if !out.is_sorted_by(|a, b| a < b) {
        out.sort_unstable();
        out.dedup();
    }
}
