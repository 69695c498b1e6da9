//! `xc train dense`: a network with one output a label.

use super::inputs::DataArgs;
use super::neural::{NeuralWatch, Setup, training_error, within};
use super::neural_args::NeuralArgs;
use super::report::{Report, score};
use crate::context::Context;
use crate::error::CliError;
use crate::measure::Meter;
use crate::model::{self, Extras, beside};
use serde_json::{Map, json};
use std::time::Instant;
use xc_train::dense::DenseModel;

/// Train a network with one output a label
///
/// Features are summed into a vector, which goes through the hidden layers to one
/// output for each label. Weights and time grow with the number of labels: it is what
/// the systems for very many labels are compared with, and a good choice for some
/// thousands. Answers score every label.
///
/// Progress is logged to MODEL.log (log.jsonl, curve.svg, train.json). Interrupted
/// training goes on with --resume, and ends with the same bytes as if it had not been
/// interrupted.
///
/// Examples:
///   xc train dense --train train.txt --tfidf --model dense.model
///   xc train dense --train train.jsonl --validation dev.jsonl --epochs 20 --patience 2 --model dense.model
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(flatten)]
    data: DataArgs,
    #[command(flatten)]
    neural: NeuralArgs,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<(), CliError> {
    let meter = Meter::start();
    let setup = Setup::read(&args.data, &args.neural, context)?;
    let instances = &setup.instances;
    let data = &instances.train;
    let (n_features, n_labels) = (data.features.cols(), data.labels.n_labels());
    let widths: Vec<String> = setup.network.widths.iter().map(usize::to_string).collect();
    setup.announce("dense", &format!("{n_features} -> {} -> {n_labels}", widths.join(" -> ")), n_labels)?;
    args.data.prepare_checkpoint(|name| name == "state" || name.starts_with("state."), context)?;

    let start = Instant::now();
    let judged = instances.validation.as_ref().map(|v| within(&v.labels, n_labels));
    let mut dense = DenseModel::new(n_features, n_labels, setup.network.clone());
    let watch = NeuralWatch::new(context, String::new(), "labels");
    let (checkpoint, log) = (args.data.checkpoint(), beside(&args.data.model, "log"));
    let summary = setup.with_trainer(
        context.seed,
        &data.labels,
        judged.as_ref(),
        checkpoint,
        log,
        &watch,
        |trainer, train, validation| {
            dense.begin(train);
            dense.train(trainer, train, validation).map_err(|e| training_error(&args.data.train, &e))
        },
    )?;
    drop(watch);
    let train_s = start.elapsed().as_secs_f64();

    let start = Instant::now();
    let extras = Extras { maker: data.maker.as_ref(), names: data.names.as_deref(), training: Some(setup.kept()) };
    model::save_with(&args.data.model, xc_train::dense::KIND, extras, |writer| dense.write(writer))?;
    let save_s = start.elapsed().as_secs_f64();
    args.data.drop_checkpoint(context);

    let metrics = match &instances.validation {
        Some(validation) => score(instances, &dense.predict_batch(validation.features.view(), 5))?,
        None => None,
    };
    let report = Report {
        kind: "dense",
        usage: meter.usage(),
        read_s: setup.read_s,
        train_s,
        save_s,
        metrics,
        what: format!("{} parameters, {} steps", dense.network().n_values(), summary.steps),
        further: Map::from_iter([
            ("parameters".to_owned(), json!(dense.network().n_values())),
            ("steps".to_owned(), json!(summary.steps)),
            ("epochs".to_owned(), json!(summary.epochs)),
        ]),
        logged: Map::from_iter([("training".to_owned(), setup.kept())]),
    };
    report.finish(&args.data, context)
}
