//! A table of settings as options: how they are typed and shown.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Command, FromArgMatches};
use serde_json::Value;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use xc_options::settings::{Choices, Setting, SettingError, Table, Values, data};
use xc_options::training::usual_value_of;

/// Options of several commands that are the rows of a table.
pub(crate) trait OfTable {
    /// The rows.
    const TABLE: Table;

    /// What help says of the usual value of a row.
    fn usual(row: &Setting) -> Option<String> {
        usual_value_of(row)
    }
}

/// What was typed of them.
#[derive(Clone, Debug)]
pub(crate) struct Chosen<T> {
    pub(crate) choices: Choices,
    of: PhantomData<fn() -> T>,
}

/// What was typed of some rows.
pub(crate) fn chosen(rows: impl IntoIterator<Item = &'static Setting>, matches: &ArgMatches) -> Choices {
    let mut choices = Choices::default();
    for row in rows {
        if matches.value_source(row.name) != Some(ValueSource::CommandLine) {
            continue;
        }
        match row.values {
            Values::Switch => choices.push(row, true.into()),
            _ => matches.get_one::<Value>(row.name).into_iter().for_each(|value| choices.push(row, value.clone())),
        }
    }
    choices
}

/// A command with the options of rows, and what is said of their usual values.
pub(crate) fn with_rows(
    command: Command,
    rows: impl IntoIterator<Item = &'static Setting>,
    usual: &BTreeMap<&'static str, String>,
) -> Command {
    rows.into_iter().fold(command, |command, row| command.arg(option(row, usual.get(row.name).cloned())))
}

/// A command with the options of rows that it does not list: they are refused by what they say.
pub(crate) fn hidden(command: Command, rows: impl IntoIterator<Item = &'static Setting>) -> Command {
    rows.into_iter().fold(command, |command, row| command.arg(option(row, None).hide(true)))
}

impl<T: OfTable> FromArgMatches for Chosen<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        Ok(Self { choices: chosen(T::TABLE.rows, matches), of: PhantomData })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl<T: OfTable> clap::Args for Chosen<T> {
    fn augment_args(command: Command) -> Command {
        T::TABLE.rows.iter().fold(command, |command, row| command.arg(option(row, T::usual(row))))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

/// Options whose value may begin with a dash.
const MAY_BE_A_SIGN: [&str; 2] = ["label-separator", "delimiter"];

/// The option of a row.
fn option(row: &'static Setting, usual: Option<String>) -> Arg {
    let help = match usual {
        Some(usual) => format!("{} [default: {usual}]", row.help),
        None => row.help.to_owned(),
    };
    // A text may be a number too: --threshold -0.5.
    let is_number = matches!(row.values, Values::F32 | Values::F32OrInf | Values::F64 | Values::Text(_));
    let option = Arg::new(row.name).long(row.name).value_name(row.unit).help(help).allow_negative_numbers(is_number);
    let option = option.hide_short_help(row.is_rare).allow_hyphen_values(MAY_BE_A_SIGN.contains(&row.name));
    let option = option.conflicts_with_all(row.excludes);
    let option = match row.alias {
        Some(alias) => option.visible_alias(alias),
        None => option,
    };
    let option = match row.heading {
        Some(heading) => option.help_heading(heading),
        None => option,
    };
    if matches!(row.values, Values::Switch) {
        return option.action(ArgAction::SetTrue);
    }
    let option =
        if row.name == data::NORMALISE { option.num_args(0..=1).default_missing_value("true") } else { option };
    match row.names() {
        Some(names) => {
            // One of the names is one of the values.
            let parser = PossibleValuesParser::new(names).map(|name| row.parse(&name).unwrap_or_default());
            option.value_parser(parser)
        }
        None => option.value_parser(|text: &str| row.parse(text)),
    }
}

impl From<SettingError> for crate::error::CliError {
    fn from(error: SettingError) -> Self {
        Self::usage(error)
    }
}
