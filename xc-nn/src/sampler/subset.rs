//! Draws without replacement.

use xc_hash::stream::Stream;

/// `k` numbers below `n`, ascending, every set of them equally likely; all numbers if there are
/// fewer. They replace the content of `out`.
///
/// *Cost*: O(min(k, n - k) log k) and the numbers themselves.
pub(super) fn subset(n: u32, k: usize, random: &mut Stream, out: &mut Vec<u32>) {
    out.clear();
    let all = n as usize;
    if k >= all {
        out.extend(0..n);
    } else if 2 * k > all {
        let mut left = Vec::with_capacity(all - k);
        distinct(n, all - k, random, &mut left);
        without(0..n, &left, out);
    } else {
        distinct(n, k, random, out);
    }
}

/// `k` labels of a range that are not in `excluded` (ascending, unique); otherwise as [`subset`].
pub(super) fn subset_outside(
    labels: &std::ops::Range<u32>,
    excluded: &[u32],
    k: usize,
    random: &mut Stream,
    out: &mut Vec<u32>,
) {
    let inside = within(excluded, labels);
    let n = labels.len() as u32 - inside.len() as u32;
    subset(n, k, random, out);
    // Numbers among the remaining labels become labels: each moves past the excluded labels before
    // it.
    let mut passed = 0;
    for number in out {
        while passed < inside.len() && inside[passed] - labels.start - passed as u32 <= *number {
            passed += 1;
        }
        *number += labels.start + passed as u32;
    }
}

/// The labels of an ascending list that are in a range.
pub(super) fn within<'a>(list: &'a [u32], labels: &std::ops::Range<u32>) -> &'a [u32] {
    let first = list.partition_point(|&label| label < labels.start);
    let end = list.partition_point(|&label| label < labels.end);
    &list[first..end.max(first)]
}

/// Adds the numbers of `all` that are not in `excluded`; both ascending.
fn without(all: std::ops::Range<u32>, excluded: &[u32], out: &mut Vec<u32>) {
    let mut from = all.start;
    for &next in excluded {
        out.extend(from..next);
        from = next + 1;
    }
    out.extend(from..all.end);
}

/// Draws again for duplicates: every set stays equally likely, whichever numbers were drawn twice.
fn distinct(n: u32, k: usize, random: &mut Stream, out: &mut Vec<u32>) {
    while out.len() < k {
        let missing = k - out.len();
        out.extend((0..missing).map(|_| random.below_u64(u64::from(n)) as u32));
        out.sort_unstable();
        out.dedup();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_subset_is_equally_likely() {
        const DRAWS: u32 = 100_000;
        for k in [1, 2, 3, 4] {
            // 0, 3 and 4 are excluded from 0..8: five labels are left.
            let (mut random, mut out, mut counts) = (Stream::new(k as u64), Vec::new(), [0u32; 256]);
            for _ in 0..DRAWS {
                subset_outside(&(0..8), &[0, 3, 4, 9], k, &mut random, &mut out);
                assert!(out.len() == k && out.is_sorted_by(|a, b| a < b), "{out:?}");
                counts[out.iter().fold(0, |mask, label| mask | 1 << label)] += 1;
            }
            let n_sets = [5.0, 10.0, 10.0, 5.0][k - 1];
            let seen: Vec<u32> = counts.into_iter().filter(|&count| count > 0).collect();
            assert_eq!(seen.len() as f64, n_sets);
            let expected = f64::from(DRAWS) / n_sets;
            let chi: f64 = seen.iter().map(|&count| (f64::from(count) - expected).powi(2) / expected).sum();
            let free = n_sets - 1.0;
            assert!(chi < free + 5.0 * (2.0 * free).sqrt(), "k {k}: {chi}");
        }
    }

    proptest! {
        #[test]
        fn what_is_excluded_never_comes(
            start in 0u32..5, n in 0u32..40, excluded in prop::collection::btree_set(0u32..50, 0..30), k in 0usize..50, seed: u64
        ) {
            let excluded: Vec<u32> = excluded.into_iter().collect();
            let (labels, mut out) = (start..start + n, Vec::new());
            subset_outside(&labels, &excluded, k, &mut Stream::new(seed), &mut out);
            let left = labels.clone().filter(|label| !excluded.contains(label)).count();
            prop_assert_eq!(out.len(), k.min(left));
            prop_assert!(out.is_sorted_by(|a, b| a < b));
            prop_assert!(out.iter().all(|label| labels.contains(label) && !excluded.contains(label)));
        }
    }
}
