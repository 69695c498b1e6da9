//! Progress and cancellation of long training.

use super::evaluate::Validation;
use crate::StepCost;
use std::path::Path;
use std::time::Duration;
use xc_buffer::Observer;

/// What training has just done.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum TrainEvent<'a> {
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
        /// Whether it was the last one of its epoch.
        end_of_epoch: bool,
        /// Mean loss of the batch.
        loss: f64,
        /// Learning rate.
        rate: f64,
        /// Training speed since this run began.
        instances_per_s: f64,
        /// Time left at this speed, evaluations not counted.
        left: Duration,
        /// What the step took.
        cost: &'a StepCost,
    },
    /// The validation instances were evaluated.
    Validated {
        /// The epoch of the step before, from 0.
        epoch: u32,
        /// Steps done.
        step: u64,
        /// What came out.
        validation: &'a Validation,
        /// Whether nothing before was better.
        is_best: bool,
    },
    /// The state is about to be written: what an observer keeps of a training run that goes on from
    /// there belongs on disk now. Should the process end before the state is, training goes on from
    /// an earlier one.
    Saving {
        /// Steps done.
        step: u64,
    },
    /// The state is on disk.
    Saved {
        /// Steps done.
        step: u64,
        /// Folder of the checkpoint.
        folder: &'a Path,
    },
}

/// Who follows a training: told each of its events, asked after each step whether to stop with
/// [`TrainError::Cancelled`](super::TrainError::Cancelled).
pub type TrainObserver<'o> = dyn for<'e> Observer<TrainEvent<'e>> + 'o;
