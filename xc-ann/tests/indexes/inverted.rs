//! The inverted index gives what a comparison with all rows gives.

use proptest::prelude::*;
use std::collections::BTreeSet;
use xc_ann::{BuildError, Filter, InvertedIndex, InvertedScratch, Metric, OpenGraphError, QueryError};
use xc_hash::stream::Stream;
use xc_sparse::rank::Scored;
use xc_sparse::{CsrMatrix, CsrView, SparseRow};
use xc_store::OpenMode;

/// Rows whose columns are as unequal as words are: of column c about n / (c + 1) rows. Whole numbers of few values tie.
fn made(n: usize, n_columns: usize, per_row: usize, seed: u64, whole: bool) -> CsrMatrix {
    let mut stream = Stream::new(seed);
    let (mut indptr, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for _ in 0..n {
        let mut columns: Vec<u32> = (0..stream.below(per_row as u32 + 1))
            .map(|_| ((n_columns as f64).powf(stream.unit()) - 1.0).min(n_columns as f64 - 1.0) as u32)
            .collect();
        columns.sort_unstable();
        columns.dedup();
        values.extend(columns.iter().map(|&column| {
            let rare = (f64::from(column) + 2.0).ln() as f32;
            if whole { stream.below(5) as f32 - 1.0 } else { rare * (stream.unit() as f32 - 0.1) }
        }));
        indices.extend(columns);
        indptr.push(indices.len());
    }
    CsrMatrix::from_checked((n, n_columns), indptr, indices, values)
}

fn dot(a: SparseRow<'_>, b: SparseRow<'_>) -> f64 {
    let of_b = |column: u32| b.indices().binary_search(&column).map_or(0.0, |at| f64::from(b.values()[at]));
    a.iter().map(|(column, value)| of_b(column) * f64::from(value)).sum()
}

fn squared_distance(a: SparseRow<'_>, b: SparseRow<'_>) -> f64 {
    let columns: BTreeSet<u32> = a.indices().iter().chain(b.indices()).copied().collect();
    let value =
        |row: SparseRow<'_>, c: u32| row.indices().binary_search(&c).map_or(0.0, |at| f64::from(row.values()[at]));
    columns.into_iter().map(|column| (value(a, column) - value(b, column)).powi(2)).sum()
}

/// All rows scored in f64, the best first.
fn by_hand(
    rows: CsrView<'_>,
    query: SparseRow<'_>,
    metric: Metric,
    k: usize,
    passes: impl Fn(u32) -> bool,
) -> Vec<Scored> {
    let score = |row: SparseRow<'_>| {
        let (product, squares, of_query) = (dot(query, row), dot(row, row), dot(query, query));
        match metric {
            Metric::InnerProduct => Some(product),
            Metric::L2 => Some(-squared_distance(query, row)),
            Metric::Cosine => (squares > 0.0).then(|| product / (squares * of_query).sqrt()),
        }
    };
    let mut all: Vec<(f64, u32)> = (0..rows.rows() as u32)
        .filter(|&row| passes(row))
        .filter_map(|row| score(rows.row(row as usize)).map(|score| (score, row)))
        .collect();
    all.sort_by(|a, b| b.0.partial_cmp(&a.0).unwrap().then(a.1.cmp(&b.1)));
    all.into_iter().take(k).map(|(score, label)| Scored { label, score: score as f32 + 0.0 }).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn answers_are_those_of_a_scan(
        n in prop_oneof![Just(0usize), Just(1), 2usize..900],
        n_columns in 1usize..400,
        per_row in 0usize..40,
        k in prop_oneof![Just(0usize), Just(1), Just(10), Just(2000), Just(usize::MAX)],
        metric in 0usize..3,
        whole: bool,
        scale in prop_oneof![4 => Just(1.0f32), 1 => Just(1e-22), 1 => Just(3e-20), 1 => Just(1e15)],
        passing in 1u32..4,
        seed: u64,
    ) {
        let metric = Metric::ALL[metric];
        let (mut matrix, mut queries) = (made(n, n_columns, per_row, seed, whole), made(12, n_columns, 2 * per_row, !seed, whole));
        matrix.data_mut().iter_mut().chain(queries.data_mut()).for_each(|value| *value *= scale);
        let index = InvertedIndex::build(matrix.view(), metric).unwrap();
        let (rows, queries) = (matrix.view(), queries.view());
        let passes = |row: u32| row.is_multiple_of(passing);
        let filter = (passing > 1).then_some(Filter::Test(&passes));
        let mut scratch = InvertedScratch::default();
        let mut out = Vec::new();
        for query in 0..queries.rows() {
            let query = queries.row(query);
            let found = index.search(query, k, filter.as_ref(), &mut scratch, &mut out);
            found.unwrap();
            if metric == Metric::Cosine && query.values().iter().all(|v| *v == 0.0) {
                prop_assert_eq!(&out, &[]);
                continue;
            }
            prop_assert_eq!(&out, &by_hand(rows, query, metric, k, passes));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn an_index_of_a_slice_is_that_of_a_copy_of_its_rows(n in 1usize..40, cut in (0usize..40, 0usize..40), metric in 0usize..3, seed: u64) {
        let whole = made(n, 30, 8, seed, false);
        let (from, to) = (cut.0.min(cut.1).min(n), cut.0.max(cut.1).min(n));
        let numbers: Vec<u32> = (from as u32..to as u32).collect();
        let copy = whole.view().select(&numbers);
        let of = |rows: xc_sparse::CsrView<'_>| InvertedIndex::build(rows, Metric::ALL[metric]).unwrap();
        let slice = whole.slice(from..to);
        let (expected, queries) = (of(copy.view()), made(5, 30, 8, !seed, false));
        for index in [of(slice), of(slice.to_owned().view())] {
            prop_assert_eq!(index.len(), to - from);
            prop_assert!((0..to - from).all(|row| index.row(row) == expected.row(row)));
            let answers = |index: &InvertedIndex| {
                let queries = queries.view();
                (0..5).map(|i| index.nearest(queries.row(i), 3, &mut InvertedScratch::default())).collect::<Vec<_>>()
            };
            prop_assert_eq!(answers(&index), answers(&expected));
        }
    }
}

#[test]
fn long_lists_are_left_where_they_change_nothing() {
    let (matrix, queries) = (made(20_000, 3000, 60, 1, false), made(50, 3000, 60, 2, false));
    let (rows, queries) = (matrix.view(), queries.view());
    let index = InvertedIndex::build(matrix.view(), Metric::InnerProduct).unwrap();
    let (found, effort) = index.search_batch(queries, 10, None).unwrap();
    for query in 0..queries.rows() {
        let wanted = by_hand(rows, queries.row(query), Metric::InnerProduct, 10, |_| true);
        assert_eq!(found.row(query), &wanted[..], "query {query}");
    }
    assert!(effort.left > 0 && effort.exact < 50 * 20_000 / 10, "{effort:?}");
    let pool = |threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    for threads in [1, 2, 3] {
        let (again, of_again) = pool(threads).install(|| index.search_batch(queries, 10, None)).unwrap();
        assert!(again.iter().eq(found.iter()) && of_again == effort, "{threads} threads");
    }
}

#[test]
fn what_is_no_row_or_query_is_refused() {
    let one = |value: f32| CsrMatrix::from_checked((2, 3), vec![0, 1, 2], vec![0, 2], vec![1.0, value]);
    for value in [f32::NAN, f32::INFINITY, 3e19] {
        let built = InvertedIndex::build(one(value).view(), Metric::L2);
        assert_eq!(built.err(), Some(BuildError::Row { row: 1 }));
    }
    let index = InvertedIndex::build(one(1e19).view(), Metric::L2).unwrap();
    let ask = |indices: &[u32], values: &[f32]| {
        index.nearest(SparseRow::from_checked(indices, values), 2, &mut InvertedScratch::default())
    };
    assert_eq!(ask(&[3], &[1.0]), Err(QueryError::Width { found: 4, expected: 3 }));
    assert_eq!(ask(&[1], &[f32::NAN]), Err(QueryError::NotFinite { query: 0 }));
    assert!(matches!(ask(&[1, 0], &[1.0, 1.0]), Err(QueryError::Sparse { query: 0, .. })));
    // Sums beyond what a float holds.
    let found = ask(&[2], &[1.8e19]).unwrap();
    assert_eq!(found.iter().map(|s| s.label).collect::<Vec<_>>(), [1, 0]);
    let wide = CsrMatrix::zero((1, 4));
    let batch = index.search_batch(wide.view(), 1, None);
    assert_eq!(batch.err(), Some(QueryError::Width { found: 4, expected: 3 }));
}

#[cfg(feature = "store")]
#[test]
fn an_index_comes_back_as_it_was_or_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.index");
    let (matrix, queries) = (made(300, 50, 12, 1, false), made(30, 50, 12, 2, false));
    let queries = queries.view();
    for metric in [Metric::L2, Metric::InnerProduct] {
        for n in [0, 300] {
            let part = matrix.slice(0..n);
            let index = InvertedIndex::build(part, metric).unwrap();
            index.save(&path).unwrap();
            for mode in [OpenMode::Map, OpenMode::Read] {
                let opened = InvertedIndex::open(&path, mode).unwrap();
                let (before, after) =
                    (index.search_batch(queries, 9, None).unwrap(), opened.search_batch(queries, 9, None).unwrap());
                assert!(before.0.iter().eq(after.0.iter()) && before.1 == after.1);
                assert_eq!(opened.n_bytes(), index.n_bytes());
            }
        }
    }
    let is_arrays = |path: &std::path::PathBuf| path.extension().is_some_and(|e| e == "safetensors");
    let file = std::fs::read_dir(&path).unwrap().map(|e| e.unwrap().path()).find(is_arrays).unwrap();
    let whole = std::fs::read(&file).unwrap();
    let (mut refused, mut answered) = (0, 0);
    for at in (0..whole.len()).step_by(89) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0xd5;
        std::fs::write(&file, &damaged).unwrap();
        match InvertedIndex::open(&path, OpenMode::Read) {
            Err(OpenGraphError::Open(_) | OpenGraphError::Graph { .. }) => refused += 1,
            Err(other) => panic!("{other}"),
            Ok(index) => {
                index.search_batch(queries, 9, None).unwrap();
                answered += 1;
            }
        }
    }
    assert!(refused > 20 && answered > 20, "{refused} refused, {answered} answered");
}
