//! 8-bit codes of rows, and keys computed from them: smaller is nearer.
//!
//! ```text
//!   row of the codes   x ~ mean + scale * (byte - 128)       bytes fill whole cache lines
//!   beside it          (norm, scale)
//!   key, l2 | cosine   |q|^2 + norm - 2 * scale_q * scale * (sum of byte * byte_q - 128 * sum of byte_q)
//!   key, ip            -<q, mean> - scale_q * scale * (...)
//! ```
//!
//! An inner product is that with the mean, the same for all rows, and that with what a row has beyond it. So rows
//! are encoded without their mean under every metric, and queries with theirs under inner products: what all rows
//! have in common, such as the low bias of all labels, takes nothing of their 127 steps. Rows compare one another
//! without the mean.
//!
//! Each row has a scale of its own, so that no length is cut off: of inner products the largest rows
//! are the answers. Norms are those of the decoded rows: the error of a small distance then is that
//! of the difference, not of the rows. Sums of bytes are exact, and keys are computed in one order,
//! so that every machine finds the same neighbours.

use crate::code::product::{self, Asked, BLOCK, BLOCK_SIDES, BLOCK_STEP, Blocked, Coded, LINE};
use crate::code::vertex_rows::{LAST, square};
use crate::metric::Metric;
use rayon::prelude::*;
use std::ops::Range;
use xc_buffer::simd::{Isa, Loop, prefetch, vectorised_loop};
use xc_buffer::{Buffer, HugePageVec};
use xc_dense::DenseRows;
use xc_dense::dot;
use xc_sparse::rows::unit_scale;

/// Bytes that stand for 0 are this in a row of the codes.
const ZERO: u8 = 128;
/// Rows that one task encodes.
const TOGETHER: usize = 256;

/// Codes of the rows of an index.
#[derive(Clone, Debug)]
pub(crate) struct Codes {
    pub(crate) metric: Metric,
    /// Coordinates of a row.
    pub(crate) width: usize,
    /// What is taken from each row before it is encoded.
    pub(crate) mean: Buffer<f32>,
    /// [`stride`] bytes a row.
    pub(crate) bytes: Buffer<u8>,
    /// Norm and scale of each row.
    pub(crate) sides: Buffer<[f32; 2]>,
}

/// Bytes of a row of `width` coordinates.
pub(crate) fn stride(width: usize) -> usize {
    width.div_ceil(LINE).max(1) * LINE
}

/// Bytes of a row in a block.
pub(crate) fn block_stride(width: usize) -> usize {
    width.div_ceil(BLOCK_STEP).max(1) * BLOCK_STEP
}

/// A query, or a row used as one.
#[derive(Clone, Debug, Default)]
pub(crate) struct QueryCode {
    bytes: Vec<i8>,
    /// What a product of bytes and a row's scale is multiplied with.
    factor: f32,
    /// 128 times the sum of the bytes.
    shift: i32,
    norm: f32,
}

impl QueryCode {
    #[inline(always)]
    pub(crate) fn view(&self) -> Asked<'_> {
        Asked { bytes: &self.bytes, factor: self.factor, shift: self.shift, norm: self.norm }
    }
}

impl Codes {
    /// No rows yet; `mean` of the rows that are to come.
    pub(crate) fn new(metric: Metric, width: usize, mean: Vec<f32>) -> Self {
        Self { metric, width, mean: mean.into(), bytes: Vec::new().into(), sides: Vec::new().into() }
    }

    pub(crate) fn len(&self) -> usize {
        self.sides.len()
    }

    pub(crate) fn stride(&self) -> usize {
        stride(self.width)
    }

    /// Encodes `rows[items[i]]` as row i for all of them; where an item is [`LAST`] the code stays
    /// what it was.
    ///
    /// # Panics
    /// If another item is no row.
    pub(crate) fn encode(&mut self, rows: DenseRows<'_>, items: &[u32]) {
        let stride = self.stride();
        let (mut bytes, mut sides) = (HugePageVec::zeros(items.len() * stride), vec![[0.0; 2]; items.len()]);
        (bytes.par_chunks_mut(TOGETHER * stride), sides.par_chunks_mut(TOGETHER), items.par_chunks(TOGETHER))
            .into_par_iter()
            .enumerate()
            .for_each(|(part, (bytes, sides, items))| {
                let mut centred = Vec::new();
                let places = bytes.chunks_exact_mut(stride).zip(sides).zip(items);
                for (((bytes, side), &item), at) in places.zip(part * TOGETHER..) {
                    if item != LAST {
                        *side = self.encode_row(rows.row(item as usize), bytes, &mut centred);
                    } else if at < self.len() {
                        bytes.copy_from_slice(&self.bytes[at * stride..][..stride]);
                        *side = self.sides[at];
                    }
                }
            });
        (self.bytes, self.sides) = (bytes.into(), sides.into());
    }

    /// Encodes further rows behind those that are there.
    pub(crate) fn append(&mut self, rows: DenseRows<'_>, items: &[u32]) {
        let (mut bytes, mut sides) = (self.bytes.to_vec(), self.sides.to_vec());
        let (mut row, mut centred) = (vec![0; self.stride()], Vec::new());
        for &item in items {
            sides.push(self.encode_row(rows.row(item as usize), &mut row, &mut centred));
            bytes.extend_from_slice(&row);
        }
        (self.bytes, self.sides) = (bytes.into(), sides.into());
    }

    /// Encodes another vector as row `at`.
    pub(crate) fn replace(&mut self, at: usize, row: &[f32]) {
        self.replace_some(std::iter::once((at, row)));
    }

    /// Encodes other vectors as some of the rows.
    pub(crate) fn replace_some<'a>(&mut self, rows: impl Iterator<Item = (usize, &'a [f32])>) {
        let (stride, mut centred) = (self.stride(), Vec::new());
        let (mut bytes, mut sides) = (std::mem::take(&mut self.bytes), std::mem::take(&mut self.sides));
        let (all_bytes, all_sides) = (bytes.to_mut(), sides.to_mut());
        for (at, row) in rows {
            all_sides[at] = self.encode_row(row, &mut all_bytes[at * stride..][..stride], &mut centred);
        }
        (self.bytes, self.sides) = (bytes, sides);
    }

    /// Norm and scale of a row, whose bytes go to `bytes`.
    fn encode_row(&self, row: &[f32], bytes: &mut [u8], centred: &mut Vec<f32>) -> [f32; 2] {
        self.centre(row, centred);
        bytes.fill(ZERO);
        let Encoded { scale, squares, .. } = vectorised_loop(Encode::<1> { values: centred, to: bytes, zero: ZERO });
        [self.norm(scale, squares), scale]
    }

    /// The norm that keys of distances need: of a row of bytes whose squares have this sum.
    fn norm(&self, scale: f32, squares: i64) -> f32 {
        if self.metric == Metric::InnerProduct {
            0.0
        } else {
            (f64::from(scale) * f64::from(scale) * squares as f64) as f32
        }
    }

    /// A row as it is encoded: of unit length under the cosine, less the mean.
    fn centre(&self, row: &[f32], centred: &mut Vec<f32>) {
        debug_assert_eq!(row.len(), self.width, "coordinates of a row");
        centred.clear();
        let unit = if self.metric.is_angular() { unit_scale(row.iter().copied()) } else { 1.0 };
        if self.mean.is_empty() {
            centred.extend(row.iter().map(|&value| (f64::from(value) * unit) as f32));
        } else {
            // Rows that are nearly parallel differ by less than f32 holds of one of length 1.
            let beyond = |(&value, &mean): (&f32, &f32)| (f64::from(value) * unit - f64::from(mean)) as f32;
            centred.extend(row.iter().zip(&self.mean[..]).map(beyond));
        }
    }

    /// Encodes a query.
    pub(crate) fn query(&self, vector: &[f32], centred: &mut Vec<f32>, to: &mut QueryCode) {
        self.encode_query::<1>(vector, centred, to);
    }

    /// Encodes a query of blocks: a little coarser, so that products with two bytes fit 16 bits.
    pub(crate) fn query_of_blocks(&self, vector: &[f32], centred: &mut Vec<f32>, to: &mut QueryCode) {
        self.encode_query::<2>(vector, centred, to);
    }

    fn encode_query<const N: usize>(&self, vector: &[f32], centred: &mut Vec<f32>, to: &mut QueryCode) {
        let is_product = self.metric == Metric::InnerProduct;
        if !is_product {
            self.centre(vector, centred);
        }
        let values = if is_product { vector } else { &centred[..] };
        to.bytes.clear();
        to.bytes.resize(self.stride(), 0);
        let bytes = bytemuck::cast_slice_mut(&mut to.bytes[..]);
        let Encoded { scale, sum, squares } = vectorised_loop(Encode::<N> { values, to: bytes, zero: 0 });
        let norm = match is_product {
            true if self.mean.is_empty() => 0.0,
            true => -dot(vector, &self.mean),
            false => self.norm(scale, squares),
        };
        self.set(to, scale, sum, norm);
    }

    /// Row `at` as one that asks.
    pub(crate) fn row_as_query(&self, at: u32, to: &mut QueryCode) {
        let bytes = &self.bytes[at as usize * self.stride()..][..self.stride()];
        self.code_as_query(bytes, self.sides[at as usize], to);
    }

    fn code_as_query(&self, bytes: &[u8], [norm, scale]: [f32; 2], to: &mut QueryCode) {
        to.bytes.clear();
        to.bytes.extend(bytes.iter().map(|&byte| (byte ^ ZERO) as i8));
        let sum = to.bytes.iter().map(|&byte| i32::from(byte)).sum();
        self.set(to, scale, sum, norm);
    }

    fn set(&self, to: &mut QueryCode, scale: f32, sum: i32, norm: f32) {
        to.factor = if self.metric == Metric::InnerProduct { scale } else { 2.0 * scale };
        (to.shift, to.norm) = (i32::from(ZERO) * sum, norm);
    }

    pub(crate) fn view(&self) -> Coded<'_> {
        Coded { bytes: &self.bytes, sides: &self.sides }
    }

    /// The key of each listed row.
    pub(crate) fn keys(&self, isa: Isa, query: &QueryCode, rows: &[u32], to: &mut Vec<f32>) {
        keys(isa, self.view(), query, rows, to);
    }

    /// Copies rows so that they lie together.
    pub(crate) fn gather(&self, rows: impl Iterator<Item = u32>, to: &mut Gathered) {
        let stride = self.stride();
        to.bytes.clear();
        to.sides.clear();
        for row in rows {
            to.bytes.extend_from_slice(&self.bytes[row as usize * stride..][..stride]);
            to.sides.push(self.sides[row as usize]);
        }
    }

    /// The row nearest to the mean of all, which was taken from them, of those that may be taken.
    pub(crate) fn nearest_to_mean(&self, may: impl Fn(u32) -> bool) -> Option<u32> {
        let key = |at: u32| self.sides[at as usize][0];
        (0..self.len() as u32).filter(|&at| may(at)).min_by(|&a, &b| key(a).total_cmp(&key(b)))
    }

    /// Bytes held.
    pub(crate) fn n_bytes(&self) -> usize {
        self.bytes.len() + 8 * self.sides.len() + 4 * self.mean.len()
    }
}

/// Codes of rows that lie in blocks of [`BLOCK`], as [`product::block_keys`] wants them.
#[derive(Clone, Debug)]
pub(crate) struct Blocks {
    /// [`block_stride`].
    pub(crate) stride: usize,
    /// [`BLOCK`] times as many a block.
    pub(crate) bytes: Buffer<u8>,
    /// [`BLOCK_SIDES`] a block.
    pub(crate) sides: Buffer<f32>,
}

impl Codes {
    /// Copies rows into blocks, of which there are as many as `rows` fill; nothing is where [`LAST`] stands.
    pub(crate) fn blocks(&self, rows: &[u32]) -> Blocks {
        let (stride, n) = (block_stride(self.width), rows.len() / BLOCK);
        let (mut bytes, mut sides) = (HugePageVec::zeros(n * BLOCK * stride), vec![0.0f32; n * BLOCK_SIDES]);
        (bytes.par_chunks_mut(BLOCK * stride), sides.par_chunks_mut(BLOCK_SIDES), rows.par_chunks(BLOCK))
            .into_par_iter()
            .for_each(|(bytes, sides, rows)| {
                for (at, &row) in rows.iter().enumerate() {
                    if row == LAST {
                        sides[at] = f32::INFINITY;
                    } else {
                        self.put(row, at, bytes, sides);
                    }
                }
            });
        Blocks { stride, bytes: bytes.into(), sides: sides.into() }
    }

    /// Copies a row to a place of a block.
    fn put(&self, row: u32, at: usize, bytes: &mut [u8], sides: &mut [f32]) {
        let from = &self.bytes[row as usize * self.stride()..][..bytes.len() / BLOCK];
        for (four, from) in from.as_chunks::<4>().0.iter().enumerate() {
            bytes[4 * (BLOCK * four + at)..][..4].copy_from_slice(from);
        }
        [sides[at], sides[BLOCK + at]] = self.sides[row as usize];
    }
}

impl Blocks {
    /// Copies rows to places.
    pub(crate) fn set(&mut self, codes: &Codes, rows: impl Iterator<Item = (usize, u32)>) {
        let stride = self.stride;
        let (bytes, sides) = (self.bytes.to_mut(), self.sides.to_mut());
        for (place, row) in rows {
            let (block, at) = (place / BLOCK, place % BLOCK);
            let bytes = &mut bytes[block * BLOCK * stride..][..BLOCK * stride];
            codes.put(row, at, bytes, &mut sides[block * BLOCK_SIDES..][..BLOCK_SIDES]);
        }
    }

    /// The key of each place of some blocks, and a bit for each that is at most `limit`.
    #[inline(always)]
    pub(crate) fn keys(
        &self,
        isa: Isa,
        query: &QueryCode,
        blocks: Range<usize>,
        limit: f32,
        keys: &mut [f32; product::TOGETHER],
    ) -> u64 {
        let asked = query.view();
        // Bytes behind a row are 0 in a query.
        let asked = Asked { bytes: &asked.bytes[..self.stride], ..asked };
        let (bytes, sides) = (BLOCK * self.stride, BLOCK_SIDES);
        let blocks = Blocked {
            bytes: &self.bytes[blocks.start * bytes..blocks.end * bytes],
            sides: &self.sides[blocks.start * sides..blocks.end * sides],
        };
        product::block_keys(isa, asked, blocks, limit, keys)
    }

    /// Asks memory for the beginning of a block; what comes after it is guessed by the machine.
    #[inline(always)]
    pub(crate) fn prefetch(&self, block: usize) {
        let bytes = BLOCK * self.stride;
        (0..ASKED_FOR).for_each(|line| prefetch(&self.bytes, block * bytes + line * LINE));
        prefetch(&self.sides, block * BLOCK_SIDES);
    }

    pub(crate) fn n_bytes(&self) -> usize {
        self.bytes.len() + 4 * self.sides.len()
    }
}

/// Lines of a block that are asked for.
const ASKED_FOR: usize = 8;

fn keys(isa: Isa, coded: Coded<'_>, query: &QueryCode, rows: &[u32], to: &mut Vec<f32>) {
    to.clear();
    let mut keys = [0.0; product::TOGETHER];
    for rows in rows.chunks(product::TOGETHER) {
        product::keys(isa, query.view(), coded, rows, f32::INFINITY, &mut keys);
        to.extend_from_slice(&keys[..rows.len()]);
    }
}

/// Rows of codes that were copied to lie together.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    bytes: Vec<u8>,
    sides: Vec<[f32; 2]>,
}

impl Gathered {
    /// The key of each listed row, which are positions here.
    pub(crate) fn keys(&self, isa: Isa, query: &QueryCode, rows: &[u32], to: &mut Vec<f32>) {
        keys(isa, Coded { bytes: &self.bytes, sides: &self.sides }, query, rows, to);
    }

    /// Row `at` as one that asks.
    pub(crate) fn as_query(&self, codes: &Codes, at: usize, to: &mut QueryCode) {
        let bytes = &self.bytes[at * codes.stride()..][..codes.stride()];
        codes.code_as_query(bytes, self.sides[at], to);
    }
}

/// Rounds values to -127 to 127 of their scale: the bytes of these, above `zero`. The sums of the absolute values
/// of `N` neighbours are at most 127, and half of each more.
struct Encode<'a, const N: usize> {
    values: &'a [f32],
    to: &'a mut [u8],
    zero: u8,
}

/// Scale, sum and sum of squares of codes.
struct Encoded {
    scale: f32,
    sum: i32,
    squares: i64,
}

impl<const N: usize> Loop for Encode<'_, N> {
    type Output = Encoded;

    #[inline(always)]
    fn run(self) -> Encoded {
        // Bits of absolute values are ordered as the values are.
        let (groups, rest) = self.values.as_chunks::<N>();
        let size = |group: &[f32]| group.iter().fold(0.0, |sum, value| sum + value.abs()).to_bits();
        let largest = groups.iter().fold(size(rest), |most, group| size(group).max(most));
        let largest = f32::from_bits(largest);
        // Below 1e-30 the scale is 0.
        let scale = if largest < 1e-30 { 0.0 } else { largest / 127.0 };
        let inverse = if scale > 0.0 { 1.0 / scale } else { 0.0 };
        let (mut sum, mut squares) = (0, 0i64);
        for (values, to) in self.values.chunks(1024).zip(self.to.chunks_mut(1024)) {
            let mut squares_here = 0;
            for (value, to) in values.iter().zip(to) {
                // The bits below are those of the nearest integer, ties to even.
                let code = (value * inverse + TO_SIGNED).to_bits() as i32 - TO_SIGNED.to_bits() as i32;
                sum += code;
                squares_here += code * code;
                *to = (code + i32::from(self.zero)) as u8;
            }
            squares += i64::from(squares_here);
        }
        Encoded { scale, sum, squares }
    }
}

/// Added to a small number, the bits below are those of the nearest integer, ties to even.
const TO_SIGNED: f32 = 12_582_912.0;

/// Rows so many times as long as the median are excluded from the mean: one of length 4e6 among 3,000 would leave every
/// other with the same code.
const FAR: f64 = 100.0;

/// The mean of some rows: of unit vectors for the cosine. Nothing where there are none.
///
/// A few rows far beyond all others would move it to where none is, and what others differ by would be lost in
/// the distance that all have from there: they are left out.
pub(crate) fn mean_of(rows: DenseRows<'_>, listed: &[u32], metric: Metric) -> Vec<f32> {
    if listed.is_empty() {
        return Vec::new();
    }
    let squares: Vec<f64> = match metric.is_angular() {
        true => Vec::new(),
        false => listed.par_iter().map(|&row| square(rows.row(row as usize))).collect(),
    };
    let longest = longest_that_counts(squares.clone());
    let (mut sums, mut n) = (vec![0.0f64; rows.width()], 0usize);
    for (at, &row) in listed.iter().enumerate() {
        if squares.get(at).is_some_and(|&square| square > longest) {
            continue;
        }
        let row = rows.row(row as usize);
        let unit = if metric.is_angular() { unit_scale(row.iter().copied()) } else { 1.0 };
        sums.iter_mut().zip(row).for_each(|(sum, &value)| *sum += f64::from(value) * unit);
        n += 1;
    }
    sums.iter().map(|sum| (sum / n as f64) as f32).collect()
}

/// The largest square of a length that counts in the mean; where most rows are zeros all do.
fn longest_that_counts(mut squares: Vec<f64>) -> f64 {
    let middle = squares.len() / 2;
    if squares.is_empty() {
        return f64::INFINITY;
    }
    let (_, &mut median, _) = squares.select_nth_unstable_by(middle, f64::total_cmp);
    if median > 0.0 { median * FAR * FAR } else { f64::INFINITY }
}
