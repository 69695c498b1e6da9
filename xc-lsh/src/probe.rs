//! Multi-probe: the keys that a row nearly had.
//!
//! ```text
//!   table    codes     losses         keys in order of what they lose
//!   0        1 0 1     0.9 0.1 0.3    101 (0)  111 (0.1)  100 (0.3)  110 (0.4)  001 (0.9)  ...
//! ```
//!
//! Each code has one other value with a loss ([`Alternative`]); a probe takes the other value of some
//! codes, and its loss is their sum. A table queried with its three best keys finds about as much as
//! three tables, for the memory of one.
//!
//! ```
//! use xc_lsh::{FamilyParams, FamilyKind, Probes, KeyScratch};
//!
//! let kind = FamilyKind::Wta { bin: 4 };
//! let family = FamilyParams { kind, width: 16, n_codes: 5, n_tables: 3, key_bits: 32, seed: 1 }.build()?;
//! let vector: [f32; 16] = std::array::from_fn(|i| ((i * 7) % 16) as f32);
//! let (mut probes, mut scratch) = (Probes::default(), KeyScratch::default());
//! probes.find(&*family, &vector, 4, &mut scratch)?;
//! let mut own = [0; 3];
//! family.hash_dense(xc_dense::DenseRows::new(&vector, 16), &mut own, &mut scratch)?;
//! for table in 0..3 {
//!     assert_eq!(probes.keys(table).len(), 4);
//!     assert_eq!(probes.keys(table)[0], own[table]);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Implements the query-directed sequence of `[lv2007multiprobe]`. *Differs in*: losses are added,
//! not their squares, and every code has one alternative.

use crate::family::{Alternative, Family, HashError};
use crate::scratch::KeyScratch;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Finds probes, and keeps them with its buffers.
#[derive(Debug, Default)]
pub struct Probes {
    codes: Vec<u64>,
    alternatives: Vec<Alternative>,
    heap: BinaryHeap<Reverse<Set>>,
    keys: Vec<u32>,
    n_probes: usize,
}

/// Codes that take their other values, as places in the order of their losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Set {
    /// Bits of the sum of losses: not below 0, so that they have the order of the sums.
    loss: u64,
    /// The places, one bit each: the highest is the last one.
    places: u64,
}

impl Probes {
    /// Finds the `n_probes` keys of each table with the smallest loss, the row's own key first. Keys may
    /// repeat if K codes are hashed down to fewer bits.
    ///
    /// *Cost*: that of the keys, K logarithms of K and about 2 `n_probes` heap operations a table.
    ///
    /// # Errors
    /// As [`Family::alternatives`].
    ///
    /// # Panics
    /// If the vector's width is not the family's, or `n_probes` is 0 or above 2^K.
    pub fn find(
        &mut self,
        family: &dyn Family,
        vector: &[f32],
        n_probes: usize,
        scratch: &mut KeyScratch,
    ) -> Result<(), HashError> {
        let (n_codes, n_tables) = (family.params().n_codes as usize, family.params().n_tables as usize);
        let most = 1u128 << n_codes;
        assert!((1..=most).contains(&(n_probes as u128)), "{n_probes} probes of keys of {n_codes} codes");
        self.codes.resize(n_tables, 0);
        self.alternatives.resize(n_tables * n_codes, Alternative::default());
        self.keys.clear();
        self.n_probes = n_probes;
        family.alternatives(vector, &mut self.codes, &mut self.alternatives, scratch)?;
        for (table, (&codes, of)) in self.codes.iter().zip(self.alternatives.chunks_exact_mut(n_codes)).enumerate() {
            of.sort_by(|a, b| a.loss.total_cmp(&b.loss).then(b.mask.cmp(&a.mask)));
            self.keys.push(family.key_of(table, codes));
            best_sets(of, n_probes - 1, &mut self.heap, |places| {
                let flipped = (0..n_codes).filter(|&at| places >> at & 1 == 1).fold(0, |mask, at| mask | of[at].mask);
                self.keys.push(family.key_of(table, codes ^ flipped));
            });
        }
        Ok(())
    }

    /// Keys of a table, the best first.
    ///
    /// # Panics
    /// If there is no such table.
    pub fn keys(&self, table: usize) -> &[u32] {
        &self.keys[table * self.n_probes..][..self.n_probes]
    }
}

/// Calls `visit` for the `n` sets of alternatives, none empty, whose losses are least. `of`
/// ascends.
///
/// From a set whose last place is p follow the set with p + 1 instead of p, and the one with p + 1
/// beside p: each set follows exactly one other, which loses no more.
fn best_sets(of: &[Alternative], n: usize, heap: &mut BinaryHeap<Reverse<Set>>, mut visit: impl FnMut(u64)) {
    let set = |places: u64| {
        // Always from the first place on: equal sets have equal bits.
        let losses = (0..of.len()).filter(|&at| places >> at & 1 == 1).map(|at| f64::from(of[at].loss));
        Reverse(Set { loss: losses.sum::<f64>().abs().to_bits(), places })
    };
    heap.clear();
    heap.push(set(1));
    for _ in 0..n {
        let Some(Reverse(best)) = heap.pop() else { return };
        visit(best.places);
        let last = best.places.ilog2() as usize;
        if last + 1 < of.len() {
            let next = 1u64 << (last + 1);
            heap.push(set(best.places ^ 1 << last | next));
            heap.push(set(best.places | next));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn sets_come_in_the_order_of_their_losses_and_each_once(mut losses in prop::collection::vec(0f32..2.0, 1..9), n in 0usize..300) {
            losses.sort_by(f32::total_cmp);
            let of: Vec<Alternative> = losses.iter().map(|&loss| Alternative { mask: 0, loss }).collect();
            let mut met = Vec::new();
            best_sets(&of, n, &mut BinaryHeap::new(), |places| met.push(places));
            let loss = |places: u64| (0..of.len()).filter(|at| places >> at & 1 == 1).map(|at| f64::from(losses[at])).sum::<f64>();
            let mut expected: Vec<u64> = (1..1 << of.len()).collect();
            expected.sort_by(|&a, &b| loss(a).total_cmp(&loss(b)).then(a.cmp(&b)));
            expected.truncate(n);
            let of_expected: Vec<f64> = expected.iter().map(|&p| loss(p)).collect();
            prop_assert_eq!(met.iter().map(|&p| loss(p)).collect::<Vec<_>>(), of_expected);
            met.sort_unstable();
            met.dedup();
            prop_assert_eq!(met.len(), expected.len());
        }
    }
}
