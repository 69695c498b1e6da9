//! Edges to vertices that no search could reach.

use crate::codes::QueryCode;
use crate::graph::NONE;
use crate::index::Graph;
use crate::search::{Reach, Searched, Slot};
use xc_sparse::simd::Isa;

/// Vertices near to one that is not reached, from which an edge may lead to it.
const NEAR: usize = 128;
/// Rounds: an edge that gives way to another may cut somebody off.
const ROUNDS: usize = 32;

impl Graph {
    /// Which vertices can be reached from the entry.
    pub(crate) fn reached(&self) -> Vec<bool> {
        let mut reached = vec![false; self.codes.len()];
        if self.codes.len() == 0 {
            return reached;
        }
        let mut left = vec![self.entry];
        reached[self.entry as usize] = true;
        while let Some(vertex) = left.pop() {
            for &to in self.edges.view().of(vertex) {
                if !std::mem::replace(&mut reached[to as usize], true) {
                    left.push(to);
                }
            }
        }
        reached
    }

    /// Adds an edge to each vertex that is not reached, from the nearest one that is and has room; where
    /// none has, the farthest edge of the nearest one gives way, to a vertex that others lead to as well.
    pub(crate) fn attach(&mut self) {
        self.n_attached = 0;
        let (isa, degree) = (Isa::current(), self.edges.degree());
        let (mut slot, mut query) = (Slot::default(), QueryCode::default());
        for round in 0..ROUNDS {
            let mut reached = self.reached();
            let lost: Vec<u32> =
                (0..reached.len() as u32).filter(|&v| !reached[v as usize] && self.items.is_live(v)).collect();
            if lost.is_empty() {
                return;
            }
            if round == 0 {
                self.n_attached = lost.len();
            }
            let mut n_leading = vec![0u32; self.codes.len()];
            self.edges.values().iter().filter(|&&to| to != NONE).for_each(|&to| n_leading[to as usize] += 1);
            for vertex in lost {
                if reached[vertex as usize] {
                    continue;
                }
                self.codes.row_as_query(vertex, &mut slot.query);
                let (coded, edges) = (self.codes.view(), self.edges.view());
                let reach = Reach { keep: NEAR, ..Reach::NEAREST };
                Searched { isa, coded, edges, reach, passes: |_| true, records: false }.run(&mut slot, self.entry);
                let mut near: Vec<(f32, u32)> = slot.best.kept().collect();
                near.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
                let has_room = |&&(_, v): &&(f32, u32)| self.edges.view().of(v).len() < degree;
                let Some(&(_, from)) = near.iter().find(has_room).or(near.first()) else { continue };
                let mut row = self.edges.view().of(from).to_vec();
                if row.len() == degree {
                    self.codes.row_as_query(from, &mut query);
                    let mut keys = Vec::new();
                    self.codes.keys(isa, &query, &row, &mut keys);
                    // One that others lead to as well, if there is any.
                    let spare = |at: usize| n_leading[row[at] as usize] > 1;
                    let farther = |&a: &usize, &b: &usize| spare(a).cmp(&spare(b)).then(keys[a].total_cmp(&keys[b]));
                    let gone = row.swap_remove((0..degree).max_by(farther).unwrap_or(0));
                    n_leading[gone as usize] -= 1;
                }
                row.push(vertex);
                n_leading[vertex as usize] += 1;
                self.edges.set(from, &row);
                // What it leads to is reached with it.
                let mut left = vec![vertex];
                reached[vertex as usize] = true;
                while let Some(at) = left.pop() {
                    for &to in self.edges.view().of(at) {
                        if !std::mem::replace(&mut reached[to as usize], true) {
                            left.push(to);
                        }
                    }
                }
            }
        }
    }
}
