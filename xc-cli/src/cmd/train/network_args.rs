//! The options that networks share: the rows of their settings.
//!
//! Values that are not given come from the [`Preset`] of the kind, and the help shows them.

use super::inputs::hold_out;
use crate::error::CliError;
use crate::settings::{Chosen, OfTable};
use xc_nn::schedule::{Constant, HalveOnPlateau, WarmupCosine};
use xc_nn::trainer::Monitor;
use xc_nn::{Optimizer, Schedule, TrainParams};
use xc_train::classifier::{ClassifierParams, InputKind, Preset, preset};
use xc_train::model::HoldOut;
use xc_train::settings::network::{self, NetworkSettings, OptimizerName, ScheduleName};
use xc_train::settings::{Setting, Table, refuse_idle, serialised};

/// How a network looks and learns.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct NetworkArgs {
    #[command(flatten)]
    chosen: Chosen<OfNetwork>,
}

/// Networks of any kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OfNetwork;

/// Losses of a network whose steps score all labels, or whose lists have no probabilities.
pub(super) const LOSSES: [&str; 3] = ["softmax", "bce", "squared-hinge"];

/// Settings whose usual values are those of the kind's preset.
const OF_PRESET: [&str; 10] = [
    "network.widths",
    "network.init",
    "network.activation",
    "network.input-dropout",
    "network.dropout",
    "network.precision",
    "loss",
    "epochs",
    "batch",
    "optimizer.rate",
];

impl OfTable for OfNetwork {
    const TABLE: Table = network::TABLE;

    fn usual(row: &Setting) -> Option<String> {
        let is_said = OF_PRESET.contains(&row.name) || row.help.contains("[default: ");
        let usual = NetworkSettings::of_preset(&preset::dense(), InputKind::Sparse);
        if is_said { None } else { row.shown(&serialised(&usual)) }
    }
}

/// Adds the preset's value to the help of an option that takes it from there.
pub(super) fn show_default(preset: &Preset, arg: clap::Arg) -> clap::Arg {
    show_defaults(preset, &[], arg)
}

/// The same where the preset follows from the data: what others have, of whom is said.
pub(super) fn show_defaults(usual: &Preset, others: &[(&str, Preset)], arg: clap::Arg) -> clap::Arg {
    let option = arg.get_id().as_str();
    // Said in another way.
    if arg.get_help().is_some_and(|help| help.to_string().contains("[default: ")) {
        return arg;
    }
    let Some(mut shown) = value_of(option, usual) else { return arg };
    for (whom, preset) in others {
        let differs = value_of(option, preset).filter(|value| value_of(option, usual).as_ref() != Some(value));
        shown.extend(differs.map(|value| format!("; {value} for {whom}")));
    }
    if option == "optimizer.rate" {
        shown += &format!(" (adam and adamw); {}", rates_of_others());
    }
    with_default(arg, &shown)
}

/// What an option is in a preset, if it is there.
fn value_of(option: &str, preset: &Preset) -> Option<String> {
    let row = network::TABLE.row(option).filter(|row| OF_PRESET.contains(&row.name))?;
    let settings = NetworkSettings::of_preset(preset, preset.params.encoder.input());
    match option {
        "network.input-dropout" if settings.input_dropout == settings.dropout => {
            Some("that of --network.dropout".to_owned())
        }
        _ => row.shown(&serialised(&settings)),
    }
}

/// The rates that no preset says, for the help.
fn rates_of_others() -> String {
    let others = [OptimizerName::Momentum, OptimizerName::Sgd, OptimizerName::RowAdagrad];
    others.map(|of| format!("{} for {}", of.usual_rate(0.0), crate::named::name_of(&of))).join(", ")
}

/// Adds a default to the help of an option.
pub(super) fn with_default(arg: clap::Arg, shown: &str) -> clap::Arg {
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    arg.help(format!("{help} [default: {shown}]"))
}

impl NetworkArgs {
    /// What they come to for instances of a kind.
    fn settings(&self, preset: &Preset, input: InputKind) -> Result<NetworkSettings, CliError> {
        Ok(NetworkSettings::new(preset, input, &self.chosen.choices)?)
    }

    /// The same of what no preset says; options that cannot be are refused when a preset is known.
    fn alone(&self) -> NetworkSettings {
        let preset = preset::dense();
        let made = NetworkSettings::new(&preset, InputKind::Sparse, &self.chosen.choices);
        made.unwrap_or_else(|_| NetworkSettings::of_preset(&preset, InputKind::Sparse))
    }

    fn is_given(&self, option: &str) -> bool {
        self.chosen.choices.get(option).is_some()
    }

    /// The preset with what was asked for, for instances of a kind.
    pub(super) fn apply(&self, preset: &Preset, input: InputKind, seed: u64) -> Result<ClassifierParams, CliError> {
        let mut params = preset.params.clone();
        params.learning.seed = seed;
        self.settings(preset, input)?.put(&mut params);
        Ok(params)
    }

    /// Refuses options of layers that a network does not have.
    pub(super) fn refuse_idle(&self, preset: &Preset, params: &ClassifierParams) -> Result<(), CliError> {
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

    /// Whether the preset's learning rate is that of the optimiser.
    pub(super) fn has_usual_rate(&self) -> bool {
        matches!(self.alone().optimizer, OptimizerName::Adam | OptimizerName::Adamw)
    }

    /// Whether one rate of dropout was asked for, which may be that of all layers.
    pub(super) fn has_dropout_alone(&self) -> bool {
        self.is_given("network.dropout") && !self.is_given("network.input-dropout")
    }

    /// Share of the steps in which the learning rate rises.
    pub(super) fn warmup(&self) -> Option<f64> {
        let all = self.alone();
        (all.schedule == ScheduleName::Cosine).then_some(all.warmup)
    }

    /// Share of the learning rate below which it is not halved.
    pub(super) fn lowest(&self) -> Option<f64> {
        let all = self.alone();
        (all.schedule == ScheduleName::Plateau).then_some(all.lowest)
    }

    /// Whether the loss was asked for.
    pub(super) fn has_loss(&self) -> bool {
        self.is_given("loss")
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
        self.chosen.choices.value("batch").unwrap_or(preset.training.batch_size)
    }

    /// Settings of the training under a seed; `has_file`: whether there is a validation file.
    pub(super) fn train_params(&self, preset: &Preset, seed: u64, has_file: bool) -> Result<TrainParams, CliError> {
        let settings = self.settings(preset, preset.params.encoder.input())?;
        self.hold_out(seed)?;
        Ok(settings.train_params(seed, self.monitor(&settings, has_file)?)?)
    }

    fn monitor(&self, settings: &NetworkSettings, has_file: bool) -> Result<Monitor, CliError> {
        let is_held_out = has_file || self.held_out().is_some();
        match settings.monitor {
            Some(monitor) if monitor != Monitor::Loss && !is_held_out => Err(CliError::usage(format_args!(
                "--monitor {monitor}: held-out instances are expected (--validation or --validation-fraction)"
            ))),
            Some(monitor) => Ok(monitor),
            None if is_held_out => Ok(Monitor::default()),
            None => Ok(Monitor::Loss),
        }
    }

    /// The share of held-out instances that was asked for.
    pub(super) fn validation_fraction(&self) -> Option<f64> {
        self.chosen.choices.value("validation-fraction")
    }

    /// Share of the training instances that is held out.
    pub(super) fn held_out(&self) -> Option<f64> {
        self.validation_fraction().filter(|&share| share > 0.0)
    }

    /// Which instances are held out.
    pub(super) fn hold_out(&self, seed: u64) -> Result<Option<HoldOut>, CliError> {
        hold_out(self.validation_fraction(), seed)
    }

    /// The same for all instances: none is held out to judge epochs, so there are as many as asked.
    pub(super) fn for_all(&self, epochs: Option<u32>) -> Self {
        let mut all = self.clone();
        let choices = &mut all.chosen.choices;
        ["validation-fraction", "patience", "patience-from", "monitor"]
            .into_iter()
            .for_each(|name| choices.remove(name));
        if let (Some(epochs), Some(row)) = (epochs, network::TABLE.row("epochs")) {
            choices.push(row, epochs.into());
        }
        all
    }

    /// The optimiser.
    pub(super) fn optimizer(&self) -> Result<Optimizer, CliError> {
        Ok(self.settings(&preset::dense(), InputKind::Sparse)?.optimizer())
    }

    /// The schedule in a word, for the model's own record.
    pub(super) fn schedule_name(&self) -> String {
        let all = self.alone();
        match all.schedule {
            ScheduleName::Constant => "constant".to_owned(),
            ScheduleName::Cosine => format!("cosine, warm-up {}", all.warmup),
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
                let warmup = (steps as f64 * all.warmup).round() as u64;
                Box::new(WarmupCosine { warmup, total: steps, floor: 0.0 })
            }
            ScheduleName::Plateau => Box::new(HalveOnPlateau::new(1).down_to(all.lowest)),
        }
    }
}
