//! `xc tune`: which options of a kind of model are best for some data, by trials on held-out rows.

mod outcome;
mod typed;

use crate::cmd::train;
use crate::context::Context;
use crate::error::CliError;
use crate::output;
use clap::{Arg, value_parser};
use std::path::{Path, PathBuf};
use std::time::Duration;
use typed::Typed;
use xc_buffer::Part;
use xc_metrics::Metric;
use xc_options::tuning::{Found, SearchPlan, Tuning, parse_time};

/// Tune the options of a kind of model for a data set
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(subcommand)]
    typed: Typed,
}

const HEADING: &str = "Options of the search";

/// Options of the search.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = HEADING)]
pub(crate) struct TuneArgs {
    /// Time for all trials and the final model, e.g. 90s, 20m, 1h30m; with --resume the time of earlier runs counts
    /// [default: 20m; none with --trials]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
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
    /// Folders that `xc tune --part` wrote: all parts of each round so far, in any order
    #[arg(long, value_name = "DIR", num_args = 1.., hide_short_help = true)]
    from: Vec<PathBuf>,
}

/// The option of a part, which some kinds have for their training too.
fn part() -> Arg {
    Arg::new("part").long("part").value_name("I/N").value_parser(value_parser!(Part))
}

const PART_HELP: &str = "Only train part I of N of the trials of the next round, from 0/N on, as a process of its own; with \
                         --trials. The next round, or the end of the search, takes all N with --from";

const OUTPUT_HELP: &str = "Folder for the results: best.toml, trials.jsonl, trials.svg, model; new or empty unless \
                           --resume or --restart is given";

const FRACTION_HELP: &str = "Share of the training instances in each part to evaluate on, at most 0.5: at most five parts, \
                             one after the other [default: 0.2]";

/// Kinds with options to choose, and one line about their commands.
const ABOUT: [(&str, &str); 6] = [
    ("tree", "Tune the options of a label tree for a data set"),
    ("mach", "Tune the options of MACH for a data set"),
    ("dense", "Tune the options of a network with one output per label for a data set"),
    ("uniform", "Tune the options of a network with a sparse output layer for a data set"),
    ("lns", "Tune the options of a network with negative sampling for a data set"),
    ("astra", "Tune the options of a network with hard and uniform negatives (ASTRA) for a data set"),
];

fn about(kind: &str) -> &'static str {
    ABOUT.iter().find(|(of, _)| *of == kind).map_or("", |(_, about)| about)
}

fn long_about(kind: &str) -> String {
    let about = about(kind);
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

With --part, several processes share out the trials of a round: all --trials on a third of the
instances first. --from PARTS does the rest, or with --part again the next round, as
processes of their own. All trials are then drawn at random, so that none waits for another.

Examples:
  xc tune {kind} --train train.txt --output tuned --budget 20m
  xc tune {kind} --train train.jsonl --validation dev.jsonl --output tuned --metric nDCG@5
  xc tune {kind} --train train.txt --output tuned --resume --budget 1h
  xc tune {kind} --train train.txt --trials 30 --part 0/2 --output part-0
  xc tune {kind} --train train.txt --trials 30 --part 1/2 --output part-1
  xc tune {kind} --train train.txt --trials 30 --from part-0 part-1 --output tuned
  xc train {kind} --config tuned/best.toml --train train.txt --model my.model"
    )
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<(), CliError> {
    let Typed { tune, part, args } = &args.typed;
    let mut tuning = Tuning {
        budget: tune.budget,
        trials: tune.trials,
        metric: tune.metric,
        train_model: !tune.no_model,
        from: tune.from.clone(),
        ..Tuning::new(args.training()?)
    };
    tuning.training.place.part = *part;
    output::check(Path::new("-"))?;
    if args.explain {
        return output::print(&explain(&tuning.plan(context.seed)?));
    }
    let folder = &args.place.model;
    if part.is_some() {
        context.options.refuse(&["no-model"], "a part trains none")?;
        let found = context.on_threads(|| tuning.run_part(&context.fit()))?;
        return outcome::print_part(&found, args.kind, folder, context);
    }
    let found: Found = context.on_threads(|| tuning.run(&context.fit()))?;
    outcome::draw(&found, folder)?;
    if tuning.train_model {
        let context = Context { json: false, ..context.clone() };
        train::train_once(&tuning.best(&found)?, &context)?;
    }
    outcome::print(&found, folder, context)
}

fn explain(plan: &SearchPlan) -> String {
    let SearchPlan { space, why, rungs } = plan;
    let mut text = String::from("options that are searched, the default marked *\n");
    for (choice, why) in space.choices().iter().zip(why) {
        let value =
            |(at, value): (usize, &String)| format!("{value}{}", if at == choice.default_value() { "*" } else { "" });
        let values: Vec<String> = choice.values().iter().enumerate().map(value).collect();
        text += &format!("  --{:<24} {}\n  {:26} {why}\n", choice.name(), values.join(" "), "");
    }
    text += "rungs\n";
    for rung in rungs {
        text += &format!("  {}: {:.2} of the rows are learned from\n", rung.name, rung.work);
    }
    text
}
