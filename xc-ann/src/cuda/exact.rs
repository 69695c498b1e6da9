//! Exact scans on a CUDA device, with the answers of [`exact`](fn@crate::exact).
//!
//! ```text
//!   queries x rows ─▶ product of f32 ─▶ rows whose score, off by at most a bound, may be among the best    on the device
//!                                  ─▶ their sums in f64 ─▶ scores, ranked                                  on the host
//! ```
//!
//! Scores never reach memory: a row is kept where it beats the bar of a query, which rises from part to part of the
//! rows ([`xc_kernels::best`]). A query that keeps more rows than there is room for, as with thousands of equal rows,
//! is answered by the CPU.

use super::sums::Sums;
use super::{queries_together, upload_rows};
use crate::code::centering::{Bound, Form, Frame, MOST, up};
use crate::code::vertex_rows::square;
use crate::graph::whole::Graph;
use crate::index::Index;
use crate::metric::Metric;
use crate::search::exact::{down, exact_among};
use crate::search::filter::Filter;
use crate::search::rerank::{Nearest, Scorer};
use rayon::prelude::*;
use std::ops::Range;
use xc_dense::DenseRows;
use xc_kernels::best::{Keeping, Kept};
use xc_kernels::cudarc::driver::CudaSlice;
use xc_kernels::product::{Operands, Rows, Tiles};
use xc_kernels::{Device, Error, Kernel, Plan, Shape, address, arguments};
use xc_sparse::rank::{RankedBatch, Scored, from_rank_key};

arguments! {
    /// `XcBound` of `ann.cu`.
    pub(super) struct BoundOnDevice {
        base: f32,
        by_length: f32,
        by_square: f32,
        longest: f32,
    }

    /// `XcOpen` of `ann.cu`.
    pub(super) struct Open {
        best: Keeping,
        sides: u64,
        lengths: u64,
        bounds: u64,
        form: u32,
        has_directions: u32,
    }
}

/// How often rows are gone over, before the CPU answers queries of which too many rows are kept.
const PASSES: usize = 4;
/// Bounds grow by this, for their roundings to f32 and of f32; they are no subnormal numbers, whose roundings are
/// coarse.
const SLACK: f64 = 1.0 + 1e-5;

impl BoundOnDevice {
    /// A bound that is nowhere smaller.
    fn of(bound: &Bound) -> Self {
        let at_least = |of: f64| up(of * SLACK).max(f32::MIN_POSITIVE);
        Self {
            base: at_least(bound.base),
            by_length: at_least(bound.by_length),
            by_square: up(bound.by_square * SLACK),
            longest: down(MOST.sqrt().min(MOST / bound.of_query)),
        }
    }
}

/// Rows on a device, to be scanned.
///
/// The rows stay where they are on the host, too: they answer the queries that the device cannot.
pub struct ExactScan<'a> {
    device: &'a Device,
    rows: DenseRows<'a>,
    metric: Metric,
    frame: Frame<'a>,
    /// Those rows that can be found; all where there are no bits.
    live: Option<Vec<u64>>,
    /// Rows as they are screened, `stride` values from one to the next; and as they are, where that differs.
    screened: CudaSlice<f32>,
    original: Option<CudaSlice<f32>>,
    stride: usize,
    sides: CudaSlice<f32>,
    lengths: CudaSlice<f32>,
    tiles: Tiles,
    narrow: Kernel,
    sums: Sums,
}

/// Some of the queries, and on the device what of the rows may be among their best.
struct Asked<'q> {
    queries: DenseRows<'q>,
    /// Numbers of those that have answers, and as they are compared with rows, with how far off scores may be.
    numbers: Vec<usize>,
    turned: Vec<f32>,
    bounds: Vec<BoundOnDevice>,
}

impl<'a> ExactScan<'a> {
    /// Copies rows to the device.
    ///
    /// *Cost*: 4 bytes of the device's memory a value, 8 where rows lie far from the origin for their distances, and 8
    /// a row; a pass over the rows.
    ///
    /// # Errors
    /// The device lacks memory, or fails.
    pub fn on(device: &'a Device, rows: DenseRows<'a>, metric: Metric) -> Result<Self, Error> {
        Self::among(device, rows, metric, None)
    }

    fn among(device: &'a Device, rows: DenseRows<'a>, metric: Metric, live: Option<Vec<u64>>) -> Result<Self, Error> {
        let frame = Frame::new(rows, metric);
        // Whole groups of 4 values are copied faster within the device.
        let (n, stride) = (rows.len(), rows.width().next_multiple_of(4));
        let copies = if frame.is_direct() { 1 } else { 2 };
        let plan = Plan::new().of::<f32>("rows", copies * n * stride).of::<f32>("lengths of rows", 2 * n);
        plan.of::<u64>("filter", n.div_ceil(64)).fits_on(device)?;
        let as_they_are = |part: Range<usize>, to: &mut Vec<f32>| {
            to.extend(&rows.values()[part.start * rows.width()..part.end * rows.width()]);
        };
        let as_screened = |part: Range<usize>, to: &mut Vec<f32>| {
            frame.part(part, to);
        };
        let (screened, original) = if frame.is_direct() {
            (upload_rows(device, rows, stride, as_they_are)?, None)
        } else {
            (upload_rows(device, rows, stride, as_screened)?, Some(upload_rows(device, rows, stride, as_they_are)?))
        };
        let (sides, lengths) = (device.upload(&frame.sides)?, device.upload(&frame.lengths)?);
        let (tiles, narrow) = (Tiles::load(device, "xc_ann_open")?, device.kernel("xc_ann_narrow")?);
        let sums = Sums::load(device, metric)?;
        Ok(Self { device, rows, metric, frame, live, screened, original, stride, sides, lengths, tiles, narrow, sums })
    }

    /// The `k` best rows of each query among those that pass the filter: the bytes of [`Index::exact`], or of
    /// [`exact`](fn@crate::exact).
    ///
    /// # Errors
    /// The device lacks memory, or fails.
    ///
    /// # Panics
    /// If widths differ.
    pub fn exact(&self, queries: DenseRows<'_>, k: usize, filter: Option<&Filter<'_>>) -> Result<RankedBatch, Error> {
        self.with_room(queries, k, filter, Kept::usual_room(self.rows.len(), k))
    }

    /// [`ExactScan::exact`], with room for so many rows that may be among the best of a query.
    pub(super) fn with_room(
        &self,
        queries: DenseRows<'_>,
        k: usize,
        filter: Option<&Filter<'_>>,
        room: usize,
    ) -> Result<RankedBatch, Error> {
        assert_eq!(self.rows.width(), queries.width(), "coordinates of rows and queries");
        let n = self.rows.len();
        let k = k.min(n);
        let room = room.max(2 * k).min(n);
        let live = self.live.as_deref().map(Filter::Bits);
        let passes = |row: u32| live.is_none_or(|live| live.passes(row)) && filter.is_none_or(|f| f.passes(row));
        let bits =
            (live.is_some() || filter.is_some()).then(|| self.device.upload(&bits_of(n, &passes))).transpose()?;
        let mut all = RankedBatch::new();
        for values in queries.values().chunks(queries_together(room) * queries.width()) {
            let asked = Asked::new(DenseRows::new(values, queries.width()), self.metric, &self.frame, k);
            let answers = self.answer(&asked, k, bits.as_ref(), room, &passes)?;
            answers.iter().for_each(|answer| all.push_row(answer));
        }
        Ok(all)
    }

    fn answer(
        &self,
        asked: &Asked<'_>,
        k: usize,
        bits: Option<&CudaSlice<u64>>,
        room: usize,
        passes: &(dyn Fn(u32) -> bool + Sync),
    ) -> Result<Vec<Vec<Scored>>, Error> {
        let mut answers = vec![Vec::new(); asked.queries.len()];
        let (n, m) = (self.rows.len(), asked.numbers.len());
        if m == 0 {
            return Ok(answers);
        }
        let (device, stream, width) = (self.device, self.device.stream(), self.rows.width());
        let turned = device.upload(&asked.turned)?;
        let bounds = device.upload(&asked.bounds)?;
        let rows = Rows::new(&self.screened, n, width, self.stride);
        let whole = Operands::new(Rows::new(&turned, m, width, self.stride), rows, None);
        let open = |keeping: &Keeping| self.open(keeping, &bounds, bits);
        let mut kept = Kept::new(device, m, k, room)?;
        let offer = |part: Range<usize>, keeping: &Keeping| {
            let operands = Operands { first: part.start as u64, n: part.len() as u32, ..whole };
            // SAFETY: rows and queries are there, of rows as many sides and lengths, and of queries as many bounds.
            unsafe { self.tiles.launch(stream, &operands, &open(keeping)) }
        };
        let wanted = k as u32;
        let narrow = |keeping: &Keeping, lost: &mut CudaSlice<u32>| {
            let open = open(keeping);
            let call = self.narrow.call(stream).arg(&open).arg(&wanted).arg(lost);
            // SAFETY: as above; a block a query.
            unsafe { call.launch(Shape { grid: [m, 1, 1], threads: 256, shared: 0 }) }
        };
        let incomplete = kept.search(device, n, PASSES, offer, narrow)?;
        let (keys, begin) = kept.gathered(device)?;
        let values: Vec<f32> = (0..m).flat_map(|at| asked.query(at)).copied().collect();
        let on_rows = (self.original.as_ref().unwrap_or(&self.screened), self.stride);
        let sums = self.sums.of(device, DenseRows::new(&values, width), on_rows, None, &keys, &begin)?;
        let keys = device.download(&keys)?;
        let found: Vec<Vec<Scored>> = (0..m)
            .into_par_iter()
            .map_init(Nearest::default, |nearest, at| {
                if incomplete.binary_search(&at).is_ok() {
                    let query = DenseRows::new(asked.query(at), width);
                    return exact_among(self.rows, query, self.metric, k, passes).row(0).to_vec();
                }
                nearest.reset(k);
                let scorer = Scorer::new(self.metric, asked.query(at));
                for of in begin[at] as usize..begin[at + 1] as usize {
                    nearest.push(from_rank_key(keys[of]).label, scorer.of_sums(sums[of]));
                }
                nearest.sorted().to_vec()
            })
            .collect();
        asked.numbers.iter().zip(found).for_each(|(&number, found)| answers[number] = found);
        Ok(answers)
    }

    fn open(&self, keeping: &Keeping, bounds: &CudaSlice<BoundOnDevice>, bits: Option<&CudaSlice<u64>>) -> Open {
        Open {
            best: Keeping { filter: bits.map_or(0, address), ..*keeping },
            sides: address(&self.sides),
            lengths: address(&self.lengths),
            bounds: address(bounds),
            form: match self.frame.form {
                Form::Distance => 0,
                Form::Product => 1,
                Form::Share => 2,
            },
            has_directions: self.metric.is_angular().into(),
        }
    }
}

impl<'q> Asked<'q> {
    fn new(queries: DenseRows<'q>, metric: Metric, frame: &Frame<'_>, k: usize) -> Self {
        let mut of = Self { queries, numbers: Vec::new(), turned: Vec::new(), bounds: Vec::new() };
        let stride = queries.width().next_multiple_of(4);
        for (number, query) in queries.iter().enumerate() {
            let has_direction = !metric.is_angular() || square(query) > 0.0;
            if k > 0 && has_direction {
                of.bounds.push(BoundOnDevice::of(&frame.query(query, &mut of.turned)));
                of.numbers.push(number);
                of.turned.resize(of.numbers.len() * stride, 0.0);
            }
        }
        of
    }

    fn query(&self, at: usize) -> &'q [f32] {
        self.queries.row(self.numbers[at])
    }
}

/// Bits of the rows that pass.
fn bits_of(n: usize, passes: &(dyn Fn(u32) -> bool + Sync)) -> Vec<u64> {
    let word = |at: usize| {
        let rows = 64 * at..n.min(64 * at + 64);
        rows.filter(|&row| passes(row as u32)).fold(0u64, |bits, row| bits | 1 << (row % 64))
    };
    (0..n.div_ceil(64)).into_par_iter().map(word).collect()
}

impl Graph {
    /// The rows on a device, those that can be found: its answers are those of [`Graph::exact`].
    ///
    /// # Errors
    /// See [`ExactScan::on`].
    ///
    /// # Panics
    /// If `rows` lacks rows of the graph.
    pub fn exact_scan_on<'a>(&self, device: &'a Device, rows: DenseRows<'a>) -> Result<ExactScan<'a>, Error> {
        ExactScan::among(device, rows, self.params.metric, self.items.live_bits(rows.len()))
    }
}

impl Index {
    /// The rows on a device: its answers are those of [`Index::exact`].
    ///
    /// # Errors
    /// See [`ExactScan::on`].
    pub fn exact_scan_on<'a>(&'a self, device: &'a Device) -> Result<ExactScan<'a>, Error> {
        self.graph().exact_scan_on(device, self.rows())
    }
}
