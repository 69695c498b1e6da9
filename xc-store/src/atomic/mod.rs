//! Files and folders that appear under their name only when complete.
//!
//! ```text
//!   .NAME.1f3a9c02.partial   being written, beside its destination and so on the same file system
//!            │               synced: each file, then the entries of each folder
//!            ▼  rename
//!          NAME              then the entries of the folder that it is in are synced
//! ```
//!
//! What is dropped before it is committed is removed. A program that is killed leaves its partial
//! file or folder, which no later write runs into; the next write in its folder removes it.
//! (It is locked while it is written, so what another process is writing stays.) A program that ends
//! at once, from a signal handler's thread, calls [`remove_partial`].
//!
//! ```
//! use std::io::Write as _;
//! use xc_store::atomic::{OutputFolder, write_file};
//!
//! let place = tempfile::tempdir()?;
//! let file = place.path().join("answers.txt");
//! write_file(&file, |into| writeln!(into, "7:0.5"))?;
//! assert_eq!(std::fs::read_to_string(&file)?, "7:0.5\n");
//!
//! let folder = OutputFolder::create(&place.path().join("export"))?;
//! folder.file("weights.bin", |into| into.write_all(&[1, 2, 3]))?;
//! assert!(!place.path().join("export").exists());
//! folder.commit()?;
//! assert!(place.path().join("export/weights.bin").exists());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod file;
mod folder;
mod leftover;

pub use file::{OutputFile, write_file};
pub use folder::OutputFolder;

use leftover::{Hold, MARK_DIGITS, remove_leftovers};
pub(crate) use leftover::{Leftover, leftover};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use thiserror::Error;

/// A file or folder that could not be written.
#[derive(Debug, Error)]
#[error("{}: cannot {doing}", path.display())]
pub struct WriteFileError {
    /// The file or folder, by the name that the caller gave.
    pub path: PathBuf,
    /// What was being done.
    pub doing: &'static str,
    /// The system's answer.
    pub source: io::Error,
}

impl WriteFileError {
    /// Whether it failed because something is at the destination.
    pub fn is_occupied(&self) -> bool {
        use ErrorKind::{AlreadyExists, DirectoryNotEmpty, NotADirectory};
        matches!(self.source.kind(), AlreadyExists | DirectoryNotEmpty | NotADirectory)
    }

    /// Whether the path is at fault (its folder is absent, or something else is in its place) and not the
    /// system, which may refuse to write at a path that is right.
    pub fn is_misnamed(&self) -> bool {
        is_misnamed(&self.source)
    }
}

/// Whether the system's answer says that a path cannot be.
pub fn is_misnamed(error: &io::Error) -> bool {
    use ErrorKind::{
        AlreadyExists, DirectoryNotEmpty, InvalidFilename, InvalidInput, IsADirectory, NotADirectory, NotFound,
    };
    let is_of_path = |kind| {
        matches!(
            kind,
            NotFound
                | NotADirectory
                | IsADirectory
                | AlreadyExists
                | DirectoryNotEmpty
                | InvalidFilename
                | InvalidInput
        )
    };
    #[cfg(unix)]
    let is_loop = rustix::io::Errno::from_io_error(error) == Some(rustix::io::Errno::LOOP);
    #[cfg(not(unix))]
    let is_loop = false;
    is_loop || is_of_path(error.kind())
}

/// What it means that something could not be made at `path`: a file system that makes nothing new says
/// "not found" of a folder that is there.
pub(crate) fn refused_to_make(path: &Path, error: io::Error) -> io::Error {
    match error.kind() {
        ErrorKind::NotFound if parent_of(path).is_dir() => {
            io::Error::new(ErrorKind::PermissionDenied, "nothing can be made in this folder")
        }
        _ => error,
    }
}

/// For `map_err`: the system refused to do something at `path`.
pub(crate) fn failed(path: &Path, doing: &'static str) -> impl FnOnce(io::Error) -> WriteFileError {
    let path = path.to_owned();
    move |source| WriteFileError { path, doing, source }
}

/// The name that a partial file or folder will have; `None` for the names of other entries.
pub fn name_of_partial(entry: &str) -> Option<&str> {
    parts_of_partial(entry).map(|(name, _)| name)
}

/// The same with what tells writers apart.
fn parts_of_partial(entry: &str) -> Option<(&str, &str)> {
    let (name, mark) = entry.strip_prefix('.')?.strip_suffix(".partial")?.rsplit_once('.')?;
    (!name.is_empty()).then_some((name, mark))
}

/// Where what will be at `destination` is written; `mark` tells writers apart.
pub(crate) fn partial_path(destination: &Path, mark: &str) -> PathBuf {
    parent_of(destination).join(format!(".{}.{mark}.partial", name_in_partial(destination)))
}

/// The name of a destination as its partial files have it.
fn name_in_partial(destination: &Path) -> String {
    // A name may have 255 bytes.
    const MOST_BYTES: usize = 200;
    let name = destination.file_name().unwrap_or_default().to_string_lossy();
    name[..name.floor_char_boundary(MOST_BYTES)].to_owned()
}

/// The folder that a path is in: `.` for a name alone.
pub fn parent_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Every partial file and folder of this process. A rename happens under this lock.
static UNDER_WAY: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

fn under_way() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes under way that will be done soon, and when the last one was, in milliseconds after
/// [`STARTED`].
static WRITES: AtomicUsize = AtomicUsize::new(0);
static LAST_WRITE: AtomicU64 = AtomicU64::new(0);
static STARTED: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Between two writes of one save there is less than this.
const BETWEEN_WRITES: Duration = Duration::from_secs(1);

/// Whether something is being written of which all is there already, so that it will be whole soon:
/// a program that is asked to end lets that come to its end.
pub fn is_writing() -> bool {
    let now = STARTED.elapsed();
    let last = LAST_WRITE.load(Ordering::SeqCst);
    WRITES.load(Ordering::SeqCst) > 0 || last > 0 && now < Duration::from_millis(last) + BETWEEN_WRITES
}

/// A write under way, until it is dropped.
pub(crate) struct Writing;

impl Writing {
    pub(crate) fn begin() -> Self {
        let _ = *STARTED;
        WRITES.fetch_add(1, Ordering::SeqCst);
        Self
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        LAST_WRITE.fetch_max(STARTED.elapsed().as_millis() as u64 + 1, Ordering::SeqCst);
        WRITES.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Removes every partial file and folder of this process, which must end at once: a commit in
/// another thread waits for ever.
pub fn remove_partial() {
    let paths = under_way();
    paths.iter().for_each(|path| remove(path));
    std::mem::forget(paths);
}

/// Removes a file or a folder. Errors are ignored.
fn remove(path: &Path) {
    if fs::remove_file(path).is_err() && fs::remove_dir_all(path).is_err() {
        remove_one_by_one(path);
    }
}

/// Removes a folder with one file descriptor at a time, where there are no more.
fn remove_one_by_one(path: &Path) {
    let entries: Vec<_> = fs::read_dir(path).into_iter().flatten().flatten().collect();
    for entry in entries {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => remove_one_by_one(&entry.path()),
            _ => drop(fs::remove_file(entry.path())),
        }
    }
    let _ = fs::remove_dir(path);
}

/// A partial file or folder, which is removed when it is dropped.
#[derive(Debug)]
struct Partial {
    /// Empty once it was renamed.
    path: PathBuf,
    /// Until it is dropped, other processes leave it alone.
    hold: Option<Hold>,
}

impl Partial {
    /// Has `make` make something new beside `destination`, where what killed writers left is removed.
    fn beside<T>(destination: &Path, make: impl Fn(&Path) -> io::Result<T>) -> io::Result<(Self, T)> {
        remove_leftovers(destination);
        // Random names: what another process left has the same one too seldom to fail this often.
        let mut tries = 0..100;
        loop {
            let mark = format!("{:0MARK_DIGITS$x}", RandomState::new().hash_one(0u8) as u32);
            let path = partial_path(destination, &mark);
            let mut paths = under_way();
            match make(&path) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists && tries.next().is_some() => {}
                made => {
                    let made = made.map_err(|error| refused_to_make(&path, error))?;
                    let hold = Hold::take(&path).inspect_err(|_| remove(&path))?;
                    if hold.is_none() {
                        if tries.next().is_some() {
                            continue;
                        }
                        return Err(ErrorKind::AlreadyExists.into());
                    }
                    paths.insert(path.clone());
                    return Ok((Self { path, hold }, made));
                }
            }
        }
    }

    /// Puts it at `destination`, over a file or an empty folder that is there.
    fn rename_to(&mut self, destination: &Path) -> Result<(), WriteFileError> {
        {
            let mut paths = under_way();
            fs::rename(&self.path, destination).map_err(failed(destination, "rename what was written to it"))?;
            paths.remove(&self.path);
            self.path = PathBuf::new();
        }
        sync_folder(parent_of(destination))
    }
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.path.as_os_str().is_empty() {
            remove(&self.path);
            if self.path.symlink_metadata().is_ok() {
                // The descriptor of the lock may be the one that it takes to look into a folder.
                self.hold = None;
                remove(&self.path);
            }
            under_way().remove(&self.path);
        }
    }
}

/// Has the entries of a folder written to the disk. A file system that cannot do that, or a folder
/// that may be written and not read, is no failure.
fn sync_folder(path: &Path) -> Result<(), WriteFileError> {
    use ErrorKind::{InvalidInput, PermissionDenied, Unsupported};
    if cfg!(not(unix)) {
        return Ok(());
    }
    match File::open(path).and_then(|folder| folder.sync_all()) {
        Err(error) if matches!(error.kind(), InvalidInput | PermissionDenied | Unsupported) => Ok(()),
        outcome => outcome.map_err(failed(path, "write the folder's entries to the disk")),
    }
}

#[cfg(test)]
mod tests;
