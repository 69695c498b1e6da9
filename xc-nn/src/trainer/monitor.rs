//! What is watched while a training runs, and when that ends it.

use super::Validation;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use xc_metrics::Metric;

/// What says whether a validation is better than those before. Where no instance is held out the
/// mean training loss of each epoch takes its place; the parameters of the best epoch are not kept
/// then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Monitor {
    /// The mean loss; smaller is better.
    Loss,
    /// A metric; larger is better. `MAP` and `MRR` without a cut see the best 100.
    Metric(Metric),
}

impl Default for Monitor {
    /// P@1.
    fn default() -> Self {
        Self::Metric(Metric::Precision(1))
    }
}

impl Monitor {
    /// Its value in a validation.
    ///
    /// # Panics
    /// If the validation did not compute the metric.
    pub fn value(self, validation: &Validation) -> f64 {
        match self {
            Self::Loss => validation.loss,
            Self::Metric(metric) => validation
                .metrics
                .value(metric)
                .unwrap_or_else(|| panic!("{metric} is monitored, and the validation has no such metric")),
        }
    }

    /// Whether a value is better than the best one before. What is no finite number is never
    /// better.
    pub fn is_better(self, value: f64, best: Option<f64>) -> bool {
        let above = |best: f64| if self == Self::Loss { value < best } else { value > best };
        value.is_finite() && best.is_none_or(above)
    }
}

impl fmt::Display for Monitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Loss => f.write_str("loss"),
            Self::Metric(metric) => metric.fmt(f),
        }
    }
}

impl FromStr for Monitor {
    type Err = UnknownMonitor;

    fn from_str(name: &str) -> Result<Self, UnknownMonitor> {
        match name {
            "loss" => Ok(Self::Loss),
            _ => name.parse().map(Self::Metric).map_err(|_| UnknownMonitor { name: name.into() }),
        }
    }
}

impl From<Monitor> for String {
    fn from(monitor: Monitor) -> Self {
        monitor.to_string()
    }
}

impl TryFrom<String> for Monitor {
    type Error = UnknownMonitor;

    fn try_from(name: String) -> Result<Self, UnknownMonitor> {
        name.parse()
    }
}

/// A name that is neither `loss` nor a metric's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "got {name:?}, expected loss or a metric: P@k, nDCG@k, PSP@k, PSnDCG@k, recall@k, MAP@k, coverage@k, macro-F1@k, micro-F1@k, MAP or MRR"
)]
pub struct UnknownMonitor {
    /// The name.
    pub name: Box<str>,
}

/// Ends a training run that no longer gets better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EarlyStopping {
    /// Validations without improvement after which training ends.
    pub patience: u32,
    /// From when on they are counted.
    pub from: PatienceFrom,
}

/// From when on validations without improvement are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PatienceFrom {
    /// From the beginning.
    #[default]
    Start,
    /// Those of steps at the schedule's lowest rate alone
    /// ([`Schedule::is_lowest`](crate::Schedule::is_lowest)). With a schedule that never gets there
    /// training does not end early.
    LowestRate,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_smaller_loss_and_a_larger_metric_are_better_and_what_is_no_number_is_not() {
        let psp: Monitor = "PSP@5".parse().unwrap();
        assert_eq!(psp, Monitor::Metric(Metric::Psp(5)));
        assert!(Monitor::Loss.is_better(0.5, Some(1.0)) && !Monitor::Loss.is_better(1.0, Some(0.5)));
        assert!(psp.is_better(1.0, Some(0.5)) && !psp.is_better(0.5, Some(1.0)));
        for monitor in [Monitor::Loss, psp] {
            assert!(!monitor.is_better(0.5, Some(0.5)) && monitor.is_better(0.5, None));
            assert!(!monitor.is_better(f64::NAN, None) && !monitor.is_better(f64::INFINITY, None));
        }
    }

    #[test]
    fn names_read_back() {
        for name in ["loss", "P@1", "PSP@5", "macro-F1@3", "MRR"] {
            let monitor: Monitor = name.parse().unwrap();
            assert_eq!((monitor.to_string(), serde_json::to_value(monitor).unwrap()), (name.into(), name.into()));
            assert_eq!(serde_json::from_value::<Monitor>(name.into()).unwrap(), monitor);
        }
        assert!("p@1".parse::<Monitor>().unwrap_err().to_string().contains("expected loss or a metric"));
    }
}
