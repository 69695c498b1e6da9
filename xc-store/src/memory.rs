//! Files in memory, which are written as those of a folder are.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use xc_buffer::{FileBytes, HugePageVec};

/// Files that are written, by their names.
#[derive(Debug, Default)]
pub(super) struct MemoryFolder(Mutex<BTreeMap<String, MemoryFile>>);

/// Files that nobody writes any more.
pub(super) type MemoryFiles = BTreeMap<String, Arc<FileBytes>>;

impl MemoryFolder {
    /// A new file, or one with other content.
    pub(super) fn create(&self, name: &str) -> MemoryFile {
        let file = MemoryFile::default();
        lock(&self.0).insert(name.to_owned(), file.clone());
        file
    }

    /// The same file, from its beginning.
    pub(super) fn open(&self, name: &str) -> io::Result<MemoryFile> {
        let file = lock(&self.0).get(name).map(|file| MemoryFile { at: 0, ..file.clone() });
        file.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    pub(super) fn remove(&self, name: &str) {
        lock(&self.0).remove(name);
    }

    /// The files, of which nobody has another handle.
    pub(super) fn into_files(self) -> MemoryFiles {
        let files = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        let taken = |file: MemoryFile| std::mem::take(&mut *lock(&file.content));
        files.into_iter().map(|(name, file)| (name, Arc::new(FileBytes::from(taken(file).into_pages())))).collect()
    }
}

/// A file in memory, and a position in it. Clones have positions of their own.
#[derive(Clone, Debug, Default)]
pub(super) struct MemoryFile {
    content: Arc<Mutex<Content>>,
    at: usize,
}

/// Bytes, and room for more.
#[derive(Default)]
struct Content {
    room: HugePageVec<u8>,
    len: usize,
}

impl std::fmt::Debug for Content {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Content").field("len", &self.len).finish_non_exhaustive()
    }
}

impl Content {
    /// The bytes from `at` to `end`, which are zeros where none were.
    fn range(&mut self, at: usize, end: usize) -> io::Result<&mut [u8]> {
        if end > self.room.len() {
            let mut room = HugePageVec::default();
            let wanted = end.max(self.room.len().saturating_mul(2));
            room.try_resize(wanted).or_else(|_| room.try_resize(end))?;
            room[..self.len].copy_from_slice(&self.room[..self.len]);
            self.room = room;
        }
        self.len = self.len.max(end);
        Ok(&mut self.room[at..end])
    }

    fn into_pages(mut self) -> HugePageVec<u8> {
        // Never more than there is.
        self.room.resize(self.len);
        self.room
    }
}

impl Write for MemoryFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.is_empty() {
            return Ok(0);
        }
        let end = self.at.checked_add(bytes.len()).ok_or(io::ErrorKind::OutOfMemory)?;
        lock(&self.content).range(self.at, end)?.copy_from_slice(bytes);
        self.at = end;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for MemoryFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => (self.at as u64).checked_add_signed(by),
            SeekFrom::End(by) => (lock(&self.content).len as u64).checked_add_signed(by),
        };
        let at = at.ok_or(io::ErrorKind::InvalidInput)?;
        self.at = usize::try_from(at).map_err(|_| io::ErrorKind::OutOfMemory)?;
        Ok(at)
    }
}

/// A file that is written.
#[derive(Debug)]
pub(super) enum OutFile {
    /// In a folder.
    Disk(File),
    /// In memory.
    Memory(MemoryFile),
}

impl OutFile {
    /// Has it written to the disk, if it is on one.
    pub(super) fn sync_all(&mut self) -> io::Result<()> {
        match self {
            Self::Disk(file) => file.sync_all(),
            Self::Memory(_) => Ok(()),
        }
    }
}

impl Write for OutFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Disk(file) => file.write(bytes),
            Self::Memory(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Disk(file) => file.flush(),
            Self::Memory(file) => file.flush(),
        }
    }
}

impl Seek for OutFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        match self {
            Self::Disk(file) => file.seek(to),
            Self::Memory(file) => file.seek(to),
        }
    }
}

/// A panic while a lock was held leaves nothing half changed: a map has an entry or not, and bytes of a writer that failed
/// are read by nobody.
pub(super) fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
