//! Dense products of row-major matrices.
//!
//! ```text
//!   C (m x n)  =  start  +  A (m x k) * B (k x n)        A and B with any strides: a transpose is a swap of two numbers
//!
//!   B is cut into chunks and packed into panels of a tile's width, once, by all threads; rows of C are split among the
//!   threads in whole tiles; each leaf packs its few rows of A and runs the tiles.
//! ```
//!
//! # Determinism
//! Every entry of C is one chain of additions in ascending k, whatever the split: the same bits at
//! any number of threads and for any cut into blocks. With leaves along k ([`product_in_leaves`],
//! [`product_by_rows`]) it is one chain a leaf, and the leaves are added in the order of
//! [`xc_buffer::sums`].
//!
//! # Rounded operands
//! [`MatmulPrecision::Bf16`] rounds A and B to bf16 where they are packed; sums stay f32. Machines
//! with AVX512_BF16 do two products for one then, others lose a little time; the bits are the same.

#![allow(unsafe_code, reason = "kernels written by hand for an instruction set")]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod job;
mod leaves;
mod pack;
mod packed;
mod scalar;
mod tile;

use job::{Next, Target};
pub use leaves::product_in_leaves;
use pack::{Operand, interleave, pack_columns, pack_rows};
pub use packed::{Packed, product_packed};
use rayon::prelude::*;
pub use scalar::bf16_of_products;
use serde::{Deserialize, Serialize};
use std::cell::{Cell, RefCell};
use std::ops::Range;
use tile::Tile;
use xc_buffer::parallel::{for_each_part_in_pool, in_pool};
use xc_buffer::simd::prefetch_all;
use xc_buffer::sums::{Blocks, TreeSum};

/// Places along k of a panel of B that is used once or a few times, and stays in the first-level cache.
const DEPTH: usize = 256;
/// Places of B packed at a time (4 MB).
const CHUNK: usize = 1 << 20;
/// Tiles of rows that are taken together where sums along k are cut into leaves.
const LEAF_TILES: usize = 4;

/// What is multiplied; sums are f32.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MatmulPrecision {
    /// The values themselves.
    #[default]
    F32,
    /// The values rounded to bf16 (nearest, ties to even; below 1.2e-38: 0 of the same sign).
    Bf16,
}

impl MatmulPrecision {
    /// The name that it is asked for by.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::Bf16 => "bf16",
        }
    }
}

/// A matrix to read, with any strides.
#[derive(Clone, Copy, Debug)]
pub struct MatRef<'a> {
    values: &'a [f32],
    rows: usize,
    columns: usize,
    row_stride: usize,
    column_stride: usize,
}

impl<'a> MatRef<'a> {
    /// A row-major matrix.
    ///
    /// # Panics
    /// If there are not `rows * columns` values.
    pub fn new(values: &'a [f32], rows: usize, columns: usize) -> Self {
        let expected = rows.checked_mul(columns);
        assert!(Some(values.len()) == expected, "{} values, expected {rows} x {columns}", values.len());
        Self { values, rows, columns, row_stride: columns, column_stride: 1 }
    }

    /// Values with other strides: row `i` begins at `i * strides.0`, its values are `strides.1` apart.
    ///
    /// # Panics
    /// If the last value is not among the values.
    pub fn with_strides(values: &'a [f32], (rows, columns): (usize, usize), strides: (usize, usize)) -> Self {
        let last = |n: usize, stride: usize| n.saturating_sub(1).checked_mul(stride);
        let end = last(rows, strides.0).zip(last(columns, strides.1)).and_then(|(row, column)| row.checked_add(column));
        let is_inside = rows == 0 || columns == 0 || end.is_some_and(|end| end < values.len());
        assert!(is_inside, "{} values, expected {rows} x {columns} by strides of {strides:?}", values.len());
        Self { values, rows, columns, row_stride: strides.0, column_stride: strides.1 }
    }

    /// The values that the matrix lies in.
    pub fn values(&self) -> &'a [f32] {
        self.values
    }

    /// Rows and columns.
    pub fn shape(&self) -> (usize, usize) {
        (self.rows, self.columns)
    }

    /// Values from one row to the next, and from one column to the next.
    pub fn strides(&self) -> (usize, usize) {
        (self.row_stride, self.column_stride)
    }

    /// The transpose, by strides.
    pub fn t(self) -> Self {
        Self {
            rows: self.columns,
            columns: self.rows,
            row_stride: self.column_stride,
            column_stride: self.row_stride,
            ..self
        }
    }
}

/// Something with rows that threads share out among themselves.
pub trait SplitRows: Send + Sized {
    /// The first `row` rows and the rest.
    fn split_at_row(self, row: usize) -> (Self, Self);
}

/// A row-major matrix to write.
#[derive(Debug)]
pub struct MatMut<'a> {
    values: &'a mut [f32],
    rows: usize,
    columns: usize,
}

impl<'a> MatMut<'a> {
    /// A row-major matrix.
    ///
    /// # Panics
    /// If there are not `rows * columns` values.
    pub fn new(values: &'a mut [f32], rows: usize, columns: usize) -> Self {
        MatRef::new(values, rows, columns);
        Self { values, rows, columns }
    }

    /// The values, row after row.
    pub fn into_values(self) -> &'a mut [f32] {
        self.values
    }

    /// Rows and columns.
    pub fn shape(&self) -> (usize, usize) {
        (self.rows, self.columns)
    }
}

impl SplitRows for MatMut<'_> {
    fn split_at_row(self, row: usize) -> (Self, Self) {
        let (a, b) = self.values.split_at_mut(row * self.columns);
        let (rows, columns) = (self.rows, self.columns);
        (Self { values: a, rows: row, columns }, Self { values: b, rows: rows - row, columns })
    }
}

/// Buffer of the packed operand, kept from product to product.
#[derive(Debug, Default)]
pub struct MatmulScratch {
    packed: Vec<f32>,
}

thread_local! {
    /// Packed rows of A, and rows of C that have no place of their own.
    static LEAF: RefCell<(Vec<f32>, TreeSum)> = const { RefCell::new((Vec::new(), TreeSum::new())) };
    /// The packed row of a product of one row.
    static ROW: Cell<Vec<f32>> = const { Cell::new(Vec::new()) };
}

/// What an entry of C begins with.
#[derive(Clone, Copy, Debug)]
pub enum Start<'a> {
    /// Nothing.
    Zero,
    /// The value of its column.
    Bias(&'a [f32]),
    /// What it is: a longer product goes on along k.
    Kept,
}

impl Start<'_> {
    /// That of some columns.
    fn of(self, columns: Range<usize>) -> Self {
        match self {
            Start::Bias(bias) => Start::Bias(&bias[columns]),
            Start::Zero | Start::Kept => self,
        }
    }

    /// Writes it to a row.
    fn write(self, row: &mut [f32]) {
        match self {
            Start::Zero => row.fill(0.0),
            Start::Bias(bias) => row.copy_from_slice(bias),
            Start::Kept => {}
        }
    }
}

/// `c = start + a * b`.
///
/// *Cost*: 2 m n k operations; the scratch grows to at most about 4 MB + k * 128 bytes.
///
/// # Panics
/// If shapes disagree.
pub fn product(
    c: MatMut<'_>,
    a: MatRef<'_>,
    b: MatRef<'_>,
    start: Start<'_>,
    products: MatmulPrecision,
    scratch: &mut MatmulScratch,
) {
    product_with(Tile::current(products), c, a, Operands::Matrix(b, scratch), start, true);
}

/// [`product`] on the calling thread alone, with the same bits: for small products of which the threads have one each,
/// and for work that is not to start a pool.
///
/// # Panics
/// If shapes disagree.
pub fn product_alone(
    c: MatMut<'_>,
    a: MatRef<'_>,
    b: MatRef<'_>,
    start: Start<'_>,
    products: MatmulPrecision,
    scratch: &mut MatmulScratch,
) {
    product_with(Tile::current(products), c, a, Operands::Matrix(b, scratch), start, false);
}

/// The second operand of a product.
enum Operands<'a> {
    /// As it is, and a buffer to pack it in.
    Matrix(MatRef<'a>, &'a mut MatmulScratch),
    /// Packed before.
    Packed(&'a Packed),
}

/// Pieces of a `k x n` operand in the order in which products take them: columns, and rows of them.
fn cuts(tile: Tile, (k, n): (usize, usize)) -> impl Iterator<Item = (Range<usize>, Range<usize>)> {
    let places = tile.words.count(k).clamp(1, tile.blocking.chunk_depth);
    let deep = places * tile.words.values();
    let wide = (CHUNK / places / tile.columns).max(1) * tile.columns;
    let columns = (0..n).step_by(wide).map(move |j| j..n.min(j + wide));
    columns.flat_map(move |columns| (0..k.max(1)).step_by(deep).map(move |p| (columns.clone(), p..k.min(p + deep))))
}

fn product_with(tile: Tile, c: MatMut<'_>, a: MatRef<'_>, mut b: Operands<'_>, start: Start<'_>, is_shared: bool) {
    let shape = match &b {
        Operands::Matrix(b, _) => b.shape(),
        Operands::Packed(b) => b.shape(),
    };
    assert!(a.columns == shape.0, "inner lengths {} and {}", a.columns, shape.0);
    let (m, n) = (a.rows, shape.1);
    assert!(c.shape() == (m, n), "a matrix of {:?} for a product of {m} x {n}", c.shape());
    let c = c.values;
    if let Start::Bias(bias) = start {
        assert!(bias.len() == n, "bias of {} for {n} columns", bias.len());
    }
    if m == 0 || n == 0 {
        return;
    }
    if let (1, Operands::Matrix(b, _)) = (m, &b) {
        return product_of_one(tile, c, a, *b, start, is_shared);
    }
    for (at, (columns, inner)) in cuts(tile, shape).enumerate() {
        let is_first = inner.start == 0;
        let chunk = match &mut b {
            Operands::Matrix(b, scratch) => Chunk::pack(tile, *b, inner, columns.clone(), is_shared, scratch),
            Operands::Packed(b) => b.chunk(at, &columns, inner),
        };
        let rows = MatMut { values: &mut *c, rows: m, columns: n };
        let start = if is_first { start.of(columns.clone()) } else { Start::Kept };
        let leaf = |first: usize, n_rows: usize, target: MatMut<'_>| {
            LEAF.with_borrow_mut(|(packed_a, _)| {
                let inner = chunk.inner.clone();
                let target = Target { c: &mut target.values[columns.start..], stride: n, start };
                chunk.multiply(a, first..first + n_rows, inner, packed_a, target);
            });
        };
        match is_shared {
            true => split(tile.rows, leaf_tiles(tile, m), 0, m, rows, &leaf),
            false => one_after_another(tile, m, rows, &leaf),
        }
    }
}

/// Tiles of rows that one leaf takes where there are `n` rows: fewer where there would be fewer leaves than threads.
fn leaf_tiles(tile: Tile, n: usize) -> usize {
    // Outside of a pool nobody is asked how many threads there would be.
    let n_threads = if in_pool() { rayon::current_num_threads() } else { 1 };
    n.div_ceil(tile.rows).div_ceil(n_threads).clamp(1, tile.blocking.leaf_tiles)
}

/// The product for a single row: each panel of B is packed where it is used once, in the
/// first-level cache, so that B is read and nothing is written but the answer.
///
/// *Floor*: reading B; the same bits as in a product of many rows, since the tiles are the same.
fn product_of_one(tile: Tile, c: &mut [f32], a: MatRef<'_>, b: MatRef<'_>, start: Start<'_>, is_shared: bool) {
    /// Panels of a task.
    const PANELS: usize = 16;
    let (n, k, columns) = (b.columns, a.columns, tile.columns);
    // Taken rather than borrowed: a thread that waits for others may begin another product.
    let mut packed_a = ROW.take();
    pack_rows(tile.words, tile.rows, a, 0..1, 0..k, &mut packed_a);
    let work = |task: usize, c: &mut [f32]| {
        LEAF.with_borrow_mut(|(panel, _)| {
            for (at, c) in c.chunks_mut(columns).enumerate() {
                let j = (task * PANELS + at) * columns;
                let mut edge = [0.0f32; 1024];
                start.of(j..j + c.len()).write(c);
                edge[..c.len()].copy_from_slice(c);
                for p in (0..tile.words.count(k)).step_by(DEPTH) {
                    let (inner, depth) = values_of(tile, &(0..k), p, DEPTH);
                    panel.resize(depth * columns, 0.0);
                    if b.row_stride == 1 {
                        // Columns of B are lines in memory: those of the next panel are asked for
                        // while this one is packed, since the machine does not foresee so many
                        // short lines.
                        for next in j + columns..n.min(j + 2 * columns) {
                            prefetch_all(&b.values[next * b.column_stride + inner.start..][..inner.len()]);
                        }
                    }
                    interleave(tile.words, Operand::B, panel, columns, b.t(), j..n.min(j + columns), inner);
                    let next = Next { b: panel.as_ptr(), c: edge.as_ptr() };
                    let a = &packed_a[p * tile.rows..][..depth * tile.rows];
                    tile.run(depth, a, panel, Target::add(&mut edge, columns), next);
                }
                c.copy_from_slice(&edge[..c.len()]);
            }
        });
    };
    match is_shared {
        true => for_each_part_in_pool(c, PANELS * columns, work),
        false => c.chunks_mut(PANELS * columns).enumerate().for_each(|(task, c)| work(task, c)),
    }
    ROW.set(packed_a);
}

/// Computes `a * b` a few rows at a time and hands each block of rows, with the rows of `target`
/// that belong to it, to `visit`; the whole product never exists. `b` is packed whole: it should be
/// small. Sums along k are in the order of `inner`.
///
/// # Panics
/// If shapes disagree.
pub fn product_by_rows<T: SplitRows>(
    a: MatRef<'_>,
    b: MatRef<'_>,
    inner: &Blocks,
    target: T,
    products: MatmulPrecision,
    scratch: &mut MatmulScratch,
    visit: &(impl Fn(usize, &[f32], T) + Sync),
) {
    let k = (a.columns, b.rows, inner.n_items());
    assert!(k.0 == k.1 && k.0 == k.2, "inner lengths {} and {}, leaves for {}", k.0, k.1, k.2);
    let tile = Tile::current(products);
    let n = b.columns;
    let chunk = Chunk::pack(tile, b, 0..b.rows, 0..n, true, scratch);
    let leaf = |first: usize, n_rows: usize, target: T| {
        // Taken rather than borrowed: a visit may make products itself, or wait for other threads.
        let (mut packed_a, mut block) = LEAF.take();
        block.begin(n_rows * n);
        for leaf in 0..inner.n_leaves() {
            let rows = first..first + n_rows;
            block.add(|sum| chunk.multiply(a, rows, inner.leaf(leaf), &mut packed_a, Target::from_zero(sum, n)));
        }
        visit(first, block.total(), target);
        LEAF.set((packed_a, block));
    };
    split(tile.rows, LEAF_TILES, 0, a.rows, target, &leaf);
}

/// Halves rows at tile boundaries until a leaf has `most` tiles.
fn split<T: SplitRows>(
    tile_rows: usize,
    most: usize,
    first: usize,
    n: usize,
    rows: T,
    leaf: &(impl Fn(usize, usize, T) + Sync),
) {
    if n <= most * tile_rows {
        if n > 0 {
            leaf(first, n, rows);
        }
        return;
    }
    let half = n.div_ceil(tile_rows).div_ceil(2) * tile_rows;
    let (a, b) = rows.split_at_row(half);
    let low = || split(tile_rows, most, first, half, a, leaf);
    rayon::join(low, || split(tile_rows, most, first + half, n - half, b, leaf));
}

/// The leaves of [`split`] on this thread.
fn one_after_another<T: SplitRows>(tile: Tile, n: usize, mut rows: T, leaf: &(impl Fn(usize, usize, T) + Sync)) {
    let most = tile.blocking.leaf_tiles * tile.rows;
    for first in (0..n).step_by(most) {
        let some = most.min(n - first);
        let (now, later) = rows.split_at_row(some);
        leaf(first, some, now);
        rows = later;
    }
}

/// The values along k that are in at most `depth` places from `place` on, and the number of those places.
fn values_of(tile: Tile, inner: &Range<usize>, place: usize, depth: usize) -> (Range<usize>, usize) {
    let begin = inner.start + place * tile.words.values();
    let end = inner.end.min(begin + depth * tile.words.values());
    (begin..end, tile.words.count(end - begin))
}

/// Some rows and columns of B in panels.
struct Chunk<'a> {
    tile: Tile,
    /// Rows of B, which are columns of A.
    inner: Range<usize>,
    n_columns: usize,
    packed: &'a [f32],
}

impl<'a> Chunk<'a> {
    /// Packs panel after panel; the threads of the pool share them, or this one does all of it.
    fn pack(
        tile: Tile,
        b: MatRef<'_>,
        inner: Range<usize>,
        columns: Range<usize>,
        is_shared: bool,
        scratch: &'a mut MatmulScratch,
    ) -> Self {
        let size = tile.columns * tile.words.count(inner.len());
        let length = columns.len().div_ceil(tile.columns) * size;
        scratch.packed.resize(scratch.packed.len().max(length), 0.0);
        let packed = &mut scratch.packed[..length];
        let fill = |(panel, out): (usize, &mut [f32])| {
            pack_columns(tile.words, tile.columns, b, panel, &inner, &columns, out);
        };
        if is_shared {
            packed.par_chunks_exact_mut(size.max(1)).enumerate().for_each(fill);
        } else {
            packed.chunks_exact_mut(size.max(1)).enumerate().for_each(fill);
        }
        Self { tile, inner, n_columns: columns.len(), packed }
    }

    /// `c = start + a[rows, within] * self[within]`. `within` begins at a place.
    fn multiply(
        &self,
        a: MatRef<'_>,
        rows: Range<usize>,
        within: Range<usize>,
        packed_a: &mut Vec<f32>,
        target: Target<'_>,
    ) {
        let Target { c, stride, start } = target;
        let Tile { rows: tile_rows, columns: tile_columns, blocking, .. } = self.tile;
        let mut edge = [0.0f32; 1024];
        let places = self.tile.words.count(self.inner.len());
        let first = self.tile.words.count(within.start - self.inner.start);
        if within.is_empty() && self.n_columns > 0 {
            // No tile runs.
            c.chunks_mut(stride).take(rows.len()).for_each(|row| start.write(&mut row[..self.n_columns]));
        }
        for p in (0..self.tile.words.count(within.len())).step_by(blocking.depth) {
            let start = if p == 0 { start } else { Start::Kept };
            let (inner, depth) = values_of(self.tile, &within, p, blocking.depth);
            pack_rows(self.tile.words, tile_rows, a, rows.clone(), inner, packed_a);
            let n_panels = self.n_columns.div_ceil(tile_columns);
            for (panel, j) in (0..self.n_columns).step_by(tile_columns).enumerate() {
                let at = |panel: usize| (panel * places + first + p) * tile_columns;
                let b = &self.packed[at(panel)..][..depth * tile_columns];
                // After the last panel the next rows begin with the first.
                let next_b = self.packed[at(if panel + 1 < n_panels { panel + 1 } else { 0 })..].as_ptr();
                let width = tile_columns.min(self.n_columns - j);
                let start = start.of(j..j + width);
                for (a, i) in packed_a.chunks_exact(depth * tile_rows).zip((0..rows.len()).step_by(tile_rows)) {
                    let height = tile_rows.min(rows.len() - i);
                    let at = i * stride + j;
                    let next_c = if i + height < rows.len() { at + tile_rows * stride } else { j + tile_columns };
                    let next_b = next_b.wrapping_add(i / tile_rows * Next::values_of_b(depth));
                    let next = Next { b: next_b, c: c.as_ptr().wrapping_add(next_c) };
                    if width == tile_columns && height == tile_rows {
                        self.tile.run(depth, a, b, Target { c: &mut c[at..], stride, start }, next);
                        continue;
                    }
                    // A tile over the edge works on a copy.
                    for r in 0..height {
                        let row = &mut c[at + r * stride..][..width];
                        start.write(row);
                        edge[r * tile_columns..][..width].copy_from_slice(row);
                    }
                    self.tile.run(depth, a, b, Target::add(&mut edge, tile_columns), next);
                    for r in 0..height {
                        c[at + r * stride..][..width].copy_from_slice(&edge[r * tile_columns..][..width]);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
