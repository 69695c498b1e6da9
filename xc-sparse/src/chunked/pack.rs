//! From plain rows to packed chunks.

use super::directory::{self, SlotMap};
use super::view::{ChunkedArrays, ChunkedView, Values, mask_words};
use super::weight::{Precision, Weight};
use super::{ChunkRows, ChunkRowsError, MAX_WIDTH};
use half::{bf16, f16};
use rayon::prelude::*;
use thiserror::Error;

/// Entries of padding behind the values: a full vector may be loaded at the last one.
pub(crate) const VALUE_PADDING: usize = 16;

/// Why a level cannot be packed.
#[derive(Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum PackError {
    /// A chunk breaks its invariants.
    #[error("parent {parent}: {source}")]
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
        /// The feature met.
        feature: u32,
        /// The number of features.
        n_features: usize,
    },
    /// A weight that half precision cannot hold.
    #[error("parent {parent}: weight {value} overflows {precision:?}")]
    Overflow {
        /// The parent.
        parent: usize,
        /// The weight, as text.
        value: String,
        /// The precision asked for.
        precision: Precision,
    },
    /// More children, or weights in one chunk, than 32 bits count.
    #[error("the level is too large: over 2^32 children, or weights in one chunk")]
    TooLarge,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum OwnedValues {
    F32(Vec<f32>),
    F16(Vec<f16>),
    Bf16(Vec<bf16>),
}

/// One level's packed weights in memory. See [`ChunkedView`] for the arrays.
#[derive(Clone, Debug, PartialEq)]
pub struct ChunkedMatrix {
    records: Vec<[u64; 4]>,
    headers: Vec<u32>,
    values: OwnedValues,
    directory: Vec<u64>,
    bias: Vec<f32>,
    slot_map: std::sync::Arc<Vec<u32>>,
    part_ptr: Vec<u32>,
}

impl ChunkedMatrix {
    /// Borrows the arrays.
    pub fn view(&self) -> ChunkedView<'_> {
        // SAFETY: the arrays were made by `Packer`, which checks its input, and are private to this value.
        unsafe {
            ChunkedView::new_unchecked(
                &self.records,
                &self.headers,
                self.values.view(),
                &self.directory,
                &self.bias,
                &self.slot_map,
                &self.part_ptr,
            )
        }
    }

    /// Packs a whole level, chunks in parallel. *Cost*: O(nnz).
    pub fn pack(parents: &[ChunkRows], slot_map: &SlotMap, precision: Precision) -> Result<Self, PackError> {
        let mut packer = Packer::new(slot_map.clone(), precision);
        packer.extend(parents)?;
        packer.finish()
    }
}

/// Counts, for each feature, the chunks that have a row for it: what a [`SlotMap`] is built from.
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

/// The packed form of one parent's children, offsets from 0.
struct Packed {
    width: usize,
    headers: Vec<u32>,
    values: Vec<f32>,
    words: Vec<u64>,
    n_bits: u32,
}

/// A stretch of a level's arrays; see [`Packer::take`].
#[derive(Debug)]
pub struct PackedPiece {
    records: Vec<[u64; 4]>,
    headers: Vec<u32>,
    values: OwnedValues,
    directory: Vec<u64>,
    bias: Vec<f32>,
    part_ptr: Vec<u32>,
}

impl PackedPiece {
    /// The arrays of the stretch. They are no level by themselves: offsets count from the level's beginning.
    pub fn arrays(&self) -> ChunkedArrays<'_> {
        ChunkedArrays {
            records: &self.records,
            headers: &self.headers,
            values: self.values.view(),
            directory: &self.directory,
            bias: &self.bias,
            part_ptr: &self.part_ptr,
        }
    }
}

impl OwnedValues {
    fn view(&self) -> Values<'_> {
        match self {
            Self::F32(v) => Values::F32(v),
            Self::F16(v) => Values::F16(v),
            Self::Bf16(v) => Values::Bf16(v),
        }
    }
}

/// Builds a [`ChunkedMatrix`] parent by parent.
pub struct Packer {
    precision: Precision,
    slot_map: std::sync::Arc<Vec<u32>>,
    records: Vec<[u64; 4]>,
    headers: Vec<u32>,
    values: OwnedValues,
    n_headers: u64,
    n_values: u64,
    n_words: u64,
    n_children: u64,
    n_parts: u64,
    directory: Vec<u64>,
    bias: Vec<f32>,
    part_ptr: Vec<u32>,
}

impl Packer {
    /// Begins a level.
    pub fn new(slot_map: SlotMap, precision: Precision) -> Self {
        Self::with_shared_map(std::sync::Arc::new(slot_map.into_vec()), precision)
    }

    /// Begins a level whose slot map is shared with other levels.
    pub fn with_shared_map(slot_map: std::sync::Arc<Vec<u32>>, precision: Precision) -> Self {
        let values = match precision {
            Precision::F32 => OwnedValues::F32(Vec::new()),
            Precision::F16 => OwnedValues::F16(Vec::new()),
            Precision::Bf16 => OwnedValues::Bf16(Vec::new()),
        };
        Self {
            precision,
            slot_map,
            records: Vec::new(),
            headers: Vec::new(),
            values,
            n_headers: 0,
            n_values: 0,
            n_words: 0,
            n_children: 0,
            n_parts: 0,
            directory: Vec::new(),
            bias: Vec::new(),
            part_ptr: vec![0],
        }
    }

    /// Appends the children of the next parents.
    pub fn extend(&mut self, parents: &[ChunkRows]) -> Result<(), PackError> {
        // Packed forms are made in parallel a bounded number at a time: they exist beside the level only briefly.
        for group in parents.chunks(4096) {
            let first = self.part_ptr.len() - 1;
            let packed: Result<Vec<Vec<Packed>>, PackError> =
                group.par_iter().enumerate().map(|(i, rows)| self.pack_parent(first + i, rows)).collect();
            for (parts, rows) in packed?.into_iter().zip(group) {
                for part in parts {
                    self.push_part(part)?;
                }
                self.bias.extend_from_slice(&rows.bias);
                self.part_ptr.push(self.n_parts as u32);
            }
        }
        Ok(())
    }

    fn pack_parent(&self, parent: usize, rows: &ChunkRows) -> Result<Vec<Packed>, PackError> {
        rows.check().map_err(|source| PackError::Rows { parent, source })?;
        let n_features = self.slot_map.len();
        if let Some(&feature) = rows.features.last().filter(|&&f| f as usize >= n_features) {
            return Err(PackError::Feature { parent, feature, n_features });
        }
        let largest = match self.precision {
            Precision::F32 => f32::MAX,
            Precision::F16 => f16::MAX.to_f32(),
            Precision::Bf16 => bf16::MAX.to_f32(),
        };
        if let Some(value) = rows.values.iter().find(|v| v.abs() > largest) {
            return Err(PackError::Overflow { parent, value: value.to_string(), precision: self.precision });
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
        let n_features = self.slot_map.len();
        let n_bits = directory::n_bits(features.len(), n_features);
        let mut words = vec![0; directory::n_words(n_bits)];
        directory::fill(features.into_iter(), &self.slot_map, n_bits, n_features, &mut words);
        Packed { width, headers, values, words, n_bits }
    }

    fn record(&self, first_child: u64, n_bits: u32) -> [u64; 4] {
        [self.n_headers, self.n_values, self.n_words, first_child | u64::from(n_bits) << 32]
    }

    fn push_part(&mut self, part: Packed) -> Result<(), PackError> {
        let record = self.record(self.n_children, part.n_bits);
        self.records.push(record);
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
        match &mut self.values {
            OwnedValues::F32(v) => v.extend_from_slice(&part.values),
            OwnedValues::F16(v) => v.extend(part.values.iter().map(|&x| <f16 as Weight>::from_f32(x))),
            OwnedValues::Bf16(v) => v.extend(part.values.iter().map(|&x| <bf16 as Weight>::from_f32(x))),
        }
        Ok(())
    }

    /// Takes what has been packed since the last call, for a level that is written while it is made. The pieces of
    /// all calls, the last after [`Packer::close`], are the arrays of the level one after the other.
    pub fn take(&mut self) -> PackedPiece {
        let empty = match self.precision {
            Precision::F32 => OwnedValues::F32(Vec::new()),
            Precision::F16 => OwnedValues::F16(Vec::new()),
            Precision::Bf16 => OwnedValues::Bf16(Vec::new()),
        };
        PackedPiece {
            records: std::mem::take(&mut self.records),
            headers: std::mem::take(&mut self.headers),
            values: std::mem::replace(&mut self.values, empty),
            directory: std::mem::take(&mut self.directory),
            bias: std::mem::take(&mut self.bias),
            part_ptr: std::mem::take(&mut self.part_ptr),
        }
    }

    /// Appends the closing record and the padding. Nothing may follow.
    pub fn close(&mut self) {
        let closing = self.record(self.n_children, 0);
        self.records.push(closing);
        match &mut self.values {
            OwnedValues::F32(v) => v.resize(v.len() + VALUE_PADDING, 0.0),
            OwnedValues::F16(v) => v.resize(v.len() + VALUE_PADDING, f16::ZERO),
            OwnedValues::Bf16(v) => v.resize(v.len() + VALUE_PADDING, bf16::ZERO),
        }
    }

    /// Ends the level.
    ///
    /// # Panics
    /// If pieces were taken: they are not here any more.
    pub fn finish(mut self) -> Result<ChunkedMatrix, PackError> {
        assert_eq!(
            self.n_parts,
            self.records.len() as u64,
            "a level that was taken in pieces cannot be finished whole"
        );
        self.close();
        let slot_map = self.slot_map.clone();
        let PackedPiece { records, headers, values, directory, bias, part_ptr } = self.take();
        Ok(ChunkedMatrix { records, headers, values, directory, bias, slot_map, part_ptr })
    }
}
