//! What can go wrong with a PECOS folder.

use crate::model::{TopologyError, UnknownPostProcessor};
use std::path::{Path, PathBuf};
use thiserror::Error;
use xc_store::atomic::WriteFileError;

/// Why a PECOS folder could not be read or written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PecosError {
    /// The system refused.
    #[error("{}: cannot be read", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// The export cannot be written.
    #[error(transparent)]
    Write(#[from] WriteFileError),
    /// A `param.json` or `config.json` is malformed, or a field is missing or of the wrong type.
    #[error("{}: malformed", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// Where and what.
        source: serde_json::Error,
    },
    /// Not the model class that is read here.
    #[error("{}: model {got:?}, expected {expected:?}", path.display())]
    Class {
        /// The file.
        path: PathBuf,
        /// Class found.
        got: String,
        /// Class expected.
        expected: &'static str,
    },
    /// A number in a parameter file is out of range.
    #[error("{}: {field} is {got}, expected {expected}", path.display())]
    Parameter {
        /// The file.
        path: PathBuf,
        /// The field.
        field: &'static str,
        /// Value found.
        got: String,
        /// What is allowed.
        expected: &'static str,
    },
    /// The post-processor's name is unknown.
    #[error("{}: post-processor", path.display())]
    PostProcessor {
        /// The file.
        path: PathBuf,
        /// The name.
        source: UnknownPostProcessor,
    },
    /// Levels use different post-processors.
    #[error("{}: post-processor {got}, but the level above has {expected}", path.display())]
    MixedPostProcessors {
        /// The file.
        path: PathBuf,
        /// Name found.
        got: String,
        /// Name of the levels above.
        expected: String,
    },
    /// A file that is not a sparse matrix as scipy saves it.
    #[error(transparent)]
    Npz(xc_data::ReadError),
    /// The blocks of a `.mmap_store` file do not fit.
    #[error("{}: {what}", path.display())]
    Blocks {
        /// The file.
        path: PathBuf,
        /// What was found and expected.
        what: String,
    },
    /// A matrix is not compressed by columns, or its pointers and indices do not fit.
    #[error("{}: {what}", path.display())]
    Matrix {
        /// The file.
        path: PathBuf,
        /// What was found and expected.
        what: String,
    },
    /// Two sizes that must be equal differ.
    #[error("{}: {what} is {got}, expected {expected}", path.display())]
    Size {
        /// The file.
        path: PathBuf,
        /// Which size.
        what: &'static str,
        /// Size found.
        got: usize,
        /// Size expected.
        expected: usize,
    },
    /// A weight is NaN or infinite.
    #[error("{}: column {column}: a weight that is not finite", path.display())]
    NotFinite {
        /// The file.
        path: PathBuf,
        /// The column.
        column: usize,
    },
    /// A row stands twice in one column.
    #[error("{}: column {column}: row {row} stands there twice", path.display())]
    Repeated {
        /// The file.
        path: PathBuf,
        /// The column.
        column: usize,
        /// The row.
        row: u32,
    },
    /// The cluster matrices describe no tree.
    #[error("{}: no tree", path.display())]
    Tree {
        /// The folder.
        path: PathBuf,
        /// What is wrong.
        source: TopologyError,
    },
    /// The destination of an export is not empty.
    #[error("{}: exists and is not empty; expected a new path or an empty folder", path.display())]
    Occupied {
        /// The destination.
        path: PathBuf,
    },
}

/// For `map_err`: a system error at `path`.
pub(super) fn io_error(path: &Path) -> impl FnOnce(std::io::Error) -> PecosError {
    let path = path.to_owned();
    move |source| PecosError::Io { path, source }
}

/// For `map_err`: a JSON error at `path`.
pub(super) fn json_error(path: &Path) -> impl FnOnce(serde_json::Error) -> PecosError {
    let path = path.to_owned();
    move |source| PecosError::Json { path, source }
}

/// A matrix that does not fit.
pub(super) fn matrix_error(path: &Path, what: impl Into<String>) -> PecosError {
    PecosError::Matrix { path: path.to_owned(), what: what.into() }
}
