//! The finished parts of a long training run, in a folder.
//!
//! ```text
//!   CHECKPOINT/config.json      a container of kind "checkpoint" without arrays: which training this belongs to
//!   CHECKPOINT/.xc-lock         locked while a process uses the folder
//!   CHECKPOINT/PART/            a container for each part: key and name of the part inside, written at once
//!   CHECKPOINT/.PART.*.partial  what a killed save left; the next owner of the lock removes it
//! ```
//!
//! A folder with any other content is rejected and left unchanged. At the end exactly the files that
//! were written are removed, and the folder itself only if it was created for the checkpoint and is
//! empty. `docs/formats/checkpoint.md` is the specification.
//!
//! ```
//! use xc_store::{CHECKPOINT_KIND, CheckpointFolder, CheckpointKey, CheckpointLayout};
//!
//! const LAYOUT: CheckpointLayout = CheckpointLayout { system: "sum", parts: &["term-#"] };
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("sum.checkpoint");
//! let mut key = CheckpointKey::new(LAYOUT.system, 1);
//! key.numbers(&[10, 20]);
//!
//! let checkpoint = CheckpointFolder::claim(&path, LAYOUT)?.begin(key.finish())?;
//! checkpoint.save("term-0", CHECKPOINT_KIND, |writer| writer.add_slice("value", &[10.0f64]))?;
//! assert!(CheckpointFolder::claim(&path, LAYOUT).is_err(), "it is in use");
//! drop(checkpoint);      // or the process was killed
//!
//! let checkpoint = CheckpointFolder::claim(&path, LAYOUT)?.begin(key.finish())?;
//! let term = checkpoint.part("term-0")?.expect("it was saved");
//! assert_eq!(term.array::<f64>("value")?[..], [10.0]);
//! assert!(checkpoint.part("term-1")?.is_none());
//! checkpoint.finish()?;
//! assert!(!path.exists());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod folder;
mod key;

pub use key::CheckpointKey;

use super::{Container, ContainerWriter, Mismatch, OpenError, OpenMode, WriteError};
use crate::atomic::{is_misnamed, name_of_partial};
use folder::{Folder, OWNER, Part};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The kind of a checkpoint, and of parts that are not models themselves.
pub const KIND: &str = "checkpoint";

/// The system that is trained, and the names that its parts may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckpointLayout {
    /// The system, named like its kind of model.
    pub system: &'static str,
    /// Names of the parts, of lower-case letters and `-`; `#` stands for a number.
    pub parts: &'static [&'static str],
}

impl CheckpointLayout {
    /// Whether a part may have this name.
    fn has_part(self, name: &str) -> bool {
        self.parts.iter().any(|pattern| matches(pattern, name))
    }

    /// Whether a save of a part that was killed leaves a folder of this name.
    fn is_leftover(self, name: &str) -> bool {
        name_of_partial(name).is_some_and(|part| self.has_part(part))
    }
}

/// Compares a name with a pattern in which `#` stands for digits.
fn matches(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('#');
    let mut rest = parts.next().and_then(|first| name.strip_prefix(first));
    for literal in parts {
        let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
        rest = rest.and_then(|text| match digits(text) {
            0 => None,
            n => text[n..].strip_prefix(literal),
        });
    }
    rest == Some("")
}

/// Why a checkpoint cannot be used or written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CheckpointError {
    /// Another process uses the folder.
    #[error("checkpoint {} is in use by another process", path.display())]
    InUse {
        /// The folder.
        path: PathBuf,
    },
    /// The folder has an entry that does not belong to such a checkpoint. It is left unchanged.
    #[error("{}: holds {entry:?}, which is no part of a checkpoint; another folder is expected", path.display())]
    Occupied {
        /// The folder.
        path: PathBuf,
        /// The entry.
        entry: String,
    },
    /// A part belongs to another checkpoint, or is another part of this one.
    #[error("{}: is part {part:?} of a checkpoint with key {key}; remove it to do that part again", path.display())]
    WrongPart {
        /// The part's folder.
        path: PathBuf,
        /// The name that it was saved under.
        part: String,
        /// The key that it was saved under.
        key: String,
    },
    /// The folder belongs to a training run with other data or settings.
    #[error(
        "checkpoint {} belongs to other data or settings ({got}; expected {expected}); remove it or choose another folder",
        path.display()
    )]
    Foreign {
        /// The folder.
        path: PathBuf,
        /// System and key found there.
        got: String,
        /// System and key of this training.
        expected: String,
    },
    /// The content differs from what was written.
    #[error("checkpoint {} is damaged: {what}; remove it to do that part again", path.display())]
    Damaged {
        /// The folder of the part.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// It cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// It cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A file system error.
    #[error("checkpoint {}", path.display())]
    Io {
        /// File or folder.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
}

impl CheckpointError {
    /// True if the file system failed, false if the path cannot be, or the content found cannot be used.
    pub fn is_failure(&self) -> bool {
        match self {
            Self::Write(error) => !error.is_misnamed(),
            Self::Io { source, .. } => !is_misnamed(source),
            _ => false,
        }
    }
}

fn damaged(path: &Path, what: impl Into<String>) -> CheckpointError {
    CheckpointError::Damaged { path: path.to_owned(), what: what.into() }
}

/// A folder that only this process uses: a checkpoint, or one that will become one.
///
/// If it is dropped without [`CheckpointFolder::begin`], a folder without parts is left as it was found.
#[derive(Debug)]
pub struct CheckpointFolder(Option<Folder>);

impl CheckpointFolder {
    /// Takes a folder that does not exist, is empty, or is a checkpoint, and locks it for this
    /// process.
    ///
    /// # Errors
    /// Another process uses it; it has other content, at any depth; one of its parts does not
    /// belong to this checkpoint; its parent does not exist. Nothing in it is changed then.
    ///
    /// # Cost
    /// The configurations of all parts are read, the arrays are not.
    pub fn claim(path: impl AsRef<Path>, layout: CheckpointLayout) -> Result<Self, CheckpointError> {
        let path = path.as_ref();
        Folder::claim(path, layout).map(|folder| Self(Some(folder)))
    }

    /// The same of a folder whose name was made for this checkpoint alone: it goes with it, also where it was there
    /// empty, as a run leaves it that is killed while it removes its checkpoint.
    pub fn with_own_name(mut self) -> Self {
        self.0.iter_mut().for_each(|folder| folder.made = true);
        self
    }

    fn folder(&self) -> &Folder {
        self.0.as_ref().unwrap_or_else(|| unreachable!("the folder is taken by begin, which consumes this"))
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.folder().path
    }

    /// Whether there are parts from which a training run can resume.
    ///
    /// # Errors
    /// The folder cannot be listed.
    pub fn has_parts(&self) -> Result<bool, CheckpointError> {
        Ok(!self.folder().parts()?.is_empty())
    }

    /// Removes every part.
    ///
    /// # Errors
    /// A file system error.
    pub fn clear(&self) -> Result<(), CheckpointError> {
        self.folder().parts()?.iter().try_for_each(|part| self.folder().remove_part(part))
    }

    /// The checkpoint of the training with this key. A folder without parts is assigned to it.
    ///
    /// # Errors
    /// There are parts of a training run with another key or of another system.
    pub fn begin(mut self, key: String) -> Result<Checkpoint, CheckpointError> {
        let folder = self.folder();
        let expected = format!("{} {key}", folder.layout.system);
        match folder.marker()? {
            Some(marker) if !folder.parts()?.is_empty() => {
                let got = format!("{} {}", marker.system, marker.key);
                if got != expected {
                    return Err(CheckpointError::Foreign { path: folder.path.clone(), got, expected });
                }
            }
            _ => folder.write_marker(&key)?,
        }
        let folder = self.0.take();
        Ok(Checkpoint { folder: CheckpointFolder(folder), key })
    }
}

impl Drop for CheckpointFolder {
    fn drop(&mut self) {
        if let Some(folder) = &self.0
            && folder.parts().is_ok_and(|parts| parts.is_empty())
        {
            // Nothing is lost when it stays.
            let _ = folder.remove();
        }
    }
}

/// The checkpoint of one training. If it is dropped, it stays for a later run, unless it has no parts.
#[derive(Debug)]
pub struct Checkpoint {
    folder: CheckpointFolder,
    key: String,
}

impl Checkpoint {
    /// The folder.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// The key of the training.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// A part, if it was saved; every hash is verified.
    ///
    /// # Errors
    /// It cannot be opened, its content differs from what was written, or it is another part.
    ///
    /// # Cost
    /// One read of the part.
    ///
    /// # Panics
    /// If the layout has no such part.
    pub fn part(&self, name: &str) -> Result<Option<Container>, CheckpointError> {
        let path = self.part_path(name);
        if !path.try_exists().map_err(folder::io_error(&path))? {
            return Ok(None);
        }
        let container = Container::open(&path, OpenMode::Map)?;
        let of: Option<Part> = container.parameter(OWNER)?;
        let of =
            of.ok_or_else(|| CheckpointError::Occupied { path: self.path().to_owned(), entry: name.to_owned() })?;
        if of.part != name || of.key != self.key {
            return Err(CheckpointError::WrongPart { path, part: of.part, key: of.key });
        }
        match container.verify()?.first() {
            Some(mismatch) => Err(damaged(&path, Mismatch::to_string(mismatch))),
            None => Ok(Some(container)),
        }
    }

    /// Saves a part atomically: a reader finds the old one or the new one, never a mixture. `kind` is
    /// [`KIND`] unless the part is itself a model.
    ///
    /// # Errors
    /// A file system error, or `fill` fails.
    ///
    /// # Panics
    /// If the layout has no such part.
    pub fn save<E: From<WriteError>>(
        &self,
        name: &str,
        kind: &str,
        fill: impl FnOnce(&mut ContainerWriter) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut writer = ContainerWriter::create(&self.part_path(name), kind)?;
        writer.set_parameter(OWNER, serde_json::json!(Part { key: self.key.clone(), part: name.to_owned() }));
        fill(&mut writer)?;
        Ok(writer.finish()?)
    }

    /// Removes a part that is no longer needed. A missing part is not an error.
    ///
    /// # Errors
    /// A file system error.
    ///
    /// # Panics
    /// If the layout has no such part.
    pub fn remove(&self, name: &str) -> Result<(), CheckpointError> {
        self.part_path(name);
        self.folder.folder().remove_part(name)
    }

    /// Removes the checkpoint once it is no longer needed: everything that was written, and the folder
    /// if it was created for the checkpoint and has no other content.
    ///
    /// # Errors
    /// A file system error.
    pub fn finish(mut self) -> Result<(), CheckpointError> {
        self.folder.clear()?;
        // Once the lock has no name another process may begin here: nothing may be removed a second
        // time.
        self.folder.0.take().map_or(Ok(()), |folder| folder.remove())
    }

    fn part_path(&self, name: &str) -> PathBuf {
        let layout = self.folder.folder().layout;
        assert!(layout.has_part(name), "part {name:?} of a checkpoint of {layout:?}");
        self.path().join(name)
    }
}

#[cfg(test)]
mod tests;
