//! Errors of model folders.

use crate::atomic::WriteFileError;
use std::path::PathBuf;
use thiserror::Error;
use xc_buffer::dtype::DType;

/// Why a model could not be saved.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WriteError {
    /// The destination has content that is not an xc model; it is left unchanged.
    #[error("{}: {why}; expected a new path, an empty folder or an existing xc model", path.display())]
    Occupied {
        /// The destination.
        path: PathBuf,
        /// What was found there.
        why: String,
    },
    /// A system error (disk full, no permission, ...).
    #[error(transparent)]
    Io(#[from] WriteFileError),
    /// A model to be put inside another was replaced since it was opened.
    #[error("{}: replaced since it was opened", path.display())]
    Replaced {
        /// Its folder.
        path: PathBuf,
    },
    /// A model to be copied from cannot be read.
    #[error(transparent)]
    Source(Box<OpenError>),
    /// The array name cannot be used.
    #[error("array name {name:?}: {why}")]
    Name {
        /// The name found.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Bytes, shape and dtype do not agree.
    #[error("array {name:?}: {bytes} bytes do not hold shape {shape:?} of {dtype}")]
    Shape {
        /// The array.
        name: String,
        /// The element type.
        dtype: DType,
        /// The requested shape.
        shape: Vec<usize>,
        /// Bytes found.
        bytes: u64,
    },
    /// A model in memory has no folders for other models.
    #[error("a model in memory holds no other model; expected one in a folder")]
    InMemory,
    /// The writer was finished before this stream.
    #[error("array {name:?}: the model was finished before this array was")]
    UnfinishedStream {
        /// The array.
        name: String,
    },
    /// A label name that is not printable, or would break `labels.txt`.
    #[error("label {label}: the name {name:?} has a control character, expected a printable name")]
    LabelName {
        /// The label.
        label: usize,
        /// Its name.
        name: String,
    },
}

impl WriteError {
    /// Whether the destination is at fault (something else is there, its folder is absent) and not the
    /// system, which may refuse to write at a path that is right.
    pub fn is_misnamed(&self) -> bool {
        match self {
            Self::Occupied { .. } => true,
            Self::Io(error) => error.is_misnamed(),
            _ => false,
        }
    }
}

impl From<OpenError> for WriteError {
    fn from(error: OpenError) -> Self {
        Self::Source(Box::new(error))
    }
}

/// Why a model could not be opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenError {
    /// A system error.
    #[error("{}: cannot be read", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// There is no `config.json` of an xc model.
    #[error("{}: not an xc model: {why}", path.display())]
    NotAModel {
        /// The folder or file.
        path: PathBuf,
        /// What was found.
        why: &'static str,
    },
    /// `config.json` is malformed.
    #[error("{}: malformed", path.display())]
    Config {
        /// The file.
        path: PathBuf,
        /// Position and cause.
        source: serde_json::Error,
    },
    /// A file exceeds the limit for its kind.
    #[error("{}: {what} of {got} bytes, the limit is {limit}", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Which part.
        what: &'static str,
        /// Bytes found.
        got: u64,
        /// Bytes allowed.
        limit: u64,
    },
    /// Written by a later version of this program.
    #[error("{}: format version {got}, this program reads up to {supported}; use a newer xc", path.display())]
    NewerVersion {
        /// The file.
        path: PathBuf,
        /// Version found.
        got: u64,
        /// Newest version that is read.
        supported: u64,
    },
    /// A model of another kind.
    #[error("{}: a model of kind {got:?}, expected {expected:?}", path.display())]
    Kind {
        /// The folder.
        path: PathBuf,
        /// Kind found.
        got: String,
        /// Kind expected.
        expected: String,
    },
    /// A parameter is missing or of the wrong type.
    #[error("{}: parameter {key:?}", path.display())]
    Parameter {
        /// The file.
        path: PathBuf,
        /// The parameter.
        key: String,
        /// What was found and expected.
        source: serde_json::Error,
    },
    /// The configuration names a file that cannot belong to a model.
    #[error("{}: array {array:?} names the file {file:?}; expected model*.safetensors in the same folder", path.display())]
    FileName {
        /// The configuration file.
        path: PathBuf,
        /// The array.
        array: String,
        /// The file named.
        file: String,
    },
    /// A safetensors header is malformed.
    #[error("{}: header", path.display())]
    Header {
        /// The file.
        path: PathBuf,
        /// Position and cause.
        source: serde_json::Error,
    },
    /// A file is shorter or longer than its header says.
    #[error("{}: {got} bytes, expected {expected}: truncated or damaged", path.display())]
    Length {
        /// The file.
        path: PathBuf,
        /// Bytes found.
        got: u64,
        /// Bytes according to the header.
        expected: u64,
    },
    /// The file of an array was left out by [`open_parts`](super::Container::open_parts).
    #[error("array {name:?} is lost")]
    Lost {
        /// Its name.
        name: String,
        /// What is wrong with the file.
        source: std::sync::Arc<OpenError>,
    },
    /// An array is missing.
    #[error("{}: no array {name:?}", path.display())]
    MissingArray {
        /// The file (or the folder, if the configuration does not name the array either).
        path: PathBuf,
        /// The array.
        name: String,
    },
    /// An array that the configuration does not list.
    #[error("{}: array {name:?} is unknown to config.json", path.display())]
    UnknownArray {
        /// The file.
        path: PathBuf,
        /// The array.
        name: String,
    },
    /// An array has another element type.
    #[error("{}: array {name:?} is of type {got}, expected {expected}", path.display())]
    Dtype {
        /// The file.
        path: PathBuf,
        /// The array.
        name: String,
        /// Type found.
        got: String,
        /// Type expected.
        expected: DType,
    },
    /// An array has another shape.
    #[error("{}: array {name:?} has shape {got:?}, expected {expected:?}", path.display())]
    Shape {
        /// The file.
        path: PathBuf,
        /// The array.
        name: String,
        /// Shape found.
        got: Vec<usize>,
        /// Shape expected.
        expected: Vec<usize>,
    },
    /// The offset of an array is not aligned for its type.
    #[error("{}: array {name:?} starts at byte {offset}, which is not aligned for {dtype}", path.display())]
    Misaligned {
        /// The file.
        path: PathBuf,
        /// The array.
        name: String,
        /// Offset in the file.
        offset: usize,
        /// Type expected.
        dtype: DType,
    },
    /// `labels.txt` does not match the configuration.
    #[error("{}: {got} label names, expected {expected}", path.display())]
    LabelCount {
        /// The file.
        path: PathBuf,
        /// Names found.
        got: usize,
        /// Names expected.
        expected: usize,
    },
    /// A name in `labels.txt` that is not printable.
    #[error("{}: line {line}: the label name {name:?} has a control character, expected a printable name", path.display())]
    LabelName {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// The name.
        name: String,
    },
    /// `labels.txt` is not UTF-8.
    #[error("{}: line {line}: not UTF-8", path.display())]
    LabelText {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
    },
}
