//! The k best of a stream.

use super::label::{Scored, from_rank_key, rank_key};

/// Up to this k what is kept stays sorted: moving a few numbers on costs less than cuts.
const SMALL: usize = 16;

/// Candidates of a larger k that are collected before a cut, at least: many cuts of few cost more.
const COLLECTED: usize = 64;

/// The place of no item: behind all others.
const NONE: u64 = u64::MAX;

/// Keeps the `k` best of the items pushed, for any `k`, without a branch that is hard to predict.
///
/// Items are kept as numbers of the same order. For a small k they are exactly the k best so far, sorted.
/// For a larger one candidates are collected, and cut down to the k best whenever twice as many have come.
///
/// *Cost*: an item that cannot be kept costs one comparison; one that can, O(1) on average for a
/// large k, O(k) for one of at most 16. No allocation after a [`TopK::reset`] to a `k` seen before.
#[derive(Clone, Debug)]
pub struct TopK {
    k: usize,
    capacity: usize,
    // An item that does not rank before this one cannot be among the k best.
    threshold: f32,
    threshold_label: u32,
    // Small k: k places, ascending, those of no item last. Large k: the places of candidates.
    places: Vec<u64>,
    // The answer of the last call that asked.
    items: Vec<Scored>,
}

impl Default for TopK {
    fn default() -> Self {
        Self::new(0)
    }
}

impl TopK {
    /// An empty selection of at most `k` items.
    pub fn new(k: usize) -> Self {
        let mut empty =
            Self { k, capacity: 0, threshold: 0.0, threshold_label: 0, places: Vec::new(), items: Vec::new() };
        empty.reset(k);
        empty
    }

    /// Empties the selection and sets a new `k`.
    pub fn reset(&mut self, k: usize) {
        self.k = k;
        self.capacity = k.saturating_mul(2).max(COLLECTED);
        self.threshold = if k == 0 { f32::INFINITY } else { f32::NEG_INFINITY };
        self.threshold_label = if k == 0 { 0 } else { u32::MAX };
        self.items.clear();
        self.places.clear();
        if k <= SMALL {
            self.places.resize(k, NONE);
        }
    }

    /// The score that an item must reach to be kept: -infinity until `k` items are kept, the k-th
    /// best score afterwards. Above a `k` of 16 it may lag behind the k-th best; see [`TopK::kth`].
    #[inline]
    pub fn threshold(&self) -> f32 {
        self.threshold
    }

    /// False when none of these scores can be kept.
    #[inline(always)]
    pub fn may_keep(&self, scores: &[f32]) -> bool {
        // Without an early end, so that they are compared in one vector.
        scores.iter().fold(false, |any, &score| any | (score >= self.threshold))
    }

    /// Offers one item. A score that is not a number is never kept.
    #[inline(always)]
    pub fn push(&mut self, item: Scored) {
        let Scored { label, score } = item;
        if score > self.threshold || (score == self.threshold && label < self.threshold_label) {
            self.keep(rank_key(item));
        }
    }

    #[inline]
    fn keep(&mut self, new: u64) {
        if self.k <= SMALL {
            self.insert(new);
        } else {
            self.places.push(new);
            if self.places.len() >= self.capacity {
                self.cut();
            }
        }
    }

    /// Takes the place of one item into the sorted ones; the last is left out.
    #[inline]
    fn insert(&mut self, new: u64) {
        let mut before = 0;
        for place in &mut self.places {
            // Where it goes is a coin toss: each place is that before it, the new one, or stays.
            let here = *place;
            *place = here.min(new.max(before));
            before = here;
        }
        if let Some(&worst) = self.places.last()
            && worst != NONE
        {
            self.set_threshold(worst);
        }
    }

    #[cold]
    fn cut(&mut self) {
        if self.places.len() >= self.k {
            let (_, &mut worst, _) = self.places.select_nth_unstable(self.k - 1);
            self.places.truncate(self.k);
            self.set_threshold(worst);
        }
    }

    fn set_threshold(&mut self, worst: u64) {
        Scored { label: self.threshold_label, score: self.threshold } = from_rank_key(worst);
    }

    /// The worst of the `k` best once `k` items have come: what the next one has to rank before,
    /// exactly.
    ///
    /// *Cost*: O(k) where items were kept since the last call and `k` is above 16.
    pub fn kth(&mut self) -> Option<Scored> {
        if self.k > SMALL && (self.places.len() > self.k || self.threshold == f32::NEG_INFINITY) {
            self.cut();
        }
        let full = self.k > 0 && self.places.len() == self.k && self.places[self.k - 1] != NONE;
        full.then_some(Scored { label: self.threshold_label, score: self.threshold })
    }

    /// The k best, in no order.
    pub fn best(&mut self) -> &[Scored] {
        if self.k > SMALL && self.places.len() > self.k {
            self.cut();
        }
        self.take_items()
    }

    /// The k best, best first. More may be pushed afterwards.
    pub fn sorted(&mut self) -> &[Scored] {
        if self.k > SMALL {
            // Few too many are sorted with the others sooner than they are cut off.
            if self.places.len() > self.k.saturating_add(self.k / 4) {
                self.cut();
            }
            self.places.sort_unstable();
            self.places.truncate(self.k);
            if self.places.len() == self.k {
                self.set_threshold(self.places[self.k - 1]);
            }
        }
        self.take_items()
    }

    fn take_items(&mut self) -> &[Scored] {
        self.items.clear();
        self.items.extend(self.places.iter().take_while(|&&place| place != NONE).map(|&place| from_rank_key(place)));
        &self.items
    }
}

#[cfg(test)]
mod tests {
    use super::super::rank_order;
    use super::*;
    use proptest::prelude::*;

    /// Scores of a case, at most.
    const MOST: usize = if cfg!(miri) { 24 } else { 300 };

    fn reference(items: &[Scored], k: usize) -> Vec<Scored> {
        let mut all: Vec<Scored> = items.iter().copied().filter(|s| !s.score.is_nan()).collect();
        all.sort_by(|&a, &b| rank_order(a, b));
        all.truncate(k);
        all
    }

    proptest! {
        #[test]
        fn the_k_best_are_those_of_a_full_sort_at_any_time(scores in prop::collection::vec(prop_oneof![
            Just(0.0f32), Just(-0.0), Just(f32::NAN), Just(f32::INFINITY), Just(f32::NEG_INFINITY), -2.0f32..2.0, Just(1.0)
        ], 0..MOST), k in prop_oneof![0usize..20, 15usize..80, Just(1000)], look in 1usize..100) {
            let items: Vec<Scored> =
                scores.iter().enumerate().map(|(i, &score)| Scored { label: (i * 37 % 311) as u32, score }).collect();
            let mut top = TopK::default();
            for _ in 0..2 {
                top.reset(k);
                for (i, &item) in items.iter().enumerate() {
                    top.push(item);
                    let expected = reference(&items[..=i], k);
                    let kth = if expected.len() == k { expected.last().copied() } else { None };
                    prop_assert!(kth.is_none_or(|kth| top.threshold() <= kth.score));
                    // What is asked in between changes nothing.
                    match i % look {
                        0 => prop_assert_eq!(top.sorted(), &expected[..]),
                        1 => prop_assert_eq!(top.best().len(), expected.len()),
                        2 => prop_assert_eq!(top.kth(), kth),
                        _ => {}
                    }
                }
                prop_assert_eq!(top.sorted(), &reference(&items, k)[..]);
            }
        }
    }

    #[test]
    fn what_cannot_be_kept_is_told_from_a_few_scores_at_once() {
        let mut top = TopK::new(2);
        assert!(top.may_keep(&[-1.0]));
        (0..3).for_each(|label| top.push(Scored { label, score: label as f32 }));
        assert!(!top.may_keep(&[0.5, 0.9]) && top.may_keep(&[0.5, 1.0]));
        assert!(!TopK::new(0).may_keep(&[f32::MAX]));
    }
}
