//! The sketches' bounds, merging, and what they refuse.

use proptest::prelude::*;
use std::collections::BTreeMap;
use xc_hash::sketch::{CountMin, CountSketch, SketchError, SketchParams, Update};
use xc_hash::universal::{Family, HashParamsError};

fn params(family: Family, width: u32, depth: u32, seed: u64) -> SketchParams {
    SketchParams { family, n_keys: 1_000_000, width, depth, seed }
}

fn stream() -> impl Strategy<Value = Vec<(u32, f64)>> {
    // Whole amounts: sums of them are exact.
    prop::collection::vec((0u32..200, (0u32..50).prop_map(f64::from)), 0..300)
}

fn truth(stream: &[(u32, f64)]) -> BTreeMap<u32, f64> {
    let mut sums = BTreeMap::new();
    stream.iter().for_each(|&(key, amount)| *sums.entry(key).or_default() += amount);
    sums
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn count_min_is_never_too_low_and_conservative_lies_between(
        stream in stream(), family in prop::sample::select(Family::ALL.to_vec()), width in 1u32..60, depth in 1u32..6, seed: u64
    ) {
        let params = params(family, width, depth, seed);
        let mut plain = CountMin::try_new(params, Update::Plain).unwrap();
        let mut conservative = CountMin::try_new(params, Update::Conservative).unwrap();
        for &(key, amount) in &stream {
            plain.add(key, amount).unwrap();
            conservative.add(key, amount).unwrap();
        }
        for (key, sum) in truth(&stream) {
            prop_assert!(sum <= conservative.estimate(key));
            prop_assert!(conservative.estimate(key) <= plain.estimate(key));
            prop_assert!(plain.estimate(key) <= plain.total());
        }
        prop_assert_eq!(conservative.corrected_mean(0), None);
        prop_assert_eq!(plain.corrected_mean(0).is_some(), width > 1);
    }

    #[test]
    fn parts_merge_to_the_whole(stream in stream(), cut: prop::sample::Index, width in 1u32..60, depth in 1u32..6, seed: u64) {
        let cut = if stream.is_empty() { 0 } else { cut.index(stream.len()) };
        let params = params(Family::Prime, width, depth, seed);
        let min = |part: &[(u32, f64)]| {
            let mut sketch = CountMin::try_new(params, Update::Plain).unwrap();
            part.iter().for_each(|&(key, amount)| sketch.add(key, amount).unwrap());
            sketch
        };
        let count = |part: &[(u32, f64)]| {
            let mut sketch = CountSketch::try_new(params).unwrap();
            part.iter().for_each(|&(key, amount)| sketch.add(key, -amount).unwrap());
            sketch
        };
        let mut merged = min(&stream[..cut]);
        merged.merge(&min(&stream[cut..])).unwrap();
        prop_assert_eq!(&merged, &min(&stream));
        let mut merged = count(&stream[..cut]);
        merged.merge(&count(&stream[cut..])).unwrap();
        prop_assert_eq!(&merged, &count(&stream));
        // And both come back from their stored form.
        let stored = serde_json::to_string(&merged).unwrap();
        prop_assert_eq!(serde_json::from_str::<CountSketch>(&stored).unwrap(), merged);
        let stored = serde_json::to_string(&min(&stream)).unwrap();
        prop_assert_eq!(serde_json::from_str::<CountMin>(&stored).unwrap(), min(&stream));
    }
}

/// Amounts 1 / (1 + i) of 400 scattered keys.
fn skewed() -> Vec<(u32, f64)> {
    (0..400u32).map(|i| (i * 2417 % 1_000_000, 1.0 / f64::from(1 + i))).collect()
}

#[test]
fn count_min_errs_as_seldom_as_said() {
    let (width, depth) = (50, 3);
    let stream = skewed();
    let total: f64 = stream.iter().map(|s| s.1).sum();
    let limit = std::f64::consts::E / f64::from(width) * total;
    for family in Family::ALL {
        let (mut over, mut asked) = (0, 0);
        for seed in 0..40 {
            let mut sketch = CountMin::try_new(params(family, width, depth, seed), Update::Plain).unwrap();
            stream.iter().for_each(|&(key, amount)| sketch.add(key, amount).unwrap());
            over += stream.iter().filter(|&&(key, amount)| sketch.estimate(key) > amount + limit).count();
            asked += stream.len();
        }
        let share = over as f64 / asked as f64;
        assert!(share <= (-f64::from(depth)).exp(), "{family}: {share}");
        assert!(share > 0.0, "{family}: the bound was not tried");
    }
}

/// Mean error over seeds, its standard error, and the mean squared error of one key's estimate.
fn errors(answer: impl Fn(u64) -> f64, truth: f64, seeds: u64) -> (f64, f64, f64) {
    let errors: Vec<f64> = (0..seeds).map(|seed| answer(seed) - truth).collect();
    let n = seeds as f64;
    let mean = errors.iter().sum::<f64>() / n;
    let squares = errors.iter().map(|e| e * e).sum::<f64>() / n;
    (mean, ((squares - mean * mean) / n).sqrt(), squares)
}

#[test]
fn corrected_and_signed_estimates_are_unbiased() {
    const SEEDS: u64 = 1500;
    let (stream, width) = (skewed(), 20);
    let squares: f64 = stream.iter().map(|s| s.1 * s.1).sum();
    for family in Family::ALL {
        for &(key, amount) in [stream[0], stream[7], stream[399]].iter() {
            let corrected = |seed| {
                let mut sketch = CountMin::try_new(params(family, width, 3, seed), Update::Plain).unwrap();
                stream.iter().for_each(|&(key, amount)| sketch.add(key, amount).unwrap());
                sketch.corrected_mean(key).unwrap()
            };
            let (mean, error, _) = errors(corrected, amount, SEEDS);
            assert!(mean.abs() < 5.0 * error, "{family} key {key}: {mean} +- {error}");
            let signed = |seed| {
                let mut sketch = CountSketch::try_new(params(family, width, 1, seed)).unwrap();
                stream.iter().for_each(|&(key, amount)| sketch.add(key, amount).unwrap());
                sketch.estimate(key)
            };
            let (mean, error, squared) = errors(signed, amount, SEEDS);
            assert!(mean.abs() < 5.0 * error, "{family} key {key}: {mean} +- {error}");
            // The variance of a row; a fifth more for the draw of the seeds.
            assert!(squared < 1.2 * squares / f64::from(width), "{family} key {key}: {squared}");
        }
    }
}

#[test]
fn the_median_of_signed_rows_is_close_for_most_keys() {
    let (stream, width) = (skewed(), 60);
    let squares: f64 = stream.iter().map(|s| s.1 * s.1).sum();
    let limit = 3.0 * (squares / f64::from(width)).sqrt();
    let (mut far, mut sums) = (0, 0.0);
    for seed in 0..40 {
        let mut sketch = CountSketch::try_new(params(Family::Tabulation, width, 5, seed)).unwrap();
        stream.iter().for_each(|&(key, amount)| sketch.add(key, amount).unwrap());
        far += stream.iter().filter(|&&(key, amount)| (sketch.estimate(key) - amount).abs() > limit).count();
        sums += sketch.sum_of_squares() / 40.0;
    }
    // One row is that far off for one key in nine at most; three of five rows for one in a hundred.
    assert!(far < 40 * 400 / 80, "{far} of {}", 40 * 400);
    assert!((sums / squares - 1.0).abs() < 0.2, "{sums}, wanted {squares}");
}

#[test]
fn what_does_not_fit_is_refused() {
    let good = params(Family::Prime, 10, 2, 0);
    let no_rows = SketchParams { depth: 0, ..good };
    assert_eq!(CountMin::try_new(no_rows, Update::Plain).unwrap_err(), SketchError::NoRows);
    let no_counters = SketchParams { width: 0, ..good };
    assert_eq!(CountSketch::try_new(no_counters).unwrap_err(), SketchError::Hash(HashParamsError::NoBuckets));
    let mut sketch = CountMin::try_new(good, Update::Plain).unwrap();
    for bad in [-1.0, f64::INFINITY, f64::NAN] {
        assert!(matches!(sketch.add(3, bad), Err(SketchError::Negative { .. })));
    }
    assert_eq!((sketch.estimate(3), sketch.total()), (0.0, 0.0));
    let mut signed = CountSketch::try_new(good).unwrap();
    assert!(matches!(signed.add(3, f64::NAN), Err(SketchError::NotFinite { .. })));
    let other = CountMin::try_new(SketchParams { seed: 1, ..good }, Update::Plain).unwrap();
    assert_eq!(sketch.merge(&other), Err(SketchError::Mismatch));
    let other = CountMin::try_new(good, Update::Conservative).unwrap();
    assert_eq!(sketch.merge(&other), Err(SketchError::Mismatch));
    assert_eq!(
        signed.merge(&CountSketch::try_new(params(Family::Prime, 11, 2, 0)).unwrap()),
        Err(SketchError::Mismatch)
    );

    let stored = serde_json::to_value(&sketch).unwrap();
    for (field, value) in [
        ("counters", serde_json::json!([0.0])),
        ("total", serde_json::json!(-1.0)),
        (
            "params",
            serde_json::json!({"family": "prime", "n_keys": 10, "width": 4294967295u32, "depth": 4294967295u32, "seed": 0}),
        ),
    ] {
        let mut damaged = stored.clone();
        damaged[field] = value;
        assert!(serde_json::from_value::<CountMin>(damaged).is_err(), "{field}");
    }
    assert!(serde_json::from_value::<CountMin>(stored).is_ok());
}
