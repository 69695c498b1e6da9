//! Saving a model with what belongs to it, and opening it again.

use super::FitError;
use std::path::{Path, PathBuf};
use xc_model::Extras;
use xc_model::message::chain;
use xc_store::atomic::parent_of;
use xc_store::{Container, ContainerWriter, OpenMode, WriteError};
use xc_tree::TreeModel;

/// Where a finished model goes.
#[derive(Clone, Copy, Debug)]
pub enum Target<'a> {
    /// Into a folder.
    Folder(&'a Path),
    /// Nowhere: it stays in memory, and no file is written.
    Memory,
}

impl<'a> Target<'a> {
    /// The folder of the model; none where it stays in memory.
    pub fn folder(self) -> Option<&'a Path> {
        match self {
            Self::Folder(model) => Some(model),
            Self::Memory => None,
        }
    }

    /// The folder for what does not fit into memory; none where no file is to be written.
    pub(super) fn spill(self) -> Option<&'a Path> {
        match self {
            Self::Folder(model) => Some(parent_of(model)),
            Self::Memory => None,
        }
    }

    /// The folder of the log, beside the model's.
    pub(super) fn log(self) -> Option<PathBuf> {
        match self {
            Self::Folder(model) => Some(beside(model, "log")),
            Self::Memory => None,
        }
    }

    /// Saves what `write` adds to a model of some kind, in one step; gives it where it stays in memory.
    ///
    /// # Errors
    /// The folder cannot be written, or what `write` says.
    pub(crate) fn save(
        self,
        kind: &str,
        extras: Extras<'_>,
        write: impl FnOnce(&mut ContainerWriter) -> Result<(), FitError>,
    ) -> Result<Option<Container>, FitError> {
        match self {
            Self::Folder(folder) => {
                save_created(|| ContainerWriter::create(folder, kind), extras, write).map(|()| None)
            }
            Self::Memory => Container::in_memory(kind, |writer| fill(writer, extras, write)).map(Some),
        }
    }
}

/// Opens a tree model that this process has just saved: without reading all of it.
#[allow(unsafe_code, reason = "what was written a moment ago is not checked")]
pub(super) fn open_just_saved(container: &Container) -> Result<TreeModel, FitError> {
    // SAFETY: this process wrote the arrays from rows that it checked, and folders of models are
    // replaced whole, never written in place.
    unsafe { xc_tree::trusted::open(container) }.map_err(|e| FitError::failed(chain(&e)))
}

/// Maps the files of a folder, all of which have to be sound.
///
/// # Errors
/// The folder is absent, or damaged.
pub fn open_container(folder: &Path) -> Result<Container, FitError> {
    let container = xc_model::open_container(folder, OpenMode::Map)?;
    if let Some((_, first)) = container.lost().next() {
        return Err(FitError::usage(chain(first)));
    }
    Ok(container)
}

/// Saves what `write` adds to a model of some kind, in one step: the folder is the old one or the
/// new one, never a part.
///
/// # Errors
/// The folder cannot be written.
pub fn save_with(
    folder: &Path,
    kind: &str,
    extras: Extras<'_>,
    write: impl FnOnce(&mut ContainerWriter) -> Result<(), WriteError>,
) -> Result<(), FitError> {
    let create = || ContainerWriter::create(folder, kind);
    save_created(create, extras, |writer| write(writer).map_err(FitError::from))
}

/// Saves what `write` adds to what `create` began.
///
/// # Errors
/// The folder cannot be written, or what `write` says.
pub fn save_created<E: From<FitError>>(
    create: impl FnOnce() -> Result<ContainerWriter, WriteError>,
    extras: Extras<'_>,
    write: impl FnOnce(&mut ContainerWriter) -> Result<(), E>,
) -> Result<(), E> {
    let failed = |e: WriteError| FitError::from(e);
    let mut writer = create().map_err(failed)?;
    fill(&mut writer, extras, write)?;
    Ok(writer.finish().map_err(failed)?)
}

fn fill<E: From<FitError>>(
    writer: &mut ContainerWriter,
    extras: Extras<'_>,
    write: impl FnOnce(&mut ContainerWriter) -> Result<(), E>,
) -> Result<(), E> {
    extras.write(writer).map_err(FitError::from)?;
    write(writer)
}

/// `MODEL` + `.suffix`, beside the model.
pub fn beside(model: &Path, suffix: &str) -> PathBuf {
    // "dir/model/" and "dir/model" name the same folder.
    let mut name = model.components().as_path().as_os_str().to_owned();
    name.push(".");
    name.push(suffix);
    PathBuf::from(name)
}
