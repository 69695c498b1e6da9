//! Recall and queries a second: `cargo run --release -p xc-ann --example ann_speed -- DIR METRIC [options]`
#![allow(clippy::print_stdout, missing_docs)]
use std::error::Error;
use std::path::Path;
use std::time::Instant;
use xc_ann::*;
use xc_sparse::{Cancel, DenseRows};
struct Go;
impl Cancel for Go {}
fn cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    stat.split(' ').next().unwrap().parse::<f64>().unwrap() / 1e9
}
fn env<T: std::str::FromStr>(name: &str, default: T) -> T {
    std::env::var(name).ok().and_then(|v| v.parse().ok()).unwrap_or(default)
}
fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let args: Vec<String> = std::env::args().collect();
    let read = |f: &str| xc_sparse::io::read_npy(&Path::new(&args[1]).join(f), &Default::default());
    let (base, query) = (read("base.npy")?, read("query.npy")?);
    let mut huge = xc_sparse::buffer::Pages::<f32>::zeros(base.values.len());
    huge.copy_from_slice(&base.values);
    let rows = DenseRows::new(&huge, base.columns);
    let metric = Metric::ALL.into_iter().find(|m| m.name() == args[2]).unwrap();
    let bytes = std::fs::read(Path::new(&args[1]).join("truth.npy"))?;
    let head = 10 + usize::from(bytes[8]) + 256 * usize::from(bytes[9]);
    let truth: Vec<u32> = bytes[head..].chunks_exact(4).map(|b| u32::from_le_bytes(b.try_into().unwrap())).collect();
    let k = truth.len() / query.rows;
    let mut params = BuildParams::new(metric);
    params.keep = env("KEEP", params.keep);
    params.slack = env("SLACK", params.slack);
    params.hops = env("HOPS", params.hops);
    params.factor = env("FACTOR", params.factor);
    params.passes = env("PASSES", params.passes);
    params.degree = env("DEGREE", params.degree);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
    pool.install(|| -> Result<(), Box<dyn Error + Send + Sync>> {
        let (t, wall) = (cpu(), Instant::now());
        let graph = Graph::build(rows, &params, &Go)?;
        println!("{params:?} build {:.2} s cpu {:.2} wall, degree {:.1}", cpu() - t, wall.elapsed().as_secs_f64(), graph.mean_degree());
        let default = if metric == Metric::InnerProduct { "0.02 0.05 0.1 0.15 0.2 0.3" } else { "0 0.02 0.04 0.06 0.1 0.15 0.2" };
        for slack in env("SLACKS", default.to_owned()).split(' ') {
            let how = SearchParams { k: 10, slack: slack.parse()? };
            let mut best = f64::INFINITY;
            let (mut recall, mut effort) = (0.0, Effort::default());
            for _ in 0..env("RUNS", 12) {
                let mut scratch = Scratch::default();
                let t = Instant::now();
                let (found, of) = graph.search_batch(rows, query.view(), how)?;
                best = best.min(t.elapsed().as_secs_f64());
                let _ = &mut scratch;
                let hits: usize = (0..query.rows).map(|q| found.row(q).iter().filter(|s| truth[q * k..][..10.min(k)].contains(&s.label)).count()).sum();
                (recall, effort) = (hits as f64 / (query.rows * 10) as f64, of);
            }
            let n = query.rows as f64;
            println!("slack {slack}: recall {recall:.4}, {:.0} QPS, {:.0} distances, {:.1} hops", n / best, effort.distances as f64 / n, effort.hops as f64 / n);
        }
        Ok(())
    })
}
