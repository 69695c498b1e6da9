//! The weights of a level in a checkpoint: written chunk by chunk as they are solved, read a chunk at
//! a time, so that no level is ever whole in memory.

use crate::model::BuildError;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use xc_buffer::Buffer;
use xc_buffer::dtype::DType;
use xc_sparse::chunked::ChunkRows;
use xc_store::{ArrayStream, CheckpointError, Container, ContainerWriter, WriteError};

/// Bytes of a level that are read before the pages of its files are released.
const RESIDENT: usize = 8 << 20;

/// Why trees in a checkpoint cannot be made a model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeptError {
    /// The checkpoint does not open, or is damaged.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The trees do not form a model.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The model cannot be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// The system does not grant the memory of tables of all features.
    #[error("tables of {n_features} features need {bytes} bytes, more than there are")]
    Memory {
        /// Features of the model.
        n_features: usize,
        /// What is needed.
        bytes: usize,
    },
    /// It was asked to stop.
    #[error("stopped")]
    Cancelled,
}

/// Takes the chunks of a level, in any order and from any thread.
pub(super) struct KeptChunks {
    /// What the names of the arrays begin with.
    prefix: String,
    streams: Mutex<Streams>,
}

struct Streams {
    parents: Vec<u32>,
    rows: Vec<u64>,
    entries: Vec<u64>,
    features: ArrayStream,
    row_ptr: ArrayStream,
    columns: ArrayStream,
    values: ArrayStream,
    bias: ArrayStream,
}

impl KeptChunks {
    pub(super) fn begin(prefix: &str, writer: &mut ContainerWriter) -> Result<Self, WriteError> {
        let mut stream = |name: &str, dtype| writer.stream(&format!("{prefix}{name}"), dtype);
        let streams = Streams {
            parents: Vec::new(),
            rows: Vec::new(),
            entries: Vec::new(),
            features: stream("features", DType::U32)?,
            row_ptr: stream("row_ptr", DType::U32)?,
            columns: stream("columns", DType::U32)?,
            values: stream("values", DType::F32)?,
            bias: stream("bias", DType::F32)?,
        };
        Ok(Self { prefix: prefix.to_owned(), streams: Mutex::new(streams) })
    }

    /// Appends the chunk of a parent.
    pub(super) fn put(&self, parent: usize, chunk: &ChunkRows) -> Result<(), WriteError> {
        let mut streams = lock(&self.streams);
        streams.parents.push(parent as u32);
        streams.rows.push(chunk.features.len() as u64);
        streams.entries.push(chunk.values.len() as u64);
        streams.features.extend(&chunk.features)?;
        streams.row_ptr.extend(&chunk.row_ptr)?;
        streams.columns.extend(&chunk.columns)?;
        streams.values.extend(&chunk.values)?;
        streams.bias.extend(&chunk.bias)
    }

    pub(super) fn finish(self, writer: &mut ContainerWriter) -> Result<(), WriteError> {
        let Self { prefix, streams } = self;
        let streams = streams.into_inner().unwrap_or_else(|e| e.into_inner());
        writer.add_slice(&format!("{prefix}parents"), &streams.parents)?;
        writer.add_slice(&format!("{prefix}rows"), &streams.rows)?;
        writer.add_slice(&format!("{prefix}entries"), &streams.entries)?;
        let Streams { features, row_ptr, columns, values, bias, .. } = streams;
        [features, row_ptr, columns, values, bias].into_iter().try_for_each(ArrayStream::finish)
    }
}

/// A level whose weights lie in a checkpoint.
pub(super) struct KeptLevel {
    part: Arc<Container>,
    /// Of each parent whose chunk is there.
    places: Vec<Option<Place>>,
    features: Buffer<u32>,
    row_ptr: Buffer<u32>,
    columns: Buffer<u32>,
    values: Buffer<f32>,
    bias: Buffer<f32>,
    /// Bytes read since pages were released.
    read: AtomicUsize,
}

/// Where the chunk of a parent begins in each array, and its extent.
#[derive(Clone, Copy, Default)]
struct Place {
    rows: usize,
    n_rows: usize,
    row_ptr: usize,
    entries: usize,
    n_entries: usize,
    bias: usize,
    n_columns: usize,
}

impl KeptLevel {
    /// Chunks of a level whose children are divided by `boundaries`; the names of their arrays begin with `prefix`.
    pub(super) fn new(part: Arc<Container>, prefix: &str, boundaries: &[u32]) -> Result<Self, CheckpointError> {
        let named = |name: &str| format!("{prefix}{name}");
        let numbers = |name| part.array::<u32>(&named(name));
        let (features, row_ptr, columns) = (numbers("features")?, numbers("row_ptr")?, numbers("columns")?);
        let (values, bias) = (part.array::<f32>(&named("values"))?, part.array::<f32>(&named("bias"))?);
        let (parents, rows) = (numbers("parents")?, part.array::<u64>(&named("rows"))?);
        let extents = part.array::<u64>(&named("entries"))?;
        let n_parents = boundaries.len() - 1;
        let mut places: Vec<Option<Place>> = vec![None; n_parents];
        let mut next = Place::default();
        let mut put = |parent: u32, n_rows: u64, n_entries: u64| {
            let parent = parent as usize;
            let place = places.get_mut(parent).filter(|place| place.is_none())?;
            let n_columns = (boundaries[parent + 1] - boundaries[parent]) as usize;
            let (n_rows, n_entries) = (usize::try_from(n_rows).ok()?, usize::try_from(n_entries).ok()?);
            *place = Some(Place { n_rows, n_entries, n_columns, ..next });
            next.rows = next.rows.checked_add(n_rows)?;
            next.row_ptr = next.row_ptr.checked_add(n_rows.checked_add(1)?)?;
            next.entries = next.entries.checked_add(n_entries)?;
            next.bias += n_columns;
            Some(())
        };
        let fits = [rows.len(), extents.len()] == [parents.len(); 2]
            && parents.iter().zip(&rows[..]).zip(&extents[..]).all(|((&p, &r), &e)| put(p, r, e).is_some())
            && [features.len(), row_ptr.len(), columns.len(), values.len(), bias.len()]
                == [next.rows, next.row_ptr, next.entries, next.entries, next.bias];
        if !fits {
            return Err(damaged(part.folder(), "weights that fit no chunks"));
        }
        Ok(Self { places, features, row_ptr, columns, values, bias, read: AtomicUsize::new(0), part })
    }

    /// Writes the chunks that are there into a container, in order of their parents.
    pub(super) fn write(&self, prefix: &str, writer: &mut ContainerWriter) -> Result<(), KeptError> {
        let chunks = KeptChunks::begin(prefix, writer)?;
        for parent in self.parents() {
            chunks.put(parent, &self.chunk(parent)?)?;
        }
        Ok(chunks.finish(writer)?)
    }

    /// The same, if every chunk is there.
    pub(super) fn whole(self) -> Result<Self, CheckpointError> {
        match self.places.iter().all(Option::is_some) {
            true => Ok(self),
            false => Err(damaged(self.part.folder(), "weights that fit no chunks")),
        }
    }

    /// The parents whose chunks are there, ascending.
    pub(super) fn parents(&self) -> impl Iterator<Item = usize> {
        self.places.iter().enumerate().filter_map(|(parent, place)| place.map(|_| parent))
    }

    /// Number of parents.
    pub(super) fn n_parents(&self) -> usize {
        self.places.len()
    }

    /// Weights below a parent.
    pub(super) fn nnz(&self, parent: usize) -> usize {
        self.places[parent].map_or(0, |place| place.n_entries)
    }

    /// A copy of the chunk of a parent.
    pub(super) fn chunk(&self, parent: usize) -> Result<ChunkRows, CheckpointError> {
        let missing = || damaged(self.part.folder(), &format!("the weights of parent {parent} are not there"));
        let at = self.places[parent].ok_or_else(missing)?;
        let chunk = ChunkRows {
            n_columns: at.n_columns,
            features: self.features[at.rows..at.rows + at.n_rows].to_vec(),
            row_ptr: self.row_ptr[at.row_ptr..at.row_ptr + at.n_rows + 1].to_vec(),
            columns: self.columns[at.entries..at.entries + at.n_entries].to_vec(),
            values: self.values[at.entries..at.entries + at.n_entries].to_vec(),
            bias: self.bias[at.bias..at.bias + at.n_columns].to_vec(),
        };
        let n_bytes = 8 * (at.n_rows + at.n_entries) + 4 * at.n_columns;
        if self.read.fetch_add(n_bytes, Ordering::Relaxed) + n_bytes > RESIDENT {
            self.read.store(0, Ordering::Relaxed);
            self.part.release();
        }
        match chunk.check() {
            Ok(()) => Ok(chunk),
            Err(error) => Err(damaged(self.part.folder(), &format!("weights of parent {parent}: {error}"))),
        }
    }

    /// All chunks, in order of the parents.
    pub(super) fn chunks(&self) -> Result<Vec<ChunkRows>, CheckpointError> {
        (0..self.n_parents()).map(|parent| self.chunk(parent)).collect()
    }
}

pub(super) fn damaged(path: &Path, what: &str) -> CheckpointError {
    CheckpointError::Damaged { path: path.to_owned(), what: what.to_owned() }
}

/// Locks; a thread that panicked elsewhere does not matter, for the panic itself is passed on by
/// rayon.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}
