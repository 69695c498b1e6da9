use super::made::clustered;
use proptest::prelude::*;
use xc_ann::{
    BuildParams, Filter, Graph, Metric, QueryError, Refresh, SearchParams, SearchScratch, SearchStats, Silent, recall,
};
use xc_dense::DenseRows;
use xc_sparse::rank::Scored;
use xc_store::OpenMode;

fn build(rows: DenseRows<'_>, metric: Metric, cells: usize) -> Graph {
    let params =
        BuildParams { cells: Some(cells), passes: 1, build_width: 20, max_degree: 8, ..BuildParams::new(metric) };
    Graph::build(rows, &params, &Silent).unwrap()
}

fn answers(graph: &Graph, rows: DenseRows<'_>, queries: DenseRows<'_>, params: SearchParams) -> Vec<Vec<Scored>> {
    let (found, _) = graph.search_batch(rows, queries, params, None).unwrap();
    found.iter().map(<[_]>::to_vec).collect()
}

/// All cells hold what a scan of all codes finds. Fewer answers may differ: queries of cells have coarser codes. Which
/// ones they are, `xc-ann/src/code/ivf.rs` tests.
fn all_cells_are_a_scan(graph: &Graph, rows: DenseRows<'_>, queries: DenseRows<'_>) {
    let everything = SearchParams::top(rows.len());
    assert_eq!(
        answers(graph, rows, queries, everything.with_cells(graph.n_cells().max(1))),
        answers(graph, rows, queries, everything.with_width(16.0))
    );
    // A batch looks into cells in another order than a query alone.
    for n in [1, 3, graph.n_cells() / 2].into_iter().filter(|n| (1..=graph.n_cells()).contains(n)) {
        let params = SearchParams::top(10).with_cells(n);
        let (found, of_batch) = graph.search_batch(rows, queries, params, None).unwrap();
        let (mut scratch, mut alone, mut effort) = (SearchScratch::default(), Vec::new(), SearchStats::default());
        for (query, vector) in queries.iter().enumerate() {
            effort += graph.search(rows, vector, params, None, &mut scratch, &mut alone).unwrap();
            assert_eq!(found.row(query), &alone[..], "{n} cells");
        }
        assert_eq!(effort, of_batch);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn all_cells_find_what_a_scan_finds(
        metric in 0usize..3, n in prop_oneof![1usize..40, 100usize..300], columns in 1usize..70, cells in 1usize..50, seed: u64,
        copies in 0usize..3,
    ) {
        let mut rows = clustered(n, columns, 6, seed);
        // Rows that equal the first one.
        (0..n / 3 * copies.min(1)).for_each(|row| rows.values.to_mut().copy_within(..columns, row * columns));
        let queries = clustered(7, columns, 6, seed + 1);
        let graph = build(rows.view(), Metric::ALL[metric], cells);
        prop_assert_eq!(graph.n_cells(), cells.min(graph.stats().n_vertices));
        all_cells_are_a_scan(&graph, rows.view(), queries.view());
        // A query alone has the answers that it has among others.
        let (mut scratch, mut one) = (xc_ann::SearchScratch::default(), Vec::new());
        let params = SearchParams::top(5).with_cells(2);
        let together = answers(&graph, rows.view(), queries.view(), params);
        for (query, answer) in queries.view().iter().zip(together) {
            graph.search(rows.view(), query, params, None, &mut scratch, &mut one).unwrap();
            prop_assert_eq!(&one, &answer);
        }
    }
}

#[test]
fn codes_of_queries_of_cells_are_coarser_than_those_of_a_scan() {
    let seed = 12_188_679_866_386_544_387;
    let (rows, queries) = (clustered(254, 55, 6, seed), clustered(7, 55, 6, seed + 1));
    let graph = build(rows.view(), Metric::ALL[1], 1);
    all_cells_are_a_scan(&graph, rows.view(), queries.view());
    let exact = graph.exact(rows.view(), queries.view(), 40, None);
    let params = SearchParams::top(40);
    let [in_cells, scanned] = [params.with_cells(1), params.with_width(16.0)]
        .map(|params| graph.search_batch(rows.view(), queries.view(), params, None).unwrap().0);
    assert!(in_cells != scanned);
    let at_most_one_lost = 1.0 - 1.0 / 280.0;
    assert!(recall(&in_cells, &exact) >= at_most_one_lost && recall(&scanned, &exact) >= at_most_one_lost);
}

#[test]
fn cells_follow_rows_that_come_go_and_move() {
    for metric in Metric::ALL {
        let (rows, queries) = (clustered(1200, 24, 20, 1), clustered(20, 24, 20, 1));
        let mut graph = build(DenseRows::new(&rows.values[..800 * 24], 24), metric, 30);
        graph.insert(rows.view(), &(800..1200).collect::<Vec<_>>(), &Silent).unwrap();
        all_cells_are_a_scan(&graph, rows.view(), queries.view());
        graph.delete(&(0..1200).step_by(3).collect::<Vec<_>>());
        all_cells_are_a_scan(&graph, rows.view(), queries.view());
        let same = graph.clone();
        graph.refresh(rows.view(), None, None, &Silent).unwrap();
        assert_eq!(
            answers(&graph, rows.view(), queries.view(), SearchParams::top(10).with_cells(3)),
            answers(&same, rows.view(), queries.view(), SearchParams::top(10).with_cells(3)),
            "nothing moved"
        );
        let moved = clustered(1200, 24, 21, 7);
        for policy in [Refresh::Codes, Refresh::SHORT, Refresh::Rebuild] {
            graph.refresh(moved.view(), None, Some(policy), &Silent).unwrap();
            assert_eq!(graph.n_cells(), 30);
            all_cells_are_a_scan(&graph, moved.view(), queries.view());
        }
        graph.insert(moved.view(), &(0..1200).step_by(6).collect::<Vec<_>>(), &Silent).unwrap();
        all_cells_are_a_scan(&graph, moved.view(), queries.view());
        let some: Vec<f32> = (0..24 * 2).map(|i| i as f32).collect();
        graph.recode(&[6, 1], DenseRows::new(&some, 24)).unwrap();
        all_cells_are_a_scan(&graph, moved.view(), queries.view());
    }
}

#[test]
fn cells_come_back_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    for metric in Metric::ALL {
        let (rows, queries) = (clustered(700, 20, 9, 1), clustered(30, 20, 9, 2));
        let mut graph = build(rows.view(), metric, 25);
        graph.delete(&[3, 4, 5]);
        let path = folder.path().join(metric.name());
        graph.save(&path).unwrap();
        let opened = Graph::open(&path, OpenMode::Map).unwrap();
        assert_eq!((opened.n_cells(), opened.n_bytes()), (25, graph.n_bytes()));
        let all = |graph: &Graph| answers(graph, rows.view(), queries.view(), SearchParams::top(7).with_cells(4));
        assert_eq!(all(&opened), all(&graph));
    }
}

#[test]
fn the_fit_takes_what_compares_less() {
    // Queries far from their answers: no walk finds them, and cells hold them together.
    let (rows, queries) = (clustered(6000, 16, 60, 1), clustered(200, 16, 60, 1));
    let params = BuildParams { top_k: 100, ..BuildParams::new(Metric::L2) };
    let graph = Graph::build_for(rows.view(), Some(queries.view()), &params, &Silent).unwrap();
    let fitted = graph.fitted().unwrap();
    assert!(fitted.cells > 0 && graph.n_cells() > fitted.cells, "{fitted:?}, {} cells", graph.n_cells());
    let (found, effort) = graph.search_batch(rows.view(), queries.view(), SearchParams::top(100), None).unwrap();
    let reached = recall(&found, &graph.exact(rows.view(), queries.view(), 100, None));
    assert!(reached >= 0.95 && effort.distances < 200 * 6000 / 2, "{reached}, {effort:?}");
    // What it does not take is not kept.
    let few = Graph::build(clustered(500, 16, 60, 1).view(), &BuildParams::new(Metric::L2), &Silent).unwrap();
    assert_eq!(few.n_cells(), 0);
}

#[test]
fn cells_that_are_not_there_are_refused_and_filters_scan() {
    let rows = clustered(300, 8, 5, 1);
    let without = build(rows.view(), Metric::L2, 0);
    let asked = SearchParams::top(5).with_cells(3);
    let refused = without.search_batch(rows.view(), rows.view(), asked, None).unwrap_err();
    assert_eq!(refused, QueryError::NoCells { asked: 3 });
    let graph = build(rows.view(), Metric::L2, 20);
    let odd = |row: u32| row % 2 == 1;
    let filter = Filter::Test(&odd);
    let (found, _) = graph.search_batch(rows.view(), rows.view(), asked, Some(&filter)).unwrap();
    let exact = graph.exact(rows.view(), rows.view(), 5, Some(&filter));
    assert!(recall(&found, &exact) > 0.99 && found.iter().flatten().all(|s| odd(s.label)));
}
