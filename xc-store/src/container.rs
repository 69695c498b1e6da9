//! Opening a model folder.

use super::OpenError;
use super::config::{ArrayEntry, Config, ConfigHash, LABELS_FILE, LABELS_LIMIT, open_folder};
use super::header::{HEADER_LIMIT, Header, PAD_PREFIX};
use super::memory::MemoryFiles;
use super::opened::{OpenFolder, read_all};
use super::replace::is_model_file;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::{
    collections::BTreeMap,
    fs::File,
    ops::Range,
    path::{Path, PathBuf},
    sync::Arc,
};
use xc_buffer::dtype::{DType, Element};
use xc_buffer::{Advice, Buffer, FileBytes, FloatBuffer, is_control};

/// How the bytes of a model are loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum OpenMode {
    /// Map the files; pages are loaded on first access. The files must not change meanwhile.
    #[default]
    Map,
    /// Map the files and read all of them in advance.
    MapPopulate,
    /// Read the files into memory, in large pages if the system has them: for files that other programs
    /// may change, and for models that answer many queries.
    Read,
}

/// Where an array lies.
#[derive(Debug)]
pub(super) struct Place {
    /// Position in `Container::files`.
    pub(super) file: usize,
    /// Its bytes in that file.
    pub(super) range: Range<usize>,
}

pub(super) struct OpenFile {
    pub(super) path: PathBuf,
    pub(super) bytes: Arc<FileBytes>,
    /// Byte ranges that belong to padding.
    pub(super) pads: Vec<Range<usize>>,
}

/// An open model folder.
///
/// # Cost
/// Opening reads `config.json` and the headers, not the arrays: well below a millisecond for any size
/// (with [`OpenMode::Map`]). [`Container::verify`] checks the content; each model kind checks that its
/// arrays are consistent.
pub struct Container {
    folder: Arc<OpenFolder>,
    pub(super) config: Config,
    pub(super) config_hash: ConfigHash,
    pub(super) files: Vec<OpenFile>,
    pub(super) places: BTreeMap<String, Place>,
    /// Array files that did not open.
    lost: BTreeMap<String, Arc<OpenError>>,
    /// `labels.txt`, when labels have names.
    labels: Option<File>,
}

/// A container, and what is wrong with the files that are not in it.
type Sound = (Container, BTreeMap<String, OpenError>);

/// How often opening begins again because the model was replaced meanwhile.
const TRIES: usize = 1000;

impl Container {
    /// Opens the folder and checks that configuration, headers and file lengths agree.
    ///
    /// # Errors
    /// Anything in the folder that the format does not allow; see [`OpenError`]. Never panics, whatever
    /// the content of a file.
    pub fn open(folder: impl AsRef<Path>, mode: OpenMode) -> Result<Self, OpenError> {
        let folder = folder.as_ref();
        let (container, lost) = Self::open_sound(folder, mode)?;
        lost.into_values().next().map_or(Ok(container), Err)
    }

    /// Opens the valid part of a folder: an array file that is missing or malformed is left out, with
    /// all of its arrays; [`Container::lost`] tells what is wrong with it. For models that can answer
    /// with a part of their arrays.
    ///
    /// # Errors
    /// As [`Container::open`], for the configuration only.
    pub fn open_parts(folder: impl AsRef<Path>, mode: OpenMode) -> Result<Self, OpenError> {
        let folder = folder.as_ref();
        let (container, lost) = Self::open_sound(folder, mode)?;
        Ok(container.with_lost(lost))
    }

    /// Opens what is sound, and gives what is wrong with the other files. The folder is opened
    /// once, and everything in it through that handle: a model that is put in its place meanwhile
    /// is not mixed with it. What fails because the folder was removed after that is tried again
    /// with the new one.
    fn open_sound(path: &Path, mode: OpenMode) -> Result<Sound, OpenError> {
        Self::open_again(|| open_folder(path), mode)
    }

    fn open_again(open: impl Fn() -> Result<OpenFolder, OpenError>, mode: OpenMode) -> Result<Sound, OpenError> {
        let mut tries = 0..TRIES;
        loop {
            let folder = Arc::new(open()?);
            let outcome = Self::open_once(&folder, mode);
            let is_whole = outcome.as_ref().is_ok_and(|(_, lost)| lost.is_empty());
            if is_whole || !folder.was_replaced() || tries.next().is_none() {
                return outcome;
            }
        }
    }

    /// Opens the model of this name inside this model's folder: the folder that was opened, even if
    /// another one has replaced it since. `None` if there is no such folder.
    ///
    /// # Errors
    /// As [`Container::open`]; there is no such folder, and that of this model was replaced, so that
    /// there may have been one.
    pub fn inside(&self, name: &str, mode: OpenMode) -> Result<Option<Self>, OpenError> {
        let Some((container, lost)) = self.open_inside(name, mode)? else { return Ok(None) };
        lost.into_values().next().map_or(Ok(Some(container)), Err)
    }

    /// [`Container::inside`] for the valid part of a folder: see [`Container::open_parts`].
    ///
    /// # Errors
    /// As [`Container::inside`], for the configuration only.
    pub fn inside_parts(&self, name: &str, mode: OpenMode) -> Result<Option<Self>, OpenError> {
        let opened = self.open_inside(name, mode)?;
        Ok(opened.map(|(container, lost)| container.with_lost(lost)))
    }

    fn open_inside(&self, name: &str, mode: OpenMode) -> Result<Option<Sound>, OpenError> {
        let path = self.folder().join(name);
        let io = |source| OpenError::Io { path: path.clone(), source };
        let open = || self.folder.inside(name).map_err(io);
        match Self::open_again(open, mode) {
            Err(OpenError::Io { path: at, source })
                if at == path && source.kind() == std::io::ErrorKind::NotFound && !self.replacement()() =>
            {
                Ok(None)
            }
            opened => opened.map(Some),
        }
    }

    /// A function that may be called at any time: it tells whether the folder, or one that contains it,
    /// has been replaced. Files that had not been opened may then be missing.
    pub fn replacement(&self) -> impl Fn() -> bool + Send + Sync + use<> {
        let folder = Arc::clone(&self.folder);
        move || folder.was_replaced() || folder.is_of_replaced()
    }

    /// A model of files in memory.
    pub(super) fn of_memory(files: MemoryFiles) -> Result<Self, OpenError> {
        let (container, lost) = Self::open_once(&Arc::new(OpenFolder::of_memory(files)), OpenMode::Read)?;
        lost.into_values().next().map_or(Ok(container), Err)
    }

    /// The same model once more: another handle of the folder as it is now, or of the same memory.
    ///
    /// # Errors
    /// As [`Container::open`].
    pub fn again(&self) -> Result<Self, OpenError> {
        match self.memory() {
            Some(files) => Self::of_memory(files.clone()),
            None => Self::open(self.folder(), OpenMode::Map),
        }
    }

    /// Its files, where it is in memory.
    pub(super) fn memory(&self) -> Option<&MemoryFiles> {
        self.folder.memory()
    }

    fn with_lost(self, lost: BTreeMap<String, OpenError>) -> Self {
        Self { lost: lost.into_iter().map(|(file, error)| (file, Arc::new(error))).collect(), ..self }
    }

    fn open_once(folder: &Arc<OpenFolder>, mode: OpenMode) -> Result<Sound, OpenError> {
        let (config, config_hash) = Config::read_in(folder)?;
        let mut by_file: BTreeMap<&str, Vec<(&String, &ArrayEntry)>> = BTreeMap::new();
        for (name, entry) in &config.arrays {
            if !is_model_file(&entry.file) {
                let path = folder.path.join(super::config::CONFIG_FILE);
                return Err(OpenError::FileName { path, array: name.clone(), file: entry.file.clone() });
            }
            by_file.entry(&entry.file).or_default().push((name, entry));
        }
        let (mut files, mut places, mut lost) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
        for (file_name, expected) in by_file {
            match open_arrays(folder, file_name, mode, &expected, files.len()) {
                Ok((file, found)) => {
                    files.push(file);
                    places.extend(found);
                }
                Err(error) => {
                    lost.insert(file_name.to_owned(), error);
                }
            }
        }
        let labels = config.labels.as_ref().filter(|_| folder.memory().is_none());
        let labels = labels.map(|_| folder.file(LABELS_FILE)).transpose();
        let labels = labels.map_err(|source| OpenError::Io { path: folder.path.join(LABELS_FILE), source })?;
        let folder = Arc::clone(folder);
        Ok((Self { folder, config, config_hash, files, places, lost: BTreeMap::new(), labels }, lost))
    }

    /// The errors of the array files that [`Container::open_parts`] left out, by file name.
    pub fn lost(&self) -> impl ExactSizeIterator<Item = (&str, &OpenError)> {
        self.lost.iter().map(|(file, error)| (file.as_str(), &**error))
    }

    /// The folder; of a model in memory an empty path.
    pub fn folder(&self) -> &Path {
        &self.folder.path
    }

    /// The kind, which tells which crate's model this is.
    pub fn kind(&self) -> &str {
        &self.config.kind
    }

    /// Fails if the model is of another kind.
    pub fn expect_kind(&self, expected: &str) -> Result<(), OpenError> {
        if self.config.kind == expected {
            return Ok(());
        }
        let got = self.config.kind.clone();
        Err(OpenError::Kind { path: self.folder().to_owned(), got, expected: expected.to_owned() })
    }

    /// Format version of the folder.
    pub fn format_version(&self) -> u64 {
        self.config.format_version
    }

    /// Hash of the configuration, which includes the hash of every array: two folders with the same hash
    /// hold the same model.
    pub fn config_hash(&self) -> &str {
        &self.config_hash.got
    }

    /// All parameters.
    pub fn parameters(&self) -> &Map<String, Value> {
        &self.config.parameters
    }

    /// One parameter as a value of type `T`. A missing one reads as `null`, so `T` may be an `Option`.
    ///
    /// # Errors
    /// It is missing or of another type.
    pub fn parameter<T: DeserializeOwned>(&self, key: &str) -> Result<T, OpenError> {
        let value = self.config.parameters.get(key).unwrap_or(&Value::Null);
        T::deserialize(value).map_err(|source| OpenError::Parameter {
            path: self.folder().join(super::config::CONFIG_FILE),
            key: key.to_owned(),
            source,
        })
    }

    /// The feature pipeline, if one was stored.
    pub fn pipeline(&self) -> Option<&Value> {
        self.config.pipeline.as_ref()
    }

    /// Every array with its description, by name.
    pub fn arrays(&self) -> impl ExactSizeIterator<Item = (&str, &ArrayEntry)> {
        self.config.arrays.iter().map(|(name, entry)| (name.as_str(), entry))
    }

    /// Description of one array.
    pub fn entry(&self, name: &str) -> Option<&ArrayEntry> {
        self.config.arrays.get(name)
    }

    /// Bytes of all array files.
    pub fn n_bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes.as_bytes().len() as u64).sum()
    }

    /// Number of labels with names, if they have names.
    pub fn n_label_names(&self) -> Option<usize> {
        self.config.labels.as_ref().map(|labels| labels.count)
    }

    /// An array as flat elements, whatever its shape.
    ///
    /// # Errors
    /// No such array, another element type, an offset that is not aligned for the type (in files of
    /// other programs).
    pub fn array<T: Element>(&self, name: &str) -> Result<Buffer<T>, OpenError> {
        let (file, range) = self.place(name, T::DTYPE)?;
        Arc::clone(&file.bytes).elements(range.clone()).ok_or_else(|| OpenError::Misaligned {
            path: file.path.clone(),
            name: name.to_owned(),
            offset: range.start,
            dtype: T::DTYPE,
        })
    }

    /// An array that must have the given shape.
    ///
    /// # Errors
    /// As [`Container::array`], or another shape.
    pub fn array_shaped<T: Element>(&self, name: &str, shape: &[usize]) -> Result<Buffer<T>, OpenError> {
        let array = self.array(name)?;
        self.expect_shape(name, shape)?;
        Ok(array)
    }

    /// An array of floats whose type is known at run time, which must have the given shape.
    ///
    /// # Errors
    /// As [`Container::array_shaped`].
    ///
    /// # Panics
    /// If [`FloatBuffer`] does not support the type.
    pub fn floats(&self, name: &str, of: DType, shape: &[usize]) -> Result<FloatBuffer, OpenError> {
        Ok(match of {
            DType::F32 => FloatBuffer::F32(self.array_shaped(name, shape)?),
            DType::Bf16 => FloatBuffer::Bf16(self.array_shaped(name, shape)?),
            DType::F16 => FloatBuffer::F16(self.array_shaped(name, shape)?),
            DType::E4m3 => FloatBuffer::E4m3(self.array_shaped(name, shape)?),
            DType::E5m2 => FloatBuffer::E5m2(self.array_shaped(name, shape)?),
            _ => panic!("numbers of type {of}, expected a float of at most 32 bits"),
        })
    }

    /// The elements of an array whose type is known at run time, little-endian, possibly not aligned for
    /// it.
    ///
    /// # Errors
    /// No such array, another element type, another shape.
    pub fn bytes(&self, name: &str, dtype: DType, shape: &[usize]) -> Result<&[u8], OpenError> {
        let (file, range) = self.place(name, dtype)?;
        self.expect_shape(name, shape)?;
        Ok(&file.bytes.as_bytes()[range.clone()])
    }

    /// Where an array of a type lies.
    fn place(&self, name: &str, expected: DType) -> Result<(&OpenFile, &Range<usize>), OpenError> {
        let entry = self.config.arrays.get(name);
        let (Some(entry), Some(place)) = (entry, self.places.get(name)) else {
            let name = name.to_owned();
            return Err(match entry.and_then(|entry| self.lost.get(&entry.file)) {
                Some(source) => OpenError::Lost { name, source: Arc::clone(source) },
                None => OpenError::MissingArray { path: self.folder().to_owned(), name },
            });
        };
        let file = &self.files[place.file];
        if entry.dtype != expected {
            let (path, got) = (file.path.clone(), entry.dtype.to_string());
            return Err(OpenError::Dtype { path, name: name.to_owned(), got, expected });
        }
        Ok((file, &place.range))
    }

    fn expect_shape(&self, name: &str, shape: &[usize]) -> Result<(), OpenError> {
        let entry = &self.config.arrays[name];
        if entry.shape == shape {
            return Ok(());
        }
        Err(OpenError::Shape {
            path: self.folder().join(&entry.file),
            name: name.to_owned(),
            got: entry.shape.clone(),
            expected: shape.to_vec(),
        })
    }

    /// The labels' names in label order, or `None` if labels have none. Each call reads the file of the
    /// model that was opened, even if the model has been replaced since.
    pub fn labels(&self) -> Result<Option<Vec<String>>, OpenError> {
        Ok(self.label_text()?.map(|text| text.lines().map(str::to_owned).collect()))
    }

    /// The same as one text, a name a line.
    pub fn label_text(&self) -> Result<Option<String>, OpenError> {
        let Some(entry) = &self.config.labels else { return Ok(None) };
        let path = self.folder().join(LABELS_FILE);
        let text = match String::from_utf8(self.label_bytes()?) {
            Ok(text) => text,
            Err(error) => {
                let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
                let line = 1 + memchr::memchr_iter(b'\n', valid).count();
                return Err(OpenError::LabelText { path, line });
            }
        };
        let got = text.lines().count();
        if got != entry.count {
            return Err(OpenError::LabelCount { path, got, expected: entry.count });
        }
        // A look at the bytes of all is quicker than one at the characters of each.
        if text.contains(|c| c != '\n' && is_control(c))
            && let Some((at, name)) = text.lines().enumerate().find(|(_, name)| name.contains(is_control))
        {
            return Err(OpenError::LabelName { path, line: at + 1, name: name.to_owned() });
        }
        Ok(Some(text))
    }

    /// The content of `labels.txt`; nothing when there is none.
    pub(super) fn label_bytes(&self) -> Result<Vec<u8>, OpenError> {
        match &self.labels {
            Some(file) => read_all(file, &self.folder().join(LABELS_FILE), "label names", LABELS_LIMIT),
            None if self.config.labels.is_some() => self.folder.read(LABELS_FILE, "label names", LABELS_LIMIT),
            None => Ok(Vec::new()),
        }
    }

    /// Releases the resident pages of mapped files, which are read again on the next access. For files
    /// that are read once, sequentially.
    pub fn release(&self) {
        self.files.iter().for_each(|file| file.bytes.release(0..file.bytes.as_bytes().len()));
    }

    /// Tells the system how the arrays will be used. Does nothing for files that were read into memory,
    /// or if the system has no such call.
    ///
    /// # Errors
    /// The system call fails.
    pub fn advise(&self, advice: Advice) -> Result<(), OpenError> {
        for file in &self.files {
            file.bytes.advise(advice).map_err(|source| OpenError::Io { path: file.path.clone(), source })?;
        }
        Ok(())
    }
}

impl std::fmt::Debug for Container {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Container")
            .field("folder", &self.folder())
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

fn open_file(folder: &OpenFolder, name: &str, path: &Path, mode: OpenMode) -> Result<Arc<FileBytes>, OpenError> {
    let io = |source| OpenError::Io { path: path.to_owned(), source };
    if let Some(bytes) = folder.in_memory(name).map_err(io)? {
        return Ok(Arc::clone(bytes));
    }
    let mut file = folder.file(name).map_err(io)?;
    let bytes = match mode {
        // Saving builds a new folder and renames it; that no other program writes is the condition of these two modes.
        OpenMode::Map => FileBytes::map(&file, false),
        OpenMode::MapPopulate => FileBytes::map(&file, true),
        OpenMode::Read => {
            let length = file.metadata().map_err(io)?.len();
            let length = usize::try_from(length).map_err(|_| io(std::io::ErrorKind::OutOfMemory.into()))?;
            FileBytes::read(&mut file, length)
        }
    };
    Ok(Arc::new(bytes.map_err(io)?))
}

/// Opens one array file and finds the arrays in it that the configuration names.
fn open_arrays(
    folder: &OpenFolder,
    name: &str,
    mode: OpenMode,
    expected: &[(&String, &ArrayEntry)],
    number: usize,
) -> Result<(OpenFile, BTreeMap<String, Place>), OpenError> {
    let path = folder.path.join(name);
    let bytes = open_file(folder, name, &path, mode)?;
    let (start, header) = read_header(&path, bytes.as_bytes())?;
    let mut places = BTreeMap::new();
    let pads = place_arrays(&path, start, &header, expected, number, &mut places)?;
    Ok((OpenFile { path, bytes, pads }, places))
}

/// Reads the header; gives the position of the data part. The file is exactly as long as the header
/// says.
fn read_header(path: &Path, bytes: &[u8]) -> Result<(usize, Header), OpenError> {
    let length = |expected: u64| OpenError::Length { path: path.to_owned(), got: bytes.len() as u64, expected };
    let Some((prefix, rest)) = bytes.split_first_chunk::<8>() else { return Err(length(8)) };
    let n_header = u64::from_le_bytes(*prefix);
    if n_header > HEADER_LIMIT {
        return Err(OpenError::TooLarge { path: path.to_owned(), what: "header", got: n_header, limit: HEADER_LIMIT });
    }
    let n_header = n_header as usize;
    let Some(text) = rest.get(..n_header) else { return Err(length(8 + n_header as u64)) };
    let header: Header =
        serde_json::from_slice(text).map_err(|source| OpenError::Header { path: path.to_owned(), source })?;
    let expected = (8 + n_header as u64).saturating_add(header.data_len());
    if expected != bytes.len() as u64 {
        return Err(length(expected));
    }
    Ok((8 + n_header, header))
}

/// Compares the arrays of one file with the configuration and notes where they lie; gives the
/// padding.
fn place_arrays(
    path: &Path,
    start: usize,
    header: &Header,
    expected: &[(&String, &ArrayEntry)],
    file: usize,
    places: &mut BTreeMap<String, Place>,
) -> Result<Vec<Range<usize>>, OpenError> {
    let mut tensors = header.arrays().clone();
    for &(name, entry) in expected {
        let fail_path = || path.to_owned();
        let Some(info) = tensors.remove(name) else {
            return Err(OpenError::MissingArray { path: fail_path(), name: name.clone() });
        };
        if info.dtype != entry.dtype {
            let got = info.dtype.to_string();
            return Err(OpenError::Dtype { path: fail_path(), name: name.clone(), got, expected: entry.dtype });
        }
        if info.shape != entry.shape {
            let (got, expected) = (info.shape.clone(), entry.shape.clone());
            return Err(OpenError::Shape { path: fail_path(), name: name.clone(), got, expected });
        }
        let (begin, end) = info.data_offsets;
        places.insert(name.clone(), Place { file, range: start + begin..start + end });
    }
    let mut pads = Vec::new();
    for (name, info) in tensors {
        if !name.starts_with(PAD_PREFIX) {
            return Err(OpenError::UnknownArray { path: path.to_owned(), name });
        }
        pads.push(start + info.data_offsets.0..start + info.data_offsets.1);
    }
    pads.sort_unstable_by_key(|range| range.start);
    Ok(pads)
}
