//! `xc tune`: which options of a kind of model are best for some data, by trials on held-out rows.

mod budget;
mod free;
mod kinds;
mod outcome;
mod rungs;
mod session;
mod spaces;
mod stored;
mod typed;

use crate::cmd::train::{astra, dense, lns, mach, tree_args, uniform};
use crate::context::Context;
use crate::error::CliError;
use kinds::Tuned;
use std::time::Duration;
use typed::Typed;
use xc_metrics::Metric;

/// Tune the options of a kind of model for a data set
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(subcommand)]
    kind: Kind,
}

#[derive(clap::Subcommand, Debug)]
enum Kind {
    Tree(Box<Typed<tree_args::Args>>),
    Mach(Box<Typed<mach::Args>>),
    Dense(Box<Typed<dense::Args>>),
    Uniform(Box<Typed<uniform::Args>>),
    Lns(Box<Typed<lns::Args>>),
    Astra(Box<Typed<astra::Args>>),
}

/// Options of the search.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Options of the search")]
pub(crate) struct TuneArgs {
    /// Time for all trials and the final model, e.g. 90s, 20m, 1h30m; with --resume the time of earlier runs counts
    /// [default: 20m; none with --trials]
    #[arg(long, value_name = "TIME", value_parser = budget::parse_time)]
    budget: Option<Duration>,
    /// Number of settings to try, the default one included: 2 or more. Without --budget the same seed gives the same
    /// choice on any machine
    #[arg(long, value_name = "N")]
    trials: Option<usize>,
    /// Metric to maximise: P@k, nDCG@k, PSP@k, PSnDCG@k or recall@k, k at most 5
    #[arg(long, value_name = "METRIC", default_value = "P@1")]
    metric: Metric,
    /// Only find the options; by default a model is then trained with them on all training instances, in OUTPUT/model
    #[arg(long)]
    no_model: bool,
}

/// Options of `xc train` that have no use in a search: trials are trained as the final model is, without
/// instances that choose an epoch.
const NOT_TUNED: [&str; 7] =
    ["checkpoint", "refit", "monitor", "keep", "patience", "patience-from", "repetitions-range"];

const OUTPUT_HELP: &str = "Folder for the results: best.toml, trials.jsonl, trials.svg, model; new or empty unless \
                           --resume or --restart is given";

const FRACTION_HELP: &str = "Share of the training instances in each part to evaluate on, at most 0.5: at most five parts, \
                             one after the other [default: 0.2]";

fn long_about<A: Tuned>() -> String {
    let kind = A::KIND;
    let about = A::ABOUT;
    format!(
        "{about}\n
Trains with the default options, then with others, and keeps those that predict held-out
instances best. Any option of `xc train {kind}` may be given: it holds for every trial
and is not searched. --explain lists the options that are searched, with their values.

Each trial begins on a third of the training instances. The best third of the trials is then
trained on four fifths and evaluated on the remaining fifth; the best of those on the other
parts in turn (or, with --validation, on that file). The defaults are evaluated on the same
instances, and win unless another trial is better by more than the standard error of the
difference.

The folder --output gets best.toml (for xc train {kind} --config best.toml), trials.jsonl
and trials.svg (every trial), and model: trained with the best options on all training
instances, unless --no-model is given. One line is printed per trial. --resume continues a
search that ended early, also with a larger --budget or more --trials; finished trials are
not repeated.

Examples:
  xc tune {kind} --train train.txt --output tuned --budget 20m
  xc tune {kind} --train train.jsonl --validation dev.jsonl --output tuned --metric nDCG@5
  xc tune {kind} --train train.txt --output tuned --resume --budget 1h
  xc train {kind} --config tuned/best.toml --train train.txt --model my.model"
    )
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<(), CliError> {
    match &args.kind {
        Kind::Tree(typed) => session::run(typed, context),
        Kind::Mach(typed) => session::run(typed, context),
        Kind::Dense(typed) => session::run(typed, context),
        Kind::Uniform(typed) => session::run(typed, context),
        Kind::Lns(typed) => session::run(typed, context),
        Kind::Astra(typed) => session::run(typed, context),
    }
}
