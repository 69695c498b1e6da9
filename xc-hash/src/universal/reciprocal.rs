//! Remainders by multiplication.

/// A divisor with its reciprocal: remainders of 64-bit numbers without a division.
///
/// With m = floor(2^64 / d), n * m / 2^64 is the quotient or one less: one correction makes the
/// remainder right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reciprocal {
    divisor: u64,
    inverse: u64,
}

impl Reciprocal {
    /// The reciprocal of `divisor`.
    ///
    /// # Panics
    /// If `divisor` is 0.
    pub fn new(divisor: u64) -> Self {
        assert!(divisor > 0, "a reciprocal of 0");
        // floor((2^64 - 1) / d) is floor(2^64 / d) unless d is a power of two: one less then, which
        // the correction covers.
        Self { divisor, inverse: u64::MAX / divisor }
    }

    /// The divisor.
    pub fn divisor(&self) -> u64 {
        self.divisor
    }

    /// `n` modulo the divisor.
    #[inline]
    pub fn remainder(&self, n: u64) -> u64 {
        let quotient = ((u128::from(n) * u128::from(self.inverse)) >> 64) as u64;
        let rest = n - quotient * self.divisor;
        if rest >= self.divisor { rest - self.divisor } else { rest }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn remainders_are_right_at_the_edges() {
        for d in [1, 2, 3, 4, 7, 8, 63, 64, 20_000, 1 << 31, u64::from(u32::MAX), (1 << 61) - 1, 1 << 63, u64::MAX] {
            let by = Reciprocal::new(d);
            for n in [0, 1, d - 1, d, d.saturating_add(1), d.saturating_mul(2), u64::MAX - 1, u64::MAX] {
                assert_eq!(by.remainder(n), n % d, "{n} mod {d}");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]
        #[test]
        fn remainders_equal_those_of_a_division(n: u64, d in 1u64.., small in 1u64..1 << 20) {
            prop_assert_eq!(Reciprocal::new(d).remainder(n), n % d);
            prop_assert_eq!(Reciprocal::new(small).remainder(n), n % small);
        }
    }
}
