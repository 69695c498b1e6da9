//! What every training run is given beside data and settings: threads, a seed, memory, and who watches.

use super::{Budget, FitError};
use std::path::Path;
use xc_buffer::parallel::in_pool;
use xc_buffer::{Cancel, Observer, Silent, Unwatched};
use xc_nn::trainer::{Monitor, TrainObserver};
use xc_tree::TreeEvent;

/// Watches a training run: hears what is said, hands out an [`Observer`] for each part that has events of its own, and may
/// cancel it ([`Cancel`]). Every method has a default that says nothing.
pub trait Watch: Cancel {
    /// Something that a person may want to know.
    fn note(&self, line: &str) {
        let _ = line;
    }

    /// Something that may surprise.
    fn warn(&self, line: &str) {
        let _ = line;
    }

    /// Who follows the training of trees.
    fn of_trees(&self) -> Box<dyn Observer<TreeEvent> + '_> {
        Box::new(Unwatched(self))
    }

    /// Who follows the training of a network.
    ///
    /// # Errors
    /// A log that cannot be begun.
    fn of_network<'o>(&'o self, run: &NetworkRun<'_>) -> Result<Box<TrainObserver<'o>>, FitError> {
        let _ = run;
        Ok(Box::new(Unwatched(self)))
    }

    /// Work whose end is not known has begun: what it is called, and a call for each part that is done.
    fn task(&self, what: &str) -> Box<dyn FnMut(u64) + '_> {
        let _ = what;
        Box::new(|_| ())
    }

    /// Finished parts of the training are kept in this folder.
    fn resumable(&self, checkpoint: &Path) {
        let _ = checkpoint;
    }

    /// Finished trials of a search are kept in this folder.
    fn resumable_search(&self, trials: &Path) {
        let _ = trials;
    }

    /// Much memory was freed: an allocator may give it back to the system.
    fn released(&self) {}
}

/// A network about to be trained.
#[derive(Clone, Copy, Debug)]
pub struct NetworkRun<'a> {
    /// What it is called in a line: nothing, or `repetition 3: `.
    pub what: &'a str,
    /// What its outputs stand for: `labels`, `buckets`.
    pub outputs: &'static str,
    /// The folder of its log, beside the model; nothing where only the key of a checkpoint is
    /// asked for, and where the model stays in memory.
    pub log: Option<&'a Path>,
    /// Steps between two lines of a log.
    pub log_every: u64,
    /// What is to improve.
    pub monitor: Monitor,
    /// Whether the validation chooses the epoch whose parameters it has at the end.
    pub selects: bool,
}

impl Watch for Silent {}

/// Threads, seed, memory and observer of a training run.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// Threads that are foreseen; the work is done by the pool that it is in.
    pub threads: usize,
    /// Seed of all randomness.
    pub seed: u64,
    /// Bytes that may be resident, where a limit was given.
    pub max_memory: Option<u64>,
    /// The same, or what is free.
    pub budget: Budget,
    /// Who watches.
    pub observer: &'a dyn Watch,
    /// Whether it is only to be said what would be done.
    pub(super) plans: bool,
}

impl std::fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { threads, seed, max_memory, budget, .. } = self;
        let mut out = f.debug_struct("Context");
        out.field("threads", threads).field("seed", seed).field("max_memory", max_memory).field("budget", budget);
        out.finish_non_exhaustive()
    }
}

impl<'a> Context<'a> {
    /// Seed 0, memory as far as it is free, and the threads of the pool that the caller is in, else those of the
    /// machine that the process may use.
    pub fn new(observer: &'a dyn Watch) -> Self {
        let threads = match in_pool() {
            true => rayon::current_num_threads(),
            false => std::thread::available_parallelism().map_or(1, usize::from),
        };
        Self { threads, seed: 0, max_memory: None, budget: Budget::new(None), observer, plans: false }
    }

    /// With another seed.
    pub fn with_seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// With another number of threads.
    pub fn with_threads(self, threads: usize) -> Self {
        Self { threads, ..self }
    }

    /// With a limit on resident memory, in bytes.
    pub fn with_max_memory(self, bytes: u64) -> Self {
        Self { max_memory: Some(bytes), budget: Budget::new(Some(bytes)), ..self }
    }

    /// The same with another observer.
    #[must_use]
    pub fn watched_by<'o>(&self, observer: &'o dyn Watch) -> Context<'o> {
        Context { observer, ..*self }
    }

    /// For a run that is only planned: what would be done is said, and nothing is refused for memory.
    #[must_use]
    pub fn planning(self) -> Self {
        Self { plans: true, ..self }
    }

    /// Tells the observer something that a person may want to know.
    pub fn note(&self, line: impl std::fmt::Display) {
        self.observer.note(&line.to_string());
    }

    /// Tells it something that may surprise.
    pub fn warn(&self, line: impl std::fmt::Display) {
        self.observer.warn(&line.to_string());
    }

    /// A safe point: a run that was cancelled ends here.
    ///
    /// # Errors
    /// It was cancelled.
    pub fn check_interrupt(&self) -> Result<(), FitError> {
        if self.observer.cancelled() { Err(FitError::interrupted()) } else { Ok(()) }
    }

    /// Does work in the pool that the caller is in, else in one of its own.
    ///
    /// # Errors
    /// Threads cannot be started, or what the work says.
    pub fn on_threads<T: Send>(&self, work: impl FnOnce() -> Result<T, FitError> + Send) -> Result<T, FitError> {
        if in_pool() {
            return work();
        }
        let pool = rayon::ThreadPoolBuilder::new().num_threads(self.threads).build();
        let pool = pool.map_err(|e| FitError::failed(format_args!("cannot start {} threads: {e}", self.threads)))?;
        pool.install(work)
    }
}
