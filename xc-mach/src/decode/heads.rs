//! The buckets of each repetition, best first, sorted only as far as they are walked.

use super::BucketScores;
use crate::product::dense;

/// Scores of this many buckets share one largest.
const GROUP: usize = 64;

/// Buckets that are sorted at first; afterwards four times as many whenever they run out.
const FIRST: usize = 64;

/// The best buckets of every repetition: score down, then bucket up.
#[derive(Clone, Debug, Default)]
pub(super) struct Heads {
    rows: Vec<Head>,
}

#[derive(Clone, Debug, Default)]
struct Head {
    largest: Vec<f32>,
    /// A sorted key holds score and bucket; see [`key`].
    sorted: Vec<u64>,
}

/// A number that sorts by score down, then bucket up.
fn key(score: f32, bucket: usize) -> u64 {
    // -0.0 equals 0.0: adding 0 makes it so.
    let bits = (score + 0.0).to_bits();
    // Ascending as integers: negative numbers are turned around, and the sign bit is flipped.
    let ascending = if bits >> 31 == 1 { !bits } else { bits | 1 << 31 };
    u64::from(!ascending) << 32 | bucket as u64
}

fn score_of(key: u64) -> f32 {
    let ascending = !((key >> 32) as u32);
    f32::from_bits(if ascending >> 31 == 1 { ascending & !(1 << 31) } else { !ascending })
}

impl Heads {
    /// Starts on another query.
    pub(super) fn reset(&mut self, scores: &BucketScores<'_>) {
        self.rows.resize_with(scores.n_repetitions(), Head::default);
        for (position, head) in self.rows.iter_mut().enumerate() {
            head.sorted.clear();
            head.largest.clear();
            dense::largest_of_groups(scores.row(position), GROUP, &mut head.largest);
        }
    }

    /// Score and bucket at `rank` in the row of `position`; none past the last.
    pub(super) fn at(&mut self, scores: &BucketScores<'_>, position: usize, rank: usize) -> Option<(f32, u32)> {
        if rank >= scores.n_buckets() {
            return None;
        }
        let head = &mut self.rows[position];
        if rank >= head.sorted.len() {
            head.sort(scores.row(position), (rank + 1).max(FIRST).max(4 * head.sorted.len()));
        }
        let key = head.sorted[rank];
        Some((score_of(key), key as u32))
    }

    /// Groups of all repetitions.
    pub(super) fn n_groups(&self) -> usize {
        self.rows.iter().map(|head| head.largest.len()).sum()
    }

    /// How many buckets of the row of `position` score at least `bar`.
    ///
    /// *Cost*: a look at each group, and at each bucket of groups whose largest is as high.
    pub(super) fn count_from(&self, scores: &BucketScores<'_>, position: usize, bar: f32) -> usize {
        let groups = self.rows[position].largest.iter().zip(scores.row(position).chunks(GROUP));
        groups.filter(|&(&largest, _)| largest >= bar).map(|(_, group)| dense::count_from(group, bar)).sum()
    }
}

impl Head {
    /// Sorts at least the best `wanted` buckets of `row`.
    fn sort(&mut self, row: &[f32], wanted: usize) {
        self.sorted.clear();
        let keys = |at: usize, group: &[f32], least: f32, sorted: &mut Vec<u64>| {
            let taken = group.iter().enumerate().filter(|&(_, &score)| score >= least);
            sorted.extend(taken.map(|(i, &score)| key(score, at * GROUP + i)));
        };
        if wanted < self.largest.len() / 2 {
            // `wanted` groups have a largest score of at least `least`, so at least as many buckets
            // do.
            self.sorted.extend(self.largest.iter().enumerate().map(|(at, &score)| key(score, at)));
            let (_, &mut least, _) = self.sorted.select_nth_unstable(wanted - 1);
            let least = score_of(least);
            self.sorted.clear();
            for (at, group) in row.chunks(GROUP).enumerate() {
                if self.largest[at] >= least {
                    keys(at, group, least, &mut self.sorted);
                }
            }
        } else {
            row.chunks(GROUP).enumerate().for_each(|(at, group)| keys(at, group, f32::NEG_INFINITY, &mut self.sorted));
        }
        self.sorted.sort_unstable();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn ranks_are_those_of_a_full_sort(
            row in prop::collection::vec(any::<u16>(), 1..20_000),
            ranks in prop::collection::vec(any::<prop::sample::Index>(), 1..8)
        ) {
            // A quarter of the scores of either zero, and of 0.5.
            let score = |drawn: u16| match drawn % 4 {
                0 => 0.0,
                1 => -0.0,
                2 => 0.5,
                _ => f32::from(drawn) / 16384.0 - 2.0,
            };
            let row: Vec<f32> = row.into_iter().map(score).collect();
            let mut wanted: Vec<(f32, u32)> = row.iter().zip(0..).map(|(&s, b)| (s, b)).collect();
            wanted.sort_by(|a, b| b.0.partial_cmp(&a.0).unwrap().then(a.1.cmp(&b.1)));
            let scores = BucketScores::try_new(&row, 1, row.len()).unwrap();
            let mut heads = Heads::default();
            heads.reset(&scores);
            for rank in ranks {
                let rank = rank.index(row.len());
                prop_assert_eq!(heads.at(&scores, 0, rank), Some(wanted[rank]));
            }
            prop_assert_eq!(heads.at(&scores, 0, row.len()), None);
            for bar in [row[0], 0.0, -0.0, 0.5, 3.0] {
                prop_assert_eq!(heads.count_from(&scores, 0, bar), row.iter().filter(|&&score| score >= bar).count());
            }
        }
    }
}
