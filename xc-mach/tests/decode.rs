//! The exact decode equals the full scan, and both equal the definition.

use proptest::prelude::*;
use xc_hash::universal::{UniversalFamily, UniversalParams};
use xc_mach::{Assignment, BucketScores, BucketScoresError, Certificate, DecodeScratch, Decoder, Effort};
use xc_sparse::rank::Scored;

fn assignment(family: UniversalFamily, n_labels: usize, n_buckets: u32, numbers: &[u32]) -> Assignment {
    let params = UniversalParams { family, n_keys: n_labels as u64, n_buckets, seed: 11 };
    let mut assignment = Assignment::try_new(params, numbers).unwrap();
    assignment.build_lists();
    assignment
}

/// The definition, one label at a time: the statistic that ranks.
fn statistic(assignment: &Assignment, scores: &BucketScores<'_>, decoder: Decoder, label: u32) -> f32 {
    let numbers = (0..assignment.n_repetitions()).map(|j| scores.row(j)[assignment.bucket(j, label) as usize]);
    let mut numbers: Vec<f32> = numbers.collect();
    match decoder {
        Decoder::Mean => numbers.iter().fold(0.0, |a, b| a + b),
        Decoder::Min => numbers.iter().copied().fold(f32::INFINITY, f32::min),
        Decoder::Median => {
            numbers.sort_by(f32::total_cmp);
            let n = numbers.len();
            numbers[(n - 1) / 2] * 0.5 + numbers[n / 2] * 0.5
        }
    }
}

fn reference(assignment: &Assignment, scores: &BucketScores<'_>, decoder: Decoder, k: usize) -> Vec<u32> {
    let mut all: Vec<(f32, u32)> =
        (0..assignment.n_labels() as u32).map(|x| (statistic(assignment, scores, decoder, x), x)).collect();
    all.sort_by(|a, b| b.0.partial_cmp(&a.0).unwrap().then(a.1.cmp(&b.1)));
    all.iter().take(k).map(|pair| pair.1).collect()
}

fn bits(ranked: &[Scored]) -> Vec<(u32, u32)> {
    // -0.0 and 0.0 are one score.
    ranked.iter().map(|s| (s.label, (s.score + 0.0).to_bits())).collect()
}

/// Numbers with many ties, some peaks, and now and then any sign.
fn numbers(len: usize) -> impl Strategy<Value = Vec<f32>> {
    let ties = prop_oneof![4 => Just(0.0f32), 1 => Just(0.25), 1 => Just(0.5), 1 => Just(0.125)];
    let peaked = prop_oneof![9 => 0.0f32..1e-4, 1 => 0.2f32..1.0];
    let signed = prop_oneof![-2.0f32..2.0, Just(-0.0f32), Just(1e30), Just(-1e30)];
    let flat = Just(0.1f32);
    // Halves of these are rounded.
    let tiny = (0u32..40, any::<bool>()).prop_map(|(bits, negative)| f32::from_bits(bits | u32::from(negative) << 31));
    prop_oneof![
        3 => prop::collection::vec(ties, len),
        3 => prop::collection::vec(peaked, len),
        2 => prop::collection::vec(signed, len),
        1 => prop::collection::vec(flat, len),
        1 => prop::collection::vec(tiny, len),
    ]
}

#[derive(Clone, Debug)]
struct Case {
    family: UniversalFamily,
    n_labels: usize,
    n_buckets: u32,
    repetitions: Vec<u32>,
    numbers: Vec<f32>,
    k: usize,
}

fn cases() -> impl Strategy<Value = Case> {
    let family =
        prop_oneof![3 => Just(UniversalFamily::Prime), 1 => prop::sample::select(UniversalFamily::ALL.to_vec())];
    let n_labels = prop_oneof![1 => 0usize..3, 2 => 3usize..50, 4 => 50usize..1500, 1 => 9000usize..20_000];
    let n_buckets = prop_oneof![1 => 1u32..4, 4 => 4u32..60, 2 => 60u32..400];
    let some = |n: std::ops::Range<usize>| prop::sample::subsequence((0..70u32).collect::<Vec<_>>(), n).prop_shuffle();
    let repetitions = prop_oneof![4 => some(1..10), 1 => some(10..65)];
    (family, n_labels, n_buckets, repetitions)
        .prop_flat_map(|(family, n_labels, n_buckets, repetitions)| {
            let k = prop_oneof![1 => Just(0), 3 => 1usize..12, 1 => 12usize..120, 1 => Just(n_labels + 1)];
            (Just((family, n_labels, n_buckets)), numbers(repetitions.len() * n_buckets as usize), Just(repetitions), k)
        })
        .prop_map(|((family, n_labels, n_buckets), numbers, repetitions, k)| Case {
            family,
            n_labels,
            n_buckets,
            repetitions,
            numbers,
            k,
        })
}

fn decode_equals_scan(case: &Case, decoders: &[Decoder]) -> Result<(), TestCaseError> {
    let assignment = assignment(case.family, case.n_labels, case.n_buckets, &case.repetitions);
    let scores = BucketScores::try_new(&case.numbers, case.repetitions.len(), case.n_buckets as usize).unwrap();
    let mut scratch = DecodeScratch::default();
    let (mut scanned, mut walked, mut given) = (Vec::new(), vec![Scored::default()], Vec::new());
    for &decoder in decoders {
        assignment.scan(&scores, decoder, case.k, &mut scratch, &mut scanned);
        let wanted = reference(&assignment, &scores, decoder, case.k);
        prop_assert_eq!(scanned.iter().map(|s| s.label).collect::<Vec<_>>(), wanted.clone(), "{}", decoder);
        let met = assignment.decode(&scores, decoder, case.k, Effort::Exact, &mut scratch, &mut walked).unwrap();
        prop_assert!(met.exact);
        prop_assert_eq!(bits(&walked), bits(&scanned), "{} {:?}", decoder, met);
        assignment.score_labels(&scores, decoder, &wanted, &mut scratch, &mut given);
        let given: Vec<u32> = given.iter().map(|s| (s + 0.0).to_bits()).collect();
        prop_assert_eq!(given, bits(&scanned).iter().map(|s| s.1).collect::<Vec<_>>());
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn the_exact_decode_and_the_scan_equal_the_definition(case in cases()) {
        decode_equals_scan(&case, &Decoder::ALL)?;
    }

    #[test]
    fn an_early_stop_tells_what_it_may_have_missed(case in cases(), most in 0u64..3000) {
        let assignment = assignment(case.family, case.n_labels, case.n_buckets, &case.repetitions);
        let scores = BucketScores::try_new(&case.numbers, case.repetitions.len(), case.n_buckets as usize).unwrap();
        let (mut scratch, mut best) = (DecodeScratch::default(), Vec::new());
        let every: Vec<u32> = (0..case.n_labels as u32).collect();
        let mut all = Vec::new();
        for decoder in Decoder::ALL {
            let met = assignment.decode(&scores, decoder, case.k, Effort::Labels(most), &mut scratch, &mut best).unwrap();
            prop_assert!(!met.scanned);
            assignment.score_labels(&scores, decoder, &every, &mut scratch, &mut all);
            // Each answer carries its own score, none twice; what is left out is covered by the
            // bound or the last answer.
            prop_assert!(best.iter().all(|s| s.score == all[s.label as usize]));
            let answered: std::collections::BTreeSet<u32> = best.iter().map(|s| s.label).collect();
            prop_assert_eq!(answered.len(), best.len());
            let last = if best.len() < case.k { f32::NEG_INFINITY } else { best.last().map_or(f32::INFINITY, |s| s.score) };
            for &label in &every {
                if !answered.contains(&label) {
                    prop_assert!(all[label as usize] <= met.bound.max(last), "{} label {} {:?}", decoder, label, met);
                }
            }
            if met.exact {
                let mut scanned = Vec::new();
                assignment.scan(&scores, decoder, case.k, &mut scratch, &mut scanned);
                prop_assert_eq!(bits(&best), bits(&scanned));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]
    #[test]
    #[ignore = "minutes, with a release build"]
    fn medians_are_those_of_the_definition_in_many_cases(case in cases()) {
        decode_equals_scan(&case, &[Decoder::Median])?;
    }
}

/// The only labels of one part that are scanned in several blocks: later blocks know a k-th best.
#[test]
fn parts_of_several_blocks_are_scanned_as_the_definition_says() {
    let (n_labels, n_buckets, n_repetitions) = (600_000, 40u32, 5);
    let assignment = assignment(UniversalFamily::Prime, n_labels, n_buckets, &(0..n_repetitions).collect::<Vec<_>>());
    for scale in [1.0, 0.0] {
        let len = n_repetitions as usize * n_buckets as usize;
        let scores: Vec<f32> = (0..len).map(|i| 0.5 + scale * (i * 7919 % 1009) as f32 / 1009.0).collect();
        let scores = BucketScores::try_new(&scores, n_repetitions as usize, n_buckets as usize).unwrap();
        let (mut scratch, mut scanned, mut walked) = (DecodeScratch::default(), Vec::new(), Vec::new());
        for k in [1, 300] {
            assignment.scan(&scores, Decoder::Median, k, &mut scratch, &mut scanned);
            let labels: Vec<u32> = scanned.iter().map(|s| s.label).collect();
            assert_eq!(labels, reference(&assignment, &scores, Decoder::Median, k));
            let met = assignment.decode(&scores, Decoder::Median, k, Effort::Exact, &mut scratch, &mut walked).unwrap();
            assert!(met.exact && bits(&walked) == bits(&scanned), "{met:?}");
        }
    }
}

/// By the shares of high scores hundreds of labels have three of five, in fact none has.
#[test]
fn labels_that_chance_promises_and_nobody_has_are_not_waited_for() {
    let (n_labels, n_buckets, n_repetitions) = (2000, 1000usize, 5);
    let assignment = assignment(UniversalFamily::Prime, n_labels, n_buckets as u32, &[0, 1, 2, 3, 4]);
    let mut scores = vec![0f32; n_repetitions * n_buckets];
    for (at, score) in scores.iter_mut().enumerate() {
        let (position, bucket) = (at / n_buckets, (at % n_buckets) as u32);
        let mut labels = assignment.labels_of(position, bucket).unwrap();
        // Each label may be high in two repetitions.
        let is_high =
            labels.all(|label| (position + n_repetitions - label as usize % n_repetitions) % n_repetitions < 2);
        *score = (at * 7919 % 1009) as f32 / 10_090.0 + if is_high { 0.8 } else { 0.0 };
    }
    let scores = BucketScores::try_new(&scores, n_repetitions, n_buckets).unwrap();
    let (mut scratch, mut best) = (DecodeScratch::default(), Vec::new());
    for k in [1, 10] {
        let met = assignment.decode(&scores, Decoder::Median, k, Effort::Exact, &mut scratch, &mut best).unwrap();
        let labels: Vec<u32> = best.iter().map(|s| s.label).collect();
        assert_eq!(labels, reference(&assignment, &scores, Decoder::Median, k), "{met:?}");
        assert!(met.scanned && best[0].score < 0.2, "{met:?}");
    }
}

#[test]
fn one_scratch_serves_queries_of_any_shape() {
    let (mut scratch, mut best) = (DecodeScratch::default(), Vec::new());
    for (n_labels, n_buckets, n_repetitions, k) in
        [(1000, 50, 4, 5), (10, 3, 2, 20), (5000, 700, 9, 1), (1, 1, 1, 1), (0, 5, 3, 4), (300, 400, 2, 10)]
    {
        let numbers: Vec<u32> = (0..n_repetitions).collect();
        let assignment = assignment(UniversalFamily::Prime, n_labels, n_buckets, &numbers);
        let len = n_repetitions as usize * n_buckets as usize;
        let scores: Vec<f32> = (0..len).map(|i| (i * 7919 % 1009) as f32 / 1009.0).collect();
        let scores = BucketScores::try_new(&scores, numbers.len(), n_buckets as usize).unwrap();
        for decoder in Decoder::ALL {
            assignment.decode(&scores, decoder, k, Effort::Exact, &mut scratch, &mut best).unwrap();
            assert_eq!(best.iter().map(|s| s.label).collect::<Vec<_>>(), reference(&assignment, &scores, decoder, k));
        }
    }
}

#[test]
fn a_sure_classifier_is_decoded_from_few_labels() {
    let (n_labels, n_buckets, n_repetitions) = (1_000_000, 2000u32, 16);
    let assignment = assignment(UniversalFamily::Prime, n_labels, n_buckets, &(0..n_repetitions).collect::<Vec<_>>());
    let mut scores = vec![1e-5f32; n_repetitions as usize * n_buckets as usize];
    for (label, mass) in [(123_456, 0.6), (999_999, 0.3)] {
        for position in 0..n_repetitions as usize {
            scores[position * n_buckets as usize + assignment.bucket(position, label) as usize] += mass;
        }
    }
    let scores = BucketScores::try_new(&scores, n_repetitions as usize, n_buckets as usize).unwrap();
    let (mut scratch, mut best) = (DecodeScratch::default(), Vec::new());
    for decoder in Decoder::ALL {
        let met = assignment.decode(&scores, decoder, 2, Effort::Exact, &mut scratch, &mut best).unwrap();
        assert_eq!(best.iter().map(|s| s.label).collect::<Vec<_>>(), [123_456, 999_999]);
        assert!(met.exact && !met.scanned && met.labels_touched < 40_000, "{decoder}: {met:?}");
        assert!(met.bound < best[1].score);
    }
}

#[test]
fn nothing_is_decoded_from_nothing() {
    let none = assignment(UniversalFamily::Prime, 0, 5, &[0, 1]);
    let numbers = [0.5; 10];
    let scores = BucketScores::try_new(&numbers, 2, 5).unwrap();
    let (mut scratch, mut best) = (DecodeScratch::default(), vec![Scored::default()]);
    let met = none.decode(&scores, Decoder::Mean, 3, Effort::Exact, &mut scratch, &mut best).unwrap();
    assert!(met.exact && best.is_empty());
    let some = assignment(UniversalFamily::Prime, 7, 5, &[0, 1]);
    let met = some.decode(&scores, Decoder::Mean, 0, Effort::Exact, &mut scratch, &mut best).unwrap();
    assert_eq!((met.exact, met.labels_touched, best.len()), (true, 0, 0));
    let met = some.decode(&scores, Decoder::Mean, 9, Effort::Exact, &mut scratch, &mut best).unwrap();
    assert_eq!(best.iter().map(|s| s.label).collect::<Vec<_>>(), (0..7).collect::<Vec<_>>());
    assert_eq!(met.bound, f32::NEG_INFINITY);
    assert_ne!(met, Certificate::default());
}

#[test]
fn scores_are_checked_at_the_door() {
    let wanted = BucketScoresError::Length { got: 5, expected: 6 };
    assert_eq!(BucketScores::try_new(&[0.0; 5], 2, 3).unwrap_err(), wanted);
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -f32::NAN] {
        let mut numbers = [0.5; 6];
        numbers[4] = bad;
        let error = BucketScores::try_new(&numbers, 2, 3).unwrap_err();
        assert!(matches!(error, BucketScoresError::NotFinite { position: 1, bucket: 1, .. }), "{error}");
    }
    assert!(BucketScores::try_new(&[], 0, 3).is_ok());
}

#[test]
#[should_panic(expected = "repetitions and buckets of the scores, and of the assignment")]
fn scores_of_another_shape_break_the_contract() {
    let scores = BucketScores::try_new(&[0.0; 6], 2, 3).unwrap();
    let assignment = assignment(UniversalFamily::Prime, 7, 3, &[0]);
    assignment.scan(&scores, Decoder::Mean, 1, &mut DecodeScratch::default(), &mut Vec::new());
}

#[test]
fn families_without_inverses_ask_for_lists() {
    let params = UniversalParams { family: UniversalFamily::Tabulation, n_keys: 100, n_buckets: 7, seed: 0 };
    let mut assignment = Assignment::first(params, 2).unwrap();
    let numbers = [0.1; 14];
    let scores = BucketScores::try_new(&numbers, 2, 7).unwrap();
    let (mut scratch, mut best) = (DecodeScratch::default(), Vec::new());
    let refused = assignment.decode(&scores, Decoder::Mean, 3, Effort::Exact, &mut scratch, &mut best).unwrap_err();
    assert!(refused.to_string().contains("tabulation"), "{refused}");
    assignment.scan(&scores, Decoder::Mean, 3, &mut scratch, &mut best);
    assert_eq!(best.len(), 3);
    assignment.build_lists();
    assert!(assignment.decode(&scores, Decoder::Mean, 3, Effort::Exact, &mut scratch, &mut best).is_ok());
}

#[test]
fn a_scratch_is_as_good_after_a_panic() {
    let assignment = assignment(UniversalFamily::Prime, 300, 20, &[0, 1, 2]);
    let values: Vec<f32> = (0..60).map(|i| (i * 7 % 11) as f32 / 11.0).collect();
    let (right, wrong) =
        (BucketScores::try_new(&values, 3, 20).unwrap(), BucketScores::try_new(&values, 2, 30).unwrap());
    let (mut scratch, mut out, mut again) = (DecodeScratch::default(), Vec::new(), Vec::new());
    for decoder in [Decoder::Mean, Decoder::Min, Decoder::Median] {
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            assignment.decode(&wrong, decoder, 5, Effort::Exact, &mut scratch, &mut out)
        }));
        assert!(panicked.is_err());
        assignment.decode(&right, decoder, 5, Effort::Exact, &mut scratch, &mut out).unwrap();
        let mut fresh = DecodeScratch::default();
        assignment.decode(&right, decoder, 5, Effort::Exact, &mut fresh, &mut again).unwrap();
        assert_eq!(out, again);
    }
}
