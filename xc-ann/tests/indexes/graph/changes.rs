use super::made::{build, clustered};
use xc_ann::{BuildError, BuildParams, Graph, Metric, Refresh, SearchParams, Silent, exact, recall};
use xc_dense::{DenseMatrix, DenseRows};
use xc_hash::stream::Stream;
use xc_sparse::rank::RankedBatch;

const WIDE: SearchParams = SearchParams::top(10_000).with_width(f32::INFINITY);

/// Rows that a wide search finds, ascending.
fn found(graph: &Graph, rows: DenseRows<'_>) -> Vec<u32> {
    let query = vec![0.5; rows.width()];
    let (found, _) = graph.search_batch(rows, DenseRows::new(&query, rows.width()), WIDE, None).unwrap();
    let mut labels: Vec<u32> = found.row(0).iter().map(|s| s.label).collect();
    labels.sort_unstable();
    labels
}

/// Recall at 10 of a narrow search, of the rows that are there.
fn narrow(graph: &Graph, rows: DenseRows<'_>, queries: DenseRows<'_>, there: &[u32]) -> f64 {
    let values: Vec<f32> = there.iter().flat_map(|&row| rows.row(row as usize).to_vec()).collect();
    let scanned = exact(DenseRows::new(&values, rows.width()), queries, graph.params().metric, 10);
    let mut truth = RankedBatch::new();
    for row in scanned.iter() {
        let mut row = row.to_vec();
        row.iter_mut().for_each(|s| s.label = there[s.label as usize]);
        truth.push_row(&row);
    }
    let (found, _) = graph.search_batch(rows, queries, SearchParams::top(10).with_width(0.1), None).unwrap();
    recall(&found, &truth)
}

#[test]
fn rows_come_and_go() {
    for metric in Metric::ALL {
        let (rows, queries) = (clustered(2000, 24, 20, 1), clustered(100, 24, 20, 1));
        let mut graph = build(DenseRows::new(&rows.values[..1000 * 24], 24), metric);
        graph.insert(rows.view(), &(1000..2000).collect::<Vec<_>>(), &Silent).unwrap();
        let all: Vec<u32> = (0..2000).collect();
        assert_eq!(found(&graph, rows.view()), all);
        let fresh = build(rows.view(), metric);
        let (grown, of_fresh) =
            (narrow(&graph, rows.view(), queries.view(), &all), narrow(&fresh, rows.view(), queries.view(), &all));
        assert!(grown > of_fresh - 0.03, "{metric}: {grown} after insertions, {of_fresh} of a fresh build");

        let mut stream = Stream::new(3);
        let mut there = all.clone();
        for _ in 0..5 {
            stream.shuffle(&mut there);
            let gone = there.split_off(1600);
            assert_eq!(graph.delete(&gone), 400);
            assert_eq!(graph.delete(&gone), 0, "they are gone");
            there.sort_unstable();
            assert_eq!(found(&graph, rows.view()), there);
            assert_eq!(graph.len(), 1600);
            graph.insert(rows.view(), &gone, &Silent).unwrap();
            there.extend(gone);
        }
        assert_eq!(found(&graph, rows.view()), all);
        assert_eq!((graph.stats().n_vertices, graph.stats().n_free), (2000, 0));
        let after = narrow(&graph, rows.view(), queries.view(), &all);
        assert!(after > of_fresh - 0.03, "{metric}: {after} after five turns, {of_fresh} of a fresh build");
    }
}

#[test]
fn all_rows_may_go_and_the_first_may_come() {
    let rows = clustered(70, 5, 3, 1);
    for metric in Metric::ALL {
        let mut graph = build(rows.view(), metric);
        assert_eq!(graph.delete(&(0..100).collect::<Vec<_>>()), 70);
        assert!(graph.is_empty() && found(&graph, rows.view()).is_empty());
        graph.insert(rows.view(), &[7, 9], &Silent).unwrap();
        assert_eq!(found(&graph, rows.view()), [7, 9]);
        let mut empty = build(DenseRows::new(&[], 5), metric);
        empty.insert(rows.view(), &(0..70).collect::<Vec<_>>(), &Silent).unwrap();
        assert_eq!(found(&empty, rows.view()), (0..70).collect::<Vec<_>>());
    }
}

#[test]
fn new_codes_are_searched_at_once_and_a_state_brings_a_graph_back() {
    for metric in Metric::ALL {
        let (mut rows, queries) = (clustered(2000, 24, 20, 1), clustered(50, 24, 20, 1));
        // Cells are no part of a state.
        let params = BuildParams { cells: Some(0), ..BuildParams::new(metric) };
        let mut graph = Graph::build(rows.view(), &params, &Silent).unwrap();
        // The graph has no row 2000.
        assert_eq!(graph.recode(&[2000], DenseRows::new(&[1.0; 24], 24)), Ok(()));
        let moved: Vec<u32> = (0..2000).step_by(7).collect();
        let values: Vec<f32> =
            moved.iter().flat_map(|&row| rows.view().row(row as usize).to_vec()).map(|v| -v).collect();
        let changed = DenseRows::new(&values, 24);
        graph.recode(&moved, changed).unwrap();
        for (&row, vector) in moved.iter().zip(changed.iter()) {
            rows.values.to_mut()[row as usize * 24..][..24].copy_from_slice(vector);
        }
        // All codes are compared: a few answers differ by their rounding.
        let scan = SearchParams::top(10).with_width(16.0);
        let (found, _) = graph.search_batch(rows.view(), queries.view(), scan, None).unwrap();
        let truth = exact(rows.view(), queries.view(), metric, 10);
        assert!(recall(&found, &truth) > 0.99, "{metric}");
        assert_eq!(graph.recode(&[5], DenseRows::new(&[f32::NAN; 24], 24)), Err(BuildError::Row { row: 5 }));
        let mut back = Graph::restore(graph.params(), 24, graph.state()).unwrap();
        // Edges are behind the codes, which a state says too.
        for graph in [&mut graph, &mut back] {
            graph.refresh(rows.view(), Some(queries.view()), Some(Refresh::SHORT), &Silent).unwrap();
        }
        assert_eq!((graph.state().edges, graph.state().numbers), (back.state().edges, back.state().numbers));
        assert!(narrow(&graph, rows.view(), queries.view(), &(0..2000).collect::<Vec<_>>()) > 0.8, "{metric}");
    }
}

#[test]
fn what_is_deleted_stays_so_after_a_rebuild() {
    let (rows, moved) = (clustered(300, 8, 5, 1), clustered(300, 8, 6, 1));
    for metric in Metric::ALL {
        let mut graph = build(rows.view(), metric);
        graph.delete(&(0..100).collect::<Vec<_>>());
        graph.refresh(moved.view(), None, Some(Refresh::Rebuild), &Silent).unwrap();
        assert_eq!(found(&graph, moved.view()), (100..300).collect::<Vec<_>>());
    }
}

#[test]
fn numbers_of_rows_may_be_any() {
    let rows = clustered(60, 8, 5, 1);
    let mut graph = build(rows.view(), Metric::L2);
    assert_eq!(graph.delete(&[7, u32::MAX, 60, 7, u32::MAX - 1]), 1);
    assert_eq!(graph.len(), 59);
}

#[test]
fn a_width_is_fitted_to_the_rows_that_are_left() {
    let (rows, queries) = (clustered(2000, 24, 20, 1), clustered(100, 24, 20, 1));
    for metric in Metric::ALL {
        let mut graph = build(rows.view(), metric);
        graph.delete(&(0..2000).filter(|row| row % 3 > 0).collect::<Vec<_>>());
        let fitted = graph.fit(rows.view(), queries.view(), 10, 0.95).unwrap();
        assert!(fitted.recall >= 0.95 && fitted.width.is_finite(), "{metric}: {fitted:?}");
        let told = graph.refresh(drift(&rows, 0.02).view(), None, None, &Silent).unwrap();
        assert!(told.after > 0.5, "{metric}: {told:?}");
        let exact = graph.exact(rows.view(), queries.view(), 10, None);
        assert!(exact.iter().flatten().all(|s| s.label % 3 == 0));
    }
}

#[test]
fn a_row_comes_once() {
    let rows = clustered(60, 8, 5, 1);
    let mut graph = build(rows.view(), Metric::L2);
    graph.delete(&[7, 8]);
    assert_eq!(graph.insert(rows.view(), &[7, 6], &Silent), Err(BuildError::Present { row: 6 }));
    assert_eq!(graph.insert(rows.view(), &[7, 7], &Silent), Err(BuildError::Present { row: 7 }));
    assert_eq!(graph.len(), 58, "nothing changed");
    graph.insert(rows.view(), &[8, 7], &Silent).unwrap();
    assert_eq!(found(&graph, rows.view()), (0..60).collect::<Vec<_>>());
}

#[test]
fn equal_rows_go_one_by_one() {
    let rows = DenseMatrix::new(90, 2, (0..90).flat_map(|i| [(i % 9) as f32, 1.0]).collect::<Vec<f32>>());
    let mut graph = build(rows.view(), Metric::L2);
    assert_eq!((graph.len(), graph.stats().n_vertices), (90, 9));
    let mut left: Vec<u32> = (0..90).collect();
    for row in [0, 81, 36, 9, 44] {
        assert_eq!(graph.delete(&[row]), 1);
        left.retain(|&other| other != row);
        assert_eq!(found(&graph, rows.view()), left);
    }
    assert_eq!(graph.stats().n_vertices, 9);
}

/// Rows, and the same ones each moved by a share of its length.
fn drift(rows: &DenseMatrix, share: f32) -> DenseMatrix {
    let mut moved = rows.clone();
    let mut noise = vec![0.0; rows.columns];
    let mut stream = Stream::new(5);
    for row in moved.values.to_mut().chunks_exact_mut(rows.columns) {
        stream.fill_uniform(1.0, &mut noise);
        let length = |v: &[f32]| v.iter().map(|v| v * v).sum::<f32>().sqrt();
        let scale = share * length(row) / length(&noise).max(1e-9);
        row.iter_mut().zip(&noise).for_each(|(v, n)| *v += scale * n);
    }
    moved
}

#[test]
fn a_refresh_follows_rows_that_moved() {
    let rows = clustered(2000, 24, 20, 1);
    let (moved, all) = (drift(&rows, 0.3), (0..2000).collect::<Vec<u32>>());
    let queries = drift(&clustered(100, 24, 20, 1), 0.3);
    for metric in Metric::ALL {
        let graph = build(rows.view(), metric);
        let rebuilt = narrow(&build(moved.view(), metric), moved.view(), queries.view(), &all);
        for policy in
            [Some(Refresh::Search(32)), Some(Refresh::TwoHops), Some(Refresh::Both), Some(Refresh::Rebuild), None]
        {
            let mut graph = graph.clone();
            let told = graph.refresh(moved.view(), None, policy, &Silent).unwrap();
            let reached = narrow(&graph, moved.view(), queries.view(), &all);
            assert!(reached > rebuilt - 0.02, "{metric}, {policy:?}: {reached}, rebuilt {rebuilt}; {told:?}");
            assert_eq!(found(&graph, moved.view()), all);
        }
    }
}

#[test]
fn rows_that_did_not_move_change_nothing() {
    let (rows, queries) = (clustered(600, 12, 9, 1), clustered(40, 12, 9, 2));
    for metric in Metric::ALL {
        let mut graph = build(rows.view(), metric);
        let search = |graph: &Graph| {
            let (found, effort) =
                graph.search_batch(rows.view(), queries.view(), SearchParams::top(5).with_width(0.1), None).unwrap();
            (found.iter().map(<[_]>::to_vec).collect::<Vec<_>>(), effort, graph.stats())
        };
        let before = search(&graph);
        let told = graph.refresh(rows.view(), None, None, &Silent).unwrap();
        assert_eq!((told.policy, told.before), (Refresh::Codes, told.after));
        assert_eq!(search(&graph), before);
    }
}

#[test]
fn equal_rows_may_part_and_rows_become_zeros() {
    let rows = DenseMatrix::new(60, 3, [1.0, 2.0, 3.0].repeat(60));
    let mut moved = clustered(60, 3, 4, 1);
    moved.values.to_mut()[..30].fill(0.0);
    for metric in Metric::ALL {
        let mut graph = build(rows.view(), metric);
        assert_eq!(graph.stats().n_vertices, 1);
        graph.refresh(moved.view(), None, None, &Silent).unwrap();
        let first = if metric == Metric::Cosine { 10 } else { 0 };
        assert_eq!(found(&graph, moved.view()), (first..60).collect::<Vec<_>>(), "{metric}");
    }
}

#[test]
fn what_all_rows_have_in_common_may_move_too() {
    let (rows, queries) = (clustered(3000, 24, 50, 1), clustered(60, 24, 50, 2));
    let with_last = |rows: &DenseMatrix, last: f32| {
        let values =
            rows.values.chunks_exact(24).flat_map(|row| row.iter().copied().chain([last])).collect::<Vec<f32>>();
        DenseMatrix::new(rows.rows, 25, values)
    };
    let (before, after, queries) = (with_last(&rows, -5.0), with_last(&rows, -80.0), with_last(&queries, 1.0));
    let truth = exact(after.view(), queries.view(), Metric::InnerProduct, 100);
    for policy in [Some(Refresh::Codes), Some(Refresh::SHORT), None] {
        let mut graph = build(before.view(), Metric::InnerProduct);
        graph.refresh(after.view(), None, policy, &Silent).unwrap();
        let (all, _) =
            graph.search_batch(after.view(), queries.view(), SearchParams::top(100).with_width(16.0), None).unwrap();
        let share = recall(&all, &truth);
        assert!(share > 0.99, "{policy:?}: {share} of the best by all codes");
    }
}

#[test]
fn queries_decide_whether_edges_still_lead_to_their_answers() {
    // Rows whose neighbours stay near, and queries that ask for others than before.
    let rows = clustered(4000, 32, 400, 1);
    let queries = |seed| {
        let mut made = clustered(1200, 32, 60, seed);
        made.values.to_mut().iter_mut().for_each(|v| *v = v.max(0.0));
        made
    };
    let (old, new) = (queries(7), queries(8));
    let moved = drift(&rows, 0.01);
    let params = BuildParams { cells: Some(0), target_recall: 0.9, ..BuildParams::new(Metric::InnerProduct) };
    let graph = Graph::build_for(rows.view(), Some(old.view()), &params, &Silent).unwrap();
    let wanted = graph.fitted().unwrap();
    let judged = |queries| {
        let mut graph = graph.clone();
        let told = graph.refresh(moved.view(), queries, None, &Silent).unwrap();
        (told, graph.fitted().unwrap())
    };
    let (by_rows, _) = judged(None);
    assert_eq!(by_rows.policy, Refresh::Codes, "rows are found: {by_rows:?}");
    let (by_queries, fitted) = judged(Some(new.view()));
    assert!(by_queries.before < wanted.recall - 0.05, "{by_queries:?}, wanted {wanted:?}");
    assert!(by_queries.after > by_queries.before, "{by_queries:?}");
    assert!(fitted.recall >= 0.9, "{fitted:?}");
}
