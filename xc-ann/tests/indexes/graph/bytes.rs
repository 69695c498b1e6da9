use super::made::clustered;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use xc_ann::{BuildParams, Graph, Metric, Refresh, SearchParams, Silent};
use xc_buffer::simd::Isa;
use xc_dense::DenseRows;

/// Content of every file below a folder by its path.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let (name, path) = (entry.file_name().into_string().unwrap(), entry.path());
        if path.is_dir() {
            all.extend(files(&path).into_iter().map(|(inner, bytes)| (format!("{name}/{inner}"), bytes)));
        } else {
            all.insert(name, std::fs::read(path).unwrap());
        }
    }
    all
}

const N: usize = 500;

/// Saves all that a graph is and answers as it is built and changed.
fn leave(folder: &Path, threads: usize) {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let (rows, queries) = (clustered(N, 40, 30, 1), clustered(100, 40, 30, 2));
    let moved = clustered(N, 40, 31, 1);
    let leave = |graph: &Graph, rows: DenseRows<'_>, name: &str| {
        let path = folder.join(name);
        std::fs::create_dir_all(&path).unwrap();
        graph.save(&path).unwrap();
        let answers = [SearchParams::top(10).with_width(0.1), SearchParams::top(10).with_cells(5)].map(|params| {
            let (found, effort) = graph.search_batch(rows, queries.view(), params, None).unwrap();
            let found: Vec<_> = found.iter().flatten().map(|s| (s.label, s.score.to_bits())).collect();
            format!("{effort:?} {found:?}")
        });
        std::fs::write(path.join("answers"), answers.concat()).unwrap();
    };
    pool.install(|| {
        for metric in Metric::ALL {
            let params = BuildParams { cells: Some(40), ..BuildParams::new(metric) };
            let mut graph = Graph::build(rows.view(), &params, &Silent).unwrap();
            leave(&graph, rows.view(), &format!("{metric}-built"));
            graph.delete(&(0..N as u32).step_by(7).collect::<Vec<_>>());
            graph.insert(rows.view(), &(0..N as u32).step_by(14).collect::<Vec<_>>(), &Silent).unwrap();
            leave(&graph, rows.view(), &format!("{metric}-changed"));
            graph.refresh(moved.view(), None, Some(Refresh::Both), &Silent).unwrap();
            leave(&graph, moved.view(), &format!("{metric}-refreshed"));
        }
        // Queries make edges of inner products alone.
        let params = BuildParams::new(Metric::InnerProduct);
        let params = BuildParams { cells: Some(40), alpha: Some(0.9), ..params };
        let graph = Graph::build_for(rows.view(), Some(queries.view()), &params, &Silent).unwrap();
        leave(&graph, rows.view(), "for-queries");
    });
}

/// Saves graphs for itself, as a process of its own under each instruction set: on 1, 2 and 3 threads under the widest, on 2
/// under the others.
#[test]
fn neither_instruction_sets_nor_threads_change_a_byte() {
    const CHILD: &str = "XC_ANN_LEAVE";
    let widest = Isa::available().last().unwrap();
    let threads_of = |isa: Isa| if isa == widest { &[1, 2, 3][..] } else { &[2] };
    if let Some(folder) = std::env::var_os(CHILD) {
        threads_of(Isa::current())
            .iter()
            .for_each(|&threads| leave(&Path::new(&folder).join(threads.to_string()), threads));
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut first = None;
    for isa in Isa::available() {
        let path = folder.path().join(isa.name());
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["graph::bytes::neither_instruction_sets_nor_threads_change_a_byte", "--exact"])
            .env(CHILD, &path)
            .env("XC_SIMD", isa.name())
            .output()
            .unwrap();
        assert!(output.status.success(), "{isa}: {}", String::from_utf8_lossy(&output.stdout));
        for threads in threads_of(isa) {
            let left = files(&path.join(threads.to_string()));
            let first = first.get_or_insert_with(|| left.clone());
            assert!(left.len() == (3 * 3 + 1) * 3 && left.keys().eq(first.keys()), "{isa}, {threads} threads");
            for (name, bytes) in &left {
                assert!(*bytes == first[name], "{isa}, {threads} threads: {name} is another");
            }
        }
    }
}
