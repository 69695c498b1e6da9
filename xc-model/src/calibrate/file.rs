//! A calibration in the folder of its model. See `docs/formats/calibration.md`.

use super::curve::Points;
use super::{Calibration, Curve, Method, Thresholds};
use crate::blend::FeatureScale;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::path::PathBuf;
use thiserror::Error;
use xc_store::{Container, ContainerWriter, OpenError, WriteError};

/// The name of the parameter, and the prefix of the arrays' names.
const CALIBRATION: &str = "calibration";
/// The part of the model that holds the arrays.
const FILE: &str = "calibration";
const SCORES: &str = "calibration.scores";
const PROBABILITIES: &str = "calibration.probabilities";
const THRESHOLDS: &str = "calibration.thresholds";
const BY_LABEL: &str = "calibration.label_thresholds";

/// The entry in `config.json`.
#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    method: Method,
    top_k: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    scale: Option<FeatureScale>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    slope: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bias: Option<f64>,
}

/// Why the calibration of a folder cannot be opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenCalibrationError {
    /// The container itself.
    #[error(transparent)]
    Container(#[from] OpenError),
    /// Invalid content.
    #[error("{}: calibration: {what}", path.display())]
    Content {
        /// The folder.
        path: PathBuf,
        /// What is wrong.
        what: &'static str,
    },
}

impl Calibration {
    /// Whether a model's folder contains a calibration.
    pub fn is_in(container: &Container) -> bool {
        container.parameters().get(CALIBRATION).is_some_and(|entry| !entry.is_null())
    }

    /// The calibration of a model with `n_labels` labels; `None` if its folder contains none.
    ///
    /// # Errors
    /// See [`OpenCalibrationError`].
    pub fn read(container: &Container, n_labels: usize) -> Result<Option<Self>, OpenCalibrationError> {
        let Some(entry) = container.parameter::<Option<Entry>>(CALIBRATION)? else { return Ok(None) };
        let wrong = |what| OpenCalibrationError::Content { path: container.folder().to_owned(), what };
        let curve = match entry.method {
            Method::Isotonic => {
                let [scores, probabilities] = [SCORES, PROBABILITIES].map(|name| container.array::<f32>(name));
                Curve::Isotonic(Points::try_new(scores?.to_vec(), probabilities?.to_vec()).map_err(wrong)?)
            }
            Method::Platt => match (entry.scale, entry.slope, entry.bias) {
                (Some(scale), Some(slope), Some(bias)) if slope >= 0.0 && slope.is_finite() && bias.is_finite() => {
                    Curve::Platt { scale, slope, bias }
                }
                _ => return Err(wrong("a scale, a finite slope of 0 or more and a finite bias are expected")),
            },
        };
        let all = container.array_shaped::<f32>(THRESHOLDS, &[2])?;
        let by_label = container.array_shaped::<f32>(BY_LABEL, &[n_labels])?.to_vec();
        if all.iter().chain(&by_label).any(|threshold| !threshold.is_finite()) {
            return Err(wrong("thresholds are finite"));
        }
        if entry.top_k == 0 {
            return Err(wrong("top_k is 1 or more"));
        }
        let thresholds = Thresholds { micro: all[0], macro_: all[1], by_label };
        Ok(Some(Self { curve, thresholds, top_k: entry.top_k }))
    }

    /// Adds it to a container, in its own file; replaces an existing one.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub fn write(&self, writer: &mut ContainerWriter) -> Result<(), WriteError> {
        Self::remove(writer)?;
        let mut entry = Entry { method: self.curve.method(), top_k: self.top_k, scale: None, slope: None, bias: None };
        writer.begin_file(FILE)?;
        match &self.curve {
            Curve::Isotonic(points) => {
                writer.add_slice(SCORES, points.scores())?;
                writer.add_slice(PROBABILITIES, points.probabilities())?;
            }
            Curve::Platt { scale, slope, bias } => {
                (entry.scale, entry.slope, entry.bias) = (Some(*scale), Some(*slope), Some(*bias));
            }
        }
        writer.add_slice(THRESHOLDS, &[self.thresholds.micro, self.thresholds.macro_])?;
        writer.add_slice(BY_LABEL, &self.thresholds.by_label)?;
        writer.set_parameter(CALIBRATION, json!(entry));
        Ok(())
    }

    /// Removes the calibration from a container that was begun as a copy of another.
    ///
    /// # Errors
    /// Its file cannot be removed.
    pub fn remove(writer: &mut ContainerWriter) -> Result<(), WriteError> {
        writer.remove_parameter(CALIBRATION);
        writer.remove_file(FILE)
    }

    /// Whether an array belongs to a calibration.
    pub fn is_array(name: &str) -> bool {
        name.strip_prefix(CALIBRATION).is_some_and(|rest| rest.starts_with('.'))
    }
}
