//! Tries.
#![allow(missing_docs)]
use std::time::Instant;
use xc_ann::*;
use xc_sparse::DenseRows;
use xc_sparse::io::{ReadOptions, Vectors};
fn cpu() -> f64 {
    std::fs::read_to_string("/proc/thread-self/schedstat").unwrap().split(' ').next().unwrap().parse::<f64>().unwrap()
        * 1e-9
}
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().collect();
    let metric = match args[1].as_str() {
        "l2" => Metric::L2,
        "ip" => Metric::InnerProduct,
        _ => Metric::Cosine,
    };
    let base = Vectors::open(args[2].as_ref(), &ReadOptions::default())?;
    let query = Vectors::open(args[3].as_ref(), &ReadOptions::default())?;
    let k: usize = args[4].parse()?;
    let n_cells: usize = args[5].parse()?;
    let rows = DenseRows::new(base.values(), base.columns());
    let queries = DenseRows::new(query.values(), query.columns());
    let begin = Instant::now();
    let params = BuildParams {
        cells: Some(n_cells),
        passes: args.get(6).map_or(1, |p| p.parse().unwrap()),
        top_k: k,
        ..BuildParams::new(metric)
    };
    let saved = std::path::PathBuf::from(format!("/tmp/g-{}-{}", args[1], rows.len()));
    let graph = if saved.exists() {
        Graph::open(&saved, xc_sparse::store::OpenMode::Read)?
    } else {
        let g = Graph::build(rows, &params, &NoObserver)?;
        g.save(&saved)?;
        g
    };
    println!(
        "built {:.1} s, {} cells, {} MB, fitted {:?}",
        begin.elapsed().as_secs_f64(),
        graph.n_cells(),
        graph.n_bytes() / 1000000,
        graph.fitted()
    );
    let truth = graph.exact(rows, queries, k, None);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
    let measure = |params: SearchParams| {
        let mut best = f64::INFINITY;
        let mut r = (0.0, Effort::default());
        for _ in 0..3 {
            let mut took = 0.0;
            let (found, effort) = pool.install(|| {
                let b = cpu();
                let r = graph.search_batch(rows, queries, params, None).unwrap();
                took = cpu() - b;
                r
            });
            best = best.min(took);
            r = (recall(&found, &truth), effort);
        }
        let n = queries.len() as f64;
        println!("{params:?} recall {:.4} {:.1} us, {:.0} compared", r.0, 1e6 * best / n, r.1.distances as f64 / n);
    };
    for cells in [1, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128] {
        if cells <= n_cells {
            measure(SearchParams::in_cells(k, cells));
        }
    }
    for width in [-0.3, -0.2, -0.1, 0.0, 0.1, 0.2, 0.4] {
        measure(SearchParams::new(k, width));
    }
    measure(SearchParams::new(k, 16.0));
    for some in [1, 8, 64] {
        let many: Vec<f32> = (0..2000).flat_map(|i| queries.row(i % some).to_vec()).collect();
        for params in [
            SearchParams::in_cells(k, 12),
            SearchParams::in_cells(k, 128),
            SearchParams::new(k, 0.1),
            SearchParams::new(k, 16.0),
        ] {
            pool.install(|| {
                for _ in 0..3 {
                    let b = cpu();
                    let w = Instant::now();
                    let r = graph.search_batch(rows, DenseRows::new(&many, queries.width()), params, None).unwrap();
                    println!(
                        "{some} {params:?} {:.1} us cpu, {:.1} wall, {}",
                        1e6 * (cpu() - b) / 2000.0,
                        1e6 * w.elapsed().as_secs_f64() / 2000.0,
                        r.1.distances / 2000
                    );
                }
            });
        }
    }
    Ok(())
}
