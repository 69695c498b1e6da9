//! Every iterator, instruction set and precision against plain columns, bit for bit.

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use xc_buffer::{DType, FloatBuffer, Isa};
use xc_sparse::chunked::*;
use xc_sparse::{SparseRow, SparseRowError};

/// The definition: one column at a time, products added in ascending feature order, then the bias.
fn reference(parents: &[ChunkRows], precision: DType, query: &[(u32, f32)], wanted: &[u32]) -> Vec<f32> {
    let round = |w: f32| match precision {
        DType::F32 => w,
        DType::F16 => half::f16::from_f32(w).to_f32(),
        DType::Bf16 => half::bf16::from_f32(w).to_f32(),
        other => panic!("{other}"),
    };
    let mut out = Vec::new();
    for &parent in wanted {
        let rows = &parents[parent as usize];
        for column in 0..rows.n_columns {
            let mut weights = BTreeMap::new();
            for (row, &feature) in rows.features.iter().enumerate() {
                for at in rows.row_ptr[row] as usize..rows.row_ptr[row + 1] as usize {
                    if rows.columns[at] as usize == column {
                        weights.insert(feature, round(rows.values[at]));
                    }
                }
            }
            let mut sum = 0.0f32;
            for &(feature, x) in query {
                if let Some(w) = weights.get(&feature) {
                    sum += x * w;
                }
            }
            out.push(sum + rows.bias[column]);
        }
    }
    out
}

fn chunk_rows(n_features: u32, widths: impl Strategy<Value = usize>) -> impl Strategy<Value = ChunkRows> {
    widths.prop_flat_map(move |width| {
        let cells = if width == 0 || n_features == 0 { 0..1 } else { 0..(width * 12).min(400) };
        let entry = (0..n_features.max(1), 0..width.max(1) as u32, -2.0f32..2.0);
        (prop::collection::vec(entry, cells), prop::collection::vec(-1.0f32..1.0, width)).prop_map(
            move |(mut entries, bias)| {
                if width == 0 || n_features == 0 {
                    entries.clear();
                }
                entries.sort_by_key(|e| (e.0, e.1));
                entries.dedup_by_key(|e| (e.0, e.1));
                ChunkRows::from_entries(width, entries, bias).unwrap()
            },
        )
    })
}

fn query(n_features: u32) -> impl Strategy<Value = Vec<(u32, f32)>> {
    // One feature past the end, which no chunk can have. Long queries match more rows than a block
    // of the pipeline holds.
    let sizes = prop_oneof![3 => 0usize..60, 1 => 120usize..200];
    sizes.prop_flat_map(move |n| {
        let values = prop_oneof![-3.0f32..3.0, Just(0.0), Just(-0.0)];
        prop::collection::vec((0..n_features + 1, values), n)
            .prop_map(|entries| BTreeMap::from_iter(entries).into_iter().collect())
    })
}

fn level() -> impl Strategy<Value = (Vec<ChunkRows>, usize, Vec<(u32, f32)>)> {
    let n_features = prop_oneof![Just(0u32), Just(1), Just(33), Just(200), Just(5000)];
    n_features.prop_flat_map(|d| {
        let width = prop_oneof![
            Just(0usize),
            Just(1),
            Just(2),
            Just(7),
            Just(16),
            Just(17),
            Just(32),
            Just(33),
            Just(65),
            Just(100),
            Just(128),
            Just(129),
            Just(300)
        ];
        (prop::collection::vec(chunk_rows(d, width), 1..6), Just(d as usize), query(d))
    })
}

fn slot_map(parents: &[ChunkRows], n_features: usize) -> SlotMap {
    SlotMap::new(&count_features(parents, n_features))
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|v| v.to_bits()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn every_path_equals_plain_columns((parents, n_features, query) in level(), picks in prop::collection::vec(any::<prop::sample::Index>(), 0..8)) {
        let wanted: Vec<u32> = picks.iter().map(|i| i.index(parents.len()) as u32).collect();
        let (indices, values): (Vec<u32>, Vec<f32>) = query.iter().copied().unzip();
        for precision in [DType::F32, DType::F16, DType::Bf16] {
            let level = ChunkedLevel::pack(&parents, &slot_map(&parents, n_features), precision).unwrap();
            let view = level.view();
            let expected = reference(&parents, precision, &query, &wanted);
            let (mut scratch, mut slots) = (ProductScratch::default(), ChunkQuery::default());
            let row = SparseRow::from_checked(&indices, &values);
            let prepared = slots.prepare(row, level.slot_map());
            for isa in Isa::available() {
                for choice in IteratorKind::ALL.map(IteratorChoice::Fixed).into_iter().chain([IteratorChoice::Auto]) {
                    let mut out = Vec::new();
                    margins_with(isa, &view, &prepared, &wanted, choice, &mut scratch, &mut out);
                    prop_assert_eq!(bits(&out), bits(&expected), "{} {:?} {:?}", isa, choice, precision);
                }
            }
        }
    }

    #[test]
    fn shared_products_equal_those_of_one_query((parents, n_features, first) in level(), n_queries in 0usize..90, stride in 1usize..4) {
        let level = ChunkedLevel::pack(&parents, &slot_map(&parents, n_features), DType::F32).unwrap();
        let view = level.view();
        // Query q is the first one without every (q + 2)th feature.
        let queries: Vec<(Vec<u32>, Vec<f32>)> = (0..n_queries)
            .map(|q| first.iter().enumerate().filter(|(i, _)| i % (q + 2) != 0).map(|(_, &pair)| pair).unzip())
            .collect();
        let mut slots = vec![ChunkQuery::default(); n_queries];
        let prepared: Vec<QueryView<'_>> = queries
            .iter()
            .zip(&mut slots)
            .map(|((indices, values), slots)| slots.prepare(SparseRow::from_checked(indices, values), level.slot_map()))
            .collect();
        let visits: Vec<Visit> = (0..parents.len() as u32)
            .flat_map(|parent| (0..n_queries as u32).step_by(stride).map(move |query| Visit { parent, query }))
            .collect();
        let mut scratch = ProductScratch::default();
        for choice in IteratorKind::ALL.map(IteratorChoice::Fixed).into_iter().chain([IteratorChoice::Auto]) {
            let mut met = vec![vec![]; visits.len()];
            shared_margins(&view, &visits, |q| prepared[q as usize], choice, &mut scratch, |at, child, margins| {
                assert_eq!(child as usize, view.children(visits[at].parent as usize).start as usize + met[at].len());
                met[at].extend_from_slice(margins);
            });
            for (visit, met) in visits.iter().zip(&met) {
                let mut alone = Vec::new();
                margins(&view, &prepared[visit.query as usize], &[visit.parent], choice, &mut scratch, &mut alone);
                prop_assert_eq!(bits(met), bits(&alone), "{:?} {:?}", choice, visit);
            }
        }
    }

    #[test]
    fn packing_is_undone_and_passes_the_check((parents, n_features, _) in level()) {
        let level = ChunkedLevel::pack(&parents, &slot_map(&parents, n_features), DType::F32).unwrap();
        let v = level.view();
        for (parent, rows) in parents.iter().enumerate() {
            prop_assert_eq!(&v.to_rows(parent), rows);
        }
        prop_assert!(ChunkedLevel::try_new(level.arrays().clone(), level.slot_map()).is_ok());
    }

    #[test]
    fn a_changed_array_fails_the_check((parents, n_features, _) in level(), which in 0usize..5, at in any::<prop::sample::Index>(), bit in 0u32..32) {
        let level = ChunkedLevel::pack(&parents, &slot_map(&parents, n_features), DType::F32).unwrap();
        let mut arrays = level.arrays().clone();
        let LevelArrays { records, headers, directory, part_ptr, values, .. } = &mut arrays;
        let n = [records.len(), headers.len(), directory.len(), part_ptr.len(), values.len()][which];
        prop_assume!(n > 0);
        let at = at.index(n);
        match which {
            0 => records.to_mut()[at] ^= 1 << bit,
            1 => headers.to_mut()[at] ^= 1 << bit,
            2 => directory.to_mut()[at] ^= 1 << bit,
            3 => part_ptr.to_mut()[at] ^= 1 << bit,
            _ => match values {
                FloatBuffer::F32(values) => values.to_mut()[at] = f32::NAN,
                _ => unreachable!(),
            },
        }
        let checked = ChunkedLevel::try_new(arrays, level.slot_map());
        // A header's feature or mask bit may change into another valid one: then the view must
        // still be usable.
        if let Ok(level) = checked {
            let view = level.view();
            prop_assert!(which == 1 || which == 3 || which == 0, "array {} entry {} bit {}", which, at, bit);
            for parent in 0..view.n_parents() {
                prop_assert!(view.to_rows(parent).check().is_ok());
            }
        }
    }
}

#[test]
fn crowded_features_are_found() {
    // All rows at neighbouring ids: every slot but the first is pushed on.
    let n_features = 1 << 20;
    let entries = (500_000..500_300u32).map(|f| (f, f % 5, f as f32)).collect();
    let rows = ChunkRows::from_entries(5, entries, vec![0.0; 5]).unwrap();
    let parents = [rows];
    let level = ChunkedLevel::pack(&parents, &SlotMap::new(&vec![0; n_features]), DType::F32).unwrap();
    let view = level.view();
    let (indices, values): (Vec<u32>, Vec<f32>) = (499_900..500_400u32).step_by(3).map(|f| (f, 1.0)).unzip();
    let query: Vec<(u32, f32)> = indices.iter().copied().zip(values.iter().copied()).collect();
    let expected = reference(&parents, DType::F32, &query, &[0]);
    let (mut scratch, mut slots) = (ProductScratch::default(), ChunkQuery::default());
    let prepared = slots.prepare(SparseRow::from_checked(&indices, &values), level.slot_map());
    for isa in Isa::available() {
        let mut out = Vec::new();
        margins_with(isa, &view, &prepared, &[0], IteratorChoice::Fixed(IteratorKind::Hashed), &mut scratch, &mut out);
        assert_eq!(out, expected);
    }
}

#[test]
fn offsets_beyond_the_arrays_are_found_before_they_are_used() {
    let rows = |f: u32| ChunkRows::from_entries(2, vec![(f, 0, 1.0), (f + 1, 1, 2.0)], vec![0.0; 2]).unwrap();
    let parents = [rows(0), rows(3), rows(5)];
    let level = ChunkedLevel::pack(&parents, &slot_map(&parents, 1000), DType::F32).unwrap();
    for field in 0..4 {
        for value in [1 << 20, 1 << 31, 1 << 62, u64::MAX] {
            let mut arrays = level.arrays().clone();
            arrays.records.to_mut()[4 + field] = value;
            let opened = ChunkedLevel::try_new(arrays, level.slot_map());
            assert!(matches!(opened, Err(ChunkedError::Record { .. })), "field {field}, {value}: {opened:?}");
        }
    }
}

/// A level of one parent with one child that has a weight of 1 for each feature.
fn level_of_ones(n_features: u32) -> ChunkedLevel {
    let entries = (0..n_features).map(|f| (f, 0, 1.0)).collect();
    let rows = [ChunkRows::from_entries(1, entries, vec![0.0]).unwrap()];
    ChunkedLevel::pack(&rows, &slot_map(&rows, n_features as usize), DType::F32).unwrap()
}

fn panic_message(body: impl FnOnce()) -> String {
    let payload = catch_unwind(AssertUnwindSafe(body)).expect_err("a panic was expected");
    payload.downcast_ref::<String>().cloned().unwrap_or_default()
}

#[test]
fn a_query_of_another_slot_map_is_refused_by_every_path() {
    let (level, other) = (level_of_ones(64), SlotMap::try_new(vec![0; 40_000_000].into()).unwrap());
    let mut slots = ChunkQuery::default();
    let query = slots.prepare(SparseRow::try_new(&[39_999_999], &[1.0]).unwrap(), &other);
    for isa in Isa::available() {
        for choice in IteratorKind::ALL.map(IteratorChoice::Fixed) {
            let message = panic_message(|| {
                margins_with(isa, &level.view(), &query, &[0], choice, &mut ProductScratch::default(), &mut Vec::new());
            });
            assert!(message.contains("of 40000000 features") && message.contains("of 64"), "{isa}: {message}");
        }
    }
    let visits = [Visit { parent: 0, query: 0 }];
    let mut scratch = ProductScratch::default();
    let message = panic_message(|| {
        shared_margins(&level.view(), &visits, |_| query, IteratorChoice::Auto, &mut scratch, |_, _, _| ());
    });
    assert!(message.contains("another slot map"), "{message}");
}

#[test]
fn a_scratch_serves_on_after_a_panic() {
    let (large, small) = (level_of_ones(100_000), level_of_ones(4));
    let (large_map, small_map) = (large.slot_map().clone(), small.slot_map().clone());
    let (large_map, small_map) = (&large_map, &small_map);
    let (large, small) = (large.view(), small.view());
    for choice in IteratorKind::ALL.map(IteratorChoice::Fixed) {
        let (mut slots, mut scratch, mut out) = (ChunkQuery::default(), ProductScratch::default(), Vec::new());
        let query = slots.prepare(SparseRow::try_new(&[99_999], &[1.0]).unwrap(), large_map);
        panic_message(|| margins(&large, &query, &[0, 7], choice, &mut scratch, &mut out));
        // The second visit's query is not there: a panic while the chunk of the first is loaded.
        let visits = [Visit { parent: 0, query: 0 }, Visit { parent: 0, query: 1 }];
        panic_message(|| {
            let query = |q| if q == 0 { query } else { panic!("{q}") };
            shared_margins(&large, &visits, query, choice, &mut scratch, |_, _, _| ());
        });
        let mut slots = ChunkQuery::default();
        let query = slots.prepare(SparseRow::try_new(&[1, 2], &[1.0, 4.0]).unwrap(), small_map);
        out.clear();
        margins(&small, &query, &[0], choice, &mut scratch, &mut out);
        assert_eq!(out, [5.0], "{choice:?}");
    }
}

#[test]
fn rows_out_of_order_are_refused_where_a_query_is_prepared() {
    let map = SlotMap::new(&[0; 10]);
    for (indices, wanted) in [(&[7, 1][..], "feature 1 stands after feature 7"), (&[1, 1], "feature 1 stands after")] {
        let row = SparseRow::from_checked(indices, &[1.0, 0.5]);
        assert!(row.check().unwrap_err().to_string().contains(wanted));
        let message = panic_message(|| {
            ChunkQuery::default().prepare(row, &map);
        });
        assert!(message.contains(wanted), "{message}");
    }
    assert_eq!(SparseRow::try_new(&[1], &[]), Err(SparseRowError::Lengths { features: 1, values: 0 }));
    assert!(SparseRow::try_new(&[1, 3, 9], &[0.0; 3]).is_ok() && SparseRow::try_new(&[], &[]).is_ok());
}

#[test]
fn row_pointers_that_rise_beyond_the_weights_and_fall_again_are_refused() {
    let rows = ChunkRows {
        n_columns: 2,
        features: vec![1, 2],
        row_ptr: vec![0, 9, 1],
        columns: vec![0],
        values: vec![1.0],
        bias: vec![0.0; 2],
    };
    let error = rows.check().unwrap_err().to_string();
    assert_eq!(error, "feature row 0 of the chunk: a row without entries, or falling row pointers");
}
