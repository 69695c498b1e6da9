//! A network with one output per label.

use super::choices::NetworkChoices;
use super::{System, TrainingShape, params_error};
use crate::fit::FitError;
use crate::network::NetworkParams;
use crate::preset::{self, Preset};
use crate::settings::Choices;
use xc_model::classifier::InputKind;
use xc_nn::Loss;

pub(in crate::fit) struct Dense {
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
        suited_to(shape, self.preset())
    }

    fn params(&self, shape: &TrainingShape, seed: u64, has_file: bool) -> Result<NetworkParams, FitError> {
        let network = self.network.network(&self.preset_for(shape), shape.input, seed, has_file)?;
        network.classifier.check(shape.n_features, shape.n_labels).map_err(|e| params_error(&e))?;
        Ok(network)
    }
}

/// The preset with the softmax where no instance has more than one label, with enough steps for few vectors, and as it is
/// above a transformer where instances are tokens.
pub(super) fn suited_to(shape: &TrainingShape, mut preset: Preset) -> Preset {
    if shape.most_labels <= 1 {
        preset.params.loss = Loss::Softmax;
    }
    if let (InputKind::Dense, Some(data)) = (shape.input, shape.data) {
        preset = preset.with_steps_for(data.n_instances);
    }
    shape.above_input(preset)
}
