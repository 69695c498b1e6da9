//! The index over a model's labels, in the model's folder.

use super::query::Queries;
use super::{BatchError, Model};
use crate::classifier::{Classifier, Fit, LabelIndex, LabelIndexError};
use std::path::Path;
use thiserror::Error;
use xc_ann::{BuildParams, Observer, Refresh, Refreshed};
use xc_sparse::store::{Container, ContainerWriter, OpenMode, PART_FOLDER, WriteError};

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
    #[error("{folder}: an index of other weights{}: all labels are scored; `xc index refresh` brings it up to them", age(*steps))]
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

fn age(steps: Option<i64>) -> String {
    steps.map_or_else(String::new, |steps| format!(", {steps} steps older"))
}

const WEIGHTS: &str = "weights_xxh3";
const STEPS: &str = "steps";

/// What the weights and biases of the output layer hash to.
fn hash_of(container: &Container) -> String {
    let hashes = ["head.weights", "head.bias"].map(|name| container.entry(name).map_or("", |entry| &*entry.xxh3));
    hashes.join("-")
}

/// Steps that the model was trained for, where its folder says so.
fn steps_of(container: &Container) -> Option<i64> {
    container.parameters().get("training")?.get(STEPS)?.as_i64()
}

/// Gives the classifier the index of its folder, if there is one that is no more than `max_age` steps
/// older than the weights; says why not.
pub(super) fn take_index(
    classifier: &mut Classifier,
    container: &Container,
    mode: OpenMode,
    max_age: Option<u64>,
) -> Option<IndexWarning> {
    let path = container.folder().join(PART_FOLDER);
    if !path.is_dir() {
        return None;
    }
    let folder = path.display().to_string();
    let (index, of_index) = match LabelIndex::open(&path, mode) {
        Ok(opened) => opened,
        Err(source) => return Some(IndexWarning::Unusable { folder, source }),
    };
    let is_fresh = of_index.parameter::<String>(WEIGHTS).is_ok_and(|hash| hash == hash_of(container));
    let steps = steps_of(container).zip(of_index.parameter::<i64>(STEPS).ok()).map(|(now, then)| now - then);
    let is_allowed = max_age.zip(steps).is_some_and(|(most, steps)| steps.unsigned_abs() <= most);
    if !is_fresh && !is_allowed {
        return Some(IndexWarning::Old { folder, steps });
    }
    classifier.set_index(Some(index)).err().map(|source| IndexWarning::Unusable { folder, source })
}

impl Model {
    fn classifier(&self) -> Result<&Classifier, IndexError> {
        self.as_kind::<Classifier>().ok_or(IndexError::Kind { kind: self.kind.name })
    }

    /// Builds an index over the labels. With `queries` like those that will be asked, its settings and
    /// the search width are fitted to them.
    ///
    /// # Errors
    /// See [`IndexError`].
    pub fn build_index(
        &self,
        queries: Option<Queries<'_>>,
        params: &BuildParams,
        fit: Fit,
        observer: &dyn Observer,
    ) -> Result<LabelIndex, IndexError> {
        let classifier = self.classifier()?;
        let made;
        let features = match queries {
            None => None,
            Some(Queries::Dense(rows)) if self.shape.takes_vectors => {
                super::check_batch(super::Batch::Dense(rows))?;
                Some(crate::Features::Dense(rows))
            }
            Some(queries) => {
                made = self.features(queries)?;
                super::check_batch(super::Batch::Sparse(made.view()))?;
                Some(crate::Features::Sparse(xc_sparse::Rows::new(made.view())))
            }
        };
        Ok(classifier.build_index(features, params, fit, observer)?)
    }

    /// Bytes that [`Model::build_index`] takes.
    ///
    /// # Errors
    /// A kind of model, or an output layer, that has no vectors of labels.
    pub fn index_bytes(&self, params: &BuildParams) -> Result<usize, IndexError> {
        Ok(self.classifier()?.index_bytes(params)?)
    }

    /// Opens the index of the model's folder, whatever weights it was made for, and brings it up to
    /// these.
    ///
    /// # Errors
    /// See [`IndexError`]; there is none.
    pub fn refresh_index(
        &self,
        policy: Option<Refresh>,
        observer: &dyn Observer,
    ) -> Result<(LabelIndex, Refreshed), IndexError> {
        let classifier = self.classifier()?;
        let (mut index, _) = LabelIndex::open(&self.container.folder().join(PART_FOLDER), OpenMode::Read)?;
        let done = classifier.refresh_index(&mut index, policy, observer)?;
        Ok((index, done))
    }

    /// Saves an index of these weights: in the model's folder, where opening finds it, or in another
    /// one.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn save_index(&self, index: &LabelIndex, folder: Option<&Path>) -> Result<(), IndexError> {
        let own = self.container.folder().join(PART_FOLDER);
        let mut writer = ContainerWriter::create(folder.unwrap_or(&own), xc_ann::KIND)?;
        writer.set_parameter(WEIGHTS, hash_of(&self.container));
        if let Some(steps) = steps_of(&self.container) {
            writer.set_parameter(STEPS, steps);
        }
        index.write(&mut writer)?;
        Ok(writer.finish()?)
    }

    /// The index that answers, if there is one.
    pub fn index(&self) -> Option<&LabelIndex> {
        self.as_kind::<Classifier>()?.index()
    }
}
