//! A network with a sparse output layer.

use super::choices::NetworkChoices;
use super::{Session, Shape, System, params_error};
use crate::classifier::preset::FEW;
use crate::classifier::{ClassifierParams, EmbeddingInit, EncoderParams, HeadParams, InputKind, Preset, preset};
use crate::fit::FitError;
use crate::fit::plan::{Origin, Plan};
use crate::message::{counted, label_of};
use crate::settings::Choices;
use crate::settings::uniform::UniformSettings;
use xc_nn::sampler::SamplerParams;

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
}

impl System for Uniform {
    fn network(&self) -> &NetworkChoices {
        &self.network
    }

    fn preset(&self) -> Preset {
        preset::uniform()
    }

    fn preset_for(&self, shape: &Shape) -> Preset {
        shape.data.map_or_else(preset::uniform, preset::uniform_for)
    }

    fn has_intermediate(&self) -> bool {
        self.head().has_intermediate()
    }

    fn params(&self, shape: &Shape, seed: u64) -> Result<ClassifierParams, FitError> {
        // The preset's last width is the intermediate layer, which has an option of its own.
        let mut preset = self.preset_for(shape);
        let usual = preset.params.encoder.widths_mut().pop();
        let head = UniformSettings::new(&self.choices)?;
        let intermediate = head.intermediate(usual);
        if intermediate.is_none() && !self.network.has_init() {
            preset.params.learning.init = EmbeddingInit::Random;
            preset.params.encoder = EncoderParams::bag(preset.params.encoder.widths());
        }
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

    fn origin(&self, option: &str, _: &Shape) -> Origin {
        match option {
            "network.intermediate" | "batch" | "optimizer.rate" => Origin::Data,
            _ => Origin::Default,
        }
    }

    fn explain(&self, session: &Session<'_>, plan: &mut Plan) {
        let Session { shape, params, training, .. } = session;
        let units = params.encoder.widths().last().copied().filter(|_| self.has_intermediate());
        let (labels, instances) = (shape.n_labels, session.instances.targets().len());
        let has_few = shape.data.is_some_and(|data| data.has_few_instances());
        plan.lines.push((
            "sizes",
            format!(
                "{labels} labels: intermediate layer of {}; {} ({}): batches of {}",
                units.map_or_else(|| "no units".to_owned(), |units| counted(units, "unit")),
                counted(instances, "instance"),
                if has_few { format!("fewer than {FEW}") } else { format!("{FEW} or more") },
                training.batch_size,
            ),
        ));
        let out = &mut plan.resolved;
        out.set_some("network.intermediate", units, "none", Origin::Data);
        if let HeadParams::Sparse(head) = &params.head {
            out.set("head.fan-in", head.fan_in, Origin::Default);
            out.set("head.precision", head.weights.short_name(), Origin::Default);
            let (of, sampler) = (params.learning.connections, params.learning.negatives.sampler);
            out.set("head.moments", of.moments.short_name(), Origin::Default);
            out.set("head.rewire-fraction", of.rewire_fraction, Origin::Default);
            let power = match sampler {
                SamplerParams::Frequency { power, .. } => Some(power),
                _ => None,
            };
            out.set_some("sampler.power", power, "none", Origin::Follows("sampler"));
            out.set("head.rewire-every", of.rewire_every, Origin::Follows("batch"));
            out.set("sampler", label_of(&sampler), Origin::Follows("negatives.sampled"));
        }
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
