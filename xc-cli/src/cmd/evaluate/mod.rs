//! `xc evaluate`: how good are the predictions?

mod lists;

use crate::context::Context;
use crate::data::{InputArgs, NamesArgs, require_labels};
use crate::error::{CliError, chain};
use crate::output;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use xc_sparse::LabelRows;
use xc_sparse::io::{
    Format, HeaderRule, LabelNames, ReadError, ReadErrorKind, ReadOptions, Snippet, UnknownLabels, read_labels,
    read_predictions,
};
use xc_sparse::rank::{RankedBatch, Scored};
use xc_train::calibrate::{Pair, best_micro};
use xc_train::metrics::{
    BootstrapParams, Comparison, EvaluateError, Evaluator, EvaluatorParams, KeepRows, MetricReport, PairFilter,
    Propensity,
};

/// Score predictions against the truth
///
/// Reports P, nDCG, recall, MAP, coverage and macro and micro F1 at each k, and MAP and
/// MRR of the whole lists. The training labels (--propensity-from) add PSP and PSnDCG;
/// --threshold adds precision, recall and F1 of the labels that reach it. A rank past
/// the end of a list is a miss. An instance without true labels counts 0 and stays in
/// every mean. docs/metrics.md defines every metric.
///
/// Examples:
///   xc evaluate --truth test.txt --predictions predictions.txt
///   xc evaluate --truth test.txt --predictions predictions.txt --k 1,3,5,100
///     --propensity-from train.txt --json
///   xc evaluate --truth test.txt --predictions new.txt --compare old.txt
///   xc evaluate --truth test.txt --predictions top50.txt --threshold 0.3
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// File with the true labels, in any input format; its features or text are ignored
    #[arg(long, value_name = "FILE")]
    truth: PathBuf,
    /// Output of `xc predict`: a line of `id:score` pairs per instance, JSONL or npz
    #[arg(long, value_name = "FILE")]
    predictions: PathBuf,
    /// Values of k for every metric
    #[arg(long, value_name = "K", value_delimiter = ',', default_value = "1,3,5")]
    k: Vec<usize>,
    /// Training file: gives propensities (PSP, PSnDCG), and shows which true labels were never trained on
    #[arg(long, value_name = "TRAIN")]
    propensity_from: Option<PathBuf>,
    /// A of the propensity model 1 / (1 + C (n + B)^-A)
    #[arg(long, value_name = "A", default_value_t = 0.55, allow_negative_numbers = true)]
    propensity_a: f64,
    /// B of the propensity model
    #[arg(long, value_name = "B", default_value_t = 1.5, allow_negative_numbers = true)]
    propensity_b: f64,
    #[command(flatten)]
    names: NamesArgs,
    /// Weight of each instance, one per line; the unweighted metrics are shown too
    #[arg(long, value_name = "FILE")]
    weights: Option<PathBuf>,
    /// Pairs `instance label` to ignore, one per line, counted from 0: neither true nor predicted
    #[arg(long, value_name = "FILE")]
    filter: Option<PathBuf>,
    /// Instances to leave out, one per line, counted from 0
    #[arg(long, value_name = "FILE")]
    exclude_rows: Option<PathBuf>,
    /// Other predictions for the same truth: adds the difference of every metric with its paired bootstrap interval
    #[arg(long, value_name = "FILE")]
    compare: Option<PathBuf>,
    /// Add precision, recall and F1 (micro, macro, per instance) of the labels that score at least T; best: the
    /// threshold with the largest micro F1 on these same rows
    #[arg(long, value_name = "T", allow_negative_numbers = true, value_parser = parse_threshold)]
    threshold: Option<Threshold>,
    /// Add a bootstrap interval to every metric
    #[arg(long)]
    intervals: bool,
    /// Number of bootstrap resamples
    #[arg(long, value_name = "N", default_value_t = BootstrapParams::default().resamples)]
    resamples: usize,
    /// Share of the resamples inside an interval
    #[arg(long, value_name = "SHARE", default_value_t = BootstrapParams::default().level)]
    level: f64,
    #[command(flatten)]
    input: InputArgs,
}

/// Where answers are cut.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Threshold {
    At(f32),
    /// Where micro F1 is largest.
    Best,
}

fn parse_threshold(text: &str) -> Result<Threshold, String> {
    match text.parse::<f32>() {
        _ if text == "best" => Ok(Threshold::Best),
        Ok(at) if !at.is_nan() => Ok(Threshold::At(at)),
        _ => Err(format!("got {text:?}, expected a number or best")),
    }
}

/// What `--json` prints.
#[derive(Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    report: &'a MetricReport,
    /// Set when the threshold was chosen on the rows that are scored.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    threshold_chosen_on_these_rows: bool,
    /// The same with every instance counted once, where instances have weights.
    #[serde(skip_serializing_if = "Option::is_none")]
    unweighted: Option<&'a MetricReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    comparison: Option<&'a Comparison>,
}

/// The true labels, and how many labels there are when something says so.
struct Truth {
    labels: LabelRows,
    n_labels: Option<usize>,
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<(), CliError> {
    output::check(Path::new("-"))?;
    let bootstrap = BootstrapParams { resamples: args.resamples, level: args.level, seed: context.seed };
    bootstrap.check().map_err(|e| CliError::usage(format_args!("--resamples, --level: {}", chain(&e))))?;
    let keep = args.intervals || args.compare.is_some();
    let mut params = EvaluatorParams {
        ks: args.k.clone(),
        keep_rows: if keep { KeepRows::Yes } else { KeepRows::No },
        ..EvaluatorParams::new(0)
    };
    params.check().map_err(|e| CliError::usage(format_args!("--k: {}", chain(&e))))?;
    let names = args.names.read()?.map(Arc::new);

    let truth = read_truth(args, names.clone())?;
    let training = match &args.propensity_from {
        Some(path) => Some(read_propensity(args, path, names.clone())?),
        None => None,
    };
    // A training file without a bound of its own still names labels that predictions may hold.
    let bound = truth.n_labels.map(|n| n.max(training.as_ref().map_or(0, Propensity::n_labels)));
    let n_instances = truth.labels.len();
    let read = |path: &Path| -> Result<RankedBatch, CliError> {
        let options = ReadOptions { n_labels: bound, label_names: names.clone(), ..ReadOptions::default() };
        let batch = read_predictions(path, &options).map_err(|e| unreadable(e, names.is_some()))?;
        if batch.len() != n_instances {
            let (got, truth) = (batch.len(), args.truth.display());
            let what = format_args!("{}: {got} instances, expected {n_instances} as in {truth}", path.display());
            return Err(CliError::usage(what));
        }
        Ok(batch)
    };
    let predicted = read(&args.predictions)?;
    let other = args.compare.as_deref().map(read).transpose()?;
    params.weights = args.weights.as_deref().map(|path| lists::read_weights(path, n_instances)).transpose()?;
    params.filter = match &args.filter {
        Some(path) => lists::read_pairs(path, n_instances)?,
        None => PairFilter::default(),
    };
    params.exclude = match &args.exclude_rows {
        Some(path) => lists::read_rows(path, n_instances)?,
        None => Vec::new(),
    };
    params.n_labels = bound.unwrap_or_else(|| {
        let largest = |batch: &RankedBatch| batch.iter().flatten().map(|s| s.label as usize + 1).max().unwrap_or(0);
        let named = largest(&predicted).max(other.as_ref().map_or(0, largest));
        truth.labels.n_labels().max(named).max(training.as_ref().map_or(0, Propensity::n_labels))
    });
    params.propensity = training;
    params.threshold = match args.threshold {
        None => None,
        Some(Threshold::At(at)) => Some(at),
        Some(Threshold::Best) => Some(best_threshold(args, &truth.labels, &predicted)?),
    };
    context.check_interrupt()?;

    let lists = [Some((&args.predictions, &predicted)), args.compare.as_ref().zip(other.as_ref())];
    let lists = lists.into_iter().flatten();
    let short: Vec<String> = lists.filter_map(|(path, batch)| short_lists(path, batch, &params)).collect();
    let new = |params| Evaluator::new(params).map_err(|e| CliError::usage(e.to_string()));
    let unweighted = params.weights.is_some().then(|| new(EvaluatorParams { weights: None, ..params.clone() }));
    let unweighted = unweighted.transpose()?;
    let evaluator = new(params)?;
    let evaluate = |evaluator: &Evaluator, path: &Path, batch: &RankedBatch| -> Result<MetricReport, CliError> {
        let mut evaluator = evaluator.part(0);
        let done = evaluator.add_batch(&truth.labels, batch);
        done.and_then(|()| evaluator.finish()).map_err(|e| evaluation_error(args, path, &e))
    };
    let mut report = evaluate(&evaluator, &args.predictions, &predicted)?;
    let mut unweighted = unweighted.map(|e| evaluate(&e, &args.predictions, &predicted)).transpose()?;
    let comparison = match (&args.compare, other) {
        (Some(path), Some(other)) => {
            let other = evaluate(&evaluator, path, &other)?;
            let failed = |e| CliError::input(path, &e);
            Some(report.compare(&other, &bootstrap).map_err(failed)?)
        }
        _ => None,
    };
    if args.intervals {
        for report in std::iter::once(&mut report).chain(&mut unweighted) {
            report.add_intervals(&bootstrap).map_err(|e| CliError::usage(e.to_string()))?;
        }
    }
    context.check_interrupt()?;
    short.iter().for_each(|line| context.warn(line));
    let threshold_chosen_on_these_rows = args.threshold == Some(Threshold::Best);
    let (unweighted, comparison) = (unweighted.as_ref(), comparison.as_ref());
    print(context, &Report { report: &report, threshold_chosen_on_these_rows, unweighted, comparison })
}

/// The threshold at which micro F1 of these predictions is largest.
fn best_threshold(args: &Args, truth: &LabelRows, predicted: &RankedBatch) -> Result<f32, CliError> {
    let changed = [
        (args.weights.is_some(), "--weights"),
        (args.filter.is_some(), "--filter"),
        (args.exclude_rows.is_some(), "--exclude-rows"),
    ];
    if let Some((_, option)) = changed.iter().find(|(is_given, _)| *is_given) {
        return Err(CliError::usage(format_args!("--threshold best: with {option} a number is expected")));
    }
    let mut pairs: Vec<Pair> = Vec::new();
    for (list, labels) in predicted.iter().zip(truth.iter()) {
        let is_true = |label: u32| labels.binary_search(&label).is_ok();
        pairs.extend(list.iter().map(|s| Pair { score: s.score, label: s.label, is_true: is_true(s.label) }));
    }
    Pair::sort(&mut pairs);
    let best = best_micro(&pairs, truth.nnz() as u64);
    best.map(|best| best.threshold).ok_or_else(|| {
        CliError::usage(format_args!(
            "--threshold best: {}: no prediction is true, so there is none",
            args.predictions.display()
        ))
    })
}

/// What there is to say where metrics at k tell too little, of lists that all end before k.
fn short_lists(path: &Path, lists: &RankedBatch, params: &EvaluatorParams) -> Option<String> {
    let longest = lists.iter().map(<[Scored]>::len).max().unwrap_or(0);
    let beyond: Vec<usize> = params.ks.iter().copied().filter(|&k| k > longest && longest < params.n_labels).collect();
    let largest = *beyond.iter().max()?;
    let names: Vec<String> = beyond.iter().map(|k| format!("@{k}")).collect();
    let bounds = if beyond.len() == 1 { "is a lower bound" } else { "are lower bounds" };
    Some(format!(
        "{}: lists hold at most {longest} labels: {} {bounds} (predict with --top-k {largest})",
        path.display(),
        names.join(", ")
    ))
}

fn print(context: &Context, shown: &Report<'_>) -> Result<(), CliError> {
    if context.json {
        let text = serde_json::to_string(shown);
        return output::print(&text.map_err(|e| CliError::failed(format_args!("cannot write the report: {e}")))?);
    }
    let mut text = shown.report.table().to_string();
    if shown.threshold_chosen_on_these_rows {
        text += "the threshold was chosen on these rows: on others expect less\n";
    }
    if let Some(unweighted) = shown.unweighted {
        text = format!("weighted\n{text}\nevery instance counted once\n{}", unweighted.table());
    }
    if let Some(comparison) = shown.comparison {
        text.push('\n');
        text.push_str(&comparison.table().to_string());
    }
    output::print(&text)
}

/// Predictions with names in place of ids do not read as ids.
fn unreadable(error: ReadError, has_names: bool) -> CliError {
    let is_name = |got: &Snippet| got.to_string().trim_start_matches('"').starts_with(char::is_alphabetic);
    match error.kind() {
        ReadErrorKind::Malformed { got, .. } if !has_names && error.column() == Some(1) && is_name(got) => {
            CliError::usage(format_args!(
                "{error}; predictions that hold names are read with --label-names FILE, such as labels.txt of the model"
            ))
        }
        _ => error.into(),
    }
}

/// What is left to go wrong after the files were checked on reading.
fn evaluation_error(args: &Args, predictions: &Path, error: &EvaluateError) -> CliError {
    match (error, &args.weights, &args.exclude_rows) {
        (EvaluateError::NoWeight { .. }, Some(path), _) => CliError::input(path, error),
        (EvaluateError::NoInstances, _, Some(path)) => {
            CliError::usage(format_args!("{}: every instance is excluded", path.display()))
        }
        (EvaluateError::NoInstances, ..) => CliError::input(&args.truth, error),
        _ => CliError::input(predictions, error),
    }
}

fn options(args: &Args, names: Option<Arc<LabelNames>>) -> ReadOptions {
    ReadOptions { label_names: names, unknown_labels: UnknownLabels::Append, ..args.input.options() }
}

/// The labels of the truth. Their number is known from the names, or from a header.
fn read_truth(args: &Args, names: Option<Arc<LabelNames>>) -> Result<Truth, CliError> {
    let path = &args.truth;
    let known = names.as_ref().map(|names| names.len());
    let mut options = options(args, names);
    if options.format.is_none() {
        options.format = Some(Format::detect(path, &options)?);
    }
    let has_header = match options.format {
        Some(Format::Npz) => true,
        // A file without header is told by its first line, so the second reading costs little.
        Some(Format::Xc) => {
            let strict = ReadOptions { header: HeaderRule::Required, ..options.clone() };
            match read_labels(path, &strict) {
                Ok(lists) => {
                    let n_labels = Some(known.unwrap_or(lists.labels.n_labels()));
                    return Ok(Truth { labels: lists.labels, n_labels });
                }
                Err(e) if e.line_number() == Some(1) => false,
                Err(e) => return Err(e.into()),
            }
        }
        _ => false,
    };
    let lists = read_labels(path, &options)?;
    if lists.label_names.is_some() && known.is_none() {
        return Err(CliError::usage(format_args!(
            "{}: labels are names, predictions are ids; expected --label-names FILE, such as labels.txt of the model",
            path.display()
        )));
    }
    require_labels(path, &lists.labels, options.format, &options, None)?;
    let n_labels = known.or_else(|| has_header.then(|| lists.labels.n_labels()));
    Ok(Truth { labels: lists.labels, n_labels })
}

fn read_propensity(args: &Args, path: &Path, names: Option<Arc<LabelNames>>) -> Result<Propensity, CliError> {
    let lists = read_labels(path, &options(args, names))?;
    if lists.label_names.is_some() && args.names.label_names.is_none() {
        return Err(CliError::usage(format_args!(
            "{}: labels are names, predictions are ids; expected --label-names FILE",
            path.display()
        )));
    }
    Propensity::from_training(&lists.labels, args.propensity_a, args.propensity_b)
        .map_err(|e| CliError::input(path, &e))
}
