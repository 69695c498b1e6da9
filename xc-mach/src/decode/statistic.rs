//! What a decoder makes of a label's R numbers.
//!
//! Labels are ranked by a *statistic* of their numbers (the sum, the least, the median) which is
//! then turned into the score that is returned. The sum ranks more finely than the estimate does:
//! two sums can be rounded to one score.
//!
//! Each statistic rises with each of its numbers, rounded arithmetic included, because additions
//! are rounded to nearest and come in one fixed order. So the statistic of upper bounds is an upper
//! bound, to the bit: the exact decode rests on that.

use super::Decoder;
use crate::product::dense;

/// Two rows of a sorting network, the lesser numbers go to the first.
pub(crate) type Comparator = (usize, usize);

impl Decoder {
    /// The score of a statistic, for R repetitions of B buckets.
    pub(crate) fn score(self, statistic: f32, n_repetitions: usize, n_buckets: usize) -> f32 {
        match self {
            Self::Min | Self::Median => statistic,
            Self::Mean => {
                let mean = f64::from(statistic) / n_repetitions as f64;
                if n_buckets == 1 {
                    // One bucket says nothing of its labels: there is no estimate, only the mean.
                    return mean as f32;
                }
                let buckets = n_buckets as f64;
                (buckets / (buckets - 1.0) * (mean - 1.0 / buckets)) as f32
            }
        }
    }

    /// The statistic of one label's numbers, which are left in another order.
    pub(super) fn statistic(self, values: &mut [f32], network: &[Comparator]) -> f32 {
        match self {
            Self::Mean => values.iter().fold(0.0, |sum, v| sum + v),
            Self::Min => values.iter().fold(f32::INFINITY, |least, &v| if v < least { v } else { least }),
            Self::Median => {
                for &(a, b) in network {
                    let (x, y) = (values[a], values[b]);
                    (values[a], values[b]) = if y < x { (y, x) } else { (x, y) };
                }
                middle(values[(values.len() - 1) / 2], values[values.len() / 2])
            }
        }
    }
}

/// The median between the two middle numbers, which are one number when R is odd.
#[inline(always)]
pub(super) fn middle(low: f32, high: f32) -> f32 {
    // Halved first: the sum of two finite numbers need not be finite.
    low * 0.5 + high * 0.5
}

/// The least number that the higher of two middle numbers may be for a median of at least `median`. It is `median` itself
/// but where halves are rounded.
pub(super) fn least_middle(median: f32) -> f32 {
    let mut least = median;
    loop {
        let below = least.next_down();
        if below == f32::NEG_INFINITY || middle(below, below) < median {
            return least;
        }
        least = below;
    }
}

/// Medians of the columns of `rows`, which holds one row of `out.len()` numbers a repetition and is
/// left in another order.
pub(super) fn medians(rows: &mut [f32], network: &[Comparator], out: &mut [f32]) {
    let n = out.len();
    let n_rows = rows.len() / n.max(1);
    for &(a, b) in network {
        let (before, from) = rows.split_at_mut(b * n);
        dense::exchange(&mut before[a * n..(a + 1) * n], &mut from[..n]);
    }
    let (low, high) = (&rows[(n_rows - 1) / 2 * n..][..n], &rows[n_rows / 2 * n..][..n]);
    for ((out, &low), &high) in out.iter_mut().zip(low).zip(high) {
        *out = middle(low, high);
    }
}

/// Batcher's odd-even merge sort of `n` rows, without the comparators that the middle rows do not
/// depend on (`[batcher1968sorting]`).
pub(crate) fn median_network(n: usize) -> Vec<Comparator> {
    let mut all = Vec::new();
    let mut p = 1;
    while p < n {
        let mut k = p;
        while k >= 1 {
            let mut j = k % p;
            while j + k < n {
                for i in 0..k.min(n - j - k) {
                    if (i + j) / (2 * p) == (i + j + k) / (2 * p) {
                        all.push((i + j, i + j + k));
                    }
                }
                j += 2 * k;
            }
            k /= 2;
        }
        p *= 2;
    }
    let mut wanted = vec![false; n];
    if n > 0 {
        wanted[(n - 1) / 2] = true;
        wanted[n / 2] = true;
    }
    let mut kept: Vec<Comparator> = Vec::new();
    for &(a, b) in all.iter().rev() {
        if wanted[a] || wanted[b] {
            (wanted[a], wanted[b]) = (true, true);
            kept.push((a, b));
        }
    }
    kept.reverse();
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_network_finds_the_middle_of_every_order_of_zeros_and_ones() {
        // A network that is right on zeros and ones is right on all numbers.
        for n in 1..=14 {
            let network = median_network(n);
            for bits in 0u32..1 << n {
                let mut values: Vec<f32> = (0..n).map(|i| (bits >> i & 1) as f32).collect();
                let mut sorted = values.clone();
                sorted.sort_by(f32::total_cmp);
                let wanted = (sorted[(n - 1) / 2] + sorted[n / 2]) / 2.0;
                assert_eq!(Decoder::Median.statistic(&mut values, &network), wanted, "n {n} bits {bits:b}");
            }
        }
        assert!(median_network(32).len() < 191);
    }

    #[test]
    fn no_median_is_above_what_its_higher_middle_allows() {
        let tiny = (0..40).map(f32::from_bits).flat_map(|v| [v, -v]);
        let others = [1.0, -1.0, f32::MIN_POSITIVE, f32::MAX, f32::MIN, 1e-38, 3e-39];
        let all: Vec<f32> = tiny.chain(others).collect();
        for &median in &all {
            let least = least_middle(median);
            assert!(least <= median && median - least <= f32::from_bits(2), "{median:e}: {least:e}");
            for &high in &all {
                // The lower one is at most as high: the largest median is that of two equal ones.
                assert!(middle(high, high) < median || high >= least, "{high:e} for {median:e}");
            }
        }
    }

    #[test]
    fn medians_of_columns_are_those_of_each() {
        for (n_rows, n) in [(1, 3), (2, 1), (5, 7), (32, 20)] {
            let rows: Vec<f32> = (0..n_rows * n).map(|i| ((i * 7919 + 13) % 101) as f32).collect();
            let network = median_network(n_rows);
            let mut out = vec![0.0; n];
            medians(&mut rows.clone(), &network, &mut out);
            for t in 0..n {
                let mut column: Vec<f32> = (0..n_rows).map(|j| rows[j * n + t]).collect();
                assert_eq!(out[t], Decoder::Median.statistic(&mut column, &network));
            }
        }
    }

    #[test]
    fn the_score_of_the_mean_is_the_unbiased_estimate() {
        // Theorem 1: B / (B - 1) (mean - 1 / B).
        let score = Decoder::Mean.score(1.5, 2, 4);
        assert!((score - 4.0 / 3.0 * 0.5).abs() < 1e-6, "{score}");
        assert_eq!(Decoder::Mean.score(1.5, 2, 1), 0.75);
        assert_eq!(Decoder::Min.score(0.25, 2, 4), 0.25);
    }
}
