//! Folders under construction.

use std::fs::File;
use std::io;
use std::path::Path;
use tempfile::TempDir;

/// A new folder `.NAME.*.partial` beside the place where it will stand as `NAME`. Dropped before it is there, it is removed.
#[derive(Debug)]
pub struct PartialFolder(TempDir);

impl PartialFolder {
    /// Makes the folder, on the file system of `destination`.
    ///
    /// # Errors
    /// There is no parent folder, or no permission to write there.
    pub fn beside(destination: &Path) -> io::Result<Self> {
        let name = destination.file_name().unwrap_or_default().to_string_lossy();
        let prefix = format!(".{name}.");
        let mut builder = tempfile::Builder::new();
        builder.prefix(&prefix).suffix(".partial");
        // The folder will be the user's: readable as the umask says, not by its owner alone.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o777));
        builder.tempdir_in(parent_of(destination)).map(Self)
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Renames it to `destination`, where nothing or an empty folder stands, and has that written to the disk.
    ///
    /// # Errors
    /// Something stands there; the file system refuses.
    pub fn rename_to(self, destination: &Path) -> io::Result<()> {
        std::fs::rename(self.path(), destination)?;
        self.keep();
        if cfg!(unix) {
            File::open(parent_of(destination))?.sync_all()?;
        }
        Ok(())
    }

    /// Leaves whatever stands under its name.
    pub(super) fn keep(self) {
        let _moved = self.0.keep();
    }

    /// Removes what stands under its name.
    pub(super) fn close(self) -> io::Result<()> {
        self.0.close()
    }
}

fn parent_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}
