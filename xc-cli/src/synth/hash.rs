//! Streams, draws and permutations that are functions of a key.

use rand::Rng;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

/// Mixes 64 bits (the finaliser of splitmix64).
pub(super) fn mix(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// A key for (key, a, b).
pub(super) fn key(key: u64, a: u64, b: u64) -> u64 {
    mix(mix(mix(key) ^ a) ^ b.rotate_left(32))
}

/// Uniform in [0, 1) from 64 bits.
pub(super) fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// One stream of random numbers.
pub(super) struct Stream(Xoshiro256PlusPlus);

impl Stream {
    pub(super) fn new(key: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(key))
    }

    /// Uniform in [0, 1).
    pub(super) fn unit(&mut self) -> f64 {
        unit(self.0.next_u64())
    }

    /// Uniform in 0..n.
    pub(super) fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.0.next_u64()) * u128::from(n)) >> 64) as u64
    }

    /// Standard normal (Box and Muller).
    pub(super) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// Poisson; *cost* O(mean).
    pub(super) fn poisson(&mut self, mean: f64) -> u64 {
        let (mut left, mut count) = (mean.max(0.0), 0);
        // In pieces: exp(-mean) of a large mean is zero.
        while left > 0.0 {
            let piece = left.min(300.0);
            left -= piece;
            let stop = (-piece).exp();
            let mut product = self.unit();
            while product > stop {
                count += 1;
                product *= self.unit();
            }
        }
        count
    }

    /// A rank in 0..n whose frequency falls as `(rank + 1)^-exponent` (the continuous law, rounded down).
    pub(super) fn power_law(&mut self, n: u64, exponent: f64) -> u64 {
        let (u, top) = (self.unit(), (n + 1) as f64);
        let x = if (exponent - 1.0).abs() < 1e-9 {
            top.powf(u)
        } else {
            let e = 1.0 - exponent;
            (1.0 + u * (top.powf(e) - 1.0)).powf(1.0 / e)
        };
        (x as u64).saturating_sub(1).min(n - 1)
    }
}

/// A keyed permutation of 0..n without a table: a four-round Feistel network on the next even power of two, walked
/// until the value falls inside. *Cost*: at most four walks on average.
#[derive(Clone, Copy, Debug)]
pub(super) struct Permutation {
    n: u64,
    half: u32,
    key: u64,
}

impl Permutation {
    pub(super) fn new(n: u64, key: u64) -> Self {
        let bits = 64 - n.saturating_sub(1).leading_zeros();
        Self { n, half: bits.div_ceil(2).max(1), key }
    }

    /// Where `x` goes.
    pub(super) fn apply(&self, mut x: u64) -> u64 {
        assert!(x < self.n, "{x} is not below {}", self.n);
        loop {
            x = self.rounds(x);
            if x < self.n {
                return x;
            }
        }
    }

    /// What goes to `y`.
    pub(super) fn invert(&self, mut y: u64) -> u64 {
        assert!(y < self.n, "{y} is not below {}", self.n);
        loop {
            y = self.rounds_back(y);
            if y < self.n {
                return y;
            }
        }
    }

    fn rounds(&self, x: u64) -> u64 {
        let mask = (1 << self.half) - 1;
        let (mut left, mut right) = (x >> self.half, x & mask);
        for round in 0..4 {
            (left, right) = (right, left ^ (mix(self.key ^ (round << 56) ^ right) & mask));
        }
        left << self.half | right
    }

    fn rounds_back(&self, x: u64) -> u64 {
        let mask = (1 << self.half) - 1;
        let (mut left, mut right) = (x >> self.half, x & mask);
        for round in (0..4).rev() {
            (left, right) = (right ^ (mix(self.key ^ (round << 56) ^ left) & mask), left);
        }
        left << self.half | right
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn a_permutation_meets_each_value_once_and_is_inverted(n in 1u64..700, key in any::<u64>()) {
            let permutation = Permutation::new(n, key);
            let mut seen = vec![false; n as usize];
            for x in 0..n {
                let y = permutation.apply(x);
                prop_assert!(!seen[y as usize]);
                seen[y as usize] = true;
                prop_assert_eq!(permutation.invert(y), x);
            }
        }
    }

    #[test]
    fn draws_have_the_means_they_promise() {
        let mut stream = Stream::new(7);
        let n = 20_000;
        for mean in [0.0, 3.6, 70.0, 700.0] {
            let sum: u64 = (0..n).map(|_| stream.poisson(mean)).sum();
            let met = sum as f64 / n as f64;
            assert!((met - mean).abs() <= 4.0 * (mean / n as f64).sqrt(), "poisson {mean}: {met}");
        }
        let normal: Vec<f64> = (0..n).map(|_| stream.normal()).collect();
        let variance = normal.iter().map(|x| x * x).sum::<f64>() / n as f64;
        assert!((variance - 1.0).abs() < 0.05, "variance {variance}");
    }

    #[test]
    fn power_law_ranks_stay_in_range_and_fall() {
        let mut stream = Stream::new(1);
        for exponent in [0.8, 1.0, 1.05] {
            let mut counts = [0u32; 100];
            for _ in 0..100_000 {
                counts[stream.power_law(100, exponent) as usize] += 1;
            }
            assert!(
                counts[0] > 2 * counts[3] && counts[3] > 3 * counts[30] && counts[99] > 0,
                "{exponent}: {counts:?}"
            );
        }
        assert_eq!(stream.power_law(1, 0.8), 0);
    }
}
