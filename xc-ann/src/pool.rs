//! The vertices that a search may still expand.
//!
//! They stand in no order: the nearest is found by a scan over a few registers, which costs less
//! than keeping an order does. Where there are many, those behind a pivot wait in a list of their
//! own until the near ones are used up.

use crate::best::nearer;
use crate::product;
use xc_sparse::simd::Isa;

/// Near vertices, at most.
const NEAR: usize = 256;
/// Near vertices after a split.
const HALF: usize = NEAR / 2;

/// Keys and vertices. What comes out depends on what went in and on its order alone.
#[derive(Clone, Debug)]
pub(crate) struct Pool {
    keys: Vec<f32>,
    vertices: Vec<u32>,
    far: Vec<(f32, u32)>,
    /// Keys from here on go to `far`.
    pivot: f32,
    split: Vec<(f32, u32)>,
}

impl Default for Pool {
    fn default() -> Self {
        let (keys, vertices) = (Vec::with_capacity(NEAR), Vec::with_capacity(NEAR));
        Self { keys, vertices, far: Vec::new(), pivot: f32::INFINITY, split: Vec::new() }
    }
}

impl Pool {
    pub(crate) fn clear(&mut self) {
        self.keys.clear();
        self.vertices.clear();
        self.far.clear();
        self.pivot = f32::INFINITY;
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, key: f32, vertex: u32) {
        if key >= self.pivot {
            self.far.push((key, vertex));
            return;
        }
        if self.keys.len() == NEAR {
            self.split();
            return self.push(key, vertex);
        }
        self.keys.push(key);
        self.vertices.push(vertex);
    }

    /// The nearest vertex, which leaves the pool, unless its key is above `limit`.
    #[inline(always)]
    pub(crate) fn pop(&mut self, isa: Isa, limit: f32) -> Option<(f32, u32)> {
        if self.keys.is_empty() {
            if self.far.is_empty() {
                return None;
            }
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
        self.take();
    }

    /// Makes some of the far vertices near ones, and forgets those above the limit.
    #[cold]
    fn refill(&mut self, limit: f32) {
        self.far.retain(|&(key, _)| key <= limit);
        self.split.clear();
        if self.far.len() > HALF {
            self.far.select_nth_unstable_by(HALF, nearer);
            self.pivot = self.far[HALF].0;
        } else {
            self.pivot = f32::INFINITY;
        }
        std::mem::swap(&mut self.split, &mut self.far);
        self.take();
    }

    /// Shares out `split`: below the pivot near, else far. Where all keys are equal, half of them are
    /// near nevertheless.
    fn take(&mut self) {
        let pivot = self.pivot;
        for (at, &(key, vertex)) in self.split.iter().enumerate() {
            if key < pivot || at < HALF {
                self.keys.push(key);
                self.vertices.push(vertex);
            } else {
                self.far.push((key, vertex));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_comes_out_is_the_smallest_that_is_in(
            keys in prop::collection::vec(prop_oneof![0f32..9.0, Just(3.0), Just(-1.0)], 0..1500), each in 1usize..40
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
                    prop_assert!(pool.pop(isa, least - 0.5).is_none());
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
