//! What was chosen of the settings that networks share. Values that were not come from the [`Preset`] of the kind.

use crate::classifier::{Classifier, ClassifierParams, InputKind, Preset, preset};
use crate::fit::{Context, FitError};
use crate::settings::network::{self, NetworkSettings, ScheduleName};
use crate::settings::transformer::{self, EncoderName, TransformerSettings};
use crate::settings::wide::{self, WideSettings};
use crate::settings::{Choices, refuse_idle};
use xc_nn::encoder::transformer::IS_BUILT;
use xc_nn::schedule::{Constant, HalveOnPlateau, WarmupCosine};
use xc_nn::trainer::{Monitor, Subset};
use xc_nn::{Optimizer, Schedule, TrainParams};

/// Share of the steps in which the rate of a cosine rises from 0.
const WARMUP: f64 = 0.05;

/// How a network looks and learns.
#[derive(Clone, Debug)]
pub(in crate::fit) struct NetworkChoices {
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
        let chosen = match EncoderName::of(&self.tokens) {
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
    pub(super) fn input(&self, found: InputKind) -> InputKind {
        match EncoderName::of(&self.tokens) {
            EncoderName::Features => found,
            EncoderName::Transformer => InputKind::Tokens,
            EncoderName::Frozen => InputKind::Dense,
        }
    }

    /// Says by their hash with which weights a transformer begins: other weights are another training.
    pub(super) fn name_weights(&self, params: &mut ClassifierParams) -> Result<(), FitError> {
        if let Some(settings) = TransformerSettings::trained(&self.tokens)? {
            params.learning.tokens.begins_with = Some(crate::fit::transformer::hash(&settings)?);
        }
        Ok(())
    }

    /// Begins the transformer of a classifier from its folder, where there is one.
    pub(super) fn begin(&self, classifier: &mut Classifier) -> Result<(), FitError> {
        if let Some(settings) = TransformerSettings::trained(&self.tokens)? {
            crate::fit::transformer::begin(&settings, classifier)?;
        }
        Ok(())
    }

    /// Keeps what frozen layers make of the instances that are learned from, if that was asked for.
    pub(super) fn cache_states(
        &self,
        classifier: &mut Classifier,
        train: &Subset<'_>,
        context: &Context<'_>,
    ) -> Result<(), FitError> {
        if self.caches_states()
            && let (xc_nn::Rows::Tokens(rows), Some(transformer)) =
                (train.examples().features(), classifier.transformer_mut())
        {
            let mut done = context.observer.task("texts through frozen layers");
            let goes_on = |n: usize| {
                done(n as u64);
                context.check_interrupt().is_ok()
            };
            let kept = transformer.cache_states(rows, train.rows(), goes_on);
            kept.map_err(|e| FitError::usage(crate::message::chain(&e)))?;
            context.check_interrupt()?;
        }
        Ok(())
    }

    /// Whether states of frozen layers stay in memory.
    pub(super) fn caches_states(&self) -> bool {
        self.tokens.value("transformer.cache-states").unwrap_or(false)
    }

    /// What they come to for instances of a kind.
    pub(super) fn settings(&self, preset: &Preset, input: InputKind) -> Result<NetworkSettings, FitError> {
        Ok(NetworkSettings::new(preset, input, &self.choices)?)
    }

    /// The same of what no preset says; options that cannot be are refused when a preset is known.
    fn alone(&self) -> NetworkSettings {
        let preset = preset::dense();
        let made = NetworkSettings::new(&preset, InputKind::Sparse, &self.choices);
        made.unwrap_or_else(|_| NetworkSettings::of_preset(&preset, InputKind::Sparse))
    }

    fn is_given(&self, option: &str) -> bool {
        self.choices.get(option).is_some()
    }

    /// The preset with what was asked for, for instances of a kind.
    pub(super) fn apply(&self, preset: &Preset, input: InputKind, seed: u64) -> Result<ClassifierParams, FitError> {
        let mut params = preset.params.clone();
        params.learning.seed = seed;
        self.settings(preset, input)?.put(&mut params);
        params.learning.wide = WideSettings::new(params.learning.wide, input, &self.wide)?.learning();
        if let Some(settings) = TransformerSettings::trained(&self.tokens)? {
            crate::fit::transformer::put(&settings, &mut params)?;
        }
        Ok(params)
    }

    /// Leaves the wide term out where nobody asked for it and the embeddings keep every feature anyway.
    pub(super) fn settle(&self, n_features: usize, params: &mut ClassifierParams) {
        /// Features for each value of an embedding from which there are words that it does not keep. Beside 1,024 values
        /// rankers cost delicious (500 features) 0.7 points of held-out P@1 at the best weight, and gain bibtex (1,836)
        /// nothing.
        const FOR_EACH_VALUE: usize = 2;
        let width = params.encoder.widths().first().copied().unwrap_or(0);
        if self.wide.iter().next().is_none() && n_features < width.saturating_mul(FOR_EACH_VALUE) {
            params.learning.wide = None;
        }
    }

    /// Refuses options of layers that a network does not have.
    pub(super) fn refuse_idle(&self, preset: &Preset, params: &ClassifierParams) -> Result<(), FitError> {
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

    /// Steps between checkpoints.
    pub(super) fn checkpoint_every(&self) -> Option<u64> {
        self.alone().checkpoint_every
    }

    /// Steps between lines of the training log.
    pub(super) fn log_every(&self) -> u64 {
        self.alone().log_every
    }

    /// Instances of a step.
    pub(super) fn batch_size(&self, preset: &Preset) -> usize {
        self.choices.value("batch").unwrap_or(preset.training.batch_size)
    }

    /// Settings of the training under a seed; `has_file`: whether there is a validation file.
    pub(in crate::fit) fn train_params(
        &self,
        preset: &Preset,
        seed: u64,
        has_file: bool,
    ) -> Result<TrainParams, FitError> {
        let settings = self.settings(preset, preset.params.encoder.input())?;
        self.choices.hold_out(seed)?;
        let params = settings.train_params(seed, self.monitor(&settings, has_file)?)?;
        if let Some(settings) = TransformerSettings::trained(&self.tokens)? {
            return Ok(TrainParams { encoder: Some(settings.rule()), ..params });
        }
        Ok(params)
    }

    fn monitor(&self, settings: &NetworkSettings, has_file: bool) -> Result<Monitor, FitError> {
        let is_held_out = has_file || self.held_out().is_some();
        match settings.monitor {
            Some(monitor) if monitor != Monitor::Loss && !is_held_out => Err(FitError::usage(format_args!(
                "--monitor {monitor}: held-out instances are expected (--validation or --validation-fraction)"
            ))),
            Some(monitor) => Ok(monitor),
            None if is_held_out => Ok(Monitor::default()),
            None => Ok(Monitor::Loss),
        }
    }

    /// Share of the training instances that is held out.
    pub(super) fn held_out(&self) -> Option<f64> {
        self.choices.validation_fraction().filter(|&share| share > 0.0)
    }

    /// The optimiser.
    pub(in crate::fit) fn optimizer(&self) -> Result<Optimizer, FitError> {
        Ok(self.settings(&preset::dense(), InputKind::Sparse)?.optimizer())
    }

    /// The schedule in a word, for the model's own record.
    pub(super) fn schedule_name(&self) -> String {
        let all = self.alone();
        match all.schedule {
            ScheduleName::Constant => "constant".to_owned(),
            ScheduleName::Cosine => format!("cosine, warm-up {WARMUP}"),
            ScheduleName::Plateau if !self.is_given("schedule.lowest") => "plateau".to_owned(),
            ScheduleName::Plateau => format!("plateau, lowest {}", all.lowest),
        }
    }

    /// Learning rates over `steps` steps.
    pub(super) fn schedule(&self, steps: u64) -> Box<dyn Schedule> {
        let all = self.alone();
        match all.schedule {
            ScheduleName::Constant => Box::new(Constant),
            ScheduleName::Cosine => {
                let warmup = (steps as f64 * WARMUP).round() as u64;
                Box::new(WarmupCosine { warmup, total: steps, floor: 0.0 })
            }
            ScheduleName::Plateau => Box::new(HalveOnPlateau::new(1).down_to(all.lowest)),
        }
    }
}

/// Choices for a run on all instances: none is held out to judge epochs, so there are as many as asked, nor to say how
/// much a network counts beside a wide term, so it is `weight`.
pub(in crate::fit) fn for_all(choices: &Choices, epochs: Option<u32>, weight: Option<f64>) -> Choices {
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
