//! From plain rows to packed chunks.

#![allow(unsafe_code, reason = "a level that was packed here is not checked again")]

use super::directory;
use super::layout::{VALUE_PADDING, mask_words, stride};
use super::{ChunkRows, ChunkRowsError, ChunkedLevel, LevelArrays, MAX_WIDTH, SlotMap};
use half::{bf16, f16};
use rayon::prelude::*;
use thiserror::Error;
use xc_buffer::FloatBuffer;
use xc_buffer::dtype::DType;

/// Why a level cannot be packed.
#[derive(Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum PackError {
    /// A chunk breaks its invariants.
    #[error("parent {parent}")]
    Rows {
        /// The parent.
        parent: usize,
        /// What is wrong.
        source: ChunkRowsError,
    },
    /// A feature does not fit the slot map.
    #[error("parent {parent}: feature {feature}, there are only {n_features}")]
    Feature {
        /// The parent.
        parent: usize,
        /// The feature found.
        feature: u32,
        /// The number of features.
        n_features: usize,
    },
    /// A weight that overflows half precision.
    #[error("parent {parent}: weight {value} overflows {dtype}")]
    Overflow {
        /// The parent.
        parent: usize,
        /// The weight.
        value: f32,
        /// The requested type.
        dtype: DType,
    },
    /// A type that the products do not support.
    #[error("weights of type {0}, expected F32, F16 or BF16")]
    DType(DType),
    /// More children, or weights in one chunk, than 32 bits can count.
    #[error("the level is too large: over 2^32 children, or weights in one chunk")]
    TooLarge,
}

/// Counts, for each feature, the chunks that have a row for it: the input of [`SlotMap::new`].
pub fn count_features<'a>(chunks: impl IntoIterator<Item = &'a ChunkRows>, n_features: usize) -> Vec<u64> {
    let mut counts = vec![0u64; n_features];
    for chunk in chunks {
        for &feature in &chunk.features {
            if let Some(count) = counts.get_mut(feature as usize) {
                *count += 1;
            }
        }
    }
    counts
}

/// Lengths of the packed arrays of a level, counted before packing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PackedSizes {
    pub(super) n_parents: usize,
    pub(super) n_parts: usize,
    pub(super) n_children: usize,
    pub(super) n_headers: usize,
    pub(super) n_values: usize,
    pub(super) n_words: usize,
}

impl PackedSizes {
    /// Adds the children of the next parent, whose invariants must hold. `n_features` is that of the
    /// slot map.
    pub fn add(&mut self, rows: &ChunkRows, n_features: usize) {
        let n_parts = rows.n_columns.div_ceil(MAX_WIDTH);
        let mut rows_of = vec![0usize; n_parts];
        if let [only] = &mut rows_of[..] {
            *only = rows.features.len();
        } else {
            for row in rows.row_ptr.windows(2) {
                let mut last = usize::MAX;
                for &column in &rows.columns[row[0] as usize..row[1] as usize] {
                    let part = column as usize / MAX_WIDTH;
                    if part != last {
                        rows_of[part] += 1;
                        last = part;
                    }
                }
            }
        }
        for (part, &n_rows) in rows_of.iter().enumerate() {
            let width = (rows.n_columns - part * MAX_WIDTH).min(MAX_WIDTH);
            self.n_headers += n_rows * stride(width);
            self.n_words += directory::n_words(directory::n_slots(n_rows, n_features));
        }
        self.n_parents += 1;
        self.n_parts += n_parts;
        self.n_children += rows.n_columns;
        self.n_values += rows.values.len();
    }

    /// Stored weights, biases not counted.
    pub fn nnz(&self) -> usize {
        self.n_values
    }
}

/// The packed form of one parent's children, offsets from 0.
struct Packed {
    width: usize,
    headers: Vec<u32>,
    values: Vec<f32>,
    words: Vec<u64>,
    n_slots: u32,
}

/// Builds a [`ChunkedLevel`] parent by parent.
#[derive(Debug)]
pub struct Packer {
    map: SlotMap,
    dtype: DType,
    /// Largest weight of that type.
    largest: f32,
    records: Vec<u64>,
    headers: Vec<u32>,
    values: FloatBuffer,
    n_headers: u64,
    n_values: u64,
    n_words: u64,
    n_children: u64,
    n_parts: u64,
    n_parents: usize,
    directory: Vec<u64>,
    bias: Vec<f32>,
    part_ptr: Vec<u32>,
}

impl ChunkedLevel {
    /// Packs a whole level, chunks in parallel. *Cost*: O(nnz).
    ///
    /// # Errors
    /// See [`PackError`].
    pub fn pack(parents: &[ChunkRows], map: &SlotMap, dtype: DType) -> Result<Self, PackError> {
        let mut packer = Packer::new(map, dtype)?;
        packer.extend(parents)?;
        packer.finish()
    }
}

impl Packer {
    /// Begins a level.
    ///
    /// # Errors
    /// [`PackError::DType`].
    pub fn new(map: &SlotMap, dtype: DType) -> Result<Self, PackError> {
        let largest = match dtype {
            DType::F32 => f32::MAX,
            DType::F16 => f16::MAX.to_f32(),
            DType::Bf16 => bf16::MAX.to_f32(),
            other => return Err(PackError::DType(other)),
        };
        Ok(Self {
            map: map.clone(),
            dtype,
            largest,
            records: Vec::new(),
            headers: Vec::new(),
            values: FloatBuffer::zeros(dtype, 0),
            n_headers: 0,
            n_values: 0,
            n_words: 0,
            n_children: 0,
            n_parts: 0,
            n_parents: 0,
            directory: Vec::new(),
            bias: Vec::new(),
            part_ptr: vec![0],
        })
    }

    /// Appends the children of the next parents.
    pub fn extend(&mut self, parents: &[ChunkRows]) -> Result<(), PackError> {
        // Packed forms are made in parallel a bounded number at a time: they exist beside the level
        // only briefly.
        for group in parents.chunks(4096) {
            let first = self.n_parents;
            let packed: Result<Vec<Vec<Packed>>, PackError> =
                group.par_iter().enumerate().map(|(i, rows)| self.pack_parent(first + i, rows)).collect();
            for (parts, rows) in packed?.into_iter().zip(group) {
                for part in parts {
                    self.push_part(part)?;
                }
                self.bias.extend_from_slice(&rows.bias);
                self.part_ptr.push(self.n_parts as u32);
                self.n_parents += 1;
            }
        }
        Ok(())
    }

    fn pack_parent(&self, parent: usize, rows: &ChunkRows) -> Result<Vec<Packed>, PackError> {
        rows.check().map_err(|source| PackError::Rows { parent, source })?;
        let n_features = self.map.n_features();
        if let Some(&feature) = rows.features.last().filter(|&&f| f as usize >= n_features) {
            return Err(PackError::Feature { parent, feature, n_features });
        }
        if let Some(&value) = rows.values.iter().find(|v| v.abs() > self.largest) {
            return Err(PackError::Overflow { parent, value, dtype: self.dtype });
        }
        let mut parts = Vec::new();
        let mut first = 0;
        while first < rows.n_columns {
            let width = (rows.n_columns - first).min(MAX_WIDTH);
            parts.push(self.pack_part(rows, first as u32, width));
            first += width;
        }
        Ok(parts)
    }

    fn pack_part(&self, rows: &ChunkRows, first: u32, width: usize) -> Packed {
        let n_masks = mask_words(width);
        let (mut headers, mut values, mut features) = (Vec::new(), Vec::new(), Vec::new());
        for (row, &feature) in rows.features.iter().enumerate() {
            let range = rows.row_ptr[row] as usize..rows.row_ptr[row + 1] as usize;
            let (mut mask, offset) = ([0u32; MAX_WIDTH / 32], values.len() as u32);
            for at in range {
                let column = rows.columns[at].wrapping_sub(first);
                if (column as usize) < width {
                    mask[column as usize / 32] |= 1 << (column % 32);
                    values.push(rows.values[at]);
                }
            }
            if values.len() as u32 > offset {
                features.push(feature);
                headers.extend([feature, offset]);
                headers.extend_from_slice(&mask[..n_masks]);
            }
        }
        let n_features = self.map.n_features();
        let n_slots = directory::n_slots(features.len(), n_features);
        let mut words = vec![0; directory::n_words(n_slots)];
        directory::fill(features.into_iter(), self.map.as_slice(), n_slots, n_features, &mut words);
        Packed { width, headers, values, words, n_slots }
    }

    fn record(&self, first_child: u64, n_slots: u32) -> [u64; 4] {
        [self.n_headers, self.n_values, self.n_words, first_child | u64::from(n_slots) << 32]
    }

    fn push_part(&mut self, part: Packed) -> Result<(), PackError> {
        let record = self.record(self.n_children, part.n_slots);
        self.records.extend(record);
        self.n_children += part.width as u64;
        if self.n_children > u64::from(u32::MAX) || part.values.len() as u64 > u64::from(u32::MAX) {
            return Err(PackError::TooLarge);
        }
        self.n_parts += 1;
        self.n_headers += part.headers.len() as u64;
        self.n_words += part.words.len() as u64;
        self.headers.extend_from_slice(&part.headers);
        self.directory.extend_from_slice(&part.words);
        self.n_values += part.values.len() as u64;
        self.values.extend(&part.values);
        Ok(())
    }

    /// Takes what has been packed since the last call, for a level that is written while it is packed.
    /// The pieces of all calls, the last after [`Packer::close`], concatenate to the arrays of the
    /// level.
    pub fn take(&mut self) -> LevelArrays {
        LevelArrays {
            records: std::mem::take(&mut self.records).into(),
            headers: std::mem::take(&mut self.headers).into(),
            values: std::mem::replace(&mut self.values, FloatBuffer::zeros(self.dtype, 0)),
            directory: std::mem::take(&mut self.directory).into(),
            bias: std::mem::take(&mut self.bias).into(),
            part_ptr: std::mem::take(&mut self.part_ptr).into(),
        }
    }

    /// Appends the closing record and the padding. Nothing may be appended afterwards.
    pub fn close(&mut self) {
        let closing = self.record(self.n_children, 0);
        self.records.extend(closing);
        self.values.extend(&[0.0; VALUE_PADDING]);
    }

    /// Ends the level.
    ///
    /// # Panics
    /// If pieces were taken: the level no longer has them.
    pub fn finish(mut self) -> Result<ChunkedLevel, PackError> {
        assert_eq!(
            4 * self.n_parts,
            self.records.len() as u64,
            "a level that was taken in pieces cannot be finished whole"
        );
        self.close();
        let arrays = self.take();
        // SAFETY: the arrays were made here of rows that were checked.
        Ok(unsafe { ChunkedLevel::new_unchecked(arrays, &self.map) })
    }
}
