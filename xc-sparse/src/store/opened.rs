//! A folder that is open: every file comes from this folder, whatever is put in its place
//! meanwhile.

use super::OpenError;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// A folder behind a handle, which stays with it when its path names another one.
#[derive(Debug)]
pub(super) struct OpenFolder {
    pub(super) path: PathBuf,
    #[cfg(unix)]
    handle: File,
}

#[cfg(unix)]
impl OpenFolder {
    /// Opens a folder.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        use rustix::fs::{Mode, OFlags};
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = File::from(rustix::fs::open(path, flags, Mode::empty())?);
        Ok(Self { path: path.to_owned(), handle })
    }

    fn open_file(&self, name: &str) -> io::Result<File> {
        use rustix::fs::{Mode, OFlags};
        // Without waiting for a writer of what turns out to be a pipe.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Ok(File::from(rustix::fs::openat(&self.handle, name, flags, Mode::empty())?))
    }

    /// Whether the path names another folder now, or none.
    pub(super) fn was_replaced(&self) -> bool {
        use std::os::unix::fs::MetadataExt as _;
        let (own, named) = (self.handle.metadata(), std::fs::metadata(&self.path));
        !own.is_ok_and(|own| named.is_ok_and(|named| (own.dev(), own.ino()) == (named.dev(), named.ino())))
    }
}

#[cfg(not(unix))]
impl OpenFolder {
    /// Opens a folder.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        if !std::fs::metadata(path)?.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(Self { path: path.to_owned() })
    }

    fn open_file(&self, name: &str) -> io::Result<File> {
        File::open(self.path.join(name))
    }

    /// Whether the path names another folder now: a folder with open files cannot be replaced
    /// there.
    pub(super) fn was_replaced(&self) -> bool {
        false
    }
}

impl OpenFolder {
    /// Opens a regular file in the folder. Pipes and devices have no end, or keep their reader
    /// waiting.
    pub(super) fn file(&self, name: &str) -> io::Result<File> {
        let file = self.open_file(name)?;
        match file.metadata()?.is_file() {
            true => Ok(file),
            false => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")),
        }
    }

    /// Reads a file of at most `limit` bytes; `what` says which part of a model it is.
    pub(super) fn read(&self, name: &str, what: &'static str, limit: u64) -> Result<Vec<u8>, OpenError> {
        let file = self.file(name).map_err(|source| OpenError::Io { path: self.path.join(name), source })?;
        read_all(&file, &self.path.join(name), what, limit)
    }
}

/// Reads a whole file from its beginning, at most `limit` bytes of it, wherever others that share
/// it stand.
pub(super) fn read_all(file: &File, path: &Path, what: &'static str, limit: u64) -> Result<Vec<u8>, OpenError> {
    let mut bytes = Vec::new();
    let n = ReadAt { file, at: 0 }.take(limit.saturating_add(1)).read_to_end(&mut bytes);
    let got = n.map_err(|source| OpenError::Io { path: path.to_owned(), source })? as u64;
    if got > limit {
        let got = file.metadata().map_or(got, |meta| meta.len().max(got));
        return Err(OpenError::TooLarge { path: path.to_owned(), what, got, limit });
    }
    Ok(bytes)
}

/// A reader with a position of its own.
struct ReadAt<'a> {
    file: &'a File,
    at: u64,
}

impl Read for ReadAt<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        #[cfg(unix)]
        let n = std::os::unix::fs::FileExt::read_at(self.file, into, self.at)?;
        #[cfg(windows)]
        let n = std::os::windows::fs::FileExt::seek_read(self.file, into, self.at)?;
        self.at += n as u64;
        Ok(n)
    }
}
