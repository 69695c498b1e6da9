//! Where the lanes of a vector start, and what they step by.

use super::Residues;

/// Elements 0 to N - 1 of a walk, one a lane, and steps of N elements.
///
/// # Invariants
/// Everything is below the prime, and that is at most 2^31: the sum of two residues fits 32 bits.
pub(super) struct Lanes<const N: usize> {
    pub(super) residues: [u32; N],
    pub(super) buckets: [u32; N],
    pub(super) prime: u32,
    pub(super) n_buckets: u32,
    pub(super) step: u32,
    /// The step modulo the number of buckets.
    pub(super) step_bucket: u32,
    /// The prime modulo the number of buckets.
    pub(super) prime_bucket: u32,
}

impl<const N: usize> Lanes<N> {
    /// # Panics
    /// If the prime exceeds 2^31: see [`fits`].
    pub(super) fn new(walk: &Residues) -> Self {
        assert!(fits(walk), "prime {} is above 2^31", walk.prime);
        let (prime, n_buckets) = (walk.prime as u32, walk.n_buckets);
        let add = |a: u32, b: u32| (a + b).min((a + b).wrapping_sub(prime));
        let mut residues = [walk.start as u32; N];
        let mut step = walk.step as u32;
        // log2 N times twice as many lanes, and a step twice as long.
        for doubled in 0..N.ilog2() {
            let known = 1 << doubled;
            for lane in 0..known {
                residues[known + lane] = add(residues[lane], step);
            }
            step = add(step, step);
        }
        let mut buckets = residues;
        reduce(&mut buckets, n_buckets);
        Self {
            residues,
            buckets,
            prime,
            n_buckets,
            step,
            step_bucket: step % n_buckets,
            prime_bucket: prime % n_buckets,
        }
    }
}

/// Reduces numbers below 2^31 modulo `by`: the quotients by floating point are at most one off.
fn reduce<const N: usize>(numbers: &mut [u32; N], by: u32) {
    let one_by = 1.0 / f64::from(by);
    for number in numbers {
        let quotient = (f64::from(*number as i32) * one_by) as i32 as u32;
        let rest = number.wrapping_sub(quotient.wrapping_mul(by));
        // One too many leaves a number that wrapped, one too few a number that is not below `by`.
        let rest = rest.min(rest.wrapping_add(by));
        *number = rest.min(rest.wrapping_sub(by));
    }
}

/// Whether lanes of 32 bits can walk these residues.
pub(super) fn fits(walk: &Residues) -> bool {
    walk.prime <= 1 << 31
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn remainders_are_those_of_division(numbers in any::<[u32; 16]>(), by in 1u32..1 << 31, times in 0u32..4, off in 0u32..3) {
            let near = (by.saturating_mul(times).saturating_add(off).saturating_sub(1)) & (u32::MAX >> 1);
            let mut numbers = numbers.map(|number| number & (u32::MAX >> 1));
            numbers[3] = near;
            let mut got = numbers;
            reduce(&mut got, by);
            prop_assert_eq!(got, numbers.map(|number| number % by));
            let small = 1 + by % 30_000;
            let mut got = numbers;
            reduce(&mut got, small);
            prop_assert_eq!(got, numbers.map(|number| number % small));
        }
    }
}
