//! A permutation with random access.

use super::mix64;

/// Rounds of the network: with four, no statistic of an order of instances or labels tells it from
/// a random one.
const ROUNDS: u64 = 4;

/// A permutation of `0..n` named by a key, without a table: 24 bytes for any `n`.
///
/// A Feistel network permutes the numbers of 2h bits, the least even number of bits that holds `n`;
/// a result that is not below `n` is permuted again until it is (cycle walking), which keeps the
/// map a permutation of `0..n`.
///
/// ```text
///   position = left | right                         n = 5, 4 bits, key 0:   2 ─▶ 7 ─▶ 11 ─▶ 0
///   four times: (left, right) = (right, left ^ f(key, round, right))           ≥ 5   ≥ 5   < 5
/// ```
///
/// *Cost*: at most four walks of four mixes on average.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    n: u64,
    half: u32,
    key: u64,
}

impl Order {
    /// The order of `0..n` named by `key`.
    pub fn new(n: u64, key: u64) -> Self {
        let bits = 64 - n.saturating_sub(1).leading_zeros();
        Self { n, half: bits.div_ceil(2).max(1), key }
    }

    /// How many numbers are ordered.
    pub fn len(&self) -> u64 {
        self.n
    }

    /// True when there is nothing to order.
    pub fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// The number at `position`.
    ///
    /// # Panics
    /// If `position` is not below `n`.
    #[inline]
    pub fn at(&self, position: u64) -> u64 {
        assert!(position < self.n, "position {position} of an order of {}", self.n);
        let mut x = position;
        loop {
            x = self.forward(x);
            if x < self.n {
                return x;
            }
        }
    }

    /// Where `number` stands: the inverse of [`Order::at`].
    ///
    /// # Panics
    /// If `number` is not below `n`.
    #[inline]
    pub fn position_of(&self, number: u64) -> u64 {
        assert!(number < self.n, "number {number} in an order of {}", self.n);
        let mut y = number;
        loop {
            y = self.backward(y);
            if y < self.n {
                return y;
            }
        }
    }

    fn forward(&self, x: u64) -> u64 {
        let (mut left, mut right) = (x >> self.half, x & self.mask());
        for round in 0..ROUNDS {
            (left, right) = (right, left ^ self.round(round, right));
        }
        left << self.half | right
    }

    fn backward(&self, y: u64) -> u64 {
        let (mut left, mut right) = (y >> self.half, y & self.mask());
        for round in (0..ROUNDS).rev() {
            (left, right) = (right ^ self.round(round, left), left);
        }
        left << self.half | right
    }

    #[inline]
    fn round(&self, round: u64, half: u64) -> u64 {
        mix64(self.key ^ (round << 56) ^ half) & self.mask()
    }

    #[inline]
    fn mask(&self) -> u64 {
        (1 << self.half) - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn an_order_has_each_number_once_and_is_inverted(n in 0u64..700, key: u64) {
            let order = Order::new(n, key);
            prop_assert_eq!((order.len(), order.is_empty()), (n, n == 0));
            let mut seen = vec![false; n as usize];
            for position in 0..n {
                let number = order.at(position);
                prop_assert!(!std::mem::replace(&mut seen[number as usize], true));
                prop_assert_eq!(order.position_of(number), position);
            }
        }

        #[test]
        fn a_large_order_stays_inside_and_is_inverted(n in 1u64.., at: prop::sample::Index, key: u64) {
            let (order, position) = (Order::new(n, key), at.index(n as usize) as u64);
            let number = order.at(position);
            prop_assert!(number < n);
            prop_assert_eq!(order.position_of(number), position);
        }
    }

    #[test]
    fn orders_are_frozen() {
        let order = |n: u64, key| (0..n.min(8)).map(|i| Order::new(n, key).at(i)).collect::<Vec<_>>();
        assert_eq!(order(1, 3), [0]);
        assert_eq!(Order::new(5, 0).at(2), 0);
        assert_eq!(order(8, 3), FROZEN_8);
        assert_eq!(order(370_000_001, 3), FROZEN_LARGE);
        assert_ne!(order(8, 4), order(8, 3));
    }

    const FROZEN_8: [u64; 8] = [3, 6, 4, 1, 0, 5, 7, 2];
    const FROZEN_LARGE: [u64; 8] = [31211865, 6260620, 92042574, 225327852, 169463786, 88029717, 132227164, 302966728];

    #[test]
    fn numbers_are_spread_over_positions() {
        // Chi-squared of 10,000 numbers at the first tenth of 100,000 positions, in 100 cells: 99
        // degrees of freedom.
        let order = Order::new(100_000, 11);
        let mut counts = [0f64; 100];
        for position in 0..10_000 {
            counts[(order.at(position) / 1000) as usize] += 1.0;
        }
        let chi: f64 = counts.iter().map(|c| (c - 100.0).powi(2) / 100.0).sum();
        assert!((40.0..170.0).contains(&chi), "chi-squared {chi}");
    }

    #[test]
    #[should_panic(expected = "position 3 of an order of 3")]
    fn a_position_past_the_end_panics() {
        Order::new(3, 1).at(3);
    }
}
