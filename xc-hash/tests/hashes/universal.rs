//! The families: frozen values, the collision bound, growth.

use proptest::prelude::*;
use std::collections::BTreeSet;
use xc_hash::universal::{
    BucketHash, UniversalFamily, UniversalHash, UniversalParams, UniversalParamsError, smallest_prime_from,
};

fn params(family: UniversalFamily, n_keys: u64, n_buckets: u32, seed: u64) -> UniversalParams {
    UniversalParams { family, n_keys, n_buckets, seed }
}

#[test]
fn frozen_values() {
    let keys = [0, 1, 2, 1000, 49_999_999];
    let got: Vec<(UniversalFamily, Vec<u32>)> = UniversalFamily::ALL
        .iter()
        .map(|&family| {
            let of = |repetition| params(family, 50_000_000, 20_000, 42).hash(repetition).unwrap();
            let hashes = [of(0), of(31)];
            (family, hashes.iter().flat_map(|h| keys.map(|k| h.bucket(k))).collect())
        })
        .collect();
    let expected: Vec<(UniversalFamily, Vec<u32>)> = vec![
        (UniversalFamily::Prime, vec![13166, 10977, 8788, 2007, 12602, 19855, 6441, 13027, 2744, 1358]),
        (UniversalFamily::Mersenne61, vec![18930, 6500, 8021, 15227, 13857, 13967, 10890, 7813, 6018, 7070]),
        (UniversalFamily::MultiplyShift, vec![1779, 15162, 8544, 4437, 9200, 3386, 18133, 12880, 10270, 13138]),
        (UniversalFamily::Tabulation, vec![2169, 921, 2881, 12214, 17168, 19219, 2053, 5236, 8011, 16019]),
    ];
    assert_eq!(got, expected);
}

/// The affine definition in wide integers.
fn by_definition(hash: &UniversalHash, key: u32) -> u32 {
    match hash {
        UniversalHash::Prime(h) | UniversalHash::Mersenne61(h) => {
            let residue = (u128::from(h.factor()) * u128::from(key) + u128::from(h.offset())) % u128::from(h.prime());
            (residue % u128::from(h.n_buckets())) as u32
        }
        UniversalHash::MultiplyShift(h) => {
            let value = (u128::from(h.factor()) * u128::from(key) + u128::from(h.offset())) % (1 << 64) / (1 << 32);
            (value * u128::from(h.n_buckets()) / (1 << 32)) as u32
        }
        UniversalHash::Tabulation(h) => {
            let bytes = (0..4).map(|i| h.value(key & 0xff << (8 * i)));
            // A byte that is 0 still looks up its table: three times too often here.
            let value = bytes.fold(0, |a, b| a ^ b) ^ h.value(0);
            ((u64::from(value) * u64::from(h.n_buckets())) >> 32) as u32
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn every_family_equals_its_definition(
        n_keys in prop_oneof![0u64..100, 0..u64::from(u32::MAX) - 4], n_buckets in 1u32..70_000, seed: u64,
        keys in prop::collection::vec(any::<u32>(), 1..20), repetition in 0u32..64
    ) {
        for family in UniversalFamily::ALL {
            let hash = params(family, n_keys, n_buckets, seed).hash(repetition).unwrap();
            for &key in &keys {
                let key = if n_keys > 0 { (u64::from(key) % n_keys) as u32 } else { 0 };
                let bucket = hash.bucket(key);
                prop_assert!(bucket < n_buckets);
                prop_assert_eq!(bucket, by_definition(&hash, key), "{} {}", family, key);
            }
        }
    }

    #[test]
    fn growth_keeps_the_buckets(n_keys in 1u64..5000, more in 0u64..5000, n_buckets in 1u32..300, seed: u64) {
        for family in UniversalFamily::ALL {
            let before = params(family, n_keys, n_buckets, seed);
            let prime = smallest_prime_from(n_keys.max(u64::from(n_buckets)));
            match before.grown_to(n_keys + more) {
                Ok(after) => {
                    let (old, new) = (before.hash(3).unwrap(), after.hash(3).unwrap());
                    prop_assert!((0..n_keys as u32).all(|k| old.bucket(k) == new.bucket(k)));
                }
                Err(error) => {
                    prop_assert_eq!(family, UniversalFamily::Prime);
                    prop_assert!(n_keys + more > prime);
                    prop_assert_eq!(error, UniversalParamsError::CannotGrow { got: n_keys + more, prime });
                }
            }
        }
    }
}

/// Share of the drawn functions under which two keys share a bucket.
fn collisions(family: UniversalFamily, n_buckets: u32, pair: (u32, u32), draws: u32) -> f64 {
    let params = params(family, 1_000_000, n_buckets, 5);
    let shared = (0..draws).filter(|&repetition| {
        let hash = params.hash(repetition).unwrap();
        hash.bucket(pair.0) == hash.bucket(pair.1)
    });
    shared.count() as f64 / f64::from(draws)
}

#[test]
fn two_keys_share_a_bucket_as_often_as_is_said() {
    const DRAWS: u32 = 20_000;
    for family in UniversalFamily::ALL {
        for (n_buckets, pair) in [(10, (0, 1)), (10, (17, 999_999)), (16, (256, 512)), (97, (3, 100_003))] {
            let got = collisions(family, n_buckets, pair, DRAWS);
            let expected = params(family, 1_000_000, n_buckets, 5).collision_probability().unwrap();
            assert!(expected <= 1.0 / f64::from(n_buckets) + 2f64.powi(-32));
            // Five standard deviations of a share.
            let spread = 5.0 * (expected * (1.0 - expected) / f64::from(DRAWS)).sqrt();
            assert!(
                (got - expected).abs() < spread,
                "{family} {n_buckets} {pair:?}: {got}, expected {expected} +- {spread}"
            );
        }
    }
}

#[test]
fn the_affine_collision_probability_is_exact() {
    // Every function of the family over a small prime: a in 1..p, b in 0..p.
    for (p, n_buckets) in [(5u64, 3u32), (7, 2), (11, 11), (13, 5), (31, 8)] {
        let mut shared = 0u64;
        for a in 1..p {
            for b in 0..p {
                let bucket = |x: u64| (a * x + b) % p % u64::from(n_buckets);
                shared += u64::from(bucket(1) == bucket(4));
            }
        }
        let got = shared as f64 / (p * (p - 1)) as f64;
        let said = params(UniversalFamily::Prime, p, n_buckets, 0).collision_probability().unwrap();
        assert!((got - said).abs() < 1e-12, "p {p} B {n_buckets}: {got}, said {said}");
    }
}

#[test]
fn keys_spread_over_the_buckets_as_pairs_do() {
    const KEYS: u32 = 10_000;
    const BUCKETS: u32 = 100;
    const DRAWS: u32 = 400;
    // Scattered keys: on consecutive ones single functions of the first three families are
    // lattices, far more or less even.
    let keys: Vec<u32> = (0..KEYS).map(|i| xc_hash::murmur3_32(&i.to_le_bytes(), 0) >> 1).collect();
    for family in UniversalFamily::ALL {
        let mut sum = 0f64;
        for repetition in 0..DRAWS {
            let hash = params(family, 1 << 31, BUCKETS, 1).hash(repetition).unwrap();
            let mut counts = vec![0f64; BUCKETS as usize];
            keys.iter().for_each(|&key| counts[hash.bucket(key) as usize] += 1.0);
            let even = f64::from(KEYS / BUCKETS);
            sum += counts.iter().map(|c| (c - even).powi(2) / even).sum::<f64>();
        }
        // The mean over functions follows from the collision probability of pairs alone: B - 1.
        let mean = sum / f64::from(DRAWS);
        assert!((mean - 99.0).abs() < 5.0, "{family}: {mean}, expected about 99");
    }
}

#[test]
fn repetitions_and_seeds_differ() {
    for family in UniversalFamily::ALL {
        let fingerprints: BTreeSet<Vec<u32>> = (0..4)
            .flat_map(|seed| (0..4).map(move |repetition| (seed, repetition)))
            .map(|(seed, repetition)| {
                let hash = params(family, 1000, 1000, seed).hash(repetition).unwrap();
                (0..20).map(|key| hash.bucket(key)).collect()
            })
            .collect();
        assert_eq!(fingerprints.len(), 16, "{family}");
    }
}

#[test]
fn impossible_parameters_are_refused() {
    assert_eq!(params(UniversalFamily::Prime, 5, 0, 0).check(), Err(UniversalParamsError::NoBuckets));
    assert_eq!(
        params(UniversalFamily::Tabulation, 1 << 32, 5, 0).check(),
        Err(UniversalParamsError::TooManyKeys { got: 1 << 32 })
    );
    let large = u64::from(u32::MAX);
    assert_eq!(
        params(UniversalFamily::Prime, large, 5, 0).check(),
        Err(UniversalParamsError::PrimeTooLarge { got: large })
    );
    assert_eq!(params(UniversalFamily::Mersenne61, large, 5, 0).check(), Ok(()));
    let shrunk = params(UniversalFamily::Tabulation, 10, 5, 0).grown_to(9);
    assert_eq!(shrunk, Err(UniversalParamsError::Shrinks { got: 9, present: 10 }));
    assert_eq!(params(UniversalFamily::Prime, large - 4, u32::MAX - 4, 0).hash(1).unwrap().n_buckets(), u32::MAX - 4);
}

#[test]
fn parameters_are_stored_by_name() {
    let written = serde_json::to_string(&params(UniversalFamily::MultiplyShift, 10, 5, 7)).unwrap();
    assert_eq!(written, r#"{"family":"multiply-shift","n_keys":10,"n_buckets":5,"seed":7}"#);
    assert_eq!(
        serde_json::from_str::<UniversalParams>(&written).unwrap(),
        params(UniversalFamily::MultiplyShift, 10, 5, 7)
    );
    for family in UniversalFamily::ALL {
        assert_eq!(serde_json::to_value(family).unwrap(), family.to_string());
    }
}
