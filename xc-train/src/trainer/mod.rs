//! The loop: epochs of shuffled batches, validation, early stopping, checkpoints, log.
//!
//! ```text
//!   Sample ──▶ order of the epoch ──▶ Prefetch (own thread) ──▶ Network::step ──▶ log, validation, checkpoint
//! ```
//!
//! # Determinism
//! Parameters depend on the network's first values, the data, [`TrainParams`], loss, optimiser and schedule; not on
//! threads, times or interruptions. A training that was killed and goes on from its checkpoint ends with the same bytes.

mod checkpoint;
mod curve;
mod data;
mod evaluate;
mod exact;
mod key;
mod log;
mod observe;
mod params;

pub use data::Sample;
pub use evaluate::{Validation, evaluate};
pub use key::{CHECKPOINT, STATE};
pub use log::LogError;
pub use observe::{Event, Observer, Silent};
pub use params::{CheckpointAt, Judge, Keep, LogAt, ParamsError, PatienceFrom, TrainParams};

use crate::state::{Role, Snapshot, StateError};
use crate::{Encoder, Head, Loss, Network, Optimizer, Rule, Schedule, Scratch, Step, StepError, StepParams};
use checkpoint::Position;
use data::{Prefetch, order};
use log::Log;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use thiserror::Error;
use xc_sparse::store::CheckpointError;

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
    /// The loss, a gradient or a parameter is not finite. The network is not changed by that step, except perhaps some outputs
    /// of a head that fuses its steps.
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
    /// A checkpoint is of no use or cannot be written.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The network's own state cannot be read or put back.
    #[error(transparent)]
    State(#[from] StateError),
    /// A part of the network failed.
    #[error(transparent)]
    Step(#[from] StepError),
    /// The log cannot be written.
    #[error("training log")]
    Log(#[from] LogError),
}

/// What came out, beside the network.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Summary {
    /// Steps done.
    pub steps: u64,
    /// Epochs done, the last one perhaps in part.
    pub epochs: u32,
    /// The best validation, and after how many steps.
    pub best: Option<(u64, Validation)>,
    /// Whether training ended early because validation no longer improved.
    pub stopped_early: bool,
}

/// Trains a network: what to minimise and how.
pub struct Trainer<'a> {
    /// The loss.
    pub loss: Loss,
    /// The optimiser, of the head and of the encoder unless [`TrainParams::encoder`] says otherwise.
    pub optimizer: Optimizer,
    /// Learning rates over time.
    pub schedule: &'a mut dyn Schedule,
    /// Everything else.
    pub params: TrainParams,
    /// Where and how often the state is saved; training goes on from what is there.
    pub checkpoint: Option<CheckpointAt<'a>>,
    /// Where and how often lines are logged.
    pub log: Option<LogAt>,
    /// Who is told.
    pub observer: &'a dyn Observer,
}

impl Trainer<'_> {
    /// Trains until the epochs are over or validation no longer improves. At the end the network has its last or its best
    /// parameters, as [`TrainParams::keep`] says.
    ///
    /// *Cost*: beside parameters and moments, one copy of the parameters for the best ones (with validation and
    /// [`Keep::Best`]) and the activations of a batch.
    ///
    /// # Errors
    /// See [`TrainError`]. After an error the network is in the middle of its training.
    ///
    /// # Panics
    /// If features or targets do not have the network's widths.
    pub fn train<E: Encoder, H: Head<Input = E::Output>>(
        &mut self,
        network: &mut Network<E, H>,
        train: &Sample<'_>,
        validation: Option<&Sample<'_>>,
    ) -> Result<Summary, TrainError> {
        self.params.check()?;
        if train.rows().is_empty() {
            return Err(TrainError::NoInstances);
        }
        for sample in std::iter::once(train).chain(validation) {
            let (got, labels) = (sample.examples().targets().n_labels(), network.head().labels());
            assert!(labels.end as usize <= got, "targets of {got} labels for a head of {labels:?}");
        }
        let (encoder, head) = self.rules(1.0);
        network.prepare(encoder.optimizer, head.optimizer);
        let mut run = Run {
            position: Position::default(),
            best: None,
            saved: None,
            last_save: Instant::now(),
            log: None,
            scratch: Scratch::default(),
            started: Instant::now(),
            instances: 0,
            steps: 0,
        };
        if let Some(checkpoint) = &self.checkpoint
            && let Some((position, best)) =
                checkpoint.load(network, train.rows().len().div_ceil(self.params.batch_size) as u64)?
        {
            self.schedule.restore(&position.schedule);
            self.observer.event(Event::Resumed { epoch: position.epoch, step: position.step });
            (run.saved, run.position, run.best) = (Some(position.step), position, best);
        }
        if let Some(at) = &self.log {
            run.log = Some(Log::open(&at.folder, run.position.log_bytes)?);
        }
        while run.position.epoch < self.params.epochs && !run.position.stopped {
            self.epoch(&mut run, network, train, validation)?;
        }
        if let Some(log) = &run.log {
            log.draw()?;
        }
        if self.params.keep == Keep::Best
            && let Some(best) = run.best
        {
            network.load(&best)?;
        }
        let Position { step, epoch, best, stopped, .. } = run.position;
        Ok(Summary { steps: step, epochs: epoch, best, stopped_early: stopped })
    }

    /// How encoder and head learn where the schedule says `factor`.
    fn rules(&self, factor: f64) -> (Rule, Rule) {
        let head = Rule { optimizer: self.optimizer, rate: self.params.rate };
        (self.params.encoder.unwrap_or(head).times(factor), head.times(factor))
    }

    /// What is left of an epoch.
    fn epoch<E: Encoder, H: Head<Input = E::Output>>(
        &mut self,
        run: &mut Run<E, H>,
        network: &mut Network<E, H>,
        train: &Sample<'_>,
        validation: Option<&Sample<'_>>,
    ) -> Result<(), TrainError> {
        let size = self.params.batch_size;
        let epoch = run.position.epoch;
        let order = order(train, self.params.seed, epoch);
        let n_batches = order.len().div_ceil(size as u64);
        let n_steps = n_batches * u64::from(self.params.epochs);
        std::thread::scope(|scope| {
            let first = run.position.batch as usize;
            let batches = Prefetch::start(scope, train, order, size, first);
            while let Some(batch) = batches.next() {
                let at = Step { number: run.position.step, epoch, seed: self.params.seed };
                let (encoder, head) = self.rules(self.schedule.factor(at.number));
                let step = StepParams { at, encoder, head, clip_norm: self.params.clip_norm };
                let loss = network.step(&batch, self.loss, &step, &mut run.scratch)?;
                if !loss.is_finite() {
                    return Err(self.not_finite(run, loss));
                }
                run.advance(loss, batch.len(), n_batches);
                batches.recycle(batch);
                self.after_step(run, network, validation, loss, &step, n_batches, n_steps)?;
                if run.position.stopped {
                    break;
                }
            }
            Ok(())
        })
    }

    /// Log, validation, checkpoint, cancellation; in this order, so that a checkpoint holds all of a step.
    fn after_step<E: Encoder, H: Head<Input = E::Output>>(
        &mut self,
        run: &mut Run<E, H>,
        network: &mut Network<E, H>,
        validation: Option<&Sample<'_>>,
        loss: f64,
        step: &StepParams,
        n_batches: u64,
        n_steps: u64,
    ) -> Result<(), TrainError> {
        let done = run.position.step;
        let speed = run.speed();
        let end_of_epoch = run.position.batch == 0;
        let left = run.started.elapsed().div_f64(run.steps as f64).mul_f64((n_steps - done) as f64);
        let epoch = ((done - 1) / n_batches) as u32;
        let rate = step.head.rate;
        self.observer.event(Event::Step { epoch, step: done, n_steps, loss, rate, instances_per_s: speed, left });
        if let Some(log) = &mut run.log
            && let Some(at) = &self.log
            && (done.is_multiple_of(at.every) || end_of_epoch)
        {
            let sum = std::mem::take(&mut run.position.loss_sum);
            let n = std::mem::take(&mut run.position.n_losses);
            log.step(epoch, done, sum / n as f64, rate, speed)?;
        }
        let due = self.params.validate_every.map_or(end_of_epoch, |every| done.is_multiple_of(every));
        if let Some(sample) = validation
            && due
            && !sample.rows().is_empty()
        {
            let began = Instant::now();
            self.validate(run, network, sample, epoch)?;
            run.started += began.elapsed();
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

    fn validate<E: Encoder, H: Head<Input = E::Output>>(
        &mut self,
        run: &mut Run<E, H>,
        network: &Network<E, H>,
        sample: &Sample<'_>,
        epoch: u32,
    ) -> Result<(), TrainError> {
        let step = run.position.step;
        let met = evaluate(network, sample, self.loss, self.params.batch_size, &mut run.scratch)?;
        // The rate that led here, before the schedule hears of it.
        let counts = match self.params.patience_from {
            PatienceFrom::Start => true,
            PatienceFrom::LowestRate => self.schedule.is_lowest(step.saturating_sub(1)),
        };
        self.schedule.observe(&met);
        let is_best = run.position.best.is_none_or(|(_, best)| self.params.judge.is_better(&met, &best));
        if is_best {
            run.position.best = Some((step, met));
            run.position.waited = 0;
            if self.params.keep == Keep::Best {
                run.best.get_or_insert_default().take(&network.parts(), &[Role::Answer])?;
            }
        } else if counts {
            run.position.waited += 1;
            run.position.stopped = self.params.patience.is_some_and(|patience| run.position.waited >= patience);
        }
        self.observer.event(Event::Validated { step, validation: met, is_best });
        if let Some(log) = &mut run.log {
            log.validation(epoch, step, &met)?;
            log.draw()?;
        }
        Ok(())
    }

    fn save<E: Encoder, H: Head<Input = E::Output>>(
        &self,
        run: &mut Run<E, H>,
        network: &Network<E, H>,
    ) -> Result<(), TrainError> {
        let Some(at) = &self.checkpoint else { return Ok(()) };
        // A step with a finite loss can still leave a parameter that is not; the state on disk stays good.
        match network.check_finite() {
            Err(StateError::NotFinite { .. }) => return Err(self.not_finite(run, f64::NAN)),
            other => other?,
        }
        if let Some(log) = &mut run.log {
            run.position.log_bytes = log.sync()?;
        }
        run.position.schedule = self.schedule.state();
        at.save(network, &run.position, run.best.as_ref())?;
        (run.saved, run.last_save) = (Some(run.position.step), Instant::now());
        self.observer.event(Event::Saved { step: run.position.step, folder: at.checkpoint.path() });
        Ok(())
    }

    fn not_finite<E: Encoder, H: Head<Input = E::Output>>(&self, run: &Run<E, H>, loss: f64) -> TrainError {
        let at = self.checkpoint.as_ref().zip(run.saved);
        let checkpoint = at.map(|(at, step)| (at.checkpoint.path().to_owned(), step));
        TrainError::NotFinite { step: run.position.step, epoch: run.position.epoch, loss, checkpoint }
    }
}

/// What changes while training runs.
struct Run<E: Encoder, H: Head<Input = E::Output>> {
    position: Position,
    best: Option<Snapshot>,
    /// Steps of the state on disk.
    saved: Option<u64>,
    /// When it was written, or training began.
    last_save: Instant,
    log: Option<Log>,
    scratch: Scratch<E, H>,
    /// When this run began, moved on by the time that evaluations took.
    started: Instant,
    instances: u64,
    steps: u64,
}

impl<E: Encoder, H: Head<Input = E::Output>> Run<E, H> {
    /// Counts a step that is done.
    fn advance(&mut self, loss: f64, n_instances: usize, n_batches: u64) {
        let position = &mut self.position;
        position.step += 1;
        position.batch += 1;
        if position.batch == n_batches {
            position.epoch += 1;
            position.batch = 0;
        }
        position.loss_sum += loss;
        position.n_losses += 1;
        self.instances += n_instances as u64;
        self.steps += 1;
    }

    /// Instances a second.
    fn speed(&self) -> f64 {
        self.instances as f64 / self.started.elapsed().max(Duration::from_nanos(1)).as_secs_f64()
    }
}
