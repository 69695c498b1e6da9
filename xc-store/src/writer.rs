//! Saving a model folder.

use super::config::{ArrayEntry, CONFIG_FILE, Config, LABELS_FILE, LabelsEntry, hex};
use super::header::{HeaderText, MAX_NAME_BYTES, PAD_PREFIX, SHARED_RESERVE, STREAM_RESERVE, gap};
use super::memory::{MemoryFiles, MemoryFolder, OutFile, lock};
use super::replace;
use super::stream::{ArrayStream, Registry, StreamFile, check_shape, complete};
use super::{Container, WriteError};
use crate::atomic::{OutputFolder, WriteFileError, Writing, failed};
use serde_json::Value;
use std::{
    fs::File,
    io::{self, Seek as _, SeekFrom, Write},
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};
use xc_buffer::dtype::{DType, Element};
use xc_buffer::{FileBytes, is_control};
use xxhash_rust::xxh3::xxh3_64;

/// An array in memory to be saved.
#[derive(Clone, Copy, Debug)]
pub struct ArrayRef<'a> {
    /// Element type.
    pub dtype: DType,
    /// Extent of each dimension, row-major.
    pub shape: &'a [usize],
    /// The elements, little-endian.
    pub bytes: &'a [u8],
}

impl<'a> ArrayRef<'a> {
    /// Elements of a Rust type, in the given shape.
    pub fn new<T: Element>(values: &'a [T], shape: &'a [usize]) -> Self {
        Self { dtype: T::DTYPE, shape, bytes: bytemuck::cast_slice(values) }
    }
}

/// Builds a model folder next to its destination and moves it there when it is complete.
///
/// The bytes written depend only on what is added and on the order of the calls to
/// [`ContainerWriter::add`]: not on time, threads or paths. If the writer is dropped before
/// [`ContainerWriter::finish`], what was built is removed. A program that is killed leaves a folder
/// `.NAME.*.partial` next to the destination, never half a model in it, and the next writer removes that
/// folder. A model that replaces another gets its permissions.
///
/// # Cost
/// One pass over each array: hash (xxh3) and write; memory for the headers only.
#[derive(Debug)]
pub struct ContainerWriter {
    pub(super) config: Config,
    registry: Arc<Mutex<Registry>>,
    /// Closed before the folder is removed, which takes a file descriptor.
    shared: Option<SharedFile>,
    room: Room,
    /// What the name of the shared file begins with.
    stem: String,
    n_shared: usize,
}

/// Where a model is built.
#[derive(Debug)]
enum Room {
    /// In a folder that will be at the destination.
    Folder { destination: PathBuf, building: OutputFolder },
    /// In memory.
    Memory(MemoryFolder),
}

/// The file that arrays handed over whole are appended to.
#[derive(Debug)]
struct SharedFile {
    name: String,
    path: PathBuf,
    file: OutFile,
    header: HeaderText,
    /// Bytes of the data part so far.
    n_bytes: u64,
}

impl SharedFile {
    /// Notes an array after the last one, with padding before it, and has `write` write it or leave
    /// room for it; where it begins in the data part.
    fn append(
        &mut self,
        name: &str,
        dtype: DType,
        shape: &[usize],
        n_bytes: u64,
        write: impl FnOnce(&mut OutFile) -> io::Result<()>,
    ) -> Result<u64, WriteFileError> {
        let padding = gap(self.n_bytes);
        let padded = self.file.write_all(&[0; super::ALIGNMENT][..padding as usize]);
        padded.and_then(|()| write(&mut self.file)).map_err(failed(&self.path, "write an array"))?;
        if padding > 0 {
            self.header.push_pad(self.n_bytes, padding);
        }
        let begin = self.n_bytes + padding;
        self.header.push(name, dtype, shape, begin, n_bytes);
        self.n_bytes = begin + n_bytes;
        Ok(begin)
    }
}

impl ContainerWriter {
    /// Prepares a folder next to `destination`, on the same file system.
    ///
    /// # Errors
    /// As [`ContainerWriter::check`]; no permission to write there.
    pub fn create(destination: impl AsRef<Path>, kind: &str) -> Result<Self, WriteError> {
        let destination = destination.as_ref();
        let destination = replace::resolve(destination)?;
        let standing = replace::inspect(&destination)?;
        let building = OutputFolder::create(&destination)?;
        if standing == replace::Standing::Model {
            // What others may not read they may not read while it is written either.
            let path = building.path();
            replace::keep_folder_permissions(&destination, path, true).map_err(failed(path, "set its permissions"))?;
        }
        Ok(Self::in_room(Room::Folder { destination, building }, kind))
    }

    /// Prepares a model in memory.
    pub(super) fn to_memory(kind: &str) -> Self {
        Self::in_room(Room::Memory(MemoryFolder::default()), kind)
    }

    fn in_room(room: Room, kind: &str) -> Self {
        let (config, stem) = (Config::new(kind), "model".to_owned());
        Self { room, config, registry: Arc::default(), shared: None, stem, n_shared: 0 }
    }

    /// Checks whether a model may be saved at `destination`, before any long work.
    ///
    /// # Errors
    /// [`WriteError::Occupied`] if the destination is a file, or a folder with content other than
    /// an xc model, or a model in which another process writes an index; [`WriteError::Io`] if no folder
    /// can be made beside it.
    pub fn check(destination: impl AsRef<Path>) -> Result<(), WriteError> {
        let destination = destination.as_ref();
        let destination = replace::resolve(destination)?;
        if replace::inspect(&destination)? == replace::Standing::Model {
            replace::refuse_under_way(&destination)?;
        }
        // Nothing but a try tells whether the system lets us.
        Ok(OutputFolder::create(&destination).map(drop)?)
    }

    /// Stores a value under `parameters` in `config.json`; the last value of a key is kept.
    pub fn set_parameter(&mut self, key: &str, value: impl Into<Value>) {
        self.config.parameters.insert(key.to_owned(), value.into());
    }

    /// Removes a value from `parameters`.
    pub fn remove_parameter(&mut self, key: &str) {
        self.config.parameters.remove(key);
    }

    /// Stores the feature pipeline, which this crate does not interpret.
    pub fn set_pipeline(&mut self, pipeline: Value) {
        self.config.pipeline = Some(pipeline);
    }

    /// Stores the labels' names, in label order, in place of any existing ones.
    ///
    /// # Errors
    /// A name with a line break or another control character; a write fails.
    pub fn labels(&mut self, names: &[String]) -> Result<(), WriteError> {
        let mut text = Vec::with_capacity(names.iter().map(|name| name.len() + 1).sum());
        for (label, name) in names.iter().enumerate() {
            if name.contains(is_control) {
                return Err(WriteError::LabelName { label, name: name.clone() });
            }
            text.extend_from_slice(name.as_bytes());
            text.push(b'\n');
        }
        self.remove_built(LABELS_FILE)?;
        self.put(LABELS_FILE, &text)?;
        self.config.labels = Some(LabelsEntry { count: names.len(), xxh3: hex(xxh3_64(&text)) });
        Ok(())
    }

    /// Writes an array at once.
    ///
    /// # Errors
    /// A name that is already used, is longer than 128 bytes, begins with `_` or contains anything but
    /// ASCII letters, digits, `.`, `-` and `_`; more than 8 dimensions; bytes that do not fit the shape;
    /// a write fails.
    pub fn add(&mut self, name: &str, array: ArrayRef<'_>) -> Result<(), WriteError> {
        let _all_is_here = Writing::begin();
        let n_bytes = array.bytes.len() as u64;
        check_shape(name, array.dtype, array.shape, n_bytes)?;
        self.reserve_name(name)?;
        let shared = self.shared_file(name, array.shape.len())?;
        shared.append(name, array.dtype, array.shape, n_bytes, |file| file.write_all(array.bytes))?;
        let file = shared.name.clone();
        let xxh3 = hex(xxh3_64(array.bytes));
        let entry = ArrayEntry { file, dtype: array.dtype, shape: array.shape.to_vec(), xxh3 };
        lock(&self.registry).insert(name.to_owned(), Some(entry));
        Ok(())
    }

    /// Adds a model as member `number`: its files are linked if the file system supports it, otherwise
    /// copied. The folder of `model` must be the one that was opened.
    ///
    /// # Errors
    /// The model was replaced since it was opened; a file system error.
    pub fn add_member(&mut self, number: usize, model: &Container) -> Result<(), WriteError> {
        let (building, folder) = (self.building()?, replace::member_folder(number));
        if let Some(files) = model.memory() {
            let put = |(name, bytes): (&String, &Arc<FileBytes>)| {
                building.file(Path::new(&folder).join(name), |file| file.write_all(bytes.as_bytes()))
            };
            return Ok(files.iter().try_for_each(put)?);
        }
        let path = building.path().join(folder);
        let linked = replace::link_model(model.folder(), &path);
        let is_same = |folder: &Path| Config::read(folder).is_ok_and(|(_, hash)| hash.got == model.config_hash());
        match linked {
            Ok(()) if is_same(&path) => Ok(()),
            Err(error) if is_same(model.folder()) => Err(failed(&path, "link a model into it")(error).into()),
            _ => Err(WriteError::Replaced { path: model.folder().to_owned() }),
        }
    }

    /// Writes the arrays that are added from now on to a separate file, `model-NAME.safetensors`: a part
    /// of the model that may be lost without the others
    /// ([`Container::open_parts`](super::Container::open_parts)).
    ///
    /// # Errors
    /// A name that [`ContainerWriter::add`] would reject; a write fails.
    pub fn begin_file(&mut self, name: &str) -> Result<(), WriteError> {
        check_name(name)?;
        self.close_shared()?;
        (self.stem, self.n_shared) = (format!("model-{name}"), 0);
        Ok(())
    }

    /// Writes a one-dimensional array at once.
    pub fn add_slice<T: Element>(&mut self, name: &str, values: &[T]) -> Result<(), WriteError> {
        self.add(name, ArrayRef::new(values, &[values.len()]))
    }

    /// Begins an array of a known shape in the file that [`ContainerWriter::add`] writes to. Its
    /// position, and so every byte of the model, is as if it had been added whole at this moment, even
    /// if other arrays are written before it is finished.
    ///
    /// # Errors
    /// As [`ContainerWriter::add`] for the name and the shape; a write fails.
    pub fn stream_shaped(&mut self, name: &str, dtype: DType, shape: &[usize]) -> Result<ArrayStream, WriteError> {
        let n_bytes = shape.iter().try_fold(dtype.n_bytes() as u64, |n, &extent| n.checked_mul(extent as u64));
        check_shape(name, dtype, shape, n_bytes.unwrap_or(u64::MAX))?;
        let n_bytes = n_bytes.unwrap_or_default();
        self.reserve_name(name)?;
        let shared = self.shared_file(name, shape.len())?;
        let begin = shared.append(name, dtype, shape, n_bytes, |file| file.seek_relative(n_bytes as i64))?;
        let (name_of_file, path) = (shared.name.clone(), shared.path.clone());
        // A place of its own in the file: others are written at the same time.
        let opened = match &self.room {
            Room::Folder { .. } => File::options().write(true).open(&path).map(OutFile::Disk),
            Room::Memory(folder) => folder.open(&name_of_file).map(OutFile::Memory),
        };
        let mut file = opened.map_err(failed(&path, "open it"))?;
        file.seek(SeekFrom::Start(SHARED_RESERVE as u64 + begin)).map_err(failed(&path, "write an array"))?;
        let to = StreamFile { name: name_of_file, path, file, shape: Some(shape.to_vec()) };
        Ok(ArrayStream::new(name, dtype, to, 1 << 18, &self.registry))
    }

    /// Begins an array whose length is not known yet, in a separate file.
    ///
    /// Several streams may be open at once, and each may be moved to another thread; all must be
    /// finished before the writer is.
    ///
    /// # Errors
    /// As [`ContainerWriter::add`] for the name; a write fails.
    pub fn stream(&mut self, name: &str, dtype: DType) -> Result<ArrayStream, WriteError> {
        self.reserve_name(name)?;
        let file_name = format!("model-{name}.safetensors");
        let (path, file) = self.new_file(&file_name, STREAM_RESERVE)?;
        let to = StreamFile { name: file_name, path, file, shape: None };
        Ok(ArrayStream::new(name, dtype, to, 1 << 20, &self.registry))
    }

    /// Completes the files, syncs them to disk, and moves the folder to its destination.
    ///
    /// The destination is unchanged until the last step. An existing model is exchanged with the new one
    /// in a single step if the system supports it (Linux), then removed.
    ///
    /// # Errors
    /// A stream that is not finished; the destination was filled meanwhile; a file system error.
    pub fn finish(mut self) -> Result<(), WriteError> {
        let _all_is_here = Writing::begin();
        self.complete_files()?;
        let Room::Folder { destination, mut building } = self.room else { return Err(WriteError::InMemory) };
        // Another process may put a model there between a look and the rename.
        if replace::inspect(&destination)? == replace::Standing::Nothing {
            match building.try_commit() {
                Err(error) if error.is_occupied() => {}
                outcome => return Ok(outcome?),
            }
        }
        match replace::inspect(&destination)? {
            replace::Standing::Model => {
                let of_one_kind = Config::read(&destination).is_ok_and(|(old, _)| old.kind == self.config.kind);
                if of_one_kind && !building.path().join(replace::PART_FOLDER).exists() {
                    replace::keep_part(&destination, building.path());
                }
                let path = building.path();
                replace::keep_permissions(&destination, path).map_err(failed(path, "set its permissions"))?;
                // A file that was put there since then is not removed.
                let destination = &destination;
                building.commit_over(|old| {
                    replace::inspect(old).map(drop).map_err(|error| match error {
                        WriteError::Occupied { why, .. } => WriteError::Occupied { path: destination.clone(), why },
                        error => error,
                    })
                })?;
            }
            replace::Standing::Nothing => building.commit()?,
        }
        Ok(())
    }

    /// Completes the files of a model in memory.
    pub(super) fn finish_in_memory(mut self) -> Result<MemoryFiles, WriteError> {
        self.complete_files()?;
        match self.room {
            Room::Memory(folder) => Ok(folder.into_files()),
            Room::Folder { destination, .. } => unreachable!("{}: no model in memory", destination.display()),
        }
    }

    fn complete_files(&mut self) -> Result<(), WriteError> {
        self.close_shared()?;
        for (name, entry) in lock(&self.registry).iter() {
            let Some(entry) = entry else { return Err(WriteError::UnfinishedStream { name: name.clone() }) };
            self.config.arrays.insert(name.clone(), entry.clone());
        }
        let config = self.config.to_bytes().map_err(|e| {
            let folder = self.building().map_or(Path::new(""), |building| building.path());
            failed(&folder.join(CONFIG_FILE), "write")(e.into())
        })?;
        self.put(CONFIG_FILE, &config)
    }

    /// Writes a whole file.
    pub(super) fn put(&self, name: &str, bytes: &[u8]) -> Result<(), WriteError> {
        match &self.room {
            Room::Folder { building, .. } => Ok(building.file(name, |file| file.write_all(bytes))?),
            Room::Memory(folder) => {
                Ok(folder.create(name).write_all(bytes).map_err(failed(Path::new(name), "keep it in memory"))?)
            }
        }
    }

    /// Removes a file that was written, if it is there.
    pub(super) fn remove_built(&self, file: &str) -> Result<(), WriteError> {
        debug_assert_ne!(file, CONFIG_FILE, "is written last");
        let building = match &self.room {
            Room::Folder { building, .. } => building,
            Room::Memory(folder) => {
                folder.remove(file);
                return Ok(());
            }
        };
        let path = building.path().join(file);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(&path, "remove it")(error).into()),
            _ => Ok(()),
        }
    }

    /// The folder under construction.
    ///
    /// # Errors
    /// The model is built in memory.
    pub(super) fn building(&self) -> Result<&OutputFolder, WriteError> {
        match &self.room {
            Room::Folder { building, .. } => Ok(building),
            Room::Memory(_) => Err(WriteError::InMemory),
        }
    }

    /// The arrays so far.
    pub(super) fn registry(&self) -> &Mutex<Registry> {
        &self.registry
    }

    fn reserve_name(&self, name: &str) -> Result<(), WriteError> {
        check_name(name)?;
        let mut registry = lock(&self.registry);
        if registry.contains_key(name) {
            return Err(WriteError::Name { name: name.to_owned(), why: "it is taken" });
        }
        registry.insert(name.to_owned(), None);
        Ok(())
    }

    /// The open shared file, or a new one when the next header entry might not fit.
    fn shared_file(&mut self, name: &str, rank: usize) -> Result<&mut SharedFile, WriteError> {
        if self.shared.as_ref().is_some_and(|shared| !shared.header.has_room(name, rank, SHARED_RESERVE)) {
            self.close_shared()?;
        }
        if self.shared.is_none() {
            self.n_shared += 1;
            let name = match self.n_shared {
                1 => format!("{}.safetensors", self.stem),
                n => format!("{}.{n}.safetensors", self.stem),
            };
            let (path, file) = self.new_file(&name, SHARED_RESERVE)?;
            self.shared = Some(SharedFile { name, path, file, header: HeaderText::default(), n_bytes: 0 });
        }
        // Just filled when it was empty.
        Ok(self.shared.as_mut().expect("a shared file is open"))
    }

    fn close_shared(&mut self) -> Result<(), WriteError> {
        match self.shared.take() {
            Some(mut shared) => Ok(complete(&mut shared.file, &shared.path, &shared.header.to_bytes(SHARED_RESERVE))?),
            None => Ok(()),
        }
    }

    /// A new file of the folder under construction, positioned after the room for its header.
    fn new_file(&self, name: &str, reserve: usize) -> Result<(PathBuf, OutFile), WriteFileError> {
        let (path, mut file) = match &self.room {
            Room::Folder { building, .. } => {
                let path = building.path().join(name);
                let file = File::create_new(&path).map_err(failed(&path, "create it"))?;
                (path, OutFile::Disk(file))
            }
            Room::Memory(folder) => (PathBuf::from(name), OutFile::Memory(folder.create(name))),
        };
        file.seek(SeekFrom::Start(reserve as u64)).map_err(failed(&path, "leave room for its header"))?;
        Ok((path, file))
    }
}

fn check_name(name: &str) -> Result<(), WriteError> {
    let fail = |why| Err(WriteError::Name { name: name.to_owned(), why });
    if name.is_empty() || name.len() > MAX_NAME_BYTES {
        return fail("it must have 1 to 128 bytes");
    }
    if !name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b)) || name.starts_with('_') {
        debug_assert!(PAD_PREFIX.starts_with('_'));
        return fail("only ASCII letters, digits, '.', '-' and '_', and no '_' in front");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn contents(folder: &Path) -> BTreeMap<String, Vec<u8>> {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
        entries.map(|e| (e.file_name().into_string().unwrap(), std::fs::read(e.path()).unwrap())).collect()
    }

    #[test]
    fn arrays_of_known_shape_that_are_written_side_by_side_give_the_bytes_of_whole_ones() {
        let place = tempfile::tempdir().unwrap();
        let values: Vec<f32> = (0..1000).map(|i| i as f32).collect();
        let save = |name: &str, fill: fn(&mut ContainerWriter, &[f32])| {
            let mut writer = ContainerWriter::create(&place.path().join(name), "tree").unwrap();
            writer.add_slice("before", &[7u8]).unwrap();
            fill(&mut writer, &values);
            writer.finish().unwrap();
            contents(&place.path().join(name))
        };
        let whole = save("whole", |writer, values| {
            writer.add("a", ArrayRef::new(values, &[500, 2])).unwrap();
            writer.add_slice("b", &values[..11]).unwrap();
            writer.add_slice::<u64>("c", &[]).unwrap();
            writer.add_slice("after", values).unwrap();
        });
        let pieces = save("pieces", |writer, values| {
            let mut a = writer.stream_shaped("a", DType::F32, &[500, 2]).unwrap();
            let mut b = writer.stream_shaped("b", DType::F32, &[11]).unwrap();
            let c = writer.stream_shaped("c", DType::U64, &[0]).unwrap();
            writer.add_slice("after", values).unwrap();
            a.extend(&values[..1]).unwrap();
            b.extend(&values[..11]).unwrap();
            a.extend(&values[1..]).unwrap();
            [b, c].into_iter().for_each(|stream| stream.finish().unwrap());
            a.finish_shaped(&[500, 2]).unwrap();
        });
        assert!(whole == pieces);
    }

    #[test]
    fn an_array_that_does_not_fill_its_room_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let mut writer = ContainerWriter::create(&place.path().join("m"), "tree").unwrap();
        let mut short = writer.stream_shaped("short", DType::U32, &[3]).unwrap();
        short.extend(&[1u32, 2]).unwrap();
        assert!(matches!(short.finish(), Err(WriteError::Shape { bytes: 8, .. })));
        let mut other = writer.stream_shaped("other", DType::U32, &[2, 2]).unwrap();
        other.extend(&[1u32, 2, 3, 4]).unwrap();
        assert!(matches!(other.finish_shaped(&[4]), Err(WriteError::Shape { .. })));
        let huge = writer.stream_shaped("huge", DType::U32, &[usize::MAX, 2]);
        assert!(matches!(huge, Err(WriteError::Shape { .. })));
        assert!(matches!(writer.finish(), Err(WriteError::UnfinishedStream { .. })));
        assert!(!place.path().join("m").exists());
    }

    #[test]
    #[should_panic(expected = "16 bytes in room for 12")]
    fn an_array_does_not_run_into_the_next() {
        let place = tempfile::tempdir().unwrap();
        let mut writer = ContainerWriter::create(&place.path().join("m"), "tree").unwrap();
        let _ = writer.stream_shaped("a", DType::U32, &[3]).unwrap().extend(&[0u32; 4]);
    }
}
