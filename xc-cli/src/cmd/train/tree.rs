//! `xc train tree`: read, train, save, score.

use super::explain::{self, Plan};
use super::tree_args::Args;
use super::watch::Watch;
use crate::context::{Context, format_bytes};
use crate::data::{InputArgs, Labelled, Making, read_labelled, read_numbers, read_training};
use crate::error::{CliError, chain, io_text};
use crate::measure::{Meter, Usage, available_bytes};
use crate::model::{self, Extras, beside};
use crate::output::{self, Output};
use serde_json::{Map, Value, json};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;
use xc_sparse::io::{LabelNames, UnknownLabels};
use xc_sparse::store::ContainerWriter;
use xc_sparse::{CsrMatrix, Rows};
use xc_train::metrics::{EvaluatorParams, MetricReport, Propensity, evaluate};
use xc_tree::{
    ModelInfo, PredictParams, TrainError, TrainInput, TreeModel, TreeParams, estimate_peak_bytes, train_trees,
};

/// Everything that was named, opened and checked.
struct Inputs {
    data: Labelled,
    validation: Option<Labelled>,
    label_features: Option<CsrMatrix>,
    instance_weights: Option<Vec<f32>>,
    label_costs: Option<Vec<f32>>,
}

impl Inputs {
    fn train_input(&self) -> TrainInput<'_> {
        TrainInput {
            label_features: self.label_features.as_ref().map(|m| m.view()),
            instance_weights: self.instance_weights.as_deref(),
            label_costs: self.label_costs.as_deref(),
            ..TrainInput::new(self.data.features.view(), &self.data.labels)
        }
    }

    /// Bytes of the features and labels in memory.
    fn n_bytes(&self) -> u64 {
        let of = |d: &Labelled| 8 * d.features.nnz() + 8 * d.features.rows() + 4 * d.labels.nnz() + 8 * d.labels.len();
        let label_features = self.label_features.as_ref().map_or(0, |m| 8 * (m.nnz() + m.rows()));
        (of(&self.data) + self.validation.as_ref().map_or(0, of) + label_features) as u64
    }
}

pub(super) fn run(args: &Args, context: &Context) -> Result<(), CliError> {
    let meter = Meter::start();
    // What can be refused is refused before the long work: options first, then the output, then the inputs.
    let mut changed = Vec::new();
    let params = args.params(context.seed, &mut changed)?;
    let text = args.text.params()?;
    if !args.explain {
        ContainerWriter::check(&args.model).map_err(|e| model::write_error(&e))?;
    }
    let checkpoint = args.checkpoint.clone().unwrap_or_else(|| beside(&args.model, "checkpoint"));
    let start = Instant::now();
    let inputs = read_inputs(args, &text, context)?;
    let read_s = start.elapsed().as_secs_f64();

    let needed = estimate_peak_bytes(&inputs.train_input(), &params, context.threads) + inputs.n_bytes();
    let plan = Plan { args, params: &params, changed: &changed, data: &inputs.data, needed, context };
    if args.explain {
        return explain::print(&plan);
    }
    context.check_memory("xc train tree", needed)?;
    context.note(explain::summary(&plan));
    if context.max_memory.is_none()
        && let Some(available) = available_bytes()
        && needed > available
    {
        let (needed, available) = (format_bytes(needed), format_bytes(available));
        context.warn(format_args!("training may need about {needed}; {available} are free"));
    }
    prepare_checkpoint(&checkpoint, args.resume, context)?;

    let start = Instant::now();
    let watch = Watch::new(context);
    let trained = train_trees(&inputs.train_input(), &params, &watch, Some(&checkpoint));
    drop(watch);
    let trees = trained.map_err(|e| training_error(&args.train, &e))?;
    let info = ModelInfo {
        n_features: inputs.data.features.cols(),
        n_labels: inputs.data.labels.n_labels(),
        post: args.post(&params),
        normalise_rows: args.normalise,
        beam: args.saved.beam,
    };
    let tree = TreeModel::from_parts(info, trees, args.saved.precision.precision())
        .map_err(|e| CliError::failed(format_args!("packing the model: {}", chain(&e))))?;
    let train_s = start.elapsed().as_secs_f64();
    context.check_interrupt()?;

    let start = Instant::now();
    let extras = Extras {
        maker: inputs.data.maker.as_ref(),
        names: inputs.data.names.as_deref(),
        training: Some(kept_parameters(&params)),
    };
    model::save(&args.model, &tree, extras)?;
    let save_s = start.elapsed().as_secs_f64();
    if let Err(e) = std::fs::remove_dir_all(&checkpoint)
        && e.kind() != io::ErrorKind::NotFound
    {
        context.warn(format_args!("{}: cannot be removed: {}", checkpoint.display(), io_text(&e)));
    }

    let metrics = match &inputs.validation {
        Some(validation) => Some(score(&tree, &inputs.data, validation)?),
        None => None,
    };
    let report = Report { usage: meter.usage(), read_s, train_s, save_s, metrics };
    finish(args, context, &params, &tree, &report)
}

fn read_inputs(args: &Args, text: &xc_hash::text::PipelineParams, context: &Context) -> Result<Inputs, CliError> {
    // The further files are looked at first: a wrong name should not cost the reading of a large one.
    for path in [&args.train_labels, &args.validation, &args.validation_labels, &args.label_features, &args.label_names]
        .into_iter()
        .flatten()
        .chain([&args.train])
    {
        std::fs::File::open(path).map_err(|e| CliError::usage(format_args!("{}: {}", path.display(), io_text(&e))))?;
    }
    let mut data = read_training(
        &args.train,
        args.train_labels.as_deref(),
        args.label_names.as_deref(),
        &args.input,
        text,
        args.tfidf,
        context,
    )?;
    let validation = match &args.validation {
        Some(path) => {
            let labels = args.validation_labels.as_deref();
            Some(read_held_out(path, labels, &data, &args.input, context)?)
        }
        None => None,
    };
    let label_features = match &args.label_features {
        Some(path) => Some(read_label_features(path, &data, &args.input, text, context)?),
        None => None,
    };
    let instance_weights = args.linear.instance_weights.as_deref().map(read_numbers).transpose()?;
    let label_costs = args.linear.label_costs.as_deref().map(read_numbers).transpose()?;
    for (numbers, path, wanted, what) in [
        (&instance_weights, &args.linear.instance_weights, data.features.rows(), "instances"),
        (&label_costs, &args.linear.label_costs, data.labels.n_labels(), "labels"),
    ] {
        if let (Some(numbers), Some(path)) = (numbers, path)
            && numbers.len() != wanted
        {
            let met = numbers.len();
            return Err(CliError::usage(format_args!(
                "{}: {met} numbers; one for each of the {wanted} {what} is wanted",
                path.display()
            )));
        }
    }
    if args.normalise {
        normalise_rows(&mut data.features);
    }
    Ok(Inputs { data, validation, label_features, instance_weights, label_costs })
}

/// Instances that the model has not seen, made into features as the training instances were.
fn read_held_out(
    path: &Path,
    labels: Option<&Path>,
    data: &Labelled,
    input: &InputArgs,
    context: &Context,
) -> Result<Labelled, CliError> {
    let names = match &data.names {
        // The names came out of a dictionary, which has each once.
        Some(names) => LabelNames::try_new(names.clone()).ok(),
        None => None,
    };
    let making = Making::Apply { maker: data.maker.as_ref(), n_features: data.features.cols() };
    let held_out = read_labelled(path, labels, names.as_ref(), UnknownLabels::Append, input, making, context)?;
    if held_out.features.rows() == 0 {
        return Err(CliError::usage(format_args!("{}: no instance; at least one is wanted", path.display())));
    }
    Ok(held_out)
}

/// One row a label: text goes through a pipeline of its own, which prediction does not need.
fn read_label_features(
    path: &Path,
    data: &Labelled,
    input: &InputArgs,
    text: &xc_hash::text::PipelineParams,
    context: &Context,
) -> Result<CsrMatrix, CliError> {
    let input = InputArgs { format: None, ..input.clone() };
    let making = Making::Fit { text, tfidf: false };
    let rows = read_labelled(path, None, None, UnknownLabels::Drop, &input, making, context)?.features;
    let (met, wanted) = (rows.rows(), data.labels.n_labels());
    if met != wanted {
        return Err(CliError::usage(format_args!(
            "{}: {met} rows; one for each of the {wanted} labels is wanted",
            path.display()
        )));
    }
    Ok(rows)
}

fn normalise_rows(features: &mut CsrMatrix) {
    let bounds: Vec<usize> = features.indptr().raw_storage().to_vec();
    let values = features.data_mut();
    for row in bounds.windows(2) {
        let row = &mut values[row[0]..row[1]];
        let length = row.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>().sqrt() as f32;
        if length > 0.0 {
            row.iter_mut().for_each(|v| *v /= length);
        }
    }
}

/// A folder left by another run is gone on with only when that was asked for.
fn prepare_checkpoint(folder: &PathBuf, resume: bool, context: &Context) -> Result<(), CliError> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            if resume {
                context.warn(format_args!("{}: no checkpoint; training begins anew", folder.display()));
            }
            return Ok(());
        }
        Err(e) => return Err(CliError::usage(format_args!("{}: {}", folder.display(), io_text(&e)))),
    };
    if resume {
        return Ok(());
    }
    let foreign = entries.flatten().map(|e| e.file_name()).find(|n| !n.to_string_lossy().starts_with("tree-"));
    if let Some(name) = foreign {
        return Err(CliError::usage(format_args!(
            "{}: holds {:?}, which is no part of a checkpoint; another --checkpoint is wanted",
            folder.display(),
            name
        )));
    }
    context.warn(format_args!("{}: removed; --resume would have gone on from it", folder.display()));
    std::fs::remove_dir_all(folder)
        .map_err(|e| CliError::failed(format_args!("{}: cannot be removed: {}", folder.display(), io_text(&e))))
}

fn training_error(train: &Path, error: &TrainError) -> CliError {
    use xc_tree::CheckpointError;
    let line = format!("{}: {}", train.display(), chain(error));
    match error {
        TrainError::Cancelled => CliError::interrupted(),
        TrainError::Memory { .. } => CliError::missing(line),
        TrainError::Checkpoint(CheckpointError::Io { .. }) => CliError::failed(chain(error)),
        TrainError::Checkpoint(_) => CliError::usage(chain(error)),
        _ => CliError::usage(line),
    }
}

/// What `config.json` keeps of the options: nothing that depends on the machine or the run.
fn kept_parameters(params: &TreeParams) -> Value {
    let params = TreeParams { max_memory_bytes: None, ..params.clone() };
    serde_json::to_value(params).unwrap_or(Value::Null)
}

fn score(tree: &TreeModel, data: &Labelled, validation: &Labelled) -> Result<MetricReport, CliError> {
    let predictions = tree.predict_batch(validation.features.view(), &PredictParams::new(tree, 5));
    let mut params = EvaluatorParams::new(data.labels.n_labels());
    // The constants of the literature; too few training instances leave the propensity metrics out.
    params.propensity = Propensity::from_training(&data.labels, 0.55, 1.5).ok();
    evaluate(&validation.labels, &predictions, params).map_err(|e| CliError::failed(format_args!("validation: {e}")))
}

struct Report {
    usage: Usage,
    read_s: f64,
    train_s: f64,
    save_s: f64,
    metrics: Option<MetricReport>,
}

impl Report {
    fn json(&self, model_bytes: u64) -> Map<String, Value> {
        let mut map = Map::new();
        let mut put = |name: &str, value: Value| map.insert(name.to_owned(), value);
        put("wall_s", json!(self.usage.wall_s));
        put("cpu_s", json!(self.usage.cpu_s));
        put("read_s", json!(self.read_s));
        put("train_s", json!(self.train_s));
        put("save_s", json!(self.save_s));
        put("peak_rss_bytes", json!(self.usage.peak_rss_bytes));
        put("peak_anon_bytes", json!(self.usage.peak_anon_bytes));
        put("model_bytes", json!(model_bytes));
        if let Some(Value::Object(metrics)) = self.metrics.as_ref().and_then(|m| serde_json::to_value(m).ok()) {
            map.extend(metrics);
        }
        map
    }
}

fn finish(
    args: &Args,
    context: &Context,
    params: &TreeParams,
    tree: &TreeModel,
    report: &Report,
) -> Result<(), CliError> {
    let model_bytes = model::open_container(&args.model, xc_sparse::store::OpenMode::Map)?.n_bytes();
    let map = report.json(model_bytes);
    // The log is for people and scripts; the model stands whether it can be written or not.
    let mut log = map.clone();
    log.insert("train".into(), json!(args.train.display().to_string()));
    log.insert("preset".into(), json!(format!("{:?}", args.preset)));
    log.insert("threads".into(), json!(context.threads));
    log.insert("parameters".into(), kept_parameters(params));
    let folder = beside(&args.model, "log");
    let written = output::make_folder(&folder).and_then(|()| {
        let mut file = Output::create(&folder.join("train.json"))?;
        file.put(format!("{:#}\n", Value::Object(log)).as_bytes())?;
        file.commit()
    });
    if let Err(e) = written {
        context.warn(e.line().unwrap_or_default());
    }
    if context.json {
        return output::print(&Value::Object(map).to_string());
    }
    context.note(format_args!(
        "train tree: saved {}: {} trees, {} weights, {}, in {:.1} s",
        args.model.display(),
        tree.trees().len(),
        tree.nnz(),
        format_bytes(model_bytes),
        report.usage.wall_s
    ));
    match &report.metrics {
        Some(metrics) => output::print(&metrics.table().to_string()),
        None => Ok(()),
    }
}

/// Rows without a feature: they are scored by the bias alone, which is worth knowing.
pub(super) fn count_empty_rows(features: &CsrMatrix) -> usize {
    let rows = Rows::new(features.view());
    (0..rows.len()).filter(|&i| rows.row(i).nnz() == 0).count()
}
