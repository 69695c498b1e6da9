//! One file a subcommand: its clap `Args` and its `run(&Args, &Context) -> Result<(), CliError>`.

mod completions;
mod generate;
mod inspect;

use crate::context::Context;
use crate::error::CliError;

/// What `xc` can do.
#[derive(clap::Subcommand, Debug)]
pub(crate) enum Command {
    Generate(generate::Args),
    Inspect(inspect::Args),
    Completions(completions::Args),
}

impl Command {
    pub(crate) fn run(&self, context: &Context) -> Result<(), CliError> {
        match self {
            Self::Generate(args) => generate::run(args, context),
            Self::Inspect(args) => inspect::run(args, context),
            Self::Completions(args) => completions::run(args, context),
        }
    }
}
