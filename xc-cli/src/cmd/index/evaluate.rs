//! `xc index evaluate`.

use super::{Asked, Opened, ScopeArgs, log, percentiles, rows, say_without_direction, vectors_of_width, zeros};
use crate::context::Context;
use crate::device::{DeviceArgs, Exact};
use crate::error::CliError;
use crate::output;
use serde::Serialize;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Instant;
use xc_ann::{Filter, Fitted, Index, QueryError, Scope, SearchParams, SearchScratch};
use xc_data::Vectors;
use xc_dense::{DenseMatrix, DenseRows};
use xc_options::plot::{Axis, Chart, Picture, Scale, Series};
use xc_sparse::rank::RankedBatch;

/// Measure an index: recall against the exact answers, and queries per second
///
/// Recall is the share of the exact answers that are found. Without --search-width or --cells,
/// several widths and numbers of cells are tried. With --target-recall, only the smallest that
/// reaches the target: it is found on every second query and measured on the rest, or found on
/// --fit-queries and measured on all queries. A line for each shows the recall, the queries per
/// second of all threads together, the latency of single queries in microseconds (50th and 99th
/// percentile), and the work per query: distances, hops. The time of the build is that of
/// INDEX.log.
///
/// Examples:
///   xc index evaluate --index my.index --queries queries.npy --threads 1
///   xc index evaluate --index my.index --queries queries.npy --target-recall 0.95 --json
///   xc index evaluate --index my.index --queries queries.npy --target-recall 0.9,0.95,0.99
///     --fit-queries sample.npy
///   xc index evaluate --index my.index --queries queries.npy --plot recall.svg
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    #[command(flatten)]
    scope: ScopeArgs,
    /// Measure at the smallest width, or number of cells, that finds this share of the best; or at those of several
    /// shares
    #[arg(long, value_name = "R,...", value_delimiter = ',', conflicts_with_all = ["search-width", "cells"])]
    target_recall: Vec<f64>,
    /// Queries to fit to [default: every second one of --queries]
    #[arg(long, value_name = "FILE", requires = "target_recall")]
    fit_queries: Option<PathBuf>,
    /// Runs of all queries at each width; the fastest counts
    #[arg(long, value_name = "N", default_value_t = 3)]
    runs: usize,
    /// File for a plot of recall and queries per second, SVG
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    #[command(flatten)]
    device: DeviceArgs,
    #[command(flatten)]
    asked: Asked,
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
    /// Where the width or the cells were fitted, and what they find of the queries that they were fitted to.
    #[serde(skip_serializing_if = "Option::is_none")]
    fitted: Option<Fitted>,
}

/// How far is searched, and how that was found.
#[derive(Clone, Copy, Debug)]
struct Tried {
    scope: Scope,
    fitted: Option<Fitted>,
}

/// What widths are fitted to, and what is measured.
enum Queries<'a> {
    /// Nothing is fitted.
    All,
    /// Those of another file are fitted to.
    Fit(&'a Path, Vectors),
    /// Every second one of a file is fitted to, and the others, from the first on, are measured.
    Halves { path: &'a Path, fit: DenseMatrix, measured: DenseMatrix },
}

impl<'a> Queries<'a> {
    fn new(args: &'a Args, index: &Index, asked: &Vectors) -> Result<Self, CliError> {
        let path = &*args.asked.queries;
        check(index, path, rows(asked))?;
        if let Some(path) = &args.fit_queries {
            let fit = vectors_of_width(path, index.graph().dim())?;
            check(index, path, rows(&fit))?;
            return Ok(Self::Fit(path, fit));
        }
        if args.target_recall.is_empty() {
            return Ok(Self::All);
        }
        if asked.rows() == 1 {
            return Err(CliError::usage(format_args!(
                "{}: one query; --target-recall fits to every second one, and expects two or --fit-queries FILE",
                path.display()
            )));
        }
        let half = |first| {
            let values: Vec<f32> = rows(asked).iter().skip(first).step_by(2).flatten().copied().collect();
            DenseMatrix::new(values.len() / asked.columns(), asked.columns(), values)
        };
        Ok(Self::Halves { path, fit: half(1), measured: half(0) })
    }

    fn measured<'q>(&'q self, asked: &'q Vectors) -> DenseRows<'q> {
        match self {
            Self::All | Self::Fit(..) => rows(asked),
            Self::Halves { measured, .. } => measured.view(),
        }
    }

    /// The least that finds each of the shares.
    fn fit(&self, args: &Args, index: &mut Index, context: &Context) -> Result<Vec<Tried>, CliError> {
        let (path, queries) = match self {
            Self::All => return Ok(Vec::new()),
            Self::Fit(path, fit) => (path, rows(fit)),
            Self::Halves { path, fit, .. } => (path, fit.view()),
        };
        let k = args.asked.top_k;
        let truth = context.on_threads(|| index.exact(queries, k, None));
        let mut tried = Vec::new();
        for &target in &args.target_recall {
            context.check_interrupt()?;
            let fitted = context.on_threads(|| index.fit_to(queries, &truth, k, target));
            let fitted = fitted.map_err(|e| CliError::input(path, &e))?;
            tried.push(Tried { scope: fitted.scope(), fitted: Some(fitted) });
        }
        Ok(tried)
    }
}

/// Refuses a file without queries, and a query without an answer by its number in the file: searches for nothing.
fn check(index: &Index, path: &Path, queries: DenseRows<'_>) -> Result<(), CliError> {
    if queries.is_empty() {
        return Err(CliError::usage(format_args!("{}: no queries", path.display())));
    }
    let answer = index.search_batch(queries, SearchParams::top(0).with_width(0.0), None);
    answer.map(|_| ()).map_err(|e| CliError::input(path, &e))
}

pub(super) fn run(args: &Args, context: &Context) -> Result<(), CliError> {
    let k = args.asked.top_k;
    if k == 0 || args.runs == 0 {
        return Err(CliError::usage("--top-k and --runs: at least 1 is expected"));
    }
    if let Some(target) = args.target_recall.iter().find(|target| !(0.0..=1.0).contains(*target)) {
        return Err(CliError::usage(format_args!("--target-recall {target}: a share from 0 to 1 is expected")));
    }
    output::check(Path::new("-"))?;
    let is_fitted = !args.target_recall.is_empty();
    if is_fitted && args.asked.filter.is_some() {
        return Err(CliError::usage("--target-recall with --filter: a width is fitted for all rows"));
    }
    args.plot.as_deref().map_or(Ok(()), output::check)?;
    let (mut index, asked, bits) = match args.asked.open(context)? {
        Opened::Vectors(index, asked, bits) => (index, asked, bits),
        Opened::Sparse(opened) => {
            let given = args.scope.given();
            let given =
                given.as_deref().or(is_fitted.then_some("--target-recall")).or(args.plot.as_ref().map(|_| "--plot"));
            if let Some(option) = given {
                return Err(CliError::usage(format_args!("{option}: an index of sparse rows answers exactly")));
            }
            args.device.stay("the search of an index of sparse rows stays on the CPU", context)?;
            return opened.evaluate(&args.asked, args.runs, context);
        }
    };
    let filter = bits.as_deref().map(Filter::Bits);
    let queries = Queries::new(args, &index, &asked)?;
    let measured = queries.measured(&asked);
    say_without_direction(index.metric(), zeros(measured), context);
    let Exact { found: truth, seconds } = args.device.exact(&index, measured, k, filter.as_ref(), context)?;
    let exact_qps = measured.len() as f64 / seconds;
    context.check_interrupt()?;

    let given = args.scope.scope(&index)?;
    let mut tried: Vec<Tried> = given.map(|scope| Tried { scope, fitted: None }).into_iter().collect();
    tried.extend(queries.fit(args, &mut index, context)?);
    let wanted = tried.clone();
    if args.plot.is_some() || wanted.is_empty() {
        let most = if filter.is_none() { index.graph().n_cells() } else { 0 };
        let in_cells = (0..).map(|power| 1 << power).take_while(|&cells| cells <= most / 2);
        let all = WIDTHS.into_iter().map(Scope::width);
        tried.extend(all.chain(in_cells.map(Scope::cells)).map(|scope| Tried { scope, fitted: None }));
        tried.sort_by(|Tried { scope: a, .. }, Tried { scope: b, .. }| {
            a.n_cells().cmp(&b.n_cells()).then(a.slack().total_cmp(&b.slack()))
        });
        // What was wanted comes before the same of the list.
        tried.dedup_by(|after, before| after.scope == before.scope && after.fitted.is_none());
    }
    let mut all = Vec::with_capacity(tried.len());
    for tried in tried {
        all.push(measure(&index, measured, filter.as_ref(), &truth, tried, args, context)?);
        context.check_interrupt()?;
    }
    if let Some(path) = &args.plot {
        plot(&all, k, path)?;
    }
    let bytes_per_vector = index.n_bytes() as f64 / index.rows().len().max(1) as f64;
    let build_s = log::build_s(&args.asked.index);
    if context.json {
        // Of several that are wanted none is the one.
        let wanted = <[Tried; 1]>::try_from(wanted.clone()).ok().map(|[wanted]| wanted.scope);
        let at = all.iter().find(|m| wanted.is_some_and(|p| (m.search_width, m.cells) == (p.slack(), p.n_cells())));
        let mut report = json!({
            "queries": measured.len(), "k": k, "threads": context.threads, "exact_qps": exact_qps, "build_s": build_s,
            "bytes_per_vector": bytes_per_vector, "measured": all,
        });
        if let (Some(at), Some(report)) = (at, report.as_object_mut())
            && let Ok(serde_json::Value::Object(at)) = serde_json::to_value(at)
        {
            report.extend(at);
        }
        return output::print(&report.to_string());
    }
    let reach = |width: f32, cells: usize| match cells {
        0 => format!("{width:.4}"),
        cells => format!("{cells} cells"),
    };
    let mut text = format!(
        "{:>12} {:>8} {:>12} {:>8} {:>8} {:>10} {:>8}\n",
        "search width", "recall", "queries/s", "p50 us", "p99 us", "distances", "hops"
    );
    // The others are for the plot.
    let is_shown = |m: &&Measured| {
        let is_it = |wanted: &Tried| (wanted.scope.slack(), wanted.scope.n_cells()) == (m.search_width, m.cells);
        wanted.is_empty() || wanted.iter().any(is_it)
    };
    for m in all.iter().filter(is_shown) {
        let name = reach(m.search_width, m.cells);
        text += &format!(
            "{name:>12} {:>8.4} {:>12.0} {:>8.1} {:>8.1} {:>10.0} {:>8.1}\n",
            m.recall, m.qps, m.p50_us, m.p99_us, m.distances, m.hops
        );
    }
    text += &format!(
        "{:>12} {:>8.4} {:>12.0} {:>8} {:>8} {:>10} {:>8}\n{} queries, {} best, {} threads; {bytes_per_vector:.0} bytes a vector{}",
        "exact",
        1.0,
        exact_qps,
        "",
        "",
        index.graph().len(),
        "",
        measured.len(),
        k,
        context.threads,
        build_s.map(|build_s| format!(", built in {build_s:.1} s")).unwrap_or_default()
    );
    for fitted in all.iter().filter_map(|m| m.fitted) {
        let Fitted { target, recall, n_queries, .. } = fitted;
        text += &format!(
            "\n{} fitted to {n_queries} other queries for {target}: {recall:.4} of theirs",
            reach(fitted.width, fitted.cells)
        );
    }
    output::print(&text)
}

fn measure(
    index: &Index,
    asked: DenseRows<'_>,
    filter: Option<&Filter<'_>>,
    truth: &RankedBatch,
    tried: Tried,
    args: &Args,
    context: &Context,
) -> Result<Measured, CliError> {
    let Tried { scope, fitted } = tried;
    let params = SearchParams::top(args.asked.top_k).with_scope(scope);
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
    let (recall, effort) =
        last.map_or((0.0, Default::default()), |(found, effort)| (index.recall(asked, &found, truth), effort));
    let per_query = |count: u64| count as f64 / n;
    let (distances, hops) = (per_query(effort.distances), per_query(effort.hops));
    let [p50_us, p99_us] = alone(index, asked, filter, params).map_err(|e| CliError::input(&args.asked.queries, &e))?;
    let (search_width, cells) = (scope.slack(), scope.n_cells());
    Ok(Measured { search_width, cells, recall, qps: n / best, p50_us, p99_us, distances, hops, fitted })
}

/// Microseconds that 50 and 99 of 100 queries take at most, one after the other.
fn alone(
    index: &Index,
    asked: DenseRows<'_>,
    filter: Option<&Filter<'_>>,
    params: SearchParams,
) -> Result<[f64; 2], QueryError> {
    let (mut scratch, mut found) = (SearchScratch::default(), Vec::new());
    percentiles(asked.len(), |query| {
        index.search(asked.row(query), params, filter, &mut scratch, &mut found).map(|_| ())
    })
}

fn plot(all: &[Measured], k: usize, path: &Path) -> Result<(), CliError> {
    let points = |in_cells: bool| -> Vec<(f64, f64)> {
        all.iter().filter(|m| (m.cells > 0) == in_cells).map(|m| (m.recall, m.qps)).collect()
    };
    let (graph, cells) = (points(false), points(true));
    let recall = format!("recall at {k}");
    let named = [("graph", &graph), ("cells", &cells)];
    let series = named.into_iter().filter(|(_, points)| !points.is_empty());
    let series = series.map(|(name, points)| Series { name, points }).collect();
    let picture = Picture {
        title: "Recall and queries per second",
        x: Axis { name: &recall, scale: Scale::Linear },
        charts: vec![Chart { y: Axis { name: "queries per second", scale: Scale::Log }, series }],
    };
    picture.write(path).map_err(|e| CliError::unwritable(&e))
}
