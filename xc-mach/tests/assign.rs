//! Labels to buckets and back.

use proptest::prelude::*;
use xc_hash::universal::{UniversalFamily, UniversalParams, UniversalParamsError};
use xc_mach::{AssignError, Assignment};

fn params(family: UniversalFamily, n_labels: usize, n_buckets: u32) -> UniversalParams {
    UniversalParams { family, n_keys: n_labels as u64, n_buckets, seed: 3 }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn the_buckets_share_out_the_labels(
        n_labels in prop_oneof![0usize..5, 5usize..3000], n_buckets in 1u32..500, seed: u64
    ) {
        for family in UniversalFamily::ALL {
            let params = UniversalParams { seed, ..params(family, n_labels, n_buckets) };
            let mut assignment = Assignment::try_new(params, &[2, 0]).unwrap();
            assignment.build_lists();
            for position in 0..2 {
                let mut buckets = vec![0; n_labels];
                assignment.bucket_range(position, 0..n_labels as u32, &mut buckets);
                let mut seen = vec![false; n_labels];
                for bucket in 0..n_buckets {
                    for label in assignment.labels_of(position, bucket).unwrap() {
                        prop_assert_eq!(assignment.bucket(position, label), bucket);
                        prop_assert_eq!(buckets[label as usize], bucket);
                        prop_assert!(!std::mem::replace(&mut seen[label as usize], true));
                    }
                }
                prop_assert!(seen.iter().all(|&s| s));
            }
        }
    }

    #[test]
    fn a_range_of_labels_has_the_buckets_of_each(
        n_labels in 1usize..2_000_000_000, n_buckets in 1u32..100_000, from: prop::sample::Index, len in 0usize..100
    ) {
        for family in UniversalFamily::ALL {
            let assignment = Assignment::first(params(family, n_labels, n_buckets), 2).unwrap();
            let from = from.index(n_labels);
            let len = len.min(n_labels - from);
            let mut buckets = vec![0; len];
            assignment.bucket_range(1, from as u32..(from + len) as u32, &mut buckets);
            for (t, &bucket) in buckets.iter().enumerate() {
                prop_assert_eq!(bucket, assignment.bucket(1, (from + t) as u32));
            }
        }
    }
}

#[test]
fn large_primes_list_their_buckets_too() {
    // Below 2^31, above it, and next to 2^32.
    for n_labels in [2_000_000_000, 3_000_000_000, 4_294_967_290] {
        let assignment = Assignment::first(params(UniversalFamily::Prime, n_labels, 1_000_003), 2).unwrap();
        for bucket in [0, 17, 1_000_002] {
            let labels: Vec<u32> = assignment.labels_of(1, bucket).unwrap().collect();
            assert!(labels.len().abs_diff(n_labels / 1_000_003) <= 1);
            assert!(labels.iter().all(|&label| assignment.bucket(1, label) == bucket));
        }
        let start = n_labels as u32 - 40;
        let mut buckets = [0; 40];
        assignment.bucket_range(0, start..n_labels as u32, &mut buckets);
        assert!((0..40).all(|t| buckets[t as usize] == assignment.bucket(0, start + t)));
    }
}

#[test]
fn targets_are_ascending_and_unique() {
    let assignment = Assignment::first(params(UniversalFamily::Prime, 1000, 4), 1).unwrap();
    let mut buckets = vec![9];
    assignment.buckets_of(0, &(0..1000).collect::<Vec<_>>(), &mut buckets);
    assert_eq!(buckets, [0, 1, 2, 3]);
    assignment.buckets_of(0, &[], &mut buckets);
    assert!(buckets.is_empty());
}

#[test]
fn a_selection_keeps_the_hashes_of_its_numbers() {
    for family in UniversalFamily::ALL {
        let mut all = Assignment::first(params(family, 500, 9), 6).unwrap();
        all.build_lists();
        let some = all.select(&[5, 1]).unwrap();
        assert_eq!(some.numbers(), [5, 1]);
        for label in 0..500 {
            assert_eq!((some.bucket(0, label), some.bucket(1, label)), (all.bucket(5, label), all.bucket(1, label)));
        }
        assert!(some.labels_of(0, 3).unwrap().eq(all.labels_of(5, 3).unwrap()));
        assert_eq!(all.select(&[6]).unwrap_err(), AssignError::Absent { number: 6 });
        assert_eq!(all.select(&[1, 1]).unwrap_err(), AssignError::Repeated { number: 1 });
        assert_eq!(all.select(&[]).unwrap_err(), AssignError::NoRepetitions);
    }
}

#[test]
fn labels_can_be_added_while_the_family_allows() {
    // The smallest prime from 1000 on is 1009.
    let assignment = Assignment::first(params(UniversalFamily::Prime, 1000, 40), 3).unwrap();
    let grown = assignment.grown_to(1009).unwrap();
    assert_eq!(grown.n_labels(), 1009);
    assert!((0..1000).all(|label| grown.bucket(2, label) == assignment.bucket(2, label)));
    let refused = assignment.grown_to(1010).unwrap_err();
    assert_eq!(refused, AssignError::Hash(UniversalParamsError::CannotGrow { got: 1010, prime: 1009 }));
    let shrunk = assignment.grown_to(999).unwrap_err();
    assert_eq!(shrunk, AssignError::Hash(UniversalParamsError::Shrinks { got: 999, present: 1000 }));
    for family in [UniversalFamily::Mersenne61, UniversalFamily::MultiplyShift, UniversalFamily::Tabulation] {
        let assignment = Assignment::first(params(family, 1000, 40), 3).unwrap();
        let grown = assignment.grown_to(5_000_000).unwrap();
        assert!((0..1000).all(|label| grown.bucket(2, label) == assignment.bucket(2, label)));
    }
}
