//! `xc train`: what is typed for each kind of model, and what is said of a run.

mod about;
mod curve;
mod explain;
mod inputs;
mod kind;
mod record;
mod report;

pub(super) use kind::{KindArgs, command_of, typed, with_kinds};

use crate::context::Context;
use crate::error::CliError;
use crate::measure::Meter;
use xc_options::Training;

/// Train a model
#[derive(clap::Args, Debug)]
#[command(subcommand_value_name = "KIND")]
pub(crate) struct Args {
    #[command(subcommand)]
    kind: KindArgs,
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<(), CliError> {
    finish(&args.kind.training()?, args.kind.explain, context)
}

/// Trains, or explains, and says what came of it.
fn finish(training: &Training, explain: bool, context: &Context) -> Result<(), CliError> {
    let fit = context.fit();
    if explain {
        training.second(&fit)?;
        return explain::print(context.on_threads(|| training.explain(&fit))?, context);
    }
    let refit = training.second(&fit)?;
    if !refit.as_ref().is_some_and(|refit| refit.is_under_way) {
        train_once(training, context)?;
    }
    refit.map_or(Ok(()), |refit| train_once(&refit.training(training)?, context))
}

/// One run: trains, saves, and says how good the model is.
pub(super) fn train_once(training: &Training, context: &Context) -> Result<(), CliError> {
    let meter = Meter::start();
    let report = context.on_threads(|| training.train(&context.fit()))?;
    report::finish(&report, &meter.usage(), &training.source, context)
}
