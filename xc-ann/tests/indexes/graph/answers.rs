use super::made::{build, clustered};
use proptest::prelude::*;
use xc_ann::{
    BuildError, BuildParams, Filter, Graph, Index, Metric, QueryError, SearchParams, SearchScratch, Silent, exact,
    recall,
};
use xc_dense::{DenseMatrix, DenseRows};
use xc_sparse::rank::{RankedBatch, Scored};

const WIDE: f32 = f32::INFINITY;

/// In f64, of one coordinate after the other.
fn score_by_hand(a: &[f32], b: &[f32], metric: Metric) -> f64 {
    let pairs = || a.iter().zip(b).map(|(&a, &b)| (f64::from(a), f64::from(b)));
    let product = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum::<f64>();
    match metric {
        Metric::L2 => -pairs().map(|(a, b)| (a - b) * (a - b)).sum::<f64>(),
        Metric::InnerProduct => product(a, b),
        Metric::Cosine => product(a, b) / (product(a, a) * product(b, b)).sqrt(),
    }
}

/// Every row scored, the best first.
fn by_hand(rows: DenseRows<'_>, query: &[f32], metric: Metric, k: usize, passes: impl Fn(u32) -> bool) -> Vec<Scored> {
    let is_row = |row: &[f32]| metric != Metric::Cosine || row.iter().any(|v| *v != 0.0);
    let mut all: Vec<(f64, u32)> = (0u32..)
        .zip(rows.iter())
        .filter(|(label, row)| is_row(row) && passes(*label))
        .map(|(label, row)| (score_by_hand(query, row, metric), label))
        .collect();
    all.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    all.into_iter().take(k).map(|(score, label)| Scored { label, score: score as f32 + 0.0 }).collect()
}

fn shapes() -> Vec<(&'static str, DenseMatrix)> {
    let line = (0..400).flat_map(|i| [i as f32, 0.0, 1.0]).collect::<Vec<f32>>();
    let grid = (0..400).flat_map(|i| [(i % 20) as f32, (i / 20) as f32]).collect::<Vec<f32>>();
    let mut copies = clustered(300, 5, 9, 3);
    (0..300)
        .filter(|i| i % 3 > 0)
        .for_each(|i| copies.values.to_mut().copy_within(i / 30 * 150..i / 30 * 150 + 5, i * 5));
    let mut planted = clustered(300, 7, 5, 4);
    planted.values.to_mut()[..21].iter_mut().for_each(|v| *v *= 1e6);
    let mut zeros = clustered(200, 4, 5, 5);
    zeros.values.to_mut()[80..120].fill(0.0);
    vec![
        ("line", DenseMatrix::new(400, 3, line)),
        ("grid", DenseMatrix::new(400, 2, grid)),
        ("copies", copies),
        ("planted lengths", planted),
        ("rows of zeros", zeros),
        ("one copy", DenseMatrix::new(500, 3, [1.0, 2.0, 3.0].repeat(500))),
        ("all zeros", DenseMatrix::new(40, 3, vec![0.0; 120])),
    ]
}

#[test]
fn the_widest_search_finds_what_a_scan_finds() {
    let mut shapes = shapes();
    for n in [0, 1, 2, 31, 32, 33, 64, 65] {
        shapes.push(("few", clustered(n, 70, 3, n as u64)));
    }
    for metric in Metric::ALL {
        for (name, rows) in &shapes {
            let (rows, graph) = (rows.view(), build(rows.view(), metric));
            let queries = clustered(20, rows.width(), 4, 99);
            for k in [0, 1, 10, 600] {
                let params = SearchParams::top(k).with_width(WIDE);
                let (found, _) = graph.search_batch(rows, queries.view(), params, None).unwrap();
                let scanned = exact(rows, queries.view(), metric, k);
                for (query, vector) in queries.view().iter().enumerate() {
                    let wanted = by_hand(rows, vector, metric, k, |_| true);
                    assert_eq!(found.row(query), &wanted[..], "{metric}, {name}, {k} best");
                    assert_eq!(scanned.row(query), &wanted[..], "{metric}, {name}, {k} best: scan");
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]
    #[test]
    fn usual_widths_find_nearly_all(n in 500usize..3000, columns in 3usize..90, n_centres in 1usize..40, seed: u64, metric in 0usize..3) {
        let (rows, queries) = (clustered(n, columns, n_centres, seed), clustered(40, columns, n_centres, seed));
        let metric = Metric::ALL[metric];
        let mut graph = build(rows.view(), metric);
        prop_assert_eq!(graph.len(), n);
        let fitted = graph.fit(rows.view(), queries.view(), 10, 0.95).unwrap();
        prop_assert!(fitted.recall >= 0.95 && fitted.width.is_finite(), "{:?}", fitted);
        let (found, effort) =
            graph.search_batch(rows.view(), queries.view(), SearchParams::top(10).with_scope(fitted.scope()), None).unwrap();
        let truth = exact(rows.view(), queries.view(), metric, 10);
        prop_assert_eq!(recall(&found, &truth), fitted.recall);
        // Of few rows, or rows without clusters, a scan may be the fastest.
        prop_assert!((effort.hops > 0 || fitted.width >= 16.0) && effort.exact >= 40 * 10);
    }

    #[test]
    fn a_query_alone_is_answered_as_in_a_batch(n in 1usize..600, k in 1usize..70, width in -0.5f32..0.5, seed: u64, metric in 0usize..3) {
        let (rows, queries) = (clustered(n, 20, 7, seed), clustered(70, 20, 7, seed ^ 1));
        let (graph, params) = (build(rows.view(), Metric::ALL[metric]), SearchParams::top(k).with_width(width));
        let (found, of_batch) = graph.search_batch(rows.view(), queries.view(), params, None).unwrap();
        let (mut scratch, mut alone, mut effort) = (SearchScratch::default(), Vec::new(), xc_ann::SearchStats::default());
        for (query, vector) in queries.view().iter().enumerate() {
            effort += graph.search(rows.view(), vector, params, None, &mut scratch, &mut alone).unwrap();
            prop_assert_eq!(found.row(query), &alone[..]);
        }
        prop_assert_eq!(effort, of_batch);
    }

    #[test]
    fn a_filter_lets_only_its_rows_through(n in 1usize..700, share in 0f64..1.0, k in 1usize..30, seed: u64, metric in 0usize..3) {
        let (mut rows, queries) = (clustered(n, 10, 7, seed), clustered(9, 10, 7, seed ^ 1));
        // Some rows are equal.
        (0..n / 3).for_each(|row| rows.values.to_mut().copy_within(0..10, row * 30));
        let metric = Metric::ALL[metric];
        let graph = build(rows.view(), metric);
        let mut stream = xc_hash::stream::Stream::new(seed);
        let passing: Vec<bool> = (0..n).map(|_| stream.unit() < share).collect();
        let mut bits = vec![0u64; n.div_ceil(64)];
        (0..n).filter(|&row| passing[row]).for_each(|row| bits[row / 64] |= 1 << (row % 64));
        let test = |row: u32| passing[row as usize];
        let params = SearchParams::top(k).with_width(WIDE);
        let (by_bits, _) = graph.search_batch(rows.view(), queries.view(), params, Some(&Filter::Bits(&bits))).unwrap();
        let (by_test, _) = graph.search_batch(rows.view(), queries.view(), params, Some(&Filter::Test(&test))).unwrap();
        for (query, vector) in queries.view().iter().enumerate() {
            let wanted = by_hand(rows.view(), vector, metric, k, test);
            prop_assert_eq!(by_bits.row(query), &wanted[..]);
            prop_assert_eq!(by_test.row(query), &wanted[..]);
        }
    }

    #[test]
    fn rows_above_a_score_are_found(n in 1usize..500, most in 0usize..60, at in 0usize..60, seed: u64, metric in 0usize..3) {
        let (rows, queries) = (clustered(n, 10, 7, seed), clustered(3, 10, 7, seed ^ 1));
        let metric = Metric::ALL[metric];
        let graph = build(rows.view(), metric);
        for vector in queries.view().iter() {
            let all = by_hand(rows.view(), vector, metric, n, |_| true);
            let score = all[at.min(n - 1)].score;
            let query = DenseRows::new(vector, 10);
            let (found, _) = graph.search_above(rows.view(), query, score, most, WIDE, None).unwrap();
            let wanted: Vec<Scored> = all.iter().copied().filter(|s| s.score >= score).take(most).collect();
            prop_assert_eq!(found.row(0), &wanted[..]);
            let (found, _) = graph.search_above(rows.view(), query, score, most, 0.2, None).unwrap();
            prop_assert!(found.row(0).iter().all(|s| s.score >= score));
        }
    }
}

#[test]
fn the_widest_search_under_a_filter_is_exact() {
    // Codes hardly tell these rows apart.
    let values = (0..900).flat_map(|i| [100.0, (i * 7 % 900) as f32 * 1e-4, 3.0]).collect::<Vec<f32>>();
    let rows = DenseMatrix::new(900, 3, values);
    let query = [100.0, 0.0451, 2.0];
    for metric in Metric::ALL {
        let graph = build(rows.view(), metric);
        // So few that they are scanned; so many that the graph is walked; so many that the walk gives up.
        for every in [30, 1, 2] {
            let test = |row: u32| row.is_multiple_of(every);
            let params = SearchParams::top(5).with_width(WIDE);
            let query = DenseRows::new(&query, 3);
            let (found, _) = graph.search_batch(rows.view(), query, params, Some(&Filter::Test(&test))).unwrap();
            let wanted = by_hand(rows.view(), query.row(0), metric, 5, test);
            assert_eq!(found.row(0), &wanted[..], "{metric}, every {every}");
            let scanned = graph.exact(rows.view(), query, 5, Some(&Filter::Test(&test)));
            assert_eq!(scanned.row(0), &wanted[..], "{metric}, every {every}: scan");
        }
    }
}

#[test]
fn codes_alone_find_what_rows_then_rank() {
    let (rows, queries) = (clustered(2000, 24, 20, 1), clustered(50, 24, 20, 2));
    for metric in Metric::ALL {
        let graph = build(rows.view(), metric);
        let params = |k| SearchParams::top(k).with_width(0.2);
        let (by_rows, _) = graph.search_batch(rows.view(), queries.view(), params(10), None).unwrap();
        let (by_codes, effort) =
            graph.search_codes_batch(queries.view(), params(xc_ann::rerank_candidates(10)), None).unwrap();
        assert_eq!(effort.exact, 0);
        for (query, vector) in queries.view().iter().enumerate() {
            let near = by_codes.row(query);
            let found = by_rows.row(query).iter().filter(|a| near.iter().any(|b| b.label == a.label)).count();
            assert!(found >= 9, "{metric}: {found} of 10");
            for s in near {
                let score = metric.score(vector, rows.view().row(s.label as usize));
                let apart = (s.score - score).abs() / score.abs().max(1.0);
                assert!(apart < 0.05, "{metric}: {} by codes, {score}", s.score);
            }
        }
    }
}

#[test]
fn few_that_pass_are_found_wherever_they_are() {
    let (rows, queries) = (clustered(4000, 16, 40, 1), clustered(30, 16, 40, 1));
    for metric in Metric::ALL {
        let graph = build(rows.view(), metric);
        // Those far from a corner, and those near to it: correlated with the queries.
        let corner = [1.0f32; 16];
        let is_far = |row: u32| Metric::L2.score(&corner, rows.view().row(row as usize)) < -20.0;
        for invert in [false, true] {
            let test = |row: u32| is_far(row) ^ invert;
            let params = SearchParams::top(10).with_width(0.3);
            let (found, _) =
                graph.search_batch(rows.view(), queries.view(), params, Some(&Filter::Test(&test))).unwrap();
            let mut truth = RankedBatch::new();
            queries.view().iter().for_each(|query| truth.push_row(&by_hand(rows.view(), query, metric, 10, test)));
            assert!(found.iter().flatten().all(|s| test(s.label)));
            let recall = recall(&found, &truth);
            assert!(recall > 0.95, "{metric}, {invert}: {recall}");
        }
    }
}

#[test]
fn rows_of_one_length_are_searched_by_inner_products_too() {
    for stretch in [0.0f32, 1.0] {
        let (mut rows, mut queries) = (clustered(6000, 24, 200, 1), clustered(60, 24, 200, 1));
        let mut stream = xc_hash::stream::Stream::new(3);
        for row in rows.values.to_mut().chunks_exact_mut(24).chain(queries.values.to_mut().chunks_exact_mut(24)) {
            let length = row.iter().map(|v| v * v).sum::<f32>().sqrt() / (stretch * (stream.unit() as f32 - 0.5)).exp();
            row.iter_mut().for_each(|v| *v /= length);
        }
        let mut graph = build(rows.view(), Metric::InnerProduct);
        let fitted = graph.fit(rows.view(), queries.view(), 10, 0.95).unwrap();
        assert!(fitted.recall >= 0.95 && fitted.width < 1.0, "{stretch}: {fitted:?}");
        let params = SearchParams::top(10).with_scope(fitted.scope());
        let (_, effort) = graph.search_batch(rows.view(), queries.view(), params, None).unwrap();
        assert!(effort.distances < 60 * 1500, "{stretch}: {} comparisons, {:?}", effort.distances, graph.params());
    }
}

#[test]
fn the_least_scope_that_is_enough_is_found() {
    let (rows, queries) = (clustered(6000, 24, 200, 1), clustered(60, 24, 200, 1));
    for cells in [0, 100] {
        let params = BuildParams { cells: Some(cells), ..BuildParams::new(Metric::L2) };
        let mut graph = Graph::build(rows.view(), &params, &Silent).unwrap();
        let truth = exact(rows.view(), queries.view(), Metric::L2, 10);
        let fit = |graph: &mut Graph, enough: &dyn Fn(&RankedBatch) -> bool| {
            let fitted = graph.fit_until(rows.view(), queries.view(), &truth, 10, enough).unwrap();
            let params = SearchParams::top(10).with_scope(fitted.scope());
            let (found, effort) = graph.search_batch(rows.view(), queries.view(), params, None).unwrap();
            assert_eq!((fitted.target, graph.fitted()), (recall(&found, &truth), Some(fitted)));
            (found, effort.distances, fitted)
        };
        // The best row of all queries but six.
        let hits = |found: &RankedBatch| {
            found
                .iter()
                .zip(truth.iter())
                .filter(|(found, truth)| found.first().map(|s| s.label) == Some(truth[0].label))
                .count()
        };
        let (found, of_best, _) = fit(&mut graph, &|found| hits(found) >= 54);
        let (all, of_all, _) = fit(&mut graph, &|found| recall(found, &truth) == 1.0);
        assert!(hits(&found) >= 54 && recall(&all, &truth) == 1.0 && of_best < of_all, "{cells}: {of_best}, {of_all}");
        // Nothing is enough: all rows are compared exactly.
        let (all, _, fitted) = fit(&mut graph, &|_| false);
        assert!(fitted.width.is_infinite() && fitted.cells == 0 && recall(&all, &truth) == 1.0);
    }
}

/// As the weights of labels with a bias behind them: all biases are low, and every query has a 1 there.
#[test]
fn what_all_rows_have_in_common_takes_no_precision() {
    let mut stream = xc_hash::stream::Stream::new(5);
    let with_last = |rows: &DenseMatrix, mut last: Box<dyn FnMut() -> f32>| {
        let values =
            rows.values.chunks_exact(24).flat_map(|row| row.iter().copied().chain([last()])).collect::<Vec<f32>>();
        DenseMatrix::new(rows.rows, 25, values)
    };
    let rows = with_last(&clustered(5000, 24, 50, 1), Box::new(move || stream.unit() as f32 - 60.0));
    let queries = with_last(&clustered(60, 24, 50, 2), Box::new(|| 1.0));
    let params = BuildParams { cells: Some(100), ..BuildParams::new(Metric::InnerProduct) };
    let graph = Graph::build(rows.view(), &params, &Silent).unwrap();
    let truth = exact(rows.view(), queries.view(), Metric::InnerProduct, 100);
    let found = |params| recall(&graph.search_batch(rows.view(), queries.view(), params, None).unwrap().0, &truth);
    let (all, some) = (found(SearchParams::top(100).with_width(16.0)), found(SearchParams::top(100).with_cells(25)));
    assert!(all > 0.99, "{all} of the best by all codes");
    assert!(some > 0.9, "{some} of the best in a quarter of all cells");
    let (by_codes, _) = graph.search_codes_batch(queries.view(), SearchParams::top(10).with_width(16.0), None).unwrap();
    for (query, best) in queries.view().iter().zip(by_codes.iter()) {
        for s in best {
            let apart = s.score - Metric::InnerProduct.score(query, rows.view().row(s.label as usize));
            assert!(apart.abs() < 0.1, "a score by codes is {apart} off");
        }
    }
}

#[test]
fn edges_for_queries_find_what_edges_among_rows_do_not() {
    let rows = clustered(4000, 32, 400, 1);
    // Units after a rectifier: another kind of vectors than rows.
    let mut queries = clustered(1500, 32, 60, 7);
    queries.values.to_mut().iter_mut().for_each(|v| *v = v.max(0.0));
    let (shown, asked) = queries.values.split_at(1200 * 32);
    let (shown, asked) = (DenseRows::new(shown, 32), DenseRows::new(asked, 32));
    let params = BuildParams::new(Metric::InnerProduct);
    let truth = exact(rows.view(), asked, Metric::InnerProduct, 10);
    let found = |queries| {
        let graph = Graph::build_for(rows.view(), queries, &params, &Silent).unwrap();
        assert_eq!(graph.len(), 4000);
        let (all, _) = graph.search_batch(rows.view(), asked, SearchParams::top(4000).with_width(WIDE), None).unwrap();
        assert!(all.iter().all(|row| row.len() == 4000), "every row is found");
        let (found, effort) =
            graph.search_batch(rows.view(), asked, SearchParams::top(10).with_width(0.0), None).unwrap();
        (recall(&found, &truth), effort.distances)
    };
    let (without, with) = (found(None), found(Some(shown)));
    assert!(
        with.0 > without.0 + 0.02 && with.1 < 2 * without.1,
        "{with:?} with edges for queries, {without:?} without"
    );
}

#[test]
fn rows_and_queries_of_another_width_are_refused_and_change_nothing() {
    let rows = clustered(50, 4, 3, 1);
    for width in 1..8 {
        let other = clustered(50, width, 3, 2);
        let (mut index, new) = (made_index(&rows), other.view());
        let (found, expected) = (width, 4);
        let values = |n: usize| BuildError::Values { n, expected: 200, width: 4 };
        let coordinates = BuildError::Coordinates { found, expected };
        let query = QueryError::Width { found, expected };
        let refused = [
            (index.refresh(other.values.to_vec(), None, None, &Silent).map(drop), values(50 * width)),
            (index.refresh(rows.values.to_vec(), Some(new), None, &Silent).map(drop), BuildError::Query(query.clone())),
            (
                Index::build_for(rows.values.to_vec(), 4, Some(new), &BuildParams::new(Metric::L2), &Silent).map(drop),
                BuildError::Query(query.clone()),
            ),
            (index.search_batch(new, SearchParams::top(1), None).map(drop).map_err(BuildError::Query), query.into()),
            (index.insert(new, &Silent), coordinates),
        ];
        for (outcome, error) in refused {
            assert_eq!(outcome, if width == 4 { Ok(()) } else { Err(error) }, "{width}");
        }
        // Nothing was added but by rows of its width.
        assert_eq!(index.rows().len(), if width == 4 { 100 } else { 50 });
    }
    let part = Index::build(vec![0.5; 7], 2, &BuildParams::new(Metric::L2), &Silent).unwrap_err();
    assert_eq!(part, BuildError::Values { n: 7, expected: 6, width: 2 });
    assert!(Index::build(vec![0.5; 7], 0, &BuildParams::new(Metric::L2), &Silent).is_err());
}

fn made_index(rows: &DenseMatrix) -> Index {
    Index::build(rows.values.to_vec(), 4, &BuildParams::new(Metric::L2), &Silent).unwrap()
}

#[test]
fn what_cannot_be_searched_is_refused() {
    let rows = clustered(50, 4, 3, 1);
    let graph = build(rows.view(), Metric::Cosine);
    let search = |query: &[f32], width: f32| {
        graph.search(
            rows.view(),
            query,
            SearchParams::top(3).with_width(width),
            None,
            &mut SearchScratch::default(),
            &mut Vec::new(),
        )
    };
    assert_eq!(search(&[1.0; 3], 0.1), Err(QueryError::Width { found: 3, expected: 4 }));
    assert_eq!(search(&[1.0, f32::NAN, 0.0, 0.0], 0.1), Err(QueryError::NotFinite { query: 0 }));
    assert_eq!(search(&[f32::MAX; 4], 0.1), Err(QueryError::NotFinite { query: 0 }));
    assert_eq!(search(&[1.0; 4], -1.0), Err(QueryError::SearchWidth { width: -1.0 }));
    let mut bad = clustered(70, 4, 3, 1);
    bad.values.to_mut()[4 * 66 + 1] = f32::INFINITY;
    assert_eq!(build_error(&bad, |_| {}), BuildError::Row { row: 66 });
    bad.values.to_mut()[4 * 66 + 1] = f32::MAX;
    assert_eq!(build_error(&bad, |_| {}), BuildError::Row { row: 66 });
    assert_eq!(build_error(&rows, |p| p.max_degree = 65), BuildError::Degree { degree: 65, most: 64 });
    assert_eq!(build_error(&rows, |p| p.top_k = 0), BuildError::Nothing { what: "top k" });
    assert_eq!(build_error(&rows, |p| p.target_recall = 1.5), BuildError::Recall { recall: 1.5 });
    assert_eq!(build_error(&rows, |p| p.build_width = 0), BuildError::Nothing { what: "keep" });
    assert_eq!(build_error(&rows, |p| p.alpha = Some(-1.0)), BuildError::Factor { factor: -1.0 });
}

fn build_error(rows: &DenseMatrix, change: impl Fn(&mut BuildParams)) -> BuildError {
    let mut params = BuildParams::new(Metric::L2);
    change(&mut params);
    Graph::build(rows.view(), &params, &Silent).expect_err("refused")
}
