//! Simple tabulation: a table of random words for each byte of a key.
//!
//! ```text
//!   key 0x 11 22 33 44   ─▶   T0[44] ^ T1[33] ^ T2[22] ^ T3[11]   ─▶   scaled to B
//! ```
//!
//! 3-independent, and better than that in practice: with linear probing and two choices it behaves
//! as if it were fully random (`[patrascu2012tabulation]`). It costs 4 KiB a function and four
//! loads a key.

use super::BucketHash;
use crate::stream::Stream;

/// Four tables of 256 random words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tabulation {
    tables: [[u32; 256]; 4],
    n_buckets: u32,
}

impl Tabulation {
    /// Fills the tables, two words a draw.
    pub(super) fn draw(stream: &mut Stream, n_buckets: u32) -> Self {
        let mut tables = [[0; 256]; 4];
        for pair in tables.as_flattened_mut().chunks_exact_mut(2) {
            let drawn = stream.next_u64();
            pair[0] = drawn as u32;
            pair[1] = (drawn >> 32) as u32;
        }
        Self { tables, n_buckets }
    }

    /// The 32-bit value of a key, before it is scaled to a bucket.
    #[inline]
    pub fn value(&self, key: u32) -> u32 {
        let [a, b, c, d] = key.to_le_bytes();
        let [first, second, third, fourth] = &self.tables;
        first[a as usize] ^ second[b as usize] ^ third[c as usize] ^ fourth[d as usize]
    }
}

impl BucketHash for Tabulation {
    fn n_buckets(&self) -> u32 {
        self.n_buckets
    }

    #[inline]
    fn bucket(&self, key: u32) -> u32 {
        ((u64::from(self.value(key)) * u64::from(self.n_buckets)) >> 32) as u32
    }
}
