//! Winner-take-all against its definition and its probability.

use crate::draws::{agreeing, assert_share, count_agreeing, covariance, keys_of, keys_of_sparse, pair, params};
use proptest::prelude::*;
use xc_hash::stream::Stream;
use xc_lsh::{Family, FamilyKind, FamilyParamsError, Wta, theory};
use xc_sparse::SparseRow;

/// The key of a table by definition: of equal coordinates the lower one wins.
fn reference(wta: &Wta, vector: &[f32], table: usize) -> u32 {
    let (n_codes, bits) = (wta.params().n_codes as usize, wta.params().kind.code_bits());
    (0..n_codes).fold(0, |key, code| {
        let of: Vec<u32> = wta.coordinates(table, code).collect();
        let mut best = 0;
        for at in 1..of.len() {
            let (a, b) = (vector[of[at] as usize], vector[of[best] as usize]);
            if a > b || a == b && of[at] < of[best] {
                best = at;
            }
        }
        key << bits | best as u32
    })
}

fn hard_values() -> impl Strategy<Value = f32> {
    prop_oneof![4 => -2f32..2.0, 1 => prop_oneof![Just(0.0), Just(-0.0), Just(1e-45), Just(-1e-45), Just(1e-39), Just(f32::MAX), Just(1.0)]]
}

fn shapes() -> impl Strategy<Value = (Vec<f32>, u32, u32, u32)> {
    let widths = prop_oneof![Just(2usize), Just(7), Just(64), Just(127), Just(128), Just(129), Just(300), Just(768)];
    (widths, 2u32..17, 1u32..7, 1u32..140).prop_flat_map(|(width, bin, n_codes, n_tables)| {
        let bin = bin.min(width as u32);
        let n_codes = n_codes.min(32 / FamilyKind::Wta { bin }.code_bits());
        (prop::collection::vec(hard_values(), width), Just(bin), Just(n_codes), Just(n_tables))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn keys_are_those_of_the_definition((vector, bin, n_codes, n_tables) in shapes(), seed: u64) {
        let wta = Wta::new(params(FamilyKind::Wta { bin }, vector.len(), n_codes, n_tables, seed)).unwrap();
        let expected: Vec<u32> = (0..n_tables as usize).map(|t| reference(&wta, &vector, t)).collect();
        prop_assert_eq!(&keys_of(&wta, &vector), &expected);
        let stored: Vec<usize> = (0..vector.len()).filter(|&i| vector[i] != 0.0).collect();
        let indices: Vec<u32> = stored.iter().map(|&i| i as u32).collect();
        let values: Vec<f32> = stored.iter().map(|&i| vector[i]).collect();
        prop_assert_eq!(&keys_of_sparse(&wta, SparseRow::from_checked(&indices, &values)), &expected);
    }

    #[test]
    fn bins_have_different_coordinates_and_together_all((vector, bin, n_codes, n_tables) in shapes(), seed: u64) {
        let wta = Wta::new(params(FamilyKind::Wta { bin }, vector.len(), n_codes, n_tables, seed)).unwrap();
        let mut seen = vec![false; vector.len()];
        for (table, code) in (0..n_tables as usize).flat_map(|t| (0..n_codes as usize).map(move |k| (t, k))) {
            let mut of: Vec<u32> = wta.coordinates(table, code).collect();
            of.iter().for_each(|&c| seen[c as usize] = true);
            of.sort_unstable();
            of.dedup();
            prop_assert_eq!(of.len(), bin as usize);
        }
        // Of the codes of a table and group, those of one unit use a permutation up before they
        // draw another.
        let codes = (n_codes * n_tables) as usize;
        prop_assert!(wta.n_subsets() >= vector.len().div_ceil(128).min(codes));
        if codes * bin as usize >= 40 * vector.len() {
            prop_assert!(seen.iter().all(|&s| s), "a coordinate is in no bin");
        }
    }
}

#[test]
fn codes_agree_as_often_as_all_draws_of_coordinates_say() {
    let mut stream = Stream::new(1);
    for (width, bin, correlation) in [(32, 8, 0.6), (128, 8, 0.0), (128, 8, 0.4), (128, 3, -0.5), (20, 16, 0.9)] {
        let (x, y) = pair(&mut stream, width, correlation);
        let params = params(FamilyKind::Wta { bin }, width, 4, 50, 0);
        let (hits, n) = count_agreeing(params, 0..500, |f| [keys_of(f, &x), keys_of(f, &y)]);
        assert_eq!(n, 100_000);
        assert_share(hits, n, theory::winner_of(&x, &y, bin), &format!("width {width}, m {bin}, {correlation}"));
    }
}

#[test]
fn codes_of_wide_vectors_agree_as_often() {
    let (x, y) = pair(&mut Stream::new(2), 768, 0.5);
    let params = params(FamilyKind::Wta { bin: 8 }, 768, 6, 1, 0);
    let (hits, n) = count_agreeing(params, 0..16_667, |f| [keys_of(f, &x), keys_of(f, &y)]);
    assert_share(hits, n, theory::winner_of(&x, &y, 8), "width 768");
}

#[test]
fn normal_vectors_agree_as_the_integral_says() {
    let mut stream = Stream::new(3);
    for correlation in [-0.3f32, 0.0, 0.3, 0.7, 0.95] {
        let of: Vec<f64> = (0..1500)
            .map(|_| {
                let (x, y) = pair(&mut stream, 40, correlation);
                theory::winner_of(&x, &y, 8)
            })
            .collect();
        let mean = of.iter().sum::<f64>() / of.len() as f64;
        let spread = (of.iter().map(|p| (p - mean).powi(2)).sum::<f64>()).sqrt() / of.len() as f64;
        let expected = theory::winner_of_normals(f64::from(correlation), 8);
        // The sums of twelve uniform numbers are not quite normal.
        assert!((mean - expected).abs() < 5.0 * spread + 0.002, "{correlation}: {mean}, expected {expected}");
    }
}

#[test]
fn tables_find_a_pair_as_often_as_independent_codes_would() {
    let (x, y) = pair(&mut Stream::new(4), 64, 0.5);
    let (n_codes, n_tables, n) = (2, 8, 10_000);
    let mut hits = 0;
    for seed in 0..n {
        let wta = Wta::new(params(FamilyKind::Wta { bin: 8 }, 64, n_codes, n_tables, seed)).unwrap();
        hits += usize::from(keys_of(&wta, &x).iter().zip(keys_of(&wta, &y)).any(|(a, b)| *a == b));
    }
    let p = theory::inclusion(theory::winner_of(&x, &y, 8), n_codes, n_tables);
    assert_share(hits, n as usize, p, "found by some table");
}

#[test]
fn two_codes_hardly_depend_on_each_other() {
    // At 128 coordinates bins of one permutation exclude each other; at 768 codes of a table see
    // different subsets.
    for (width, n_codes, n_tables) in [(128, 1, 2), (768, 2, 1), (768, 1, 2)] {
        let (x, y) = pair(&mut Stream::new(5), width, 0.3);
        let pairs = (0..20_000).map(|seed| {
            let wta = Wta::new(params(FamilyKind::Wta { bin: 8 }, width, n_codes, n_tables, seed)).unwrap();
            let (x, y) = (keys_of(&wta, &x), keys_of(&wta, &y));
            let mut codes = agreeing(&wta, &x, &y);
            (codes.next().unwrap(), codes.next().unwrap())
        });
        let (covariance, spread) = covariance(pairs);
        assert!(covariance.abs() < 5.0 * spread + 0.002, "width {width}: {covariance}, spread {spread}");
    }
}

#[test]
fn vectors_without_an_order_have_the_keys_of_the_lowest_coordinates() {
    let wta = Wta::new(params(FamilyKind::Wta { bin: 8 }, 128, 6, 30, 9)).unwrap();
    let zero = keys_of(&wta, &[0.0; 128]);
    assert_eq!(zero, (0..30).map(|t| reference(&wta, &[0.0; 128], t)).collect::<Vec<_>>());
    for value in [-0.0, 1e-45, 3.0, f32::MAX] {
        assert_eq!(keys_of(&wta, &[value; 128]), zero, "{value}");
    }
}

#[test]
fn settings_without_functions_are_errors() {
    let with = |bin, width, n_codes| Wta::new(params(FamilyKind::Wta { bin }, width, n_codes, 5, 1)).map(|_| ());
    assert_eq!(with(8, 7, 2), Err(FamilyParamsError::BinAboveWidth { bin: 8, width: 7 }));
    assert_eq!(with(8, 128, 22), Err(FamilyParamsError::LongKey { n_codes: 22, code_bits: 3, most: 21 }));
    let range = |setting, got, least, most| Err(FamilyParamsError::Range { setting, got, least, most });
    assert_eq!(with(1, 128, 2), range("coordinates of a bin", 1, 2, 128));
    assert_eq!(with(8, 0, 2), range("width", 0, 1, u64::from(u32::MAX)));
    assert_eq!(with(8, 128, 0), range("codes of a key", 0, 1, 64));
}
