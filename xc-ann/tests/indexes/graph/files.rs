use super::made::{build, clustered};
use xc_ann::{BuildParams, Graph, Metric, Scope, SearchParams, Silent};
use xc_store::OpenMode;

#[test]
fn a_graph_comes_back_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    for (metric, n) in Metric::ALL.into_iter().flat_map(|m| [(m, 0), (m, 1), (m, 700)]) {
        let (rows, queries) = (clustered(n, 20, 9, 1), clustered(30, 20, 9, 2));
        let mut graph = build(rows.view(), metric);
        if n > 9 {
            graph.delete(&[3, 4, 5]);
            graph.fit(rows.view(), queries.view(), 10, 0.9).unwrap();
        }
        let path = folder.path().join(format!("{metric}-{n}"));
        graph.save(&path).unwrap();
        for mode in [OpenMode::Map, OpenMode::Read] {
            let opened = Graph::open(&path, mode).unwrap();
            let params = SearchParams::top(7).with_width(0.1);
            let all = |graph: &Graph| {
                let (found, effort) = graph.search_batch(rows.view(), queries.view(), params, None).unwrap();
                (
                    found.iter().map(<[_]>::to_vec).collect::<Vec<_>>(),
                    effort,
                    graph.stats(),
                    graph.fitted(),
                    graph.n_rows_needed(),
                )
            };
            assert_eq!(all(&opened), all(&graph));
        }
    }
}

#[test]
fn a_width_that_finds_all_comes_back() {
    // Two clusters whose rows have one code each: no width but an infinite one tells them apart.
    let values =
        (0..800).map(|at| if at % 4 < 2 { 1.0 } else { -1.0 } + 1e-5 * ((at * 37) % 101) as f32).collect::<Vec<f32>>();
    let rows = xc_dense::DenseMatrix::new(400, 2, values);
    let mut graph = build(rows.view(), Metric::L2);
    let fitted = graph.fit(rows.view(), rows.view(), 10, 0.99).unwrap();
    assert_eq!(fitted.width, f32::INFINITY);
    let folder = tempfile::tempdir().unwrap();
    graph.save(folder.path()).unwrap();
    assert_eq!(Graph::open(folder.path(), OpenMode::Map).unwrap().fitted(), Some(fitted));
}

#[test]
fn damaged_arrays_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let rows = clustered(200, 20, 9, 1);
    let path = folder.path().join("graph");
    let params = BuildParams { cells: Some(20), ..BuildParams::new(Metric::L2) };
    Graph::build(rows.view(), &params, &Silent).unwrap().save(&path).unwrap();
    let file = std::fs::read_dir(&path)
        .unwrap()
        .map(|e| e.unwrap().path())
        .find(|p| p.extension().is_some_and(|e| e == "safetensors"))
        .unwrap();
    let whole = std::fs::read(&file).unwrap();
    // Every eighth byte set to 255, one at a time: refused, or answers as a graph.
    let (mut refused, mut answered) = (0, 0);
    for at in (0..whole.len()).step_by(97) {
        let mut damaged = whole.clone();
        damaged[at] ^= 0x55;
        std::fs::write(&file, &damaged).unwrap();
        match Graph::open(&path, OpenMode::Read) {
            Err(_) => refused += 1,
            Ok(graph) if graph.n_rows_needed() <= 200 => {
                let cells = graph.n_cells().min(3);
                for params in [
                    SearchParams::top(3).with_width(0.2),
                    SearchParams::top(3).with_scope(match cells {
                        0 => Scope::width(0.2),
                        cells => Scope::Cells { cells, slack: 0.2, for_k: 0 },
                    }),
                ] {
                    graph.search_batch(rows.view(), rows.view(), params, None).unwrap();
                }
                answered += 1;
            }
            Ok(_) => answered += 1,
        }
    }
    assert!(refused > 50 && answered > 50, "{refused} refused, {answered} answered");
}
