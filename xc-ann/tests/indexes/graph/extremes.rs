//! Rows that indexes are seldom tested with.

use super::made::{build, clustered};
use xc_ann::{
    BuildError, BuildParams, Filter, Graph, Index, Metric, SearchParams, SearchScratch, Silent, exact, recall,
};
use xc_dense::DenseMatrix;
use xc_sparse::rank::Scored;
use xc_store::OpenMode;

#[test]
fn thousands_of_equal_rows_are_one_vertex_and_as_many_answers_as_are_asked_for() {
    let (mut rows, queries) = (clustered(6000, 16, 20, 1), clustered(50, 16, 20, 1));
    // Two rows of three are the first one.
    (0..6000).filter(|row| row % 3 > 0).for_each(|row| rows.values.to_mut().copy_within(0..16, row * 16));
    for metric in Metric::ALL {
        let graph = build(rows.view(), metric);
        let stats = graph.stats();
        assert_eq!((stats.n_rows, stats.n_vertices), (6000, 2000), "{metric}");
        let params = |k| SearchParams::top(k);
        let truth = exact(rows.view(), queries.view(), metric, 10);
        let (found, effort) = graph.search_batch(rows.view(), queries.view(), params(10), None).unwrap();
        assert!(recall(&found, &truth) >= 0.9, "{metric}: {}", recall(&found, &truth));
        assert!(effort.distances <= 50 * 2000, "{metric}: {effort:?}");
        let (mut scratch, mut found) = (SearchScratch::default(), Vec::new());
        graph.search(rows.view(), rows.view().row(0), params(3000), None, &mut scratch, &mut found).unwrap();
        assert_eq!(found.len(), 3000, "{metric}");
        // Of inner products longer rows are better answers.
        let is_equal = |s: &Scored| !s.label.is_multiple_of(3) || s.label == 0;
        assert!(metric == Metric::InnerProduct || found.iter().all(is_equal), "{metric}");
    }
}

#[test]
fn rows_that_codes_cannot_tell_apart_do_not_hide_others() {
    let (mut rows, queries) = (clustered(4000, 16, 20, 1), clustered(50, 16, 20, 1));
    // Three rows of four are the first one but for less than a step of its code.
    for row in (0..4000).filter(|row| row % 4 > 0) {
        rows.values.to_mut().copy_within(0..16, row * 16);
        rows.values.to_mut()[row * 16 + row % 16] += row as f32 * 1e-8;
    }
    for metric in Metric::ALL {
        let graph = build(rows.view(), metric);
        assert!(graph.stats().n_vertices > 3000, "{metric}");
        let is_other = |row: u32| row.is_multiple_of(4);
        let others = Filter::Test(&is_other);
        for filter in [None, Some(&others)] {
            let truth = graph.exact(rows.view(), queries.view(), 10, filter);
            let params = SearchParams::top(10).with_width(0.2);
            let (found, effort) = graph.search_batch(rows.view(), queries.view(), params, filter).unwrap();
            let as_good = |(found, best): (&[Scored], &[Scored])| {
                let pairs = found.iter().zip(best);
                pairs.filter(|(found, best)| found.score >= best.score - 1e-3 * best.score.abs()).count()
            };
            let n: usize = found.iter().zip(truth.iter()).map(as_good).sum();
            assert!(n > 475, "{metric}, {filter:?}: {n} of 500");
            assert!(filter.is_some() || effort.distances < 50 * 500, "{metric}: {effort:?}");
        }
    }
}

#[test]
fn a_filter_that_nothing_passes_is_answered_without_a_comparison() {
    let (rows, queries) = (clustered(3000, 12, 9, 1), clustered(20, 12, 9, 2));
    let no_row = |_: u32| false;
    for metric in Metric::ALL {
        let params = BuildParams { cells: Some(30), ..BuildParams::new(metric) };
        let graph = Graph::build(rows.view(), &params, &Silent).unwrap();
        for filter in [Filter::Bits(&[]), Filter::Bits(&[0; 47]), Filter::Test(&no_row)] {
            let some = Some(&filter);
            for params in [
                SearchParams::top(10).with_width(0.1),
                SearchParams::top(10).with_width(f32::INFINITY),
                SearchParams::top(10).with_cells(3),
            ] {
                let (found, effort) = graph.search_batch(rows.view(), queries.view(), params, some).unwrap();
                assert!(found.len() == 20 && found.iter().all(<[_]>::is_empty), "{metric}, {filter:?}");
                assert_eq!((effort.distances, effort.hops, effort.exact), (0, 0, 0), "{metric}, {filter:?}");
            }
            let (found, effort) = graph.search_above(rows.view(), queries.view(), -1e9, 10, 0.1, some).unwrap();
            assert!(found.iter().all(<[_]>::is_empty) && effort.distances == 0, "{metric}, {filter:?}");
            assert!(graph.exact(rows.view(), queries.view(), 10, some).iter().all(<[_]>::is_empty));
        }
    }
}

#[test]
fn an_index_without_rows_is_built_searched_fitted_saved_and_filled() {
    let folder = tempfile::tempdir().unwrap();
    let (rows, queries) = (clustered(40, 6, 3, 1), clustered(5, 6, 3, 2));
    for metric in Metric::ALL {
        let params = BuildParams { min_recall: Some(1.0), ..BuildParams::new(metric) };
        let mut index = Index::build(Vec::new(), 6, &params, &Silent).unwrap();
        assert!(index.graph().is_empty() && index.graph().fitted().is_none());
        let path = folder.path().join(metric.name());
        index.save(&path).unwrap();
        let opened = Index::open(&path, OpenMode::Map).unwrap();
        for index in [&index, &opened] {
            assert_eq!(index.nearest(queries.view().row(0), 10, &mut SearchScratch::default()), Ok(Vec::new()));
            assert!(index.exact(queries.view(), 10, None).iter().all(<[_]>::is_empty));
        }
        assert_eq!(index.fit(queries.view(), 10, 0.95).unwrap().recall, 1.0, "there is nothing to find");
        index.insert(rows.view(), &Silent).unwrap();
        let (found, _) =
            index.search_batch(queries.view(), SearchParams::top(100).with_width(f32::INFINITY), None).unwrap();
        assert!(found.iter().all(|row| row.len() == 40), "{metric}");
    }
}

#[test]
fn one_row_of_huge_length_does_not_hide_others() {
    let queries = clustered(60, 16, 20, 1);
    for length in [1e3f32, 1e6, 1e12, 4e18] {
        let mut rows = clustered(3000, 16, 20, 1);
        rows.values.to_mut()[16 * 1000..][..16].fill(length);
        for metric in Metric::ALL {
            let graph = build(rows.view(), metric);
            let truth = exact(rows.view(), queries.view(), metric, 10);
            let params = SearchParams::top(10);
            let (found, effort) = graph.search_batch(rows.view(), queries.view(), params, None).unwrap();
            let recall = recall(&found, &truth);
            assert!(recall > 0.9 && effort.distances < 60 * 1000, "{metric}, {length:e}: {recall}, {effort:?}");
        }
    }
}

#[test]
fn a_build_that_finds_less_than_is_asked_for_fails() {
    let rows = clustered(2500, 24, 40, 1);
    // A narrow search finds some, and not all.
    let params = BuildParams { target_recall: 0.2, cells: Some(0), ..BuildParams::new(Metric::L2) };
    let reached = build_with(&rows, &params).unwrap().fitted().unwrap().recall;
    assert!((0.2..1.0).contains(&reached), "{reached}");
    let error = build_with(&rows, &BuildParams { min_recall: Some(1.0), ..params }).unwrap_err();
    assert_eq!(error, BuildError::TooFewFound { recall: reached, k: 10, least: 1.0 });
    assert_eq!(error.to_string(), format!("{reached} of the 10 best are found, expected at least 1"));
    let graph = build_with(&rows, &BuildParams { min_recall: Some(reached), ..params }).unwrap();
    // What was met is no property of the graph.
    assert_eq!(graph.params().min_recall, None);
    for least in [-0.1, 1.1, f64::NAN] {
        let error = build_with(&rows, &BuildParams { min_recall: Some(least), ..params }).unwrap_err();
        assert!(matches!(error, BuildError::Recall { .. }), "{error}");
    }
}

fn build_with(rows: &DenseMatrix, params: &BuildParams) -> Result<Graph, BuildError> {
    Graph::build(rows.view(), params, &Silent)
}
