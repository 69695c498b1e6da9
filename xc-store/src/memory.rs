//! The files of a model that stands in memory alone.

use super::container::Container;
use super::error::WriteError;
use super::writer::ContainerWriter;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use xc_buffer::{FileBytes, Pages};

impl Container {
    /// A model that was never in a folder, of what `fill` adds to it: it has the bytes that a folder would have, and is
    /// opened as one. [`ContainerWriter::copy_of`] puts it into a folder.
    ///
    /// ```
    /// use xc_store::Container;
    ///
    /// let model = Container::in_memory("tree", |writer| writer.add_slice("weights", &[1.5f32, 2.0]))?;
    /// assert_eq!(&*model.array::<f32>("weights")?, &[1.5, 2.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// *Cost*: a copy of each array, in room for up to twice as many bytes.
    ///
    /// # Errors
    /// What `fill` says; an array that is not finished; too little memory.
    pub fn in_memory<E: From<WriteError>>(
        kind: &str,
        fill: impl FnOnce(&mut ContainerWriter) -> Result<(), E>,
    ) -> Result<Self, E> {
        let mut writer = ContainerWriter::to_memory(kind);
        fill(&mut writer)?;
        let files = writer.finish_in_memory()?;
        Self::of_memory(files).map_err(|e| WriteError::from(e).into())
    }
}

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
    room: Pages<u8>,
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
            let mut room = Pages::default();
            let wanted = end.max(self.room.len().saturating_mul(2));
            room.try_resize(wanted).or_else(|_| room.try_resize(end))?;
            room[..self.len].copy_from_slice(&self.room[..self.len]);
            self.room = room;
        }
        self.len = self.len.max(end);
        Ok(&mut self.room[at..end])
    }

    fn into_pages(mut self) -> Pages<u8> {
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

/// A panic while a lock was held leaves bytes that nobody reads: the writer fails then.
fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ArrayRef, OpenError, OpenMode};
    use xc_buffer::dtype::DType;

    /// Arrays whole, side by side, and of a length that is not known; a part; names; parameters.
    fn fill(writer: &mut ContainerWriter) -> Result<(), WriteError> {
        let values: Vec<f32> = (0..1000).map(|i| i as f32).collect();
        writer.set_parameter("n", 3);
        writer.labels(&["a", "b"].map(str::to_owned))?;
        writer.add_slice("before", &[7u8])?;
        let mut a = writer.stream_shaped("a", DType::F32, &[500, 2])?;
        let b = writer.stream_shaped("b", DType::U64, &[0])?;
        let mut own = writer.stream("own", DType::F32)?;
        writer.add("after", ArrayRef::new(&values, &[10, 100]))?;
        a.extend(&values[..1])?;
        own.extend(&values)?;
        a.extend(&values[1..])?;
        a.finish_shaped(&[500, 2])?;
        own.finish()?;
        b.finish()?;
        writer.begin_file("part")?;
        writer.add_slice("part.x", &[1.5f32])
    }

    #[test]
    fn a_model_in_memory_has_the_bytes_of_a_folder() {
        let place = tempfile::tempdir().unwrap();
        let [folder, copy] = ["folder", "copy"].map(|name| place.path().join(name));
        let mut writer = ContainerWriter::create(&folder, "tree").unwrap();
        fill(&mut writer).unwrap();
        writer.finish().unwrap();
        let (memory, folder) =
            (Container::in_memory("tree", fill).unwrap(), Container::open(&folder, OpenMode::Map).unwrap());
        assert_eq!((memory.config_hash(), memory.n_bytes()), (folder.config_hash(), folder.n_bytes()));
        assert_eq!(memory.labels().unwrap(), folder.labels().unwrap());
        assert_eq!(memory.array::<f32>("a").unwrap(), folder.array::<f32>("a").unwrap());
        assert!(memory.verify().unwrap().is_empty() && !memory.replacement()());
        assert!(memory.inside("index", OpenMode::Map).unwrap().is_none());
        ContainerWriter::copy_of(&memory, &copy).unwrap().finish().unwrap();
        let copy = Container::open(&copy, OpenMode::Read).unwrap();
        assert_eq!(copy.config_hash(), folder.config_hash());
        assert!(copy.verify().unwrap().is_empty());
        for name in
            ["config.json", "labels.txt", "model.safetensors", "model-own.safetensors", "model-part.safetensors"]
        {
            let [of_folder, of_copy] = [&folder, &copy].map(|of| std::fs::read(of.folder().join(name)).unwrap());
            assert!(of_folder == of_copy, "{name}");
        }
    }

    #[test]
    fn a_member_from_memory_is_a_member() {
        let place = tempfile::tempdir().unwrap();
        let memory = Container::in_memory("tree", fill).unwrap();
        let mut writer = ContainerWriter::create(place.path().join("blend"), "blend").unwrap();
        writer.add_member(0, &memory).unwrap();
        writer.finish().unwrap();
        let blend = Container::open(place.path().join("blend"), OpenMode::Map).unwrap();
        let member = blend.inside(&crate::member_folder(0), OpenMode::Map).unwrap().unwrap();
        assert_eq!(member.config_hash(), memory.config_hash());
    }

    #[test]
    fn what_is_not_finished_and_what_has_no_folder_is_refused() {
        let unfinished = Container::in_memory("tree", |writer| writer.stream("a", DType::F32).map(drop));
        assert!(matches!(unfinished, Err(WriteError::UnfinishedStream { .. })), "{unfinished:?}");
        let memory = Container::in_memory("tree", fill).unwrap();
        let inside = Container::in_memory("blend", |writer| writer.add_member(0, &memory));
        assert!(matches!(inside, Err(WriteError::InMemory)), "{inside:?}");
        assert!(matches!(memory.array::<f32>("none"), Err(OpenError::MissingArray { .. })));
    }
}
