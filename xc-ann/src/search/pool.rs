//! The vertices that a search may still expand.
//!
//! They stand in no order: the nearest is found by a scan over a few registers, which costs less
//! than keeping an order does. Where there are many, those behind a pivot wait in lists of their
//! own until the nearer ones are used up. A long list is divided by eight until a piece is short
//! enough to be scanned, as a quicksort does that sorts no further than is asked for: a search that
//! holds ten thousand vertices selects among them a few times and not at every hundredth hop.

use crate::code::product;
use crate::search::best::nearer;
use xc_buffer::simd::Isa;

/// Near vertices, at most.
const NEAR: usize = 256;
/// Near vertices after a split.
const HALF: usize = NEAR / 2;
/// A list gives up this share of its vertices to a nearer one.
const SHARE: usize = 8;

/// Vertices that wait, none of them nearer than `pivot`.
#[derive(Clone, Debug, Default)]
struct Far {
    pivot: f32,
    waiting: Vec<(f32, u32)>,
}

/// Keys and vertices. What comes out depends on what went in and on its order alone.
#[derive(Clone, Debug)]
pub(crate) struct Pool {
    keys: Vec<f32>,
    vertices: Vec<u32>,
    /// Keys from here on go to `far`: the pivot of its last list.
    pivot: f32,
    /// Pivots fall from list to list.
    far: Vec<Far>,
    /// Lists without vertices, kept for their memory.
    spare: Vec<Vec<(f32, u32)>>,
    split: Vec<(f32, u32)>,
}

impl Default for Pool {
    fn default() -> Self {
        let (keys, vertices) = (Vec::with_capacity(NEAR), Vec::with_capacity(NEAR));
        Self { keys, vertices, pivot: f32::INFINITY, far: Vec::new(), spare: Vec::new(), split: Vec::new() }
    }
}

impl Pool {
    pub(crate) fn clear(&mut self) {
        self.keys.clear();
        self.vertices.clear();
        while self.take_last(f32::NEG_INFINITY) {}
        self.split.clear();
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, key: f32, vertex: u32) {
        if key >= self.pivot {
            return self.push_far(key, vertex);
        }
        if self.keys.len() == NEAR {
            self.split();
            return self.push(key, vertex);
        }
        self.keys.push(key);
        self.vertices.push(vertex);
    }

    #[inline]
    fn push_far(&mut self, key: f32, vertex: u32) {
        // From the farthest list on: it takes most of those that wait.
        match self.far.iter_mut().find(|list| key >= list.pivot) {
            Some(list) => list.waiting.push((key, vertex)),
            // An infinite key, where none waits.
            None => self.far.push(Far { pivot: self.pivot, waiting: vec![(key, vertex)] }),
        }
    }

    /// The nearest vertex, which leaves the pool, unless its key is above `limit`.
    #[inline(always)]
    pub(crate) fn pop(&mut self, isa: Isa, limit: f32) -> Option<(f32, u32)> {
        if self.keys.is_empty() {
            self.refill(limit);
            if self.keys.is_empty() {
                return None;
            }
        }
        let at = product::smallest(isa, &self.keys);
        if self.keys[at] > limit {
            return None;
        }
        Some((self.keys.swap_remove(at), self.vertices.swap_remove(at)))
    }

    /// Halves the near vertices.
    #[cold]
    fn split(&mut self) {
        self.split.clear();
        self.split.extend(self.keys.drain(..).zip(self.vertices.drain(..)));
        self.split.select_nth_unstable_by(HALF, nearer);
        self.pivot = self.split[HALF].0;
        match self.far.last_mut() {
            Some(last) => {
                last.pivot = self.pivot;
                last.waiting.extend(self.split.drain(HALF..));
            }
            None => self.leave_far(HALF),
        }
        self.take();
    }

    /// Makes some of the far vertices near ones, and forgets those above the limit.
    #[cold]
    fn refill(&mut self, limit: f32) {
        while self.split.is_empty() && self.take_last(limit) {}
        while self.split.len() > NEAR {
            let at = (self.split.len() / SHARE).max(HALF);
            self.split.select_nth_unstable_by(at, nearer);
            self.pivot = self.split[at].0;
            self.leave_far(at);
        }
        self.take();
    }

    /// Moves what stands in `split` from `at` on to a new list, which begins at the pivot.
    fn leave_far(&mut self, at: usize) {
        let mut waiting = self.spare.pop().unwrap_or_default();
        waiting.extend(self.split.drain(at..));
        self.far.push(Far { pivot: self.pivot, waiting });
    }

    /// Moves the last list of far vertices to `split`, without those above the limit; false if there
    /// is none.
    fn take_last(&mut self, limit: f32) -> bool {
        let last = self.far.pop();
        self.pivot = self.far.last().map_or(f32::INFINITY, |list| list.pivot);
        let Some(Far { mut waiting, .. }) = last else { return false };
        self.split.extend(waiting.drain(..).filter(|&(key, _)| key <= limit));
        self.spare.push(waiting);
        true
    }

    /// Makes all of `split` near.
    fn take(&mut self) {
        for (key, vertex) in self.split.drain(..) {
            self.keys.push(key);
            self.vertices.push(vertex);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        // The reference looks through all that is in, each time.
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn what_comes_out_is_the_smallest_that_is_in(
            keys in prop::collection::vec(prop_oneof![0f32..9.0, Just(3.0), Just(f32::INFINITY)], 0..6000), each in 1usize..400
        ) {
            for isa in Isa::available() {
                let (mut pool, mut held): (Pool, Vec<(f32, u32)>) = (Pool::default(), Vec::new());
                let mut left = keys.iter().copied().zip(0..).peekable();
                while left.peek().is_some() || !held.is_empty() {
                    for (key, vertex) in left.by_ref().take(each) {
                        pool.push(key, vertex);
                        held.push((key, vertex));
                    }
                    let least = held.iter().map(|h| h.0).fold(f32::INFINITY, f32::min);
                    if least.is_finite() {
                        prop_assert!(pool.pop(isa, least - 0.5).is_none());
                    }
                    if let Some((key, vertex)) = pool.pop(isa, f32::INFINITY) {
                        prop_assert_eq!(key, least, "{}", isa);
                        let at = held.iter().position(|h| *h == (key, vertex)).expect("an item that was pushed");
                        held.swap_remove(at);
                    } else {
                        // Those beyond the limit of the call before may be forgotten.
                        held.clear();
                    }
                }
            }
        }
    }
}
