//! One step of training: what every phase of it is told, and how it can fail.

use crate::Optimizer;
use crate::optim::Change;
use serde::{Deserialize, Serialize};
use std::error::Error;
use thiserror::Error;

/// Which step of a training this is. Dropout, drawn negatives, rounding and schedules follow it, so
/// that a step which is repeated after an interruption does the same.
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
pub struct Rule {
    /// The optimiser.
    pub optimizer: Optimizer,
    /// Learning rate; a part whose rate is 0 does not learn.
    pub rate: f64,
}

impl Rule {
    /// The same optimiser at a multiple of the rate.
    pub fn times(self, factor: f64) -> Self {
        Self { rate: self.rate * factor, ..self }
    }
}

/// What a training step is told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepParams {
    /// Which step it is.
    pub at: Step,
    /// How the encoder learns.
    pub encoder: Rule,
    /// How the head learns.
    pub head: Rule,
    /// Largest norm of the gradient over all parameters; a longer one is shortened to it.
    pub clip_norm: Option<f64>,
}

impl StepParams {
    /// One rule for both parts, gradients as long as they are.
    pub fn new(at: Step, rule: Rule) -> Self {
        Self { at, encoder: rule, head: rule, clip_norm: None }
    }
}

/// What a part is told when its parameters change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Update {
    /// Which step it is: what is done every so many steps follows it.
    pub at: Step,
    /// What happens to each value.
    pub change: Change,
}

impl Update {
    /// A rule in a step, with gradients multiplied by `gradient_scale` first.
    pub fn new(at: Step, rule: Rule, gradient_scale: f64) -> Self {
        Self { at, change: rule.optimizer.change(at.number, rule.rate, gradient_scale) }
    }

    /// The same at a share of the learning rate, and so of the weight decay.
    pub fn times(self, share: f32) -> Self {
        let Change { rate, decay, .. } = self.change;
        Self { change: Change { rate: rate * share, decay: decay * share, ..self.change }, ..self }
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
pub(crate) fn in_memory<T>(result: Result<T, StepError>) -> T {
    result.unwrap_or_else(|e| panic!("a part that uses nothing outside failed: {e}: {}", e.source))
}
