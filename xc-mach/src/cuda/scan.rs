//! A scan of up to [`QUERIES`] queries.

use super::{DeviceAssignment, DeviceScanError, QUERIES};
use crate::decode::{BucketScoresError, Decoder};
use std::ops::Range;
use xc_kernels::cudarc::driver::CudaSlice;
use xc_kernels::{Shape, address, arguments};
use xc_sparse::rank::{LabelId, RankedBatch, Scored, TopK, from_rank_key, rank_key};

/// Labels of the first range, all of which are scored.
const FIRST: usize = 2048;
/// A range has so many times the labels of the one before: of these, about so many times k beat the bar.
const GROWTH: usize = 32;
/// Threads of a block that scores labels, fewer than those of other blocks: each has R numbers in shared memory.
const SCORERS: usize = 128;
const THREADS: usize = 256;

arguments! {
    /// Consecutive labels and how they fall into buckets.
    pub(super) struct XcMachLabels {
        hashes: u64,
        by_prime: u64,
        prime: u32,
        n_buckets: u32,
        by_buckets: u32,
        n_repetitions: u32,
        first: u32,
        n: u32,
    }
    /// Labels that passed a screen.
    pub(super) struct XcMachPassed {
        labels: u64,
        n: u64,
        room: u32,
        pad: u32,
    }
    /// Scores, and lines of them.
    pub(super) struct XcMachLines {
        scores: u64,
        lines: u64,
        least: u64,
        largest: u64,
        not_finite: u64,
        n: u64,
        n_queries: u32,
        pad: u32,
    }
    /// What labels that passed are compared with, and those that are kept.
    pub(super) struct XcMachRescore {
        lines: u64,
        bars: u64,
        network: u64,
        kept: u64,
        n_kept: u64,
        n_comparators: u32,
        decoder: u32,
    }
}

/// Queries that are scanned together.
pub(super) struct Batch<'a> {
    pub(super) of: &'a DeviceAssignment,
    pub(super) scores: &'a CudaSlice<f32>,
    /// The first query, and how many there are.
    pub(super) first: usize,
    pub(super) n: usize,
    pub(super) decoder: Decoder,
}

/// What a screen reads.
struct Screen {
    lines: CudaSlice<f32>,
    /// Least and largest score of each query.
    extents: Vec<[f32; 2]>,
    /// For the mean: 8-bit upper bounds of the lines.
    bounds: CudaSlice<u8>,
    /// For the others: a bit a score.
    marks: CudaSlice<u32>,
}

/// What a range of labels gave.
enum Found {
    /// Keys of the labels of each query that beat its bar.
    Keys(Vec<Vec<u64>>),
    /// More labels passed the screen than there is room for.
    TooMany,
}

impl Batch<'_> {
    /// Appends the answers of the queries.
    pub(super) fn scan(&self, labels: Range<LabelId>, k: usize, out: &mut RankedBatch) -> Result<(), DeviceScanError> {
        let mut screen = self.screen()?;
        let k = k.min(labels.len());
        let mut tops: Vec<TopK> = (0..self.n).map(|_| TopK::new(k)).collect();
        let (mut first, end) = (labels.start as usize, labels.end as usize);
        let mut size = FIRST.max(4 * k);
        while k > 0 && first < end {
            let bars: Option<Vec<Scored>> = tops.iter_mut().map(TopK::kth).collect();
            if bars.is_none() {
                // All of them pass.
                size = size.min(self.of.room);
            }
            let n = size.min(end - first);
            match self.range(first, n, bars.as_deref(), &mut screen)? {
                Found::TooMany => size = (n / GROWTH).max(self.of.room),
                Found::Keys(keys) => {
                    let offer =
                        |(top, keys): (&mut TopK, Vec<u64>)| keys.iter().for_each(|&key| top.push(from_rank_key(key)));
                    tops.iter_mut().zip(keys).for_each(offer);
                    first += n;
                    size = n * GROWTH;
                }
            }
        }
        let assignment = &self.of.assignment;
        let (n_repetitions, n_buckets) = (assignment.n_repetitions(), assignment.n_buckets());
        let scored = |s: &Scored| Scored { score: self.decoder.score(s.score, n_repetitions, n_buckets), ..*s };
        tops.iter_mut().for_each(|top| out.push_row(&top.sorted().iter().map(scored).collect::<Vec<_>>()));
        Ok(())
    }

    /// Lines of the queries' scores.
    fn screen(&self) -> Result<Screen, DeviceScanError> {
        let (device, n) = (&self.of.device, self.of.n_scores());
        let lines = device.zeros::<f32>(n * QUERIES)?;
        let (least, largest) = (device.upload(&[u32::MAX; QUERIES])?, device.zeros::<u32>(QUERIES)?);
        let not_finite = device.upload(&[u64::MAX; QUERIES])?;
        let args = XcMachLines {
            scores: address(self.scores) + (4 * self.first * n) as u64,
            lines: address(&lines),
            least: address(&least),
            largest: address(&largest),
            not_finite: address(&not_finite),
            n: n as u64,
            n_queries: self.n as u32,
            pad: 0,
        };
        let call = self.of.kernels.lines.call(device.stream()).arg(&args);
        // SAFETY: the struct is the kernel's, whose layout was compared; there are n scores a query, n lines, and
        // numbers for 32 queries.
        unsafe { call.launch(self.blocks(n.div_ceil(32))) }?;
        let not_finite = device.download(&not_finite)?;
        if let Some((query, &at)) = not_finite.iter().enumerate().find(|&(_, &at)| at != u64::MAX) {
            let query = self.first + query;
            let value = self.scores.slice(query * n + at as usize..query * n + at as usize + 1);
            let (position, bucket) =
                (at as usize / self.of.assignment.n_buckets(), at as usize % self.of.assignment.n_buckets());
            let source = BucketScoresError::NotFinite { position, bucket, got: device.download(&value)?[0] };
            return Err(DeviceScanError::Scores { query, source });
        }
        let (least, largest) = (device.download(&least)?, device.download(&largest)?);
        let extents =
            least.iter().zip(&largest).take(self.n).map(|(&low, &high)| [low, high].map(from_ascending)).collect();
        let is_mean = self.decoder == Decoder::Mean;
        let mut screen = Screen {
            lines,
            extents,
            bounds: device.zeros(if is_mean { n * QUERIES } else { 0 })?,
            marks: device.zeros(if is_mean { 0 } else { n })?,
        };
        if is_mean {
            self.bound(&mut screen)?;
        }
        Ok(screen)
    }

    /// Computes the upper bounds of the scores.
    fn bound(&self, screen: &mut Screen) -> Result<(), DeviceScanError> {
        let (device, n) = (&self.of.device, self.of.n_scores() as u64);
        let (mut least, mut scales) = ([0.0; QUERIES], [0.0; QUERIES]);
        for (query, &extent) in screen.extents.iter().enumerate() {
            (least[query], scales[query]) = (extent[0], steps(extent));
        }
        let (least, scales) = (device.upload(&least)?, device.upload(&scales)?);
        let call = self.of.kernels.bounds.call(device.stream()).arg(&screen.lines).arg(&least).arg(&scales);
        // SAFETY: n lines, as many bounds, and a number for each of 32 queries.
        unsafe { call.arg(&n).arg(&mut screen.bounds).launch(self.blocks(n as usize * QUERIES / THREADS + 1)) }?;
        Ok(())
    }

    /// Enough blocks for `n` of them, each of which may do the work of several.
    fn blocks(&self, n: usize) -> Shape {
        let most = 8 * self.of.device.limits().processors.max(1) as usize;
        Shape { grid: [n.min(most), 1, 1], threads: THREADS as u32, shared: 0 }
    }

    /// The labels of a range that beat the bars; without bars all of them, and there has to be room for them.
    fn range(
        &self,
        first: usize,
        n: usize,
        bars: Option<&[Scored]>,
        screen: &mut Screen,
    ) -> Result<Found, DeviceScanError> {
        let DeviceAssignment { device, room, kernels, labels, network, n_comparators, .. } = self.of;
        let labels = XcMachLabels { first: first as u32, n: n as u32, ..*labels };
        let (list, n_passed) = (device.zeros::<u32>(room * QUERIES)?, device.zeros::<u32>(QUERIES)?);
        let mut passed = XcMachPassed { labels: 0, n: 0, room: *room as u32, pad: 0 };
        if let Some(bars) = bars {
            (passed.labels, passed.n) = (address(&list), address(&n_passed));
            self.pass(labels, bars, screen, passed)?;
        }
        let (kept, n_kept) = (device.zeros::<u64>(room * QUERIES)?, device.zeros::<u32>(QUERIES)?);
        let mut keys = [u64::MAX; QUERIES];
        keys.iter_mut().zip(bars.unwrap_or_default()).for_each(|(key, &bar)| *key = rank_key(bar));
        let keys = device.upload(&keys)?;
        let args = XcMachRescore {
            lines: address(&screen.lines),
            bars: address(&keys),
            network: address(network),
            kept: address(&kept),
            n_kept: address(&n_kept),
            n_comparators: *n_comparators as u32,
            decoder: self.decoder as u32,
        };
        let shared = if self.decoder == Decoder::Median { 4 * SCORERS * labels.n_repetitions as usize } else { 0 };
        let grid = [n.min(*room).div_ceil(SCORERS), self.n, 1];
        let call = kernels.rescore.call(device.stream()).arg(&labels).arg(&passed).arg(&args);
        // SAFETY: the structs are the kernel's, whose layout was compared. Lists have `room` places a query, bars and
        // counts are for 32 queries; all of it lives until the counts have come back.
        unsafe { call.launch(Shape { grid, threads: SCORERS as u32, shared }) }?;
        let (n_passed, n_kept) = (device.download(&n_passed)?, device.download(&n_kept)?);
        if n_passed.iter().any(|&n| n as usize > *room) {
            return Ok(Found::TooMany);
        }
        let most = n_kept.iter().copied().max().unwrap_or(0) as usize;
        let found = if most == 0 { Vec::new() } else { device.download(&kept.slice(..most * QUERIES))? };
        let of =
            |(query, &n): (usize, &u32)| found.iter().skip(query).step_by(QUERIES).take(n as usize).copied().collect();
        Ok(Found::Keys(n_kept.iter().enumerate().take(self.n).map(of).collect()))
    }

    /// Lists the labels of a range that may beat the bars.
    fn pass(
        &self,
        labels: XcMachLabels,
        bars: &[Scored],
        screen: &mut Screen,
        passed: XcMachPassed,
    ) -> Result<(), DeviceScanError> {
        /// Labels of a block of the kernels.
        const SUMMED: usize = 512;
        const COUNTED: usize = 2048;
        let (device, kernels, n) = (&self.of.device, &self.of.kernels, labels.n as usize);
        let shape = |of_block: usize| Shape { grid: [n.div_ceil(of_block), 1, 1], threads: THREADS as u32, shared: 0 };
        if self.decoder == Decoder::Mean {
            let mut limits = [u32::MAX; QUERIES];
            for ((limit, bar), &extent) in limits.iter_mut().zip(bars).zip(&screen.extents) {
                *limit = least_sum(bar.score, extent, labels.n_repetitions);
            }
            let limits = device.upload(&limits)?;
            let call = kernels.mean.call(device.stream()).arg(&labels).arg(&screen.bounds).arg(&limits).arg(&passed);
            // SAFETY: the structs are the kernel's, whose layout was compared; a bound for each score, a limit for
            // each of 32 queries, lists of `room` places.
            return Ok(unsafe { call.launch(shape(SUMMED)) }?);
        }
        let mut least = [f32::INFINITY; QUERIES];
        least.iter_mut().zip(bars).for_each(|(to, bar)| *to = mark(bar.score));
        let (least, n_lines) = (device.upload(&least)?, self.of.n_scores() as u64);
        let call = kernels.marks.call(device.stream()).arg(&screen.lines).arg(&least).arg(&n_lines);
        // SAFETY: n lines, as many words, and a number for each of 32 queries.
        unsafe { call.arg(&mut screen.marks).launch(self.blocks(n_lines.div_ceil(8) as usize)) }?;
        let kernel = if self.decoder == Decoder::Min { &kernels.min } else { &kernels.median };
        let call = kernel.call(device.stream()).arg(&labels).arg(&screen.marks).arg(&passed);
        // SAFETY: as above; a word for each line.
        Ok(unsafe { call.launch(shape(COUNTED)) }?)
    }
}

/// The score of which the kernel made a number that ascends with it.
fn from_ascending(bits: u32) -> f32 {
    f32::from_bits(if bits >> 31 == 1 { bits & !(1 << 31) } else { !bits })
}

/// Steps of a bound in a unit of score: 255 from the least score to the largest. 0 where bounds cannot tell scores apart.
fn steps([least, largest]: [f32; 2]) -> f32 {
    let steps = 255.0 / (largest - least);
    if steps.is_finite() { steps } else { 0.0 }
}

/// The least sum of bounds of a label whose sum of `n` scores, rounded in whatever order, is above `bar`.
fn least_sum(bar: f32, extent: [f32; 2], n: u32) -> u32 {
    if extent[0] == extent[1] {
        // All labels have the same sum, and the first of them are at the bar.
        return u32::MAX;
    }
    let (steps, n) = (f64::from(steps(extent)), f64::from(n));
    let [least, largest] = extent.map(f64::from);
    // Each of n additions has an error of at most 2^-24 of a partial sum, which is at most n times the largest score; twice that.
    let rounding = n * n * least.abs().max(largest.abs()) * f64::from(f32::EPSILON);
    let sum = (f64::from(bar) - rounding - n * least) * steps * (1.0 - 1e-6);
    // What is no number, or below 0, becomes 0: every label passes.
    if rounding < 1e30 { sum as u32 } else { 0 }
}

/// The number that enough scores of a label exceed if its least one, or its median, is above `bar`.
fn mark(bar: f32) -> f32 {
    // Halves of the smallest numbers are rounded, so that a median may lie a little above both middle scores.
    if bar != 0.0 && bar.abs() < 1e-37 { bar - 1e-44 } else { bar }
}
