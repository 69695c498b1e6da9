use crate::made::clustered;
use std::process::Command;
use xc_ann::{BuildParams, Graph, Metric, NoObserver, Refresh, SearchParams};
use xc_sparse::simd::Isa;

/// All that a graph is and answers.
fn print(threads: usize) -> String {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    pool.install(|| {
        let (rows, queries) = (clustered(1500, 40, 30, 1), clustered(100, 40, 30, 2));
        let moved = clustered(1500, 40, 31, 1);
        let mut all = String::new();
        for metric in Metric::ALL {
            let mut graph =
                Graph::build(rows.view(), &BuildParams { cells: Some(40), ..BuildParams::new(metric) }, &NoObserver)
                    .unwrap();
            let answers = |graph: &Graph, rows| {
                [SearchParams::new(10, 0.1), SearchParams::in_cells(10, 5)]
                    .map(|params| {
                        let (found, effort) = graph.search_batch(rows, queries.view(), params, None).unwrap();
                        format!(
                            "{:?} {effort:?} {:?}",
                            graph.stats(),
                            found.iter().flatten().map(|s| (s.label, s.score.to_bits())).collect::<Vec<_>>()
                        )
                    })
                    .concat()
            };
            all += &answers(&graph, rows.view());
            graph.delete(&(0..1500).step_by(7).collect::<Vec<_>>());
            graph.insert(rows.view(), &(0..1500).step_by(14).collect::<Vec<_>>(), &NoObserver).unwrap();
            all += &answers(&graph, rows.view());
            graph.refresh(moved.view(), None, Some(Refresh::Both), &NoObserver).unwrap();
            all += &answers(&graph, moved.view());
        }
        all
    })
}

#[test]
fn threads_change_no_byte() {
    let one = print(1);
    assert!(one.len() > 10_000);
    assert!(one == print(2) && one == print(3));
}

/// Prints for the test below, which runs it under each instruction set.
#[test]
fn instruction_sets_change_no_byte() {
    const CHILD: &str = "XC_ANN_PRINT";
    if let Some(path) = std::env::var_os(CHILD) {
        std::fs::write(path, print(1)).unwrap();
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let prints: Vec<String> = Isa::available()
        .map(|isa| {
            let path = folder.path().join(isa.name());
            let status = Command::new(std::env::current_exe().unwrap())
                .args(["bytes::instruction_sets_change_no_byte", "--exact"])
                .env(CHILD, &path)
                .env("XC_SIMD", isa.name())
                .output()
                .unwrap()
                .status;
            assert!(status.success(), "{isa}");
            std::fs::read_to_string(&path).unwrap()
        })
        .collect();
    assert!(prints.iter().all(|print| *print == prints[0] && print.len() > 10_000));
}
