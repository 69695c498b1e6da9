//! The structural check of levels from files or callers.

use super::directory;
use super::layout::{VALUE_PADDING, mask_words, stride};
use super::level::{ChunkedLevel, ChunkedView, LevelArrays};
use super::{MAX_WIDTH, SlotMap};
use rayon::prelude::*;
use thiserror::Error;
use xc_buffer::FloatBuffer;
use xc_buffer::dtype::DType;

/// Which invariant of a [`super::ChunkedLevel`] does not hold.
#[derive(Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChunkedError {
    /// An array is too short or too long for the others.
    #[error("{array} has {got} entries, expected {expected}")]
    Length {
        /// The array.
        array: &'static str,
        /// Entries found.
        got: usize,
        /// Entries expected.
        expected: usize,
    },
    /// Weights of a type that the products do not support.
    #[error("values of type {got}, expected F32, F16 or BF16")]
    DType {
        /// The type found.
        got: DType,
    },
    /// Offsets decrease, exceed the arrays or give a chunk an impossible size.
    #[error("record {chunk}: {what}")]
    Record {
        /// The chunk.
        chunk: usize,
        /// What is wrong.
        what: &'static str,
    },
    /// A row is out of order or its header is inconsistent.
    #[error("chunk {chunk}, row {row}: {what}")]
    Row {
        /// The chunk.
        chunk: usize,
        /// The row.
        row: usize,
        /// What is wrong.
        what: &'static str,
    },
    /// The directory does not match the rows.
    #[error("chunk {chunk}: the directory does not fit the rows")]
    Directory {
        /// The chunk.
        chunk: usize,
    },
    /// The slot map decreases.
    #[error("the slot map falls at feature {feature}")]
    SlotMap {
        /// The feature.
        feature: usize,
    },
    /// A weight is infinite or not a number.
    #[error("weight {at} is not finite")]
    NotFinite {
        /// Position in the values (in the biases if `bias`).
        at: usize,
        /// True for a bias weight.
        bias: bool,
    },
}

impl ChunkedLevel {
    /// Checks every invariant, chunks in parallel. *Cost*: O(nnz), about a second for 4 GB on two
    /// cores.
    ///
    /// # Errors
    /// See [`ChunkedError`].
    pub fn try_new(arrays: LevelArrays, map: &SlotMap) -> Result<Self, ChunkedError> {
        check(&arrays, map)?;
        Ok(Self { map: map.clone(), arrays })
    }
}

/// Checks every invariant of a level's arrays.
fn check(arrays: &LevelArrays, map: &SlotMap) -> Result<(), ChunkedError> {
    let LevelArrays { records, headers, values, directory, bias, part_ptr } = arrays;
    let length = |array, got, expected| Err(ChunkedError::Length { array, got, expected });
    if !matches!(values, FloatBuffer::F32(_) | FloatBuffer::F16(_) | FloatBuffer::Bf16(_)) {
        return Err(ChunkedError::DType { got: values.dtype() });
    }
    if !records.len().is_multiple_of(4) || records.is_empty() {
        return length("records", records.len(), records.len().next_multiple_of(4).max(4));
    }
    let closing = &records[records.len() - 4..];
    let n_chunks = records.len() / 4 - 1;
    if headers.len() as u64 != closing[0] {
        return length("headers", headers.len(), closing[0] as usize);
    }
    if (values.len() as u64).checked_sub(VALUE_PADDING as u64) != Some(closing[1]) {
        return length("values", values.len(), closing[1].saturating_add(VALUE_PADDING as u64) as usize);
    }
    if directory.len() as u64 != closing[2] {
        return length("directory", directory.len(), closing[2] as usize);
    }
    if bias.len() as u64 != closing[3] {
        return length("bias", bias.len(), closing[3] as usize);
    }
    if part_ptr.first() != Some(&0) || part_ptr.last().map(|&p| p as usize) != Some(n_chunks) {
        return length("part_ptr", part_ptr.last().map_or(0, |&p| p as usize), n_chunks);
    }
    if let Some(chunk) = part_ptr.windows(2).position(|w| w[0] > w[1]) {
        return Err(ChunkedError::Record { chunk, what: "part_ptr falls" });
    }
    if let Some(at) = bias.iter().position(|b| !b.is_finite()) {
        return Err(ChunkedError::NotFinite { at, bias: true });
    }
    // Used by the checks below alone, which index with bounds.
    let view = arrays.view(map);
    for chunk in 0..n_chunks {
        view.check_record(chunk)?;
    }
    // Chunks differ in size; ranges of them are handed out by rayon. Which of several errors is
    // reported is open.
    (0..n_chunks).into_par_iter().with_min_len(64).try_for_each(|chunk| view.check_chunk(chunk))?;
    values.not_finite().map_or(Ok(()), |at| Err(ChunkedError::NotFinite { at, bias: false }))
}

impl ChunkedView<'_> {
    fn check_record(&self, chunk: usize) -> Result<(), ChunkedError> {
        let fail = |what| Err(ChunkedError::Record { chunk, what });
        let (a, b) = (&self.records[chunk], &self.records[chunk + 1]);
        let (first, next) = (a[3] as u32, b[3] as u32);
        if a[0] > b[0] || a[1] > b[1] || a[2] > b[2] || first > next {
            return fail("offsets fall");
        }
        // A later record would be found to fall, but the sizes below must not overflow before that.
        let limits = [self.headers.len(), self.values.len() - VALUE_PADDING, self.directory.len(), self.bias.len()];
        let ends = [b[0], b[1], b[2], u64::from(next)];
        if ends.iter().zip(limits).any(|(&end, limit)| end > limit as u64) {
            return fail("offsets leave the arrays");
        }
        if chunk == 0 && (a[0] != 0 || a[1] != 0 || a[2] != 0 || first != 0) {
            return fail("offsets do not start with 0");
        }
        let width = (next - first) as usize;
        if width > MAX_WIDTH {
            return fail("more children than a chunk may have");
        }
        let header_len = (b[0] - a[0]) as usize;
        if !header_len.is_multiple_of(stride(width)) {
            return fail("headers are not whole rows");
        }
        let n_rows = header_len / stride(width);
        let n_slots = (a[3] >> 32) as u32;
        if n_slots != directory::n_slots(n_rows, self.n_features()) {
            return fail("the number of slots does not fit the rows");
        }
        if (b[2] - a[2]) as usize != directory::n_words(n_slots) {
            return fail("the directory has another size than its slots need");
        }
        Ok(())
    }

    fn check_chunk(&self, number: usize) -> Result<(), ChunkedError> {
        let chunk = self.chunk(number);
        let fail = |row, what| Err(ChunkedError::Row { chunk: number, row, what });
        let last_bits = match chunk.width() % 32 {
            0 if chunk.width() > 0 => u32::MAX,
            bits => (1u32 << bits) - 1,
        };
        let mut offset = 0u64;
        let mut before = None;
        for row in 0..chunk.n_rows() {
            let feature = chunk.feature(row);
            if before >= Some(feature) {
                return fail(row, "features must ascend");
            }
            before = Some(feature);
            if chunk.offset(row) as u64 != offset {
                return fail(row, "the offset is not the number of values before the row");
            }
            let mask = chunk.mask(row);
            let bits: u32 = mask.iter().map(|m| m.count_ones()).sum();
            if bits == 0 || mask[mask_words(chunk.width()) - 1] & !last_bits != 0 {
                return fail(row, "the sibling mask is empty or wider than the chunk");
            }
            offset += u64::from(bits);
        }
        if before.is_some_and(|f| f as usize >= self.n_features()) {
            return fail(chunk.n_rows() - 1, "a feature beyond the number of features");
        }
        if offset != (chunk.value_end - chunk.value_start) as u64 {
            return fail(chunk.n_rows(), "values and sibling masks differ in number");
        }
        let mut words = vec![0; chunk.words.len()];
        let features = (0..chunk.n_rows()).map(|row| chunk.feature(row));
        directory::fill(features, self.slot_map, chunk.n_slots, self.n_features(), &mut words);
        if words != chunk.words { Err(ChunkedError::Directory { chunk: number }) } else { Ok(()) }
    }
}
