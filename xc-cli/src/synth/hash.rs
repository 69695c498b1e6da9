//! Draws from the distributions that data sets have.

use xc_hash::stream::{self, mix64};

/// A key for (key, a, b).
pub(super) fn key(key: u64, a: u64, b: u64) -> u64 {
    mix64(mix64(mix64(key) ^ a) ^ b.rotate_left(32))
}

/// A stream with the distributions of data sets.
pub(super) struct Stream(stream::Stream);

impl Stream {
    pub(super) fn new(key: u64) -> Self {
        Self(stream::Stream::new(key))
    }

    /// Uniform in [0, 1).
    pub(super) fn unit(&mut self) -> f64 {
        self.0.unit()
    }

    /// Uniform in 0..n.
    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.0.below_u64(n)
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

    /// A rank in 0..n whose frequency falls as `(rank + 1)^-exponent` (the continuous law, rounded
    /// down).
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_have_the_means_they_promise() {
        let mut stream = Stream::new(7);
        let n = 20_000;
        for mean in [0.0, 3.6, 70.0, 700.0] {
            let sum: u64 = (0..n).map(|_| stream.poisson(mean)).sum();
            let got = sum as f64 / n as f64;
            assert!((got - mean).abs() <= 4.0 * (mean / n as f64).sqrt(), "poisson {mean}: {got}");
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
