//! What was chosen of the settings that networks share. Values that were not come from the [`Preset`] of the kind.

use crate::settings::{Choices, network, refuse_idle, transformer, wide};
use xc_model::classifier::{ClassifierParams, InputKind};
use xc_nn::encoder::transformer::IS_BUILT;
use xc_nn::trainer::Monitor;
use xc_train::fit::FitError;
use xc_train::kinds::has_usual_wide;
use xc_train::network::{EncoderName, NetworkParams, RunParams, TextEncoder};
use xc_train::preset::Preset;

/// How a network looks and learns.
#[derive(Clone, Debug)]
pub(in crate::training) struct NetworkChoices {
    choices: Choices,
    wide: Choices,
    tokens: Choices,
}

impl NetworkChoices {
    pub(super) fn new(choices: &Choices) -> Self {
        Self {
            choices: choices.of(&network::TABLE),
            wide: choices.of(&wide::TABLE),
            tokens: choices.of(&transformer::TABLE),
        }
    }

    /// Refuses a transformer, and settings of one, in a build that has none.
    pub(super) fn check_build(&self) -> Result<(), FitError> {
        let others = self.tokens.iter().map(|(row, _)| row.name).find(|name| *name != "encoder");
        let chosen = match transformer::chosen(&self.tokens) {
            EncoderName::Features => None,
            EncoderName::Transformer => Some("encoder transformer"),
            EncoderName::Frozen => Some("encoder frozen"),
        };
        match chosen.or(others).filter(|_| !IS_BUILT) {
            Some(option) => Err(FitError::without_transformers(format_args!("--{option}"))),
            None => Ok(()),
        }
    }

    /// What a network over these settings reads of instances that are found so.
    pub(in crate::training) fn input(&self, found: InputKind) -> InputKind {
        match transformer::chosen(&self.tokens) {
            EncoderName::Features => found,
            EncoderName::Transformer => InputKind::Tokens,
            EncoderName::Frozen => InputKind::Dense,
        }
    }

    fn is_given(&self, option: &str) -> bool {
        self.choices.get(option).is_some()
    }

    /// The preset with what was asked for, for instances of a kind; `has_file`: whether there is a validation file.
    pub(in crate::training) fn network(
        &self,
        preset: &Preset,
        input: InputKind,
        seed: u64,
        has_file: bool,
    ) -> Result<NetworkParams, FitError> {
        let mut made = self.shown(preset, input)?;
        (made.classifier.learning.seed, made.training.seed) = (seed, seed);
        made.training.monitor = self.monitor(made.training.monitor, has_file)?;
        if let Some(encoder) = transformer::trained(&self.tokens)? {
            encoder.put_below(&mut made.classifier)?;
            made.training.encoder = Some(encoder.rule);
        }
        Ok(made)
    }

    /// The same as far as the settings of networks say it: without seed and transformer.
    pub(super) fn shown(&self, preset: &Preset, input: InputKind) -> Result<NetworkParams, FitError> {
        let made = network::params(preset, input, &self.choices)?;
        Ok(wide::add(made, preset, input, &self.wide)?)
    }

    /// Leaves the wide term out where nobody asked for it and the embeddings keep every feature anyway.
    pub(in crate::training) fn settle(&self, n_features: usize, network: &mut NetworkParams) {
        if self.wide.iter().next().is_none() && !has_usual_wide(n_features, network) {
            network.classifier.learning.wide = None;
        }
    }

    /// Refuses options of layers that a network does not have.
    pub(in crate::training) fn refuse_idle(&self, preset: &Preset, params: &ClassifierParams) -> Result<(), FitError> {
        let encoder = &params.encoder;
        let embeddings = usize::from(encoder.input() == InputKind::Sparse);
        let of_preset = &preset.params.learning;
        let is_of_input = !self.is_given("network.input-dropout") && of_preset.input_dropout == of_preset.dropout;
        let is_idle = self.is_given("network.dropout") && encoder.widths().len() <= embeddings && !is_of_input;
        Ok(refuse_idle(&[("network.dropout", is_idle, "a hidden layer above the input (--network.widths)")])?)
    }

    /// Whether initial embeddings were asked for.
    pub(super) fn has_init(&self) -> bool {
        self.is_given("network.init")
    }

    /// Whether another activation of their sums was asked for.
    pub(super) fn has_activation(&self) -> bool {
        self.is_given("network.activation")
    }

    /// The transformer that learns with the network, where one was chosen.
    pub(super) fn encoder(&self) -> Result<Option<TextEncoder>, FitError> {
        Ok(transformer::trained(&self.tokens)?)
    }

    /// What the run does beside the training.
    pub(in crate::training) fn run(&self) -> Result<RunParams, FitError> {
        Ok(network::run_params(&self.choices)?)
    }

    /// What is to improve: the one that was chosen, or what suits the instances.
    fn monitor(&self, chosen: Monitor, has_file: bool) -> Result<Monitor, FitError> {
        let is_held_out = has_file || self.held_out().is_some();
        match (self.is_given("monitor"), is_held_out) {
            (true, false) if chosen != Monitor::Loss => Err(FitError::usage(format_args!(
                "--monitor {chosen}: held-out instances are expected (--validation or --validation-fraction)"
            ))),
            (true, _) => Ok(chosen),
            (false, true) => Ok(Monitor::default()),
            (false, false) => Ok(Monitor::Loss),
        }
    }

    /// Share of the training instances that is held out.
    pub(super) fn held_out(&self) -> Option<f64> {
        self.choices.validation_fraction().filter(|&share| share > 0.0)
    }
}

/// Choices for a run on all instances: none is held out to judge epochs, so there are as many as asked, nor to say how
/// much a network counts beside a wide term, so it is `weight`.
pub(in crate::training) fn for_all(choices: &Choices, epochs: Option<u32>, weight: Option<f64>) -> Choices {
    let mut all = choices.clone();
    let of_held_out = ["validation-fraction", "split-seed", "patience", "patience-from", "monitor"];
    of_held_out.into_iter().for_each(|name| all.remove(name));
    if let (Some(epochs), Some(row)) = (epochs, network::TABLE.row("epochs")) {
        all.push(row, epochs.into());
    }
    if let (Some(weight), Some(row)) = (weight, wide::TABLE.row("wide.weight")) {
        all.push(row, weight.into());
    }
    all
}
