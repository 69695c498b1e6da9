//! The loop: epochs of shuffled batches, validation, early stopping, checkpoints.
//!
//! ```text
//!   Subset ──▶ order of the epoch ──▶ Batches (own thread) ──▶ Network::step ──▶ validation, checkpoint
//! ```
//!
//! It only trains: logs and progress are made by an [`Observer`] of its events.
//!
//! # Determinism
//! Parameters depend on the network's first values, the data, [`TrainParams`], loss, optimiser and
//! schedule; not on threads, times or interruptions. A training run that was killed and continues from its
//! checkpoint ends with the same bytes.

mod checkpoint;
mod evaluate;
mod exact;
mod key;
mod monitor;
mod observe;
mod params;
mod subset;

pub use evaluate::{ValidateError, Validation, ValidationParams, evaluate};
pub use key::{CHECKPOINT, STATE};
pub use monitor::{EarlyStopping, Monitor, PatienceFrom, UnknownMonitor};
pub use observe::{TrainEvent, TrainObserver};
pub use params::{CheckpointAt, Keep, ParamsError, TrainParams};
pub use subset::Subset;
/// Who follows a training.
pub use xc_buffer::{Observer, Silent};

use crate::state::{Role, Snapshot, StateError};
use crate::{
    Encoder, HardLabels, Head, Loss, Network, Optimizer, Schedule, Scratch, Step, StepError, StepParams, UpdateRule,
};
use checkpoint::{Best, Position};
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use subset::{Batches, order};
use thiserror::Error;
use xc_metrics::PropensityError;
use xc_store::CheckpointError;

/// Why training ended without a result.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TrainError {
    /// A setting is impossible.
    #[error(transparent)]
    Params(#[from] ParamsError),
    /// There is nothing to learn from.
    #[error("no training instances")]
    NoInstances,
    /// The loss, a gradient or a parameter is not finite. The network is not changed by that step,
    /// except perhaps some outputs of a head that fuses its steps.
    #[error(
        "step {step} (epoch {epoch}): the loss is {loss}; try a lower learning rate or clipping; {}",
        match checkpoint { Some((path, at)) => format!("last good checkpoint: {}, after step {at}", path.display()), None => "no checkpoint was saved".to_owned() }
    )]
    NotFinite {
        /// Number of the step, from 0.
        step: u64,
        /// Its epoch.
        epoch: u32,
        /// What the loss was.
        loss: f64,
        /// The last good state on disk, and the number of steps it holds.
        checkpoint: Option<(PathBuf, u64)>,
    },
    /// The observer asked to stop. The state is on disk if a checkpoint was asked for.
    #[error("cancelled after step {step}")]
    Cancelled {
        /// Steps done.
        step: u64,
    },
    /// A checkpoint cannot be used or written.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The network's own state cannot be read or restored.
    #[error(transparent)]
    State(#[from] StateError),
    /// A part of the network failed.
    #[error(transparent)]
    Step(#[from] StepError),
    /// The held-out instances cannot be evaluated.
    #[error(transparent)]
    Validate(#[from] ValidateError),
    /// The monitor needs propensities, and there are none.
    #[error("{monitor}")]
    Monitor {
        /// What is watched.
        monitor: Monitor,
        /// Why there are none.
        source: PropensityError,
    },
    /// The table of hard labels cannot be written or read.
    #[error("hard labels")]
    HardLabels(#[source] io::Error),
}

/// The result of a training run other than the network.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Summary {
    /// Steps done.
    pub steps: u64,
    /// Epochs done; the last one may be partial.
    pub epochs: u32,
    /// The best value of the monitor, and after how many steps.
    pub best: Option<(u64, f64)>,
    /// Whether training ended early because validation no longer improved.
    pub stopped_early: bool,
}

/// Trains a network: what to minimise and how.
pub struct Trainer<'a> {
    /// The loss.
    pub loss: Loss,
    /// The optimiser, of the head and of the encoder unless [`TrainParams::encoder`] says
    /// otherwise.
    pub optimizer: Optimizer,
    /// Learning rates over time.
    pub schedule: &'a mut dyn Schedule,
    /// Everything else.
    pub params: TrainParams,
    /// Where and how often the state is saved; training continues from an existing state.
    pub checkpoint: Option<CheckpointAt<'a>>,
    /// Takes what the head [collects](Head::collect) in each step, if it is given: an empty table for all rows
    /// of the examples and all epochs. A training that is resumed gives it what it held; epochs that early
    /// stopping spared stay empty.
    pub hard: Option<&'a mut HardLabels>,
    /// The observer of the training.
    pub observer: &'a TrainObserver<'a>,
}

impl Trainer<'_> {
    /// Trains until the epochs are over or validation no longer improves. At the end the network
    /// has its last or its best parameters, as [`TrainParams::keep`] says.
    ///
    /// *Memory*: in addition to parameters and moments, one copy of the best parameters (with validation
    /// and [`Keep::Best`]) and the activations of a batch.
    ///
    /// # Errors
    /// See [`TrainError`]. After an error the network is only partly trained.
    ///
    /// # Panics
    /// If features or targets do not have the network's widths, or the table of hard labels is of other numbers
    /// of rows or epochs.
    pub fn train<E: Encoder, H: Head<Input = E::Output>>(
        &mut self,
        network: &mut Network<E, H>,
        train: &Subset<'_>,
        validation: Option<&Subset<'_>>,
    ) -> Result<Summary, TrainError> {
        self.params.check()?;
        if train.is_empty() {
            return Err(TrainError::NoInstances);
        }
        for subset in std::iter::once(train).chain(validation) {
            let (got, labels) = (subset.examples().targets().n_labels(), network.head().labels());
            assert!(labels.end as usize <= got, "targets of {got} labels for a head of {labels:?}");
        }
        if let Some(hard) = &self.hard {
            let (got, expected) = ((hard.n_instances(), hard.n_epochs()), (train.examples().len(), self.params.epochs));
            assert!(got == expected, "hard labels of (instances, epochs) {got:?}, expected {expected:?}");
        }
        let monitor = self.params.monitor;
        let metrics =
            ValidationParams::new(monitor, train).map_err(|source| TrainError::Monitor { monitor, source })?;
        let validation = validation.filter(|subset| !subset.is_empty()).map(|subset| (subset, &metrics));
        let (encoder, head) = self.rules(1.0);
        network.prepare(encoder.optimizer, head.optimizer);
        let mut run = Run::new(train.len().div_ceil(self.params.batch_size) as u64);
        network.collect(self.hard.as_ref().map_or(0, |hard| hard.n()), &mut run.scratch);
        self.resume(&mut run, network)?;
        if std::mem::take(&mut run.position.unvalidated) {
            let epoch = run.position.epoch - u32::from(run.is_end_of_epoch());
            self.after_step(&mut run, network, validation, epoch)?;
        }
        while run.position.epoch < self.params.epochs && !run.position.stopped {
            self.epoch(&mut run, network, train, validation)?;
        }
        if let Some(best) = run.best.filter(|_| self.params.keep == Keep::Best) {
            network.load(&best)?;
        }
        let Position { step, epoch, best, stopped, .. } = run.position;
        let best = best.map(|best| (best.step, best.value));
        Ok(Summary { steps: step, epochs: epoch, best, stopped_early: stopped })
    }

    /// Goes on from what the checkpoint holds.
    fn resume<E: Encoder, H: Head<Input = E::Output>>(
        &mut self,
        run: &mut Run<E, H>,
        network: &mut Network<E, H>,
    ) -> Result<(), TrainError> {
        let Some(at) = &self.checkpoint else { return Ok(()) };
        if let Some((position, best)) = at.load(network, run.n_batches, self.hard.as_deref_mut())? {
            self.schedule.restore(&position.schedule);
            self.observer.event(TrainEvent::Resumed { epoch: position.epoch, step: position.step });
            (run.saved, run.position, run.best) = (Some(position.step), position, best);
        }
        Ok(())
    }

    /// How encoder and head learn where the schedule says `factor`.
    fn rules(&self, factor: f64) -> (UpdateRule, UpdateRule) {
        let head = UpdateRule { optimizer: self.optimizer, rate: self.params.rate };
        (self.params.encoder.unwrap_or(head).times(factor), head.times(factor))
    }

    /// What is left of an epoch.
    fn epoch<E: Encoder, H: Head<Input = E::Output>>(
        &mut self,
        run: &mut Run<E, H>,
        network: &mut Network<E, H>,
        train: &Subset<'_>,
        validation: Option<(&Subset<'_>, &ValidationParams)>,
    ) -> Result<(), TrainError> {
        let (size, epoch) = (self.params.batch_size, run.position.epoch);
        let order = order(train, self.params.seed, epoch);
        std::thread::scope(|scope| {
            let first = run.position.batch as usize;
            let mut batches = Batches::start(scope, train, order, size, first);
            while let Some(batch) = batches.next() {
                let at = Step { number: run.position.step, epoch, seed: self.params.seed };
                let (encoder, head) = self.rules(self.schedule.factor(at.number));
                let step = StepParams { at, encoder, head, clip_norm: self.params.clip_norm };
                let loss = network.step(&batch, self.loss, &step, &mut run.scratch)?;
                if !loss.is_finite() {
                    return Err(self.not_finite(run, loss));
                }
                if let Some(hard) = &mut self.hard {
                    collect(hard, epoch, batch.instances(), network.collected(&run.scratch))?;
                }
                run.advance(loss, batch.len());
                batches.recycle(batch);
                self.observer.event(run.event(epoch, loss, head.rate, self.params.epochs));
                self.after_step(run, network, validation, epoch)?;
                if run.position.stopped {
                    break;
                }
            }
            Ok(())
        })
    }

    /// Validation, checkpoint, cancellation; in this order, so that a checkpoint holds all of a
    /// step.
    fn after_step<E: Encoder, H: Head<Input = E::Output>>(
        &mut self,
        run: &mut Run<E, H>,
        network: &mut Network<E, H>,
        validation: Option<(&Subset<'_>, &ValidationParams)>,
        epoch: u32,
    ) -> Result<(), TrainError> {
        let (done, end_of_epoch) = (run.position.step, run.is_end_of_epoch());
        let due = self.params.validate_every.map_or(end_of_epoch, |every| done.is_multiple_of(every));
        match validation {
            Some((subset, params)) if due => {
                let began = Instant::now();
                let size = self.params.batch_size;
                let validation = evaluate(network, subset, self.loss, size, params, &mut run.scratch, self.observer)?;
                let Some(validation) = validation else {
                    run.position.unvalidated = true;
                    self.save(run, network)?;
                    return Err(TrainError::Cancelled { step: done });
                };
                let is_best =
                    self.watch(&mut run.position, self.params.monitor, self.params.monitor.value(&validation));
                if is_best && self.params.keep == Keep::Best {
                    run.best.get_or_insert_default().take(&network.parts(), &[Role::Answer])?;
                }
                self.observer.event(TrainEvent::Validated { epoch, step: done, validation: &validation, is_best });
                run.started += began.elapsed();
            }
            None if end_of_epoch => {
                let mean = run.position.loss_sum / run.n_batches as f64;
                self.watch(&mut run.position, Monitor::Loss, mean);
            }
            _ => {}
        }
        if end_of_epoch {
            run.position.loss_sum = 0.0;
        }
        let cancelled = self.observer.cancelled();
        if let Some(at) = &self.checkpoint
            && (at.every.is_some_and(|every| done.is_multiple_of(every))
                || (end_of_epoch && run.last_save.elapsed() >= at.after)
                || cancelled
                || run.position.stopped)
        {
            self.save(run, network)?;
        }
        if cancelled { Err(TrainError::Cancelled { step: done }) } else { Ok(()) }
    }

    /// Tells the schedule and early stopping whether the value is the best so far, and says so.
    fn watch(&mut self, position: &mut Position, monitor: Monitor, value: f64) -> bool {
        let stopping = self.params.early_stopping;
        // The rate that led here, before the schedule hears of it.
        let counts = match stopping.map_or(PatienceFrom::Start, |stopping| stopping.from) {
            PatienceFrom::Start => true,
            PatienceFrom::LowestRate => self.schedule.is_lowest(position.step.saturating_sub(1)),
        };
        let is_best = monitor.is_better(value, position.best.map(|best| best.value));
        self.schedule.observe(is_best);
        if is_best {
            position.best = Some(Best { step: position.step, value });
            position.waited = 0;
        } else if counts {
            position.waited += 1;
            position.stopped = stopping.is_some_and(|stopping| position.waited >= stopping.patience);
        }
        is_best
    }

    fn save<E: Encoder, H: Head<Input = E::Output>>(
        &self,
        run: &mut Run<E, H>,
        network: &Network<E, H>,
    ) -> Result<(), TrainError> {
        let Some(at) = &self.checkpoint else { return Ok(()) };
        // A step with a finite loss can still leave a parameter that is not; the state on disk
        // stays good.
        match network.check_finite() {
            Err(StateError::NotFinite { .. }) => return Err(self.not_finite(run, f64::NAN)),
            other => other?,
        }
        run.position.schedule = self.schedule.state();
        self.observer.event(TrainEvent::Saving { step: run.position.step });
        at.save(network, &run.position, run.best.as_ref(), self.hard.as_deref())?;
        (run.saved, run.last_save) = (Some(run.position.step), Instant::now());
        self.observer.event(TrainEvent::Saved { step: run.position.step, folder: at.checkpoint.path() });
        Ok(())
    }

    fn not_finite<E: Encoder, H: Head<Input = E::Output>>(&self, run: &Run<E, H>, loss: f64) -> TrainError {
        let at = self.checkpoint.as_ref().zip(run.saved);
        let checkpoint = at.map(|(at, step)| (at.checkpoint.path().to_owned(), step));
        TrainError::NotFinite { step: run.position.step, epoch: run.position.epoch, loss, checkpoint }
    }
}

/// Keeps what a step collected.
fn collect(hard: &mut HardLabels, epoch: u32, instances: &[u32], collected: &[u32]) -> Result<(), TrainError> {
    if collected.len() != instances.len() * hard.n() {
        return Err(StepError::new("head", "it does not collect hard labels").into());
    }
    hard.put(epoch, instances, collected).map_err(TrainError::HardLabels)
}

/// What changes while training runs.
struct Run<E: Encoder, H: Head<Input = E::Output>> {
    position: Position,
    best: Option<Snapshot>,
    /// Steps of the state on disk.
    saved: Option<u64>,
    /// When it was written, or training began.
    last_save: Instant,
    scratch: Scratch<E, H>,
    /// Batches of an epoch.
    n_batches: u64,
    /// When this run began, moved on by the time that evaluations took.
    started: Instant,
    instances: u64,
    steps: u64,
}

impl<E: Encoder, H: Head<Input = E::Output>> Run<E, H> {
    fn new(n_batches: u64) -> Self {
        let now = Instant::now();
        Self {
            position: Position::default(),
            best: None,
            saved: None,
            last_save: now,
            scratch: Scratch::default(),
            n_batches,
            started: now,
            instances: 0,
            steps: 0,
        }
    }

    /// Counts a step that is done.
    fn advance(&mut self, loss: f64, n_instances: usize) {
        let position = &mut self.position;
        position.step += 1;
        position.batch += 1;
        if position.batch == self.n_batches {
            position.epoch += 1;
            position.batch = 0;
        }
        position.loss_sum += loss;
        self.instances += n_instances as u64;
        self.steps += 1;
    }

    fn is_end_of_epoch(&self) -> bool {
        self.position.batch == 0
    }

    /// What the observer is told of the step that was just counted.
    fn event(&self, epoch: u32, loss: f64, rate: f64, epochs: u32) -> TrainEvent<'_> {
        let (step, n_steps) = (self.position.step, self.n_batches * u64::from(epochs));
        let elapsed = self.started.elapsed().max(Duration::from_nanos(1));
        TrainEvent::Step {
            epoch,
            step,
            n_steps,
            end_of_epoch: self.is_end_of_epoch(),
            loss,
            rate,
            instances_per_s: self.instances as f64 / elapsed.as_secs_f64(),
            left: elapsed.div_f64(self.steps as f64).mul_f64((n_steps - step) as f64),
            cost: self.scratch.cost(),
        }
    }
}
