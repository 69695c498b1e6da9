//! Models whose parts were trained apart, put together.
//!
//! A kind of model that has parts is a line in [`KINDS`]; the others are refused.

use super::PIPELINE_PREFIX;
use crate::classifier::LearningParams;
use crate::mach::{self, MergedMach};
use serde_json::{Map, Value};
use std::error::Error;
use std::path::{Path, PathBuf};
use thiserror::Error;
use xc_sparse::store::{Container, ContainerWriter, Mismatch, OpenError, WriteError};

/// Every kind of model that has parts.
const KINDS: &[Mergeable] = &[Mergeable {
    name: mach::KIND,
    shared: &["mach", LearningParams::NAME, "n_features", "n_labels"],
    merge: MergedMach::boxed,
}];

struct Mergeable {
    name: &'static str,
    /// Parameters of the container in which all parts agree.
    shared: &'static [&'static str],
    merge: Merge,
}

/// Checks what is particular to the kind.
type Merge = fn(Vec<Container>) -> Result<Box<dyn Merged>, MergeError>;

/// Parts of one model that belong together, to be written as one.
pub trait Merged {
    /// The first of the containers, whose pipeline and label names are those of all.
    fn first(&self) -> &Container;

    /// Numbers of the parts, ascending.
    fn numbers(&self) -> &[u32];

    /// Number of labels.
    fn n_labels(&self) -> usize;

    /// Whether the model can have so many labels.
    ///
    /// # Errors
    /// Fewer than it has, or more than its parameters allow for.
    fn check_labels(&self, n_labels: usize) -> Result<(), MergeError>;

    /// Begins the folder of a model of so many labels.
    ///
    /// # Errors
    /// The container refuses.
    fn create(&self, folder: &Path, n_labels: usize) -> Result<ContainerWriter, WriteError>;

    /// Adds the part at `position` of [`Merged::numbers`].
    ///
    /// # Errors
    /// The part is damaged; the container refuses.
    ///
    /// # Panics
    /// If there is no such part.
    fn write(&self, position: usize, writer: &mut ContainerWriter) -> Result<(), MergeError>;
}

/// Why models do not become one.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MergeError {
    /// A kind of model that has no parts.
    #[error("{}: models of kind {kind:?} cannot be merged; expected {}", path.display(), known.join(", "))]
    Kind {
        /// The folder.
        path: PathBuf,
        /// Its kind.
        kind: String,
        /// The kinds that can be merged.
        known: Vec<&'static str>,
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
pub fn merge(parts: Vec<Container>) -> Result<Box<dyn Merged>, MergeError> {
    assert!(!parts.is_empty(), "no parts to merge");
    let (first, others) = (&parts[0], &parts[1..]);
    let kind = KINDS.iter().find(|kind| kind.name == first.kind()).ok_or_else(|| MergeError::Kind {
        path: first.folder().to_owned(),
        kind: first.kind().to_owned(),
        known: KINDS.iter().map(|kind| kind.name).collect(),
    })?;
    for part in &parts {
        part.expect_kind(kind.name)?;
        if let Some(mismatch) = part.verify()?.into_iter().next() {
            return Err(MergeError::Damaged(mismatch));
        }
    }
    others.iter().try_for_each(|part| same(first, part, kind.shared))?;
    (kind.merge)(parts)
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
