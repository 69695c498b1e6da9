//! What can go wrong with a PECOS folder.

use crate::model::{TopologyError, UnknownPostProcessor};
use std::path::{Path, PathBuf};
use thiserror::Error;
use xc_sparse::atomic::WriteFileError;
use xc_sparse::store::OneLine;

/// Why a PECOS folder could not be read or written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PecosError {
    /// The system refused.
    #[error("{}: {source}", path.display())]
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
    #[error("{}: {}", path.display(), OneLine(source))]
    Json {
        /// The file.
        path: PathBuf,
        /// Where and what.
        source: serde_json::Error,
    },
    /// Not the model class that is read here.
    #[error("{}: model {met:?}, wanted {wanted:?}", path.display())]
    Class {
        /// The file.
        path: PathBuf,
        /// Class met.
        met: String,
        /// Class wanted.
        wanted: &'static str,
    },
    /// A number in a parameter file is out of range.
    #[error("{}: {field} is {met}, wanted {wanted}", path.display())]
    Parameter {
        /// The file.
        path: PathBuf,
        /// The field.
        field: &'static str,
        /// Value met.
        met: String,
        /// What is allowed.
        wanted: &'static str,
    },
    /// The post-processor's name is unknown.
    #[error("{}: {source}", path.display())]
    PostProcessor {
        /// The file.
        path: PathBuf,
        /// The name.
        source: UnknownPostProcessor,
    },
    /// Levels use different post-processors.
    #[error("{}: post-processor {met}, but the level above has {wanted}", path.display())]
    MixedPostProcessors {
        /// The file.
        path: PathBuf,
        /// Name met.
        met: String,
        /// Name of the levels above.
        wanted: String,
    },
    /// A file that is not a sparse matrix as scipy saves it.
    #[error(transparent)]
    Npz(xc_sparse::io::ReadError),
    /// The blocks of a `.mmap_store` file do not fit.
    #[error("{}: {what}", path.display())]
    Blocks {
        /// The file.
        path: PathBuf,
        /// What was met and wanted.
        what: String,
    },
    /// A matrix is not compressed by columns, or its pointers and indices do not fit.
    #[error("{}: {what}", path.display())]
    Matrix {
        /// The file.
        path: PathBuf,
        /// What was met and wanted.
        what: String,
    },
    /// Two sizes that must be equal differ.
    #[error("{}: {what} is {met}, wanted {wanted}", path.display())]
    Size {
        /// The file.
        path: PathBuf,
        /// Which size.
        what: &'static str,
        /// Size met.
        met: usize,
        /// Size wanted.
        wanted: usize,
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
    #[error("{}: {source}", path.display())]
    Tree {
        /// The folder.
        path: PathBuf,
        /// What is wrong.
        source: TopologyError,
    },
    /// The destination of an export is not empty.
    #[error("{}: exists and is not empty; wanted a new path or an empty folder", path.display())]
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
