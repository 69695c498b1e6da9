//! The paper's statements, as statistics over seeds.

use xc_hash::universal::{UniversalFamily, UniversalParams};
use xc_mach::{
    Assignment, BucketScores, DecodeScratch, Decoder, expected_indistinguishable_pairs, indistinguishable_labels,
    repetitions_needed,
};

fn assignment(family: UniversalFamily, n_labels: usize, n_buckets: u32, n_repetitions: u32, seed: u64) -> Assignment {
    Assignment::first(UniversalParams { family, n_keys: n_labels as u64, n_buckets, seed }, n_repetitions).unwrap()
}

/// Bucket probabilities of perfect classifiers.
fn bucket_probabilities(assignment: &Assignment, probabilities: &[f64]) -> Vec<f32> {
    let n_buckets = assignment.n_buckets();
    let mut sums = vec![0f64; assignment.n_repetitions() * n_buckets];
    for position in 0..assignment.n_repetitions() {
        for (label, probability) in probabilities.iter().enumerate() {
            sums[position * n_buckets + assignment.bucket(position, label as u32) as usize] += probability;
        }
    }
    sums.iter().map(|&sum| sum as f32).collect()
}

/// Mean and standard error of a label's estimates over seeds, for each label.
fn estimates(
    family: UniversalFamily,
    decoder: Decoder,
    probabilities: &[f64],
    n_buckets: u32,
    seeds: u64,
) -> Vec<(f64, f64)> {
    let n_labels = probabilities.len();
    let labels: Vec<u32> = (0..n_labels as u32).collect();
    let (mut sums, mut squares) = (vec![0f64; n_labels], vec![0f64; n_labels]);
    let (mut scratch, mut scores) = (DecodeScratch::default(), Vec::new());
    for seed in 0..seeds {
        let assignment = assignment(family, n_labels, n_buckets, 3, seed);
        let numbers = bucket_probabilities(&assignment, probabilities);
        let buckets = BucketScores::try_new(&numbers, 3, n_buckets as usize).unwrap();
        assignment.score_labels(&buckets, decoder, &labels, &mut scratch, &mut scores);
        for (label, &score) in scores.iter().enumerate() {
            sums[label] += f64::from(score);
            squares[label] += f64::from(score) * f64::from(score);
        }
    }
    let n = seeds as f64;
    sums.iter().zip(&squares).map(|(s, q)| (s / n, ((q / n - (s / n).powi(2)) / (n - 1.0)).max(0.0).sqrt())).collect()
}

#[test]
fn theorem_1_the_mean_is_unbiased() {
    // Probabilities of 40 labels: one large, a few middling, a long tail.
    let raw: Vec<f64> = (0..40).map(|i| 1.0 / f64::powi(1.0 + i as f64, 2)).collect();
    let total: f64 = raw.iter().sum();
    let probabilities: Vec<f64> = raw.iter().map(|p| p / total).collect();
    for family in UniversalFamily::ALL {
        for (label, (mean, error)) in estimates(family, Decoder::Mean, &probabilities, 10, 4000).into_iter().enumerate()
        {
            // The affine families collide a little less often than 1 / B: by less than 1 / (p - 1),
            // p = 41 here. The bias is that difference times B / (B - 1).
            let collision = assignment(family, 40, 10, 1, 0).params().collision_probability().unwrap();
            let bias = 10.0 / 9.0 * (0.1 - collision) * (1.0 - probabilities[label]);
            assert!((-1e-9..10.0 / 9.0 / 40.0).contains(&bias), "{family}: bias {bias}");
            let gap = mean - (probabilities[label] - bias);
            assert!(gap.abs() < 5.0 * error + 1e-6, "{family} label {label}: {mean} +- {error}, off by {gap}");
        }
    }
}

#[test]
fn the_least_number_overestimates() {
    let probabilities: Vec<f64> = (0..40).map(|_| 1.0 / 40.0).collect();
    for (mean, error) in estimates(UniversalFamily::MultiplyShift, Decoder::Min, &probabilities, 10, 500) {
        assert!(mean > 1.0 / 40.0 + 5.0 * error, "{mean} +- {error}");
    }
}

#[test]
fn lemma_1_two_labels_share_all_buckets_as_seldom_as_said() {
    const SEEDS: u64 = 20_000;
    for family in UniversalFamily::ALL {
        for n_repetitions in [1, 2] {
            let shared = (0..SEEDS).filter(|&seed| {
                let assignment = assignment(family, 1000, 8, n_repetitions, seed);
                (0..n_repetitions as usize).all(|j| assignment.bucket(j, 17) == assignment.bucket(j, 940))
            });
            let met = shared.count() as f64 / SEEDS as f64;
            let bound = 8f64.powi(-(n_repetitions as i32));
            let spread = 5.0 * (bound / SEEDS as f64).sqrt();
            assert!(met < bound + spread, "{family} R {n_repetitions}: {met}, bound {bound}");
            assert!(met > bound - spread, "{family} R {n_repetitions}: {met}: far below {bound}");
        }
    }
}

#[test]
fn theorem_2_enough_repetitions_tell_all_labels_apart() {
    let (n_labels, n_buckets, delta) = (300, 20, 0.1);
    let n_repetitions = repetitions_needed(n_labels, n_buckets as usize, delta).unwrap() as u32;
    const SEEDS: u64 = 200;
    const MORE_SEEDS: u64 = 4000;
    for family in UniversalFamily::ALL {
        let enough = (0..SEEDS).map(|seed| assignment(family, n_labels, n_buckets, n_repetitions, seed));
        let failures = enough.filter(|enough| !indistinguishable_labels(enough).is_empty()).count();
        assert!(failures as f64 <= delta * SEEDS as f64, "{family}: {failures} of {SEEDS}");
        // With two repetitions pairs do collide, as often as expected. Pairs of one distance
        // collide together under an affine hash, so single seeds are far apart.
        let size = |group: &Vec<u32>| group.len() * (group.len() - 1) / 2;
        let few = (0..MORE_SEEDS).map(|seed| assignment(family, n_labels, n_buckets, 2, seed));
        let pairs: usize = few.flat_map(|few| indistinguishable_labels(&few)).map(|group| size(&group)).sum();
        let expected = expected_indistinguishable_pairs(&assignment(family, n_labels, n_buckets, 2, 0));
        let met = pairs as f64 / MORE_SEEDS as f64;
        assert!((met / expected - 1.0).abs() < 0.2, "{family}: {met} pairs, expected {expected}");
    }
}

#[test]
fn groups_of_indistinguishable_labels_are_those_of_a_plain_comparison() {
    let assignment = assignment(UniversalFamily::Prime, 200, 6, 2, 9);
    let mut wanted: std::collections::BTreeMap<Vec<u32>, Vec<u32>> = Default::default();
    for label in 0..200 {
        let buckets = (0..2).map(|j| assignment.bucket(j, label)).collect();
        wanted.entry(buckets).or_default().push(label);
    }
    let wanted: Vec<Vec<u32>> = wanted.into_values().filter(|group| group.len() > 1).collect();
    assert_eq!(indistinguishable_labels(&assignment), wanted);
}
