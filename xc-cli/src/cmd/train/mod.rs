//! `xc train`: one file a kind of model.

mod explain;
mod tree;
mod tree_args;
mod watch;

pub(crate) use tree_args::PrecisionName;

use crate::context::Context;
use crate::error::CliError;

/// Train a model
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(subcommand)]
    kind: Kind,
}

#[derive(clap::Subcommand, Debug)]
enum Kind {
    Tree(Box<tree_args::Args>),
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<(), CliError> {
    match &args.kind {
        Kind::Tree(args) => tree::run(args, context),
    }
}
