//! The folder of a checkpoint: its lock, and which entries belong to the checkpoint.

use super::super::config::{ArrayEntry, CONFIG_FILE, Config};
use super::{CheckpointError, CheckpointLayout, OpenError, WriteError, damaged};
use crate::atomic::{name_of_partial, partial_path, refused_to_make, write_file};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs::{File, TryLockError};
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The file whose lock says that a process uses the folder.
const LOCK_FILE: &str = ".xc-lock";
/// What that file holds when the folder was made with it.
const MADE: &[u8] = b"made\n";
/// The parameter of the folder and of its parts that says whose they are.
pub(super) const OWNER: &str = "checkpoint";
/// How often a folder that others make and remove at the same time is tried again.
const TRIES: usize = 100;

/// What the folder's own `config.json` says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Marker {
    pub(super) system: String,
    pub(super) key: String,
    /// Whether the folder was made for this checkpoint, so that it may go with it.
    pub(super) made_folder: bool,
}

/// What the `config.json` of a part says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Part {
    pub(super) key: String,
    pub(super) part: String,
}

/// A folder that only this process uses, until it is dropped.
#[derive(Debug)]
pub(super) struct Folder {
    pub(super) path: PathBuf,
    pub(super) layout: CheckpointLayout,
    pub(super) made: bool,
    /// Held until the folder is dropped.
    lock: File,
}

/// What one entry of the folder is.
enum Entry {
    Own,
    Part(String),
    Leftover,
    Foreign,
}

pub(super) fn io_error(path: &Path) -> impl FnOnce(io::Error) -> CheckpointError {
    let path = path.to_owned();
    move |source| CheckpointError::Io { path, source }
}

/// No error where there is nothing to remove.
fn gone(outcome: io::Result<()>) -> io::Result<()> {
    match outcome {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

impl Folder {
    /// Makes the folder or takes one that is empty or a checkpoint, and locks it. Nothing is
    /// touched before it is known to be one of these; what killed saves left in it is removed.
    pub(super) fn claim(path: &Path, layout: CheckpointLayout) -> Result<Self, CheckpointError> {
        let mut made = false;
        for _ in 0..TRIES {
            match std::fs::create_dir(path) {
                Ok(()) => made = true,
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(io_error(path)(refused_to_make(path, error))),
            }
            // Names and the marker alone: another process may be at work in it.
            if let Some(entry) = foreign_name(path, layout)? {
                return Err(CheckpointError::Occupied { path: path.to_owned(), entry });
            }
            read_marker(path)?;
            // Another process may have locked what this one made, and took it for a folder that was there.
            let lock = lock(path).inspect_err(|_| {
                if made {
                    remove_made(path);
                }
            });
            let Some(lock) = lock? else { continue };
            // A process that was killed before it wrote the marker may have made it.
            let made = note_made(&lock, made).map_err(io_error(path))?;
            let made = read_marker(path)?.map_or(made, |marker| marker.made_folder);
            let folder = Self { path: path.to_owned(), layout, made, lock };
            folder.check()?;
            return Ok(folder);
        }
        Err(CheckpointError::InUse { path: path.to_owned() })
    }

    /// The marker, if a training run has begun here.
    pub(super) fn marker(&self) -> Result<Option<Marker>, CheckpointError> {
        read_marker(&self.path)
    }

    pub(super) fn write_marker(&self, key: &str) -> Result<(), CheckpointError> {
        let (system, key) = (self.layout.system.to_owned(), key.to_owned());
        let marker = Marker { system, key, made_folder: self.made };
        let mut config = Config::new(super::KIND);
        let value = serde_json::to_value(marker).map_err(|e| io_error(&self.path)(e.into()))?;
        config.parameters.insert(OWNER.to_owned(), value);
        let written = write_file(&self.path.join(CONFIG_FILE), |file| file.write_all(&config.to_bytes()?));
        Ok(written.map_err(WriteError::from)?)
    }

    /// Looks at every entry: parts have to be those of this checkpoint, and nothing else may be
    /// there. Afterwards removes what killed saves left.
    fn check(&self) -> Result<(), CheckpointError> {
        let key = self.marker()?.map(|marker| marker.key);
        let (mut foreign, mut leftovers) = (None, Vec::new());
        for (name, entry) in self.entries()? {
            match entry {
                Entry::Own => {}
                Entry::Part(part) => self.check_part(&part, key.as_deref())?,
                Entry::Leftover => leftovers.push(name),
                Entry::Foreign => foreign = Some(name),
            }
        }
        if let Some(entry) = foreign {
            return Err(CheckpointError::Occupied { path: self.path.clone(), entry });
        }
        for name in leftovers {
            let path = self.path.join(name);
            let outcome = if path.is_dir() { remove_container(&path) } else { std::fs::remove_file(&path) };
            outcome.map_err(io_error(&path))?;
        }
        Ok(())
    }

    /// A part says itself that it belongs here, and holds nothing but what it lists.
    fn check_part(&self, name: &str, key: Option<&str>) -> Result<(), CheckpointError> {
        let path = self.path.join(name);
        let occupied = || CheckpointError::Occupied { path: self.path.clone(), entry: name.to_owned() };
        if !path.join(CONFIG_FILE).is_file() {
            return Err(occupied());
        }
        let (config, _) = Config::read(&path)?;
        let of = config.parameters.get(OWNER).and_then(|value| Part::deserialize(value).ok()).ok_or_else(occupied)?;
        if of.part != name || key.is_some_and(|key| key != of.key) {
            return Err(CheckpointError::WrongPart { path, part: of.part, key: of.key });
        }
        let files: BTreeSet<&str> = config.arrays.values().map(|ArrayEntry { file, .. }| file.as_str()).collect();
        for entry in std::fs::read_dir(&path).map_err(io_error(&path))? {
            let entry = entry.map_err(io_error(&path))?.file_name().to_string_lossy().into_owned();
            if entry != CONFIG_FILE && !files.contains(entry.as_str()) {
                return Err(CheckpointError::Occupied { path, entry });
            }
        }
        Ok(())
    }

    /// Names of the parts that are there, sorted.
    pub(super) fn parts(&self) -> Result<Vec<String>, CheckpointError> {
        let parts = self.entries()?.into_iter();
        Ok(parts.filter_map(|(_, entry)| if let Entry::Part(name) = entry { Some(name) } else { None }).collect())
    }

    /// Removes a part, if it is there. Renamed first: a part that is half removed must not be taken
    /// for one.
    pub(super) fn remove_part(&self, name: &str) -> Result<(), CheckpointError> {
        let (path, aside) = (self.path.join(name), partial_path(&self.path.join(name), "removed"));
        gone(remove_container(&aside)).map_err(io_error(&aside))?;
        match std::fs::rename(&path, &aside) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            outcome => outcome.map_err(io_error(&path))?,
        }
        remove_container(&aside).map_err(io_error(&path))
    }

    /// Removes the marker and the lock, and the folder if it was made for the checkpoint and nothing else is in it.
    pub(super) fn remove(&self) -> Result<(), CheckpointError> {
        for name in [CONFIG_FILE, LOCK_FILE] {
            let path = self.path.join(name);
            gone(std::fs::remove_file(&path)).map_err(io_error(&path))?;
        }
        // Who made it may have written so into the lock before that lost its name: see [`remove_made`].
        if self.made || is_noted(&self.lock).map_err(io_error(&self.path))? {
            remove_made(&self.path);
        }
        Ok(())
    }

    fn entries(&self) -> Result<Vec<(String, Entry)>, CheckpointError> {
        list(&self.path, self.layout)
    }
}

/// Every entry by name, sorted.
fn list(path: &Path, layout: CheckpointLayout) -> Result<Vec<(String, Entry)>, CheckpointError> {
    let mut out = Vec::new();
    for entry in std::fs::read_dir(path).map_err(io_error(path))? {
        let entry = entry.map_err(io_error(path))?;
        let is_folder = entry.file_type().map_err(io_error(path))?.is_dir();
        let name = entry.file_name().to_string_lossy().into_owned();
        let kind = match (is_folder, name.as_str()) {
            (false, LOCK_FILE | CONFIG_FILE) => Entry::Own,
            (false, name) if name_of_partial(name) == Some(CONFIG_FILE) => Entry::Leftover,
            (true, name) if layout.has_part(name) => Entry::Part(name.to_owned()),
            (true, name) if layout.is_leftover(name) && holds_only_a_container(&entry.path()) => Entry::Leftover,
            _ => Entry::Foreign,
        };
        out.push((name, kind));
    }
    out.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(out)
}

/// The marker of a folder, if it has a configuration.
fn read_marker(path: &Path) -> Result<Option<Marker>, CheckpointError> {
    let exists = || path.join(CONFIG_FILE).try_exists().map_err(io_error(path));
    if !exists()? {
        return Ok(None);
    }
    let occupied = || CheckpointError::Occupied { path: path.to_owned(), entry: CONFIG_FILE.to_owned() };
    match Config::read(path) {
        Ok((config, hash)) => {
            let marker = config.parameters.get(OWNER).and_then(|value| Marker::deserialize(value).ok());
            let marker = marker.filter(|_| config.kind == super::KIND).ok_or_else(occupied)?;
            match hash.got == hash.written {
                true => Ok(Some(marker)),
                false => Err(damaged(path, "its config.json is not what was written")),
            }
        }
        // Another process has just finished.
        Err(_) if !exists()? => Ok(None),
        Err(OpenError::NotAModel { .. } | OpenError::Config { .. }) => Err(occupied()),
        Err(error) => Err(error.into()),
    }
}

/// The first entry by which a folder is seen not to be ours, without looking into parts. A folder
/// that begins to be used holds the lock alone.
fn foreign_name(path: &Path, layout: CheckpointLayout) -> Result<Option<String>, CheckpointError> {
    let entries = list(path, layout)?;
    if let Some((name, _)) = entries.iter().find(|(_, entry)| matches!(entry, Entry::Foreign)) {
        return Ok(Some(name.clone()));
    }
    let is_marked = entries.iter().any(|(name, _)| name == CONFIG_FILE);
    let is_early = |name: &str| name == LOCK_FILE || name_of_partial(name) == Some(CONFIG_FILE);
    let other = entries.into_iter().find(|(name, _)| !is_early(name));
    Ok(other.map(|(name, _)| name).filter(|_| !is_marked))
}

/// True for a folder with no other names than those of a container.
fn holds_only_a_container(path: &Path) -> bool {
    let is_ours = |name: &str| name == CONFIG_FILE || super::super::replace::is_model_file(name);
    match std::fs::read_dir(path) {
        Ok(mut entries) => entries.all(|entry| entry.is_ok_and(|e| is_ours(&e.file_name().to_string_lossy()))),
        // The process at work in it was done with that save.
        Err(error) => error.kind() == ErrorKind::NotFound,
    }
}

/// Removes the files of a container by name and then its folder, which stays where anything else is
/// in it.
fn remove_container(path: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(path)? {
        let entry = entry?;
        let name = entry.file_name();
        if name == CONFIG_FILE || super::super::replace::is_model_file(&name.to_string_lossy()) {
            std::fs::remove_file(entry.path())?;
        }
    }
    std::fs::remove_dir(path)
}

/// Removes a folder that was made for a checkpoint, unless something of others is in it. Another process that took it
/// before it was gone took it for one that was there: it is told that the folder goes with its checkpoint.
fn remove_made(folder: &Path) {
    let path = folder.join(LOCK_FILE);
    for _ in 0..TRIES {
        if std::fs::remove_dir(folder).is_ok() {
            return;
        }
        // A lock that lost its name meanwhile was read too early, or not: then the folder is empty again.
        if let Ok(mut lock) = File::options().write(true).open(&path)
            && lock.write_all(MADE).is_ok()
            && is_same(&lock, &path)
        {
            return;
        }
    }
}

/// Whether the file of the lock says that the folder was made for a checkpoint.
fn is_noted(mut lock: &File) -> io::Result<bool> {
    let mut noted = Vec::new();
    lock.seek(SeekFrom::Start(0))?;
    lock.take(MADE.len() as u64 + 1).read_to_end(&mut noted)?;
    Ok(noted == MADE)
}

/// Keeps in the file of the lock that the folder was made for a checkpoint; gives whether it was.
fn note_made(mut lock: &File, made: bool) -> io::Result<bool> {
    let noted = is_noted(lock)?;
    if made && !noted {
        lock.seek(SeekFrom::Start(0))?;
        lock.write_all(MADE)?;
    }
    Ok(made || noted)
}

/// Locks the folder for this process. `None`: the folder was removed meanwhile.
fn lock(folder: &Path) -> Result<Option<File>, CheckpointError> {
    let path = folder.join(LOCK_FILE);
    let file = match File::options().create(true).truncate(false).read(true).write(true).open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(io_error(&path)(error)),
    };
    // A process that is being started holds what its parent holds until its program is loaded.
    let deadline = Instant::now() + Duration::from_millis(200);
    loop {
        match file.try_lock() {
            Ok(()) => break,
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => sleep(Duration::from_millis(10)),
            Err(TryLockError::WouldBlock) => return Err(CheckpointError::InUse { path: folder.to_owned() }),
            Err(TryLockError::Error(error)) => return Err(io_error(&path)(error)),
        }
    }
    // Whoever held it may have removed the file before he let go: a lock on a file without a name
    // protects nothing.
    Ok(is_same(&file, &path).then_some(file))
}

#[cfg(unix)]
fn is_same(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let named = std::fs::metadata(path);
    file.metadata().is_ok_and(|own| named.is_ok_and(|named| (own.dev(), own.ino()) == (named.dev(), named.ino())))
}

#[cfg(not(unix))]
fn is_same(_: &File, path: &Path) -> bool {
    // A file that is open cannot be removed there.
    path.exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYOUT: CheckpointLayout = CheckpointLayout { system: "test", parts: &["state"] };

    #[test]
    fn a_folder_that_several_make_at_once_is_gone_when_all_are_done() {
        let place = tempfile::tempdir().unwrap();
        for round in 0..60 {
            let path = place.path().join("c");
            let use_it = || {
                if let Ok(folder) = Folder::claim(&path, LAYOUT) {
                    // Some are at work for longer than others wait.
                    sleep(Duration::from_millis(if round % 6 == 0 { 250 } else { 0 }));
                    folder.remove().unwrap();
                }
            };
            std::thread::scope(|scope| (0..3).for_each(|_| drop(scope.spawn(use_it))));
            assert!(!path.exists(), "round {round}");
        }
    }

    /// A process that removes its folder has removed its lock when another one takes the folder.
    #[test]
    fn a_folder_that_is_taken_while_it_is_removed_goes_with_the_other_checkpoint() {
        let place = tempfile::tempdir().unwrap();
        for is_early in [true, false] {
            let path = place.path().join("c");
            let first = Folder::claim(&path, LAYOUT).unwrap();
            assert!(first.made);
            std::fs::remove_file(path.join(LOCK_FILE)).unwrap();
            let second = Folder::claim(&path, LAYOUT).unwrap();
            assert!(!second.made);
            if is_early {
                remove_made(&path);
                assert!(path.exists());
                second.remove().unwrap();
            } else {
                second.remove().unwrap();
                assert!(path.exists());
                remove_made(&path);
            }
            assert!(!path.exists());
        }
        // One that was there before stays, and so does what others put into it.
        let (own, filled) = (place.path().join("own"), place.path().join("filled"));
        std::fs::create_dir(&own).unwrap();
        Folder::claim(&own, LAYOUT).unwrap().remove().unwrap();
        assert!(own.is_dir());
        let folder = Folder::claim(&filled, LAYOUT).unwrap();
        std::fs::write(filled.join("mine"), "x").unwrap();
        folder.remove().unwrap();
        assert_eq!(std::fs::read_dir(&filled).unwrap().count(), 1);
    }
}
