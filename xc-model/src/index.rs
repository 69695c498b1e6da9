//! The index over a model's labels, in the model's folder.

use super::{BatchError, Model, OpenOptions, UseIndex};
use super::{InputKind, Rows};
use crate::classifier::{Classifier, LabelIndex, LabelIndexError, LostPrecision};
use std::io::ErrorKind;
use std::path::Path;
use thiserror::Error;
use xc_ann::{BuildError, BuildEvent, BuildParams, Fitted, Metric, Refresh, Refreshed};
use xc_buffer::Observer;
use xc_sparse::LabelRows;
use xc_store::{Container, ContainerWriter, OpenError, OpenMode, PART_FOLDER, WriteError};

/// Why a model has no index of its labels.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum IndexError {
    /// A kind of model whose labels are not vectors.
    #[error("a model of kind {kind:?} has no vectors of labels to index")]
    Kind {
        /// The kind.
        kind: &'static str,
    },
    /// The index itself.
    #[error(transparent)]
    Index(#[from] LabelIndexError),
    /// Queries that it was to be fitted to.
    #[error(transparent)]
    Queries(#[from] BatchError),
    /// The folder cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

/// An index that does not answer.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum IndexWarning {
    /// The weights have changed since.
    #[error("{folder}: an index of other weights{}: all labels are scored until it is refreshed", age(*steps))]
    Old {
        /// The folder.
        folder: String,
        /// Training steps since, where both say how many there were.
        steps: Option<i64>,
    },
    /// It does not open, or belongs to another model.
    #[error("{folder}: an index that does not answer: all labels are scored")]
    Unusable {
        /// The folder.
        folder: String,
        /// Why.
        source: LabelIndexError,
    },
}

/// What an index is fitted to where it is known which labels are true: [`Model::fit_index`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IndexFit {
    /// Answers a query.
    pub top_k: usize,
    /// Share that P@1, P@3 and P@5 may lose against scoring all labels.
    pub max_loss: f64,
    /// Refuses an index that finds a smaller share of the best labels.
    pub min_recall: Option<f64>,
}

impl Default for IndexFit {
    /// Ten answers, a tenth of a point.
    fn default() -> Self {
        Self { top_k: 10, max_loss: 0.001, min_recall: None }
    }
}

/// How an index over labels is usually built: for inner products, such that the best label of a query is found, too.
///
/// It finds 0.99 of the best labels where nothing tells which are true: answers should be those of all labels except in
/// rare cases, and 0.95 costs points of precision (`bench/results/ann-heads.md`).
pub fn label_index_params() -> BuildParams {
    BuildParams { target_recall: 0.99, require_recall_at_1: true, ..BuildParams::new(Metric::InnerProduct) }
}

fn age(steps: Option<i64>) -> String {
    steps.map_or_else(String::new, |steps| format!(", {steps} steps older"))
}

const WEIGHTS: &str = "weights_xxh3";
/// Arrays of output layers.
const LAYER: [&str; 4] = ["head.weights", "head.bias", "head.indices", "head.starts"];
const STEPS: &str = "steps";

/// What the arrays of the output layer hash to.
fn hash_of(container: &Container) -> String {
    let hashes = LAYER.iter().filter_map(|name| container.entry(name)).map(|entry| &*entry.xxh3);
    hashes.collect::<Vec<_>>().join("-")
}

/// Steps that the model was trained for, where its folder says so.
fn steps_of(container: &Container) -> Option<i64> {
    container.parameters().get("training")?.get(STEPS)?.as_i64()
}

/// Gives the classifier the index of its folder, if there is one that may answer; says why not.
///
/// # Errors
/// The folder was replaced before its index was opened.
pub(crate) fn take_index(
    classifier: &mut Classifier,
    container: &Container,
    options: &OpenOptions,
) -> Result<Option<IndexWarning>, OpenError> {
    let most = match options.index {
        UseIndex::Never => return Ok(None),
        UseIndex::Fresh => None,
        UseIndex::UpTo(steps) => Some(steps),
    };
    let folder = container.folder().join(PART_FOLDER).display().to_string();
    let unusable = |source| Ok(Some(IndexWarning::Unusable { folder: folder.clone(), source }));
    let of_index = match container.inside(PART_FOLDER, options.mode) {
        Ok(Some(of_index)) => of_index,
        Ok(None) => return Ok(None),
        Err(error) if container.replacement()() => return Err(error),
        Err(error) => return unusable(error.into()),
    };
    // Another model's index, or one of vectors, is not made younger by training on.
    let is_fresh = match of_index.parameter::<String>(WEIGHTS) {
        Ok(hash) => hash == hash_of(container),
        Err(error) => return unusable(error.into()),
    };
    let steps = steps_of(container).zip(of_index.parameter::<i64>(STEPS).ok()).map(|(now, then)| now - then);
    let is_young =
        || most.zip(steps).is_some_and(|(most, steps)| u64::try_from(steps).is_ok_and(|steps| steps <= most));
    if !is_fresh && !is_young() {
        return Ok(Some(IndexWarning::Old { folder, steps }));
    }
    let taken = LabelIndex::of(&of_index).and_then(|index| classifier.set_index(Some(index)));
    taken.err().map_or(Ok(None), unusable)
}

impl Model {
    fn classifier(&self) -> Result<&Classifier, IndexError> {
        self.as_standard::<Classifier>().ok_or(IndexError::Kind { kind: self.kind.name })
    }

    /// Builds an index over the labels, for `queries` like those that will be asked.
    ///
    /// # Errors
    /// See [`IndexError`].
    pub fn build_index(
        &self,
        queries: Option<Rows<'_>>,
        params: &BuildParams,
        observer: &dyn Observer<BuildEvent>,
    ) -> Result<LabelIndex, IndexError> {
        let classifier = self.classifier()?;
        self.with_features(queries, |features| Ok(classifier.build_index(features, params, observer)?))
    }

    /// Queries as the network takes them.
    fn with_features<T>(
        &self,
        queries: Option<Rows<'_>>,
        work: impl FnOnce(Option<Rows<'_>>) -> Result<T, IndexError>,
    ) -> Result<T, IndexError> {
        match queries {
            None => work(None),
            Some(rows) if rows.kind() == InputKind::Dense && self.shape.takes == InputKind::Dense => {
                super::query::check_rows(rows)?;
                work(Some(rows))
            }
            Some(queries) => {
                let made = self.features(queries)?;
                let rows = made.view();
                super::query::check_rows(rows)?;
                work(Some(rows))
            }
        }
    }

    /// Fits an index to what P@1, P@3 and P@5 of its answers lose; see [`Classifier::fit_index`].
    ///
    /// # Errors
    /// See [`IndexError`]; too few of the best labels are found.
    ///
    /// # Panics
    /// If there are not as many rows of labels as queries.
    pub fn fit_index(
        &self,
        index: &mut LabelIndex,
        queries: Rows<'_>,
        labels: &LabelRows,
        params: &IndexFit,
    ) -> Result<Option<(Fitted, LostPrecision)>, IndexError> {
        let (classifier, &IndexFit { top_k: k, max_loss: most, min_recall }) = (self.classifier()?, params);
        let fitted = self.with_features(Some(queries), |features| match features {
            Some(Rows::Sparse(rows)) if matches!(queries, Rows::Texts(_)) => {
                // Texts without a known word have no answer, whatever the network makes of them.
                let of = |row: usize| if rows.row(row).indices().is_empty() { &[][..] } else { labels.row(row) };
                let known = LabelRows::from_lists((0..labels.len()).map(of), labels.n_labels());
                let known = known.unwrap_or_else(|e| panic!("label lists of label lists: {e}"));
                Ok(classifier.fit_index(index, Rows::Sparse(rows), &known, k, most)?)
            }
            Some(features) => Ok(classifier.fit_index(index, features, labels, k, most)?),
            None => Ok(None),
        })?;
        match (min_recall, fitted) {
            (Some(least), Some((Fitted { recall, k, .. }, _))) if recall < least => {
                Err(LabelIndexError::from(BuildError::TooFewFound { recall, k, least }).into())
            }
            _ => Ok(fitted),
        }
    }

    /// Bytes that [`Model::build_index`] takes.
    ///
    /// # Errors
    /// A kind of model, or an output layer, that has no vectors of labels.
    pub fn index_bytes(&self, params: &BuildParams) -> Result<usize, IndexError> {
        Ok(self.classifier()?.index_bytes(params)?)
    }

    /// Opens the index of the model's folder, whatever weights it was made for, and brings it up to
    /// these. Edges that were made for queries are made again for those that are given.
    ///
    /// # Errors
    /// See [`IndexError`]; there is none.
    pub fn refresh_index(
        &self,
        queries: Option<Rows<'_>>,
        policy: Option<Refresh>,
        observer: &dyn Observer<BuildEvent>,
    ) -> Result<(LabelIndex, Option<Refreshed>), IndexError> {
        let classifier = self.classifier()?;
        let opened = self.container.inside(PART_FOLDER, OpenMode::Read).and_then(|opened| {
            let (path, source) = (self.container.folder().join(PART_FOLDER), ErrorKind::NotFound.into());
            opened.ok_or(OpenError::Io { path, source })
        });
        let mut index = LabelIndex::of(&opened.map_err(LabelIndexError::from)?)?;
        let refresh =
            |features: Option<Rows<'_>>| Ok(classifier.refresh_index(&mut index, features, policy, observer)?);
        let done = self.with_features(queries, refresh)?;
        Ok((index, done))
    }

    /// Saves an index of these weights: in the model's folder, where opening finds it, or in another
    /// one.
    ///
    /// # Errors
    /// The folder cannot be written; the model has none, and no other one is named.
    pub fn save_index(&self, index: &LabelIndex, folder: Option<&Path>) -> Result<(), IndexError> {
        if folder.is_none() && self.folder().as_os_str().is_empty() {
            return Err(WriteError::InMemory.into());
        }
        let own = self.container.folder().join(PART_FOLDER);
        let mut writer = ContainerWriter::create(folder.unwrap_or(&own), index.kind())?;
        writer.set_parameter(WEIGHTS, hash_of(&self.container));
        if let Some(steps) = steps_of(&self.container) {
            writer.set_parameter(STEPS, steps);
        }
        index.write(&mut writer)?;
        Ok(writer.finish()?)
    }

    /// The index that answers, if there is one.
    pub fn index(&self) -> Option<&LabelIndex> {
        self.as_standard::<Classifier>()?.index()
    }
}
