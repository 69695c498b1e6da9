//! Folders of files.

use super::{Partial, WriteFileError, failed, parent_of, sync_folder, under_way};
use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind};
use std::path::{Path, PathBuf};

/// A folder that appears under its name only when complete; see [`atomic`](super).
#[derive(Debug)]
pub struct OutputFolder {
    partial: Partial,
    destination: PathBuf,
}

impl OutputFolder {
    /// Begins a folder that will be at `destination`.
    ///
    /// # Errors
    /// There is no parent folder, or no permission to write there.
    pub fn create(destination: impl AsRef<Path>) -> Result<Self, WriteFileError> {
        let destination = destination.as_ref();
        let parent = parent_of(destination);
        let (partial, ()) = Partial::beside(destination, |path| fs::create_dir(path))
            .map_err(failed(parent, "create a folder in it"))?;
        Ok(Self { partial, destination: destination.to_owned() })
    }

    /// Where the folder is until it is committed.
    pub fn path(&self) -> &Path {
        &self.partial.path
    }

    /// Writes a file of the folder and has it synced; its folder is made where there is none yet.
    /// Whoever writes into [`OutputFolder::path`] in another way has to sync what it writes.
    ///
    /// # Errors
    /// `fill` fails, the file is there already, or the system refuses.
    pub fn file(
        &self,
        name: impl AsRef<Path>,
        fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
    ) -> Result<(), WriteFileError> {
        let path = self.path().join(name);
        let write = || {
            fs::create_dir_all(parent_of(&path))?;
            let mut file = BufWriter::with_capacity(1 << 18, File::create_new(&path)?);
            fill(&mut file)?;
            file.into_inner().map_err(io::IntoInnerError::into_error)?.sync_all()
        };
        write().map_err(failed(&path, "write"))
    }

    /// Puts the folder in its place, where nothing or an empty folder is.
    ///
    /// # Errors
    /// Something is there ([`WriteFileError::is_occupied`]); the system refuses. What is there
    /// is then as it was.
    pub fn commit(mut self) -> Result<(), WriteFileError> {
        self.try_commit()
    }

    /// The same; where something is there, another place or [`OutputFolder::commit_over`] may be
    /// tried.
    pub(crate) fn try_commit(&mut self) -> Result<(), WriteFileError> {
        sync_tree(self.path())?;
        self.partial.rename_to(&self.destination)
    }

    /// Puts the folder in the place of another one, which is removed: in a single step where the
    /// system can do that (Linux). `look` sees what was replaced, which nobody finds any more under its
    /// old name, before it is removed; what it refuses is put back.
    ///
    /// # Errors
    /// `look` refuses; the system refuses. Unless it cannot exchange folders and refuses twice, what
    /// is there is then as it was.
    pub fn commit_over<E: From<WriteFileError>>(self, look: impl FnOnce(&Path) -> Result<(), E>) -> Result<(), E> {
        sync_tree(self.path())?;
        {
            let _no_sudden_end = under_way();
            exchange(self.path(), &self.destination)?;
            if let Err(refused) = look(self.path()) {
                exchange(self.path(), &self.destination)?;
                return Err(refused);
            }
        }
        sync_folder(parent_of(&self.destination))?;
        match fs::remove_dir_all(self.path()) {
            // The next writer took it for a leftover.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            outcome => Ok(outcome.map_err(failed(self.path(), "remove what was replaced"))?),
        }
    }
}

/// Has the entries of a folder and of all below it written to the disk.
fn sync_tree(path: &Path) -> Result<(), WriteFileError> {
    let list = failed(path, "list the folder");
    let entries = fs::read_dir(path).and_then(Iterator::collect::<io::Result<Vec<_>>>).map_err(list)?;
    entries.iter().map(fs::DirEntry::path).filter(|path| path.is_dir()).try_for_each(|path| sync_tree(&path))?;
    sync_folder(path)
}

#[cfg(target_os = "linux")]
fn exchange(built: &Path, path: &Path) -> Result<(), WriteFileError> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    match renameat_with(CWD, built, CWD, path, RenameFlags::EXCHANGE) {
        Ok(()) => Ok(()),
        // The file system or the kernel does not know the call.
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS | rustix::io::Errno::OPNOTSUPP) => {
            move_aside(built, path)
        }
        Err(error) => Err(failed(path, "exchange it with what was written")(error.into())),
    }
}

#[cfg(not(target_os = "linux"))]
fn exchange(built: &Path, path: &Path) -> Result<(), WriteFileError> {
    move_aside(built, path)
}

/// The same in three renames. Between the first two nothing is at `path`; if the second fails
/// the old folder goes back.
fn move_aside(built: &Path, path: &Path) -> Result<(), WriteFileError> {
    let mut aside = built.as_os_str().to_owned();
    aside.push(".old");
    let aside = PathBuf::from(aside);
    fs::rename(path, &aside).map_err(failed(path, "move it aside"))?;
    if let Err(error) = fs::rename(built, path) {
        fs::rename(&aside, path).map_err(failed(&aside, "move it back"))?;
        return Err(failed(path, "rename what was written to it")(error));
    }
    fs::rename(&aside, built).map_err(failed(&aside, "move it out of the way"))
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
