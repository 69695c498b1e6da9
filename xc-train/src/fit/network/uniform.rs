//! A network with a sparse output layer.

use super::choices::NetworkChoices;
use super::{Session, Shape, System, params_error};
use crate::classifier::preset::FEW;
use crate::classifier::{ClassifierParams, EmbeddingInit, EncoderParams, InputKind, Preset, preset};
use crate::fit::FitError;
use crate::fit::plan::Plan;
use crate::message::counted;
use crate::settings::Choices;
use crate::settings::uniform::{self, UniformSettings};

pub(in crate::fit) struct Uniform {
    network: NetworkChoices,
    choices: Choices,
}

impl Uniform {
    pub(super) fn new(choices: &Choices) -> Self {
        Self { network: NetworkChoices::new(choices), choices: choices.clone() }
    }

    fn head(&self) -> UniformSettings {
        UniformSettings::new(&self.choices).unwrap_or_default()
    }

    /// What is beneath the intermediate layer, the preset's second one, and the units of this where there is one.
    fn beneath(&self, shape: &Shape) -> (Preset, Option<usize>) {
        let head = self.head();
        let mut preset = match shape.data {
            None => preset::uniform(),
            Some(data) if shape.input != InputKind::Sparse || head.asks_for_layer() => {
                preset::uniform_with_layer_for(data)
            }
            Some(data) => preset::uniform_for(data),
        };
        let widths = preset.params.encoder.widths_mut();
        let usual = if widths.len() > 1 { widths.pop() } else { None };
        let intermediate = head.intermediate(usual);
        if usual.is_some() && intermediate.is_none() && !self.network.has_init() {
            preset.params.learning.init = EmbeddingInit::Random;
            preset.params.encoder = EncoderParams::bag(preset.params.encoder.widths());
        }
        (shape.above_input(preset), intermediate)
    }
}

impl System for Uniform {
    fn network(&self) -> &NetworkChoices {
        &self.network
    }

    fn preset(&self) -> Preset {
        preset::uniform()
    }

    fn preset_for(&self, shape: &Shape) -> Preset {
        self.beneath(shape).0
    }

    fn has_intermediate(&self, shape: &Shape) -> bool {
        self.beneath(shape).1.is_some()
    }

    fn params(&self, shape: &Shape, seed: u64) -> Result<ClassifierParams, FitError> {
        let head = UniformSettings::new(&self.choices)?;
        let (preset, intermediate) = self.beneath(shape);
        let mut params = self.network.apply(&preset, shape.input, seed)?;
        if shape.input == InputKind::Sparse && params.encoder.widths().is_empty() {
            return Err(FitError::usage("--network.widths: at least one width is expected, none of them 0"));
        }
        if intermediate == Some(0) {
            return Err(FitError::usage("--network.intermediate 0: at least 1 unit is expected, or none"));
        }
        params.encoder.widths_mut().extend(intermediate);
        head.put(self.network.batch_size(&preset), &mut params)?;
        params.check(shape.n_features, shape.n_labels).map_err(|e| params_error(&e))?;
        Ok(params)
    }

    fn explain(&self, session: &Session<'_>, plan: &mut Plan) {
        let Session { shape, params, training, .. } = session;
        let units = params.encoder.widths().last().copied().filter(|_| self.has_intermediate(shape));
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
        plan.resolved.add(&uniform::TABLE, &UniformSettings::of(params, units), &self.choices, |_, _| None);
    }

    fn announce(&self, session: &Session<'_>) -> Result<(), FitError> {
        let (unseen, n_labels) = (session.n_unseen(), session.shape.n_labels);
        if unseen > 0 {
            session.context.note(format_args!(
                "{unseen} of {n_labels} labels have no training instance: they are trained as negatives only"
            ));
        }
        Ok(())
    }
}
