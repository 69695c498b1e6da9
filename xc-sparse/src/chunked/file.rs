//! A level in a model folder: the arrays of [`LevelArrays`] by name, and the slot map next to them.

#![allow(unsafe_code, reason = "constructors without checks")]

use super::layout::{VALUE_PADDING, stride};
use super::{ChunkedError, ChunkedLevel, LevelArrays, PackedSizes, SlotMap};
use std::path::PathBuf;
use thiserror::Error;
use xc_buffer::FloatSlice;
use xc_buffer::dtype::DType;
use xc_store::{ArrayRef, ArrayStream, Container, ContainerWriter, OpenError, WriteError};

/// Why a level or a slot map cannot be opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenLevelError {
    /// An array is missing or has another shape.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The content of the arrays is invalid.
    #[error("{}: {array}", path.display())]
    Content {
        /// The folder.
        path: PathBuf,
        /// The array, or the prefix of the arrays' names.
        array: String,
        /// What is wrong.
        source: ChunkedError,
    },
}

fn content(container: &Container, array: &str, source: ChunkedError) -> OpenLevelError {
    OpenLevelError::Content { path: container.folder().to_owned(), array: array.to_owned(), source }
}

impl SlotMap {
    /// Adds the map as an array.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub fn write(&self, name: &str, writer: &mut ContainerWriter) -> Result<(), WriteError> {
        writer.add_slice(name, self.as_slice())
    }

    /// Opens what [`SlotMap::write`] wrote. *Cost*: O(features).
    ///
    /// # Errors
    /// See [`OpenLevelError`].
    pub fn open(container: &Container, name: &str, n_features: usize) -> Result<Self, OpenLevelError> {
        let scaled = container.array_shaped(name, &[n_features])?;
        Self::try_new(scaled).map_err(|source| content(container, name, source))
    }

    /// [`SlotMap::open`] without reading the content.
    ///
    /// # Errors
    /// See [`OpenLevelError`].
    ///
    /// # Safety
    /// The array is one that [`SlotMap::open`] would accept.
    pub unsafe fn open_trusted(container: &Container, name: &str, n_features: usize) -> Result<Self, OpenLevelError> {
        let scaled = container.array_shaped(name, &[n_features])?;
        // SAFETY: by the contract.
        Ok(unsafe { Self::new_unchecked(scaled) })
    }
}

impl ChunkedLevel {
    /// Adds the level's arrays as `PREFIX.records` and so on; the slot map is written separately.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub fn write(&self, prefix: &str, writer: &mut ContainerWriter) -> Result<(), WriteError> {
        let LevelArrays { records, headers, values, directory, bias, part_ptr } = self.arrays();
        let name = |array: &str| format!("{prefix}.{array}");
        writer.add(&name("records"), ArrayRef::new(records, &[records.len() / 4, 4]))?;
        writer.add_slice(&name("headers"), headers)?;
        let shape = [values.len()];
        writer.add(&name("values"), ArrayRef { dtype: values.dtype(), shape: &shape, bytes: values.bytes() })?;
        writer.add_slice(&name("directory"), directory)?;
        writer.add_slice(&name("bias"), bias)?;
        writer.add_slice(&name("part_ptr"), part_ptr)
    }

    /// Opens what [`ChunkedLevel::write`] wrote. *Cost*: O(nnz), in parallel.
    ///
    /// # Errors
    /// See [`OpenLevelError`].
    pub fn open(container: &Container, prefix: &str, map: &SlotMap) -> Result<Self, OpenLevelError> {
        let arrays = LevelArrays::open(container, prefix)?;
        Self::try_new(arrays, map).map_err(|source| content(container, prefix, source))
    }

    /// [`ChunkedLevel::open`] without reading the content: it reads only a few pages of headers.
    ///
    /// # Errors
    /// An array is missing or has another shape.
    ///
    /// # Safety
    /// The arrays are ones that [`ChunkedLevel::open`] would accept; otherwise answers may be wrong and
    /// products may read arbitrary memory.
    pub unsafe fn open_trusted(container: &Container, prefix: &str, map: &SlotMap) -> Result<Self, OpenLevelError> {
        let arrays = LevelArrays::open(container, prefix)?;
        // SAFETY: by the contract.
        Ok(unsafe { Self::new_unchecked(arrays, map) })
    }
}

impl LevelArrays {
    fn open(container: &Container, prefix: &str) -> Result<Self, OpenError> {
        let name = |array: &str| format!("{prefix}.{array}");
        let length = |array: &str| container.entry(&name(array)).and_then(|e| e.shape.first()).copied().unwrap_or(0);
        let dtype = match container.entry(&name("values")).map(|entry| entry.dtype) {
            Some(dtype @ (DType::F16 | DType::Bf16)) => dtype,
            // Anything else is reported by the typed access below.
            _ => DType::F32,
        };
        Ok(Self {
            records: container.array_shaped(&name("records"), &[length("records"), 4])?,
            headers: container.array(&name("headers"))?,
            values: container.floats(&name("values"), dtype, &[length("values")])?,
            directory: container.array(&name("directory"))?,
            bias: container.array(&name("bias"))?,
            part_ptr: container.array(&name("part_ptr"))?,
        })
    }
}

/// Sizes of a stored level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LevelSizes {
    /// Parents.
    pub n_parents: usize,
    /// Children (weight columns).
    pub n_columns: usize,
    /// Stored weights, biases not counted.
    pub nnz: usize,
    /// Pairs of a chunk and a feature with at least one weight.
    pub n_rows: usize,
    /// Bytes of all arrays, the shared slot map not counted.
    pub n_bytes: usize,
}

impl LevelSizes {
    /// Reads the sizes of a level that [`ChunkedLevel::write`] wrote. *Cost*: a pass over the records,
    /// 32 bytes per chunk. Nothing is checked: the sizes of a damaged level are meaningless.
    ///
    /// # Errors
    /// An array is missing or has another shape.
    pub fn read(container: &Container, prefix: &str) -> Result<Self, OpenError> {
        let LevelArrays { records, headers, values, directory, bias, part_ptr } = LevelArrays::open(container, prefix)?;
        let in_chunk = |pair: &[[u64; 4]]| {
            let (a, b) = (pair[0], pair[1]);
            let width = (b[3] as u32).wrapping_sub(a[3] as u32) as usize;
            b[0].wrapping_sub(a[0]) as usize / stride(width)
        };
        let n_bytes = [size_of_val(&records[..]), size_of_val(&headers[..]), values.bytes().len()];
        let n_bytes = n_bytes.into_iter().chain([size_of_val(&directory[..]), size_of_val(&bias[..])]);
        Ok(Self {
            n_parents: part_ptr.len().saturating_sub(1),
            n_columns: bias.len(),
            nnz: values.len().saturating_sub(VALUE_PADDING),
            n_rows: records.as_chunks::<4>().0.windows(2).map(in_chunk).fold(0, usize::saturating_add),
            n_bytes: n_bytes.sum::<usize>() + size_of_val(&part_ptr[..]),
        })
    }
}

/// The arrays of a level that is written while it is packed.
#[derive(Debug)]
pub struct LevelStreams {
    records: ArrayStream,
    headers: ArrayStream,
    values: ArrayStream,
    directory: ArrayStream,
    bias: ArrayStream,
    part_ptr: ArrayStream,
    n_records: usize,
}

impl LevelStreams {
    /// Begins a level of weights of type `dtype` whose sizes are not known yet: each array gets its own
    /// file.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub fn begin(prefix: &str, dtype: DType, writer: &mut ContainerWriter) -> Result<Self, WriteError> {
        let mut stream = |array: &str, dtype| writer.stream(&format!("{prefix}.{array}"), dtype);
        Ok(Self {
            records: stream("records", DType::U64)?,
            headers: stream("headers", DType::U32)?,
            values: stream("values", dtype)?,
            directory: stream("directory", DType::U64)?,
            bias: stream("bias", DType::F32)?,
            part_ptr: stream("part_ptr", DType::U32)?,
            n_records: 0,
        })
    }

    /// Begins a level of known sizes: the model gets the same bytes as from [`ChunkedLevel::write`].
    ///
    /// # Errors
    /// See [`WriteError`].
    pub fn begin_sized(
        prefix: &str,
        dtype: DType,
        sizes: &PackedSizes,
        writer: &mut ContainerWriter,
    ) -> Result<Self, WriteError> {
        let mut stream =
            |array: &str, dtype, shape: &[usize]| writer.stream_shaped(&format!("{prefix}.{array}"), dtype, shape);
        Ok(Self {
            records: stream("records", DType::U64, &[sizes.n_parts + 1, 4])?,
            headers: stream("headers", DType::U32, &[sizes.n_headers])?,
            values: stream("values", dtype, &[sizes.n_values + VALUE_PADDING])?,
            directory: stream("directory", DType::U64, &[sizes.n_words])?,
            bias: stream("bias", DType::F32, &[sizes.n_children])?,
            part_ptr: stream("part_ptr", DType::U32, &[sizes.n_parents + 1])?,
            n_records: 0,
        })
    }

    /// Appends a piece that [`super::Packer::take`] returned.
    ///
    /// # Errors
    /// A write fails.
    pub fn extend(&mut self, piece: &LevelArrays) -> Result<(), WriteError> {
        self.records.extend(&piece.records)?;
        self.n_records += piece.records.len() / 4;
        self.headers.extend(&piece.headers)?;
        match piece.values.as_slice() {
            FloatSlice::F32(values) => self.values.extend(values)?,
            FloatSlice::F16(values) => self.values.extend(values)?,
            FloatSlice::Bf16(values) => self.values.extend(values)?,
            FloatSlice::E4m3(values) => self.values.extend(values)?,
            FloatSlice::E5m2(values) => self.values.extend(values)?,
        }
        self.directory.extend(&piece.directory)?;
        self.bias.extend(&piece.bias)?;
        self.part_ptr.extend(&piece.part_ptr)
    }

    /// Ends the level.
    ///
    /// # Errors
    /// A write fails.
    pub fn finish(self) -> Result<(), WriteError> {
        self.records.finish_shaped(&[self.n_records, 4])?;
        self.headers.finish()?;
        self.values.finish()?;
        self.directory.finish()?;
        self.bias.finish()?;
        self.part_ptr.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ChunkRows, Packer, count_features};
    use super::*;

    /// A chunk of so many children; every `step`-th pair of a feature and a child has a weight.
    fn chunk(width: u32, n_features: u32, step: u32) -> ChunkRows {
        let pairs = (0..n_features).flat_map(|f| (0..width).map(move |c| (f, c)));
        let entries = pairs.filter(|(f, c)| (f * 31 + c * 7).is_multiple_of(step));
        let entries = entries.map(|(f, c)| (f, c, (f + c) as f32 / 16.0)).collect();
        ChunkRows::from_entries(width as usize, entries, vec![0.5; width as usize]).unwrap()
    }

    #[test]
    fn a_level_that_is_packed_in_pieces_has_the_bytes_of_one_that_is_written_whole() {
        let place = tempfile::tempdir().unwrap();
        let chunks: Vec<ChunkRows> =
            [(0, 3), (1, 2), (129, 5), (300, 11), (16, 1), (33, 1000)].map(|(w, step)| chunk(w, 200, step)).into();
        let map = SlotMap::new(&count_features(&chunks, 200));
        let mut sizes = PackedSizes::default();
        chunks.iter().for_each(|rows| sizes.add(rows, 200));
        let save = |name: &str, write: &dyn Fn(&mut ContainerWriter)| {
            let mut writer = ContainerWriter::create(&place.path().join(name), "tree").unwrap();
            write(&mut writer);
            writer.finish().unwrap();
            std::fs::read(place.path().join(name).join("model.safetensors")).unwrap()
        };
        for dtype in [DType::F32, DType::Bf16] {
            let level = ChunkedLevel::pack(&chunks, &map, dtype).unwrap();
            assert_eq!(sizes.nnz(), level.view().nnz());
            let whole = save("whole", &|writer| level.write("l", writer).unwrap());
            let pieces = save("pieces", &|writer| {
                let mut streams = LevelStreams::begin_sized("l", dtype, &sizes, writer).unwrap();
                let mut packer = Packer::new(&map, dtype).unwrap();
                for some in chunks.chunks(2) {
                    packer.extend(some).unwrap();
                    streams.extend(&packer.take()).unwrap();
                }
                packer.close();
                streams.extend(&packer.take()).unwrap();
                streams.finish().unwrap();
            });
            assert!(whole == pieces, "{dtype}");
        }
    }
}
