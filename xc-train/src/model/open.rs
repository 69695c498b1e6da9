//! Opening a model folder, whatever its kind.

use super::system::{Check, InfoTable, Kind, Opened};
use super::{InputKind, Model, StoredPipelineError, kinds, read_pipeline};
use crate::calibrate::{Calibration, OpenCalibrationError};
use rayon::{ThreadPoolBuildError, ThreadPoolBuilder};
use std::error::Error;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use thiserror::Error;
use xc_hash::text::{Featurizer, Pipeline};
use xc_store::{Container, Mismatch, OpenError, OpenMode, PART_FOLDER};

/// How a model is opened.
#[derive(Clone, Debug, Default)]
pub struct OpenOptions {
    /// How its files are brought into memory.
    pub mode: OpenMode,
    /// For a MACH model, the repetitions to use. Default: all that are intact.
    pub repetitions: Option<Vec<u32>>,
    /// Whether an index of the labels is used.
    pub index: UseIndex,
    /// Maps margins to scores, by name: for trees one of [`xc_tree::PostProcessor`], for networks one of
    /// [`crate::classifier::ScoreScale`]; such scores are not calibrated. Default: the model's.
    pub post_processor: Option<String>,
    /// Read every byte and compare it with the hashes that were stored when the model was saved: it takes the time of
    /// reading all files, whose pages do not stay. A model whose files are below 8 MiB is always compared.
    pub verify: bool,
}

/// Models below this size are compared with their hashes whenever they are opened: a millisecond.
const ALWAYS_VERIFIED: u64 = 8 << 20;

/// Which index of a model's labels is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UseIndex {
    /// One that was built for the current weights.
    #[default]
    Fresh,
    /// One that was built up to this many training steps earlier.
    UpTo(u64),
    /// None: it is not opened.
    Never,
}

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
    /// A kind that this library does not know.
    #[error("{}: a model of kind {kind:?}; expected one of {}", path.display(), known.join(", "))]
    Kind {
        /// The folder.
        path: PathBuf,
        /// Its kind.
        kind: String,
        /// The kinds that open.
        known: Vec<&'static str>,
    },
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
    #[cfg(any(feature = "requests", feature = "fit"))]
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
    pub(super) fn system(error: impl Error + Send + Sync + 'static) -> Self {
        Self::System(Box::new(error))
    }
}

/// How often opening begins again because the model was replaced meanwhile.
const TRIES: usize = 1000;

/// Numbers of open models.
static GENERATION: AtomicU64 = AtomicU64::new(1);

impl Model {
    /// Opens a model of any kind: its arrays are mapped, their structure is checked.
    ///
    /// *Cost*: reads the arrays once, to check them, on the threads of the caller's pool, or on its own
    /// threads, which end with the call; the label names are read on demand.
    ///
    /// # Errors
    /// The folder is not a model, is damaged, or is of a kind that this library does not know.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, OpenModelError> {
        Self::open_with(folder, &OpenOptions::default())
    }

    /// As [`Model::open`], in the given way.
    ///
    /// # Errors
    /// As [`Model::open`]; repetitions that the model does not have.
    pub fn open_with(folder: impl AsRef<Path>, options: &OpenOptions) -> Result<Self, OpenModelError> {
        Self::open_checked(folder.as_ref(), options, Check::Structure)
    }

    fn open_checked(folder: &Path, options: &OpenOptions, check: Check) -> Result<Self, OpenModelError> {
        let mut tries = 0..TRIES;
        loop {
            let container = open_container(folder, options.mode)?;
            let was_replaced = container.replacement();
            match Self::of(container, options, check) {
                Err(_) if was_replaced() && tries.next().is_some() => {}
                outcome => return outcome,
            }
        }
    }

    /// A model that was never in a folder, of what its training wrote to memory.
    ///
    /// # Errors
    /// As [`Model::open`].
    pub fn of_memory(container: Container) -> Result<Self, OpenModelError> {
        Self::of(container, &OpenOptions::default(), Check::Structure)
    }

    /// The model of a container that is open.
    pub(super) fn of(container: Container, options: &OpenOptions, check: Check) -> Result<Self, OpenModelError> {
        let kind = kind_of(&container)?;
        let folder = &container.folder().to_owned();
        if options.repetitions.is_some() && !kind.answers_in_part {
            return Err(OpenModelError::NoRepetitions { path: folder.to_owned(), kind: kind.name });
        }
        if options.post_processor.is_some() && !kind.has_margins {
            return Err(OpenModelError::NoPostProcessor { path: folder.to_owned(), kind: kind.name });
        }
        let open = || -> Result<_, OpenModelError> {
            let opened = (kind.open)(container, options, check)?;
            let maker = read_pipeline(&opened.container)?;
            Ok((opened, maker))
        };
        let (Opened { system, shape, container, mut warnings }, maker) = on_threads(open)??;
        #[cfg(any(feature = "requests", feature = "fit"))]
        let input = super::read_form(&container)?;
        if let Some(maker) = &maker
            && maker.n_features() != shape.n_features
        {
            let (got, expected) = (maker.n_features(), shape.n_features);
            return Err(OpenModelError::PipelineWidth { path: folder.to_owned(), got, expected });
        }
        let words = match &maker {
            Some(Featurizer::Tokens(of)) => of.words().map(Pipeline::n_features),
            _ => None,
        };
        if let Some(expected) = shape.words.filter(|_| words != shape.words) {
            return Err(OpenModelError::PipelineWords { path: folder.to_owned(), got: words, expected });
        }
        let got = maker.as_ref().map(|maker| match maker {
            Featurizer::Tokens(_) => InputKind::Tokens,
            Featurizer::Vectors(_) => InputKind::Dense,
            _ => InputKind::Sparse,
        });
        // Nobody else makes tokens; other rows come as they are.
        let is_right = got.map_or(shape.takes != InputKind::Tokens, |got| got == shape.takes);
        if !is_right {
            return Err(OpenModelError::PipelineKind { path: folder.to_owned(), got, expected: shape.takes });
        }
        if let Some(got) = container.n_label_names().filter(|&got| got != shape.n_labels) {
            return Err(OpenModelError::LabelNames { path: folder.to_owned(), got, expected: shape.n_labels });
        }
        let mut calibration = Calibration::read(&container, shape.n_labels)?;
        if options.post_processor.is_some() && calibration.take().is_some() {
            warnings.push(Box::new(OtherScores));
        }
        if matches!(check, Check::Structure) {
            on_threads(|| verify(&container, options))??;
        }
        let generation = GENERATION.fetch_add(1, Ordering::Relaxed);
        let names = OnceLock::new();
        Ok(Self {
            kind,
            system,
            shape,
            maker,
            #[cfg(any(feature = "requests", feature = "fit"))]
            input,
            container,
            calibration,
            warnings,
            generation,
            names,
            #[cfg(feature = "cuda")]
            on_device: None,
        })
    }

    /// As [`Model::open_with`], without checking the content of the arrays.
    ///
    /// # Safety
    /// The folder was written by this library and has not been changed since: answers rely on what
    /// is not checked.
    #[allow(unsafe_code, reason = "hands the caller's promise on to the kind of model")]
    pub unsafe fn open_trusted(folder: impl AsRef<Path>, options: &OpenOptions) -> Result<Self, OpenModelError> {
        Self::open_checked(folder.as_ref(), options, Check::None)
    }
}

/// Compares a model with its hashes where that was asked for, or is done in no time.
fn verify(container: &Container, options: &OpenOptions) -> Result<(), OpenModelError> {
    if !options.verify && container.n_bytes() >= ALWAYS_VERIFIED {
        return Ok(());
    }
    let index = match options.verify && options.index != UseIndex::Never {
        true => container.inside(PART_FOLDER, options.mode)?,
        false => None,
    };
    for container in std::iter::once(container).chain(&index) {
        if let Some(mismatch) = container.verify()?.into_iter().next() {
            return Err(OpenModelError::Damaged(mismatch));
        }
    }
    Ok(())
}

/// A post-processor was asked for, and the model is calibrated.
#[derive(Debug, Error)]
#[error("the calibration of the model was fitted to the scores of its own post-processor; it is not used")]
struct OtherScores;

/// Work on the threads of the caller's pool, or on some made for it: rayon would make a pool of the
/// whole process and keep it.
fn on_threads<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, OpenModelError> {
    if rayon::current_thread_index().is_some() {
        return Ok(work());
    }
    Ok(ThreadPoolBuilder::new().build()?.install(work))
}

/// Opens the folder of a model as far as it is sound, to look at it.
///
/// # Errors
/// The folder is absent, or its configuration is damaged; of kinds that do not answer in part, an
/// array file is lost.
pub fn open_container(folder: impl AsRef<Path>, mode: OpenMode) -> Result<Container, OpenModelError> {
    let folder = folder.as_ref();
    let path = || folder.to_owned();
    match std::fs::metadata(folder) {
        Err(source) => return Err(OpenModelError::Absent { path: path(), source }),
        Ok(meta) if !meta.is_dir() => return Err(OpenModelError::NotAFolder { path: path() }),
        Ok(_) => {}
    }
    let container = Container::open_parts(folder, mode)?;
    // The same once more, for the error of the first file that is lost.
    if lacks(&container) { Ok(Container::open(folder, mode)?) } else { Ok(container) }
}

/// Opens the model that stands in the folder of another, as [`open_container`] does.
///
/// # Errors
/// As [`open_container`].
pub(super) fn open_inside(outer: &Container, name: &str, mode: OpenMode) -> Result<Container, OpenModelError> {
    let absent = || OpenModelError::Absent { path: outer.folder().join(name), source: ErrorKind::NotFound.into() };
    let container = outer.inside_parts(name, mode)?.ok_or_else(absent)?;
    if lacks(&container) { outer.inside(name, mode)?.ok_or_else(absent) } else { Ok(container) }
}

/// Whether files are lost without which the model does not answer.
fn lacks(container: &Container) -> bool {
    let in_part = kinds().any(|kind| kind.name == container.kind() && kind.answers_in_part);
    !in_part && container.lost().len() > 0
}

fn kind_of(container: &Container) -> Result<Kind, OpenModelError> {
    let kind = kinds().find(|kind| kind.name == container.kind());
    kind.ok_or_else(|| OpenModelError::Kind {
        path: container.folder().to_owned(),
        kind: container.kind().to_owned(),
        known: kinds().map(|kind| kind.name).collect(),
    })
}

/// Tables of what a model consists of; none for containers of another kind.
///
/// # Errors
/// Arrays or parameters that the kind does not allow.
pub fn tables(container: &Container) -> Result<Vec<InfoTable>, OpenModelError> {
    let Ok(kind) = kind_of(container) else { return Ok(Vec::new()) };
    (kind.tables)(container)
}
