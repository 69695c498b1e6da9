//! The packed weights of one level, in memory or in a mapped file.

#![allow(unsafe_code, reason = "constructors without checks")]

use super::layout::stride;
use super::{ChunkRows, SlotMap};
use xc_buffer::dtype::DType;
use xc_buffer::simd::prefetch;
use xc_buffer::{Buffer, FloatBuffer, FloatSlice};

/// The arrays of a level, each in memory or in a mapped file; also a part of them, see
/// [`super::Packer::take`].
///
/// | array | entries | meaning |
/// |---|---|---|
/// | `records` | 4 per chunk, and 4 at the end | offset into `headers`; offset into `values`; offset into `directory`; first child, and `n_slots << 32` |
/// | `headers` | 2 + mask words, per row | feature, offset of its values inside the chunk, sibling mask in words of 32 |
/// | `values` | one per weight | packed by row, then by child; 16 entries of padding at the end |
/// | `directory` | one per 32 slots | rank and bits, see [`SlotMap`] |
/// | `bias` | one per child | added after all features |
/// | `part_ptr` | one per parent, and 1 | the chunks of a parent (more than one when it has over [`super::MAX_WIDTH`] children) |
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the table says what each array is")]
pub struct LevelArrays {
    pub records: Buffer<u64>,
    pub headers: Buffer<u32>,
    pub values: FloatBuffer,
    pub directory: Buffer<u64>,
    pub bias: Buffer<f32>,
    pub part_ptr: Buffer<u32>,
}

/// One level's weights, with the slot map that the levels of its tree share.
///
/// # Invariants (established by packing, or by [`ChunkedLevel::try_new`] in O(nnz))
/// Offsets are non-decreasing and in range; features ascend in a chunk and are below `n_features`; no
/// mask is zero or wider than the chunk; offsets are the running sums of mask bits; the directory
/// matches the features; values are finite, of type f32, f16 or bf16.
#[derive(Clone, Debug, PartialEq)]
pub struct ChunkedLevel {
    pub(super) map: SlotMap,
    pub(super) arrays: LevelArrays,
}

/// A [`ChunkedLevel`] as plain slices, the form that products read.
#[derive(Clone, Copy, Debug)]
pub struct ChunkedView<'a> {
    pub(crate) records: &'a [[u64; 4]],
    pub(crate) headers: &'a [u32],
    pub(crate) values: FloatSlice<'a>,
    pub(crate) directory: &'a [u64],
    pub(crate) bias: &'a [f32],
    pub(crate) slot_map: &'a [u32],
    pub(crate) part_ptr: &'a [u32],
}

impl ChunkedLevel {
    /// Takes the arrays without checking their content.
    ///
    /// # Safety
    /// They satisfy the invariants of the type: [`ChunkedLevel::try_new`] would accept them.
    pub unsafe fn new_unchecked(arrays: LevelArrays, map: &SlotMap) -> Self {
        Self { map: map.clone(), arrays }
    }

    /// The level as plain slices. *Cost*: a few instructions.
    #[inline]
    pub fn view(&self) -> ChunkedView<'_> {
        self.arrays.view(&self.map)
    }

    /// The slot map that queries are prepared with.
    pub fn slot_map(&self) -> &SlotMap {
        &self.map
    }

    /// The arrays, for saving.
    pub fn arrays(&self) -> &LevelArrays {
        &self.arrays
    }
}

impl LevelArrays {
    /// # Panics
    /// If the records are no multiple of four.
    #[inline(always)]
    pub(super) fn view<'a>(&'a self, map: &'a SlotMap) -> ChunkedView<'a> {
        ChunkedView {
            records: bytemuck::cast_slice(&self.records),
            headers: &self.headers,
            values: self.values.as_slice(),
            directory: &self.directory,
            bias: &self.bias,
            slot_map: map.as_slice(),
            part_ptr: &self.part_ptr,
        }
    }
}

/// One chunk with plain numbers instead of offsets.
#[derive(Clone, Copy, Debug)]
pub struct ChunkView<'a> {
    pub(crate) headers: &'a [u32],
    pub(crate) words: &'a [u64],
    pub(crate) value_start: usize,
    pub(crate) value_end: usize,
    pub(crate) first_child: u32,
    pub(crate) width: u32,
    pub(crate) n_slots: u32,
    pub(crate) n_rows: u32,
    pub(crate) stride: u32,
}

#[inline(always)]
fn prefetch_lines<W>(values: &[W], at: usize, wide: bool) {
    prefetch(values, at);
    if wide {
        prefetch(values, at + 64 / size_of::<W>());
    }
}

impl<'a> ChunkedView<'a> {
    /// Number of features.
    pub fn n_features(&self) -> usize {
        self.slot_map.len()
    }

    /// Number of children (weight columns).
    pub fn n_columns(&self) -> usize {
        self.bias.len()
    }

    /// Number of parents.
    pub fn n_parents(&self) -> usize {
        self.part_ptr.len() - 1
    }

    /// Number of chunks: the number of parents, or more if some have over [`super::MAX_WIDTH`] children.
    pub fn n_chunks(&self) -> usize {
        self.records.len() - 1
    }

    /// Number of stored weights, biases not counted.
    pub fn nnz(&self) -> usize {
        self.records[self.n_chunks()][1] as usize
    }

    /// Number of stored rows over all chunks.
    pub fn n_rows(&self) -> usize {
        (0..self.n_chunks()).map(|c| self.chunk(c).n_rows()).sum()
    }

    /// Bytes of all arrays of this level, the shared slot map not counted.
    pub fn n_bytes(&self) -> usize {
        self.records.len() * 32
            + self.headers.len() * 4
            + self.values.len() * self.values.dtype().n_bytes()
            + self.directory.len() * 8
            + self.bias.len() * 4
            + self.part_ptr.len() * 4
    }

    /// Bias weights, one per child.
    pub fn bias(&self) -> &'a [f32] {
        self.bias
    }

    /// The packed values.
    pub fn values(&self) -> FloatSlice<'a> {
        self.values
    }

    /// The chunks of parent `parent`.
    #[inline(always)]
    pub fn parts(&self, parent: usize) -> std::ops::Range<usize> {
        self.part_ptr[parent] as usize..self.part_ptr[parent + 1] as usize
    }

    /// The children of parent `parent`.
    #[inline(always)]
    pub fn children(&self, parent: usize) -> std::ops::Range<u32> {
        let parts = self.parts(parent);
        self.records[parts.start][3] as u32..self.records[parts.end][3] as u32
    }

    /// Prefetches the chunks of parent `parent`.
    #[inline(always)]
    pub fn prefetch_parent(&self, parent: usize) {
        prefetch(self.part_ptr, parent);
        // Nearly always one chunk a parent, so the record has the parent's number.
        prefetch(self.records, parent);
    }

    /// Asks memory for the line of value `at`, and for the next one too if `wide`.
    #[inline(always)]
    pub(crate) fn prefetch_values(&self, at: usize, wide: bool) {
        match self.values {
            FloatSlice::F32(v) => prefetch_lines(v, at, wide),
            FloatSlice::F16(v) => prefetch_lines(v, at, wide),
            FloatSlice::Bf16(v) => prefetch_lines(v, at, wide),
            _ => unreachable!("levels hold f32, f16 or bf16"),
        }
    }

    /// Chunk `chunk`.
    ///
    /// # Panics
    /// If `chunk >= n_chunks()` or the record points outside the arrays.
    #[inline(always)]
    pub fn chunk(&self, chunk: usize) -> ChunkView<'a> {
        let (a, b) = (&self.records[chunk], &self.records[chunk + 1]);
        let first_child = a[3] as u32;
        let width = b[3] as u32 - first_child;
        let n_slots = (a[3] >> 32) as u32;
        let stride = stride(width as usize);
        let headers = &self.headers[a[0] as usize..b[0] as usize];
        ChunkView {
            headers,
            words: &self.directory[a[2] as usize..b[2] as usize],
            value_start: a[1] as usize,
            value_end: b[1] as usize,
            first_child,
            width,
            n_slots,
            n_rows: (headers.len() / stride) as u32,
            stride: stride as u32,
        }
    }

    /// The weights of parent `parent`, unpacked to plain rows.
    pub fn to_rows(&self, parent: usize) -> ChunkRows {
        let parts = self.parts(parent);
        let children = self.children(parent);
        let mut entries = Vec::new();
        for part in parts {
            let chunk = self.chunk(part);
            for row in 0..chunk.n_rows() {
                chunk.for_each_in_row(row, |child, at| {
                    let column = chunk.first_child + child - children.start;
                    entries.push((chunk.feature(row), column, self.values.get(chunk.value_start + at)));
                });
            }
        }
        let bias = self.bias[children.start as usize..children.end as usize].to_vec();
        // What was packed was in order.
        ChunkRows::from_entries(children.len(), entries, bias).unwrap_or_else(|e| panic!("a packed chunk: {e}"))
    }
}

impl<'a> ChunkView<'a> {
    /// Number of feature rows.
    pub fn n_rows(&self) -> usize {
        self.n_rows as usize
    }

    /// Number of children.
    pub fn width(&self) -> usize {
        self.width as usize
    }

    /// Number of the first child in the level.
    pub fn first_child(&self) -> u32 {
        self.first_child
    }

    /// Bytes of the headers and values.
    pub(crate) fn n_bytes(&self, dtype: DType) -> usize {
        size_of_val(self.headers) + (self.value_end - self.value_start) * dtype.n_bytes()
    }

    /// The feature of row `row`.
    #[inline(always)]
    pub fn feature(&self, row: usize) -> u32 {
        self.headers[row * self.stride as usize]
    }

    /// Start of the values of row `row`, relative to the chunk.
    #[inline(always)]
    pub fn offset(&self, row: usize) -> usize {
        self.headers[row * self.stride as usize + 1] as usize
    }

    /// The sibling mask of row `row`, in words of 32.
    #[inline(always)]
    pub fn mask(&self, row: usize) -> &'a [u32] {
        let at = row * self.stride as usize;
        &self.headers[at + 2..at + self.stride as usize]
    }

    /// True if each feature has its own slot.
    #[inline(always)]
    pub(crate) fn is_direct(&self, n_features: usize) -> bool {
        self.n_slots as usize == n_features
    }

    /// Calls `f(child, offset of its value inside the chunk)` for each weight of a row, children
    /// ascending.
    pub fn for_each_in_row(&self, row: usize, mut f: impl FnMut(u32, usize)) {
        let mut at = self.offset(row);
        for (word, &mask) in self.mask(row).iter().enumerate() {
            let mut bits = mask;
            while bits != 0 {
                f(word as u32 * 32 + bits.trailing_zeros(), at);
                bits &= bits - 1;
                at += 1;
            }
        }
    }
}
