//! Settings of a training.

use super::Validation;
use crate::Rule;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;
use thiserror::Error;
use xc_sparse::store::Checkpoint;

/// How to train. What is learned depends on all of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrainParams {
    /// Instances of a step. Default 512 (a guess between speed and noise).
    pub batch_size: usize,
    /// Passes over the data. Default 10 (a guess).
    pub epochs: u32,
    /// Base learning rate, which the schedule multiplies. Default 1e-3 (Adam's paper).
    pub rate: f64,
    /// Optimiser and base rate of the encoder, if they are not those of the head.
    pub encoder: Option<Rule>,
    /// Names every random stream. Default 0.
    pub seed: u64,
    /// Largest norm of a gradient; a longer one is shortened. Default: none.
    pub clip_norm: Option<f64>,
    /// Steps between validations. Default: once an epoch.
    pub validate_every: Option<u64>,
    /// Validations without improvement after which training ends. Default: it does not end early.
    pub patience: Option<u32>,
    /// From when on they are counted.
    // Left out where it is the default: keys of checkpoints, and models, are what they were before there was a choice.
    #[serde(skip_serializing_if = "PatienceFrom::is_default")]
    pub patience_from: PatienceFrom,
    /// What improvement is.
    pub judge: Judge,
    /// Which parameters the network has at the end.
    pub keep: Keep,
}

impl Default for TrainParams {
    fn default() -> Self {
        Self {
            batch_size: 512,
            epochs: 10,
            rate: 1e-3,
            encoder: None,
            seed: 0,
            clip_norm: None,
            validate_every: None,
            patience: None,
            patience_from: PatienceFrom::Start,
            judge: Judge::Loss,
            keep: Keep::Best,
        }
    }
}

/// What a validation is judged by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Judge {
    /// A smaller loss is better.
    #[default]
    Loss,
    /// A larger P@1 is better.
    Precision,
    /// A larger P@3 is better.
    #[serde(rename = "precision-3")]
    Precision3,
}

impl Judge {
    /// A number that is smaller when a validation is better: the loss, or P@k below zero.
    pub fn cost(self, met: &Validation) -> f64 {
        match self {
            Self::Loss => met.loss,
            Self::Precision => -met.precision[0],
            Self::Precision3 => -met.precision[1],
        }
    }

    pub(super) fn is_better(self, met: &Validation, best: &Validation) -> bool {
        self.cost(met) < self.cost(best)
    }
}

/// From when on validations without improvement are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PatienceFrom {
    /// From the beginning.
    #[default]
    Start,
    /// Those of steps at the schedule's lowest rate alone ([`Schedule::is_lowest`](crate::Schedule::is_lowest)). With a
    /// schedule that never gets there training does not end early.
    LowestRate,
}

impl PatienceFrom {
    fn is_default(&self) -> bool {
        *self == Self::default()
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
    /// The state is also saved after an epoch when so long has passed since the last save.
    pub after: Duration,
}

/// Where and how often losses are logged: `log.jsonl` and `curve.svg`. A line also closes each epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogAt {
    /// The folder.
    pub folder: PathBuf,
    /// Steps between lines.
    pub every: u64,
}

/// A setting that is impossible.
#[derive(Debug, Error, PartialEq)]
#[error("{name} is {met}, wanted {wanted}")]
pub struct ParamsError {
    /// The setting.
    pub name: &'static str,
    /// Its value.
    pub met: f64,
    /// What it may be.
    pub wanted: &'static str,
}

impl TrainParams {
    /// Says which setting is impossible.
    ///
    /// # Errors
    /// The first one that is.
    pub fn check(&self) -> Result<(), ParamsError> {
        let fail = |name, met, wanted| Err(ParamsError { name, met, wanted });
        if self.batch_size == 0 {
            return fail("batch_size", 0.0, "at least 1");
        }
        if !(self.rate.is_finite() && self.rate >= 0.0) {
            return fail("rate", self.rate, "a finite number from 0 on");
        }
        if let Some(Rule { rate, .. }) = self.encoder
            && !(rate.is_finite() && rate >= 0.0)
        {
            return fail("encoder.rate", rate, "a finite number from 0 on");
        }
        if let Some(met) = self.clip_norm
            && !(met.is_finite() && met > 0.0)
        {
            return fail("clip_norm", met, "a finite number above 0");
        }
        if self.validate_every == Some(0) {
            return fail("validate_every", 0.0, "at least 1");
        }
        if self.patience == Some(0) {
            return fail("patience", 0.0, "at least 1");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn judges_compare_what_they_say() {
        let worse = Validation { loss: 1.0, precision: [0.3, 0.2, 0.1] };
        let better = [
            (Judge::Loss, Validation { loss: 0.5, precision: [0.0; 3] }),
            (Judge::Precision, Validation { loss: 2.0, precision: [0.4, 0.0, 0.0] }),
            (Judge::Precision3, Validation { loss: 2.0, precision: [0.0, 0.3, 0.0] }),
        ];
        for (judge, better) in better {
            assert!(judge.is_better(&better, &worse) && !judge.is_better(&worse, &better), "{judge:?}");
            assert!(!judge.is_better(&worse, &worse), "{judge:?}");
        }
        assert!(!Judge::Loss.is_better(&Validation { loss: f64::NAN, ..worse }, &worse));
    }

    #[test]
    fn names_are_frozen_and_defaults_are_written_as_ever() {
        let params = TrainParams::default();
        assert_eq!(
            serde_json::to_string(&params).unwrap(),
            r#"{"batch_size":512,"epochs":10,"rate":0.001,"encoder":null,"seed":0,"clip_norm":null,"validate_every":null,"patience":null,"judge":"loss","keep":"best"}"#
        );
        let other = TrainParams { judge: Judge::Precision3, patience_from: PatienceFrom::LowestRate, ..params };
        let text = serde_json::to_string(&other).unwrap();
        assert!(text.contains(r#""patience_from":"lowest-rate","judge":"precision-3""#), "{text}");
        assert_eq!(serde_json::from_str::<TrainParams>(&text).unwrap(), other);
    }
}
