//! Screening: may the score of a label be above a bar for any instance of a block?
//!
//! ```text
//!   input (batch x H) ──▶ ByteLines: 7 bits each, 64 instances in a cache line; what their rounding does, by instance
//!   weights of a tile ──▶ ScreenRows: 8 bits each; what their rounding does, by label
//!
//!   sum over connections of byte * byte   >   (bar - bias) in steps of both - margin   in some lane of 32: the block is worth the exact product
//! ```
//!
//! For nearly all instances, nearly all labels of a trained layer are false by more than a margin, and a
//! step needs to know no more about them. Sums of products of bytes are exact in integers, so that every
//! machine finds the same blocks; a line serves 64 instances, not 32, and four connections are one
//! instruction (two threads over 32,768 inputs: 14 to 17 G multiplications per second and core in bf16,
//! 30 to 32 here).
//!
//! # Margin
//! A label's connections are treated as if they were drawn from all inputs. The rounding of inputs then
//! adds to a score the mean rounding error of the instance's inputs per unit of weight, which is
//! subtracted, and a deviation: the standard deviation of those errors times the weights' norm. Both are
//! measured, since an instance with one large input rounds all others down. The rounding error of a
//! weight is assumed uniform within half a step: its deviation is `step / sqrt(12)` times the root of
//! the number of connections times the root mean square of the instance's inputs. The bar is lowered by
//! [`DEVIATIONS`] times the sum of both deviations. A score just above the bar is therefore missed
//! sometimes, one that is above it by several deviations hardly ever; the worst case is not bounded.

#![allow(unsafe_code, reason = "kernels written by hand for an instruction set")]

#[cfg(target_arch = "x86_64")]
pub(super) mod avx2;
#[cfg(target_arch = "x86_64")]
pub(super) mod avx512;
pub(super) mod scalar;

use super::matrix::Connections;
use bytemuck::{Pod, Zeroable};
use rayon::prelude::*;
use xc_buffer::simd::{Loop, vectorised_loop};
use xc_buffer::{FloatBuffer, HugePageVec};

/// Instances in a line of bytes: two blocks of [`super::LANES`].
pub const BYTE_LANES: usize = 64;
/// Standard deviations of a score's rounding error by which a bar is lowered.
pub const DEVIATIONS: f32 = 1.0;

/// One input of [`BYTE_LANES`] instances, 0 to 127: one cache line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C, align(64))]
pub struct ByteLine([u8; BYTE_LANES]);

impl Default for ByteLine {
    fn default() -> Self {
        Self::zeroed()
    }
}

/// The value that an integer sum is compared with, for each lane in the order of the products' output:
/// groups of four, taken in turn from each sixteen.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C, align(64))]
pub struct LaneBounds {
    /// One over the step of an instance's bytes.
    pub(crate) inverse: [f32; BYTE_LANES],
    /// What the rounding of weights does, but for the root of the connections.
    pub(crate) of_weights: [f32; BYTE_LANES],
    /// What the rounding of inputs does, but for the norm of the weights.
    pub(crate) of_inputs: [f32; BYTE_LANES],
    /// The byte that stands for 0, less the mean rounding error.
    pub(crate) shift: [f32; BYTE_LANES],
}

/// The instance that position `at` of a [`LaneBounds`] belongs to: four-byte groups are taken in
/// turn from each sixteen.
pub(crate) fn lane_of(at: usize) -> usize {
    let (turn, rest) = (at / 16, at % 16);
    rest / 4 * 16 + turn * 4 + rest % 4
}

/// A block of 64 instances.
#[derive(Clone, Copy, Debug)]
pub struct ByteBlock<'a> {
    /// One line an input.
    pub(crate) lines: &'a [ByteLine],
    /// The instances' scales and margins.
    pub(crate) bounds: &'a LaneBounds,
}

/// Inputs of a batch in 7 bits: blocks of [`BYTE_LANES`] instances, each with one [`ByteLine`] per
/// input. A half without instances passes screening only for labels without connections or with numbers
/// that are not finite.
#[derive(Debug, Default)]
pub struct ByteLines {
    lines: HugePageVec<ByteLine>,
    bounds: Vec<LaneBounds>,
    n_inputs: usize,
}

/// Largest byte of an input: two products of bytes then fit 16 bits.
const MOST: f32 = 127.0;
/// The byte of 0 where inputs may be below it.
const SIGNED_ZERO: f32 = 64.0;
/// Magnitudes below this count as 0: 127 over a little less is infinite.
const LEAST: f32 = 1e-30;
/// Added to a number from 0 to below 2^23, the bits below are those of the nearest integer, ties to
/// even.
const TO_INTEGER: f32 = 8_388_608.0;
/// The same for numbers of both signs.
const TO_SIGNED: f32 = 12_582_912.0;
/// Inputs that are transposed at a time.
const STRIPE: usize = 64;

/// Range statistics of a row, for quantisation.
#[derive(Clone, Copy, Debug, Default)]
struct Extent {
    /// Largest absolute value; not finite if any is not.
    largest: f32,
    squares: f32,
    is_signed: bool,
}

impl Extent {
    #[inline(always)]
    fn of(values: &[f32]) -> Self {
        // Bits of absolute values are ordered as the values are, those of infinity and NaN above
        // all others.
        let (mut largest, mut signs, mut squares) = ([0u32; 16], [0u32; 16], [0.0f32; 16]);
        let mut take = |k: usize, value: f32| {
            let bits = value.to_bits();
            largest[k] = largest[k].max(bits & 0x7fff_ffff);
            // The sign bit, unless it is that of -0.
            signs[k] |= bits & bits.wrapping_sub(1);
            squares[k] += value * value;
        };
        let (chunks, rest) = values.as_chunks::<16>();
        chunks.iter().for_each(|chunk| (0..16).for_each(|k| take(k, chunk[k])));
        rest.iter().enumerate().for_each(|(k, &value)| take(k, value));
        Self {
            largest: f32::from_bits(largest.into_iter().fold(0, u32::max)),
            squares: squares.into_iter().sum(),
            is_signed: signs.into_iter().any(|sign| sign >> 31 == 1),
        }
    }

    fn is_finite(self) -> bool {
        self.largest.is_finite() && self.squares.is_finite()
    }

    /// Factor that makes the largest value `most` steps.
    fn factor(self, most: f32) -> f32 {
        if self.largest >= LEAST { most / self.largest } else { 0.0 }
    }

    /// Factor of a bar that is compared with such steps, and the root of a sum of squares in them.
    /// Where all numbers count as 0, any other bar than 0 is far away.
    fn in_steps(self, most: f32, squares: f32) -> (f32, f32) {
        match self.factor(most) {
            _ if !self.is_finite() => (f32::NAN, f32::NAN),
            0.0 => (f32::INFINITY, 0.0),
            factor => (factor, squares.sqrt() * factor),
        }
    }
}

impl ByteLines {
    /// Takes row-major values, one row per instance.
    ///
    /// # Panics
    /// If the number of values is not `len * n_inputs`.
    pub fn fill(&mut self, values: &[f32], len: usize, n_inputs: usize) {
        let expected = len.checked_mul(n_inputs);
        assert!(Some(values.len()) == expected, "{} values, expected {len} x {n_inputs}", values.len());
        let n_blocks = len.div_ceil(BYTE_LANES);
        self.lines.resize(n_blocks * n_inputs);
        self.n_inputs = n_inputs;
        self.bounds.clear();
        self.bounds.resize(n_blocks, LaneBounds::NEVER);
        if n_blocks * n_inputs == 0 {
            return;
        }
        let rows = values.par_chunks(BYTE_LANES * n_inputs);
        let blocks = self.lines.par_chunks_mut(n_inputs).zip(&mut self.bounds).zip(rows);
        blocks.for_each(|((lines, bounds), rows)| vectorised_loop(Block { lines, bounds, rows }));
    }

    /// Number of blocks.
    pub fn n_blocks(&self) -> usize {
        self.bounds.len()
    }

    /// The instances from `block * BYTE_LANES` on.
    ///
    /// # Panics
    /// If `block >= n_blocks()`.
    pub fn block(&self, block: usize) -> ByteBlock<'_> {
        ByteBlock { lines: &self.lines[block * self.n_inputs..][..self.n_inputs], bounds: &self.bounds[block] }
    }

    /// Bytes of `len` instances.
    pub fn bytes(len: usize, n_inputs: usize) -> u64 {
        len.div_ceil(BYTE_LANES) as u64 * (n_inputs * size_of::<ByteLine>() + size_of::<LaneBounds>()) as u64
    }
}

impl LaneBounds {
    /// No instance.
    const NEVER: Self = Self {
        inverse: [1.0; BYTE_LANES],
        of_weights: [f32::NEG_INFINITY; BYTE_LANES],
        of_inputs: [0.0; BYTE_LANES],
        shift: [0.0; BYTE_LANES],
    };
}

/// Sums over the rounding errors of an instance's inputs, in steps.
#[derive(Clone, Copy, Default)]
struct Errors {
    sums: [f32; 16],
    squares: [f32; 16],
}

impl Errors {
    /// Mean and standard deviation.
    fn moments(&self, n: usize) -> (f32, f32) {
        let [sum, squares] = [self.sums, self.squares].map(|of| of.into_iter().sum::<f32>() / n as f32);
        (sum, (squares - sum * sum).max(0.0).sqrt())
    }
}

/// Instances that become a block of bytes.
struct Block<'a> {
    lines: &'a mut [ByteLine],
    bounds: &'a mut LaneBounds,
    rows: &'a [f32],
}

impl Loop for Block<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        fill_block(self.lines, self.bounds, self.rows);
    }
}

#[inline(always)]
fn fill_block(lines: &mut [ByteLine], bounds: &mut LaneBounds, rows: &[f32]) {
    let n_inputs = lines.len();
    let mut extents = [Extent::default(); BYTE_LANES];
    extents.iter_mut().zip(rows.chunks_exact(n_inputs)).for_each(|(extent, row)| *extent = Extent::of(row));
    let zero = if extents.iter().any(|extent| extent.is_signed) { SIGNED_ZERO } else { 0.0 };
    let most = MOST - zero;
    let mut errors = [Errors::default(); BYTE_LANES];
    let mut bytes = [[0u8; STRIPE]; BYTE_LANES];
    for (first, stripe) in (0..).step_by(STRIPE).zip(lines.chunks_mut(STRIPE)) {
        let rows = rows.chunks_exact(n_inputs).zip(&extents).zip(&mut errors);
        for (bytes, ((row, extent), errors)) in bytes.iter_mut().zip(rows) {
            to_bytes(&row[first..first + stripe.len()], extent.factor(most), zero, bytes, errors);
        }
        for (j, line) in stripe.iter_mut().enumerate() {
            for i in 0..BYTE_LANES {
                line.0[i] = bytes[i][j];
            }
        }
    }
    let n = rows.len() / n_inputs;
    for (at, i) in (0..BYTE_LANES).map(|at| (at, lane_of(at))).filter(|&(_, i)| i < n) {
        let (inverse, root_mean_square) = extents[i].in_steps(most, extents[i].squares / n_inputs as f32);
        let (mean, deviation) = errors[i].moments(n_inputs);
        bounds.inverse[at] = inverse;
        bounds.of_weights[at] = DEVIATIONS / 12f32.sqrt() * root_mean_square;
        bounds.of_inputs[at] = DEVIATIONS * deviation;
        bounds.shift[at] = zero - mean;
    }
}

/// Bytes of a stripe of an instance's inputs.
#[inline(always)]
fn to_bytes(values: &[f32], factor: f32, zero: f32, bytes: &mut [u8; STRIPE], errors: &mut Errors) {
    let mut take = |k: usize, value: f32, byte: &mut u8| {
        let exact = value * factor + zero;
        let rounded = exact + TO_INTEGER;
        // The mask keeps in range what numbers that are not finite leave.
        *byte = rounded.to_bits() as u8 & 0x7f;
        let error = exact - (rounded - TO_INTEGER);
        errors.sums[k] += error;
        errors.squares[k] += error * error;
    };
    let (values, rest) = values.as_chunks::<16>();
    let (bytes, _) = bytes.as_chunks_mut::<16>();
    for (values, bytes) in values.iter().zip(&mut *bytes) {
        (0..16).for_each(|k| take(k, values[k], &mut bytes[k]));
    }
    if let Some(bytes) = bytes.get_mut(values.len()) {
        rest.iter().zip(bytes).enumerate().for_each(|(k, (&value, byte))| take(k, value, byte));
    }
}

/// A label's weights in 8 bits.
#[derive(Clone, Copy, Debug)]
pub struct ScreenRow<'a> {
    /// Four weights each, in the order of memory; beyond the last connection zeros.
    pub(crate) weights: &'a [u32],
    /// What the integer sums are compared with.
    pub(crate) bound: RowBound,
}

/// The bound of a label's integer sums.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RowBound {
    /// The bar less the bias, over the step of the weights.
    pub(crate) bar: f32,
    /// Root of the number of connections.
    pub(crate) root: f32,
    /// Norm of the weights in steps.
    pub(crate) norm: f32,
    /// Sum of the weights in steps.
    pub(crate) total: f32,
}

/// The weights of some labels in 8 bits.
#[derive(Debug, Default)]
pub struct ScreenRows {
    weights: Vec<u32>,
    bounds: Vec<RowBound>,
    /// Where the weights of each label begin; as many and one more.
    starts: Vec<usize>,
}

/// Labels of a task.
const LABELS: usize = 256;

impl ScreenRows {
    /// Takes `len` labels, given by `label`, to be compared with a bar. `biases` has one bias for every
    /// label.
    pub fn fill(
        &mut self,
        connections: &Connections,
        biases: &[f32],
        bar: f32,
        len: usize,
        label: impl Fn(usize) -> usize + Sync,
    ) {
        self.starts.clear();
        self.starts.push(0);
        let mut end = 0;
        self.starts.extend((0..len).map(|at| {
            end += connections.range(label(at)).len().div_ceil(4);
            end
        }));
        self.weights.resize(end, 0);
        self.bounds.resize(len, RowBound::default());
        let starts = &self.starts;
        let mut rest = &mut self.weights[..];
        let mut tasks = Vec::with_capacity(len.div_ceil(LABELS));
        for (first, bounds) in (0..).step_by(LABELS).zip(self.bounds.chunks_mut(LABELS)) {
            let (own, others) = rest.split_at_mut(starts[first + bounds.len()] - starts[first]);
            rest = others;
            tasks.push((first, bounds, own));
        }
        tasks.into_par_iter().for_each_init(Vec::new, |room, (first, bounds, groups)| {
            let starts = &starts[first..];
            vectorised_loop(Labels { first, bounds, groups, room, starts, connections, biases, bar, label: &label });
        });
    }

    /// The row at a position.
    #[inline(always)]
    pub fn row(&self, at: usize) -> ScreenRow<'_> {
        ScreenRow { weights: &self.weights[self.starts[at]..self.starts[at + 1]], bound: self.bounds[at] }
    }

    /// Bytes per label.
    pub fn bytes_each(fan_in: usize) -> u64 {
        (4 * fan_in.div_ceil(4) + size_of::<RowBound>() + size_of::<usize>()) as u64
    }
}

/// Labels from `first` on whose weights become bytes.
struct Labels<'a, F> {
    first: usize,
    bounds: &'a mut [RowBound],
    groups: &'a mut [u32],
    room: &'a mut Vec<f32>,
    starts: &'a [usize],
    connections: &'a Connections,
    biases: &'a [f32],
    bar: f32,
    label: &'a F,
}

impl<F: Fn(usize) -> usize> Loop for Labels<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { first, bounds, groups, room, starts, connections, biases, bar, label } = self;
        let weights = connections.weights();
        for (at, bound) in bounds.iter_mut().enumerate() {
            let label = label(first + at);
            let range = connections.range(label);
            let row = match weights {
                FloatBuffer::F32(values) => &values[range],
                _ => {
                    room.resize(range.len(), 0.0);
                    weights.widen(range, room);
                    &room[..]
                }
            };
            let groups = &mut groups[starts[at] - starts[0]..starts[at + 1] - starts[0]];
            *bound = quantise(row, groups, bar - biases[label]);
        }
    }
}

/// Weights to bytes of -127 to 127.
#[inline(always)]
fn quantise(weights: &[f32], groups: &mut [u32], bar: f32) -> RowBound {
    let extent = Extent::of(weights);
    let factor = extent.factor(MOST);
    // Beyond the last weight stand zeros, whatever the group held before.
    if let Some(last) = groups.last_mut() {
        *last = 0;
    }
    let bytes: &mut [i8] = bytemuck::cast_slice_mut(groups);
    for (byte, &weight) in bytes.iter_mut().zip(weights) {
        *byte = (weight * factor + TO_SIGNED).to_bits() as i8;
    }
    let total: i32 = bytes.iter().map(|&byte| i32::from(byte)).sum();
    let (factor, norm) = extent.in_steps(MOST, extent.squares);
    RowBound { bar: bar * factor, root: (weights.len() as f32).sqrt(), norm, total: total as f32 }
}

impl RowBound {
    /// What the integer sum of a lane is compared with. No number where nothing is known: the block
    /// is then worth an exact product.
    #[inline(always)]
    pub(crate) fn of_lane(self, bounds: &LaneBounds, at: usize) -> f32 {
        let bar = self.bar * bounds.inverse[at];
        let bar = (-self.root).mul_add(bounds.of_weights[at], bar);
        let bar = (-self.norm).mul_add(bounds.of_inputs[at], bar);
        self.total.mul_add(bounds.shift[at], bar)
    }
}
