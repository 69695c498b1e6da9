//! What a model may be saved over.

use super::config::{CONFIG_FILE, LABELS_FILE, is_ours};
use super::error::WriteError;
use crate::atomic::failed;
use std::io;
use std::path::{Path, PathBuf};

/// A folder of ours that may stand in the folder of a model: an index of its labels.
pub const PART_FOLDER: &str = "index";

/// Gives a folder that is being built the part that the one in its place has, by links where the file
/// system can: a part outlives the model that it was made for. A model is not lost because its part cannot
/// be kept, which is made anew in minutes.
pub(super) fn keep_part(of: &Path, building: &Path) {
    let (from, to) = (of.join(PART_FOLDER), building.join(PART_FOLDER));
    if is_part(&from) && link_files(&from, &to).is_err() {
        // Nothing to be done about what cannot be removed either: it is then kept in part, and does not open.
        let _ = std::fs::remove_dir_all(&to);
    }
}

fn link_files(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::create_dir(to)?;
    for entry in std::fs::read_dir(from)? {
        let name = entry?.file_name();
        let (from, to) = (from.join(&name), to.join(&name));
        std::fs::hard_link(&from, &to).or_else(|_| std::fs::copy(&from, &to).map(|_| ()))?;
    }
    Ok(())
}

/// What stands at the destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Nothing, or an empty folder.
    Nothing,
    /// A model of ours, to be replaced.
    Model,
}

/// The folder that `path` names, behind links and without a trailing `.`.
pub(super) fn resolve(path: &Path) -> Result<PathBuf, WriteError> {
    let path = match std::fs::canonicalize(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if path.is_symlink() {
                return Err(WriteError::Occupied { path: path.to_owned(), why: "a link to nothing".to_owned() });
            }
            path.to_owned()
        }
        Err(error) => return Err(failed(path, "look at the destination")(error).into()),
    };
    if path.parent().is_none() {
        return Err(WriteError::Occupied { path, why: "the root of a file system".to_owned() });
    }
    Ok(path)
}

/// Looks at the destination and refuses to touch anything but a model of ours.
pub(super) fn inspect(path: &Path) -> Result<Standing, WriteError> {
    inspect_folder(path, true)
}

/// Whether a folder holds a part and nothing else.
fn is_part(path: &Path) -> bool {
    matches!(inspect_folder(path, false), Ok(Standing::Model))
}

fn inspect_folder(path: &Path, may_have_part: bool) -> Result<Standing, WriteError> {
    let occupied = |why: String| Err(WriteError::Occupied { path: path.to_owned(), why });
    let entries = match std::fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Standing::Nothing),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => return occupied("a file".to_owned()),
        Err(error) => return Err(failed(path, "list the destination")(error).into()),
    };
    let mut foreign = None;
    let mut is_empty = true;
    for entry in entries {
        let entry = entry.map_err(failed(path, "list the destination"))?;
        is_empty = false;
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_part = || may_have_part && name == PART_FOLDER && is_part(&entry.path());
        if !is_model_file(&name) && name != CONFIG_FILE && name != LABELS_FILE && !is_part() {
            foreign = Some(name);
        }
    }
    if is_empty {
        return Ok(Standing::Nothing);
    }
    if !is_ours(path) {
        return occupied("a folder that is not empty and holds no xc model".to_owned());
    }
    match foreign {
        Some(name) => occupied(format!("a model folder that also holds {name:?}, which would be lost")),
        None => Ok(Standing::Model),
    }
}

/// True for the names that array files may have.
pub(super) fn is_model_file(name: &str) -> bool {
    let is_plain = |c: char| !c.is_control() && c != '/' && c != '\\';
    name.starts_with("model") && name.ends_with(".safetensors") && name.chars().all(is_plain)
}
