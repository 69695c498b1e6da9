//! Searches of cells on a device, with the answers of [`Graph::search_batch`].

use super::sums::Sums;
use super::{queries_together, upload_rows};
use crate::code::codes::{Blocks, QueryCode};
use crate::code::ivf::Cells;
use crate::code::product::BLOCK;
use crate::code::vertex_rows::{is_beyond, square};
use crate::error::QueryError;
use crate::graph::whole::Graph;
use crate::index::Index;
use crate::params::SearchParams;
use crate::search::beam::SearchStats;
use crate::search::rerank::{Nearest, Scorer};
use rayon::prelude::*;
use std::ops::Range;
use thiserror::Error;
use xc_dense::DenseRows;
use xc_kernels::best::{Keeping, Kept};
use xc_kernels::cudarc::driver::CudaSlice;
use xc_kernels::{Device, Kernel, Plan, Shape, address, arguments};
use xc_sparse::rank::{RankedBatch, Scored, from_rank_key};

arguments! {
    /// `XcCode` of `ann_cells.cu`.
    pub(super) struct Code {
        factor: f32,
        norm: f32,
        shift: i32,
    }

    /// `XcCells` of `ann_cells.cu`.
    pub(super) struct CellsOnDevice {
        bytes: u64,
        sides: u64,
        labels: u64,
        begins: u64,
        queries: u64,
        codes: u64,
        visits: u64,
        stride: u32,
        n_visits: u32,
        n_labels: u32,
    }
}

/// Cells that a query looks into before it has its first bar, the same again to its second, and so on.
const AT_ONCE: usize = 2;
/// Cells of a query that one launch looks into at most.
const MOST_VISITS: usize = 1 << 15;
/// Codes that a query has room for at least.
const ROOM: usize = 4096;

/// Why there are no answers.
#[derive(Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum CellsError {
    /// A query that has none on a CPU either.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// The device lacks memory, or failed.
    #[error(transparent)]
    Device(#[from] xc_kernels::Error),
}

/// Codes in blocks, on a device.
struct Coded {
    bytes: CudaSlice<u8>,
    sides: CudaSlice<f32>,
    /// The vertex of each place, or places themselves.
    labels: Option<CudaSlice<u32>>,
    /// Behind the last cell one of no blocks.
    begins: CudaSlice<u32>,
    n_labels: usize,
}

/// Codes of some queries, on a device.
struct Asked {
    bytes: CudaSlice<i8>,
    codes: CudaSlice<Code>,
}

/// The cells of a graph and its rows on a device.
pub struct CellSearch<'a> {
    device: &'a Device,
    graph: &'a Graph,
    cells: &'a Cells,
    rows: DenseRows<'a>,
    stride: usize,
    on_rows: CudaSlice<f32>,
    first: CudaSlice<u32>,
    means: Coded,
    coded: Coded,
    compare: Kernel,
    narrow: Kernel,
    sums: Sums,
}

impl Coded {
    fn new(
        device: &Device,
        blocks: &Blocks,
        begins: &[u32],
        labels: Option<&[u32]>,
        n_labels: usize,
    ) -> Result<Self, xc_kernels::Error> {
        Ok(Self {
            bytes: device.upload(&blocks.bytes[..])?,
            sides: device.upload(&blocks.sides[..])?,
            labels: labels.map(|labels| device.upload(labels)).transpose()?,
            begins: device.upload(&[begins, &begins[begins.len() - 1..]].concat())?,
            n_labels,
        })
    }
}

impl<'a> CellSearch<'a> {
    fn new(device: &'a Device, graph: &'a Graph, cells: &'a Cells, rows: DenseRows<'a>) -> Result<Self, CellsError> {
        let (n, stride) = (rows.len(), rows.width().next_multiple_of(4));
        let plan = Plan::new().of::<f32>("rows", n * stride).of::<u8>("codes", cells.n_bytes());
        plan.of::<u32>("numbers of rows", graph.items.first().len()).fits_on(device)?;
        let as_they_are = |part: Range<usize>, to: &mut Vec<f32>| {
            to.extend(&rows.values()[part.start * rows.width()..part.end * rows.width()]);
        };
        let n_means = cells.len().div_ceil(BLOCK) as u32;
        Ok(Self {
            device,
            graph,
            cells,
            rows,
            stride,
            on_rows: upload_rows(device, rows, stride, as_they_are)?,
            first: device.upload(graph.items.first())?,
            means: Coded::new(device, &cells.means, &[0, n_means], None, cells.len())?,
            coded: Coded::new(device, &cells.blocks, &cells.begins, Some(&cells.vertices), graph.codes.len())?,
            compare: device.kernel("xc_ann_cells")?,
            narrow: device.kernel("xc_sparse_narrow")?,
            sums: Sums::load(device, graph.params.metric)?,
        })
    }

    /// The answers of [`Graph::search_batch`] without a filter. A search that asks for a width, not for cells, is the
    /// CPU's.
    ///
    /// # Errors
    /// As [`Graph::search_batch`]; the device lacks memory, or fails.
    pub fn search_batch(
        &self,
        queries: DenseRows<'_>,
        params: SearchParams,
    ) -> Result<(RankedBatch, SearchStats), CellsError> {
        let Some((k, n_cells, keep)) = self.graph.kept_of_cells(self.rows, params) else {
            return Ok(self.graph.search_batch(self.rows, queries, params, None)?);
        };
        self.with_room(queries, k, n_cells, keep, ROOM)
    }

    pub(super) fn with_room(
        &self,
        queries: DenseRows<'_>,
        k: usize,
        n_cells: usize,
        keep: usize,
        room: usize,
    ) -> Result<(RankedBatch, SearchStats), CellsError> {
        let (graph, width) = (self.graph, queries.width());
        graph.check(Some(self.rows), width)?;
        let mut numbers = Vec::new();
        for (query, vector) in queries.iter().enumerate() {
            let squares = square(vector);
            if is_beyond(squares) {
                return Err(QueryError::NotFinite { query }.into());
            }
            // A query without a direction has no answers.
            if squares > 0.0 || !graph.params.metric.is_angular() {
                numbers.push(query);
            }
        }
        let (mut answers, mut effort) = (vec![Vec::new(); queries.len()], SearchStats::default());
        let room = room.max(4 * keep);
        for numbers in numbers.chunks(queries_together(room)) {
            let values: Vec<f32> = numbers.iter().flat_map(|&number| queries.row(number)).copied().collect();
            let (found, of_some) = self.answer(DenseRows::new(&values, width), k, n_cells, keep, room)?;
            numbers.iter().zip(found).for_each(|(&number, found)| answers[number] = found);
            effort += of_some;
        }
        let mut all = RankedBatch::new();
        answers.iter().for_each(|answer| all.push_row(answer));
        Ok((all, effort))
    }

    fn answer(
        &self,
        queries: DenseRows<'_>,
        k: usize,
        n_cells: usize,
        keep: usize,
        room: usize,
    ) -> Result<(Vec<Vec<Scored>>, SearchStats), xc_kernels::Error> {
        let (device, m, n_cells) = (self.device, queries.len(), n_cells.clamp(1, self.cells.len()));
        let asked = self.asked(queries)?;
        // Every query looks at all means, which are one cell.
        let one = vec![0; m];
        let nearest = self.look(&self.means, &asked, &one, 1, n_cells, room.max(2 * n_cells))?;
        let (keys, begin) = (device.download(&nearest.0)?, nearest.1);
        let mut visits = Vec::with_capacity(m * n_cells);
        for (query, ends) in begin.windows(2).enumerate() {
            let mut of_query = keys[ends[0] as usize..ends[1] as usize].to_vec();
            of_query.sort_unstable();
            visits.extend(of_query.into_iter().map(|key| from_rank_key(key).label));
            // Those whose keys are no numbers are not looked into.
            visits.resize((query + 1) * n_cells, self.cells.len() as u32);
        }
        let (keys, begin) = self.look(&self.coded, &asked, &visits, n_cells, keep, room)?;
        let rows = (&self.on_rows, self.stride);
        let sums = self.sums.of(device, queries, rows, Some(&self.first), &keys, &begin)?;
        let keys = device.download(&keys)?;
        let (metric, items) = (self.graph.params.metric, &self.graph.items);
        let found = (0..m).into_par_iter().map_init(Nearest::default, |nearest, at| {
            nearest.reset(k.min(items.len()));
            let scorer = Scorer::new(metric, queries.row(at));
            let of = begin[at] as usize..begin[at + 1] as usize;
            for (&key, &sums) in keys[of.clone()].iter().zip(&sums[of]) {
                // All rows of a vertex are equal.
                let score = scorer.of_sums(sums);
                items.rows(from_rank_key(key).label).for_each(|row| nearest.push(row, score));
            }
            nearest.sorted().to_vec()
        });
        let begins = &self.cells.begins;
        let mut effort =
            SearchStats { distances: (m * self.cells.len()) as u64, exact: begin[m], ..SearchStats::default() };
        for &cell in visits.iter().filter(|&&cell| (cell as usize) < self.cells.len()) {
            effort.distances += BLOCK as u64 * u64::from(begins[cell as usize + 1] - begins[cell as usize]);
            effort.hops += 1;
        }
        Ok((found.collect(), effort))
    }

    /// Codes of queries.
    fn asked(&self, queries: DenseRows<'_>) -> Result<Asked, xc_kernels::Error> {
        let stride = self.cells.blocks.stride;
        let mut bytes = vec![0i8; queries.len() * stride];
        let codes: Vec<Code> = bytes
            .par_chunks_mut(stride)
            .enumerate()
            .map_init(Default::default, |(centred, code): &mut (Vec<f32>, QueryCode), (at, bytes)| {
                self.graph.codes.query_of_blocks(queries.row(at), centred, code);
                let of = code.view();
                bytes.copy_from_slice(&of.bytes[..stride]);
                Code { factor: of.factor, norm: of.norm, shift: of.shift }
            })
            .collect();
        Ok(Asked { bytes: self.device.upload(&bytes)?, codes: self.device.upload(&codes)? })
    }

    /// The `keep` best of what is in `n_visits` cells of each query: keys of their vertices, and where those of a query
    /// begin and end.
    fn look(
        &self,
        coded: &Coded,
        asked: &Asked,
        visits: &[u32],
        n_visits: usize,
        keep: usize,
        room: usize,
    ) -> Result<(CudaSlice<u64>, Vec<u64>), xc_kernels::Error> {
        let (device, stream, m) = (self.device, self.device.stream(), visits.len() / n_visits);
        let on_visits = device.upload(visits)?;
        let stride = self.cells.blocks.stride;
        let cells = CellsOnDevice {
            bytes: address(&coded.bytes),
            sides: address(&coded.sides),
            labels: coded.labels.as_ref().map_or(0, address),
            begins: address(&coded.begins),
            queries: address(&asked.bytes),
            codes: address(&asked.codes),
            visits: address(&on_visits),
            stride: stride as u32,
            n_visits: n_visits as u32,
            n_labels: coded.n_labels as u32,
        };
        let offer = |part: Range<usize>, keeping: &Keeping| {
            let (from, keeping) = (part.start as u32, Keeping { label0: 0, ..*keeping });
            let call = self.compare.call(stream).arg(&cells).arg(&from).arg(&keeping);
            // SAFETY: cells, queries and visits are there, and `kept` has room for its rows.
            unsafe { call.launch(Shape { grid: [m, part.len(), 1], threads: 256, shared: stride }) }
        };
        let wanted = keep as u32;
        let narrow = |keeping: &Keeping, lost: &mut CudaSlice<u32>| {
            let call = self.narrow.call(stream).arg(keeping).arg(&wanted).arg(lost);
            // SAFETY: as above; a block a row.
            unsafe { call.launch(Shape { grid: [m, 1, 1], threads: 256, shared: 0 }) }
        };
        let (mut parts, mut done) = (Vec::new(), 0);
        while done < n_visits {
            let end = (2 * done).max(AT_ONCE).min(done + MOST_VISITS).min(n_visits);
            parts.push(done..end);
            done = end;
        }
        let mut kept = Kept::new(device, m, keep, room)?;
        // Bars become better each time, so that this ends.
        kept.search_parts(device, &parts, usize::MAX, offer, narrow)?;
        kept.gathered(device)
    }
}

impl Graph {
    /// The cells and rows on a device; nothing where there are no cells.
    ///
    /// *Cost*: 4 bytes of the device's memory a value, and those of the codes.
    ///
    /// # Errors
    /// The device lacks memory, or fails.
    ///
    /// # Panics
    /// If `rows` lacks rows of the graph.
    pub fn cells_on<'a>(
        &'a self,
        device: &'a Device,
        rows: DenseRows<'a>,
    ) -> Result<Option<CellSearch<'a>>, CellsError> {
        self.cells.as_ref().map(|cells| CellSearch::new(device, self, cells, rows)).transpose()
    }
}

impl Index {
    /// The cells and rows on a device: see [`Graph::cells_on`].
    ///
    /// # Errors
    /// The device lacks memory, or fails.
    pub fn cells_on<'a>(&'a self, device: &'a Device) -> Result<Option<CellSearch<'a>>, CellsError> {
        self.graph().cells_on(device, self.rows())
    }
}
