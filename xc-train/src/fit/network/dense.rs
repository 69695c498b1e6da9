//! A network with one output per label.

use super::choices::NetworkChoices;
use super::{Shape, System, params_error};
use crate::classifier::{ClassifierParams, Preset, preset};
use crate::fit::FitError;
use crate::fit::plan::Origin;
use crate::settings::Choices;
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
    fn network(&self) -> &NetworkChoices {
        &self.network
    }

    fn preset(&self) -> Preset {
        preset::dense()
    }

    fn params(&self, shape: &Shape, seed: u64) -> Result<ClassifierParams, FitError> {
        let mut params = self.network.apply(&self.preset(), shape.input, seed)?;
        if !self.network.has_loss() {
            params.loss = loss_for(shape);
        }
        params.check(shape.n_features, shape.n_labels).map_err(|e| params_error(&e))?;
        Ok(params)
    }

    fn origin(&self, option: &str, _: &Shape) -> Origin {
        if option == "loss" { Origin::Data } else { Origin::Default }
    }
}

/// The loss for instances unless one was asked for: softmax where one label is right.
pub(super) fn loss_for(shape: &Shape) -> Loss {
    if shape.most_labels <= 1 { Loss::Softmax } else { Loss::Bce }
}
