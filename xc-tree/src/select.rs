//! The k best of the nodes that a query scores, for any k, without a branch that is hard to predict.

use xc_sparse::rank::{Scored, rank_order};

/// Collects candidates, and cuts them down to the k best whenever twice as many have come.
#[derive(Clone, Debug, Default)]
pub(crate) struct Select {
    k: usize,
    capacity: usize,
    // No newcomer below this one can be among the k best.
    bar: f32,
    bar_label: u32,
    items: Vec<Scored>,
}

impl Select {
    pub(crate) fn reset(&mut self, k: usize) {
        self.k = k;
        self.capacity = k.saturating_mul(2).max(k.saturating_add(24));
        self.bar = f32::NEG_INFINITY;
        self.bar_label = u32::MAX;
        self.items.clear();
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, label: u32, score: f32) {
        // NaN compares false and would be dropped: it cannot come, weights and features are finite.
        if score > self.bar || (score == self.bar && label < self.bar_label) {
            self.items.push(Scored { label, score });
            if self.items.len() >= self.capacity {
                self.cut();
            }
        }
    }

    #[cold]
    fn cut(&mut self) {
        if self.k == 0 {
            self.items.clear();
            self.bar = f32::INFINITY;
            return;
        }
        if self.items.len() > self.k {
            self.items.select_nth_unstable_by(self.k - 1, |&a, &b| rank_order(a, b));
            self.items.truncate(self.k);
        }
        if self.items.len() == self.k {
            let worst = self.items[self.k - 1];
            self.bar = worst.score;
            self.bar_label = worst.label;
        }
    }

    /// The k best, in no order.
    pub(crate) fn best(&mut self) -> &mut Vec<Scored> {
        self.cut();
        &mut self.items
    }

    /// The k best, best first.
    pub(crate) fn ranked(&mut self) -> &mut Vec<Scored> {
        self.cut();
        self.items.sort_unstable_by(|&a, &b| rank_order(a, b));
        &mut self.items
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn equals_a_full_sort(scores in prop::collection::vec(prop_oneof![Just(f32::NEG_INFINITY), Just(0.0f32), Just(1.0), -2.0f32..2.0], 0..300), k in 0usize..60) {
            let mut select = Select::default();
            for _ in 0..2 {
                select.reset(k);
                let mut all: Vec<Scored> = Vec::new();
                for (i, &score) in scores.iter().enumerate() {
                    let label = (i * 37 % 311) as u32;
                    select.push(label, score);
                    all.push(Scored { label, score });
                }
                all.sort_by(|&a, &b| rank_order(a, b));
                all.truncate(k);
                prop_assert_eq!(&*select.ranked(), &all);
            }
        }
    }
}
