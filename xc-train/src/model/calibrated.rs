//! The calibration of a model, and saving one.

use super::{Model, QueryError, QueryOptions};
use crate::calibrate::Calibration;
use std::path::Path;
use xc_sparse::store::{ContainerWriter, WriteError};

impl Model {
    /// How its scores become probabilities, where it was calibrated.
    pub fn calibration(&self) -> Option<&Calibration> {
        self.calibration.as_ref()
    }

    /// Saves the model with a calibration in place of its own, in one step; the model's own folder
    /// may be the destination. Its files are linked where the file system can, else copied.
    ///
    /// # Errors
    /// The folder holds something else than a model; the model was replaced since it was opened;
    /// the file system refuses.
    ///
    /// # Panics
    /// If there is not one threshold a label.
    pub fn save_calibrated(&self, calibration: &Calibration, destination: &Path) -> Result<(), WriteError> {
        let (got, expected) = (calibration.thresholds.by_label.len(), self.shape.n_labels);
        assert_eq!(got, expected, "one threshold a label");
        let mut writer = ContainerWriter::copy_of(&self.container, destination)?;
        calibration.write(&mut writer)?;
        writer.finish()
    }

    /// What scores go through, as options say.
    pub(super) fn calibration_for(&self, options: &QueryOptions<'_>) -> Result<Option<&Calibration>, QueryError> {
        match (options.scores.threshold, &self.calibration) {
            (Some(_), None) => Err(QueryError::NotCalibrated),
            (Some(_), _) if options.scores.raw => Err(QueryError::RawThreshold),
            (_, calibration) => Ok(calibration.as_ref().filter(|_| !options.scores.raw)),
        }
    }
}
