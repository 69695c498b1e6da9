//! Repetitions of a MACH model that were trained apart, put together.

use serde_json::{Map, Value};
use std::error::Error;
use std::path::{Path, PathBuf};
use thiserror::Error;
use xc_model::PIPELINE_PREFIX;
use xc_model::classifier::LearningParams;
use xc_model::mach::{self, MachContainer};
use xc_store::{Container, ContainerWriter, Mismatch, OpenError, WriteError};
use xc_tree::{PART_KIND, StoredTrees};

/// Parameters in which all parts of a MACH model agree.
const SHARED: [&str; 4] = ["mach", LearningParams::NAME, "n_features", "n_labels"];
/// Parameters in which all parts of trees agree.
const SHARED_BY_TREES: [&str; 9] = [
    "training",
    "n_features",
    "n_labels",
    "post_processor",
    "normalise_rows",
    "row_length",
    "beam",
    "precision",
    "input",
];

/// Parts of one model that belong together, to be written as one.
#[derive(Debug)]
pub struct MergedParts {
    parts: Vec<MachContainer>,
    numbers: Vec<u32>,
    /// The part that each repetition lies in.
    places: Vec<usize>,
}

impl MergedParts {
    /// Of parts with the same parameters.
    fn new(parts: Vec<Container>) -> Result<Self, MergeError> {
        let parts: Vec<_> =
            parts.into_iter().map(MachContainer::of).collect::<Result<_, _>>().map_err(MergeError::model)?;
        let mut places: Vec<(u32, usize)> = Vec::new();
        for (at, part) in parts.iter().enumerate() {
            for &number in part.numbers() {
                if let Some(&(_, other)) = places.iter().find(|&&(n, _)| n == number) {
                    let folder = |at: usize| parts[at].container().folder().to_owned();
                    return Err(MergeError::Repeated { path: folder(at), number, other: folder(other) });
                }
                places.push((number, at));
            }
        }
        places.sort_unstable();
        let (numbers, places) = places.into_iter().unzip();
        Ok(Self { parts, numbers, places })
    }

    /// The first of the containers, whose pipeline and label names are those of all.
    pub fn first(&self) -> &Container {
        self.parts[0].container()
    }

    /// Numbers of the repetitions, ascending.
    pub fn numbers(&self) -> &[u32] {
        &self.numbers
    }

    /// Number of labels.
    pub fn n_labels(&self) -> usize {
        self.parts[0].n_labels()
    }

    /// Whether the model can have so many labels.
    ///
    /// # Errors
    /// Fewer than it has, or more than its parameters allow for.
    pub fn check_labels(&self, n_labels: usize) -> Result<(), MergeError> {
        let assignment = self.parts[0].params().assignment(self.n_labels(), &self.numbers);
        assignment.map_err(MergeError::model)?.grown_to(n_labels).map_err(MergeError::model)?;
        Ok(())
    }

    /// Begins the folder of a model of so many labels.
    ///
    /// # Errors
    /// The container refuses.
    pub fn create(&self, folder: impl AsRef<Path>, n_labels: usize) -> Result<ContainerWriter, WriteError> {
        let folder = folder.as_ref();
        let first = &self.parts[0];
        let mut writer = first.params().create(folder, first.n_features(), n_labels, &self.numbers)?;
        // Of a folder that was opened, what it says.
        let learning = first.container().parameters().get(LearningParams::NAME).cloned();
        writer.set_parameter(LearningParams::NAME, learning.unwrap_or_default());
        Ok(writer)
    }

    /// Adds the repetition at `position` of [`MergedParts::numbers`].
    ///
    /// # Errors
    /// The part is damaged; the container refuses.
    ///
    /// # Panics
    /// If there is no such part.
    pub fn write(&self, position: usize, writer: &mut ContainerWriter) -> Result<(), MergeError> {
        let repetition = self.parts[self.places[position]].repetition(self.numbers[position]);
        Ok(repetition.map_err(MergeError::model)?.write(writer)?)
    }
}

/// Why models do not become one.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MergeError {
    /// A kind of model that has no parts.
    #[error("{}: models of kind {kind:?} cannot be merged; expected {known}", path.display())]
    Kind {
        /// The folder.
        path: PathBuf,
        /// Its kind.
        kind: String,
        /// The kind that can be merged.
        known: &'static str,
    },
    /// A container that is not what it should be.
    #[error(transparent)]
    Container(#[from] OpenError),
    /// A file changed since it was saved.
    #[error("{0}: damaged since it was saved")]
    Damaged(Mismatch),
    /// The kind of model refuses.
    #[error(transparent)]
    Model(Box<dyn Error + Send + Sync>),
    /// A parameter of two parts differs.
    #[error("{}: {name} is {got}, expected {expected} as in {}", path.display(), first.display())]
    Parameter {
        /// Folder of the part.
        path: PathBuf,
        /// Dotted name of the parameter.
        name: String,
        /// Its value, as JSON.
        got: String,
        /// Value in the first part.
        expected: String,
        /// Folder of the first part.
        first: PathBuf,
    },
    /// Features or labels of two parts differ.
    #[error("{}: {what} is not that of {}", path.display(), first.display())]
    Content {
        /// Folder of the part.
        path: PathBuf,
        /// What differs.
        what: &'static str,
        /// Folder of the first part.
        first: PathBuf,
    },
    /// Two folders hold the same part.
    #[error("{}: repetition {number} is also in {}; expected parts with different repetitions", path.display(), other.display())]
    Repeated {
        /// The folder.
        path: PathBuf,
        /// Number of the part.
        number: u32,
        /// The other folder.
        other: PathBuf,
    },
    /// The merged folder cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl MergeError {
    /// What a kind of model says.
    pub(crate) fn model(error: impl Error + Send + Sync + 'static) -> Self {
        Self::Model(Box::new(error))
    }
}

/// Models that are parts of one, checked: whole, of one kind, with the same parameters, features
/// and labels.
///
/// *Cost*: reads every file once.
///
/// # Errors
/// Parts that are damaged or do not belong together.
///
/// # Panics
/// If there is none.
pub fn merge(parts: Vec<Container>) -> Result<MergedParts, MergeError> {
    assert!(!parts.is_empty(), "no parts to merge");
    let (first, others) = (&parts[0], &parts[1..]);
    if first.kind() != mach::KIND {
        let (path, kind) = (first.folder().to_owned(), first.kind().to_owned());
        return Err(MergeError::Kind { path, kind, known: mach::KIND });
    }
    verify(&parts, mach::KIND)?;
    others.iter().try_for_each(|part| same(first, part, &SHARED))?;
    MergedParts::new(parts)
}

/// The trees of parts, checked as [`merge`] does.
///
/// *Cost*: reads every file once.
///
/// # Errors
/// Parts that are damaged, do not belong together, or are not all that there are.
///
/// # Panics
/// If there is none.
pub fn merge_trees(parts: Vec<Container>) -> Result<StoredTrees<'static>, MergeError> {
    assert!(!parts.is_empty(), "no parts to merge");
    verify(&parts, PART_KIND)?;
    parts[1..].iter().try_for_each(|part| same(&parts[0], part, &SHARED_BY_TREES))?;
    StoredTrees::of_parts(parts).map_err(MergeError::model)
}

/// Refuses parts of another kind, and files that changed since they were saved.
fn verify(parts: &[Container], kind: &str) -> Result<(), MergeError> {
    for part in parts {
        part.expect_kind(kind)?;
        if let Some(mismatch) = part.verify()?.into_iter().next() {
            return Err(MergeError::Damaged(mismatch));
        }
    }
    Ok(())
}

/// Whether two models were trained with the same settings, as their folders note them.
pub fn trained_alike(a: &Container, b: &Container) -> bool {
    a.parameters().get("training") == b.parameters().get("training")
}

/// Refuses parts that do not belong together, naming what differs.
fn same(first: &Container, part: &Container, shared: &[&str]) -> Result<(), MergeError> {
    let (path, first_path) = (part.folder().to_owned(), first.folder().to_owned());
    for &key in shared {
        let at = |container: &Container| container.parameters().get(key).cloned().unwrap_or(Value::Null);
        if let Some((name, expected, got)) = difference(key, &at(first), &at(part)) {
            let (got, expected) = (got.to_string(), expected.to_string());
            return Err(MergeError::Parameter { path, name, got, expected, first: first_path });
        }
    }
    let hashes = |container: &Container| {
        let arrays = container.arrays().filter(|(name, _)| name.starts_with(PIPELINE_PREFIX));
        arrays.map(|(name, entry)| (name.to_owned(), entry.xxh3.clone())).collect::<Vec<_>>()
    };
    let what = if first.pipeline() != part.pipeline() || hashes(first) != hashes(part) {
        "the feature pipeline"
    } else if first.labels()? != part.labels()? {
        "the list of label names"
    } else {
        return Ok(());
    };
    Err(MergeError::Content { path, what, first: first_path })
}

/// The first value in which two JSON values differ, with its dotted name.
fn difference(name: &str, a: &Value, b: &Value) -> Option<(String, Value, Value)> {
    if let (Value::Object(left), Value::Object(right)) = (a, b) {
        let keys = left.keys().chain(right.keys());
        let at = |map: &Map<String, Value>, key: &str| map.get(key).cloned().unwrap_or(Value::Null);
        return keys.filter_map(|key| difference(&format!("{name}.{key}"), &at(left, key), &at(right, key))).next();
    }
    (a != b).then(|| (name.to_owned(), a.clone(), b.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_first_difference_is_named() {
        let (a, b) = (json!({"x": {"seed": 1, "y": [1]}}), json!({"x": {"seed": 1, "y": [2]}}));
        assert_eq!(difference("mach", &a, &a), None);
        assert_eq!(difference("mach", &a, &b), Some(("mach.x.y".into(), json!([1]), json!([2]))));
        assert_eq!(difference("n", &json!(3), &Value::Null), Some(("n".into(), json!(3), Value::Null)));
        assert_eq!(difference("m", &json!({}), &json!({"z": 1})), Some(("m.z".into(), Value::Null, json!(1))));
    }
}
