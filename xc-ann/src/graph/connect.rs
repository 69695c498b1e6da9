//! Edges to vertices that no search could reach.

use crate::code::codes::QueryCode;
use crate::graph::edges::NONE;
use crate::graph::whole::Graph;
use crate::search::beam::{Reach, Searched, Slot};
use crate::search::best::nearer;
use rayon::prelude::*;
use std::collections::HashMap;
use xc_buffer::simd::Isa;

/// Vertices that the search for the nearest one keeps.
const NEAR: usize = 16;

impl Graph {
    /// For each vertex the one that leads to it from the entry, which leads to itself; [`NONE`] where
    /// none does.
    fn tree(&self) -> Vec<u32> {
        let mut parent = vec![NONE; self.codes.len()];
        if !parent.is_empty() {
            self.reach(self.entry, self.entry, &mut parent);
        }
        parent
    }

    /// Adds an edge to each vertex that is not reached: from the nearest one that is, or, where that
    /// has such an edge already, from one below it in the tree of those that were added there. So
    /// a search pays for one edge more at most, however many vertices are never the best of any, as
    /// most are under inner products. Where a row is full the farthest edge gives way of those that
    /// nothing depends on.
    pub(crate) fn attach(&mut self) {
        let mut parent = self.tree();
        let lost: Vec<u32> =
            (0..parent.len() as u32).filter(|&v| parent[v as usize] == NONE && self.items.is_live(v)).collect();
        self.n_attached = lost.len();
        let nearest = self.nearest_reached(&lost);
        let degree = self.edges.degree();
        // By the vertex they were added below: those that may take more, the first one first.
        let mut below: HashMap<u32, (Vec<u32>, usize)> = HashMap::new();
        for (&vertex, &top) in lost.iter().zip(&nearest) {
            if parent[vertex as usize] != NONE {
                continue;
            }
            let (tree, at) = below.entry(top).or_default();
            while tree.get(*at).is_some_and(|&v| self.edges.view().of(v).len() == degree) {
                *at += 1;
            }
            let mut from = tree.get(*at).copied().unwrap_or(top);
            tree.push(vertex);
            let row = loop {
                let mut row = self.edges.view().of(from).to_vec();
                if row.len() < degree {
                    break row;
                }
                if let Some(gone) = self.farthest(from, &row, |v| parent[v as usize] != from) {
                    row.swap_remove(gone);
                    break row;
                }
                // All its edges are needed: one of the vertices they lead to has room, or one below it.
                from = row[0];
            };
            self.edges.set(from, &[&row[..], &[vertex]].concat());
            // What it leads to is reached with it.
            self.reach(vertex, from, &mut parent);
        }
    }

    /// The nearest vertex that a search finds, for each of some.
    fn nearest_reached(&self, of: &[u32]) -> Vec<u32> {
        let isa = Isa::current();
        let search = |slot: &mut Slot, &vertex: &u32| {
            self.codes.row_as_query(vertex, &mut slot.query);
            let reach = Reach { keep: NEAR, ..Reach::NEAREST };
            let (coded, edges) = (self.codes.view(), self.edges.view());
            Searched { isa, coded, edges, reach, passes: |_| true, records: false }.run(slot, self.entry);
            let kept = slot.best.kept();
            kept.min_by(nearer).map_or(self.entry, |(_, v)| v)
        };
        of.par_iter().map_init(Slot::default, search).collect()
    }

    /// The place of the farthest edge of those that may go.
    fn farthest(&self, from: u32, row: &[u32], may_go: impl Fn(u32) -> bool) -> Option<usize> {
        let (mut query, mut keys) = (QueryCode::default(), Vec::new());
        self.codes.row_as_query(from, &mut query);
        self.codes.keys(Isa::current(), &query, row, &mut keys);
        (0..row.len()).filter(|&at| may_go(row[at])).max_by(|&a, &b| keys[a].total_cmp(&keys[b]))
    }

    /// Notes who leads to a vertex, and to all that are reached from it alone.
    fn reach(&self, vertex: u32, from: u32, parent: &mut [u32]) {
        parent[vertex as usize] = from;
        let mut left = vec![vertex];
        while let Some(at) = left.pop() {
            for &to in self.edges.view().of(at) {
                if parent[to as usize] == NONE {
                    parent[to as usize] = at;
                    left.push(to);
                }
            }
        }
    }
}
