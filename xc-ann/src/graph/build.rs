//! Building a graph: in batches that search what was there before, so that threads need no locks and
//! the result does not depend on their number.
//!
//! ```text
//!   batch of vertices ─▶ search the graph as it is ─▶ prune ─▶ rows of the batch
//!                                                        └──▶ (target, source), sorted ─▶ append or prune again
//! ```
//!
//! Batches double until they are a fiftieth of all vertices (`[manohar2024parlayann]`).

use crate::code::codes::{Codes, QueryCode};
use crate::error::BuildError;
use crate::graph::edges::{EdgeRows, NONE, filled};
use crate::graph::prune::{PruneScratch, prune};
use crate::observe::BuildEvent;
use crate::search::beam::{Reach, Searched, Slot, TURNS, interleaved};
use crate::search::visited::Visited;
use rayon::prelude::*;
use std::ops::Range;
use xc_buffer::Observer;
use xc_buffer::simd::Isa;
use xc_sparse::rows::group_by;

/// Vertices of a task.
const VERTICES_PER_TASK: usize = 32;
/// A batch is at most this part of all vertices.
const BATCHES: usize = 50;

/// How rows of edges are found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Linking {
    /// Vertices that a search keeps.
    pub(crate) keep: usize,
    /// Of pruning.
    pub(crate) factor: f32,
    /// Whether there are edges already, which are candidates too.
    pub(crate) again: bool,
}

/// What a task works with.
#[derive(Debug, Default)]
pub(crate) struct Worker {
    slots: Vec<Slot>,
    prune: PruneScratch,
    query: QueryCode,
    keys: Vec<f32>,
    candidates: Vec<(f32, u32)>,
    chosen: Vec<u32>,
    visited: Visited,
}

/// Batches of `n` vertices that join `n_before`: each at most as large as what is there, unless they
/// are there `again`.
pub(crate) fn batches(n: usize, n_before: usize, again: bool) -> impl Iterator<Item = Range<usize>> {
    let (most, mut at) = ((n + n_before).div_ceil(BATCHES).max(1), 0);
    std::iter::from_fn(move || {
        let len = if again { most } else { (n_before + at).clamp(1, most) };
        let batch = at..(at + len).min(n);
        at = batch.end;
        (!batch.is_empty()).then_some(batch)
    })
}

/// Finds edges for vertices, batch by batch: `from` says where the search for one begins.
///
/// # Errors
/// It was cancelled.
pub(crate) fn link(
    codes: &Codes,
    edges: &mut EdgeRows,
    order: &[u32],
    batches: &mut dyn Iterator<Item = Range<usize>>,
    from: &(dyn Fn(u32) -> u32 + Sync),
    linking: Linking,
    observer: &dyn Observer<BuildEvent>,
) -> Result<(), BuildError> {
    for range in batches {
        if observer.cancelled() {
            return Err(BuildError::Cancelled);
        }
        let batch = &order[range];
        let rows = by_search(codes, edges, batch, from, linking);
        write(codes, edges, batch, &rows, linking.factor);
        observer.event(BuildEvent::Linked { done: batch.len() });
    }
    Ok(())
}

/// Rows of edges of a batch, each of `degree` places, among what a search finds.
fn by_search(
    codes: &Codes,
    edges: &EdgeRows,
    batch: &[u32],
    from: &(dyn Fn(u32) -> u32 + Sync),
    linking: Linking,
) -> Vec<u32> {
    let (isa, view) = (Isa::current(), edges.view());
    rows_of(edges.degree(), batch, |worker, batch, rows| {
        let Worker { slots, prune: scratch, keys, candidates, chosen, query, .. } = worker;
        slots.resize_with(TURNS, Slot::default);
        let reach = Reach { keep: linking.keep.max(1), ..Reach::NEAREST };
        let searched = Searched { isa, coded: codes.view(), edges: view, reach, passes: |_| true, records: true };
        let begin = |at: usize, slot: &mut Slot| {
            codes.row_as_query(batch[at], &mut slot.query);
            from(batch[at])
        };
        let done = |at: usize, slot: &mut Slot| {
            candidates.clear();
            candidates.extend_from_slice(&slot.expanded);
            candidates.extend(slot.best.kept());
            if linking.again {
                codes.row_as_query(batch[at], query);
                let own = view.of(batch[at]);
                codes.keys(isa, query, own, keys);
                candidates.extend(keys.iter().copied().zip(own.iter().copied()));
            }
            prune(isa, codes, linking.factor, edges.degree(), batch[at], candidates, scratch, chosen);
            rows[at * edges.degree()..][..chosen.len()].copy_from_slice(chosen);
        };
        interleaved(&searched, slots, batch.len(), begin, |_| {}, done);
    })
}

/// Rows of edges of vertices, among listed ones: `list` says which.
pub(crate) fn relink(
    codes: &Codes,
    edges: &EdgeRows,
    batch: &[u32],
    factor: f32,
    list: &(dyn Fn(u32, &mut Visited, &mut Vec<u32>) + Sync),
) -> Vec<u32> {
    let isa = Isa::current();
    rows_of(edges.degree(), batch, |worker, batch, rows| {
        let Worker { prune: scratch, keys, candidates, chosen, query, visited, .. } = worker;
        let mut listed = Vec::new();
        for (&vertex, row) in batch.iter().zip(rows.chunks_exact_mut(edges.degree())) {
            listed.clear();
            visited.reset(codes.len());
            list(vertex, visited, &mut listed);
            codes.row_as_query(vertex, query);
            codes.keys(isa, query, &listed, keys);
            candidates.clear();
            candidates.extend(keys.iter().copied().zip(listed.iter().copied()));
            prune(isa, codes, factor, edges.degree(), vertex, candidates, scratch, chosen);
            row[..chosen.len()].copy_from_slice(chosen);
        }
    })
}

/// Rows of `degree` places of a batch, which threads share.
fn rows_of(degree: usize, batch: &[u32], work: impl Fn(&mut Worker, &[u32], &mut [u32]) + Sync) -> Vec<u32> {
    let mut rows = vec![NONE; batch.len() * degree];
    rows.par_chunks_mut(VERTICES_PER_TASK * degree)
        .zip(batch.par_chunks(VERTICES_PER_TASK))
        .for_each_init(Worker::default, |worker, (rows, batch)| work(worker, batch, rows));
    rows
}

/// Writes rows of a batch, and an edge back from each vertex they lead to. Sources come in ascending
/// order, whoever found them first.
pub(crate) fn write(codes: &Codes, edges: &mut EdgeRows, batch: &[u32], rows: &[u32], factor: f32) {
    let degree = edges.degree();
    edges.set_all(batch.iter().copied().zip(rows.chunks_exact(degree)));
    let sourced = batch.iter().zip(rows.chunks_exact(degree));
    let back = sourced.flat_map(|(&source, row)| filled(row).iter().map(move |&target| (target, source)));
    let groups = group_by(codes.len(), back);
    let targets: Vec<u32> = (0..codes.len() as u32).filter(|&v| !groups.group(v as usize).is_empty()).collect();
    let (isa, view) = (Isa::current(), edges.view());
    let changed = rows_of(degree, &targets, |worker, targets, rows| {
        let Worker { prune: scratch, query, keys, candidates, chosen, .. } = worker;
        for (row, &target) in rows.chunks_exact_mut(degree).zip(targets) {
            let own = view.of(target);
            chosen.clear();
            chosen.extend_from_slice(own);
            chosen.extend(groups.group(target as usize).iter().filter(|source| !own.contains(source)));
            chosen[own.len()..].sort_unstable();
            if chosen.len() > degree {
                codes.row_as_query(target, query);
                codes.keys(isa, query, chosen, keys);
                candidates.clear();
                candidates.extend(keys.iter().copied().zip(chosen.iter().copied()));
                prune(isa, codes, factor, degree, target, candidates, scratch, chosen);
            }
            row[..chosen.len()].copy_from_slice(chosen);
        }
    });
    edges.set_all(targets.iter().copied().zip(changed.chunks_exact(degree)));
}
