//! What every command gets: the common options, resolved.

use crate::bytes::parse_bytes;
use crate::error::{CliError, chain, one_line};
use crate::help::is_refused;
use crate::interrupt;
use crate::memory::Budget;
use crate::options::Options;
use crate::progress::{Form, Progress, Task};
use clap::Args;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Options that every command takes.
#[derive(Args, Debug)]
pub(crate) struct CommonArgs {
    /// Number of threads [default: all of the machine]; every command takes it
    #[arg(long, global = true, value_name = "N", help_heading = "Common options")]
    pub(crate) threads: Option<usize>,
    /// Seed of all randomness; the same seed gives the same bytes at any number of threads; every command takes it
    #[arg(long, global = true, value_name = "S", default_value_t = 0, help_heading = "Common options")]
    pub(crate) seed: u64,
    /// Maximum resident memory, e.g. 8GiB or 500M; work that would need more is refused (exit code 3) [default: what is
    /// free]
    ///
    /// The limit applies to what the system reports as resident, including mapped files while they are touched. Work
    /// expected to need more is refused before it begins, naming an option that would help; work that turns out to need
    /// more ends with exit code 3, and --resume continues a training run from its last finished part. Below 24 MiB, of
    /// which the program itself takes about half, only the estimate counts.
    #[arg(long, global = true, value_name = "BYTES", value_parser = parse_bytes, help_heading = "Common options")]
    pub(crate) max_memory: Option<u64>,
    /// Report as JSON on stdout
    #[arg(long, global = true, help_heading = "Common options")]
    pub(crate) json: bool,
    /// How progress is shown on stderr; JSON: {"event": "progress", "task", "done", "total", "elapsed_s"}, total null
    /// if unknown, and one at the end of each task
    #[arg(long, global = true, value_name = "FORM", default_value = "auto", help_heading = "Common options")]
    pub(crate) progress: Form,
    /// No progress, notes or warnings; errors are still printed
    #[arg(long, global = true, help_heading = "Common options")]
    pub(crate) quiet: bool,
    /// Read options from a TOML file; options on the command line override the file
    ///
    /// Names are those of the options, nested ones as tables: `top-k = 5`, `[tree]` and below it
    /// `branching = 32` for `--tree.branching 32`. A switch is `true`.
    #[arg(long, global = true, value_name = "FILE.toml", help_heading = "Common options")]
    pub(crate) config: Option<PathBuf>,
}

/// The common options, resolved; the thread pool is built.
#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) threads: usize,
    pub(crate) seed: u64,
    pub(crate) max_memory: Option<u64>,
    pub(crate) budget: Budget,
    pub(crate) json: bool,
    pub(crate) quiet: bool,
    pub(crate) progress: Progress,
    /// What was given, of the options of the command.
    pub(crate) options: Options,
}

impl Context {
    /// Resolves the common options of a command.
    ///
    /// # Errors
    /// One that the command has no use for, or a number of threads that cannot be started.
    pub(crate) fn new(args: &CommonArgs, command: &str, options: Options) -> Result<Self, CliError> {
        options.refuse_if(|name| is_refused(command, name), format_args!("`xc {command}` has no use for it"))?;
        let available = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = args.threads.unwrap_or(available);
        if threads == 0 || threads > 4096 {
            return Err(CliError::usage(format_args!("--threads {threads}: between 1 and 4096 are expected")));
        }
        if args.json {
            crate::output::check(Path::new("-"))?;
        }
        rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build_global()
            .map_err(|e| CliError::failed(format_args!("cannot start {threads} threads: {}", chain(&e))))?;
        let budget = Budget::new(args.max_memory);
        budget.watch();
        Ok(Self {
            threads,
            seed: args.seed,
            max_memory: args.max_memory,
            budget,
            json: args.json,
            quiet: args.quiet,
            progress: Progress::choose(args.progress, args.quiet),
            options,
        })
    }

    /// The same for work that is part of other work: it says nothing, on stderr or as JSON.
    pub(crate) fn silent(&self) -> Self {
        Self { quiet: true, json: false, progress: Progress::Quiet, ..self.clone() }
    }

    /// Does work on the threads of the pool: the library makes no pool, and outside of one it
    /// answers on one thread.
    pub(crate) fn on_threads<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        rayon::scope(|_| work())
    }

    /// A line for a person, on stderr.
    pub(crate) fn note(&self, line: impl std::fmt::Display) {
        if !self.quiet {
            let _ = writeln!(std::io::stderr(), "xc: {}", one_line(&line.to_string()));
        }
    }

    /// A line about something that may surprise, on stderr.
    pub(crate) fn warn(&self, line: impl std::fmt::Display) {
        if !self.quiet {
            let _ = writeln!(std::io::stderr(), "xc: warning: {}", one_line(&line.to_string()));
        }
    }

    /// Starts a task of `total` steps.
    pub(crate) fn task(&self, what: &str, total: u64) -> Task {
        self.progress.task(what, total)
    }

    /// A safe point: after Ctrl-C the command ends here.
    pub(crate) fn check_interrupt(&self) -> Result<(), CliError> {
        if interrupt::interrupted() { Err(CliError::interrupted()) } else { Ok(()) }
    }

    /// Refuses (exit code 3) work that would need more than `--max-memory`, or, without it, more than
    /// is free; `what` names the work.
    pub(crate) fn foresee_memory(&self, what: &str, needed: u64) -> Result<(), CliError> {
        self.budget.check(what, needed, |_| None)
    }
}
