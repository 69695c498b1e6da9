//! Putting a finished folder in its place, all at once.

use super::config::{CONFIG_FILE, LABELS_FILE, is_ours};
use super::error::WriteError;
use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
};

/// What stands at the destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Nothing, or an empty folder.
    Nothing,
    /// A model of ours, to be replaced.
    Model,
}

/// The error of a failed system call.
pub(super) fn io_error(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> WriteError {
    let path = path.to_owned();
    move |source| WriteError::Io { path, doing, source }
}

/// The folder that `path` names, behind links, without a trailing `.`, and its parent.
pub(super) fn resolve(path: &Path) -> Result<(PathBuf, PathBuf), WriteError> {
    let path = match std::fs::canonicalize(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if path.is_symlink() {
                return Err(WriteError::Occupied { path: path.to_owned(), why: "a link to nothing".to_owned() });
            }
            path.to_owned()
        }
        Err(error) => return Err(io_error(path, "look at the destination")(error)),
    };
    let parent = match path.parent() {
        Some(parent) if parent.as_os_str().is_empty() => PathBuf::from("."),
        Some(parent) => parent.to_owned(),
        None => {
            return Err(WriteError::Occupied { path, why: "the root of a file system".to_owned() });
        }
    };
    Ok((path, parent))
}

/// Looks at the destination and refuses to touch anything but a model of ours.
pub(super) fn inspect(path: &Path) -> Result<Standing, WriteError> {
    let occupied = |why: String| Err(WriteError::Occupied { path: path.to_owned(), why });
    let entries = match std::fs::read_dir(path) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Standing::Nothing),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => return occupied("a file".to_owned()),
        Err(error) => return Err(io_error(path, "list the destination")(error)),
    };
    let mut foreign = None;
    let mut is_empty = true;
    for entry in entries {
        let entry = entry.map_err(io_error(path, "list the destination"))?;
        is_empty = false;
        let name = entry.file_name().to_string_lossy().into_owned();
        if !is_model_file(&name) && name != CONFIG_FILE && name != LABELS_FILE {
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

/// Moves `built` to `path`; afterwards `built` holds the model that stood there, if one did.
pub(super) fn put(built: &Path, path: &Path, standing: Standing) -> Result<(), WriteError> {
    match standing {
        // On Unix a folder may be renamed onto an empty one; a filled one that came meanwhile makes this fail.
        Standing::Nothing => std::fs::rename(built, path).map_err(io_error(path, "rename the finished model to it"))?,
        Standing::Model => exchange(built, path)?,
    }
    Ok(())
}

#[cfg(target_os = "linux")]
fn exchange(built: &Path, path: &Path) -> Result<(), WriteError> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    match renameat_with(CWD, built, CWD, path, RenameFlags::EXCHANGE) {
        Ok(()) => Ok(()),
        // The file system or the kernel does not know the call.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS | rustix::io::Errno::OPNOTSUPP) => {
            move_aside(built, path)
        }
        Err(error) => Err(io_error(path, "exchange it with the finished model")(error.into())),
    }
}

#[cfg(not(target_os = "linux"))]
fn exchange(built: &Path, path: &Path) -> Result<(), WriteError> {
    move_aside(built, path)
}

/// The same in three renames. Between the first two no model stands at `path`; if the second fails the old one goes
/// back.
fn move_aside(built: &Path, path: &Path) -> Result<(), WriteError> {
    let mut aside = built.as_os_str().to_owned();
    aside.push(".old");
    let aside = PathBuf::from(aside);
    std::fs::rename(path, &aside).map_err(io_error(path, "move it aside"))?;
    if let Err(error) = std::fs::rename(built, path) {
        std::fs::rename(&aside, path).map_err(io_error(&aside, "move it back"))?;
        return Err(io_error(path, "rename the finished model to it")(error));
    }
    std::fs::rename(&aside, built).map_err(io_error(&aside, "move it out of the way"))
}

/// Asks the system to write a folder's entries to the disk.
pub(super) fn sync_folder(path: &Path) -> Result<(), WriteError> {
    if cfg!(unix) {
        let folder = File::open(path).map_err(io_error(path, "open the folder"))?;
        folder.sync_all().map_err(io_error(path, "write the folder's entries"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_renames_do_what_the_exchange_does() {
        for swap in [exchange, move_aside] {
            let folder = tempfile::tempdir().unwrap();
            let (new, old) = (folder.path().join("new"), folder.path().join("old"));
            for (path, text) in [(&new, "new"), (&old, "old")] {
                std::fs::create_dir(path).unwrap();
                std::fs::write(path.join("f"), text).unwrap();
            }
            swap(&new, &old).unwrap();
            assert_eq!(std::fs::read_to_string(old.join("f")).unwrap(), "new");
            assert_eq!(std::fs::read_to_string(new.join("f")).unwrap(), "old");
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
        }
    }
}
