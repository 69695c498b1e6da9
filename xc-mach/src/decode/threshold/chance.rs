//! How high medians come by chance alone: what is ahead of a walk that finds nothing better.
//!
//! *Model*: the numbers of a label are independent, number j as if drawn from the scores of repetition j.

use crate::decode::BucketScores;
use crate::product::dense;

/// Scores of each repetition that are looked at, at most: of 32 repetitions together a share of a tenth is known within a
/// twentieth of itself.
const SAMPLE: usize = 128;

/// Some scores of each repetition, and all of them in order.
#[derive(Clone, Debug, Default)]
pub(super) struct ChanceScratch {
    rows: Vec<f32>,
    sorted: Vec<f32>,
    hits: Vec<f64>,
}

/// Probability that at least `least` of some draws hit, draw j with the j-th probability. `hits` is scratch.
fn tail(draws: impl Iterator<Item = f64>, least: usize, hits: &mut Vec<f64>) -> f64 {
    // Entry i: i hits so far; the last one: at least so many.
    hits.clear();
    hits.resize(least + 1, 0.0);
    hits[0] = 1.0;
    for p in draws {
        if least == 0 {
            break;
        }
        hits[least] += hits[least - 1] * p;
        for i in (1..least).rev() {
            hits[i] = hits[i] * (1.0 - p) + hits[i - 1] * p;
        }
        hits[0] *= 1.0 - p;
    }
    hits[least]
}

/// A sample of a query's scores.
pub(super) struct Chance<'a> {
    each: usize,
    scratch: &'a mut ChanceScratch,
}

impl<'a> Chance<'a> {
    pub(super) fn new(scores: &BucketScores<'_>, scratch: &'a mut ChanceScratch) -> Self {
        let step = scores.n_buckets().div_ceil(SAMPLE).max(1);
        scratch.rows.clear();
        (0..scores.n_repetitions()).for_each(|at| scratch.rows.extend(scores.row(at).iter().step_by(step)));
        scratch.sorted.clone_from(&scratch.rows);
        scratch.sorted.sort_unstable_by(|a, b| b.total_cmp(a));
        Self { each: scores.n_buckets().div_ceil(step), scratch }
    }

    /// The highest score of the sample that at least `labels` of `n_labels` labels are expected to reach with `needed`
    /// numbers; the lowest if none is low enough.
    pub(super) fn level(&mut self, n_labels: usize, labels: usize, needed: usize) -> f32 {
        let ChanceScratch { rows, sorted, hits } = &mut *self.scratch;
        let each = self.each;
        let at = sorted.partition_point(|&level| {
            let share = |row: &[f32]| row.iter().filter(|&&score| score >= level).count() as f64 / each as f64;
            tail(rows.chunks(each).map(share), needed, hits) * (n_labels as f64) < labels as f64
        });
        sorted.get(at).or(sorted.last()).copied().unwrap_or(f32::NEG_INFINITY)
    }

    /// [`Chance::level`]; if fewer labels are expected there by all scores, the level for as many times more labels.
    pub(super) fn checked_level(
        &mut self,
        scores: &BucketScores<'_>,
        n_labels: usize,
        labels: usize,
        needed: usize,
    ) -> f32 {
        let level = self.level(n_labels, labels, needed);
        let share = |at| dense::count_from(scores.row(at), level) as f64 / scores.n_buckets() as f64;
        let met = tail((0..scores.n_repetitions()).map(share), needed, &mut self.scratch.hits) * n_labels as f64;
        if met >= labels as f64 {
            return level;
        }
        let wanted = (labels as f64 * labels as f64 / met.max(f64::MIN_POSITIVE)).min(n_labels as f64);
        self.level(n_labels, wanted.ceil() as usize, needed)
    }

    /// The share of all scores that reach `level`.
    pub(super) fn share(&self, level: f32) -> f64 {
        let sorted = &self.scratch.sorted;
        sorted.partition_point(|&score| score >= level) as f64 / sorted.len().max(1) as f64
    }

    /// After how many of `n` look-ups, each a hit with probability `share`, at most one in `many` labels may still have
    /// `needed` hits.
    pub(super) fn look_ups(&mut self, share: f64, n: usize, needed: usize, many: usize) -> usize {
        let first = (n + 1).saturating_sub(needed);
        let left = |asked: usize, hits: &mut Vec<f64>| {
            tail(std::iter::repeat_n(share, asked), (needed + asked).saturating_sub(n), hits) * many as f64
        };
        (first..n).find(|&asked| left(asked, &mut self.scratch.hits) <= 1.0).unwrap_or(n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xc_hash::stream::mix;

    #[test]
    fn tails_are_those_of_counted_cases() {
        let tail = |draws: &[f64], least| tail(draws.iter().copied(), least, &mut Vec::new());
        // 2 of 3 coins: 4 of 8 cases; at least none: all.
        assert!((tail(&[0.5; 3], 2) - 0.5).abs() < 1e-12);
        assert_eq!((tail(&[0.3; 3], 0), tail(&[], 0), tail(&[], 1)), (1.0, 1.0, 0.0));
        // Both; one of two that differ.
        assert!((tail(&[0.25, 0.5], 2) - 0.125).abs() < 1e-12);
        assert!((tail(&[0.25, 0.5], 1) - 0.625).abs() < 1e-12);
        assert_eq!((tail(&[0.0; 5], 1), tail(&[1.0; 5], 5)), (0.0, 1.0));
    }

    #[test]
    fn so_many_labels_reach_a_level() {
        let (n_labels, n_repetitions, n_buckets) = (20_000, 9, 300);
        let number = |at: u64| (mix(3, at) >> 40) as f32;
        let values: Vec<f32> = (0..n_repetitions as u64 * n_buckets).map(number).collect();
        let scores = BucketScores::try_new(&values, n_repetitions, n_buckets as usize).unwrap();
        let mut scratch = ChanceScratch::default();
        let mut chance = Chance::new(&scores, &mut scratch);
        for labels in [40, 400, 4000] {
            let level = chance.level(n_labels, labels, 5);
            let bucket = |label: u64, at: u64| mix(label, at) % n_buckets;
            let reaches = |label: u64, at: u64| scores.row(at as usize)[bucket(label, at) as usize] >= level;
            let met = (0..n_labels as u64).filter(|&x| (0..9).filter(|&at| reaches(x, at)).count() >= 5).count();
            assert!((labels / 3..3 * labels).contains(&met), "{met} labels, {labels} expected");
            assert!((chance.share(level) - 0.3).abs() < 0.25);
        }
        // The sample has every third score; all of the others reach the level, then none do.
        let at = |bucket: usize| scores.row(0)[bucket];
        for (other, labels) in [(f32::MAX, 400), (f32::MIN, 400)] {
            let other =
                |i: usize| if (i % n_buckets as usize).is_multiple_of(3) { at(i % n_buckets as usize) } else { other };
            let values: Vec<f32> = (0..values.len()).map(other).collect();
            let scores = BucketScores::try_new(&values, n_repetitions, n_buckets as usize).unwrap();
            let mut scratch = ChanceScratch::default();
            let mut chance = Chance::new(&scores, &mut scratch);
            assert!(chance.checked_level(&scores, n_labels, labels, 5) <= chance.level(n_labels, labels, 5));
        }
        let mut chance = Chance::new(&scores, &mut scratch);
        assert_eq!(chance.share(f32::NEG_INFINITY), 1.0);
        assert_eq!(chance.level(n_labels, 2 * n_labels, 5), *chance.scratch.sorted.last().unwrap());
    }

    #[test]
    fn labels_are_given_up_as_soon_as_few_can_have_enough() {
        let scores = BucketScores::try_new(&[], 0, 3).unwrap();
        let mut scratch = ChanceScratch::default();
        let mut chance = Chance::new(&scores, &mut scratch);
        assert_eq!(chance.level(5, 1, 0), f32::NEG_INFINITY);
        // No hit at all: after the first look-ups that decide.
        assert_eq!(chance.look_ups(0.0, 32, 16, 16), 17);
        assert_eq!(chance.look_ups(1.0, 32, 16, 16), 32);
        assert!((20..25).contains(&chance.look_ups(0.14, 32, 16, 16)));
        assert_eq!(chance.look_ups(0.5, 1, 1, 16), 1);
    }
}
