//! One file a subcommand: its clap `Args` and its `run(&Args, &Context) -> Result<(), CliError>`.

mod bench;
mod blend;
mod calibrate;
mod completions;
mod convert;
mod embed;
mod evaluate;
mod explain;
mod generate;
mod index;
mod inspect;
mod merge;
mod options;
mod predict;
mod quickstart;
mod train;
mod tune;

use crate::context::Context;
use crate::described::Described;
use crate::error::CliError;

/// What `xc` can do.
#[derive(clap::Subcommand, Debug)]
pub(crate) enum Command {
    Quickstart(Described<quickstart::Args>),
    Generate(Described<generate::Args>),
    Train(Described<train::Args>),
    Tune(Described<tune::Args>),
    Predict(Described<predict::Args>),
    Evaluate(Described<evaluate::Args>),
    Explain(Described<explain::Args>),
    Embed(Described<embed::Args>),
    Index(Described<index::Args>),
    Inspect(Described<inspect::Args>),
    Merge(Described<merge::Args>),
    Blend(Described<blend::Args>),
    Calibrate(Described<calibrate::Args>),
    Convert(Described<convert::Args>),
    Bench(Described<bench::Args>),
    Completions(Described<completions::Args>),
    #[command(hide = true)]
    Options(Described<options::Args>),
}

impl Command {
    pub(crate) fn run(&self, context: &Context) -> Result<(), CliError> {
        match self {
            Self::Quickstart(args) => quickstart::run(args, context),
            Self::Generate(args) => generate::run(args, context),
            Self::Evaluate(args) => evaluate::run(args, context),
            Self::Explain(args) => explain::run(args, context),
            Self::Embed(args) => embed::run(args, context),
            Self::Index(args) => index::run(args, context),
            Self::Inspect(args) => inspect::run(args, context),
            Self::Merge(args) => merge::run(args, context),
            Self::Blend(args) => blend::run(args, context),
            Self::Calibrate(args) => calibrate::run(args, context),
            Self::Train(args) => train::run(args, context),
            Self::Tune(args) => tune::run(args, context),
            Self::Predict(args) => predict::run(args, context),
            Self::Bench(args) => bench::run(args, context),
            Self::Convert(args) => convert::run(args, context),
            Self::Completions(args) => completions::run(args, context),
            Self::Options(args) => options::run(args, context),
        }
    }
}
