//! Long work on a thread of its own, while Python's thread waits: Ctrl-C and callbacks reach it there.

use crate::error::{defect, guarded};
use crate::json::to_python;
use pyo3::prelude::*;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use xc_ann::BuildEvent;
use xc_buffer::{Cancel, Observer};
use xc_sparse::rank::RankedBatch;
use xc_train::fit::{self, FitError, NetworkRun};
use xc_train::xc_nn::trainer::{TrainEvent, TrainObserver};
use xc_train::xc_tree::TreeEvent;

/// How long Python's thread waits before it looks for signals.
const WAIT: Duration = Duration::from_millis(20);
/// Time between two deliveries to a callback.
const BETWEEN: Duration = Duration::from_millis(100);
/// Events that wait to be delivered: of more the oldest is lost.
const MOST_WAITING: usize = 1000;
/// Points of a curve; of more every second one is dropped.
const MOST_POINTS: usize = 20_000;

/// Follows work for Python.
#[derive(Default)]
pub(crate) struct Watch {
    stop: AtomicBool,
    waiting: Mutex<VecDeque<Value>>,
    curve: Mutex<Curve>,
}

/// Losses and metrics over the steps of a network.
#[derive(Clone, Debug, Default)]
pub(crate) struct Curve {
    pub(crate) training: Vec<(f64, f64)>,
    pub(crate) validation: Vec<(f64, f64)>,
    pub(crate) metrics: Vec<(f64, f64)>,
    pub(crate) metric: String,
    /// Steps that share a point of `training`, and the sum of their losses so far.
    every: u64,
    sum: (f64, u64),
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Watch {
    fn push(&self, event: Value) {
        let mut waiting = locked(&self.waiting);
        if waiting.len() == MOST_WAITING {
            waiting.pop_front();
        }
        waiting.push_back(event);
    }

    /// Only the latest event of its kind is of interest.
    fn replace(&self, event: Value) {
        let mut waiting = locked(&self.waiting);
        match waiting.back_mut() {
            Some(last) if last["event"] == event["event"] => *last = event,
            _ => waiting.push_back(event),
        }
    }

    /// Asks the work to stop.
    pub(crate) fn cancel(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// The curve of the network that was trained last.
    pub(crate) fn curve(&self) -> Curve {
        locked(&self.curve).clone()
    }

    /// Tells a callback where finished work is kept, of work that an interruption has ended.
    fn tell_checkpoint(&self, callback: &Bound<'_, PyAny>) {
        let waiting = std::mem::take(&mut *locked(&self.waiting));
        for event in waiting.iter().filter(|event| event["event"] == "checkpoint") {
            // The interruption is what is raised.
            let _ = to_python(callback.py(), event).and_then(|event| callback.call1((event,)));
        }
    }

    /// Hands waiting events to a callback; notes and warnings go to it too.
    fn deliver(&self, py: Python<'_>, callback: &Bound<'_, PyAny>) -> PyResult<()> {
        let waiting = std::mem::take(&mut *locked(&self.waiting));
        for event in waiting {
            callback.call1((to_python(py, &event)?,))?;
        }
        Ok(())
    }
}

impl Cancel for Watch {
    fn cancelled(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

impl fit::Watch for Watch {
    fn note(&self, line: &str) {
        self.push(json!({ "event": "note", "line": line }));
    }

    fn warn(&self, line: &str) {
        self.push(json!({ "event": "warning", "line": line }));
    }

    fn of_trees(&self) -> Box<dyn Observer<TreeEvent> + '_> {
        Box::new(OfTrees { watch: self, done: Mutex::default() })
    }

    fn of_network<'o>(&'o self, run: &NetworkRun<'_>) -> Result<Box<TrainObserver<'o>>, FitError> {
        let metric = match run.monitor {
            xc_train::xc_nn::trainer::Monitor::Metric(metric) => metric,
            _ => xc_metrics::Metric::Precision(1),
        };
        let every = run.log_every.max(1);
        *locked(&self.curve) = Curve { every, metric: metric.to_string(), ..Curve::default() };
        let what = run.what.trim_end_matches([' ', ':']).to_owned();
        Ok(Box::new(OfSteps { watch: self, what, metric }))
    }

    fn task(&self, what: &str) -> Box<dyn FnMut(u64) + '_> {
        let (what, mut done) = (what.to_owned(), 0);
        Box::new(move |more| {
            done += more;
            self.replace(json!({ "event": "task", "what": what, "done": done }));
        })
    }

    fn resumable(&self, checkpoint: &Path) {
        self.push(json!({ "event": "checkpoint", "folder": checkpoint.display().to_string() }));
    }

    fn resumable_search(&self, trials: &Path) {
        self.resumable(trials);
    }
}

impl Observer<BuildEvent> for Watch {
    fn event(&self, event: BuildEvent) {
        if let BuildEvent::Linking { n } = event {
            self.push(json!({ "event": "index", "vertices": n }));
        }
    }
}

struct OfTrees<'a> {
    watch: &'a Watch,
    done: Mutex<usize>,
}

impl Cancel for OfTrees<'_> {
    fn cancelled(&self) -> bool {
        self.watch.cancelled()
    }
}

impl Observer<TreeEvent> for OfTrees<'_> {
    fn event(&self, event: TreeEvent) {
        use TreeEvent as E;
        match event {
            E::Tree { tree, n_trees } => self.watch.push(json!({ "event": "tree", "tree": tree, "trees": n_trees })),
            E::Clustering { n_labels } => self.watch.push(json!({ "event": "clustering", "labels": n_labels })),
            E::Level { level, n_levels, n_rankers, resumed } => {
                *locked(&self.done) = 0;
                self.watch.push(json!({
                    "event": "level", "level": level, "levels": n_levels, "rankers": n_rankers, "resumed": resumed
                }));
            }
            E::OwnRankers { n_rankers } => {
                *locked(&self.done) = 0;
                self.watch.push(json!({ "event": "wide", "rankers": n_rankers }));
            }
            E::Rankers { done } => {
                let mut so_far = locked(&self.done);
                *so_far += done;
                self.watch.replace(json!({ "event": "rankers", "done": *so_far }));
            }
            _ => {}
        }
    }
}

struct OfSteps<'a> {
    watch: &'a Watch,
    what: String,
    metric: xc_metrics::Metric,
}

impl Cancel for OfSteps<'_> {
    fn cancelled(&self) -> bool {
        self.watch.cancelled()
    }
}

impl Observer<TrainEvent<'_>> for OfSteps<'_> {
    fn event(&self, event: TrainEvent<'_>) {
        match event {
            TrainEvent::Step { epoch, step, n_steps, end_of_epoch, loss, rate, instances_per_s, left, .. } => {
                locked(&self.watch.curve).step(step, loss, end_of_epoch);
                self.watch.replace(json!({
                    "event": "step", "what": self.what, "epoch": epoch, "step": step, "steps": n_steps, "loss": loss,
                    "rate": rate, "instances_per_s": instances_per_s, "left_s": left.as_secs_f64(),
                }));
            }
            TrainEvent::Validated { epoch, step, validation, is_best, .. } => {
                let mut curve = locked(&self.watch.curve);
                curve.validation.push((step as f64, validation.loss));
                curve.metrics.extend(validation.metrics.value(self.metric).map(|value| (step as f64, value)));
                drop(curve);
                let mut line = json!({
                    "event": "validation", "what": self.what, "epoch": epoch, "step": step, "loss": validation.loss,
                    "is_best": is_best,
                });
                for metric in validation.metrics.values() {
                    line[metric.metric.to_string()] = json!(metric.value);
                }
                self.watch.push(line);
            }
            TrainEvent::Resumed { epoch, step } => {
                self.watch.push(json!({ "event": "resumed", "epoch": epoch, "step": step }));
            }
            TrainEvent::Saved { step, folder } => self.watch.push(json!({
                "event": "saved", "step": step, "folder": folder.display().to_string()
            })),
            _ => {}
        }
    }
}

impl Curve {
    fn step(&mut self, step: u64, loss: f64, end_of_epoch: bool) {
        self.sum = (self.sum.0 + loss, self.sum.1 + 1);
        if step.is_multiple_of(self.every.max(1)) || end_of_epoch {
            self.training.push((step as f64, self.sum.0 / self.sum.1 as f64));
            self.sum = (0.0, 0);
        }
        if self.training.len() > MOST_POINTS {
            self.every *= 2;
            let mut at = 0;
            self.training.retain(|_| {
                at += 1;
                at % 2 == 0
            });
        }
    }
}

/// Does work on a thread of its own. A signal, or an exception of the callback, asks it to stop, and is raised when it
/// has; without one, its result is given.
///
/// # Errors
/// That exception; a panic of the work, as a defect.
pub(crate) fn run<T: Send>(
    py: Python<'_>,
    watch: &Watch,
    callback: Option<&Bound<'_, PyAny>>,
    work: impl FnOnce() -> T + Send,
) -> PyResult<T> {
    let (done, finished) = channel();
    let mut raised = None;
    let outcome = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("xc".to_owned());
        let started = thread.spawn_scoped(scope, move || {
            let outcome = guarded(work);
            // Whoever waits is there until it is told.
            let _ = done.send(());
            outcome
        });
        let worker =
            started.map_err(|e| pyo3::exceptions::PyOSError::new_err(format!("cannot start a thread: {e}")))?;
        let mut delivered = Instant::now();
        let finished = Mutex::new(finished);
        loop {
            let waited = py.detach(|| locked(&finished).recv_timeout(WAIT));
            let is_done = !matches!(waited, Err(RecvTimeoutError::Timeout));
            let mut heard = py.check_signals();
            if let Some(callback) = callback
                && heard.is_ok()
                && raised.is_none()
                && (is_done || delivered.elapsed() >= BETWEEN)
            {
                delivered = Instant::now();
                heard = watch.deliver(py, callback);
            }
            if let Err(error) = heard {
                watch.cancel();
                raised.get_or_insert(error);
            }
            if is_done {
                if let (Some(callback), true) = (callback, raised.is_some()) {
                    watch.tell_checkpoint(callback);
                }
                break;
            }
        }
        Ok::<_, PyErr>(py.detach(|| worker.join()))
    })?;
    match (raised, outcome) {
        (Some(error), _) => Err(error),
        (None, Ok(Ok(outcome))) => Ok(outcome),
        (None, Ok(Err(panic))) => Err(defect(py, &panic)),
        (None, Err(_)) => Err(defect(py, "a thread ended early")),
    }
}

/// Queries that are answered on the thread that asks: starting another takes longer.
const FEW: usize = 8;
/// How long a part of a search should take: between two parts it may be stopped.
const PART: Duration = Duration::from_millis(100);

/// The queries of a search, some at a time.
pub(crate) struct Parts<'a> {
    n: usize,
    threads: usize,
    watch: &'a Watch,
}

impl Parts<'_> {
    /// Says whether to stop.
    pub(crate) fn watch(&self) -> &Watch {
        self.watch
    }

    /// Answers part after part, of as many queries as take a moment, until all are answered or it is to stop.
    ///
    /// # Errors
    /// That of a part.
    pub(crate) fn each<E>(
        &self,
        mut answer: impl FnMut(Range<usize>) -> Result<RankedBatch, E>,
    ) -> Result<Vec<RankedBatch>, E> {
        let (mut found, mut at, mut size) = (Vec::new(), 0, self.n.min(FEW.max(4 * self.threads)));
        while at < self.n && !self.watch.cancelled() {
            let (begin, end) = (Instant::now(), self.n.min(at + size));
            found.push(answer(at..end)?);
            match begin.elapsed() {
                took if took < PART / 2 => size *= 2,
                took if took > PART * 2 => size = (size / 2).max(1),
                _ => {}
            }
            at = end;
        }
        Ok(found)
    }
}

/// Answers the `n` queries of a search, on a thread of its own where they are more than a few, so that Ctrl-C is heard.
///
/// # Errors
/// What a signal raises; a panic, as a defect.
pub(crate) fn in_parts<E: Send>(
    py: Python<'_>,
    n: usize,
    threads: usize,
    search: impl FnOnce(&Parts<'_>) -> Result<Vec<RankedBatch>, E> + Send,
) -> PyResult<Result<RankedBatch, E>> {
    let watch = Watch::default();
    let parts = Parts { n, threads, watch: &watch };
    let found = if n <= FEW {
        py.detach(|| guarded(|| search(&parts))).map_err(|panic| defect(py, &panic))?
    } else {
        run(py, &watch, None, || search(&parts))?
    };
    Ok(found.map(RankedBatch::concat))
}
