//! The order of sums over labels or instances: a cut into leaves, and one binary tree over them.
//!
//! ```text
//!   items    0 ............ 255 | 256 .......... 511 | 512 .......... 767 | 768 .......... 1023
//!   leaves        chain 0             chain 1              chain 2              chain 3
//!                      \               /                        \               /
//!                       ---- sum ----                            ---- sum ----
//!                                    \                            /
//!                                     ---------- sum ------------
//! ```
//!
//! A sum of floating-point numbers depends on its order. Here the order follows from the number of
//! items alone: whoever shares the work (threads, machines) shares out leaves or whole subtrees,
//! and the bits stay the same.
//!
//! ```
//! use xc_buffer::sums::{Blocks, TreeSum};
//!
//! let gradients: Vec<f32> = (0..1000).map(|i| 1.0 / (i + 1) as f32).collect();
//! let blocks = Blocks::new(gradients.len(), 64, 256);
//! assert_eq!(blocks.n_leaves(), 2);
//! // One thread goes over all leaves, two have one each: the same bits.
//! let mut tree = TreeSum::default();
//! tree.begin(1);
//! for leaf in 0..blocks.n_leaves() {
//!     tree.add(|sum| sum[0] = gradients[blocks.leaf(leaf)].iter().sum());
//! }
//! let half = |leaf| gradients[blocks.leaf(leaf)].iter().sum::<f32>();
//! assert_eq!(tree.total(), [half(0) + half(1)]);
//! ```

use crate::vectorised;
use std::ops::Range;

/// Items that belong together in any cut.
const UNIT: usize = 32;

/// A cut of items into leaves, and with it the order of every sum over them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks {
    n: usize,
    n_leaves: usize,
}

impl Blocks {
    /// `n` items in the largest power of two of leaves that is at most `most` and leaves at least
    /// `least` items a leaf; one leaf if there is no such power. Leaves begin at multiples of 32
    /// and differ by at most 32 items.
    ///
    /// # Panics
    /// If `least` is below 32.
    pub fn new(n: usize, most: usize, least: usize) -> Self {
        assert!(least >= UNIT, "leaves of {least} items, expected at least {UNIT}");
        let limit = most.min(n / least).max(1);
        Self { n, n_leaves: 1 << limit.ilog2() }
    }

    /// `n` items in one leaf: a sum is one chain.
    pub fn whole(n: usize) -> Self {
        Self { n, n_leaves: 1 }
    }

    /// Number of items.
    pub fn n_items(&self) -> usize {
        self.n
    }

    /// Number of leaves, a power of two.
    pub fn n_leaves(&self) -> usize {
        self.n_leaves
    }

    /// Items of a leaf.
    ///
    /// # Panics
    /// If there is no such leaf.
    pub fn leaf(&self, leaf: usize) -> Range<usize> {
        assert!(leaf < self.n_leaves, "leaf {leaf} of {}", self.n_leaves);
        let units = self.n.div_ceil(UNIT);
        let at = |leaf: usize| (units * leaf / self.n_leaves * UNIT).min(self.n);
        at(leaf)..at(leaf + 1)
    }

    /// Sum of a number for each leaf.
    pub fn sum(&self, mut of_leaf: impl FnMut(Range<usize>) -> f64) -> f64 {
        self.sum_of(0..self.n_leaves, &mut of_leaf)
    }

    fn sum_of(&self, leaves: Range<usize>, of_leaf: &mut impl FnMut(Range<usize>) -> f64) -> f64 {
        if leaves.len() == 1 {
            return of_leaf(self.leaf(leaves.start));
        }
        let middle = leaves.start + leaves.len() / 2;
        self.sum_of(leaves.start..middle, of_leaf) + self.sum_of(middle..leaves.end, of_leaf)
    }
}

/// Adds up vectors, one a leaf, in the order of the tree. Holds at most one vector a level of the
/// tree.
#[derive(Debug, Default)]
pub struct TreeSum {
    vectors: Vec<f32>,
    width: usize,
    /// Height of each vector held: 0 for that of a leaf.
    heights: Vec<u32>,
}

impl TreeSum {
    /// An empty sum of vectors of no values.
    pub const fn new() -> Self {
        Self { vectors: Vec::new(), width: 0, heights: Vec::new() }
    }

    /// Begins with no leaf; vectors have `width` values.
    pub fn begin(&mut self, width: usize) {
        self.width = width;
        self.heights.clear();
    }

    /// Adds the next leaf. `write` has to write its sum over what it is given, which may hold
    /// anything.
    pub fn add(&mut self, write: impl FnOnce(&mut [f32])) {
        let from = self.heights.len() * self.width;
        self.vectors.resize(self.vectors.len().max(from + self.width), 0.0);
        write(&mut self.vectors[from..from + self.width]);
        self.heights.push(0);
        while let [.., below, above] = self.heights[..]
            && below == above
        {
            self.join();
        }
    }

    /// Adds the vector held last to the one before it.
    fn join(&mut self) {
        self.heights.pop();
        if let Some(height) = self.heights.last_mut() {
            *height += 1;
        }
        let (low, high) = self.vectors.split_at_mut(self.heights.len() * self.width);
        let low = &mut low[(self.heights.len() - 1) * self.width..];
        add(low, &high[..self.width]);
    }

    /// The sum of all leaves; zeros for none.
    pub fn total(&mut self) -> &mut [f32] {
        if self.heights.is_empty() {
            self.add(|sum| sum.fill(0.0));
        }
        while self.heights.len() > 1 {
            self.join();
        }
        &mut self.vectors[..self.width]
    }
}

/// `to += values`.
///
/// # Panics
/// If lengths differ.
pub fn add(to: &mut [f32], values: &[f32]) {
    assert!(to.len() == values.len(), "{} values added to {}", values.len(), to.len());
    vectorised(|| to.iter_mut().zip(values).for_each(|(to, &value)| *to += value));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn few_items_are_one_leaf() {
        for n in [0, 1, 31, 255, 511] {
            assert_eq!(Blocks::new(n, 64, 256), Blocks::whole(n));
            assert_eq!(Blocks::whole(n).leaf(0), 0..n);
        }
        assert_eq!(Blocks::new(512, 64, 256).n_leaves(), 2);
        assert_eq!(Blocks::new(1 << 20, 64, 256).n_leaves(), 64);
        assert_eq!(Blocks::new(1 << 20, 63, 256).n_leaves(), 32);
    }

    proptest! {
        #[test]
        fn leaves_hold_every_item_once_in_order(n in 0usize..5000, most in 1usize..100, least in 32usize..300) {
            let blocks = Blocks::new(n, most, least);
            let mut end = 0;
            for leaf in 0..blocks.n_leaves() {
                let range = blocks.leaf(leaf);
                prop_assert_eq!(range.start, end);
                prop_assert_eq!(range.start % 32, 0);
                prop_assert!(blocks.n_leaves() == 1 || range.len() + 32 > least, "{} of {}", range.len(), least);
                end = range.end;
            }
            prop_assert_eq!(end, n);
        }

        #[test]
        fn vectors_and_numbers_are_added_in_the_order_of_the_tree(values in prop::collection::vec(-1e3f32..1e3, 0..70)) {
            // By the definition: halves until one is left.
            fn tree(values: &[f32]) -> f32 {
                match values {
                    [] => 0.0,
                    [one] => *one,
                    _ => {
                        let half = values.len().next_power_of_two() / 2;
                        tree(&values[..half]) + tree(&values[half..])
                    }
                }
            }
            let mut sum = TreeSum::default();
            for width in [3, 1] {
                sum.begin(width);
                values.iter().for_each(|&value| sum.add(|to| to.fill(value)));
                prop_assert_eq!(&*sum.total(), &vec![tree(&values); width][..]);
            }
            let blocks = Blocks::new(values.len() * 32, 64, 32);
            if blocks.n_leaves() == values.len() {
                let (mut at, whole): (usize, Vec<f32>) = (0, values.iter().map(|v| v.round()).collect());
                let total = blocks.sum(|_| { at += 1; f64::from(whole[at - 1]) });
                prop_assert_eq!(total, f64::from(tree(&whole)));
            }
        }
    }
}
