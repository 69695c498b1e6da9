//! The k best of a stream.

use super::{Scored, rank_order};

/// Keeps the `k` best of the items pushed. No allocation after `new` and `reset` to a `k` seen before.
///
/// *Cost*: an item below the current k-th best costs one comparison; a better one O(log k).
#[derive(Clone, Debug, Default)]
pub struct TopK {
    k: usize,
    heap: Vec<Scored>, // a heap whose root is the worst kept item
}

impl TopK {
    /// An empty selection of at most `k` items.
    pub fn new(k: usize) -> Self {
        Self { k, heap: Vec::with_capacity(k.min(1 << 16)) }
    }

    /// Empties the selection and sets a new `k`.
    pub fn reset(&mut self, k: usize) {
        self.k = k;
        self.heap.clear();
    }

    /// Offers one item.
    pub fn push(&mut self, item: Scored) {
        if self.heap.len() < self.k {
            self.heap.push(item);
            self.sift_up(self.heap.len() - 1);
        } else if self.k > 0 && rank_order(item, self.heap[0]).is_lt() {
            self.heap[0] = item;
            self.sift_down();
        }
    }

    /// The worst kept item once `k` items are kept: what a newcomer has to beat.
    pub fn threshold(&self) -> Option<Scored> {
        if self.heap.len() == self.k { self.heap.first().copied() } else { None }
    }

    /// The kept items, best first. The selection stays usable after `reset`.
    pub fn sorted(&mut self) -> &[Scored] {
        self.heap.sort_unstable_by(|&a, &b| rank_order(a, b));
        &self.heap
    }

    fn sift_up(&mut self, mut at: usize) {
        while at > 0 {
            let parent = (at - 1) / 2;
            if rank_order(self.heap[at], self.heap[parent]).is_gt() {
                self.heap.swap(at, parent);
                at = parent;
            } else {
                break;
            }
        }
    }

    fn sift_down(&mut self) {
        let mut at = 0;
        loop {
            let mut worst = at;
            for child in [2 * at + 1, 2 * at + 2] {
                if child < self.heap.len() && rank_order(self.heap[child], self.heap[worst]).is_gt() {
                    worst = child;
                }
            }
            if worst == at {
                break;
            }
            self.heap.swap(at, worst);
            at = worst;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn reference(items: &[Scored], k: usize) -> Vec<Scored> {
        let mut all = items.to_vec();
        all.sort_by(|&a, &b| rank_order(a, b));
        all.truncate(k);
        all
    }

    proptest! {
        #[test]
        fn top_k_equals_a_full_sort(scores in prop::collection::vec(prop_oneof![
            Just(0.0f32), Just(-0.0), Just(f32::NAN), Just(f32::INFINITY), Just(f32::NEG_INFINITY), -2.0f32..2.0, Just(1.0)
        ], 0..200), k in 0usize..40) {
            let items: Vec<Scored> =
                scores.iter().enumerate().map(|(i, &score)| Scored { label: (i * 7 % 50) as u32, score }).collect();
            let mut top = TopK::new(k);
            for &item in &items {
                top.push(item);
            }
            let bits = |v: &[Scored]| v.iter().map(|s| (s.label, s.score.is_nan(), s.score)).map(|(l, n, s)| (l, n, if n { 0.0 } else { s })).collect::<Vec<_>>();
            prop_assert_eq!(bits(top.sorted()), bits(&reference(&items, k)));
        }
    }
}
