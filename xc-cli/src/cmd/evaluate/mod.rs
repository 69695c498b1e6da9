//! `xc evaluate`: how good are the predictions?

mod files;
mod found;
mod lists;
mod parts;
mod truth;

use crate::context::Context;
use crate::data::{InputArgs, NamesArgs};
use crate::error::CliError;
use crate::model::{OpenArgs, refuse_inside};
use crate::output::{self, Output};
use crate::settings::{Chosen, OfTable};
use crate::written::{Named, refuse_overwriting};
use found::Found;
use serde::Serialize;
use std::path::{Path, PathBuf};
use truth::Setting;
use xc_metrics::worst_instances;
use xc_metrics::{
    BootstrapParams, Comparison, EvaluateError, Evaluator, EvaluatorParams, MetricReport, PairFilter, Propensity,
};
use xc_model::calibrate::best_threshold as best_threshold_of;
use xc_options::settings::Table;
use xc_options::settings::judge::{self, Cut, JudgeParams};
use xc_sparse::LabelRows;
use xc_sparse::rank::{RankedBatch, Scored};

/// Score predictions against the truth
///
/// Reports P, nDCG, recall, MAP, coverage and macro and micro F1 at each k, and MAP and
/// MRR of the whole lists. The training labels (--propensity-from) add PSP and PSnDCG;
/// --threshold adds precision, recall and F1 of the labels that reach it. A rank past
/// the end of a list is a miss. An instance without true labels counts 0 and stays in
/// every mean. docs/metrics.md defines every metric.
///
/// --model DIR gives what is known of the labels: their names, the fields they are read from,
/// their numbers in training (for PSP). Without --predictions the model answers first.
/// If both the truth and the predictions have ids, those of each instance must be the same.
///
/// Examples:
///   xc evaluate --model my.model --input test.csv
///   xc evaluate --model my.model --input test.csv --per-label labels.csv --worst worst.jsonl
///   xc evaluate --model my.model --truth test.csv --predictions answers.jsonl
///   xc predict --model my.model --input test.csv | xc evaluate --model my.model
///     --truth test.csv --predictions -
///   xc evaluate --truth test.txt --predictions predictions.txt
///   xc evaluate --truth test.txt --predictions predictions.txt --k 1,3,5,100
///     --propensity-from train.txt --json
///   xc evaluate --truth test.txt --predictions 'part-*.txt'
///   xc evaluate --truth test.txt --predictions new.txt --compare old.txt
///   xc evaluate --truth test.txt --predictions top50.txt --threshold 0.3
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// File with the true labels, in any input format; its features or text are ignored [default: --input]
    #[arg(long, value_name = "FILE", required_unless_present = "input")]
    truth: Option<PathBuf>,
    /// Output of `xc predict`: a line of `id:score` pairs per instance, JSONL or npz; - is stdin (lines or JSONL).
    /// Several files are answers in parts, one after the other: in the order given, or those whose names fit a pattern
    /// in quotes ('part-*'), by the numbers in their names [default: the answers of --model]
    #[arg(long, value_name = "FILE", required_unless_present = "model", num_args = 1..)]
    predictions: Option<Vec<PathBuf>>,
    /// The model folder: gives names of labels, fields, and the label counts of PSP, unless options give others, and
    /// answers where --predictions is not given
    #[arg(long, value_name = "DIR")]
    model: Option<PathBuf>,
    /// Instances that the model answers [default: --truth]
    #[arg(long, value_name = "FILE", requires = "model", conflicts_with = "predictions")]
    input: Option<PathBuf>,
    /// Labels per instance that the model answers with [default: 5, or the largest k if that is more; with --threshold
    /// as many as the calibration used, or 50]
    #[arg(long, value_name = "K", requires = "model", conflicts_with = "predictions")]
    top_k: Option<usize>,
    /// Training file: gives propensities (PSP, PSnDCG), and shows which true labels were never trained on [default: the
    /// label counts that the model keeps]
    #[arg(long, value_name = "TRAIN")]
    propensity_from: Option<PathBuf>,
    #[command(flatten)]
    judge: Chosen<OfJudge>,
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
    /// Write support, precision, recall and F1 of each label as CSV, at each k and at the threshold, and the label that
    /// is most often predicted in its place
    #[arg(long, value_name = "FILE.csv")]
    per_label: Option<PathBuf>,
    /// Write the instances with the smallest nDCG at the largest k, as JSONL: true and predicted labels
    #[arg(long, value_name = "FILE.jsonl")]
    worst: Option<PathBuf>,
    /// Number of instances of --worst
    #[arg(long, value_name = "N", default_value_t = 100, requires = "worst")]
    worst_rows: usize,
    #[command(flatten)]
    format: InputArgs,
}

/// Which metrics, and with what beside them.
#[derive(Clone, Copy, Debug)]
struct OfJudge;

impl OfTable for OfJudge {
    const TABLE: Table = judge::TABLE;
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

pub(crate) fn run(args: &Args, context: &Context) -> Result<(), CliError> {
    output::check(Path::new("-"))?;
    let judge = args.refuse_idle(context)?;
    let bootstrap = BootstrapParams { seed: context.seed, ..judge.bootstrap };
    let mut params = judge.evaluator(0, args.compare.is_some());
    if args.top_k == Some(0) {
        return Err(CliError::usage("--top-k 0: at least 1 is expected"));
    }
    let predictions = args.predictions.as_deref().map(parts::files).transpose()?;
    let of_stdin = predictions.iter().flatten().chain(&args.compare).filter(|path| **path == Path::new("-"));
    if of_stdin.count() > 1 {
        return Err(CliError::usage("--predictions - --compare -: stdin is read once; one file is expected"));
    }
    // Files that fit a pattern were not named.
    let fitting = predictions.iter().flatten().map(|path| Named {
        typed: format!("--predictions {}", path.display()),
        path: path.clone(),
        is_written: false,
    });
    let written =
        [("--per-label", &args.per_label), ("--worst", &args.worst)].into_iter().filter_map(|(option, path)| {
            let path = path.clone()?;
            Some(Named { typed: format!("{option} {}", path.display()), path, is_written: true })
        });
    refuse_overwriting(&fitting.chain(written).collect::<Vec<_>>())?;
    let create = |option: &str, path: &Option<PathBuf>| -> Result<Option<Output>, CliError> {
        let Some(path) = path else { return Ok(None) };
        if let Some(model) = &args.model {
            refuse_inside(option, path, model)?;
        }
        Output::create(path).map(Some)
    };
    let per_label = create("--per-label", &args.per_label)?;
    let worst = create("--worst", &args.worst)?;
    params.confusions = per_label.is_some();
    let open = |folder: &Path| OpenArgs::default().open_as_saved(folder, context);
    let model = args.model.as_deref().map(open).transpose()?;
    let setting = Setting::new(args, &judge, model.as_ref())?;
    let truth = setting.read_truth(context)?;
    let training = setting.propensity(&truth)?;
    // A training file without a bound of its own still names labels that predictions may hold.
    let bound = match &model {
        Some(model) => Some(model.describe().n_labels),
        None => truth.n_labels.map(|n| n.max(training.as_ref().map_or(0, Propensity::n_labels))),
    };
    let n_instances = truth.labels.len();
    let read = |paths: &[PathBuf]| found::read(paths, &setting, &truth, bound, context);
    let predicted = match (&predictions, &model) {
        (Some(paths), _) => read(paths)?,
        (None, Some(model)) => found::predict(model, &setting, &truth, context)?,
        (None, None) => return Err(CliError::usage("--predictions FILE is expected, or --model DIR, which answers")),
    };
    let other = args.compare.as_ref().map(|path| read(std::slice::from_ref(path))).transpose()?;
    if args.worst.is_none() && !predicted.has_ids && other.as_ref().is_none_or(|other| !other.has_ids) {
        let why =
            "no ids are compared: the truth and the predictions, or the file of --input, are expected to have some";
        context.options.refuse(&["id-field"], why)?;
    }
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
        let named = largest(&predicted.ranked).max(other.as_ref().map_or(0, |other| largest(&other.ranked)));
        truth.labels.n_labels().max(named).max(training.as_ref().map_or(0, Propensity::n_labels))
    });
    params.propensity = training;
    params.threshold = match judge.threshold {
        None => None,
        Some(Cut::At(at)) => Some(at),
        Some(Cut::Best) => Some(best_threshold(args, &truth.labels, &predicted)?),
    };
    context.check_interrupt()?;

    let lists = [Some(&predicted), other.as_ref()].into_iter().flatten();
    let short: Vec<String> = lists.filter_map(|lists| short_lists(lists, &params)).collect();
    let new = |params| Evaluator::new(params).map_err(|e| CliError::usage(e.to_string()));
    let unweighted = params.weights.is_some().then(|| new(EvaluatorParams { weights: None, ..params.clone() }));
    let unweighted = unweighted.transpose()?;
    let largest_k = params.ks.iter().copied().max().unwrap_or(1);
    let worst_of = |params: &EvaluatorParams| {
        worst_instances(&truth.labels, &predicted.ranked, params, largest_k, args.worst_rows)
            .map_err(|e| evaluation_error(&setting, &predicted.path, &e))
    };
    let worst = worst.map(|out| Ok::<_, CliError>((out, worst_of(&params)?))).transpose()?;
    let (mut ks, has_threshold) = (params.ks.clone(), params.threshold.is_some());
    ks.sort_unstable();
    let evaluator = new(params)?;
    let added = |evaluator: &Evaluator, found: &Found| -> Result<Evaluator, CliError> {
        let mut evaluator = evaluator.part(0);
        let done = evaluator.add_batch(&truth.labels, &found.ranked);
        done.map(|()| evaluator).map_err(|e| evaluation_error(&setting, &found.path, &e))
    };
    let evaluate = |evaluator: Evaluator, found: &Found| -> Result<MetricReport, CliError> {
        evaluator.finish().map_err(|e| evaluation_error(&setting, &found.path, &e))
    };
    let own = added(&evaluator, &predicted)?;
    let labels = per_label.map(|out| (out, own.labels()));
    let mut report = evaluate(own, &predicted)?;
    let mut unweighted = unweighted.map(|e| evaluate(added(&e, &predicted)?, &predicted)).transpose()?;
    let comparison = match other {
        Some(other) => {
            let failed = |e| CliError::input(&other.path, &e);
            let other_report = evaluate(added(&evaluator, &other)?, &other)?;
            Some(report.compare(&other_report, &bootstrap).map_err(failed)?)
        }
        None => None,
    };
    if judge.intervals {
        for report in std::iter::once(&mut report).chain(&mut unweighted) {
            report.add_intervals(&bootstrap).map_err(|e| CliError::usage(e.to_string()))?;
        }
    }
    context.check_interrupt()?;
    if let Some((out, labels)) = labels {
        files::write_labels(out, &labels, &ks, has_threshold, &truth)?;
    }
    if let Some((out, worst)) = worst {
        files::write_worst(out, &worst, largest_k, &truth, &predicted.ranked)?;
    }
    short.iter().for_each(|line| context.warn(line));
    let threshold_chosen_on_these_rows = judge.threshold == Some(Cut::Best);
    let (unweighted, comparison) = (unweighted.as_ref(), comparison.as_ref());
    print(context, &Report { report: &report, threshold_chosen_on_these_rows, unweighted, comparison })
}

impl Args {
    /// What was chosen; options that were given and that nothing reads here are refused.
    fn refuse_idle(&self, context: &Context) -> Result<JudgeParams, CliError> {
        let [truth, input, training] = [&self.truth, &self.input, &self.propensity_from].map(|path| path.as_deref());
        let form = self.format.settings();
        self.format.refuse_idle(&form, [truth, input, training].into_iter().flatten())?;
        self.format.refuse_idle_of_labels(&form, [truth.or(input), training].into_iter().flatten())?;
        if self.predictions.is_some() {
            context.options.refuse(&["text-fields"], "no text is read: --predictions has the answers")?;
        }
        let has_training = self.propensity_from.is_some() || self.model.is_some();
        Ok(judge::params(&self.judge.choices, self.compare.is_some(), has_training)?)
    }
}

/// The threshold at which micro F1 of these predictions is largest.
fn best_threshold(args: &Args, truth: &LabelRows, predicted: &Found) -> Result<f32, CliError> {
    let changed = [
        (args.weights.is_some(), "--weights"),
        (args.filter.is_some(), "--filter"),
        (args.exclude_rows.is_some(), "--exclude-rows"),
    ];
    if let Some((_, option)) = changed.iter().find(|(is_given, _)| *is_given) {
        return Err(CliError::usage(format_args!("--threshold best: with {option} a number is expected")));
    }
    best_threshold_of(truth, &predicted.ranked).map(|best| best.threshold).ok_or_else(|| {
        CliError::usage(format_args!(
            "--threshold best: {}: no prediction is true, so there is none",
            predicted.path.display()
        ))
    })
}

/// What there is to say where metrics at k tell too little, of lists that all end before k.
fn short_lists(found: &Found, params: &EvaluatorParams) -> Option<String> {
    let longest = found.ranked.iter().map(<[Scored]>::len).max().unwrap_or(0);
    let beyond: Vec<usize> = params.ks.iter().copied().filter(|&k| k > longest && longest < params.n_labels).collect();
    let largest = *beyond.iter().max()?;
    let names: Vec<String> = beyond.iter().map(|k| format!("@{k}")).collect();
    let bounds = if beyond.len() == 1 { "is a lower bound" } else { "are lower bounds" };
    Some(format!(
        "{}: lists hold at most {longest} labels: {} {bounds} (predict with --top-k {largest})",
        found.path.display(),
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

/// What is left to go wrong after the files were checked on reading.
fn evaluation_error(setting: &Setting<'_>, predictions: &Path, error: &EvaluateError) -> CliError {
    match (error, &setting.args.weights, &setting.args.exclude_rows) {
        (EvaluateError::NoWeight { .. }, Some(path), _) => CliError::input(path, error),
        (EvaluateError::NoInstances, _, Some(path)) => {
            CliError::usage(format_args!("{}: every instance is excluded", path.display()))
        }
        (EvaluateError::NoInstances, ..) => CliError::input(setting.truth, error),
        _ => CliError::input(predictions, error),
    }
}
