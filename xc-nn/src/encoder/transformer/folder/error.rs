//! Why a folder is refused.

use super::super::params::TransformerParamsError;
use std::io;
use std::path::PathBuf;
use thiserror::Error;
use xc_store::OpenError;

/// Why a folder holds no transformer that is known here.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FolderError {
    /// A system error.
    #[error("{}: cannot be read", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A configuration that is no JSON object.
    #[error("{}: malformed", path.display())]
    Json {
        /// The file.
        path: PathBuf,
        /// Position and cause.
        source: serde_json::Error,
    },
    /// A folder that is not there.
    #[error("{}: no such folder; one with config.json, tokenizer.json and model.safetensors is expected, since nothing is downloaded", path.display())]
    NoFolder {
        /// The folder.
        path: PathBuf,
    },
    /// A repository that no program has downloaded.
    #[error("{0}: no such folder, and no model of this name in {1}; `hf download {0}` fetches it, or name a folder with config.json, tokenizer.json and model.safetensors", path.display(), cache.display())]
    NotCached {
        /// What was named.
        path: PathBuf,
        /// Where it was looked for.
        cache: PathBuf,
    },
    /// A repository that was not downloaded to its end.
    #[error("{}: {what}; `hf download {repository}` fetches it again, or name a folder", path.display())]
    Unfinished {
        /// The repository's place in the cache.
        path: PathBuf,
        /// Its name.
        repository: String,
        /// What is wrong.
        what: String,
    },
    /// What git-lfs keeps in the place of a file.
    #[error("{}: a pointer of git-lfs in place of the file; `git lfs pull` in its folder fetches it", path.display())]
    Pointer {
        /// The file.
        path: PathBuf,
    },
    /// Weights in a form that is not read.
    #[error("{}: not there; {found} is not read: `save_pretrained` of HuggingFace's transformers writes model.safetensors", path.display())]
    Pickled {
        /// The file that is expected.
        path: PathBuf,
        /// The one that is there.
        found: &'static str,
    },
    /// A value that is not known here.
    #[error("{}: {key} is {got}, expected {expected}", path.display())]
    Value {
        /// The file.
        path: PathBuf,
        /// The key.
        key: String,
        /// The value, shortened.
        got: String,
        /// What it may be.
        expected: &'static str,
    },
    /// A module that is not known here, or not in this place.
    #[error("{}: {what}", path.display())]
    Module {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// Sizes that are impossible.
    #[error("{}", path.display())]
    Params {
        /// The file.
        path: PathBuf,
        /// Which.
        source: TransformerParamsError,
    },
    /// A file of weights, or an array in it.
    #[error(transparent)]
    Weights(#[from] OpenError),
    /// A weight is infinite or no number.
    #[error("{}: array {array:?}: value {at} is not finite", path.display())]
    NotFinite {
        /// The file.
        path: PathBuf,
        /// The array.
        array: String,
        /// Position of the value.
        at: usize,
    },
}
