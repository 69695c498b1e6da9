//! Settings of a training run.

use super::{EarlyStopping, Monitor};
use crate::UpdateRule;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use thiserror::Error;
use xc_store::Checkpoint;

/// Instances of a step, at most.
const MAX_BATCH: usize = 1 << 24;

/// Parameters of a training run. The result depends on all of them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrainParams {
    /// Instances per step. Default 256.
    pub batch_size: usize,
    /// Passes over the data. Default 10 (a guess).
    pub epochs: u32,
    /// Base learning rate, which the schedule multiplies. Default 0.01, that of Adam for dense output layers.
    pub rate: f64,
    /// Optimiser and base rate of the encoder, if they are not those of the head.
    pub encoder: Option<UpdateRule>,
    /// Seed of every random stream. Default 0.
    pub seed: u64,
    /// Largest norm of a gradient; a larger one is clipped. Default: none.
    pub clip_norm: Option<f64>,
    /// Steps between validations. Default: once per epoch.
    pub validate_every: Option<u64>,
    /// The metric that decides whether the network improved. Default: P@1.
    pub monitor: Monitor,
    /// When training ends before its epochs are over. Default: never.
    pub early_stopping: Option<EarlyStopping>,
    /// Which parameters the network has at the end.
    pub keep: Keep,
}

impl Default for TrainParams {
    fn default() -> Self {
        Self {
            batch_size: 256,
            epochs: 10,
            rate: 1e-2,
            encoder: None,
            seed: 0,
            clip_norm: None,
            validate_every: None,
            monitor: Monitor::default(),
            early_stopping: None,
            keep: Keep::Best,
        }
    }
}

/// Which parameters are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Keep {
    /// Those of the best validation; the last ones when there is none.
    #[default]
    Best,
    /// The last ones.
    Last,
}

/// Where and how often the state is saved. It is also saved when training is cancelled.
#[derive(Clone, Debug)]
pub struct CheckpointAt<'a> {
    /// Begun with the key of this training ([`Trainer::key`](super::Trainer::key)).
    pub checkpoint: &'a Checkpoint,
    /// The part that holds the state.
    pub part: String,
    /// Steps between saves. Default: none but those after epochs.
    pub every: Option<u64>,
    /// The state is also saved after an epoch if this much time has passed since the last save.
    pub after: Duration,
}

/// A setting that is impossible.
#[derive(Debug, Error, PartialEq)]
#[error("{name} is {got}, expected {expected}")]
pub struct ParamsError {
    /// The setting.
    pub name: &'static str,
    /// Its value.
    pub got: f64,
    /// What it may be.
    pub expected: &'static str,
}

impl TrainParams {
    /// Checks the settings.
    ///
    /// # Errors
    /// The first impossible setting.
    pub fn check(&self) -> Result<(), ParamsError> {
        let fail = |name, got, expected| Err(ParamsError { name, got, expected });
        match self.batch_size {
            0 => return fail("batch_size", 0.0, "at least 1"),
            1..=MAX_BATCH => {}
            more => return fail("batch_size", more as f64, "at most 16777216"),
        }
        if !(self.rate.is_finite() && self.rate >= 0.0) {
            return fail("rate", self.rate, "a finite number from 0 on");
        }
        if let Some(UpdateRule { rate, .. }) = self.encoder
            && !(rate.is_finite() && rate >= 0.0)
        {
            return fail("encoder.rate", rate, "a finite number from 0 on");
        }
        if let Some(got) = self.clip_norm
            && !(got.is_finite() && got > 0.0)
        {
            return fail("clip_norm", got, "a finite number above 0");
        }
        if self.validate_every == Some(0) {
            return fail("validate_every", 0.0, "at least 1");
        }
        if self.early_stopping.is_some_and(|stopping| stopping.patience == 0) {
            return fail("patience", 0.0, "at least 1");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::PatienceFrom;
    use super::*;

    #[test]
    fn names_are_frozen() {
        let params = TrainParams::default();
        assert_eq!(
            serde_json::to_string(&params).unwrap(),
            r#"{"batch_size":256,"epochs":10,"rate":0.01,"encoder":null,"seed":0,"clip_norm":null,"validate_every":null,"monitor":"P@1","early_stopping":null,"keep":"best"}"#
        );
        let stopping = EarlyStopping { patience: 2, from: PatienceFrom::LowestRate };
        let other = TrainParams { monitor: Monitor::Loss, early_stopping: Some(stopping), ..params };
        let text = serde_json::to_string(&other).unwrap();
        assert!(text.contains(r#""monitor":"loss","early_stopping":{"patience":2,"from":"lowest-rate"}"#), "{text}");
        assert_eq!(serde_json::from_str::<TrainParams>(&text).unwrap(), other);
    }
}
