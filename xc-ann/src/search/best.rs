//! The nearest vertices met so far. Up to 32 are kept sorted in registers. More are kept unsorted with
//! the position of the worst, or collected and periodically cut down to the best.

use crate::code::product::{self, FEW};
use std::cmp::Ordering;
use xc_buffer::simd::Isa;
use xc_sparse::rank::{Scored, TopK};

/// Codes rank answers only approximately: so many more than are needed are compared exactly.
const SPARE: usize = 6;

/// Number of candidates by codes that should be kept for `k` answers by exact scores.
pub fn rerank_candidates(k: usize) -> usize {
    k.saturating_add((k / 8).max(SPARE))
}

/// Smaller keys first, of equal ones the lower vertex.
pub(crate) fn nearer(a: &(f32, u32), b: &(f32, u32)) -> Ordering {
    a.0.total_cmp(&b.0).then(a.1.cmp(&b.1))
}

/// The `keep` smallest keys, of equal ones those of the lower vertices.
#[derive(Clone, Debug)]
pub(crate) struct Best {
    keep: usize,
    len: usize,
    /// Ascending.
    keys: [f32; FEW],
    vertices: [u32; FEW],
    /// Where more are kept.
    many: Many,
    /// And where they are collected.
    collected: TopK,
    collects: bool,
}

#[derive(Clone, Debug, Default)]
struct Many {
    keys: Vec<f32>,
    vertices: Vec<u32>,
    /// The place of the worst, where there are enough.
    worst: usize,
}

impl Default for Best {
    fn default() -> Self {
        Self {
            keep: 0,
            len: 0,
            keys: [f32::INFINITY; FEW],
            vertices: [u32::MAX; FEW],
            many: Many::default(),
            collected: TopK::default(),
            collects: false,
        }
    }
}

impl Best {
    pub(crate) fn reset(&mut self, keep: usize) {
        (self.keep, self.len, self.collects) = (keep, 0, false);
        self.keys = [f32::INFINITY; FEW];
        self.vertices = [u32::MAX; FEW];
        self.many.keys.clear();
        self.many.vertices.clear();
    }

    /// As [`Best::reset`], for a search that compares many more vertices than it keeps and need not know the
    /// worst of these at any time: an entry costs O(1), not O(`keep`).
    pub(crate) fn reset_to_collect(&mut self, keep: usize) {
        self.reset(keep);
        self.collects = keep > FEW;
        self.collected.reset(if self.collects { keep } else { 0 });
    }

    /// A key that the next vertex must not be above: infinite until there are enough. That of the worst one, or
    /// a larger one while vertices are collected.
    #[inline(always)]
    pub(crate) fn worst(&self) -> f32 {
        match self.keep {
            keep if keep <= FEW => self.keys[keep - 1],
            _ if self.collects => -self.collected.threshold(),
            keep if self.many.keys.len() < keep => f32::INFINITY,
            _ => self.many.keys[self.many.worst],
        }
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, isa: Isa, key: f32, vertex: u32) {
        if self.collects {
            return self.collected.push(Scored { label: vertex, score: -key });
        }
        if self.keep > FEW {
            return self.many.push(isa, self.keep, key, vertex);
        }
        product::insert(isa, &mut self.keys, &mut self.vertices, key, vertex);
        self.len = (self.len + 1).min(self.keep);
    }

    /// Keys and vertices, in no order.
    pub(crate) fn kept(&mut self) -> impl Iterator<Item = (f32, u32)> {
        let collected: &[Scored] = if self.collects { self.collected.best() } else { &[] };
        let many = self.many.keys.iter().zip(&self.many.vertices);
        let few = self.keys.iter().zip(&self.vertices).take(self.len);
        let kept = few.chain(many).map(|(&key, &vertex)| (key, vertex));
        kept.chain(collected.iter().map(|item| (-item.score, item.label)))
    }
}

impl Many {
    fn push(&mut self, isa: Isa, keep: usize, key: f32, vertex: u32) {
        if self.keys.len() < keep {
            self.keys.push(key);
            self.vertices.push(vertex);
        } else if nearer(&(key, vertex), &(self.keys[self.worst], self.vertices[self.worst])).is_lt() {
            (self.keys[self.worst], self.vertices[self.worst]) = (key, vertex);
        } else {
            return;
        }
        if self.keys.len() == keep {
            self.worst = product::largest(isa, &self.keys, &self.vertices);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_smallest_keys_are_kept(
            keys in prop::collection::vec(prop_oneof![-2f32..2.0, Just(0.5), Just(f32::INFINITY)], 0..120), keep in 1usize..60
        ) {
            let mut best = Best::default();
            for (isa, collects) in Isa::available().flat_map(|isa| [(isa, false), (isa, true)]) {
                if collects { best.reset_to_collect(keep) } else { best.reset(keep) }
                for (n, &key) in keys.iter().enumerate() {
                    let vertex = (n * 37 % 127) as u32;
                    if key <= best.worst() {
                        best.push(isa, key, vertex);
                    }
                }
                let mut all: Vec<(f32, u32)> = keys.iter().enumerate().map(|(n, &key)| (key, (n * 37 % 127) as u32)).collect();
                all.sort_by(|a, b| a.partial_cmp(b).unwrap());
                all.truncate(keep);
                if let Some(last) = all.get(keep - 1) {
                    prop_assert!(best.worst() >= last.0);
                }
                let mut kept: Vec<(f32, u32)> = best.kept().collect();
                kept.sort_by(|a, b| a.partial_cmp(b).unwrap());
                prop_assert_eq!(kept, all);
            }
        }
    }
}
