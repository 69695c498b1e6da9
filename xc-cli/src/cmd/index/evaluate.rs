//! `xc index evaluate`.

use super::{Asked, Opened, ScopeArgs, percentiles, rows};
use crate::context::Context;
use crate::error::CliError;
use crate::output;
use crate::plot::{Axis, Chart, Picture, Scale, Series};
use serde::Serialize;
use serde_json::json;
use std::path::PathBuf;
use std::time::Instant;
use xc_ann::{Filter, Index, QueryError, Scope, Scratch, SearchParams, recall};
use xc_sparse::DenseRows;
use xc_sparse::rank::RankedBatch;

/// Measure an index: recall against the exact answers, and queries per second
///
/// Recall is the share of the exact answers that are found. Without --search-width or --cells,
/// several of both are tried and, with --target-recall, the least that reaches it on these
/// queries. A line for each shows the recall, the queries per second of all threads together, the
/// latency of single queries in microseconds (50th and 99th percentile), and the work per query:
/// distances, hops.
///
/// Examples:
///   xc index evaluate --index my.index --queries queries.npy --threads 1
///   xc index evaluate --index my.index --queries queries.npy --target-recall 0.95 --json
///   xc index evaluate --index my.index --queries queries.npy --plot recall.svg
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    #[command(flatten)]
    asked: Asked,
    #[command(flatten)]
    scope: ScopeArgs,
    /// Also measure at the least width, or number of cells, that finds this share of the best
    #[arg(long, value_name = "R", conflicts_with_all = ["search_width", "cells"])]
    target_recall: Option<f64>,
    /// Runs of all queries at each width; the fastest counts
    #[arg(long, value_name = "N", default_value_t = 3)]
    runs: usize,
    /// File for a plot of recall and queries per second, SVG
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
}

/// Widths that are tried.
const WIDTHS: [f32; 14] = [-0.2, -0.1, 0.0, 0.02, 0.04, 0.06, 0.08, 0.1, 0.13, 0.17, 0.22, 0.3, 0.4, 0.6];

/// What a search at a width does; means of a query.
#[derive(Clone, Copy, Debug, Serialize)]
struct Measured {
    search_width: f32,
    cells: usize,
    recall: f64,
    qps: f64,
    p50_us: f64,
    p99_us: f64,
    distances: f64,
    hops: f64,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<(), CliError> {
    let k = args.asked.top_k;
    if k == 0 || args.runs == 0 {
        return Err(CliError::usage("--top-k and --runs: at least 1 is expected"));
    }
    if let Some(target) = args.target_recall.filter(|r| !(0.0..=1.0).contains(r)) {
        return Err(CliError::usage(format_args!("--target-recall {target}: a share from 0 to 1 is expected")));
    }
    if args.target_recall.is_some() && args.asked.filter.is_some() {
        return Err(CliError::usage("--target-recall with --filter: a width is fitted for all rows"));
    }
    let (mut index, asked, bits) = match args.asked.open()? {
        Opened::Vectors(index, asked, bits) => (index, asked, bits),
        Opened::Sparse(opened) => {
            let given = args.scope.given();
            let given =
                given.or(args.target_recall.map(|_| "--target-recall")).or(args.plot.as_ref().map(|_| "--plot"));
            if let Some(option) = given {
                return Err(CliError::usage(format_args!("{option}: an index of sparse rows answers exactly")));
            }
            return opened.evaluate(&args.asked, args.runs, context);
        }
    };
    let filter = bits.as_deref().map(Filter::Bits);
    if asked.rows() == 0 {
        return Err(CliError::usage(format_args!("{}: no queries", args.asked.queries.display())));
    }
    let begin = Instant::now();
    let truth = context.on_threads(|| index.exact(rows(&asked), k, filter.as_ref()));
    let exact_qps = asked.rows() as f64 / begin.elapsed().as_secs_f64();
    context.check_interrupt()?;

    let mut wanted = args.scope.scope(&index)?;
    if let Some(target) = args.target_recall {
        let fitted = context.on_threads(|| index.fit(rows(&asked), k, target));
        wanted = Some(fitted.map_err(|e| CliError::input(&args.asked.queries, &e))?.scope());
    }
    let mut tried: Vec<Scope> = wanted.into_iter().collect();
    if args.plot.is_some() || wanted.is_none() {
        let most = if filter.is_none() { index.graph().n_cells() } else { 0 };
        let in_cells = (0..).map(|power| 1 << power).take_while(|&cells| cells <= most / 2);
        let all = WIDTHS.into_iter().map(Scope::width);
        tried.extend(all.chain(in_cells.map(Scope::cells)));
        tried.sort_by(|a, b| a.cells.cmp(&b.cells).then(a.width.total_cmp(&b.width)));
        tried.dedup();
    }
    let mut all = Vec::with_capacity(tried.len());
    for scope in tried {
        all.push(measure(&index, rows(&asked), filter.as_ref(), &truth, scope, args, context)?);
        context.check_interrupt()?;
    }
    if let Some(path) = &args.plot {
        plot(&all, k, path)?;
    }
    let bytes_per_vector = index.n_bytes() as f64 / index.rows().len().max(1) as f64;
    if context.json {
        let at = all.iter().find(|m| wanted.is_some_and(|p| (m.search_width, m.cells) == (p.width, p.cells)));
        let mut report = json!({
            "queries": asked.rows(), "k": k, "threads": context.threads, "exact_qps": exact_qps,
            "bytes_per_vector": bytes_per_vector, "measured": all,
        });
        if let (Some(at), Some(report)) = (at, report.as_object_mut())
            && let Ok(serde_json::Value::Object(at)) = serde_json::to_value(at)
        {
            report.extend(at);
        }
        return output::print(&report.to_string());
    }
    let mut text = format!(
        "{:>12} {:>8} {:>12} {:>8} {:>8} {:>10} {:>8}\n",
        "search width", "recall", "queries/s", "p50 us", "p99 us", "distances", "hops"
    );
    for m in &all {
        let name = if m.cells == 0 { format!("{:.4}", m.search_width) } else { format!("{} cells", m.cells) };
        text += &format!(
            "{name:>12} {:>8.4} {:>12.0} {:>8.1} {:>8.1} {:>10.0} {:>8.1}\n",
            m.recall, m.qps, m.p50_us, m.p99_us, m.distances, m.hops
        );
    }
    text += &format!(
        "{:>12} {:>8.4} {:>12.0} {:>8} {:>8} {:>10} {:>8}\n{} queries, {} best, {} threads; {bytes_per_vector:.0} bytes a vector",
        "exact",
        1.0,
        exact_qps,
        "",
        "",
        index.graph().len(),
        "",
        asked.rows(),
        k,
        context.threads
    );
    output::print(&text)
}

fn measure(
    index: &Index,
    asked: DenseRows<'_>,
    filter: Option<&Filter<'_>>,
    truth: &RankedBatch,
    scope: Scope,
    args: &Args,
    context: &Context,
) -> Result<Measured, CliError> {
    let params = SearchParams { k: args.asked.top_k, scope };
    let (mut best, mut last) = (f64::INFINITY, None);
    for _ in 0..args.runs {
        let begin = Instant::now();
        let found = context.on_threads(|| index.search_batch(asked, params, filter));
        let found = found.map_err(|e| CliError::input(&args.asked.queries, &e))?;
        best = best.min(begin.elapsed().as_secs_f64());
        last = Some(found);
        context.check_interrupt()?;
    }
    let n = asked.len() as f64;
    let (recall, effort) = last.map_or((0.0, Default::default()), |(found, effort)| (recall(&found, truth), effort));
    let per_query = |count: u64| count as f64 / n;
    let (distances, hops) = (per_query(effort.distances), per_query(effort.hops));
    let [p50_us, p99_us] = alone(index, asked, filter, params).map_err(|e| CliError::input(&args.asked.queries, &e))?;
    let Scope { width: search_width, cells } = scope;
    Ok(Measured { search_width, cells, recall, qps: n / best, p50_us, p99_us, distances, hops })
}

/// Microseconds that 50 and 99 of 100 queries take at most, one after the other.
fn alone(
    index: &Index,
    asked: DenseRows<'_>,
    filter: Option<&Filter<'_>>,
    params: SearchParams,
) -> Result<[f64; 2], QueryError> {
    let (mut scratch, mut found) = (Scratch::default(), Vec::new());
    percentiles(asked.len(), |query| {
        index.search(asked.row(query), params, filter, &mut scratch, &mut found).map(|_| ())
    })
}

fn plot(all: &[Measured], k: usize, path: &std::path::Path) -> Result<(), CliError> {
    let points = |in_cells: bool| -> Vec<(f64, f64)> {
        all.iter().filter(|m| (m.cells > 0) == in_cells).map(|m| (m.recall, m.qps)).collect()
    };
    let (graph, cells) = (points(false), points(true));
    let recall = format!("recall at {k}");
    let named = [("graph", &graph), ("cells", &cells)];
    let series = named.into_iter().filter(|(_, points)| !points.is_empty());
    let series = series.map(|(name, points)| Series { name, points }).collect();
    let picture = Picture {
        title: "Recall and queries a second",
        x: Axis { name: &recall, scale: Scale::Linear },
        charts: vec![Chart { y: Axis { name: "queries a second", scale: Scale::Log }, series }],
    };
    picture.write(path).map_err(|e| CliError::write(&path.display().to_string(), &e.source))
}
