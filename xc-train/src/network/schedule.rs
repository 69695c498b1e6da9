//! Schedules of the learning rate by name.

use serde::{Deserialize, Serialize};
use std::fmt;
use xc_nn::Schedule;
use xc_nn::schedule::{Constant, HalveOnPlateau, WarmupCosine};

/// Share of the steps in which the rate of a cosine rises from 0.
const WARMUP: f64 = 0.05;

/// How the learning rate changes; in `xc-nn` each is a type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScheduleName {
    /// It does not.
    Constant,
    /// Warm-up, then down to 0.
    #[default]
    Cosine,
    /// Halved when the monitored value stops improving.
    Plateau,
}

/// A schedule before the number of steps is known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RateSchedule {
    /// Which.
    pub name: ScheduleName,
    /// Share of the rate that stays (plateau); `None`: 0.
    pub lowest: Option<f64>,
}

impl RateSchedule {
    /// Share of the rate that stays.
    pub fn lowest(&self) -> f64 {
        self.lowest.unwrap_or(0.0)
    }

    /// Whether the rate reaches its lowest value before the training is over.
    pub fn has_lowest(&self) -> bool {
        match self.name {
            ScheduleName::Constant => true,
            // At its lowest the training is over.
            ScheduleName::Cosine => false,
            ScheduleName::Plateau => self.lowest() > 0.0,
        }
    }

    /// Learning rates over `steps` steps.
    pub fn over(&self, steps: u64) -> Box<dyn Schedule> {
        match self.name {
            ScheduleName::Constant => Box::new(Constant),
            ScheduleName::Cosine => {
                let warmup = (steps as f64 * WARMUP).round() as u64;
                Box::new(WarmupCosine { warmup, total: steps, floor: 0.0 })
            }
            ScheduleName::Plateau => Box::new(HalveOnPlateau::new(1).down_to(self.lowest())),
        }
    }
}

impl fmt::Display for RateSchedule {
    /// In a word, for the model's own record.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.name, self.lowest) {
            (ScheduleName::Constant, _) => f.write_str("constant"),
            (ScheduleName::Cosine, _) => write!(f, "cosine, warm-up {WARMUP}"),
            (ScheduleName::Plateau, None) => f.write_str("plateau"),
            (ScheduleName::Plateau, Some(lowest)) => write!(f, "plateau, lowest {lowest}"),
        }
    }
}
