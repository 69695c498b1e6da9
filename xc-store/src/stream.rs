//! Arrays that are written piece by piece, and how each array is noted.

use super::WriteError;
use super::config::{ArrayEntry, hex};
use super::header::{HeaderText, MAX_RANK, STREAM_RESERVE};
use super::memory::{OutFile, lock};
use crate::atomic::{WriteFileError, failed};
use std::{
    collections::BTreeMap,
    io::{self, BufWriter, Seek as _, SeekFrom, Write},
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};
use xc_buffer::dtype::{DType, Element};
use xxhash_rust::xxh3::Xxh3Default;

/// The arrays by name; `None` while a stream is being written.
pub(super) type Registry = BTreeMap<String, Option<ArrayEntry>>;

/// Writes the header into the room left for it and the whole file to the disk.
pub(super) fn complete(file: &mut OutFile, path: &Path, header: &[u8]) -> Result<(), WriteFileError> {
    let mut write = || {
        file.seek(SeekFrom::Start(0))?;
        file.write_all(header)?;
        file.sync_all()
    };
    write().map_err(failed(path, "write its header"))
}

pub(super) fn check_shape(name: &str, dtype: DType, shape: &[usize], bytes: u64) -> Result<(), WriteError> {
    let expected = shape.iter().try_fold(dtype.n_bytes() as u64, |n, &extent| n.checked_mul(extent as u64));
    if expected != Some(bytes) || shape.len() > MAX_RANK {
        return Err(WriteError::Shape { name: name.to_owned(), dtype, shape: shape.to_vec(), bytes });
    }
    Ok(())
}

/// An array that is written piece by piece; see [`ContainerWriter::stream`](crate::ContainerWriter::stream) and
/// [`ContainerWriter::stream_shaped`](crate::ContainerWriter::stream_shaped).
pub struct ArrayStream {
    name: String,
    dtype: DType,
    file_name: String,
    path: PathBuf,
    file: BufWriter<OutFile>,
    hash: Box<Xxh3Default>,
    n_bytes: u64,
    place: Place,
    registry: Arc<Mutex<Registry>>,
}

/// The file that a stream goes to.
pub(super) struct StreamFile {
    /// As the configuration names it.
    pub(super) name: String,
    pub(super) path: PathBuf,
    /// Where the first byte goes.
    pub(super) file: OutFile,
    /// The shape of the room that was left there; nothing: the file is the stream's own.
    pub(super) shape: Option<Vec<usize>>,
}

/// Where the bytes of a stream go.
enum Place {
    /// Into a file of its own.
    Own,
    /// Into the room that was left in the shared file for an array of this shape.
    Shared(Vec<usize>),
}

impl ArrayStream {
    /// A stream of an array whose name is reserved, with so many bytes written at once.
    pub(super) fn new(
        name: &str,
        dtype: DType,
        to: StreamFile,
        together: usize,
        registry: &Arc<Mutex<Registry>>,
    ) -> Self {
        Self {
            name: name.to_owned(),
            dtype,
            file_name: to.name,
            path: to.path,
            file: BufWriter::with_capacity(together, to.file),
            hash: Box::default(),
            n_bytes: 0,
            place: to.shape.map_or(Place::Own, Place::Shared),
            registry: Arc::clone(registry),
        }
    }

    /// Appends elements.
    ///
    /// # Errors
    /// A write fails.
    ///
    /// # Panics
    /// If `T` is not the stream's element type, or the values exceed a given shape.
    pub fn extend<T: Element>(&mut self, values: &[T]) -> Result<(), WriteError> {
        assert!(T::DTYPE == self.dtype, "array {:?} holds {}, got {}", self.name, self.dtype, T::DTYPE);
        Ok(self.append(bytemuck::cast_slice(values)).map_err(failed(&self.path, "write an array"))?)
    }

    /// Number of bytes so far.
    pub fn n_bytes(&self) -> u64 {
        self.n_bytes
    }

    /// Completes a one-dimensional array.
    ///
    /// # Errors
    /// Bytes that are not a whole number of elements; a write fails.
    pub fn finish(self) -> Result<(), WriteError> {
        let n_elements = self.n_bytes as usize / self.dtype.n_bytes();
        self.finish_shaped(&[n_elements])
    }

    /// Completes an array of the given shape.
    ///
    /// # Errors
    /// Bytes that do not fit the shape; a write fails.
    pub fn finish_shaped(self, shape: &[usize]) -> Result<(), WriteError> {
        check_shape(&self.name, self.dtype, shape, self.n_bytes)?;
        let mut file =
            self.file.into_inner().map_err(|error| failed(&self.path, "write an array")(error.into_error()))?;
        match self.place {
            Place::Own => {
                let mut header = HeaderText::default();
                header.push(&self.name, self.dtype, shape, 0, self.n_bytes);
                complete(&mut file, &self.path, &header.to_bytes(STREAM_RESERVE))?;
            }
            // The header and the disk are the shared file's business.
            Place::Shared(expected) if expected == shape => {}
            Place::Shared(_) => {
                let (name, shape) = (self.name, shape.to_vec());
                return Err(WriteError::Shape { name, dtype: self.dtype, shape, bytes: self.n_bytes });
            }
        }
        let entry = ArrayEntry {
            file: self.file_name,
            dtype: self.dtype,
            shape: shape.to_vec(),
            xxh3: hex(self.hash.digest()),
        };
        lock(&self.registry).insert(self.name, Some(entry));
        Ok(())
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let n_bytes = self.n_bytes + bytes.len() as u64;
        if let Place::Shared(shape) = &self.place {
            let room = shape.iter().product::<usize>() as u64 * self.dtype.n_bytes() as u64;
            assert!(n_bytes <= room, "array {:?}: {n_bytes} bytes in room for {room}", self.name);
        }
        self.file.write_all(bytes)?;
        self.hash.update(bytes);
        self.n_bytes = n_bytes;
        Ok(())
    }
}

impl Write for ArrayStream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.append(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl std::fmt::Debug for ArrayStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ArrayStream")
            .field("name", &self.name)
            .field("dtype", &self.dtype)
            .field("n_bytes", &self.n_bytes)
            .finish_non_exhaustive()
    }
}
