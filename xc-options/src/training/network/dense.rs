//! A network with one output per label.

use super::choices::NetworkChoices;
use super::{System, params_error};
use crate::settings::Choices;
use xc_train::fit::{FitError, TrainingShape};
use xc_train::kinds::NetworkKind;
use xc_train::network::NetworkParams;
use xc_train::preset::{self, Preset};

pub(super) struct Dense {
    network: NetworkChoices,
}

impl Dense {
    pub(super) fn new(choices: &Choices) -> Self {
        Self { network: NetworkChoices::new(choices) }
    }
}

impl System for Dense {
    fn choices(&self) -> &NetworkChoices {
        &self.network
    }

    fn preset(&self) -> Preset {
        preset::dense()
    }

    fn preset_for(&self, shape: &TrainingShape) -> Preset {
        NetworkKind::Dense.preset_for(shape)
    }

    fn params(&self, shape: &TrainingShape, seed: u64, has_file: bool) -> Result<NetworkParams, FitError> {
        let network = self.network.network(&self.preset_for(shape), shape.input, seed, has_file)?;
        network.classifier.check(shape.n_features, shape.n_labels).map_err(|e| params_error(&e))?;
        Ok(network)
    }
}
