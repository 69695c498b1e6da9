//! A network with a sparse output layer.

use super::choices::NetworkChoices;
use super::{System, params_error};
use crate::settings::{Choices, uniform};
use crate::training::plan::{Resolved, TrainingPlan};
use xc_model::classifier::{EmbeddingInit, EncoderParams, InputKind};
use xc_model::message::counted;
use xc_train::fit::{FitError, NetworkSession, TrainingShape};
use xc_train::network::{NetworkParams, UniformParams};
use xc_train::preset::{self, FEW, Preset};

pub(super) struct Uniform {
    network: NetworkChoices,
    choices: Choices,
}

impl Uniform {
    pub(super) fn new(choices: &Choices) -> Self {
        Self { network: NetworkChoices::new(choices), choices: choices.clone() }
    }

    /// What is beneath the intermediate layer, the preset's second one, and the usual units of this where there is one.
    fn beneath(&self, shape: &TrainingShape) -> (Preset, Option<usize>) {
        let mut preset = match shape.data {
            None => preset::uniform(),
            Some(data) if shape.input != InputKind::Sparse || uniform::asks_for_layer(&self.choices) => {
                preset::uniform_with_layer_for(data)
            }
            Some(data) => preset::uniform_for(data),
        };
        let widths = preset.params.encoder.widths_mut();
        let usual = if widths.len() > 1 { widths.pop() } else { None };
        let has_none = self.choices.get("network.intermediate").is_some() && !uniform::asks_for_layer(&self.choices);
        if usual.is_some() && has_none && !self.network.has_init() {
            preset.params.learning.init = EmbeddingInit::Random;
            preset.params.encoder = EncoderParams::bag(preset.params.encoder.widths());
        }
        (shape.above_input(preset), usual)
    }

    /// Units of the intermediate layer of a network, where it has one.
    fn units(&self, shape: &TrainingShape, network: &NetworkParams) -> Option<usize> {
        network.classifier.encoder.widths().last().copied().filter(|_| self.has_intermediate(shape))
    }
}

impl System for Uniform {
    fn choices(&self) -> &NetworkChoices {
        &self.network
    }

    fn preset(&self) -> Preset {
        preset::uniform()
    }

    fn preset_for(&self, shape: &TrainingShape) -> Preset {
        self.beneath(shape).0
    }

    fn has_intermediate(&self, shape: &TrainingShape) -> bool {
        match self.choices.get("network.intermediate") {
            Some(_) => uniform::asks_for_layer(&self.choices),
            None => self.beneath(shape).1.is_some(),
        }
    }

    fn params(&self, shape: &TrainingShape, seed: u64, has_file: bool) -> Result<NetworkParams, FitError> {
        let (preset, intermediate) = self.beneath(shape);
        let network = self.network.network(&preset, shape.input, seed, has_file)?;
        if shape.input == InputKind::Sparse && network.classifier.encoder.widths().is_empty() {
            return Err(FitError::usage("--network.widths: at least one width is expected, none of them 0"));
        }
        let made = uniform::params(UniformParams { network, intermediate }, &self.choices)?;
        if made.intermediate == Some(0) {
            return Err(FitError::usage("--network.intermediate 0: at least 1 unit is expected, or none"));
        }
        let network = made.into_network();
        network.classifier.check(shape.n_features, shape.n_labels).map_err(|e| params_error(&e))?;
        Ok(network)
    }

    fn resolve(&self, shape: &TrainingShape, network: &NetworkParams, out: &mut Resolved) {
        let mut shown = UniformParams { network: network.clone(), intermediate: self.units(shape, network) };
        let beneath = shown.network.classifier.encoder.widths_mut();
        beneath.truncate(beneath.len() - usize::from(shown.intermediate.is_some()));
        out.add_placed(&uniform::TABLE, &shown, &self.choices, |_, _| None);
    }

    fn explain(&self, session: &NetworkSession<'_>, plan: &mut TrainingPlan) {
        let NetworkSession { shape, network, .. } = session;
        let training = &network.training;
        let units = self.units(shape, network);
        let (labels, instances) = (shape.n_labels, session.instances.targets().len());
        let has_few = shape.data.is_some_and(|data| data.has_few_instances());
        let is_of_many = shape.sparse_data().is_some_and(|data| data.is_of_many_labels());
        plan.lines.push((
            "sizes",
            format!(
                "{labels} labels{}: intermediate layer of {}; {} ({}): batches of {}",
                if is_of_many { " (many, or all rare, of short instances)" } else { "" },
                units.map_or_else(|| "no units".to_owned(), |units| counted(units, "unit")),
                counted(instances, "instance"),
                if has_few { format!("fewer than {FEW}") } else { format!("{FEW} or more") },
                training.batch_size,
            ),
        ));
    }

    fn announce(&self, session: &NetworkSession<'_>) -> Result<(), FitError> {
        let (unseen, n_labels) = (session.n_unseen(), session.shape.n_labels);
        if unseen > 0 {
            session.context.note(format_args!(
                "{unseen} of {n_labels} labels have no training instance: they are trained as negatives only"
            ));
        }
        Ok(())
    }
}
