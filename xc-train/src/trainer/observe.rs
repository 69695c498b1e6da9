//! Progress and cancellation of long training.

use super::evaluate::Validation;
use std::path::Path;
use std::time::Duration;

/// What training has just done.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// Training goes on from a checkpoint.
    Resumed {
        /// Epoch that is under way, from 0.
        epoch: u32,
        /// Steps done.
        step: u64,
    },
    /// A step is done.
    Step {
        /// Epoch that is under way, from 0.
        epoch: u32,
        /// Steps done.
        step: u64,
        /// Steps of the whole training, if nothing stops it.
        n_steps: u64,
        /// Mean loss of the batch.
        loss: f64,
        /// Learning rate.
        rate: f64,
        /// Training speed since this run began.
        instances_per_s: f64,
        /// Time left at this speed, evaluations not counted.
        left: Duration,
    },
    /// The validation instances were judged.
    Validated {
        /// Steps done.
        step: u64,
        /// What came out.
        validation: Validation,
        /// Whether nothing before was better.
        is_best: bool,
    },
    /// The state is on disk.
    Saved {
        /// Steps done.
        step: u64,
        /// Folder of the checkpoint.
        folder: &'a Path,
    },
}

/// Receives events and may ask training to stop.
pub trait Observer: Sync {
    /// Something was done. Called in every step: it should return quickly.
    fn event(&self, event: Event<'_>);

    /// True asks training to stop after the current step with [`TrainError::Cancelled`](super::TrainError::Cancelled).
    fn cancelled(&self) -> bool {
        false
    }
}

/// An observer that ignores everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Observer for Silent {
    fn event(&self, _: Event<'_>) {}
}
