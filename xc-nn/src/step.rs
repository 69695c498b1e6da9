//! One step of training: the input of its phases, and how they can fail.

use crate::Optimizer;
use crate::optim::Change;
use crate::sampler::SampleCost;
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::ops::AddAssign;
use std::time::Duration;
use thiserror::Error;

/// The position of a step in a training run. Dropout, drawn negatives, rounding and schedules depend on it,
/// so that a step repeated after an interruption does the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Step {
    /// Number of the step, from 0.
    pub number: u64,
    /// Its epoch, from 0.
    pub epoch: u32,
    /// Seed of the training: with the number it names the random streams of the step.
    pub seed: u64,
}

/// How a part of a network learns.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UpdateRule {
    /// The optimiser.
    pub optimizer: Optimizer,
    /// Learning rate; a part whose rate is 0 does not learn.
    pub rate: f64,
}

impl UpdateRule {
    /// The same optimiser at a multiple of the rate.
    pub fn times(self, factor: f64) -> Self {
        Self { rate: self.rate * factor, ..self }
    }
}

/// Parameters of a training step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepParams {
    /// Which step it is.
    pub at: Step,
    /// How the encoder learns.
    pub encoder: UpdateRule,
    /// How the head learns.
    pub head: UpdateRule,
    /// Largest norm of the gradient over all parameters; a larger one is clipped to it.
    pub clip_norm: Option<f64>,
}

impl StepParams {
    /// One rule for both parts, without clipping.
    pub fn new(at: Step, rule: UpdateRule) -> Self {
        Self { at, encoder: rule, head: rule, clip_norm: None }
    }
}

/// The update of a part's parameters in a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Update {
    /// Which step it is: periodic work depends on it.
    pub at: Step,
    /// The change of each value.
    pub change: Change,
}

impl Update {
    /// The update by a rule in a step, with gradients multiplied by `gradient_scale` first.
    pub fn new(at: Step, rule: UpdateRule, gradient_scale: f64) -> Self {
        Self { at, change: rule.optimizer.change(at.number, rule.rate, gradient_scale) }
    }

    /// The same at a share of the learning rate, and so of the weight decay.
    pub fn times(self, share: f32) -> Self {
        let Change { rate, decay, .. } = self.change;
        Self { change: Change { rate: rate * share, decay: decay * share, ..self.change }, ..self }
    }
}

/// The time of a step by stage, and the rows it touched. Heads that do not count leave it at 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepCost {
    /// Time of the encoder: vectors, gradient, update. If the head does not count, all of the step.
    pub encode: Duration,
    /// The work of the sampler; its times come before those that follow.
    pub sampling: SampleCost,
    /// Time for logits, loss and their gradient.
    pub score: Duration,
    /// Time for the gradient of the vectors and the update of the labels' rows. A step that processes
    /// labels in tiles scores and learns at once: all of it counts here.
    pub backward: Duration,
    /// Time in which the sampler was updated to the changed rows.
    pub upkeep: Duration,
    /// Rows of labels read.
    pub n_read: u64,
    /// Rows of labels changed.
    pub n_written: u64,
    /// Pairs of an instance and a label that were scored.
    pub n_scored: u64,
}

impl StepCost {
    /// Time of all stages except the encoder's.
    pub fn of_head(&self) -> Duration {
        let SampleCost { hash, search, query, check, .. } = self.sampling;
        hash + search + query + check + self.score + self.backward + self.upkeep
    }
}

impl AddAssign for StepCost {
    fn add_assign(&mut self, other: Self) {
        self.encode += other.encode;
        self.sampling += other.sampling;
        self.score += other.score;
        self.backward += other.backward;
        self.upkeep += other.upkeep;
        self.n_read += other.n_read;
        self.n_written += other.n_written;
        self.n_scored += other.n_scored;
    }
}

/// Why a phase of a step could not be carried out. Parts that compute in this process's memory
/// never fail; those that use a library, a device or other processes may.
#[derive(Debug, Error)]
#[error("{part} of the network")]
pub struct StepError {
    /// The part: its own name for itself.
    pub part: &'static str,
    /// The cause.
    #[source]
    pub source: Box<dyn Error + Send + Sync>,
}

impl StepError {
    /// A part failed.
    pub fn new(part: &'static str, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { part, source: source.into() }
    }
}

/// What a network whose parts compute in this process's memory gives: it never fails.
///
/// # Panics
/// If it did.
pub fn in_memory<T>(result: Result<T, StepError>) -> T {
    result.unwrap_or_else(|e| panic!("a part that uses nothing outside failed: {e}: {}", e.source))
}
