//! Where a model is saved, and what is kept of it until it is complete.

use super::{Context, FitError, beside};
use std::io;
use std::path::{Path, PathBuf};
use xc_buffer::Part;
use xc_model::calibrate::Calibration;
use xc_model::message::chain;
use xc_model::open_container;
use xc_store::atomic::{OutputFile, OutputFolder, WriteFileError, parent_of};
use xc_store::{Checkpoint, CheckpointFolder, CheckpointLayout, ContainerWriter, OpenMode, PART_FOLDER};

/// Where a model goes, and its checkpoint.
#[derive(Clone, Debug, Default)]
pub struct Place {
    /// Folder of the model; an existing model is replaced when the new one is complete.
    pub model: PathBuf,
    /// Folder of the checkpoint: new, empty or from an interrupted run; deleted on success. Without one:
    /// `MODEL.checkpoint`.
    pub checkpoint: Option<PathBuf>,
    /// File for the vectors of words in word2vec's text format (skip-gram). Without one: `MODEL.vectors.txt`.
    pub vectors: Option<PathBuf>,
    /// Continue from the checkpoint of an interrupted run with the same data and settings.
    pub resume: bool,
    /// Discard an unfinished checkpoint, if there is one, and start over.
    pub restart: bool,
    /// Which part of the model goes there, where several processes train one each (`tree`, `mach`); [`merge`](crate::merge)
    /// makes the model of all.
    pub part: Option<Part>,
}

impl Place {
    /// A folder for the model, and nothing else said.
    pub fn new(model: impl AsRef<Path>) -> Self {
        Self { model: model.as_ref().to_owned(), ..Self::default() }
    }

    /// Where finished parts are kept.
    pub fn checkpoint(&self) -> PathBuf {
        self.checkpoint.clone().unwrap_or_else(|| beside(&self.model, "checkpoint"))
    }

    /// Refuses a model folder that may not be written, before the long work.
    ///
    /// # Errors
    /// The folder, and what is in the way.
    pub fn check_model(&self) -> Result<(), FitError> {
        if self.model.file_name().is_none() {
            let model = self.model.display();
            return Err(FitError::usage(format_args!("--model {model}: a path that ends in a name is expected")));
        }
        ContainerWriter::check(&self.model)?;
        let log = beside(&self.model, "log");
        if log.exists() && !log.is_dir() {
            return Err(FitError::usage(format_args!("{}: a file; the log's folder is expected there", log.display())));
        }
        check_in_folder(&log.join("train.json"))
    }

    /// Takes the checkpoint folder for this run alone, before the long work. What another run left
    /// is gone on with, or removed, only when that was asked for.
    ///
    /// # Errors
    /// It is in use, lies in the model or has what another run left, or cannot be written.
    pub fn claim_checkpoint(
        &self,
        layout: CheckpointLayout,
        context: &Context<'_>,
    ) -> Result<CheckpointFolder, FitError> {
        let path = self.checkpoint();
        let (model, inside) = (resolve(&self.model)?, resolve(&path)?);
        if model.starts_with(&inside) || inside.starts_with(&model) {
            return Err(FitError::usage(format_args!(
                "--model {}, --checkpoint {}: one lies in the other; two folders are expected",
                self.model.display(),
                path.display()
            )));
        }
        let folder = CheckpointFolder::claim(&path, layout)?;
        let folder = if self.checkpoint.is_none() { folder.with_own_name() } else { folder };
        match folder.has_parts()? {
            true if self.restart => folder.clear()?,
            true if !self.resume => {
                return Err(FitError::usage(format_args!(
                    "{}: the checkpoint of an interrupted run; --resume goes on from it, --restart removes it",
                    path.display()
                )));
            }
            false if self.resume => {
                context.warn(format_args!("{}: no checkpoint; training begins anew", path.display()));
            }
            _ => {}
        }
        context.observer.resumable(&path);
        self.report_replaced(context);
        Ok(folder)
    }

    /// Says what a model that is there is, and what goes with it.
    fn report_replaced(&self, context: &Context<'_>) {
        // What cannot be opened is no model that anybody would miss.
        let Ok(old) = open_container(&self.model, OpenMode::Map) else { return };
        let and = |is_there: bool, what: &str| if is_there { format!(", its {what}") } else { String::new() };
        context.note(format_args!(
            "{}: the {} model there{}{} will be replaced",
            self.model.display(),
            old.kind(),
            and(Calibration::is_in(&old), "calibration"),
            and(self.model.join(PART_FOLDER).exists(), "index"),
        ));
    }
}

/// Refuses a file that cannot be written, before the work whose result it is to hold: nothing is changed.
///
/// # Errors
/// A folder that is not there, or that may not be written; a folder in the place of the file.
pub fn check_file(path: &Path) -> Result<(), FitError> {
    // A pipe would end for its reader.
    if path.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        return Ok(());
    }
    let made = OutputFile::create(path).map(drop);
    made.map_err(|e| match e.source.kind() {
        io::ErrorKind::IsADirectory => {
            FitError::usage(format_args!("{}: is a folder; a file name is expected", path.display()))
        }
        _ => FitError::unwritable(&e),
    })
}

/// The same of a file whose folder is made where there is none.
///
/// # Errors
/// As [`check_file`], and a folder that cannot be made.
pub fn check_in_folder(path: &Path) -> Result<(), FitError> {
    let folder = parent_of(path);
    match std::fs::metadata(folder) {
        Ok(found) if found.is_dir() => return check_file(path),
        Ok(_) => return Err(FitError::unwritable_at(folder, io::ErrorKind::NotADirectory.into())),
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(FitError::unwritable_at(folder, error)),
        Err(_) => {}
    }
    // The first folder of those that would be made.
    let is_missing = |folder: &Path| !folder.as_os_str().is_empty() && std::fs::symlink_metadata(folder).is_err();
    let made = folder.ancestors().take_while(|folder| is_missing(folder)).last().unwrap_or(folder);
    OutputFolder::create(made).map(drop).map_err(|e| FitError::unwritable(&e))
}

/// Makes an output folder, and its parents, unless it is there.
///
/// # Errors
/// A folder that cannot be made.
pub fn make_folder(path: &Path) -> Result<(), FitError> {
    std::fs::create_dir_all(path).map_err(|source| {
        // Parents are made: none can be absent.
        let source =
            if source.kind() == io::ErrorKind::NotFound { io::ErrorKind::PermissionDenied.into() } else { source };
        FitError::unwritable(&WriteFileError { path: path.to_owned(), doing: "make the folder", source })
    })
}

/// The same path whatever links and dots lead to it; what it names need not exist.
fn resolve(path: &Path) -> Result<PathBuf, FitError> {
    let refused = |e: io::Error| FitError::usage(format_args!("{}: {}", path.display(), chain(&e)));
    if let Ok(found) = path.canonicalize() {
        return Ok(found);
    }
    // Folders that do not exist may be named inside of one another: the deepest that does exist
    // leads to the others.
    let path = std::path::absolute(path).map_err(refused)?;
    let mut ancestors = path.ancestors().skip(1).filter_map(|parent| Some((parent, parent.canonicalize().ok()?)));
    let (parent, found) = ancestors.next().ok_or_else(|| refused(io::ErrorKind::NotFound.into()))?;
    Ok(path.strip_prefix(parent).map_or_else(|_| path.clone(), |rest| found.join(rest)))
}

/// Removes the checkpoint that has served.
pub(super) fn drop_checkpoint(checkpoint: Checkpoint, context: &Context<'_>) {
    let path = checkpoint.path().to_owned();
    if let Err(e) = checkpoint.finish() {
        context.warn(format_args!("{}: cannot be removed: {}", path.display(), chain(&e)));
    }
}
