//! Carter and Wegman's functions: ((a x + b) mod p) mod B.

use super::{BucketHash, Reciprocal};
use crate::stream::Stream;

/// 2^61 - 1, a prime modulo which reduction is two shifts and an addition.
pub const MERSENNE_61: u64 = (1 << 61) - 1;

/// x to ((a x + b) mod p) mod B, with 1 <= a < p and b < p.
///
/// # Invariants
/// `prime` is below 2^32 or is [`MERSENNE_61`]; B is between 1 and the prime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AffineHash {
    factor: u64,
    offset: u64,
    by_prime: Reciprocal,
    by_buckets: Reciprocal,
}

impl AffineHash {
    /// Draws a and b.
    pub(super) fn draw(stream: &mut Stream, prime: u64, n_buckets: u32) -> Self {
        let factor = 1 + stream.below_exactly(prime - 1);
        let offset = stream.below_exactly(prime);
        Self { factor, offset, by_prime: Reciprocal::new(prime), by_buckets: Reciprocal::new(u64::from(n_buckets)) }
    }

    /// The factor a.
    pub fn factor(&self) -> u64 {
        self.factor
    }

    /// The offset b.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The modulus p.
    pub fn prime(&self) -> u64 {
        self.by_prime.divisor()
    }

    /// (a x + b) mod p, before it is reduced to a bucket.
    #[inline]
    pub fn residue(&self, key: u32) -> u64 {
        if self.prime() == MERSENNE_61 {
            let product = u128::from(self.factor) * u128::from(key) + u128::from(self.offset);
            // 2^61 is 1: the high part is added to the low one.
            let folded = (product as u64 & MERSENNE_61) + (product >> 61) as u64;
            if folded >= MERSENNE_61 { folded - MERSENNE_61 } else { folded }
        } else {
            self.residue_below_2_32(key)
        }
    }

    /// [`AffineHash::residue`] for a prime below 2^32: a x + b fits 64 bits.
    #[inline]
    fn residue_below_2_32(&self, key: u32) -> u64 {
        self.by_prime.remainder(self.factor.wrapping_mul(u64::from(key)).wrapping_add(self.offset))
    }

    /// [`BucketHash::bucket`] of the prime family.
    #[inline]
    pub(super) fn bucket_below_2_32(&self, key: u32) -> u32 {
        debug_assert!(self.prime() < 1 << 32, "prime {} is not below 2^32", self.prime());
        self.by_buckets.remainder(self.residue_below_2_32(key)) as u32
    }
}

impl BucketHash for AffineHash {
    fn n_buckets(&self) -> u32 {
        self.by_buckets.divisor() as u32
    }

    #[inline]
    fn bucket(&self, key: u32) -> u32 {
        self.by_buckets.remainder(self.residue(key)) as u32
    }
}
