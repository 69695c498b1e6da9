//! Equal steps modulo a prime: the labels of a bucket, and what an affine hash makes of them.

use crate::product::Residues;
use xc_hash::universal::{AffineHash, BucketHash};

/// `start + t * step` modulo the prime, for t below `len`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Progression {
    pub(crate) start: u64,
    pub(crate) step: u64,
    /// The modulus; 0 means that the steps never reach it.
    pub(crate) prime: u64,
    pub(crate) len: u32,
}

impl Progression {
    /// `len` labels from `start` on.
    pub(crate) fn of_labels(start: u32, len: u32) -> Self {
        Self { start: u64::from(start), step: 1, prime: 0, len }
    }

    /// The preimage of a bucket; `inverse` is that of the hash's factor.
    pub(crate) fn of_bucket(hash: &AffineHash, inverse: u64, bucket: u32) -> Self {
        let (prime, n_buckets) = (hash.prime(), u64::from(hash.n_buckets()));
        let bucket = u64::from(bucket);
        // Residues bucket, bucket + B, ... below p: there is none when the bucket is p or more.
        let len = prime.saturating_sub(bucket).div_ceil(n_buckets);
        let first = (bucket + prime - hash.offset() % prime) % prime;
        Self {
            start: multiply(inverse, first, prime),
            step: multiply(inverse, n_buckets % prime, prime),
            prime,
            len: len as u32,
        }
    }

    /// Element `t`.
    pub(crate) fn at(&self, t: u32) -> u64 {
        if self.prime == 0 {
            self.start + u64::from(t) * self.step
        } else {
            (self.start + multiply(self.step, u64::from(t), self.prime)) % self.prime
        }
    }

    /// What a hash makes of the elements, before they are reduced to buckets: equal steps again.
    pub(crate) fn hashed(&self, hash: &AffineHash) -> Residues {
        let prime = hash.prime();
        let below = |number: u64| if number < prime { number } else { number % prime };
        let start = below(multiply(hash.factor(), below(self.start), prime) + hash.offset());
        let step = multiply(hash.factor(), below(self.step), prime);
        Residues { start, step, prime, n_buckets: hash.n_buckets() }
    }
}

/// The product of two residues of a prime below 2^32.
fn multiply(a: u64, b: u64, prime: u64) -> u64 {
    a * b % prime
}

/// The inverse of a hash's factor modulo its prime, by Euclid's algorithm.
pub(crate) fn inverse(hash: &AffineHash) -> u64 {
    let prime = i128::from(hash.prime());
    let (mut rest, mut next) = (prime, i128::from(hash.factor()));
    let (mut t, mut next_t) = (0i128, 1i128);
    while next != 0 {
        let quotient = rest / next;
        (rest, next) = (next, rest - quotient * next);
        (t, next_t) = (next_t, t - quotient * next_t);
    }
    t.rem_euclid(prime) as u64
}
