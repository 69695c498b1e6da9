//! The options that networks share: the rows of their settings.
//!
//! Values that are not given come from the [`Preset`] of the kind, and the help shows them.

use super::joined;
use super::transformer_args::OfTransformer;
use super::wide_args::OfWide;
use crate::settings::{Chosen, OfTable};
use xc_model::classifier::InputKind;
use xc_nn::trainer::{EarlyStopping, PatienceFrom};
use xc_options::settings::network;
use xc_options::settings::{Choices, Setting, Table};
use xc_train::network::{NetworkParams, OptimizerName, RunParams};
use xc_train::preset::{self, Preset};

/// Networks of any kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OfNetwork;

/// Losses of a network whose steps score all labels, or whose lists have no probabilities.
pub(super) const LOSSES: [&str; 3] = ["softmax", "bce", "squared-hinge"];

impl OfTable for OfNetwork {
    const TABLE: Table = network::TABLE;

    fn usual(row: &Setting) -> Option<String> {
        let is_said = row.of_preset || row.help.contains("[default: ");
        let mut usual = NetworkParams::of(&preset::dense(), InputKind::Sparse);
        // From when on epochs would be counted.
        usual.training.early_stopping = Some(EarlyStopping { patience: 1, from: PatienceFrom::default() });
        let shown = || row.shown_in(&usual).or_else(|| row.shown_in(&RunParams::default()));
        if is_said { None } else { shown() }
    }
}

/// What networks over features and over tokens share.
#[derive(clap::Args, Debug)]
pub(crate) struct EncodedArgs {
    #[command(flatten)]
    wide: Chosen<OfWide>,
    #[command(flatten)]
    transformer: Chosen<OfTransformer<true>>,
    #[command(flatten)]
    network: Chosen<OfNetwork>,
}

impl EncodedArgs {
    pub(super) fn choices(&self) -> Choices {
        joined([&self.wide.choices, &self.transformer.choices, &self.network.choices])
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
    let trains_one = xc_options::tables(usual.name).iter().any(|table| table.row("transformer.rate").is_some());
    let above = trains_one.then(|| ("a transformer that is trained", usual.clone().above_tokens()));
    for (whom, preset) in others.iter().chain(&above) {
        let differs = value_of(option, preset).filter(|value| value_of(option, usual).as_ref() != Some(value));
        let said = |value: String| if value.is_empty() { "none".to_owned() } else { value };
        shown.extend(differs.map(|value| format!("; {} for {whom}", said(value))));
    }
    if option == "optimizer.rate" {
        shown += &format!(" (adam and adamw); {}", rates_of_others());
    }
    with_default(arg, &shown)
}

/// What an option is in a preset, if it is there.
fn value_of(option: &str, preset: &Preset) -> Option<String> {
    let row = network::TABLE.row(option).filter(|row| row.of_preset)?;
    let learning = &preset.params.learning;
    match option {
        "network.input-dropout" if learning.input_dropout == learning.dropout => {
            Some("that of --network.dropout".to_owned())
        }
        _ => row.shown_in(&NetworkParams::of(preset, preset.params.encoder.input())),
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
