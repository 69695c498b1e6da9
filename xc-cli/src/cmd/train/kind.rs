//! What is typed of a kind of model: its settings, which are rows of tables, and files.

use super::about;
use super::inputs::{DataArgs, FileArgs, OfAstra, OfMach, OfTrees, OfWords, PlaceArgs};
use crate::described;
use crate::error::CliError;
use crate::settings::{chosen, hidden, with_rows};
use crate::stdin;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use std::collections::BTreeMap;
use std::path::PathBuf;
use xc_options::Training;
use xc_options::data::Files;
use xc_options::settings::kinds::{KINDS, rows, rows_of, without_use};
use xc_options::settings::{Choices, Setting, data, input, text};
use xc_options::training::usual_values;
use xc_train::fit::Place;

/// What was typed of a training run.
#[derive(Debug)]
pub(in crate::cmd) struct KindArgs {
    /// As `xc train` calls it.
    pub(in crate::cmd) kind: &'static str,
    pub(in crate::cmd) place: Place,
    /// Whether it is only explained.
    pub(in crate::cmd) explain: bool,
    choices: Choices,
    files: Files,
    refit: Option<PathBuf>,
}

/// Tables of settings about data, which stand behind those of a kind.
const OF_DATA: [&[Setting]; 4] = [data::TABLE.rows, input::TABLE.rows, text::TABLE.rows, text::TOKENS.rows];

/// A kind's command with all its options.
pub(in crate::cmd) fn command_of(kind: &'static str, command: Command) -> Command {
    let build = described::build();
    let usual = if described::says_usual_values_of(kind) { usual_values(kind, build) } else { BTreeMap::new() };
    let place = |row: &Setting| OF_DATA.iter().position(|table| table.iter().any(|other| other.name == row.name));
    let all = rows_of(kind, build);
    let own = all.iter().copied().filter(|row| place(row).is_none());
    let command = with_rows(command, own, &usual).next_help_heading(None::<&str>);
    let command = match kind {
        "tree" => OfTrees::augment_args(command),
        "mach" => OfMach::augment_args(command),
        "astra" => OfAstra::augment_args(command),
        "skipgram" => OfWords::augment_args(command),
        _ => command,
    };
    let command = match kind {
        "tree" => DataArgs::augment_args(command),
        "skipgram" => PlaceArgs::augment_args(command).mut_arg("train", |arg| {
            arg.help("The text, one passage per line, or JSONL (field \"text\") by its file name")
        }),
        _ => FileArgs::augment_args(command),
    };
    let mut of_data: Vec<_> = all.into_iter().filter(|row| place(row).is_some()).collect();
    of_data.sort_by_key(|row| place(row));
    let command = with_rows(command, of_data, &usual);
    let text = about::of(kind);
    let absent =
        without_use(kind).into_iter().filter(|row| command.get_arguments().all(|arg| arg.get_id() != row.name));
    let absent: Vec<_> = absent.collect();
    let command = hidden(command, absent);
    command.about(text.lines().next().unwrap_or_default()).long_about(text)
}

impl KindArgs {
    pub(in crate::cmd) fn from_matches(kind: &'static str, matches: &ArgMatches) -> Result<Self, clap::Error> {
        let typed = PlaceArgs::from_arg_matches(matches)?;
        let mut place = typed.place();
        let (mut files, mut refit) = (Files::default(), None);
        if kind == "skipgram" {
            place.vectors = OfWords::from_arg_matches(matches)?.vectors;
        } else {
            let of_files = match kind {
                "tree" => FileArgs { data: DataArgs::from_arg_matches(matches)?, ..FileArgs::default() },
                _ => FileArgs::from_arg_matches(matches)?,
            };
            (files, refit) = (of_files.files(), of_files.data.refit);
        }
        match kind {
            "tree" => {
                let of = OfTrees::from_arg_matches(matches)?;
                place.part = of.part;
                (files.label_features, files.instance_weights, files.label_costs) =
                    (of.label_features, of.instance_weights, of.label_costs);
            }
            "mach" => place.part = OfMach::from_arg_matches(matches)?.part,
            "astra" => files.label_features = OfAstra::from_arg_matches(matches)?.label_features,
            _ => {}
        }
        files.train = typed.train;
        let choices = chosen(rows(kind).into_iter().chain(without_use(kind)), matches);
        Ok(Self { kind, place, explain: typed.explain, choices, files, refit })
    }

    /// The training run.
    pub(in crate::cmd) fn training(&self) -> Result<Training, CliError> {
        let files = Files { train: stdin::as_file(self.files.train.clone(), &self.place.model)?, ..self.files.clone() };
        let mut training = Training::new(self.kind, files, &self.place.model)?;
        (training.place, training.choices) = (self.place.clone(), self.choices.clone());
        training.refit.clone_from(&self.refit);
        Ok(training)
    }
}

/// The kind that a subcommand names.
pub(in crate::cmd) fn typed(matches: &ArgMatches) -> Result<(&'static str, &ArgMatches), clap::Error> {
    let typed = matches.subcommand().and_then(|(name, of)| Some((KINDS.into_iter().find(|kind| *kind == name)?, of)));
    typed.ok_or_else(|| clap::Error::new(clap::error::ErrorKind::MissingSubcommand))
}

/// A command with a subcommand for each of some kinds; only those that were typed have options.
pub(in crate::cmd) fn with_kinds(
    command: Command,
    kinds: &[&'static str],
    describe: impl Fn(&'static str, Command) -> Command,
) -> Command {
    kinds.iter().fold(command, |command, kind| {
        let of = Command::new(*kind);
        command.subcommand(if described::is_wanted(kind) { describe(kind, of) } else { of })
    })
}

impl FromArgMatches for KindArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let (kind, of) = typed(matches)?;
        Self::from_matches(kind, of)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl clap::Subcommand for KindArgs {
    fn augment_subcommands(command: Command) -> Command {
        with_kinds(command, &KINDS, command_of)
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        KINDS.contains(&name)
    }
}
