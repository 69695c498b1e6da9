//! `xc train`: what is typed for each kind of model, and what is said of a run.

pub(super) mod astra;
mod astra_args;
mod candidate_args;
mod curve;
pub(super) mod dense;
mod explain;
pub(super) mod inputs;
pub(super) mod lns;
pub(super) mod mach;
mod network_args;
mod record;
mod report;
mod skipgram;
mod transformer_args;
pub(super) mod tree;
pub(super) mod uniform;
mod wide_args;

use crate::context::Context;
use crate::described::Described;
use crate::error::CliError;
use crate::measure::Meter;
use crate::stdin;
use inputs::DataArgs;
use xc_buffer::Part;
use xc_options::Training;
use xc_options::data::Files;
use xc_options::settings::Choices;
use xc_train::fit::Place;

/// Train a model
#[derive(clap::Args, Debug)]
#[command(subcommand_value_name = "KIND")]
pub(crate) struct Args {
    #[command(subcommand)]
    kind: KindArgs,
}

#[derive(clap::Subcommand, Debug)]
enum KindArgs {
    Tree(Described<tree::Args>),
    Mach(Described<mach::Args>),
    Dense(Described<dense::Args>),
    Uniform(Described<uniform::Args>),
    Lns(Described<lns::Args>),
    Astra(Described<astra::Args>),
    Skipgram(Described<skipgram::Args>),
}

/// A kind of model that learns from instances with labels.
pub(super) trait Kind {
    /// As `xc train` calls it.
    const KIND: &'static str;

    /// Files, and where the model goes.
    fn data(&self) -> &DataArgs;

    /// The files that are learned from.
    fn files(&self) -> Files;

    /// What was typed of its settings.
    fn choices(&self) -> Choices;

    /// Which part of the model is trained, where it is not the whole.
    fn part(&self) -> Option<Part> {
        None
    }

    /// The training run.
    fn training(&self) -> Result<Training, CliError> {
        let place = &self.data().place;
        let files = self.files();
        let files = Files { train: stdin::as_file(files.train, &place.model)?, ..files };
        let mut training = Training::new(Self::KIND, files, &place.model)?;
        training.place = Place { part: self.part(), ..place.place() };
        training.choices = self.choices();
        training.refit = self.data().refit.clone();
        Ok(training)
    }
}

/// Choices of several tables as one.
fn joined<'a>(parts: impl IntoIterator<Item = &'a Choices>) -> Choices {
    let mut out = Choices::default();
    parts.into_iter().for_each(|part| out.extend(part));
    out
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<(), CliError> {
    match &args.kind {
        KindArgs::Tree(args) => run_kind(&**args, context),
        KindArgs::Mach(args) => run_kind(&**args, context),
        KindArgs::Dense(args) => run_kind(&**args, context),
        KindArgs::Uniform(args) => run_kind(&**args, context),
        KindArgs::Lns(args) => run_kind(&**args, context),
        KindArgs::Astra(args) => run_kind(&**args, context),
        KindArgs::Skipgram(args) => skipgram::run(args, context),
    }
}

fn run_kind(args: &impl Kind, context: &Context) -> Result<(), CliError> {
    finish(&args.training()?, args.data().place.explain, context)
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
