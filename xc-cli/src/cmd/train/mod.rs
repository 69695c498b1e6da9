//! `xc train`: one file a kind of model.

pub(super) mod astra;
mod astra_args;
mod candidate_args;
mod corpus;
mod cost;
#[cfg(test)]
mod defaults;
pub(super) mod dense;
mod explain;
pub(super) mod inputs;
mod instances;
pub(super) mod lns;
mod log;
pub(super) mod mach;
mod memory;
mod network;
mod network_announce;
mod network_args;
mod network_explain;
mod network_watch;
mod record;
mod refit;
pub(super) mod report;
mod skipgram;
pub(super) mod tree;
pub(super) mod tree_args;
mod tree_explain;
mod tree_judge;
mod tree_memory;
pub(super) mod trial;
pub(super) mod uniform;
mod watch;

use crate::context::Context;
use crate::error::CliError;

/// Train a model
#[derive(clap::Args, Debug)]
#[command(subcommand_value_name = "KIND")]
pub(crate) struct Args {
    #[command(subcommand)]
    kind: Kind,
}

#[derive(clap::Subcommand, Debug)]
enum Kind {
    Tree(Box<tree_args::Args>),
    Mach(Box<mach::Args>),
    Dense(Box<dense::Args>),
    Uniform(Box<uniform::Args>),
    Lns(Box<lns::Args>),
    Astra(Box<astra::Args>),
    Skipgram(Box<skipgram::Args>),
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<(), CliError> {
    match &args.kind {
        Kind::Tree(args) => tree::run(args, context),
        Kind::Mach(args) => mach::run(args, context),
        Kind::Dense(args) => dense::run(args, context),
        Kind::Uniform(args) => uniform::run(args, context),
        Kind::Lns(args) => lns::run(args, context),
        Kind::Astra(args) => astra::run(args, context),
        Kind::Skipgram(args) => skipgram::run(args, context),
    }
}
