//! Why a folder does not open as a model.

use crate::InputKind;
use crate::calibrate::OpenCalibrationError;
use rayon::ThreadPoolBuildError;
use std::error::Error;
use std::path::PathBuf;
use thiserror::Error;
use xc_store::{Mismatch, OpenError, WriteError};
use xc_tree::text::StoredPipelineError;

/// Why a folder cannot be opened as a model.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenModelError {
    /// There is no such folder.
    #[error("{}: expected a model folder", path.display())]
    Absent {
        /// The path.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: std::io::Error,
    },
    /// The path is a file.
    #[error("{}: not a folder; expected a model folder", path.display())]
    NotAFolder {
        /// The path.
        path: PathBuf,
    },
    /// The container itself.
    #[error(transparent)]
    Container(#[from] OpenError),
    /// A file is not what was saved.
    #[error("{0}: damaged since it was saved")]
    Damaged(Mismatch),
    /// A kind that is neither a standard one nor among [`OpenOptions::kinds`](crate::OpenOptions::kinds).
    #[error("{}: a model of kind {kind:?}; expected one of {}", path.display(), known.join(", "))]
    Kind {
        /// The folder.
        path: PathBuf,
        /// Its kind.
        kind: String,
        /// The kinds that open.
        known: Vec<&'static str>,
    },
    /// Two kinds have one name.
    #[error("two kinds of models are called {name:?}; different names are expected")]
    KindTwice {
        /// The name.
        name: &'static str,
    },
    /// A model of a custom kind was to be opened without checking it.
    #[error("{}: a model of the custom kind {kind:?}; such models are always checked", path.display())]
    NotTrusted {
        /// The folder.
        path: PathBuf,
        /// Its kind.
        kind: &'static str,
    },
    /// A model in memory cannot be written there.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// Repetitions were asked for, and the model has none.
    #[error("{}: a model of kind {kind:?} has no repetitions to choose from", path.display())]
    NoRepetitions {
        /// The folder.
        path: PathBuf,
        /// Its kind.
        kind: &'static str,
    },
    /// A post-processor was asked for, and the model has no margins.
    #[error("{}: the scores of a model of kind {kind:?} are not made of margins: there is no post-processor to choose", path.display())]
    NoPostProcessor {
        /// The folder.
        path: PathBuf,
        /// Its kind.
        kind: &'static str,
    },
    /// An error of the kind of model.
    #[error(transparent)]
    System(Box<dyn Error + Send + Sync>),
    /// The feature pipeline.
    #[error(transparent)]
    Pipeline(#[from] StoredPipelineError),
    /// The calibration.
    #[error(transparent)]
    Calibration(#[from] OpenCalibrationError),
    /// A pipeline for another model.
    #[error("{}: the feature pipeline makes {got} features, the model takes {expected}", path.display())]
    PipelineWidth {
        /// The folder.
        path: PathBuf,
        /// Features of the pipeline.
        got: usize,
        /// Features of the model.
        expected: usize,
    },
    /// A pipeline whose words are not those of the model's wide term.
    #[error("{}: the wide term takes {expected} features of words, the pipeline makes {} beside tokens", path.display(), got.map_or("none".to_owned(), |got| got.to_string()))]
    PipelineWords {
        /// The folder.
        path: PathBuf,
        /// Features of the pipeline.
        got: Option<usize>,
        /// Features of the wide term.
        expected: usize,
    },
    /// A pipeline that makes what the model does not take, or none where the model needs one.
    #[error("{}: the model takes {expected}, its pipeline makes {}", path.display(), got.map_or("nothing: there is none".to_owned(), |got| got.to_string()))]
    PipelineKind {
        /// The folder.
        path: PathBuf,
        /// What the pipeline makes.
        got: Option<InputKind>,
        /// What the model takes.
        expected: InputKind,
    },
    /// Two labels have one name.
    #[cfg(feature = "data")]
    #[error("{}", path.display())]
    RepeatedName {
        /// The file of names.
        path: PathBuf,
        /// The name.
        #[source]
        source: xc_data::RepeatedName,
    },
    /// The label names are not those of the model.
    #[error("{}: {got} label names, the model has {expected} labels", path.display())]
    LabelNames {
        /// The folder.
        path: PathBuf,
        /// Names that there are.
        got: usize,
        /// Labels of the model.
        expected: usize,
    },
    /// Threads for checking the arrays could not be started.
    #[error("cannot start threads")]
    Threads(#[from] ThreadPoolBuildError),
}

impl OpenModelError {
    /// What a kind of model says.
    pub(crate) fn system(error: impl Error + Send + Sync + 'static) -> Self {
        Self::System(Box::new(error))
    }
}
