//! Which training instances are held out to judge.

use crate::settings::Choices;
use xc_data::HoldOut;
use xc_train::fit::FitError;

impl Choices {
    /// The share of the training instances that was asked to be held out.
    pub(crate) fn validation_fraction(&self) -> Option<f64> {
        self.value("validation-fraction")
    }

    /// The seed that instances are held out by, if it is not that of the run.
    pub(crate) fn split_seed(&self) -> Option<u64> {
        self.value("split-seed")
    }

    /// Which instances are held out in a run under a seed.
    ///
    /// # Errors
    /// No share from 0 to below 1.
    pub(crate) fn hold_out(&self, seed: u64) -> Result<Option<HoldOut>, FitError> {
        match self.validation_fraction() {
            Some(got) if !(0.0..1.0).contains(&got) => {
                Err(FitError::usage(format_args!("--validation-fraction {got}: a share from 0 to below 1 is expected")))
            }
            share => {
                let seed = self.split_seed().unwrap_or(seed);
                Ok(share.filter(|&share| share > 0.0).map(|share| HoldOut { share, seed, part: 0 }))
            }
        }
    }
}
