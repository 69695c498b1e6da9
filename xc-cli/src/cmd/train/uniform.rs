//! `xc train uniform`: a network with a sparse output layer.

use super::explain::seen_labels;
use super::given::{self, GivenSets, Rowset};
use super::neural::{Given, Learning, NeuralWatch, training_error, warn_of_long_rows, within};
use super::report::{Report, score_against};
use super::uniform_args::params_error;
use super::uniform_groups;
use super::uniform_memory::{Forecast, Settings};
use crate::context::{Context, format_bytes};
use crate::error::CliError;
use crate::measure::Meter;
use crate::model::{self, Extras, beside};
use serde_json::{Map, Value, json};
use std::time::Instant;
use xc_train::uniform::{InputKind, KIND, UniformModel, UniformParams, UniformScratch, Wiring};
use xc_train::{Features, Loss};

pub(super) use super::uniform_args::Args;

/// The paper's rate of Adam.
const ADAM_RATE: f64 = 1e-3;

pub(super) fn run(args: &Args, context: &Context) -> Result<(), CliError> {
    let meter = Meter::start();
    let learning = Learning::new(&args.neural, ADAM_RATE, context)?;
    if learning.params.clip_norm.is_some() && args.layer.groups.is_some() {
        return Err(CliError::usage(
            "--clip-norm, --groups: a step whose gradients are clipped learns labels alone; one of the two is wanted",
        ));
    }
    // What depends on no data is refused before any is read: the widest vectors, no label.
    let kind = if args.features.is_some() { InputKind::Dense } else { InputKind::Sparse };
    args.layer.fits(kind)?;
    args.params(kind, context.seed).check(usize::MAX, 0).map_err(|e| params_error(&e))?;
    let text = args.data.text.params()?;
    args.data.check_model()?;
    let start = Instant::now();
    let given = given::read(&args.data, args.features.as_ref(), args.validation_features.as_ref(), &text, context)?;
    let read_s = start.elapsed().as_secs_f64();
    let data = &given.train;
    let kind = match data.rows {
        Rowset::Sparse(_) => InputKind::Sparse,
        Rowset::Vectors(_) => InputKind::Dense,
    };
    args.layer.fits(kind)?;
    let params = args.params(kind, context.seed);
    let (n_features, n_labels) = (data.features().width(), data.labels.n_labels());
    params.check(n_features, n_labels).map_err(|e| params_error(&e))?;
    let plan = Plan { learning: &learning, params: &params, given: &given, n_features, n_labels };
    let memory = plan.announce()?;
    args.data.prepare_checkpoint(|name| name == "state" || name.starts_with("state."), context)?;

    let start = Instant::now();
    let judged = given.validation.as_ref().map(|v| within(&v.labels, n_labels));
    let others = given.validation.as_ref().zip(judged.as_ref());
    let others = others.map(|(set, targets)| Given { features: set.features(), targets });
    let mut uniform = UniformModel::new(n_features, n_labels, params.clone()).map_err(|e| params_error(&e))?;
    let watch = NeuralWatch::new(context, String::new(), "labels");
    let (uniform, summary) = learning.with_trainer(
        params.loss,
        context.seed,
        Given { features: data.features(), targets: &data.labels },
        others,
        args.data.checkpoint(),
        beside(&args.data.model, "log"),
        &watch,
        |trainer, train, validation| {
            if params.seeks_directions() {
                context.note(format_args!("first vectors: leading directions of {} rows", train.len()));
            }
            uniform.begin(train, trainer.observer).map_err(|e| training_error(&args.data.train, &e))?;
            let done = match params.groups {
                Some(n) => {
                    context.note(format_args!("groups: {n_labels} labels in {n} groups at most"));
                    let of = uniform_groups::groups(data.features(), &data.labels, train.rows(), n, context.seed)?;
                    uniform.train_in_groups(of, trainer, train, validation)
                }
                None => uniform.train(trainer, train, validation).map(|summary| (uniform, summary)),
            };
            done.map_err(|e| training_error(&args.data.train, &e))
        },
    )?;
    drop(watch);
    let train_s = start.elapsed().as_secs_f64();

    let start = Instant::now();
    let extras = Extras { maker: data.maker.as_ref(), names: data.names.as_deref(), training: Some(learning.kept()) };
    model::save_with(&args.data.model, KIND, extras, |writer| uniform.write(writer))?;
    let save_s = start.elapsed().as_secs_f64();
    args.data.drop_checkpoint(context);

    let metrics = match &given.validation {
        Some(set) => {
            let answers = uniform.predict_batch(set.features(), 5, &mut UniformScratch::default());
            Some(score_against(&data.labels, &set.labels, &answers)?)
        }
        None => None,
    };
    let n_values = uniform.network().n_values();
    let report = Report {
        kind: "uniform",
        usage: meter.usage(),
        read_s,
        train_s,
        save_s,
        metrics,
        what: format!("{n_values} parameters, {} steps", summary.steps),
        further: Map::from_iter([
            ("parameters".to_owned(), json!(n_values)),
            ("steps".to_owned(), json!(summary.steps)),
            ("epochs".to_owned(), json!(summary.epochs)),
            ("memory".to_owned(), memory),
        ]),
        logged: Map::from_iter([("training".to_owned(), learning.kept())]),
    };
    report.finish(&args.data, context)
}

/// A training that is about to begin.
struct Plan<'a> {
    learning: &'a Learning<'a>,
    params: &'a UniformParams,
    given: &'a GivenSets,
    n_features: usize,
    n_labels: usize,
}

impl Plan<'_> {
    /// Refuses what does not fit, and says what is going to happen. Gives the estimate for the report.
    fn announce(&self) -> Result<Value, CliError> {
        let Self { learning, params, given, n_features, n_labels } = *self;
        let (context, data) = (learning.context, &given.train);
        let sets = || std::iter::once(&given.train).chain(&given.validation);
        let (data_bytes, mapped) = (sets().map(|s| s.n_bytes()).sum(), sets().map(|s| s.mapped_bytes()).sum());
        let settings =
            Settings { params: params.clone(), keep: learning.params.keep, batch_size: learning.params.batch_size };
        let forecast = Forecast {
            n_features,
            n_labels,
            n_moments: learning.optimizer.n_moments(),
            validates: learning.validates(given.validation.is_some()),
            clips: learning.params.clip_norm.is_some(),
            data_bytes,
            grouping_bytes: params.groups.map_or(0, |_| uniform_groups::n_bytes(data.features(), &data.labels)),
        };
        forecast.check(&settings, context)?;
        let (memory, total) = (forecast.memory(&settings), forecast.total(&settings));
        let mut layers: Vec<String> =
            std::iter::once(n_features).chain(params.widths.clone()).map(|w| w.to_string()).collect();
        layers.extend(params.intermediate.map(|h| h.to_string()));
        let (what, wired) = match (params.input, params.wiring) {
            (input, Wiring::Dense) => (input, "all units a label".to_owned()),
            (input, wiring) => {
                let how = if wiring == Wiring::Uniform { "" } else { " on average" };
                (input, format!("{} connections a label{how}, {}", params.connections, params.weights.name()))
            }
        };
        context.note(format_args!(
            "train uniform: {} instances, {n_features} {}, {n_labels} labels; {} -> {n_labels}, {wired}; loss {}",
            data.labels.len(),
            if what == InputKind::Sparse { "features" } else { "values each" },
            layers.join(" -> "),
            params.loss.name(),
        ));
        let more = if mapped > 0 {
            format!("; {} of vectors stay in their files", format_bytes(mapped))
        } else {
            String::new()
        };
        context.note(format_args!("memory: about {}: {}{more}", format_bytes(total), forecast.parts(&settings)));
        if let Features::Sparse(rows) = data.features() {
            warn_of_long_rows(rows, context);
        }
        let unseen = n_labels - seen_labels(&data.labels);
        if unseen > 0 {
            context.note(format_args!(
                "{unseen} of {n_labels} labels have no training instance: they are taught to be false everywhere"
            ));
        }
        if params.loss == Loss::Bce && params.negatives.is_none() && params.wiring != Wiring::Dense {
            context.note("bce has a gradient for every label: an epoch takes longer than with squared-hinge");
        }
        Ok(json!({
            "total_bytes": total,
            "parameters_bytes": memory.parameters,
            "moments_bytes": memory.moments,
            "best_bytes": memory.best,
            "buffers_bytes": memory.buffers,
            "data_bytes": data_bytes,
            "mapped_bytes": mapped,
        }))
    }
}
