//! `xc train tree`: read, train, save, score.

use super::explain::counted;
use super::inputs::{PlaceArgs, checkpoint_error, drop_checkpoint, hold_out};
use super::record::record;
use super::refit::Refit;
use super::report::{Judging, Report};
use super::tree_args::{Args, kept_parameters};
use super::tree_explain;
use super::tree_judge::judge;
use super::tree_memory::Forecast;
use super::watch::Watch;
use crate::context::Context;
use crate::data::{Dataset, Datasets, InputArgs, LabelsFrom, Making, read_labelled, read_numbers};
use crate::error::{CliError, chain};
use crate::measure::Meter;
use crate::memory::Standing;
use crate::model::{self, Extras};
use serde_json::{Map, json};
use std::path::Path;
use std::time::Instant;
use xc_hash::text::Featurizer;
use xc_sparse::CsrMatrix;
use xc_sparse::io::UnknownLabels;
use xc_sparse::store::ContainerWriter;
use xc_train::model::{HoldOut, TrainingRows};
use xc_tree::{
    BuildError, CHECKPOINT, KeptError, TrainError, TrainInput, TreeParams, WeightCounts, checkpoint_key,
    train_out_of_core,
};

/// Everything that was named, opened and checked.
struct Inputs {
    instances: Datasets,
    rows: TrainingRows,
    label_features: Option<CsrMatrix>,
    instance_weights: Option<Vec<f32>>,
    label_costs: Option<Vec<f32>>,
}

impl Inputs {
    fn train_input(&self) -> TrainInput<'_> {
        let data = &self.instances.train;
        TrainInput {
            label_features: self.label_features.as_ref().map(|m| m.view()),
            instance_weights: self.instance_weights.as_deref(),
            label_costs: self.label_costs.as_deref(),
            ..TrainInput::new(data.sparse().view(), &data.labels)
        }
    }

    /// Bytes of the features and labels in memory.
    fn n_bytes(&self) -> u64 {
        let label_features = self.label_features.as_ref().map_or(0, |m| 8 * (m.nnz() + m.rows()));
        self.instances.n_bytes() + label_features as u64
    }
}

pub(super) fn run(args: &Args, context: &Context) -> Result<(), CliError> {
    let (place, hold_out) = (&args.data.place, hold_out(args.validation_fraction, context.seed)?);
    let refit = Refit::plan(args.data.refit.as_deref(), place, hold_out)?;
    if !refit.as_ref().is_some_and(|refit| refit.is_under_way) {
        run_once(args, place, hold_out, context)?;
    }
    match refit {
        Some(refit) if !place.explain => run_once(args, &refit.place, None, context),
        _ => Ok(()),
    }
}

fn run_once(args: &Args, place: &PlaceArgs, hold_out: Option<HoldOut>, context: &Context) -> Result<(), CliError> {
    match train(args, place, hold_out, &Judging::default(), context)? {
        Some(report) => report.finish(place, context),
        None => Ok(()),
    }
}

/// Trains and saves a model, and says how good it is; nothing where that was only to be explained.
pub(in crate::cmd) fn train(
    args: &Args,
    place: &PlaceArgs,
    hold_out: Option<HoldOut>,
    judging: &Judging,
    context: &Context,
) -> Result<Option<Report>, CliError> {
    let meter = Meter::start();
    // What can be refused is refused before the long work: options first, then the output, then the
    // inputs.
    let params = args.params(context.seed)?;
    let text = args.data.text.params()?;
    let folder = match place.explain {
        true => None,
        false => {
            place.check_model()?;
            Some(place.claim_checkpoint(CHECKPOINT, context)?)
        }
    };
    args.data.refuse_idle(None, args.label_features.as_deref(), context)?;
    let start = Instant::now();
    let inputs = read_inputs(args, &text, hold_out, context)?;
    let data = &inputs.instances.train;
    let read_s = start.elapsed().as_secs_f64();

    let standing = Standing::now(inputs.n_bytes());
    let of_text = matches!(data.maker, Some(Featurizer::Text(_)));
    let input = inputs.train_input();
    let forecast = Forecast { input, params: &params, threads: context.threads, of_text, standing };
    let needed = forecast.needed();
    let Some(folder) = folder else {
        return tree_explain::plan(args, &params, data, needed).print(context).map(|()| None);
    };
    forecast.check(context)?;
    context.note(tree_explain::summary(&params, data, needed));

    let start = Instant::now();
    let watch = Watch::new(context);
    let key = checkpoint_key(&inputs.train_input(), &params);
    let checkpoint = folder.begin(key).map_err(|e| checkpoint_error(&e))?;
    let trained = train_out_of_core(&inputs.train_input(), &params, &watch, &checkpoint);
    drop(watch);
    let trees = trained.map_err(|e| training_error(&args.data.place.train, &e))?;
    let train_s = start.elapsed().as_secs_f64();
    context.check_interrupt()?;

    let start = Instant::now();
    let training = Some(kept_parameters(&params));
    let rows = Some(&inputs.rows);
    let extras =
        Extras { maker: data.maker.as_ref(), names: data.names.as_deref(), input: Some(&data.form), training, rows };
    let create = || ContainerWriter::create(&place.model, xc_tree::KIND);
    let (mut counts, n_trees) = (WeightCounts::default(), trees.n_trees());
    model::save_created(create, extras, |writer| {
        counts = trees.write(writer).map_err(|e| packing_error(&e))?;
        Ok(())
    })?;
    let save_s = start.elapsed().as_secs_f64();
    drop_checkpoint(checkpoint, context);
    if counts.is_pruned_away() {
        context.warn(pruned_away(&counts, &params));
    }

    let metrics = judge(&place.model, &inputs.instances, judging, context)?;
    Ok(Some(Report {
        kind: "tree",
        usage: meter.usage(),
        read_s,
        train_s,
        save_s,
        metrics,
        what: format!("{}, {} weights", counted(n_trees, "tree"), counts.weights),
        further: Map::from_iter([("memory".to_owned(), json!({ "total_bytes": needed }))]),
        logged: Map::from_iter([
            ("preset".to_owned(), json!(args.preset)),
            ("parameters".to_owned(), kept_parameters(&params)),
            ("run".to_owned(), record(Some(&inputs.rows))),
        ]),
    }))
}

/// What is wrong with a model most of whose rankers have no weight, and which option is to blame.
fn pruned_away(counts: &WeightCounts, params: &TreeParams) -> String {
    let WeightCounts { nodes, bare, .. } = counts;
    let linear = &params.linear;
    let cause = match linear.max_weights {
        Some(0) => "--linear.max-weights 0 drops all".to_owned(),
        _ => format!(
            "a smaller --linear.prune-below than {} or a larger --linear.cost than {} keeps more",
            linear.prune_below, linear.cost
        ),
    };
    format!(
        "{bare} of {nodes} clusters and labels kept no weight: their scores are the same for every instance; {cause}"
    )
}

fn read_inputs(
    args: &Args,
    text: &xc_hash::text::PipelineParams,
    hold_out: Option<HoldOut>,
    context: &Context,
) -> Result<Inputs, CliError> {
    let instances = args.data.read(&[&args.label_features, &args.instance_weights], text, hold_out, context)?;
    let rows = instances.training_rows();
    let (n_read, kept) = (instances.train.len(), instances.split.as_ref().map(|split| split.kept.clone()));
    let instances = instances.parted();
    let data = &instances.train;
    let label_features = match &args.label_features {
        Some(path) => Some(read_label_features(path, data, &args.data.input, text, context)?),
        None => None,
    };
    let instance_weights = args.instance_weights.as_deref();
    let mut instance_weights =
        instance_weights.map(|path| read_numbers(path, "of 0 or more", |weight| weight >= 0.0)).transpose()?;
    let label_costs = args.label_costs.as_deref();
    let label_costs = label_costs.map(|path| read_numbers(path, "above 0", |cost| cost > 0.0)).transpose()?;
    for (numbers, path, expected, what) in [
        (&instance_weights, &args.instance_weights, n_read, "instances"),
        (&label_costs, &args.label_costs, data.labels.n_labels(), "labels"),
    ] {
        if let (Some(numbers), Some(path)) = (numbers, path)
            && numbers.len() != expected
        {
            let got = numbers.len();
            return Err(CliError::usage(format_args!(
                "{}: {got} numbers; one for each of the {expected} {what} is expected",
                path.display()
            )));
        }
    }
    if let (Some(weights), Some(kept)) = (&mut instance_weights, &kept) {
        *weights = kept.iter().map(|&row| weights[row as usize]).collect();
    }
    Ok(Inputs { instances, rows, label_features, instance_weights, label_costs })
}

/// One row a label: text goes through a pipeline of its own, which prediction does not need.
fn read_label_features(
    path: &Path,
    data: &Dataset,
    input: &InputArgs,
    text: &xc_hash::text::PipelineParams,
    context: &Context,
) -> Result<CsrMatrix, CliError> {
    let input = input.of_any_format();
    let making = Making::Fit { text, weighting: None, hold_out: None };
    let rows =
        read_labelled(path, LabelsFrom::Nowhere, None, UnknownLabels::Drop, &input, making, context)?.into_sparse();
    let (got, expected) = (rows.rows(), data.labels.n_labels());
    if got != expected {
        return Err(CliError::usage(format_args!(
            "{}: {got} rows; one for each of the {expected} labels is expected",
            path.display()
        )));
    }
    Ok(rows)
}

fn training_error(train: &Path, error: &TrainError) -> CliError {
    let line = format!("{}: {}", train.display(), chain(error));
    match error {
        TrainError::Cancelled => CliError::interrupted(),
        TrainError::Memory { .. } => CliError::missing(line),
        TrainError::Build(error) => build_error(error),
        TrainError::Checkpoint(error) => checkpoint_error(error),
        _ => CliError::usage(line),
    }
}

fn packing_error(error: &KeptError) -> CliError {
    match error {
        KeptError::Checkpoint(error) => checkpoint_error(error),
        KeptError::Build(error) => build_error(error),
        KeptError::Write(error) => model::write_error(error),
        _ => CliError::failed(chain(error)),
    }
}

fn build_error(error: &BuildError) -> CliError {
    CliError::failed(format_args!("packing the model: {}", chain(error)))
}
