//! All of stdin as a file, and what messages call that.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use xc_store::atomic::OutputFolder;

/// How stdin is called in messages.
pub(crate) const NAME: &str = "standard input";

/// All of stdin, where a command wanted it as a file.
static WHOLE: Mutex<Option<Whole>> = Mutex::new(None);

struct Whole {
    /// Never put in its place: removed when it is dropped, or by a signal.
    _folder: OutputFolder,
    file: PathBuf,
}

fn whole() -> MutexGuard<'static, Option<Whole>> {
    WHOLE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The file, where there is one.
pub(crate) fn file() -> Option<PathBuf> {
    whole().as_ref().map(|whole| whole.file.clone())
}

/// Keeps a file of a folder as that of stdin.
pub(crate) fn keep(folder: OutputFolder, file: PathBuf) -> PathBuf {
    whole().insert(Whole { _folder: folder, file }).file.clone()
}

/// Removes the file of stdin.
pub(crate) fn forget() {
    drop(whole().take());
}

/// A message in which the file of stdin is called what it is.
pub(crate) fn named(line: &str) -> Cow<'_, str> {
    match &*whole() {
        Some(whole) => line.replace(&*whole.file.to_string_lossy(), NAME).into(),
        None => line.into(),
    }
}
