//! Training of one repetition.

use super::Repetition;
use xc_nn::trainer::{Subset, Summary, TrainError, TrainObserver, Trainer};

impl Repetition {
    /// Initial values that follow from the training instances: see [`Classifier::initialise`](crate::classifier::Classifier::initialise).
    ///
    /// # Errors
    /// The observer asked to stop.
    pub fn initialise(&mut self, train: &Subset<'_>, observer: &TrainObserver<'_>) -> Result<(), TrainError> {
        self.classifier.initialise(train, observer)
    }

    /// Gives up what only training needs: moments and tables.
    pub fn end_training(&mut self) {
        self.classifier.end_training();
    }

    /// Trains on instances with their buckets ([`bucket_rows`](super::bucket_rows)). The trainer's loss should be that
    /// of the parameters, its seed [`repetition_seed`](super::repetition_seed).
    ///
    /// # Errors
    /// As [`Trainer::train`].
    pub fn train(
        &mut self,
        trainer: &mut Trainer<'_>,
        train: &Subset<'_>,
        validation: Option<&Subset<'_>>,
    ) -> Result<Summary, TrainError> {
        self.classifier.train(trainer, train, validation)
    }
}
