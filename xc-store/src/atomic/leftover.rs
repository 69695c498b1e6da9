//! What killed writers left: partial files and folders that nobody holds any more.

use super::{parent_of, parts_of_partial, remove};
use std::fs::File;
use std::io;
use std::path::Path;

/// Number of hexadecimal digits that tell writers apart.
pub(super) const MARK_DIGITS: usize = 8;

/// What says that a process is writing: a lock on the partial file or folder, which ends with the process.
#[derive(Debug)]
pub(super) struct Hold {
    /// Held, never read. `None` where the file system has no locks: nothing is removed there.
    _lock: Option<File>,
}

impl Hold {
    /// Holds what was just made. `None`: another process took it for a leftover in between.
    ///
    /// # Errors
    /// There are no more file descriptors: what is in a folder could be neither written nor removed.
    pub(super) fn take(path: &Path) -> io::Result<Option<Self>> {
        match locked(path) {
            Ok(lock) => Ok(Some(Self { _lock: Some(lock) })),
            Err(Free::No) => Ok(None),
            Err(Free::Unknown) => Ok(Some(Self { _lock: None })),
            Err(Free::NoMoreFiles(error)) => Err(error),
        }
    }
}

/// Why something is not held.
enum Free {
    /// Another process holds it, or it is gone.
    #[cfg_attr(not(unix), allow(dead_code, reason = "nothing is known there"))]
    No,
    /// The system does not say.
    Unknown,
    /// The process or the system has no file descriptor left.
    #[cfg_attr(not(unix), allow(dead_code, reason = "nothing is opened there"))]
    NoMoreFiles(io::Error),
}

#[cfg(unix)]
fn locked(path: &Path) -> Result<File, Free> {
    use rustix::io::Errno;
    use std::fs::TryLockError;
    use std::io::ErrorKind::NotFound;
    use std::os::unix::fs::MetadataExt as _;
    let gone = |error: io::Error| match Errno::from_io_error(&error) {
        _ if error.kind() == NotFound => Free::No,
        Some(Errno::MFILE | Errno::NFILE) => Free::NoMoreFiles(error),
        _ => Free::Unknown,
    };
    // A pipe would keep its reader waiting.
    let named = std::fs::symlink_metadata(path).map_err(gone)?;
    if !named.is_file() && !named.is_dir() {
        return Err(Free::Unknown);
    }
    let file = File::open(path).map_err(gone)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(Free::No),
        Err(TryLockError::Error(_)) => return Err(Free::Unknown),
    }
    let (own, named) = (file.metadata().map_err(gone)?, std::fs::symlink_metadata(path).map_err(gone)?);
    if (own.dev(), own.ino()) == (named.dev(), named.ino()) { Ok(file) } else { Err(Free::No) }
}

#[cfg(not(unix))]
fn locked(_: &Path) -> Result<File, Free> {
    Err(Free::Unknown)
}

/// What a partial file or folder is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Leftover {
    /// Written by nobody any more.
    Left,
    /// Being written, or the system does not say.
    Held,
}

/// Whether this is a partial file or folder as [`atomic`](super) makes them, and whether one is still at it.
pub(crate) fn leftover(path: &Path) -> Option<Leftover> {
    let name = path.file_name()?.to_str()?;
    parts_of_partial(name).filter(|(_, mark)| is_mark(mark))?;
    Some(if locked(path).is_ok() { Leftover::Left } else { Leftover::Held })
}

fn is_mark(mark: &str) -> bool {
    mark.len() == MARK_DIGITS && mark.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// Removes what is partial in the folder of `destination` and is written by nobody, whatever it was to become: a service that
/// gives each run a name of its own and is killed would gather it. Errors are ignored.
pub(super) fn remove_leftovers(destination: &Path) {
    for entry in std::fs::read_dir(parent_of(destination)).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some((_, mark)) = name.to_str().and_then(parts_of_partial) else { continue };
        if is_mark(mark) {
            // Held while it is removed: whoever has just made it takes another name.
            if let Ok(_held) = locked(&entry.path()) {
                remove(&entry.path());
            }
        }
    }
}
