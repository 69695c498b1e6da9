//! Opening a model folder, whatever its kind.

use super::kind::{Check, InfoTable, Kind, Open, OpenOptions, Opened, UseIndex};
use super::{Answering, Extras, InputKind, Model, read_pipeline, standard};
use crate::calibrate::Calibration;
use crate::open_error::OpenModelError;
use rayon::ThreadPoolBuilder;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use thiserror::Error;
use xc_hash::text::{Featurizer, Pipeline};
use xc_store::{Container, OpenMode, PART_FOLDER};

/// Models below this size are compared with their hashes whenever they are opened: a millisecond.
const ALWAYS_VERIFIED: u64 = 8 << 20;

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
    /// The folder is not a model, is damaged, or is of a kind that is not known.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, OpenModelError> {
        Self::open_with(folder, &OpenOptions::default())
    }

    /// As [`Model::open`], in the given way.
    ///
    /// # Errors
    /// As [`Model::open`]; an option that the kind does not have; two kinds with one name among the standard ones and
    /// [`OpenOptions::kinds`].
    pub fn open_with(folder: impl AsRef<Path>, options: &OpenOptions) -> Result<Self, OpenModelError> {
        Self::open_checked(folder.as_ref(), options, Check::Structure)
    }

    fn open_checked(folder: &Path, options: &OpenOptions, check: Check) -> Result<Self, OpenModelError> {
        let mut tries = 0..TRIES;
        loop {
            let container = open_container(folder, options.mode)?;
            let was_replaced = container.replacement();
            match Self::of_container(container, options, check) {
                Err(_) if was_replaced() && tries.next().is_some() => {}
                outcome => return outcome,
            }
        }
    }

    /// The model of a standard kind in a container in memory; [`Model::of`] makes one of a custom kind.
    ///
    /// # Errors
    /// As [`Model::open`].
    pub fn of_memory(container: Container) -> Result<Self, OpenModelError> {
        Self::of_container(container, &OpenOptions::default(), Check::Structure)
    }

    /// A model of a custom kind in memory: what `model` writes, and `extras`, as `kind` opens them. [`Model::save`]
    /// writes its folder, which opens with the same kind among [`OpenOptions::kinds`].
    ///
    /// *Cost*: a copy of the arrays in memory.
    ///
    /// # Errors
    /// As [`Model::open`]; a name of a standard kind; the container refuses what `model` writes.
    pub fn of(kind: &'static Kind, model: &impl Answering, extras: &Extras<'_>) -> Result<Self, OpenModelError> {
        if standard().iter().any(|other| other.name == kind.name) {
            return Err(OpenModelError::KindTwice { name: kind.name });
        }
        let container = Container::in_memory(kind.name, |writer| -> Result<(), OpenModelError> {
            extras.write(writer)?;
            Ok(model.write(writer)?)
        })?;
        Self::of_kind(container, *kind, &OpenOptions::default(), Check::Structure)
    }

    /// The model of a container that is open.
    pub(crate) fn of_container(
        container: Container,
        options: &OpenOptions,
        check: Check,
    ) -> Result<Self, OpenModelError> {
        let kind = kind_of(&container, options)?;
        Self::of_kind(container, kind, options, check)
    }

    fn of_kind(container: Container, kind: Kind, options: &OpenOptions, check: Check) -> Result<Self, OpenModelError> {
        let folder = &container.folder().to_owned();
        if options.repetitions.is_some() && !kind.answers_in_part {
            return Err(OpenModelError::NoRepetitions { path: folder.to_owned(), kind: kind.name });
        }
        if options.post_processor.is_some() && !kind.has_margins {
            return Err(OpenModelError::NoPostProcessor { path: folder.to_owned(), kind: kind.name });
        }
        let open = || -> Result<_, OpenModelError> {
            let (opened, container) = match kind.open {
                Open::Standard(open) => open(container, options, check)?,
                Open::Own(_) if check == Check::None => {
                    return Err(OpenModelError::NotTrusted { path: folder.to_owned(), kind: kind.name });
                }
                Open::Own(open) => (open(&container).map_err(OpenModelError::System)?, container),
            };
            let maker = read_pipeline(&container)?;
            Ok((opened, container, maker))
        };
        let (Opened { system, mut warnings }, container, maker) = on_threads(open)??;
        let shape = system.shape();
        #[cfg(feature = "data")]
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
            #[cfg(feature = "data")]
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
    ///
    /// # Errors
    /// As [`Model::open_with`]; a model of a custom kind, or a blend with a member of one.
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
pub(crate) fn open_inside(outer: &Container, name: &str, mode: OpenMode) -> Result<Container, OpenModelError> {
    let absent = || OpenModelError::Absent { path: outer.folder().join(name), source: ErrorKind::NotFound.into() };
    let container = outer.inside_parts(name, mode)?.ok_or_else(absent)?;
    if lacks(&container) { outer.inside(name, mode)?.ok_or_else(absent) } else { Ok(container) }
}

/// Whether files are lost without which the model does not answer.
fn lacks(container: &Container) -> bool {
    let in_part = standard().iter().any(|kind| kind.name == container.kind() && kind.answers_in_part);
    !in_part && container.lost().len() > 0
}

fn kind_of(container: &Container, options: &OpenOptions) -> Result<Kind, OpenModelError> {
    let all: Vec<&Kind> = standard().iter().chain(options.kinds.iter().copied()).collect();
    for (at, kind) in all.iter().enumerate() {
        if all[..at].iter().any(|other| other.name == kind.name) {
            return Err(OpenModelError::KindTwice { name: kind.name });
        }
    }
    let kind = all.iter().find(|kind| kind.name == container.kind());
    kind.map(|kind| **kind).ok_or_else(|| OpenModelError::Kind {
        path: container.folder().to_owned(),
        kind: container.kind().to_owned(),
        known: all.iter().map(|kind| kind.name).collect(),
    })
}

/// Tables of what a model consists of; none for containers of another kind.
///
/// # Errors
/// Arrays or parameters that the kind does not allow.
pub fn tables(container: &Container) -> Result<Vec<InfoTable>, OpenModelError> {
    let Ok(kind) = kind_of(container, &OpenOptions::default()) else { return Ok(Vec::new()) };
    (kind.tables)(container)
}
