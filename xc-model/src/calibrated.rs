//! The calibration of a model; copies with another one, or as the model is.

use super::{Model, QueryError, QueryOptions};
use crate::calibrate::Calibration;
use std::path::Path;
use xc_store::{ContainerWriter, WriteError};

impl Model {
    /// The calibration that maps its scores to probabilities; `None` if it has none.
    pub fn calibration(&self) -> Option<&Calibration> {
        self.calibration.as_ref()
    }

    /// Whether its scores are at most 1; `raw`: those behind a calibration.
    pub fn scores_at_most_one(&self, raw: bool) -> bool {
        (self.calibration.is_some() && !raw) || self.system.scores_at_most_one()
    }

    /// Saves the model with this calibration instead of its own, in one step; the destination may
    /// be the model's own folder. Files are linked if the file system supports it, otherwise
    /// copied.
    ///
    /// # Errors
    /// The folder contains something other than a model; the model was replaced since it was
    /// opened; a file system error.
    ///
    /// # Panics
    /// If there is not one threshold per label.
    pub fn save_calibrated(&self, calibration: &Calibration, destination: impl AsRef<Path>) -> Result<(), WriteError> {
        let destination = destination.as_ref();
        let (got, expected) = (calibration.thresholds.by_label.len(), self.shape.n_labels);
        assert_eq!(got, expected, "one threshold a label");
        let mut writer = ContainerWriter::copy_of(&self.container, destination)?;
        calibration.write(&mut writer)?;
        writer.finish()
    }

    /// Saves the model as it is, in one step, with its index and members. Files of another folder are linked if the file
    /// system supports it, otherwise copied; a model that was never in a folder is written.
    ///
    /// # Errors
    /// The folder contains something other than a model; the model was replaced since it was
    /// opened; a file system error.
    pub fn save(&self, destination: impl AsRef<Path>) -> Result<(), WriteError> {
        ContainerWriter::copy_of(&self.container, destination.as_ref())?.finish()
    }

    /// The calibration that these options apply to scores.
    pub(crate) fn calibration_for(&self, options: &QueryOptions<'_>) -> Result<Option<&Calibration>, QueryError> {
        match (options.scores.threshold, &self.calibration) {
            (Some(_), None) => Err(QueryError::NotCalibrated),
            (Some(_), _) if options.scores.raw => Err(QueryError::RawThreshold),
            (_, calibration) => Ok(calibration.as_ref().filter(|_| !options.scores.raw)),
        }
    }
}
