//! What a label's score for a query consists of: what becomes of it without each feature.
//!
//! The effect of a feature is the score of the label less the score for the same row without the feature. The row is
//! the one that the model's pipeline made, and is not weighted or scaled again; of a text that a transformer reads it
//! is the tokens, which are taken out one by one in their order, whether the transformer is trained with the model or
//! makes its vectors; words that a wide term reads beside them stay, and are told apart by the parts of its logit. The
//! label is scored directly, whether or not a search would find it. Effects need not add up to the score, as the model
//! need not be linear.
//!
//! For a tree the parts of the margins on the way to the label come in addition, which do add up. A custom kind that
//! reads texts itself has a score and no effects.

use super::query::check_labels;
use super::rest::Rest;
use super::{
    Answer, BatchError, Candidates, Model, OwnedRows, QueryError, QueryOptions, Row, ScoreOptions, Scratch, Texts,
};
use crate::classifier::{Classifier, WideParts};
use crate::kinds::blend;
use crate::tokens::{tokenise, vectorise};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use xc_buffer::parallel::in_pool;
use xc_dense::DenseMatrix;
use xc_hash::text::Featurizer;
use xc_sparse::rank::{LabelId, RankedBatch};
use xc_sparse::rows::{TokenRow, TokenRows};
use xc_sparse::{CsrMatrix, SparseRow};
use xc_tree::{PathNode, TreeModel};

/// Most features whose effects are computed one by one.
pub const MAX_FEATURES: usize = 200;

/// How a score is explained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExplainOptions {
    /// As [`QueryOptions::made`].
    pub made: bool,
    /// Features whose effects are computed one by one, at most [`MAX_FEATURES`].
    pub n_features: usize,
    /// Explain the scores of the model itself, calibrated or not.
    pub raw: bool,
}

impl Default for ExplainOptions {
    fn default() -> Self {
        Self { made: false, n_features: MAX_FEATURES, raw: false }
    }
}

/// Why a label has its score.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// The label.
    pub label: LabelId,
    /// Its score; 0 where the model never answers it, or knows no term of a text.
    pub score: f32,
    /// Its logit, for a network; that of the network alone, beside a wide term.
    pub logit: Option<f32>,
    /// What the logit of network and wide term together consists of, for a network that has one.
    pub wide: Option<WideParts>,
    /// The effects of features, the strongest first; none for a custom kind that reads texts itself.
    pub effects: Vec<Effect>,
    /// What all other features do together: those with the smallest values.
    pub others: Option<Others>,
    /// For each tree, the nodes on the way to the label; their parts name features by number.
    pub paths: Vec<Vec<PathNode>>,
}

/// A feature of a query.
#[derive(Clone, Debug, PartialEq)]
pub struct Feature {
    /// Its number, or that of a coordinate or token; `None` for a term of a blend, whose members number terms for
    /// themselves.
    pub number: Option<u32>,
    /// The term that it counts, or the token that it is, for a model of text.
    pub term: Option<String>,
    /// Whether it counts several terms of a text, which are hashed to it and not known.
    pub hashed: bool,
    /// Its value in the row, 1 for a token; for a blend the largest among its members.
    pub value: f32,
}

/// What one feature does to a score.
#[derive(Clone, Debug, PartialEq)]
pub struct Effect {
    /// The feature.
    pub feature: Feature,
    /// The score less that without the feature.
    pub score: f32,
    /// The same of the logit, for a network.
    pub logit: Option<f32>,
}

/// What several features together do to a score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Others {
    /// How many they are.
    pub n: usize,
    /// The score less that without all of them.
    pub score: f32,
    /// The same of the logit, for a network.
    pub logit: Option<f32>,
}

/// A feature, and where it stands in the rows of the models: model and position.
struct Part {
    feature: Feature,
    places: Vec<(usize, usize)>,
}

impl Model {
    /// Explains the score of a label for a query: what each of its features does to it, or each coordinate of a vector.
    /// Those with the largest values are taken out one by one, the others together. A blend ranks the candidates of the
    /// whole query for all of them.
    ///
    /// *Cost*: that of a query with one candidate for each of these features, and two more.
    ///
    /// # Errors
    /// An input that the model does not take, a label that it does not have.
    pub fn explain(
        &self,
        query: &Row<'_>,
        label: LabelId,
        options: &ExplainOptions,
    ) -> Result<Explanation, QueryError> {
        check_labels(&[label], self.shape.n_labels)?;
        let n_features = options.n_features.min(MAX_FEATURES);
        let scores = ScoreOptions { raw: options.raw, threshold: None };
        let made = options.made;
        let options = QueryOptions { made, candidates: Candidates::Labels(&[label]), scores, ..QueryOptions::top(1) };
        // What is wrong with the query is said as of any other.
        self.predict(query, &options, &mut Scratch::default(), &mut Answer::default())?;
        let members = self.members();
        // Members make their rows of what a blend is asked with.
        let is_made = made && self.as_kind::<blend::Blend>().is_none();
        let made: Vec<OwnedRows> =
            members.iter().map(|member| member.made(query, is_made)).collect::<Result<_, _>>()?;
        let mut parts = parts(members, &made);
        let others = parts.split_off(parts.len().min(n_features));
        let mut without: Vec<Vec<(usize, usize)>> = vec![Vec::new()];
        without.extend(parts.iter().map(|part| part.places.clone()));
        if !others.is_empty() {
            without.push(others.iter().flat_map(|part| part.places.iter().copied()).collect());
        }
        let rows = members.iter().zip(&made).enumerate().map(|(at, (member, made))| member.rows(made, at, &without));
        let rows: Vec<OwnedRows> = rows.collect::<Result<_, _>>()?;
        let scores = self.scores_of(label, &rows, &options)?;
        let classifier = self.as_standard::<Classifier>();
        let logits = classifier.map(|classifier| classifier.logits_of(rows[0].view(), label));
        let wide = classifier.and_then(|classifier| classifier.wide_parts(rows[0].view().row(0), label));
        let score = |at: usize| scores[0] - scores[at];
        let logit = |at: usize| logits.as_ref().map(|logits| logits[0] - logits[at]);
        let mut effects: Vec<Effect> = (1..)
            .zip(parts)
            .map(|(at, Part { feature, .. })| Effect { feature, score: score(at), logit: logit(at) })
            .collect();
        effects.sort_by(|a, b| b.score.abs().total_cmp(&a.score.abs()));
        let last = without.len() - 1;
        let others = (!others.is_empty()).then(|| Others { n: others.len(), score: score(last), logit: logit(last) });
        let paths = match (self.as_standard::<TreeModel>(), &rows[0]) {
            (Some(tree), OwnedRows::Sparse(rows)) => tree.paths(rows.row(0), label)?,
            _ => Vec::new(),
        };
        let logit = logits.map(|logits| logits[0]);
        Ok(Explanation { label, score: scores[0], logit, wide, effects, others, paths })
    }

    /// The models that make rows of a query: those of a blend, or this one.
    fn members(&self) -> &[Self] {
        self.as_kind().map_or(std::slice::from_ref(self), blend::Blend::members)
    }

    /// The row of a query as this model's network or trees take it; where a pipeline makes vectors, their tokens.
    fn made(&self, query: &Row<'_>, made: bool) -> Result<OwnedRows, QueryError> {
        let row = *query;
        let row = match row {
            Row::Text(text) => OwnedRows::Texts(vec![text.to_owned()]),
            Row::Dense(values) => {
                return Ok(OwnedRows::Dense(DenseMatrix::new(1, values.len(), values.to_vec())));
            }
            Row::Sparse(row) => {
                let (indices, values) = (row.indices().to_vec(), row.values().to_vec());
                let shape = (1, self.shape.n_features);
                OwnedRows::Sparse(CsrMatrix::from_checked(shape, vec![0, indices.len()], indices, values))
            }
            Row::Tokens(row) => {
                let words = row.words.filter(|_| self.shape.words.is_some());
                OwnedRows::Tokens(tokens([row.ids], self.shape.n_features, words.zip(self.shape.words)))
            }
        };
        if made {
            return Ok(row);
        }
        if let (OwnedRows::Texts(texts), Some(Featurizer::Vectors(of))) = (&row, self.pipeline()) {
            let tokens = tokenise(of.tokens(), Texts::Strings(texts));
            return tokens.map(OwnedRows::Tokens).map_err(|(_, e)| QueryError::Tokenise(e));
        }
        self.features(row.view()).map_err(|e| e.source)
    }

    /// The row that was made, each time without some of its entries, as this model's network or trees take it; once
    /// where none of them is this model's.
    fn rows(&self, made: &OwnedRows, model: usize, without: &[Vec<(usize, usize)>]) -> Result<OwnedRows, QueryError> {
        let taken = |out: &[(usize, usize)]| {
            let mut out: Vec<usize> = out.iter().filter(|(of, _)| *of == model).map(|(_, at)| *at).collect();
            out.sort_unstable();
            out
        };
        let is_whole = without.iter().all(|out| taken(out).is_empty());
        let without = if is_whole { &without[..1] } else { without };
        Ok(match made.view().row(0) {
            Row::Sparse(row) => {
                let (mut indptr, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
                for out in without {
                    let out = taken(out);
                    for (at, (feature, weight)) in row.iter().enumerate() {
                        if out.binary_search(&at).is_err() {
                            indices.push(feature);
                            values.push(weight);
                        }
                    }
                    indptr.push(indices.len());
                }
                let shape = (without.len(), self.shape.n_features);
                OwnedRows::Sparse(CsrMatrix::from_checked(shape, indptr, indices, values))
            }
            Row::Tokens(TokenRow { ids, words }) => {
                let kept = without.iter().map(|out| {
                    let out = taken(out);
                    let is_kept = |(at, _): &(usize, &u32)| out.binary_search(at).is_err();
                    ids.iter().enumerate().filter(is_kept).map(|(_, &id)| id).collect::<Vec<_>>()
                });
                match self.pipeline() {
                    Some(Featurizer::Vectors(of)) => {
                        let rows = tokens(kept, of.tokens().n_tokens(), None);
                        OwnedRows::Dense(vectorise(&**of, rows.view()).map_err(QueryError::Vectorise)?)
                    }
                    _ => OwnedRows::Tokens(tokens(kept, self.shape.n_features, words.zip(self.shape.words))),
                }
            }
            // Nothing is taken out of a text.
            Row::Text(_) => made.clone(),
            row => {
                let mut values = row.values().repeat(without.len());
                let columns = row.values().len();
                for (out, values) in without.iter().zip(values.chunks_exact_mut(columns.max(1))) {
                    taken(out).into_iter().for_each(|at| values[at] = 0.0);
                }
                OwnedRows::Dense(DenseMatrix::new(without.len(), columns, values))
            }
        })
    }

    /// The score of a label for some rows, which each member made: 0 where it has none.
    fn scores_of(
        &self,
        label: LabelId,
        rows: &[OwnedRows],
        options: &QueryOptions<'_>,
    ) -> Result<Vec<f32>, QueryError> {
        let ranked = match self.as_kind::<blend::Blend>() {
            None => self.ranked(&rows[0], &QueryOptions { made: true, ..*options })?,
            Some(blend) => {
                let rest = Rest { options, excluded: &[], calibration: self.calibration_for(options)? };
                let ranked = blend.score_of(label, rows)?;
                let known = vec![1; ranked.len()];
                rest.finish_batch(ranked, &known).map_err(|e| e.source)?
            }
        };
        Ok(ranked.iter().map(|row| row.first().map_or(0.0, |s| s.score)).collect())
    }

    /// The labels of queries; outside of a pool on the calling thread.
    pub(crate) fn ranked(&self, rows: &OwnedRows, options: &QueryOptions<'_>) -> Result<RankedBatch, QueryError> {
        let rows = rows.view();
        let answers = if in_pool() {
            self.predict_batch(rows, options)
        } else {
            self.predict_each(rows, options, &mut Scratch::default())
        };
        answers.map(|answers| answers.ranked).map_err(|BatchError { source, .. }| source)
    }
}

/// Rows of ids that were checked, each with the same words beside it, of so many features.
fn tokens<R: AsRef<[u32]>>(
    rows: impl IntoIterator<Item = R>,
    n_tokens: usize,
    words: Option<(SparseRow<'_>, usize)>,
) -> TokenRows {
    let mut out = TokenRows::new(n_tokens);
    rows.into_iter().for_each(|ids| out.push(ids.as_ref()).unwrap_or_else(|e| panic!("ids that were checked: {e}")));
    let Some((row, n_features)) = words else { return out };
    let (n, each) = (out.len(), row.indices().len());
    let (indices, values) = (row.indices().repeat(n), row.values().repeat(n));
    let words = CsrMatrix::from_checked((n, n_features), (0..=n).map(|i| i * each).collect(), indices, values);
    out.with_words(words).unwrap_or_else(|e| panic!("a row of words each: {e}"))
}

/// The tokens of a query in their order, each of them a part.
fn parts_of_tokens(model: &Model, ids: &[u32]) -> Vec<Part> {
    let name = |id| match model.pipeline() {
        Some(Featurizer::Tokens(of)) => of.token(id),
        Some(Featurizer::Vectors(of)) => of.tokens().token(id),
        _ => None,
    };
    let feature = |id| Feature { number: Some(id), term: name(id), hashed: false, value: 1.0 };
    let part = |(at, &id): (usize, &u32)| Part { feature: feature(id), places: vec![(0, at)] };
    ids.iter().enumerate().map(part).collect()
}

/// The features of a query, those with the largest values first. Members of a blend share terms, or numbers where the
/// rows are not of texts.
fn parts(members: &[Model], made: &[OwnedRows]) -> Vec<Part> {
    if let ([model], [made]) = (members, made)
        && let Row::Tokens(row) = made.view().row(0)
    {
        return parts_of_tokens(model, row.ids);
    }
    let mut of_key: BTreeMap<(Option<String>, usize, u32), Part> = BTreeMap::new();
    for (model, (member, made)) in members.iter().zip(made).enumerate() {
        let pipeline = match member.pipeline() {
            Some(Featurizer::Text(pipeline)) => Some(pipeline),
            _ => None,
        };
        let entries: Vec<(u32, f32)> = match made.view().row(0) {
            Row::Sparse(row) => row.iter().collect(),
            Row::Dense(values) => (0..).zip(values.iter().copied()).collect(),
            // Tokens of a member of a blend stay, and words beside them.
            Row::Tokens(_) | Row::Text(_) => Vec::new(),
        };
        for (at, (number, value)) in entries.into_iter().enumerate().filter(|(_, (_, value))| *value != 0.0) {
            let term = pipeline.and_then(|pipeline| pipeline.term(number)).map(str::to_owned);
            let key = match (&term, pipeline) {
                // A term may stand in several blocks of one pipeline.
                (Some(_), _) if members.len() == 1 => (None, 0, number),
                (Some(term), _) => (Some(term.clone()), 0, 0),
                (None, Some(_)) => (None, model, number),
                (None, None) => (None, 0, number),
            };
            let shown = (key.0.is_none()).then_some(number);
            let part = of_key.entry(key).or_insert_with(|| Part {
                feature: Feature { number: shown, hashed: pipeline.is_some() && term.is_none(), term, value },
                places: Vec::new(),
            });
            if value.abs() > part.feature.value.abs() {
                part.feature.value = value;
            }
            part.places.push((model, at));
        }
    }
    let mut parts: Vec<Part> = of_key.into_values().collect();
    parts.sort_by_key(|part| Reverse(part.feature.value.abs().to_bits()));
    parts
}
