//! `xc`: extreme multi-label classification from the command line.
//!
//! Each subcommand is in its own file under `cmd/` with a clap `Args` and a `run`. A command
//! works in three steps: what was typed (clap), what it means (everything is opened, resolved and
//! checked, and whatever can be refused is refused), and the work itself. Data goes to stdout,
//! everything else to stderr, and an error is one line that begins with `xc: error:`.

#![deny(unsafe_code)]

mod allocator;
mod answer;
mod answer_file;
mod bytes;
mod closed;
mod cmd;
mod config;
mod context;
mod data;
mod described;
mod device;
mod error;
mod help;
mod interrupt;
mod mapped;
mod measure;
mod memory;
mod model;
mod named;
mod options;
mod output;
mod progress;
mod settings;
mod short_help;
mod similar;
mod stdin;
mod synth;
mod usage;
mod version;
mod watch;
mod whole_stdin;
mod written;

use clap::{CommandFactory, FromArgMatches, Parser};
use context::{CommonArgs, Context};
use described::Scope;
use error::CliError;
use options::Options;
use serde_json::json;
use std::io::Write;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

const LONG_ABOUT: &str = "\
Extreme multi-label classification: sparse features or text in, the best few of very many labels out.

Try it:            xc quickstart
Train a model:     xc train tree --train train.txt --model my.model
Predict labels:    xc predict --model my.model --input test.txt --top-k 5 --output predictions.txt
Score predictions: xc evaluate --truth test.txt --predictions predictions.txt

Data goes to stdout; progress, notes and errors go to stderr.
Exit codes: 0 success; 1 failure during the work (disk full, output not writable);
2 faulty file, path or option; 3 missing feature or memory; 129 ended by SIGHUP, 130 by Ctrl-C,
143 by SIGTERM. With --json, reports and errors are JSON. Build: xc --version --verbose";

#[derive(Parser)]
#[command(
    name = "xc",
    version,
    about = "Extreme multi-label classification: sparse features or text in, ranked labels out",
    long_about = LONG_ABOUT,
    max_term_width = 100,
    subcommand_required = true,
    arg_required_else_help = true
)]
struct Cli {
    #[command(flatten)]
    common: CommonArgs,
    #[command(subcommand)]
    command: cmd::Command,
}

fn main() -> ExitCode {
    allocator::give_back_large_arrays();
    end_panics_with_one_line();
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            if let Some(line) = error.line() {
                // Nothing can be done when stderr itself is gone.
                let _ = match reports_as_json() {
                    true => writeln!(std::io::stderr(), "{}", json!({ "error": line, "exit_code": error.exit_code() })),
                    false => writeln!(std::io::stderr(), "xc: error: {line}"),
                };
            }
            ExitCode::from(error.exit_code())
        }
    }
}

/// Whether `--json` was typed: what is refused before options are understood is said in the form that was asked for, too.
fn reports_as_json() -> bool {
    std::env::args_os().skip(1).take_while(|word| word != "--").any(|word| word == "--json")
}

fn run() -> Result<(), CliError> {
    interrupt::install();
    mapped::end_with_a_line();
    let typed: Vec<_> = std::env::args_os().collect();
    if version::was_asked(&typed)? {
        return Ok(());
    }
    let mut root = help::arrange(described::within(Scope::Typed(typed.clone()), Cli::command));
    let arguments = config::insert_config_file(&root, typed)?;
    let matches = match root.try_get_matches_from_mut(&arguments.all) {
        Ok(matches) => matches,
        // Help, and what is wrong, may be about commands that were not typed.
        Err(_) => return report_usage(&arguments),
    };
    let cli = Cli::from_arg_matches(&matches).map_err(|e| CliError::usage(e.to_string()))?;
    xc_buffer::Isa::from_env().map_err(|e| CliError::usage(e.to_string()))?;
    let named = written::named(&root, &matches, &arguments);
    written::refuse_overwriting(&named).map_err(|e| arguments.located(e))?;
    let options = Options::new(&root, &matches, &arguments);
    let command = arguments.command_path();
    let command = command.strip_prefix("xc ").unwrap_or_default();
    let context = Context::new(&cli.common, command, options).map_err(|e| arguments.located(e))?;
    let outcome = cli.command.run(&context).map_err(|e| with_way_out(arguments.located(e), &named));
    whole_stdin::forget();
    outcome
}

/// What a full disk says, on Linux, macOS and Windows, and a full quota.
const FULL: [&str; 3] = ["No space left on device", "There is not enough space on the disk", "Disk quota exceeded"];

/// The way out of what an error names: the file that may be meant by one that is not there; what a full disk left.
fn with_way_out(error: CliError, named: &[written::Named]) -> CliError {
    let Some(line) = error.line() else { return error };
    if FULL.iter().any(|full| line.contains(full)) {
        return error.and(match interrupt::has_parts() {
            true => "what is finished is kept: make room and go on with --resume",
            false => "nothing was replaced: make room and repeat the command",
        });
    }
    let read = named.iter().filter(|named| !named.is_written && line.contains(&*named.path.to_string_lossy()));
    match read.into_iter().find_map(|named| similar::nearest_file(&named.path)) {
        Some(near) => error.and(format_args!("a similar one is {}", near.display())),
        None => error,
    }
}

/// Says what clap has to say of arguments that it does not take: with all commands described.
fn report_usage(arguments: &config::Arguments) -> Result<(), CliError> {
    let mut root = help::arrange(described::within(Scope::Help(arguments.all.clone()), Cli::command));
    match root.try_get_matches_from_mut(&arguments.all) {
        Ok(_) => Err(CliError::usage("arguments that are taken only while all commands are described")),
        Err(error) => usage::report(&error, &root, arguments),
    }
}

/// A panic is a defect of the program, or of a tokenizer's file that makes the library of tokenizers panic: it is said in one line,
/// once, without a backtrace unless one was asked for, and ends the program, whose release does not unwind.
fn end_panics_with_one_line() {
    static REPORTED: AtomicBool = AtomicBool::new(false);
    let default = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if std::env::var_os("RUST_BACKTRACE").is_some_and(|v| v != "0") {
            default(info);
        }
        while REPORTED.swap(true, Ordering::Relaxed) {
            // Another thread is about to end the program.
            std::thread::park();
        }
        let payload = info.payload();
        let text = payload.downcast_ref::<&str>().copied().or_else(|| payload.downcast_ref::<String>().map(|s| &**s));
        let what = text.unwrap_or("a panic without a text").replace('\n', " ");
        let place = info.location().map(|l| format!(" at {}:{}", l.file(), l.line())).unwrap_or_default();
        if let Some(file) = xc_model::tokens::tokenizer_at_work() {
            let file = error::one_line(&file.display().to_string());
            let _ =
                writeln!(std::io::stderr(), "xc: error: {file}: the library of tokenizers fails at it{place}: {what}");
            #[expect(clippy::exit, reason = "nothing above could say it")]
            std::process::exit(2);
        }
        let _ = writeln!(
            std::io::stderr(),
            "xc: error: internal error{place}: {what} (a defect of xc, unless another program wrote to a model or data file \
             while it was open)"
        );
        #[expect(clippy::exit, reason = "nothing above could say it")]
        std::process::exit(1);
    }));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_definition_is_consistent() {
        help::arrange(Cli::command()).debug_assert();
    }
}
