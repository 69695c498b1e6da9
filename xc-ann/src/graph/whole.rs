//! A graph over the codes of rows; the rows themselves stay with the caller.

use crate::code::codes::{self, Codes};
use crate::code::ivf::{Cells, Placed};
use crate::code::vertex_rows::Items;
use crate::error::BuildError;
use crate::graph::build;
use crate::graph::edges::EdgeRows;
use crate::metric::Metric;
use crate::observe::BuildEvent;
use crate::params::{BuildParams, Fitted};
use serde::Serialize;
use xc_buffer::Observer;
use xc_dense::DenseRows;
use xc_hash::stream::{Purpose, Stream, name};

/// A graph over the codes of rows, without the rows: the weights of a classifier can be searched in
/// place. Rows are given with each call, and must be those that the graph was built from.
///
/// Cloning copies pointers; a change copies what it changes. Any number of threads can search a graph
/// while one thread changes a clone of it, and switch to the new one when it is done.
#[derive(Clone, Debug)]
pub struct Graph {
    pub(crate) params: BuildParams,
    pub(crate) codes: Codes,
    pub(crate) edges: EdgeRows,
    pub(crate) items: Items,
    pub(crate) entry: u32,
    pub(crate) fitted: Option<Fitted>,
    pub(crate) cells: Option<Cells>,
    /// Vertices that no vertex led to before edges were added for them.
    pub(crate) n_attached: usize,
    /// Share of a sample's nearest rows that a narrow search found when all edges were made.
    pub(crate) found_itself: f64,
    /// Whether codes changed since the edges were made.
    pub(crate) is_behind: bool,
}

impl Graph {
    /// A graph that has not been measured.
    pub(crate) fn linked(
        rows: DenseRows<'_>,
        listed: &[u32],
        params: &BuildParams,
        queries: Option<DenseRows<'_>>,
        observer: &dyn Observer<BuildEvent>,
    ) -> Result<Self, BuildError> {
        let mean = codes::mean_of(rows, listed, params.metric);
        let items = Items::new(rows, listed, params.metric, &mean)?;
        let mut codes = Codes::new(params.metric, rows.width(), mean);
        codes.encode(rows, items.first());
        let edges = EdgeRows::new(codes.len(), params.max_degree);
        let mut graph = Self {
            params: *params,
            codes,
            edges,
            items,
            entry: 0,
            fitted: None,
            cells: None,
            n_attached: 0,
            found_itself: 1.0,
            is_behind: false,
        };
        graph.entry = graph.best_entry();
        let (order, n_passes) = (graph.order(), params.passes);
        observer.event(BuildEvent::Linking { n: n_passes * order.len() });
        for pass in 0..n_passes {
            // A later pass sees the edges of the last one.
            let is_last = pass + 1 == n_passes;
            let factor = if is_last || params.metric == Metric::InnerProduct { graph.factor() } else { 1.0 };
            let linking = build::Linking { keep: params.build_width, factor, again: pass > 0 };
            let entry = graph.entry;
            let mut batches = build::batches(order.len(), 1, linking.again);
            build::link(&graph.codes, &mut graph.edges, &order, &mut batches, &|_| entry, linking, observer)?;
        }
        if let Some(queries) = queries {
            graph.link_answers(&graph.answers_of(rows, queries));
        }
        graph.attach();
        Ok(graph)
    }

    /// Of pruning.
    pub(crate) fn factor(&self) -> f32 {
        self.params.alpha.unwrap_or(1.0)
    }

    /// Vertices but for the entry, in the order in which they are linked.
    pub(crate) fn order(&self) -> Vec<u32> {
        let mut order: Vec<u32> =
            (0..self.codes.len() as u32).filter(|&v| v != self.entry && self.items.is_live(v)).collect();
        Stream::new(name(self.params.seed, Purpose::Order, &[])).shuffle(&mut order);
        order
    }

    /// Where searches begin: for inner products the first row, which was the longest when the graph was
    /// built, else the one nearest to the mean.
    pub(crate) fn best_entry(&self) -> u32 {
        let is_live = |vertex: u32| self.items.is_live(vertex);
        let entry = match self.params.metric {
            Metric::InnerProduct => (0..self.codes.len() as u32).find(|&vertex| is_live(vertex)),
            _ => self.codes.nearest_to_mean(is_live),
        };
        entry.unwrap_or(0)
    }

    /// The settings it was built with, including those that the build chose.
    pub fn params(&self) -> &BuildParams {
        &self.params
    }

    /// Number of coordinates of a row.
    pub fn dim(&self) -> usize {
        self.codes.width
    }

    /// Number of rows that can be found: neither deleted nor, under the cosine, all zeros.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether no row can be found.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Numbers of the rows that can be found, ascending.
    pub fn live_rows(&self) -> Vec<u32> {
        let mut rows: Vec<u32> = (0..self.codes.len() as u32).flat_map(|vertex| self.items.rows(vertex)).collect();
        rows.sort_unstable();
        rows
    }

    /// One more than the largest number of a row that can be found: the number of rows that a search must be given.
    pub fn n_rows_needed(&self) -> usize {
        if self.is_empty() { 0 } else { self.items.largest() as usize + 1 }
    }

    /// Statistics of the graph.
    pub fn stats(&self) -> GraphStats {
        let live = || (0..self.codes.len() as u32).filter(|&v| self.items.is_live(v));
        let edges: usize = live().map(|v| self.edges.view().of(v).len()).sum();
        GraphStats {
            n_rows: self.len(),
            n_vertices: live().count(),
            n_free: self.codes.len() - live().count(),
            n_attached: self.n_attached,
            mean_degree: edges as f64 / live().count().max(1) as f64,
        }
    }

    /// Bytes of memory, without the rows.
    pub fn n_bytes(&self) -> usize {
        let cells = self.cells.as_ref().map_or(0, Cells::n_bytes);
        self.codes.n_bytes() + 4 * self.edges.values().len() + self.items.n_bytes() + cells
    }

    /// Number of cells; 0 if there are none.
    pub fn n_cells(&self) -> usize {
        self.cells.as_ref().map_or(0, Cells::len)
    }

    /// What cells are made of.
    pub(crate) fn placed<'a>(&'a self, rows: DenseRows<'a>) -> Placed<'a> {
        Placed { rows, items: &self.items, codes: &self.codes }
    }

    /// Bytes of a graph over `n` rows of `width` coordinates, without the rows.
    pub fn bytes(n: usize, width: usize, params: &BuildParams) -> usize {
        let n_cells = params.cells.unwrap_or_else(|| Cells::usual(n));
        let cells = if n_cells == 0 { 0 } else { Cells::bytes(n, n_cells, width) };
        n * (codes::stride(width) + 8 + 4 * params.max_degree + 4) + 4 * width + cells
    }
}

/// Statistics of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct GraphStats {
    /// Rows that can be found.
    pub n_rows: usize,
    /// Vertices: equal rows share one.
    pub n_vertices: usize,
    /// Vertices of deleted rows, which the next rows reuse.
    pub n_free: usize,
    /// Vertices that could not be reached before edges were added for them.
    pub n_attached: usize,
    /// Mean number of edges of a vertex.
    pub mean_degree: f64,
}
