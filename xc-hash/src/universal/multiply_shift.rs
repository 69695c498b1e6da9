//! Dietzfelbinger's functions: a multiplication, an addition, a shift.

use super::BucketHash;
use crate::stream::Stream;

/// x to floor(B h / 2^32), where h is the high half of a x + b modulo 2^64.
///
/// With a and b uniform over 64 bits, h is 2-independent over 32-bit keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MultiplyShift {
    factor: u64,
    offset: u64,
    n_buckets: u32,
}

impl MultiplyShift {
    /// Draws a and b.
    pub(super) fn draw(stream: &mut Stream, n_buckets: u32) -> Self {
        let factor = stream.next_u64();
        Self { factor, offset: stream.next_u64(), n_buckets }
    }

    /// The factor a.
    pub fn factor(&self) -> u64 {
        self.factor
    }

    /// The offset b.
    pub fn offset(&self) -> u64 {
        self.offset
    }
}

impl BucketHash for MultiplyShift {
    fn n_buckets(&self) -> u32 {
        self.n_buckets
    }

    #[inline]
    fn bucket(&self, key: u32) -> u32 {
        let high = self.factor.wrapping_mul(u64::from(key)).wrapping_add(self.offset) >> 32;
        scale(high as u32, self.n_buckets)
    }
}

/// A 32-bit value scaled to `n_buckets`, without a division.
#[inline]
fn scale(value: u32, n_buckets: u32) -> u32 {
    ((u64::from(value) * u64::from(n_buckets)) >> 32) as u32
}
