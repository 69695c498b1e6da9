//! Margins of all children of the clusters that queries reach: probes, then a pipeline over the
//! rows found.
//!
//! A row outside the first-level cache causes two waits, for its header and for its values. Rows are
//! therefore processed in blocks, each in three steps that are interleaved with those of other blocks:
//!
//! ```text
//!   ask for headers    b3  b4  b5
//!   read headers, ask for values   b1  b2  b3
//!   multiply                       b0  b1  b2
//! ```
//!
//! The blocks of all chunks of a call form one sequence, so that a chunk of few rows does not drain the
//! pipeline.

#![allow(unsafe_code, reason = "kernels written by hand for an instruction set")]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod multiply;
mod scalar;

use super::MAX_WIDTH;
use super::iterate::{IteratorChoice, IteratorKind, Matches, Probed, choose, confirm, find, probe};
use super::level::ChunkedView;
use super::query::{DensePositions, QueryView};
use multiply::{add_bias, multiply};
use std::ops::Range;
use xc_buffer::simd::{Isa, prefetch};

/// Rows in a block: their headers and values fit the first-level cache several times.
const BLOCK: usize = 64;

/// Blocks between asking for a block's headers and multiplying it.
const AHEAD: usize = 3;

/// Blocks of a batch that are gathered before they are multiplied: filling the pipeline should cost
/// little beside them, and what the probes found should still be in cache. Of 1, 8, 32 and 128 the
/// fastest, by a tenth over 1 and 32.
const GATHERED: usize = 8;

/// Queries of a batch after which a chunk's rows are taken to be in cache: asking for them again is
/// a tenth of the time of trees whose chunks hundreds of queries share. Of 4, 16 and 64 the fastest
/// everywhere.
const WARM: usize = 64;

/// Bytes of a chunk, at most, that stay in cache from query to query: a quarter of a second-level
/// cache of 1 MiB. Larger chunks are asked for at every query, which takes a tenth less time than
/// waiting for the third level.
const STAYS: usize = 256 << 10;

/// Memory that the products reuse between calls.
#[derive(Clone, Debug, Default)]
pub struct ProductScratch {
    matches: Matches,
    // What the probes gave and nobody has multiplied yet.
    blocks: Vec<Block>,
    dense: DensePositions,
}

/// Some of the rows that a query and a chunk share.
#[derive(Clone, Debug)]
struct Block {
    chunk: usize,
    // Whose rows these are: told to the caller.
    visit: usize,
    // Into the matches found if `confirmed`, and otherwise into the candidates.
    range: Range<usize>,
    confirmed: bool,
    // True if the chunk's rows are expected in cache: others have just read them.
    cached: bool,
    // True if two lines of each row's values are asked for.
    wide: bool,
    // True for the last block of its chunk and visit.
    last: bool,
}

/// One query at one parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Visit {
    /// The parent.
    pub parent: u32,
    /// The query's number.
    pub query: u32,
}

/// Appends to `out` the margins of all children of each parent, parents in the given order.
///
/// *Determinism*: each child's products are added in ascending feature order, then its bias; every
/// iterator and instruction set gives the same bits.
///
/// *Cost*: see [`IteratorKind`]; the memory of a step is prefetched while other rows are processed.
///
/// # Panics
/// If a parent is out of range, or a query was prepared for a slot map other than the level's.
pub fn margins(
    level: &ChunkedView<'_>,
    query: &QueryView<'_>,
    parents: &[u32],
    choice: IteratorChoice,
    scratch: &mut ProductScratch,
    out: &mut Vec<f32>,
) {
    margins_with(Isa::current(), level, query, parents, choice, scratch, out);
}

/// [`margins`] on a given instruction set.
///
/// # Panics
/// If a parent is out of range, the query was prepared for another slot map, or the machine lacks the
/// instruction set.
pub fn margins_with(
    isa: Isa,
    level: &ChunkedView<'_>,
    query: &QueryView<'_>,
    parents: &[u32],
    choice: IteratorChoice,
    scratch: &mut ProductScratch,
    out: &mut Vec<f32>,
) {
    assert!(isa.is_available(), "{isa} kernels asked for on a machine without them");
    query.expect_fits(level);
    scratch.begin();
    for &parent in parents {
        for chunk in level.parts(parent as usize) {
            let how = choose(choice, query.nnz(), level.chunk(chunk).n_rows(), 1);
            if how == IteratorKind::Lookup {
                scratch.load(level, chunk);
            }
            scratch.gather(isa, level, chunk, 0, query, how, false, false);
            if how == IteratorKind::Lookup {
                scratch.unload(level, chunk);
            }
        }
    }
    scratch.drain(isa, level, |_, _, margins| out.extend_from_slice(margins));
}

/// Margins for many queries. Visits of the same parent should be adjacent, so that its chunks enter the
/// cache once.
///
/// Calls `each(position in visits, first child, margins)` for every visit; several times, once per
/// chunk, if the parent has more than [`MAX_WIDTH`] children. The order of calls is otherwise
/// unspecified.
///
/// *Determinism*: the same bits as [`margins`].
///
/// # Panics
/// If a parent is out of range, or a query was prepared for a slot map other than the level's.
pub fn shared_margins<'q>(
    level: &ChunkedView<'_>,
    visits: &[Visit],
    query: impl Fn(u32) -> QueryView<'q>,
    choice: IteratorChoice,
    scratch: &mut ProductScratch,
    mut each: impl FnMut(usize, u32, &mut [f32]),
) {
    let isa = Isa::current();
    scratch.begin();
    let mut first = 0;
    for group in visits.chunk_by(|a, b| a.parent == b.parent) {
        for chunk in level.parts(group[0].parent as usize) {
            let mut loaded = false;
            let stays = level.chunk(chunk).n_bytes(level.values.dtype()) <= STAYS;
            for (at, visit) in group.iter().enumerate() {
                let query = query(visit.query);
                query.expect_fits(level);
                let how = choose(choice, query.nnz(), level.chunk(chunk).n_rows(), group.len());
                if how == IteratorKind::Lookup && !loaded {
                    scratch.load(level, chunk);
                    loaded = true;
                }
                scratch.gather(isa, level, chunk, first + at, &query, how, stays && at >= WARM, true);
                if scratch.blocks.len() >= GATHERED {
                    scratch.drain(isa, level, &mut each);
                }
            }
            if loaded {
                scratch.unload(level, chunk);
            }
        }
        first += group.len();
    }
    scratch.drain(isa, level, each);
}

impl ProductScratch {
    /// Forgets what a call left that ended in a panic.
    fn begin(&mut self) {
        self.blocks.clear();
        self.matches.clear();
        self.dense.reset();
    }

    fn load(&mut self, level: &ChunkedView<'_>, chunk: usize) {
        self.dense.reserve(level.n_features());
        self.dense.load(&level.chunk(chunk));
    }

    fn unload(&mut self, level: &ChunkedView<'_>, chunk: usize) {
        self.dense.clear(&level.chunk(chunk));
    }

    /// Finds the rows that a query and a chunk share, and queues them.
    fn gather(
        &mut self,
        isa: Isa,
        level: &ChunkedView<'_>,
        number: usize,
        visit: usize,
        query: &QueryView<'_>,
        how: IteratorKind,
        cached: bool,
        wide: bool,
    ) {
        let chunk = level.chunk(number);
        let (found, confirmed) = if how == IteratorKind::Hashed {
            match probe(isa, level, &chunk, query, &mut self.matches) {
                Probed::Matches(range) => (range, true),
                Probed::Candidates(range) => (range, false),
            }
        } else {
            let first = self.matches.found.rows.len();
            find(&chunk, query, how, &self.dense, &mut self.matches);
            (first..self.matches.found.rows.len(), true)
        };
        // One block at least, that the chunk be answered.
        let mut start = found.start;
        loop {
            let end = found.end.min(start + BLOCK);
            let last = end == found.end;
            self.blocks.push(Block { chunk: number, visit, range: start..end, confirmed, cached, wide, last });
            if last {
                return;
            }
            start = end;
        }
    }

    /// Multiplies what is queued; `each` is told the visit, the first child and the margins.
    fn drain(&mut self, isa: Isa, level: &ChunkedView<'_>, mut each: impl FnMut(usize, u32, &mut [f32])) {
        let Self { matches, blocks, .. } = self;
        let mut sums = [0.0f32; MAX_WIDTH];
        for step in 0..blocks.len() + AHEAD {
            if let Some(block) = blocks.get(step).filter(|block| !block.cached) {
                prefetch_headers(level, block, matches);
            }
            if let Some(block) = (step + 1).checked_sub(AHEAD).and_then(|at| blocks.get_mut(at)) {
                ask_for_values(level, block, matches);
            }
            let Some(block) = step.checked_sub(AHEAD).and_then(|at| blocks.get(at)) else { continue };
            let chunk = level.chunk(block.chunk);
            let rows = &matches.found.rows[block.range.clone()];
            multiply(isa, level, &chunk, rows, &matches.found.values[block.range.clone()], &mut sums);
            if block.last {
                each(block.visit, chunk.first_child, add_bias(level, &chunk, &mut sums));
                sums.fill(0.0);
            }
        }
        matches.clear();
        blocks.clear();
    }
}

fn prefetch_headers(level: &ChunkedView<'_>, block: &Block, matches: &Matches) {
    let chunk = level.chunk(block.chunk);
    let rows = if block.confirmed { &matches.found.rows } else { &matches.candidates.rows };
    for &row in &rows[block.range.clone()] {
        prefetch(chunk.headers, row as usize * chunk.stride as usize);
    }
}

/// Leaves a block confirmed.
fn ask_for_values(level: &ChunkedView<'_>, block: &mut Block, matches: &mut Matches) {
    let chunk = level.chunk(block.chunk);
    if block.confirmed {
        if block.cached {
            return;
        }
        for &row in &matches.found.rows[block.range.clone()] {
            level.prefetch_values(chunk.value_start + chunk.offset(row as usize), block.wide);
        }
        return;
    }
    let first = matches.found.rows.len();
    let wide = block.wide;
    if block.cached {
        confirm(&chunk, block.range.clone(), matches, |_| ());
    } else {
        confirm(&chunk, block.range.clone(), matches, |offset| level.prefetch_values(chunk.value_start + offset, wide));
    }
    block.range = first..matches.found.rows.len();
    block.confirmed = true;
}
