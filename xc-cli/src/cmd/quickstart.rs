//! `xc quickstart`: the four steps of the main job, one after the other, on synthetic data.

use crate::context::Context;
use crate::error::CliError;
use crate::options::Options;
use crate::output;
use clap::Parser;
use std::path::PathBuf;

/// See it work: generate a small data set, train on it, predict, evaluate
///
/// Runs four commands and prints each before it runs, so that you can type them too:
///   xc generate, xc train tree, xc predict, xc evaluate
///
/// The files are written to DIR and stay there.
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// Folder for data, model and predictions
    #[arg(long, value_name = "DIR", default_value = "xc-quickstart")]
    output: PathBuf,
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<(), CliError> {
    let folder = args.output.to_str().ok_or_else(|| {
        CliError::usage(format_args!("--output {}: a name in UTF-8 is expected", args.output.display()))
    })?;
    let at = |name: &str| format!("{folder}/{name}");
    let (train, test, model, predictions) = (at("train.txt"), at("test.txt"), at("model"), at("predictions.txt"));
    let names = at("labels.txt");
    let mut training = vec!["train", "tree", "--train", &train, "--label-names", &names, "--model", &model];
    // One that was killed here.
    if args.output.join("model.checkpoint").exists() {
        training.push("--restart");
    }
    let steps: [&[&str]; 4] = [
        &["generate", "--preset", "demo", "--output", folder],
        &training,
        &["predict", "--model", &model, "--input", &test, "--top-k", "5", "--output", &predictions],
        &["evaluate", "--truth", &test, "--predictions", &predictions, "--propensity-from", &train],
    ];
    // What was typed are no options of the steps.
    let of_steps = Context { options: Options::default(), ..context.clone() };
    for step in steps {
        context.check_interrupt()?;
        if !context.json && !context.quiet {
            output::print(&format!("$ xc {}", step.join(" ")))?;
        }
        let cli = crate::Cli::try_parse_from(std::iter::once(&"xc").chain(step))
            .map_err(|e| CliError::usage(format_args!("quickstart: {e}")))?;
        cli.command.run(&of_steps)?;
    }
    Ok(())
}
