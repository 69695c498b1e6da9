//! Bands by norm against what they promise, and beside plain SimHash at equal numbers of candidates.

use crate::draws::{self, normals, params};
use proptest::prelude::*;
use xc_dense::DenseRows;
use xc_hash::stream::Stream;
use xc_lsh::norm_bands::NormRanges;
use xc_lsh::tables::{By, Query, QueryLimits, QueryScratch, Tables};
use xc_lsh::{FamilyKind, HashError, KeyScratch, Projection};

const SIM_HASH: FamilyKind = FamilyKind::SimHash { projection: Projection::Gaussian };

proptest! {
    #[test]
    fn items_are_unit_vectors_whose_cosines_are_inner_products_over_the_largest_norm_of_their_band(
        seed in any::<u64>(), n in 1usize..40, n_bands in 1usize..9
    ) {
        let mut stream = Stream::new(seed);
        let rows: Vec<f32> = normals(&mut stream, n * 5).chunks(5).enumerate().flat_map(|(i, row)| row.iter().map(move |v| v * (i + 1) as f32).collect::<Vec<_>>()).collect();
        let rows = DenseRows::new(&rows, 5);
        let bands = NormRanges::of_rows(rows, n_bands);
        prop_assert!(bands.len() <= n_bands && 1 << bands.bits() >= bands.len());
        let query = normals(&mut stream, 5);
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        let mut sizes = vec![0; bands.len()];
        let largest = rows.iter().map(|row| dot(row, row).sqrt()).fold(0.0, f32::max);
        for row in rows.iter() {
            let mut item = Vec::new();
            let band = bands.item(row, &mut item);
            sizes[band] += 1;
            prop_assert!((dot(&item, &item) - 1.0).abs() < 1e-4);
            // One scale for a band: inner products are in the order of cosines.
            let scale = dot(row, row).sqrt() / dot(&item[..5], &item[..5]).sqrt();
            prop_assert!(scale <= largest * 1.001);
            prop_assert!((dot(&item, &[&query[..], &[0.0]].concat()) * scale - dot(row, &query)).abs() < 1e-3 * largest);
        }
        let even = n.div_ceil(bands.len());
        prop_assert!(sizes.iter().all(|&size| size <= even + 1), "{:?}", sizes);
    }
}

/// Share of the ten largest inner products among 200 candidates of tables, over queries.
fn recall(rows: &[f32], queries: &[f32], width: usize, n_bands: Option<usize>) -> f64 {
    let of_rows = DenseRows::new(rows, width);
    let family = params(SIM_HASH, width + usize::from(n_bands.is_some()), 6, 200, 5).build().unwrap();
    let mut scratch = KeyScratch::default();
    let bands = n_bands.map(|n| NormRanges::of_rows(of_rows, n));
    let tables = match &bands {
        Some(bands) => bands.tables(&*family, of_rows, &mut scratch).unwrap(),
        None => Tables::of_dense(&*family, of_rows, &mut scratch).unwrap(),
    };
    let (mut keys, mut found, mut right, mut n) = (Vec::new(), Vec::new(), 0, 0);
    for (turn, query) in queries.chunks_exact(width).enumerate() {
        match &bands {
            Some(bands) => bands.keys(&*family, query, 0.3, &mut keys, &mut scratch).unwrap(),
            None => keys = draws::keys_of(&*family, query),
        }
        let asked = Query { by: By::Keys(&keys), turn: turn as u64, excluded: &[] };
        let limits = QueryLimits { candidates: 200, per_bucket: usize::MAX };
        tables.query(asked, limits, &mut QueryScratch::default(), &mut found);
        let mut scores: Vec<(f32, u32)> = (0u32..)
            .zip(rows.chunks_exact(width))
            .map(|(item, row)| (-row.iter().zip(query).map(|(a, b)| a * b).sum::<f32>(), item))
            .collect();
        scores.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        right += scores[..10].iter().filter(|score| found.contains(&score.1)).count();
        n += 10;
    }
    right as f64 / f64::from(n)
}

#[test]
fn bands_find_more_of_the_largest_inner_products_than_one_scale_and_that_more_than_angles() {
    let width = 32;
    let mut stream = Stream::new(2);
    let mut rows = normals(&mut stream, 4000 * width);
    for row in rows.chunks_exact_mut(width) {
        // Norms of trained weights: most near the middle, some ten times as long.
        let norm = (0.7 * normals(&mut stream, 1)[0]).exp();
        row.iter_mut().for_each(|v| *v *= norm);
    }
    let queries = normals(&mut stream, 60 * width);
    let of = |bands| recall(&rows, &queries, width, bands);
    let (angles, simple, eight, sixteen) = (of(None), of(Some(1)), of(Some(8)), of(Some(16)));
    assert!(
        simple > angles + 0.1 && eight > simple + 0.15 && sixteen > eight + 0.1,
        "{angles} {simple} {eight} {sixteen}"
    );
    assert!(sixteen > 0.8, "{sixteen}");
}

#[test]
fn rows_without_norms_and_values_that_are_no_numbers() {
    let bands = NormRanges::of_rows(DenseRows::new(&[0.0; 6], 2), 4);
    assert_eq!((bands.len(), bands.bits(), bands.band(0.0), bands.band(f32::MAX)), (1, 0, 0, 0));
    let family = params(SIM_HASH, 3, 4, 5, 1).build().unwrap();
    let bad = bands.tables(&*family, DenseRows::new(&[1.0, 2.0, f32::NAN, 1.0], 2), &mut KeyScratch::default());
    assert!(matches!(bad, Err(HashError::NotFinite { row: 1, .. })), "{bad:?}");
    let zero = bands.tables(&*family, DenseRows::new(&[0.0; 4], 2), &mut KeyScratch::default()).unwrap();
    assert_eq!(zero.n_items(), 2);
    // A row that has grown keeps its direction.
    let bands = NormRanges::of_rows(DenseRows::new(&[1.0, 0.0, 0.0, 2.0], 2), 2);
    let mut item = Vec::new();
    assert_eq!((bands.item(&[0.0, 8.0], &mut item), item), (1, vec![0.0, 1.0, 0.0]));
    // Rows of one norm are one band.
    assert_eq!(NormRanges::of_rows(DenseRows::new(&[1.0, 0.0, 0.0, -1.0], 2), 8).len(), 1);
}
