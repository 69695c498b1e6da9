//! Densified winner-take-all and MinHash against their definitions and probabilities.

use crate::draws::{agreeing, assert_mean, assert_share, covariance, keys_of, keys_of_sparse, params, shares};
use proptest::prelude::*;
use xc_hash::stream::Stream;
use xc_lsh::{Dwta, FamilyKind, FamilyParams, FamilyParamsError, KeyScratch, MinHash, Minima, theory};
use xc_sparse::SparseRow;

type Row = (Vec<u32>, Vec<f32>);

fn view(row: &Row) -> SparseRow<'_> {
    SparseRow::from_checked(&row.0, &row.1)
}

/// Two rows that share `shared` features and have `own` more each; values of shared ones differ by
/// up to `noise`.
fn overlapping(stream: &mut Stream, shared: usize, own: usize, noise: f64) -> (Row, Row) {
    let mut features: Vec<u32> = Vec::new();
    while features.len() < shared + 2 * own {
        features.push(stream.below(1 << 20));
        features.sort_unstable();
        features.dedup();
    }
    stream.shuffle(&mut features);
    let mut rows = [Vec::new(), Vec::new()];
    for (at, &feature) in features.iter().enumerate() {
        let value = stream.unit() + 0.1;
        for (side, row) in rows.iter_mut().enumerate() {
            if at < shared || (at - shared) / own == side {
                row.push((feature, (value + noise * stream.unit()) as f32));
            }
        }
    }
    let [x, y] = rows.map(|mut row| {
        row.sort_unstable_by_key(|e| e.0);
        row.into_iter().unzip()
    });
    (x, y)
}

#[test]
fn codes_of_sparse_rows_agree_as_independent_bins_would() {
    let mut stream = Stream::new(1);
    for (shared, own, noise, permutations) in [(40, 20, 0.5, 4), (10, 2, 0.0, 1), (60, 1, 0.1, 10), (30, 60, 1.0, 2)] {
        let (x, y) = overlapping(&mut stream, shared, own, noise);
        let params = params(FamilyKind::Dwta { bin: 8, permutations }, 1 << 20, 2, 20, 0);
        let shares = shares(params, 0..10_000, |f| [keys_of_sparse(f, view(&x)), keys_of_sparse(f, view(&y))]);
        let p = theory::winner_of_sparse(view(&x), view(&y), 40 / permutations, 8);
        assert_mean(&shares, p, &format!("{shared} shared, {own} own, {permutations} permutations"));
    }
}

#[test]
fn rows_with_equal_values_agree_by_their_jaccard_similarity() {
    let mut stream = Stream::new(2);
    let params = params(FamilyKind::dwta_for(8, 2, 50, 80), 1 << 20, 2, 50, 0);
    // The values, and with them the winners, are drawn anew each time.
    let shares = shares(params, 0..3000, |f| {
        let (x, y) = overlapping(&mut stream, 60, 20, 0.0);
        [keys_of_sparse(f, view(&x)), keys_of_sparse(f, view(&y))]
    });
    assert_mean(&shares, params.build().unwrap().probability(0.6), "Jaccard similarity 0.6");
}

#[test]
fn sets_agree_by_their_jaccard_similarity() {
    for (minima, seeds) in [(Minima::Classic, 2500u64), (Minima::OnePermutation, 5000)] {
        for (shared, own, code_bits) in [(30, 10, 1), (30, 10, 8), (10, 40, 4), (3, 1, 2)] {
            let (x, y) = overlapping(&mut Stream::new(3), shared, own, 0.0);
            let params = params(FamilyKind::MinHash { minima, code_bits }, 1 << 20, 1, 40, 0);
            let shares = shares(params, 0..seeds, |f| [keys_of_sparse(f, view(&x)), keys_of_sparse(f, view(&y))]);
            let jaccard = shared as f64 / (shared + 2 * own) as f64;
            let p = params.build().unwrap().probability(jaccard);
            assert_mean(&shares, p, &format!("{minima:?}: {shared} shared, {own} own, {code_bits} bits"));
        }
    }
}

#[test]
fn two_codes_of_a_sparse_row_hardly_depend_on_each_other() {
    let (x, y) = overlapping(&mut Stream::new(6), 40, 20, 0.3);
    let one_permutation = FamilyKind::MinHash { minima: Minima::OnePermutation, code_bits: 4 };
    let classic = FamilyKind::MinHash { minima: Minima::Classic, code_bits: 4 };
    for kind in [FamilyKind::Dwta { bin: 8, permutations: 2 }, one_permutation, classic] {
        // Two codes of twenty: two bins alone would share all elements out between them.
        let pairs = (0..20_000).map(|seed| {
            let family = params(kind, 1 << 20, 2, 10, seed).build().unwrap();
            let (x, y) = (keys_of_sparse(&*family, view(&x)), keys_of_sparse(&*family, view(&y)));
            let mut codes = agreeing(&*family, &x, &y);
            (codes.next().unwrap(), codes.next().unwrap())
        });
        let (covariance, spread) = covariance(pairs);
        assert!(covariance.abs() < 5.0 * spread + 0.005, "{kind:?}: {covariance}, spread {spread}");
    }
}

#[test]
fn tables_find_sets_as_often_as_independent_codes_would() {
    let (x, y) = overlapping(&mut Stream::new(4), 20, 20, 0.0);
    let (n_codes, n_tables, n) = (3, 10, 10_000);
    let kind = FamilyKind::MinHash { minima: Minima::Classic, code_bits: 4 };
    let mut hits = 0;
    for seed in 0..n {
        let family = MinHash::new(params(kind, 1 << 20, n_codes, n_tables, seed)).unwrap();
        hits += usize::from(
            keys_of_sparse(&family, view(&x)).iter().zip(keys_of_sparse(&family, view(&y))).any(|(a, b)| *a == b),
        );
    }
    let p = theory::inclusion(theory::with_chance(1.0 / 3.0, 16.0), n_codes, n_tables);
    assert_share(hits, n as usize, p, "found by some table");
}

fn rows() -> impl Strategy<Value = Row> {
    let value =
        prop_oneof![4 => -2f32..2.0, 1 => prop_oneof![Just(0.0), Just(-0.0), Just(1e-45), Just(-1e-39), Just(1.0)]];
    prop::collection::btree_map(0u32..300, value, 0..40).prop_map(|row| row.into_iter().unzip())
}

fn kinds() -> impl Strategy<Value = FamilyKind> {
    let minima = prop_oneof![Just(Minima::Classic), Just(Minima::OnePermutation)];
    prop_oneof![
        (2u32..20, 1u32..9).prop_map(|(bin, permutations)| FamilyKind::Dwta { bin, permutations }),
        (minima, 1u32..9).prop_map(|(minima, code_bits)| FamilyKind::MinHash { minima, code_bits }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn rows_have_the_same_keys_sparse_and_dense_and_with_stored_zeros(row in rows(), kind in kinds(), n_codes in 1u32..7, n_tables in 8u32..60, seed: u64) {
        let family = params(kind, 300, n_codes, n_tables, seed).build().unwrap();
        let keys = keys_of_sparse(&*family, view(&row));
        let mut dense = vec![0.0; 300];
        row.0.iter().zip(&row.1).for_each(|(&feature, &value)| dense[feature as usize] = value);
        prop_assert_eq!(&keys, &keys_of(&*family, &dense));
        let stored: Row = row.0.iter().zip(&row.1).filter(|e| *e.1 != 0.0).unzip();
        prop_assert_eq!(&keys, &keys_of_sparse(&*family, view(&stored)));
        prop_assert!(keys.iter().all(|&key| u64::from(key) < 1 << family.key_bits()));
    }

    #[test]
    fn keys_go_by_the_order_of_values_and_not_by_their_size(row in rows(), seed: u64) {
        let dwta = Dwta::new(params(FamilyKind::Dwta { bin: 8, permutations: 3 }, 300, 4, 30, seed)).unwrap();
        let scaled: Row = (row.0.clone(), row.1.iter().map(|v| v * 0.5).collect());
        // Halving the least values rounds them.
        if row.1.iter().all(|v| v.abs() > 1e-30) {
            prop_assert_eq!(keys_of_sparse(&dwta, view(&row)), keys_of_sparse(&dwta, view(&scaled)));
        }
    }
}

#[test]
fn a_set_is_the_set_of_its_features() {
    for minima in [Minima::Classic, Minima::OnePermutation] {
        let family = MinHash::new(params(FamilyKind::MinHash { minima, code_bits: 4 }, 100, 2, 30, 1)).unwrap();
        let (mut keys, mut scratch) = (vec![0; 30], KeyScratch::default());
        assert!(!family.hash_set(&[90, 3, 17, 3], &mut keys, &mut scratch));
        assert_eq!(keys, keys_of_sparse(&family, SparseRow::from_checked(&[3, 17, 90], &[1.0, -2.0, 0.5])));
        assert!(family.hash_set(&[], &mut keys, &mut scratch));
        assert_eq!(keys, [0; 30]);
    }
}

#[test]
fn a_single_feature_fills_all_bins() {
    let dwta = Dwta::new(params(FamilyKind::Dwta { bin: 8, permutations: 1 }, 10, 6, 400, 1)).unwrap();
    let keys = keys_of_sparse(&dwta, SparseRow::from_checked(&[7], &[1.0]));
    // One bin is filled: all codes are its code.
    let code = keys[0] & 7;
    assert!(keys.iter().all(|&key| key == (0..6).fold(0, |key, _| key << 3 | code)));
}

#[test]
fn settings_without_functions_are_errors() {
    let with = |kind, n_codes| params(kind, 100, n_codes, 5, 1).build().map(|_| ());
    let range = |setting, got, least, most| Err(FamilyParamsError::Range { setting, got, least, most });
    assert_eq!(with(FamilyKind::Dwta { bin: 8, permutations: 11 }, 2), range("permutations", 11, 1, 10));
    assert_eq!(with(FamilyKind::Dwta { bin: 129, permutations: 1 }, 2), range("positions of a bin", 129, 2, 128));
    let min_hash = |code_bits| FamilyKind::MinHash { minima: Minima::Classic, code_bits };
    assert_eq!(with(min_hash(9), 2), range("bits of a code", 9, 1, 8));
    assert_eq!(with(min_hash(8), 9), Err(FamilyParamsError::LongKey { n_codes: 9, code_bits: 8, most: 8 }));
    let tables = FamilyParams { n_tables: 0, ..params(min_hash(8), 100, 2, 5, 1) };
    assert_eq!(tables.build().map(|_| ()), range("tables", 0, 1, (1 << 24) / 2));
}
