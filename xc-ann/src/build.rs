//! Building a graph: in batches that search what was there before, so that threads need no locks and
//! the bytes do not depend on them.
//!
//! ```text
//!   batch of vertices ─▶ search the graph as it is ─▶ prune ─▶ rows of the batch
//!                                                        └──▶ (target, source), sorted ─▶ append or prune again
//! ```
//!
//! Batches double until they are a fiftieth of all vertices (ParlayANN, `[dobson2023scaling]`).

use crate::codes::{Codes, QueryCode};
use crate::graph::{EdgeRows, NONE};
use crate::prune::{PruneScratch, prune};
use crate::search::{Reach, Searched, Slot, TURNS, interleaved};
use rayon::prelude::*;
use xc_sparse::Cancel;
use xc_sparse::simd::Isa;

/// Vertices of a task.
const TOGETHER: usize = 32;
/// A batch is at most this part of all vertices.
const BATCHES: usize = 50;

/// How rows of edges are found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Linking {
    pub(crate) reach: Reach,
    pub(crate) factor: f32,
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
}

/// Adds vertices to a graph, or finds edges of its own vertices anew where `again`.
///
/// # Errors
/// It was cancelled.
pub(crate) fn link(
    codes: &Codes,
    edges: &mut EdgeRows,
    order: &[u32],
    n_before: usize,
    from: impl Fn(u32) -> u32 + Sync,
    linking: Linking,
    again: bool,
    cancel: &dyn Cancel,
    done: &(dyn Fn(usize) + Sync),
) -> bool {
    let (most, mut at) = (order.len().max(n_before).div_ceil(BATCHES).max(1), 0);
    while at < order.len() {
        if cancel.cancelled() {
            return false;
        }
        let len = if again { most } else { (n_before + at).clamp(1, most) }.min(order.len() - at);
        let batch = &order[at..at + len];
        let rows = search_batch(codes, edges, batch, &from, linking, again);
        write(codes, edges, batch, &rows, linking.factor);
        at += len;
        done(at);
    }
    true
}

/// Rows of edges of a batch, each of `degree` places.
fn search_batch(
    codes: &Codes,
    edges: &EdgeRows,
    batch: &[u32],
    from: &(impl Fn(u32) -> u32 + Sync),
    linking: Linking,
    again: bool,
) -> Vec<u32> {
    let (isa, degree) = (Isa::current(), edges.degree());
    let mut rows = vec![NONE; batch.len() * degree];
    rows.par_chunks_mut(TOGETHER * degree).zip(batch.par_chunks(TOGETHER)).for_each_init(Worker::default, |worker, (rows, batch)| {
        let Worker { slots, prune: scratch, keys, candidates, chosen, query } = worker;
        slots.resize_with(TURNS, Slot::default);
        let searched = Searched { isa, coded: codes.view(), edges: edges.view(), reach: linking.reach, passes: |_| true, records: true };
        let begin = |at: usize, slot: &mut Slot| {
            codes.row_as_query(batch[at], &mut slot.query);
            from(batch[at])
        };
        let done = |at: usize, slot: &mut Slot| {
            candidates.clear();
            candidates.extend_from_slice(&slot.expanded);
            candidates.extend(slot.best.kept());
            if again {
                codes.row_as_query(batch[at], query);
                let own = edges.view().of(batch[at]);
                codes.keys(isa, query, own, keys);
                candidates.extend(keys.iter().copied().zip(own.iter().copied()));
            }
            prune(isa, codes, linking.factor, degree, batch[at], candidates, scratch, chosen);
            rows[at * degree..][..chosen.len()].copy_from_slice(chosen);
        };
        interleaved(&searched, slots, batch.len(), begin, |_| {}, done);
    });
    rows
}

/// Writes rows of a batch, and an edge back from each vertex they lead to.
pub(crate) fn write(codes: &Codes, edges: &mut EdgeRows, batch: &[u32], rows: &[u32], factor: f32) {
    let degree = edges.degree();
    for (&vertex, row) in batch.iter().zip(rows.chunks_exact(degree)) {
        edges.set(vertex, crate::graph::filled(row));
    }
    let mut back: Vec<(u32, u32)> = batch
        .iter()
        .zip(rows.chunks_exact(degree))
        .flat_map(|(&source, row)| crate::graph::filled(row).iter().map(move |&target| (target, source)))
        .collect();
    back.par_sort_unstable();
    let groups: Vec<&[(u32, u32)]> = back.chunk_by(|a, b| a.0 == b.0).collect();
    let isa = Isa::current();
    let view = edges.view();
    let mut changed = vec![NONE; groups.len() * degree];
    changed.par_chunks_mut(TOGETHER * degree).zip(groups.par_chunks(TOGETHER)).for_each_init(Worker::default, |worker, (rows, groups)| {
        let Worker { prune: scratch, query, keys, candidates, chosen, .. } = worker;
        for (row, group) in rows.chunks_exact_mut(degree).zip(groups) {
            let target = group[0].0;
            let own = view.of(target);
            chosen.clear();
            chosen.extend_from_slice(own);
            chosen.extend(group.iter().map(|pair| pair.1).filter(|source| !own.contains(source)));
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
    for (group, row) in groups.iter().zip(changed.chunks_exact(degree)) {
        edges.set(group[0].0, crate::graph::filled(row));
    }
}
