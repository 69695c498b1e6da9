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
        let add = |a: u32, b: u32| {
            let sum = a + b;
            if sum >= prime { sum - prime } else { sum }
        };
        let mut residues = [walk.start as u32; N];
        for lane in 1..N {
            residues[lane] = add(residues[lane - 1], walk.step as u32);
        }
        let mut step = walk.step as u32;
        // Doubled as often as N is a power of two.
        for _ in 0..N.ilog2() {
            step = add(step, step);
        }
        let buckets = residues.map(|residue| residue % n_buckets);
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

/// Whether lanes of 32 bits can walk these residues.
pub(super) fn fits(walk: &Residues) -> bool {
    walk.prime <= 1 << 31
}
