//! `xc index build`.

use super::{Watch, build_error, rows, vectors, vectors_of_width};
use crate::context::{Context, format_bytes};
use crate::error::CliError;
use crate::measure::Meter;
use crate::model::write_error;
use crate::named::named;
use crate::output;
use serde_json::json;
use std::path::PathBuf;
use xc_ann::{BuildError, BuildParams, Graph, Index, Metric};
use xc_sparse::buffer::Pages;
use xc_sparse::store::ContainerWriter;

/// Build an index over vectors
///
/// The search width is fitted so that --target-recall of the --top-k best are found: with
/// --fit-queries if they are given, else with vectors made of neighbours; queries of another
/// kind than the vectors may be harder. The recall that it reaches is said, and
/// --min-recall refuses an index that stays below.
///
/// Examples:
///   xc index build --vectors rows.npy --metric cosine --output my.index
///   xc index build --vectors rows.npy --metric ip --fit-queries sample.npy --output my.index
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub(super) struct Args {
    /// The vectors
    #[arg(long, value_name = "FILE")]
    vectors: PathBuf,
    /// What is compared: Euclidean distance, cosine or inner product
    #[arg(long, value_parser = named::<Metric, 3>(["l2", "cosine", "ip"]))]
    metric: Metric,
    /// Folder of the index; an existing index is replaced when the new one is complete
    #[arg(long, value_name = "DIR")]
    output: PathBuf,
    /// Edges of a vector, at most
    #[arg(long, value_name = "R", default_value_t = 32)]
    degree: usize,
    /// Vectors that the search for edges keeps: more find better edges and take longer
    #[arg(long, value_name = "N", default_value_t = 100)]
    keep: usize,
    /// Passes over all vectors [default: 2; for inner products 1 where the factor is below 1]
    #[arg(long, value_name = "N")]
    passes: Option<usize>,
    /// Factor of pruning: more edges above 1 for distances, below it for inner products [default: 1; for inner
    /// products 0.79, 0.9 or 1, as small graphs over some vectors are searched best]
    #[arg(long, value_name = "X")]
    factor: Option<f32>,
    /// Queries to fit the search width with
    #[arg(long, value_name = "FILE")]
    fit_queries: Option<PathBuf>,
    /// Answers of a query that the width is fitted for
    #[arg(long, value_name = "K", default_value_t = 10)]
    top_k: usize,
    /// Share of the best that are to be found
    #[arg(long, value_name = "R", default_value_t = 0.95)]
    target_recall: f64,
    /// Refuse an index that finds less of the best than this
    #[arg(long, value_name = "R")]
    min_recall: Option<f64>,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<(), CliError> {
    let meter = Meter::start();
    for (name, value) in [("--target-recall", Some(args.target_recall)), ("--min-recall", args.min_recall)] {
        if let Some(value) = value.filter(|v| !(0.0..=1.0).contains(v)) {
            return Err(CliError::usage(format_args!("{name} {value}: a share from 0 to 1 is expected")));
        }
    }
    if args.top_k == 0 {
        return Err(CliError::usage("--top-k 0: at least 1 is expected"));
    }
    let params = BuildParams {
        degree: args.degree,
        keep: args.keep,
        passes: args.passes,
        factor: args.factor,
        seed: context.seed,
        ..BuildParams::new(args.metric)
    };
    ContainerWriter::check(&args.output).map_err(|e| write_error(&e))?;
    let given = vectors(&args.vectors)?;
    let (n, width) = (given.rows(), given.columns());
    let needed = Graph::bytes(n, width, &params) + 4 * given.values().len();
    context.foresee_memory("the index", needed as u64 + needed as u64 / 10)?;
    let mut values = Pages::zeros(given.values().len());
    values.copy_from_slice(given.values());
    let sample = args.fit_queries.as_deref().map(|path| vectors_of_width(path, width)).transpose()?;
    if let (Some(sample), Some(path)) = (&sample, &args.fit_queries)
        && sample.rows() == 0
    {
        return Err(CliError::usage(format_args!("{}: no queries", path.display())));
    }
    let watch = Watch::new(context);
    let asked = sample.as_ref().map(rows);
    let built = context.on_threads(|| Index::build_for(values, width, asked, &params, &watch));
    let from = args.fit_queries.as_ref().unwrap_or(&args.vectors);
    let mut index = built.map_err(|e| match e {
        BuildError::Query(e) => CliError::input(from, &e),
        e => build_error(&args.vectors, &e),
    })?;
    drop(watch);
    let build_s = meter.usage().wall_s;

    if index.graph().fitted().is_some_and(|f| (f.k, f.target) != (args.top_k, args.target_recall)) {
        let own = index.graph().sample(index.rows(), SAMPLE);
        let with = asked.unwrap_or(own.view());
        let fitted = context.on_threads(|| index.fit(with, args.top_k, args.target_recall));
        fitted.map_err(|e| CliError::input(from, &e))?;
    }
    let fitted = index.graph().fitted();
    if let (Some(least), Some(fitted)) = (args.min_recall, fitted)
        && fitted.recall < least
    {
        return Err(CliError::usage(format_args!(
            "--min-recall {least}: {} of the best are found at search width {}; a larger --keep or --target-recall finds more",
            fitted.recall, fitted.width
        )));
    }
    index.save(&args.output).map_err(|e| write_error(&e))?;
    let (stats, usage) = (index.graph().stats(), meter.usage());
    if context.json {
        let report = json!({
            "vectors": n, "columns": width, "metric": args.metric, "graph": stats, "fitted": fitted,
            "build_s": build_s, "cpu_s": usage.cpu_s, "peak_rss_bytes": usage.peak_rss_bytes,
            "bytes_per_vector": index.n_bytes() as f64 / n.max(1) as f64,
        });
        return output::print(&report.to_string());
    }
    context.note(format_args!(
        "index: {n} vectors of {width} values ({}), {:.1} edges each, linked in {build_s:.1} s; {}, {}",
        args.metric,
        stats.mean_degree,
        format_bytes(index.n_bytes() as u64),
        fitted.map_or("nothing to fit".to_owned(), |f| format!(
            "search width {:.3} finds {:.1} % of the {} best",
            f.width,
            100.0 * f.recall,
            f.k
        )),
    ));
    if stats.n_vertices < stats.n_rows {
        context.note(format_args!("index: {} vectors equal others", stats.n_rows - stats.n_vertices));
    }
    if stats.n_rows < n {
        context.note(format_args!("index: {} vectors of zeros have no direction and are no answers", n - stats.n_rows));
    }
    context.note(format_args!("index: saved {}", args.output.display()));
    Ok(())
}

/// Vectors of a sample that the width is fitted with.
const SAMPLE: usize = 256;
