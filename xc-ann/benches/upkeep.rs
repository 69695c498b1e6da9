//! What changes cost (CPU time), and what is found after them, compared with a fresh build, on one thread.
//!
//! `cargo bench -p xc-ann --bench upkeep -- churn METRIC ROWS.npy QUERIES.npy` deletes a fifth of the
//! rows and inserts as many, five times over.
//!
//! `... -- drift METRIC BEFORE.npy AFTER.npy QUERIES.npy [FIT.npy]` follows rows that moved, by each policy, and compares
//! what is found with as many comparisons (the first 2,000 queries). Graphs are built and refreshed for the queries of
//! FIT, where there is one.

#![allow(clippy::print_stdout)]

use std::error::Error;
use std::path::Path;
use std::time::Instant;
use xc_ann::{BuildParams, Graph, Metric, Refresh, SearchParams, Silent, recall};
use xc_dense::{DenseMatrix, DenseRows};
use xc_hash::stream::Stream;
use xc_sparse::rank::RankedBatch;

type Outcome = Result<(), Box<dyn Error + Send + Sync>>;

const K: usize = 10;

/// Queries and what is to be found.
struct Asked<'a> {
    rows: DenseRows<'a>,
    queries: DenseRows<'a>,
    truth: RankedBatch,
}

impl<'a> Asked<'a> {
    fn new(rows: DenseRows<'a>, queries: DenseRows<'a>, metric: Metric) -> Self {
        Self { rows, queries, truth: xc_ann::exact(rows, queries, metric, K) }
    }

    /// Recall and comparisons of a query at a width.
    fn at(&self, graph: &Graph, width: f32) -> Result<(f64, f64), xc_ann::QueryError> {
        let (found, effort) =
            graph.search_batch(self.rows, self.queries, SearchParams::top(K).with_width(width), None)?;
        Ok((recall(&found, &self.truth), effort.distances as f64 / self.queries.len() as f64))
    }

    /// Recall at a number of comparisons, between two widths.
    fn with(&self, graph: &Graph, distances: f64) -> Result<f64, xc_ann::QueryError> {
        let mut last = (0.0, 0.0);
        for step in 0..80 {
            let now = self.at(graph, -0.3 + 0.02 * step as f32)?;
            if now.1 >= distances {
                let part = if now.1 > last.1 { (distances - last.1) / (now.1 - last.1) } else { 1.0 };
                return Ok(last.0 + part * (now.0 - last.0));
            }
            last = now;
        }
        Ok(last.0)
    }
}

/// CPU seconds of the program so far, where Linux tells them: others may run beside it.
fn cpu_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // In hundredths, behind the name in parentheses and eleven numbers.
    let ticks: Vec<f64> = stat.rsplit(')').next()?.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    Some((ticks.get(10)? + ticks.get(11)?) / 100.0)
}

fn timed<T, E>(work: impl FnOnce() -> Result<T, E>) -> Result<(T, f64), E> {
    let (begin, before) = (Instant::now(), cpu_seconds());
    let value = work()?;
    let cpu = before.zip(cpu_seconds()).map(|(before, after)| after - before);
    Ok((value, cpu.unwrap_or(begin.elapsed().as_secs_f64())))
}

fn churn(metric: Metric, rows: DenseRows<'_>, queries: DenseRows<'_>) -> Outcome {
    let asked = Asked::new(rows, queries, metric);
    let build = || Graph::build(rows, &BuildParams::new(metric), &Silent);
    let (mut graph, build_s) = timed(build)?;
    let width = graph.fit(rows, queries, K, 0.95)?.width;
    let (of_fresh, distances) = asked.at(&graph, width)?;
    println!("fresh build: {build_s:.2} s, recall {of_fresh:.4} at width {width:.4}, {distances:.0} comparisons");
    let (mut order, mut stream) = ((0..rows.len() as u32).collect::<Vec<_>>(), Stream::new(1));
    for turn in 1..=5 {
        stream.shuffle(&mut order);
        let some = &order[..rows.len() / 5];
        let (_, delete_s) = timed(|| Ok::<_, xc_ann::BuildError>(graph.delete(some)))?;
        let (_, insert_s) = timed(|| graph.insert(rows, some, &Silent))?;
        let (found, distances) = asked.at(&graph, width)?;
        println!(
            "{turn}: deleted in {delete_s:.2} s, inserted in {insert_s:.2} s, recall {found:.4}, {distances:.0} comparisons"
        );
    }
    Ok(())
}

fn drift(
    metric: Metric,
    before: DenseRows<'_>,
    after: DenseRows<'_>,
    queries: DenseRows<'_>,
    like: Option<DenseRows<'_>>,
) -> Outcome {
    let some = queries.values().len().min(2000 * queries.width());
    let queries = DenseRows::new(&queries.values()[..some], queries.width());
    let length = |row: &[f32]| row.iter().map(|v| f64::from(v * v)).sum::<f64>().sqrt();
    let moved = |(a, b): (&[f32], &[f32])| {
        length(&a.iter().zip(b).map(|(a, b)| b - a).collect::<Vec<_>>()) / length(a).max(1e-30)
    };
    let mut shares: Vec<f64> = before.iter().zip(after.iter()).map(moved).collect();
    shares.sort_by(f64::total_cmp);
    let asked = Asked::new(after, queries, metric);
    let params = BuildParams::new(metric);
    let old = Graph::build_for(before, like, &params, &Silent)?;
    let params = BuildParams { alpha: old.params().alpha, ..params };
    let build = |passes| Graph::build_for(after, like, &BuildParams { passes, ..params }, &Silent);
    let (mut fresh, build_s) = timed(|| build(2))?;
    let (_, one_pass_s) = timed(|| build(1))?;
    // Beyond, all codes are compared, whatever the edges are.
    let width = fresh.fit(after, queries, K, 0.95)?.width.min(0.3);
    let (found, distances) = asked.at(&fresh, width)?;
    println!(
        "drift {:.3}; fresh build of two passes {build_s:.2} s, of one {one_pass_s:.2} s;",
        shares[shares.len() / 2]
    );
    println!("recall {found:.4} at {distances:.0} comparisons");
    let policies = [Some(Refresh::Codes), Some(Refresh::SHORT), Some(Refresh::TwoHops), Some(Refresh::Both), None];
    for policy in policies {
        let mut graph = old.clone();
        let (done, seconds) = timed(|| graph.refresh(after, like, policy, &Silent))?;
        let found = asked.with(&graph, distances)?;
        let what = policy.map_or(format!("chosen: {:?}", done.policy), |policy| format!("{policy:?}"));
        let (times, of_one_pass) = (build_s / seconds, one_pass_s / seconds);
        println!(
            "{what}: {seconds:.2} s ({times:.1}x, {of_one_pass:.1}x), recall {found:.4}; of the sample {:.4}, {:.4} before",
            done.after, done.before
        );
    }
    Ok(())
}

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let usage = "usage: upkeep churn METRIC ROWS QUERIES | drift METRIC BEFORE AFTER QUERIES [FIT]";
    let read = |at: usize| -> Result<DenseMatrix, Box<dyn Error + Send + Sync>> {
        Ok(xc_data::read_npy(Path::new(arguments.get(at).ok_or(usage)?), &Default::default())?)
    };
    let name = arguments.get(1).ok_or(usage)?;
    let metric = Metric::ALL.into_iter().find(|m| m.name() == name).ok_or("expected l2, cosine or ip")?;
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
    match arguments[0].as_str() {
        "churn" => {
            let (rows, queries) = (read(2)?, read(3)?);
            pool.install(|| churn(metric, rows.view(), queries.view()))
        }
        "drift" => {
            let (before, after, queries) = (read(2)?, read(3)?, read(4)?);
            let like = arguments.get(5).map(|_| read(5)).transpose()?;
            let like = like.as_ref().map(DenseMatrix::view);
            pool.install(|| drift(metric, before.view(), after.view(), queries.view(), like))
        }
        _ => Err(usage.into()),
    }
}
