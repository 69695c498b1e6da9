//! A graph as plain arrays, for callers that store it with other data.

use crate::code::codes::{Codes, stride};
use crate::code::vertex_rows::Items;
use crate::graph::edges::{EdgeRows, NONE, filled};
use crate::graph::whole::Graph;
use crate::params::{BuildParams, Fitted};
use thiserror::Error;
use xc_buffer::Buffer;

/// The content of a [`Graph`] without cells and [`BuildParams`]; cloning copies pointers.
#[derive(Clone, Debug)]
pub struct GraphState {
    /// Entry, counts, and the fitted scope, as bits.
    pub numbers: [u64; GraphState::N_NUMBERS],
    /// A row of bytes per vertex: [`GraphState::code_bytes`].
    pub codes: Buffer<u8>,
    /// Norm and scale of each vertex.
    pub sides: Buffer<[f32; 2]>,
    /// The vector subtracted from each row before encoding; empty for inner products.
    pub mean: Buffer<f32>,
    /// As many as the degree of each vertex, then `u32::MAX` to the end of its row.
    pub edges: Buffer<u32>,
    /// The row of each vertex; `u32::MAX` where it was deleted.
    pub first_rows: Buffer<u32>,
    /// By row, the next row that equals it; empty if no two rows are equal.
    pub next_rows: Buffer<u32>,
}

/// Arrays that no graph has.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("{what}")]
pub struct GraphStateError {
    /// What is wrong.
    pub what: &'static str,
}

impl GraphState {
    /// Length of `numbers`.
    pub const N_NUMBERS: usize = 11;

    /// Bytes of the code of a row of `width` coordinates.
    pub fn code_bytes(width: usize) -> usize {
        stride(width)
    }
}

impl Graph {
    /// The graph as arrays; its cells are left out.
    pub fn state(&self) -> GraphState {
        let fitted = self.fitted.map_or([0; 6], |of| {
            let (target, width, recall) = (of.target.to_bits(), u64::from(of.width.to_bits()), of.recall.to_bits());
            [1, of.k as u64, target, width, recall, of.n_queries as u64]
        });
        let mut numbers = [0; GraphState::N_NUMBERS];
        let factor = u64::from(self.factor().to_bits());
        let of_graph = [self.entry.into(), self.n_attached as u64, self.found_itself.to_bits(), factor];
        numbers[..4].copy_from_slice(&of_graph);
        numbers[4] = self.is_behind.into();
        numbers[5..].copy_from_slice(&fitted);
        GraphState {
            numbers,
            codes: self.codes.bytes.clone(),
            sides: self.codes.sides.clone(),
            mean: self.codes.mean.clone(),
            edges: self.edges.buffer().clone(),
            first_rows: self.items.first_rows().clone(),
            next_rows: self.items.next_rows().clone(),
        }
    }

    /// Restores the graph from its state: `params` are those that it was built with, `width` is that of its
    /// rows. No search panics afterwards, whatever the arrays hold.
    ///
    /// *Cost*: a pass over all arrays.
    ///
    /// # Errors
    /// Arrays that no graph has.
    pub fn restore(params: &BuildParams, width: usize, state: GraphState) -> Result<Self, GraphStateError> {
        let bad = |what| Err(GraphStateError { what });
        let GraphState { numbers, codes, sides, mean, edges, first_rows, next_rows } = state;
        let [entry, n_attached, found_itself, factor, is_behind, has_fitted, k, target, fitted_width, recall, n] =
            numbers;
        let float = |bits: u64| f32::from_bits(bits as u32);
        let params = BuildParams { alpha: Some(float(factor)), ..*params };
        if params.check(width).is_err() {
            return bad("settings that no graph is built with");
        }
        let fitted = (has_fitted == 1).then(|| Fitted {
            k: k as usize,
            target: f64::from_bits(target),
            width: float(fitted_width),
            cells: 0,
            recall: f64::from_bits(recall),
            n_queries: n as usize,
        });
        if fitted.is_some_and(|of| !of.is_sound()) {
            return bad("a fitted search width, count or recall that no fit finds");
        }
        let n = sides.len();
        if n >= NONE as usize || n > 0 && entry >= n as u64 {
            return bad("the entry is no vertex");
        }
        // A graph that was built empty takes nothing from its rows.
        let is_whole = codes.len() == n * stride(width)
            && edges.len() == n * params.max_degree
            && first_rows.len() == n
            && (mean.is_empty() || mean.len() == width);
        if !is_whole {
            return bad("arrays of different numbers of vertices");
        }
        if !sides.iter().flatten().chain(&mean[..]).all(|v| v.is_finite()) {
            return bad("a norm, scale or mean that is not finite");
        }
        for row in edges.chunks_exact(params.max_degree) {
            let filled = filled(row);
            if filled.iter().any(|&v| v as usize >= n) || row[filled.len()..].iter().any(|&v| v != NONE) {
                return bad("an edge to no vertex");
            }
        }
        let Some(items) = Items::of(first_rows, next_rows) else { return bad("a row that two vertices have") };
        if n > 0 && items.len() > 0 && !items.is_live(entry as u32) {
            return bad("the entry is a deleted vertex");
        }
        Ok(Self {
            codes: Codes { metric: params.metric, width, mean, bytes: codes, sides },
            edges: EdgeRows::of(edges, params.max_degree),
            items,
            entry: entry as u32,
            fitted,
            cells: None,
            n_attached: n_attached as usize,
            found_itself: f64::from_bits(found_itself),
            is_behind: is_behind == 1,
            params,
        })
    }
}
