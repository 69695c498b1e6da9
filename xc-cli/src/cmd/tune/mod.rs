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

use crate::cmd::train::tree_args;
use crate::context::Context;
use crate::error::CliError;
use kinds::Tuned;
use std::time::Duration;
use typed::Typed;
use xc_train::metrics::Metric;

/// Find the options of a kind of model that suit some data
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(subcommand)]
    kind: Kind,
}

#[derive(clap::Subcommand, Debug)]
enum Kind {
    Tree(Box<Typed<tree_args::Args>>),
}

/// Options of the search.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Options of the search")]
pub(crate) struct TuneArgs {
    /// Time for all trials and the final model, e.g. 90s, 20m, 1h30m; that of earlier runs counts with
    /// --resume [default: 20m; none with --trials]
    #[arg(long, value_name = "TIME", value_parser = budget::parse_time)]
    budget: Option<Duration>,
    /// Options to try, the defaults among them: 2 or more. Without --budget the same seed gives the
    /// same choice on any machine
    #[arg(long, value_name = "N")]
    trials: Option<usize>,
    /// What is made as large as possible: P@k, nDCG@k, PSP@k, PSnDCG@k or recall@k, k at most 5
    #[arg(long, value_name = "METRIC", default_value = "P@1")]
    metric: Metric,
    /// Only find the options; by default a model of all training instances is trained with them, in
    /// OUTPUT/model
    #[arg(long)]
    no_model: bool,
}

/// Options of `xc train` that have no use in a search.
const NOT_TUNED: [&str; 2] = ["checkpoint", "refit"];

const OUTPUT_HELP: &str = "Folder for what is found: best.toml, trials.jsonl, trials.svg, model; new or empty unless \
                           --resume or --restart is given";

const FRACTION_HELP: &str = "Share of the training instances in each of the parts that judge, at most 0.5: five parts at \
                             most, one after the other [default: 0.2]";

fn long_about<A: Tuned>() -> String {
    let kind = A::KIND;
    let about = A::ABOUT;
    format!(
        "{about}\n
Trains with the default options, then with others, and keeps what answers held-out
instances best. Any option of `xc train {kind}` may be given: it holds for every trial
and is not searched. --explain lists the options that are, with their values.

Trials begin on a third of the training instances. The best third of them is trained on
four fifths and judged by the fifth part; the best of these by the other parts in turn
(or, with --validation, by that file). The defaults are judged by the same instances, and
win unless another trial is better by more than the standard error of the difference.

The folder --output gets best.toml (xc train {kind} --config best.toml takes it),
trials.jsonl and trials.svg (every trial), and model: trained with the best options on all
training instances, unless --no-model is given. One line is said about each trial. What
ends early goes on with --resume, also with a larger --budget or more --trials; finished
trials are not done again.

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
    }
}
