//! `xc index build`.

use super::{
    Instances, Watch, build_error, label_error, log, rows, say_lost, say_without_direction, sparse, vectors,
    vectors_of_width, zeros,
};
use crate::bytes::format_bytes;
use crate::context::Context;
use crate::error::CliError;
use crate::measure::Meter;
use crate::model::OpenArgs;
use crate::named::named;
use crate::output;
use crate::settings::{Chosen, OfTable};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Instant;
use xc_ann::{BuildError, BuildParams, Fitted, Graph, GraphStats, Index, Metric};
use xc_buffer::HugePageVec;
use xc_model::classifier::LostPrecision;
use xc_model::message::counted;
use xc_model::{IndexFit, OwnedRows, label_index_params};
use xc_options::settings::{Table, index};
use xc_store::{ContainerWriter, PART_FOLDER};

/// Build an index over vectors, or over the labels of a model
///
/// The search width is fitted so that --target-recall of the --top-k best are found: with
/// --fit-queries if given, else with vectors made from neighbours; queries that are
/// distributed differently from the vectors may be harder. The recall reached is printed,
/// and --min-recall refuses an index below it. The time that the build took is kept next to the
/// index of --vectors, in INDEX.log, for xc index evaluate.
///
/// With --model the vectors are those of the labels: weights and biases of an output layer
/// that connects each label with all units. The index is stored in the model's folder, and
/// xc predict scores the labels that it finds. Fit it to instances (--fit-queries), preferably
/// ones that the model was not trained on: label vectors are distributed differently from the
/// vectors that the network makes of instances. If the instances have labels, the search goes
/// only as far as is needed to keep P@1, P@3 and P@5 within --max-loss of scoring all labels.
/// A sparse output layer gets lists of labels by unit, which answer a single query over all
/// labels sooner.
///
/// Examples:
///   xc index build --vectors rows.npy --metric cosine --output my.index
///   xc index build --vectors rows.npy --metric ip --fit-queries sample.npy --output my.index
///   xc index build --vectors rows.txt --metric cosine --output my.index
///   xc index build --model my.model --fit-queries dev.txt
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment, group = clap::ArgGroup::new("of").required(true).args(["vectors", "model"]))]
#[command(mut_arg("id-field", |arg| arg.hide(true)))]
pub(super) struct Args {
    /// The vectors, or sparse rows
    #[arg(long, value_name = "FILE", requires_all = ["metric", "output"])]
    vectors: Option<PathBuf>,
    /// The model whose labels are indexed
    #[arg(long, value_name = "DIR", conflicts_with = "metric")]
    model: Option<PathBuf>,
    /// Metric: Euclidean distance, cosine or inner product (a model: inner product)
    #[arg(long, value_parser = named::<Metric, 3>(["l2", "cosine", "ip"]))]
    metric: Option<Metric>,
    /// Folder of the index; an existing index is replaced when the new one is complete [default: with --model, in the
    /// model's folder]
    #[arg(long, value_name = "DIR")]
    output: Option<PathBuf>,
    #[command(flatten)]
    settings: Chosen<OfIndex>,
    #[command(flatten)]
    instances: Instances,
}

/// How an index is built.
#[derive(Clone, Copy, Debug)]
struct OfIndex;

impl OfTable for OfIndex {
    const TABLE: Table = index::TABLE;
}

pub(super) fn run(args: &Args, context: &Context) -> Result<(), CliError> {
    let meter = Meter::start();
    args.instances.check()?;
    let usual = args.metric.map_or_else(label_index_params, BuildParams::new);
    let params = BuildParams { seed: context.seed, ..index::params(usual, &args.settings.choices)? };
    if let (Some(path), Some(output)) = (&args.vectors, &args.output)
        && sparse::holds_rows(path, &args.instances.format.options())?
    {
        args.refuse_settings_of_a_graph(context)?;
        args.instances.format.refuse_idle(&args.instances.format.settings(), [&**path])?;
        let of_labels = ["text-fields", "label-field", "label-separator", "id-field", "svmlight-label-base"];
        context.options.refuse(&of_labels, "rows alone are indexed, without their labels")?;
        return sparse::build(path, output, params.metric, &args.instances.format, context);
    }
    args.instances.refuse_idle(args.model.is_some(), context)?;
    if args.model.is_some() && args.has_target() {
        let why = "true labels are not read: --target-recall is fitted to the best labels";
        context.options.refuse(&["label-field", "label-fields", "label-separator", "svmlight-label-base"], why)?;
    }
    let built = match (&args.model, &args.vectors, &args.output) {
        (Some(model), ..) => match of_labels(model, &params, args, context)? {
            Some(built) => built,
            None => return Ok(()),
        },
        (None, Some(path), Some(output)) => of_vectors(path, output, &params, args, context)?,
        _ => return Err(CliError::usage("--vectors FILE with --metric and --output, or --model DIR, is expected")),
    };
    let (stats, usage) = (built.stats, meter.usage());
    let Built { n, width, fitted, build_s, n_bytes, what, lost, .. } = built;
    let metric = params.metric;
    if context.json {
        let report = json!({
            what: n, "columns": width, "metric": metric, "graph": stats, "cells": built.n_cells, "fitted": fitted, "scan": built.is_scan,
            "lost": lost, "build_s": build_s, "cpu_s": usage.cpu_s, "peak_rss_bytes": usage.peak_rss_bytes,
            "bytes_per_vector": n_bytes as f64 / n.max(1) as f64,
        });
        return output::print(&report.to_string());
    }
    context.note(format_args!(
        "index: {n} {what} of {width} values ({metric}), {:.1} edges each, built in {build_s:.1} s; {}, {}",
        stats.mean_degree,
        format_bytes(n_bytes as u64),
        fitted.map_or("nothing to fit".to_owned(), |f| format!(
            "{} {} {:.1} % of the {} best",
            reach(f, built.n_cells, built.is_scan),
            if f.cells > 1 { "find" } else { "finds" },
            100.0 * f.recall,
            f.k
        )),
    ));
    if built.is_scan {
        context.note(format_args!(
            "index: a search is a scan, since it compares {} {what}: an index does not pay here",
            match fitted {
                Some(Fitted { cells: 1.., .. }) => "at least half of all",
                _ => "all",
            }
        ));
    }
    say_lost(lost, context);
    if stats.n_vertices < stats.n_rows {
        context.note(format_args!("index: {}", counted(stats.n_rows - stats.n_vertices, "duplicate")));
    }
    if stats.n_rows < n {
        let zeros = counted(n - stats.n_rows, "zero vector");
        context.note(format_args!("index: {zeros} without a direction: never an answer"));
    }
    context.note(format_args!("index: saved {}", built.output.display()));
    Ok(())
}

/// How far an index is searched.
fn reach(fitted: Fitted, n_cells: usize, is_scan: bool) -> String {
    match fitted.cells {
        0 if fitted.width.is_infinite() => "comparing all rows".to_owned(),
        0 if is_scan => "comparing all codes".to_owned(),
        0 => format!("search width {:.3}", fitted.width),
        cells => format!("{cells} of {n_cells} cells"),
    }
}

/// What was built.
struct Built {
    n: usize,
    width: usize,
    what: &'static str,
    stats: GraphStats,
    n_cells: usize,
    fitted: Option<Fitted>,
    is_scan: bool,
    lost: Option<LostPrecision>,
    build_s: f64,
    n_bytes: usize,
    output: PathBuf,
}

impl Args {
    /// Lists have no settings: such an option would do nothing.
    fn refuse_settings_of_a_graph(&self, context: &Context) -> Result<(), CliError> {
        let is_of_graphs = |name: &str| {
            index::TABLE.row(name).is_some() || ["fit-queries", "fit-instances", "max-loss"].contains(&name)
        };
        context.options.refuse_if(is_of_graphs, "an index of sparse rows has no graph to fit; it answers exactly")
    }

    /// Whether a share of the best labels is to be found, whatever is lost by that.
    fn has_target(&self) -> bool {
        self.settings.choices.get("target-recall").is_some()
    }
}

/// Nothing where labels have lists, of which all is said.
fn of_labels(folder: &Path, params: &BuildParams, args: &Args, context: &Context) -> Result<Option<Built>, CliError> {
    let output = args.output.clone().unwrap_or_else(|| folder.join(PART_FOLDER));
    let model = OpenArgs::default().open_whole(folder, context)?;
    ContainerWriter::check(&output)?;
    let needed = model.index_bytes(params).map_err(|e| label_error(folder, &e))?;
    context.foresee_memory("the index", needed as u64 + needed as u64 / 10)?;
    let asked = args.instances.read(&model, context)?;
    let (begin, watch) = (Instant::now(), Watch::new(context));
    let built = context.on_threads(|| model.build_index(asked.as_ref().map(OwnedRows::view), params, &watch));
    let mut index = built.map_err(|e| label_error(folder, &e))?;
    drop(watch);
    let build_s = begin.elapsed().as_secs_f64();
    let lost = if args.has_target() {
        None
    } else {
        let fit = IndexFit { top_k: params.top_k, min_recall: params.min_recall, ..IndexFit::default() };
        args.instances.fit(&model, &mut index, asked.as_ref(), fit, (folder, context))?
    };
    let save = || model.save_index(&index, args.output.as_deref()).map_err(|e| label_error(folder, &e));
    let Some(graph) = index.graph() else {
        args.refuse_settings_of_a_graph(context)?;
        save()?;
        if let Some(lists) = index.lists() {
            sparse::say(lists, "labels", build_s, &output, context)?;
        }
        return Ok(None);
    };
    save()?;
    Ok(Some(Built {
        n: graph.len(),
        width: graph.dim(),
        what: "labels",
        stats: graph.stats(),
        n_cells: graph.n_cells(),
        fitted: graph.fitted(),
        is_scan: graph.is_scan(),
        lost,
        build_s,
        n_bytes: graph.n_bytes(),
        output,
    }))
}

fn of_vectors(
    path: &Path,
    output: &Path,
    params: &BuildParams,
    args: &Args,
    context: &Context,
) -> Result<Built, CliError> {
    ContainerWriter::check(output)?;
    let given = vectors(path)?;
    let (n, width) = (given.rows(), given.columns());
    let needed = Graph::bytes(n, width, params) + 4 * given.values().len();
    context.foresee_memory("the index", needed as u64 + needed as u64 / 10)?;
    let mut values = HugePageVec::zeros(given.values().len());
    values.copy_from_slice(given.values());
    let sample = args.instances.fit_queries.as_deref().map(|path| vectors_of_width(path, width)).transpose()?;
    if let (Some(sample), Some(path)) = (&sample, &args.instances.fit_queries)
        && sample.rows() == 0
    {
        return Err(CliError::usage(format_args!("{}: no queries", path.display())));
    }
    let (begin, watch) = (Instant::now(), Watch::new(context));
    let asked = sample.as_ref().map(rows);
    say_without_direction(params.metric, asked.map_or(0, zeros), context);
    let built = context.on_threads(|| Index::build_for(values, width, asked, params, &watch));
    let from = args.instances.fit_queries.as_deref().unwrap_or(path);
    let index = built.map_err(|e| match e {
        BuildError::Query(e) => CliError::input(from, &e),
        e => build_error(path, &e),
    })?;
    drop(watch);
    let build_s = begin.elapsed().as_secs_f64();
    let (fitted, stats, n_bytes) = (index.graph().fitted(), index.graph().stats(), index.n_bytes());
    let (n_cells, is_scan) = (index.graph().n_cells(), index.graph().is_scan());
    index.save(output)?;
    log::write(output, build_s, context);
    let (what, lost, output) = ("vectors", None, output.to_owned());
    Ok(Built { n, width, what, stats, n_cells, fitted, is_scan, lost, build_s, n_bytes, output })
}
