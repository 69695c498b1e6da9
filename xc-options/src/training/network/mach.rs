//! MACH: repetitions over buckets of labels.

use super::choices::NetworkChoices;
use super::{System, params_error};
use crate::settings::mach::{TABLE, layout};
use crate::settings::{Choices, SettingError};
use crate::training::plan::{Resolved, TrainingPlan};
use xc_buffer::Part;
use xc_model::classifier::ClassifierParams;
use xc_model::mach::{MachLayout, MachParams};
use xc_model::message::{chain, counted};
use xc_store::to_parameter;
use xc_train::fit::{FitError, NetworkSession, Outputs, TrainingShape};
use xc_train::kinds::suited_to;
use xc_train::network::NetworkParams;
use xc_train::preset::{self, Preset};

pub(super) struct Mach {
    network: NetworkChoices,
    choices: Choices,
    /// The part of the repetitions that is trained, where it is not all of them.
    part: Option<Part>,
}

impl Mach {
    pub(super) fn new(choices: &Choices, part: Option<Part>) -> Self {
        Self { network: NetworkChoices::new(choices), choices: choices.clone(), part }
    }

    /// The repetitions to train, for so many labels.
    fn layout(&self, n_labels: usize) -> MachLayout {
        // What cannot be is refused by `params`, which comes first.
        let all = layout(n_labels, &self.choices).unwrap_or_else(|_| MachLayout::usual(n_labels));
        let numbers = match self.part {
            Some(part) => {
                let range = part.range(all.numbers.len() as u64);
                all.numbers.start + range.start as u32..all.numbers.start + range.end as u32
            }
            None => all.numbers,
        };
        MachLayout { numbers, ..all }
    }

    /// Numbers of these repetitions.
    fn numbers(&self, n_labels: usize) -> Vec<u32> {
        self.layout(n_labels).numbers.collect()
    }

    /// Buckets of a repetition.
    fn buckets(&self, n_labels: usize) -> u32 {
        self.layout(n_labels).n_buckets
    }

    /// The model over so many labels whose repetitions are such classifiers.
    fn mach_params(&self, n_labels: usize, classifier: &ClassifierParams) -> MachParams {
        self.layout(n_labels).params(classifier.clone())
    }
}

impl System for Mach {
    fn choices(&self) -> &NetworkChoices {
        &self.network
    }

    fn preset(&self) -> Preset {
        preset::mach()
    }

    fn preset_for(&self, shape: &TrainingShape) -> Preset {
        suited_to(shape, self.preset())
    }

    fn params(&self, shape: &TrainingShape, seed: u64, has_file: bool) -> Result<NetworkParams, FitError> {
        let all = layout(shape.n_labels, &self.choices)?;
        if let Some(part) = self.part {
            let n = all.numbers.len();
            if self.choices.get("repetitions-range").is_some() {
                let why = "--part is itself a range of repetitions; one of the two is expected";
                return Err(SettingError::of("repetitions-range", why).into());
            }
            if n < part.of() as usize {
                return Err(FitError::usage(format_args!(
                    "--part {part}: there are {}; so many parts or fewer are expected",
                    counted(n, "repetition")
                )));
            }
        }
        let network = self.network.network(&self.preset_for(shape), shape.input, seed, has_file)?;
        network
            .classifier
            .check(shape.n_features, self.buckets(shape.n_labels) as usize)
            .map_err(|e| params_error(&e))?;
        Ok(network)
    }

    fn outputs(&self, shape: &TrainingShape) -> Result<Outputs, FitError> {
        Ok(Outputs::buckets(self.layout(shape.n_labels)))
    }

    fn resolve(&self, shape: &TrainingShape, _: &NetworkParams, out: &mut Resolved) {
        out.add_placed(&TABLE, &self.layout(shape.n_labels), &self.choices, |_, _| None);
    }

    fn explain(&self, session: &NetworkSession<'_>, plan: &mut TrainingPlan) {
        let n_labels = session.shape.n_labels;
        let params = self.mach_params(n_labels, &session.network.classifier);
        let numbers = self.numbers(n_labels);
        if let Ok(sizing) = params.sizing(n_labels, numbers.len()) {
            plan.lines.push((
                "sizes",
                format!(
                    "{} of {} buckets: {:.1} labels share a bucket; {:.3} times the output weights of one output per \
                     label",
                    counted(numbers.len(), "repetition"),
                    params.n_buckets,
                    sizing.labels_per_bucket(),
                    1.0 / sizing.reduction()
                ),
            ));
        }
        plan.parameters["mach"] = to_parameter(&params);
    }

    /// What a user should know before the long work.
    fn announce(&self, session: &NetworkSession<'_>) -> Result<(), FitError> {
        let (context, n_labels) = (session.context, session.shape.n_labels);
        let params = self.mach_params(n_labels, &session.network.classifier);
        let sizing = params.sizing(n_labels, self.numbers(n_labels).len());
        let sizing =
            sizing.map_err(|e| FitError::usage(format_args!("{}: {}", session.source().display(), chain(&e))))?;
        context.note(format_args!(
            "{} of {} buckets; {} output weights, {:.3} times those of one output per label; {:.1} labels share a bucket",
            counted(self.numbers(n_labels).len(), "repetition"),
            self.buckets(n_labels),
            sizing.output_parameters(),
            1.0 / sizing.reduction(),
            sizing.labels_per_bucket()
        ));
        // Some of a range are not all: whether labels are told apart shows when they are merged.
        let risk = sizing.indistinguishable_probability();
        let is_range = self.choices.get("repetitions-range").is_some() || self.part.is_some();
        if !is_range && risk > 0.5 {
            context.warn(format_args!(
                "so few repetitions of so few buckets leave labels that share all their buckets; {} repetitions would \
                 tell all labels apart with probability 0.99",
                xc_mach::repetitions_needed(n_labels, self.buckets(n_labels) as usize, 0.01).unwrap_or(0)
            ));
        }
        let unseen = session.n_unseen();
        if unseen > 0 {
            context.warn(format_args!(
                "{unseen} of {n_labels} labels have no training instance: they score by the buckets that they share \
                 with others"
            ));
        }
        Ok(())
    }
}
