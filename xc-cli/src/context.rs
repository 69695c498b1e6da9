//! What every command gets: the common options, resolved.

use crate::allocator::give_back_small_arrays;
use crate::bytes::parse_bytes;
use crate::error::{CliError, chain, one_line};
use crate::help::is_refused;
use crate::interrupt;
use crate::memory::{self, Budget};
use crate::options::Options;
use crate::progress::{Form, Progress, Task};
use crate::watch::{Log, NetworkWatch, TreeWatch};
use crate::whole_stdin;
use clap::Args;
use std::io::Write;
use std::path::{Path, PathBuf};
use xc_buffer::{Cancel, Observer};
use xc_nn::trainer::TrainObserver;
use xc_train::fit::{self, FitError, NetworkRun};
use xc_tree::TreeEvent;

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
    /// Report as JSON on stdout, and an error as JSON on stderr: {"error", "exit_code"}
    #[arg(long, global = true, help_heading = "Common options")]
    pub(crate) json: bool,
    /// Read every byte of the model and compare it with the hashes stored when it was saved, which takes the time of
    /// reading it; models below 8 MiB always are
    #[arg(long, global = true, help_heading = "Common options")]
    pub(crate) verify: bool,
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
    /// Whether models are compared with their hashes.
    pub(crate) verify: bool,
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
        memory::watch(budget);
        Ok(Self {
            threads,
            seed: args.seed,
            max_memory: args.max_memory,
            budget,
            json: args.json,
            quiet: args.quiet,
            verify: args.verify,
            progress: Progress::choose(args.progress, args.quiet),
            options,
        })
    }

    /// Does work on the threads of the pool: the library makes no pool, and outside of one it
    /// answers on one thread.
    pub(crate) fn on_threads<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        rayon::scope(|_| work())
    }

    /// A line for a person, on stderr.
    pub(crate) fn note(&self, line: impl std::fmt::Display) {
        if !self.quiet {
            let _ = writeln!(std::io::stderr(), "xc: {}", said(&line));
        }
    }

    /// A line about something that may surprise, on stderr.
    pub(crate) fn warn(&self, line: impl std::fmt::Display) {
        if !self.quiet {
            let _ = writeln!(std::io::stderr(), "xc: warning: {}", said(&line));
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
        Ok(self.budget.check(what, needed, |_| None)?)
    }
}

impl Context {
    /// What the library is given of it.
    pub(crate) fn fit(&self) -> fit::Context<'_> {
        let Self { threads, seed, max_memory, budget, .. } = *self;
        let mut of = fit::Context::new(self).with_threads(threads).with_seed(seed);
        (of.max_memory, of.budget) = (max_memory, budget);
        of
    }
}

impl Cancel for Context {
    fn cancelled(&self) -> bool {
        interrupt::interrupted()
    }
}

impl fit::Watch for Context {
    fn note(&self, line: &str) {
        Self::note(self, line);
    }

    fn warn(&self, line: &str) {
        Self::warn(self, line);
    }

    fn of_trees(&self) -> Box<dyn Observer<TreeEvent> + '_> {
        Box::new(TreeWatch::new(self))
    }

    fn of_network<'o>(&'o self, run: &NetworkRun<'_>) -> Result<Box<TrainObserver<'o>>, FitError> {
        let watch = NetworkWatch::new(self, run);
        Ok(match run.log {
            Some(folder) => {
                let log = Log::open(folder, run.log_every, run.monitor, self)?;
                Box::new((watch, log))
            }
            None => Box::new(watch),
        })
    }

    fn task(&self, what: &str) -> Box<dyn FnMut(u64) + '_> {
        let task = self.progress.count(what);
        Box::new(move |done| task.advance(done))
    }

    fn resumable(&self, checkpoint: &Path) {
        interrupt::resumable(checkpoint.to_owned());
    }

    fn resumable_search(&self, trials: &Path) {
        interrupt::resumable_search(trials.to_owned());
    }

    fn released(&self) {
        give_back_small_arrays();
    }
}

/// A message as one line.
fn said(line: &impl std::fmt::Display) -> String {
    one_line(&whole_stdin::named(&line.to_string()))
}
