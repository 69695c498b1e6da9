//! The k best of the nodes that a query scores, for any k, without a branch that is hard to predict.

use xc_sparse::rank::{Scored, rank_order};

/// Up to this k the worst kept item is replaced in place and sought anew: a short scan costs less than a cut.
const SMALL: usize = 32;

/// Keeps the k best of the items pushed.
///
/// For a small k the kept items are exactly the k best so far. For a larger one candidates are collected, and cut down
/// to the k best whenever twice as many have come.
#[derive(Clone, Debug, Default)]
pub(crate) struct Select {
    k: usize,
    capacity: usize,
    // No newcomer that does not rank before this item can be among the k best.
    bar: f32,
    bar_label: u32,
    // Small k: where the worst kept item stands once k are kept.
    worst: usize,
    items: Vec<Scored>,
}

impl Select {
    pub(crate) fn reset(&mut self, k: usize) {
        self.k = k;
        self.capacity = if k <= SMALL { k } else { k.saturating_mul(2) };
        self.bar = if k == 0 { f32::INFINITY } else { f32::NEG_INFINITY };
        self.bar_label = if k == 0 { 0 } else { u32::MAX };
        self.items.clear();
    }

    /// The score that an item must reach to be kept.
    pub(crate) fn bar(&self) -> f32 {
        self.bar
    }

    /// False when none of these scores can be kept.
    #[inline(always)]
    pub(crate) fn may_keep(&self, scores: &[f32]) -> bool {
        // Without an early end, so that they are compared in one vector.
        scores.iter().fold(false, |any, &score| any | (score >= self.bar))
    }

    #[inline(always)]
    pub(crate) fn push(&mut self, label: u32, score: f32) {
        // NaN compares false and would be dropped: it cannot come, weights and features are finite.
        if score > self.bar || (score == self.bar && label < self.bar_label) {
            self.keep(Scored { label, score });
        }
    }

    fn keep(&mut self, item: Scored) {
        if self.k <= SMALL {
            if self.items.len() < self.k {
                self.items.push(item);
                if self.items.len() < self.k {
                    return;
                }
            } else {
                self.items[self.worst] = item;
            }
            self.seek_worst();
        } else {
            self.items.push(item);
            if self.items.len() >= self.capacity {
                self.cut();
            }
        }
    }

    fn seek_worst(&mut self) {
        let mut worst = 0;
        for i in 1..self.items.len() {
            let (a, b) = (self.items[i], self.items[worst]);
            // Which of two comes later is a coin toss: a choice without a branch.
            let later = (a.score < b.score) | ((a.score == b.score) & (a.label > b.label));
            worst = if later { i } else { worst };
        }
        self.worst = worst;
        self.bar = self.items[worst].score;
        self.bar_label = self.items[worst].label;
    }

    #[cold]
    fn cut(&mut self) {
        if self.items.len() >= self.k {
            self.items.select_nth_unstable_by(self.k - 1, |&a, &b| rank_order(a, b));
            self.items.truncate(self.k);
            let worst = self.items[self.k - 1];
            (self.bar, self.bar_label) = (worst.score, worst.label);
        }
    }

    /// The k best, in no order.
    pub(crate) fn best(&mut self) -> &mut Vec<Scored> {
        if self.k > SMALL {
            self.cut();
        }
        &mut self.items
    }

    /// The k best, best first.
    pub(crate) fn ranked(&mut self) -> &mut Vec<Scored> {
        self.best().sort_unstable_by(|&a, &b| rank_order(a, b));
        &mut self.items
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn equals_a_full_sort(scores in prop::collection::vec(prop_oneof![Just(f32::NEG_INFINITY), Just(0.0f32), Just(1.0), -2.0f32..2.0], 0..300), k in 0usize..80) {
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
