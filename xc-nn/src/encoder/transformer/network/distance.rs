//! A bias of attention by the distance of two tokens, as MPNet has it.
//!
//! ```text
//!   tokens before   0 1 2 3 4 5 6 7 | 8 .. 11 | 12 .. 15 | ... to `most`      a bucket each, then ranges that widen
//!   tokens behind   the same, from half of the buckets on
//! ```

use super::super::params::Distances;
use crate::Parameter;

/// What distances add to scores: for each head a list of the distances from `-(longest - 1)` to `longest - 1`.
#[derive(Debug, Default)]
pub(super) struct OffsetTable {
    /// Bucket of each distance.
    buckets: Vec<u32>,
    values: Vec<f32>,
    heads: usize,
    n_buckets: usize,
}

/// A borrowed [`OffsetTable`].
#[derive(Clone, Copy)]
pub(super) struct Offsets<'a> {
    of: &'a OffsetTable,
}

/// Bucket of the distance from a token to one that stands `behind` places after it.
fn bucket(Distances { buckets, most }: Distances, behind: i64) -> usize {
    let half = buckets / 2;
    let exact = half / 2;
    let (first, apart) = (if behind > 0 { half } else { 0 }, behind.unsigned_abs() as usize);
    if apart < exact {
        return first + apart;
    }
    // In f32, as the reference computes it: borders lie where its logarithm puts them.
    let share = (apart as f32 / exact as f32).ln() / (most as f64 / exact as f64).ln() as f32;
    let far = exact + (share * (half - exact) as f32) as usize;
    first + far.min(half - 1)
}

impl OffsetTable {
    /// Looks up all distances within instances of up to `longest` tokens. *Shapes*: `table` buckets x heads.
    pub(super) fn fill(&mut self, of: Distances, table: &Parameter, longest: usize) {
        let last = longest.max(1) as i64 - 1;
        self.buckets.clear();
        self.buckets.extend((-last..=last).map(|behind| bucket(of, behind) as u32));
        (self.heads, self.n_buckets) = (table.width(), table.rows());
        self.values.clear();
        for head in 0..self.heads {
            self.values.extend(self.buckets.iter().map(|&bucket| table.row(bucket as usize)[head]));
        }
    }

    pub(super) fn view(&self) -> Offsets<'_> {
        Offsets { of: self }
    }
}

impl<'a> Offsets<'a> {
    /// Numbers that are learned: one for each bucket and head.
    pub(super) fn n_values(self) -> usize {
        self.of.n_buckets * self.of.heads
    }

    /// What the distances add in a head; the middle one is that of a token to itself.
    pub(super) fn of_head(self, head: usize) -> &'a [f32] {
        let n = self.of.buckets.len();
        &self.of.values[head * n..(head + 1) * n]
    }

    /// Adds the gradient of scores of `len` tokens to that of the table, buckets x heads.
    pub(super) fn add_gradient(self, head: usize, scores: &[f32], len: usize, table: &mut [f32]) {
        let middle = self.of.buckets.len() / 2;
        for (i, row) in scores.chunks_exact(len).enumerate() {
            for (&bucket, g) in self.of.buckets[middle - i..].iter().zip(row) {
                table[bucket as usize * self.of.heads + head] += g;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_exact_near_by_and_widen_up_to_the_last() {
        let of = Distances { buckets: 32, most: 128 };
        let before: Vec<usize> = (0..10).map(|apart| bucket(of, -apart)).collect();
        assert_eq!(before, [0, 1, 2, 3, 4, 5, 6, 7, 8, 8]);
        assert_eq!(
            [11, 12, 15, 16, 22, 23, 31, 32, 63, 64, 90, 91, 127, 128, 5000].map(|apart| bucket(of, -apart)),
            [8, 9, 9, 10, 10, 11, 11, 12, 13, 14, 14, 15, 15, 15, 15]
        );
        for apart in 1..600 {
            assert_eq!(bucket(of, apart), bucket(of, -apart) + 16);
            assert!(bucket(of, -apart) >= bucket(of, 1 - apart));
        }
    }
}
