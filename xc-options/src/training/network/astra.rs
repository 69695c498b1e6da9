//! A network whose steps score the hardest labels, and uniform ones.

use super::System;
use super::choices::NetworkChoices;
use super::lns::few_or_long;
use crate::settings::{Choices, Setting, astra};
use crate::training::Training;
use crate::training::plan::{Resolved, TrainingPlan};
use xc_data::HoldOut;
use xc_model::classifier::InputKind;
use xc_nn::Loss;
use xc_nn::sampler::Weighting;
use xc_train::astra::{AstraParams, Retrieval, Strategy};
use xc_train::fit::{Context, FitError, Instances, NetworkSession, TrainingShape};
use xc_train::kinds::NetworkKind;
use xc_train::network::NetworkParams;
use xc_train::preset::{self, Preset};

pub(super) struct Astra {
    network: NetworkChoices,
    choices: Choices,
}

impl Astra {
    pub(super) fn new(choices: &Choices) -> Self {
        Self { network: NetworkChoices::new(choices), choices: choices.clone() }
    }

    /// The negatives of a step; what cannot be is refused by `params`, which comes first.
    fn negatives(&self, n_labels: usize) -> AstraParams {
        astra::params(n_labels, &self.choices).unwrap_or_default()
    }
}

impl System for Astra {
    fn choices(&self) -> &NetworkChoices {
        &self.network
    }

    fn check(&self, of: &Training) -> Result<(), FitError> {
        let has_texts = of.source.has_label_features();
        if has_texts && of.source.input() == InputKind::Dense {
            return Err(FitError::usage(
                "--label-features: instances are vectors; sparse features or text are expected",
            ));
        }
        if astra::params(0, &self.choices)?.strategy == Strategy::LabelText && !has_texts {
            return Err(FitError::usage(
                "--sampler label-text: texts of the labels are expected (--label-features FILE)",
            ));
        }
        Ok(())
    }

    fn read(&self, of: &Training, hold_out: Option<HoldOut>, context: &Context<'_>) -> Result<Instances, FitError> {
        let named = of.reading()?.with_transformer(&self.preset())?;
        named.refuse_idle()?;
        let reading = named.ready();
        let mut sets = reading.read(hold_out, context)?;
        reading.add_label_rows(&mut sets, context)?;
        Ok(Instances::Files(sets))
    }

    fn preset(&self) -> Preset {
        preset::astra()
    }

    fn preset_for(&self, shape: &TrainingShape) -> Preset {
        NetworkKind::Astra.preset_for(shape)
    }

    fn params(&self, shape: &TrainingShape, seed: u64, has_file: bool) -> Result<NetworkParams, FitError> {
        let network = self.network.network(&self.preset_for(shape), shape.input, seed, has_file)?;
        Ok(astra::add(network, shape.n_features, shape.n_labels, &self.choices)?)
    }

    /// Says where all labels would do.
    fn announce(&self, session: &NetworkSession<'_>) -> Result<(), FitError> {
        let n_labels = session.shape.n_labels;
        if self.negatives(n_labels).strategy != Strategy::All && n_labels < SOME_LABELS {
            session
                .context
                .note(format_args!("{n_labels} labels: steps over all of them take little more time (--sampler all)"));
        }
        Ok(())
    }

    fn resolve(&self, shape: &TrainingShape, network: &NetworkParams, out: &mut Resolved) {
        let none = |_: &Setting, _: Option<&str>| None;
        let of = astra::shown(&self.negatives(shape.n_labels), shape.n_labels);
        out.add_placed(&astra::TABLE, &of, &self.choices, none);
        out.add_placed(&astra::TABLE, network, &self.choices, none);
    }

    fn explain(&self, session: &NetworkSession<'_>, plan: &mut TrainingPlan) {
        plan.lines.push(few_or_long(&session.shape));
        let n_labels = session.shape.n_labels;
        let of = self.negatives(n_labels);
        let mut out = Vec::new();
        let decay = match session.network.classifier.loss {
            Loss::Softmax => "one label is right",
            _ => "multi-label loss",
        };
        out.push(("loss", format!("{decay}; biases are initialised from the frequency of each label")));
        let uniform = of.n_uniform(n_labels).min(n_labels);
        let hard_labels = of.hard.per_instance.min(n_labels);
        let hard = match (of.strategy, of.retrieval) {
            (Strategy::All, _) => "all labels: nothing is left out".to_owned(),
            (Strategy::Random, _) => format!("{uniform} uniform labels per list"),
            (Strategy::InBatch, _) => format!("true labels of the batch, {uniform} uniform ones"),
            (_, Retrieval::InStep) if of.hard.is_exact(n_labels) => format!(
                "{} hard labels per instance by comparing all (cheaper up to {} labels), {uniform} uniform ones per list",
                hard_labels, of.hard.exact_below
            ),
            (_, Retrieval::InStep) => format!(
                "{} hard labels per instance by an index of recall {}, repaired {}, {uniform} uniform ones per list",
                hard_labels,
                of.hard.recall,
                repairs(of.hard.every)
            ),
            (_, Retrieval::Exact) => {
                format!("{} hard labels per instance by comparing all, {uniform} uniform ones per list", hard_labels)
            }
            (_, Retrieval::Schedule) => format!(
                "{} hard labels per instance, found every {} epochs in parallel with training, {uniform} uniform ones per \
                 list",
                hard_labels, of.every_epochs
            ),
        };
        out.push(("negatives", hard));
        let weight = match of.weighting {
            Weighting::Inverse { cap: Some(cap) } => {
                format!(
                    "as many labels as it stands for, at most {cap}: larger weights dominate the optimiser's moments"
                )
            }
            Weighting::Inverse { cap: None } => "as many labels as it stands for: sums are unbiased".to_owned(),
            _ => "1".to_owned(),
        };
        out.push(("weights", format!("a uniform label counts {weight}")));
        let advice = match n_labels {
            0..SOME_LABELS if of.strategy != Strategy::All => {
                "--sampler all: on a CPU sampling saves little below 30,000 labels; training on all labels needs a \
                 lower rate"
            }
            0..SOME_LABELS => "all labels, as asked",
            _ => "lists: a step over all labels would take several times as long",
        };
        out.push(("advice", advice.to_owned()));
        plan.lines.extend(out);
    }
}

/// Labels below which sampling saves little.
const SOME_LABELS: usize = 30_000;

/// When the index is repaired.
fn repairs(every: u64) -> String {
    match every {
        0 => astra::REPAIRED.to_owned(),
        every => format!("every {every} steps and once an epoch"),
    }
}
