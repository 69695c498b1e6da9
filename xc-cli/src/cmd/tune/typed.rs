//! What was typed: the options of a training run, which hold for every trial, and those of the search.

use super::TuneArgs;
use super::kinds::Tuned;
use clap::parser::ValueSource;
use clap::{ArgMatches, Command, FromArgMatches};
use std::ffi::OsString;

/// Options of `xc tune KIND`: those of `xc train KIND`, where `--model` is called `--output`, and
/// those of the search.
#[derive(Debug)]
pub(crate) struct Typed<A> {
    pub(super) tune: TuneArgs,
    pub(super) args: A,
    pub(super) given: Vec<Given>,
}

/// An option that was given, with its values; none for a switch.
#[derive(Clone, Debug)]
pub(super) struct Given {
    pub(super) name: String,
    pub(super) values: Vec<OsString>,
}

impl Given {
    /// An option and its value; a switch that is "true" has none.
    pub(super) fn new<A: clap::Args>(name: &str, value: &str) -> Self {
        let command = command::<A>();
        let is_switch =
            command.get_arguments().any(|arg| arg.get_long() == Some(name) && !arg.get_action().takes_values());
        Self { name: name.to_owned(), values: if is_switch { Vec::new() } else { vec![value.into()] } }
    }

    /// As it is typed.
    fn typed(&self) -> Vec<OsString> {
        let option = |value: &OsString| {
            let mut option = OsString::from(format!("--{}=", self.name));
            option.push(value);
            option
        };
        match &*self.values {
            [] => vec![format!("--{}", self.name).into()],
            values => values.iter().map(option).collect(),
        }
    }
}

/// The options of a training by themselves.
fn command<A: clap::Args>() -> Command {
    A::augment_args(Command::new("xc train").no_binary_name(true))
}

/// What options of a training run come to when they are typed.
pub(super) fn parse<A: clap::Args>(options: &[Given]) -> Result<A, clap::Error> {
    let typed: Vec<OsString> = options.iter().flat_map(Given::typed).collect();
    A::from_arg_matches(&command::<A>().try_get_matches_from(typed)?)
}

impl<A: Tuned> FromArgMatches for Typed<A> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let command = command::<A>();
        let options = command.get_arguments().filter_map(|arg| Some((arg.get_long()?, arg)));
        let typed = options.filter(|(_, arg)| {
            let id = arg.get_id().as_str();
            matches!(matches.try_contains_id(id), Ok(true))
                && matches.value_source(id) == Some(ValueSource::CommandLine)
        });
        let given = typed.map(|(name, arg)| {
            let values = matches.get_raw(arg.get_id().as_str()).into_iter().flatten().map(ToOwned::to_owned);
            let values = if arg.get_action().takes_values() { values.collect() } else { Vec::new() };
            Given { name: name.to_owned(), values }
        });
        let given = given.collect();
        Ok(Self { tune: TuneArgs::from_arg_matches(matches)?, args: A::from_arg_matches(matches)?, given })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl<A: Tuned> clap::Args for Typed<A> {
    fn augment_args(command: Command) -> Command {
        let command = TuneArgs::augment_args(command).next_help_heading(None::<&str>);
        let command = A::augment_args(command).next_help_heading(None::<&str>);
        let command = super::NOT_TUNED.iter().fold(command, |command, name| {
            let id = command.get_arguments().find(|arg| arg.get_long() == Some(name)).map(|arg| arg.get_id().clone());
            id.into_iter().fold(command, |command, id| command.mut_arg(id, |arg| arg.hide(true)))
        });
        let fraction = command.get_arguments().find(|arg| arg.get_long() == Some("validation-fraction"));
        let fraction = fraction.map(|arg| arg.get_id().clone());
        let command =
            fraction.into_iter().fold(command, |command, id| command.mut_arg(id, |arg| arg.help(super::FRACTION_HELP)));
        command
            .mut_arg("model", |arg| arg.long("output").help(super::OUTPUT_HELP))
            .mut_arg("resume", |arg| arg.help("Continue the search in --output, with the same data and options"))
            .mut_arg("restart", |arg| arg.help("Discard the search in --output, and start over"))
            .mut_arg("validation", |arg| arg.help("Evaluation instances [default: parts of the training instances]"))
            .about(A::ABOUT)
            .long_about(super::long_about::<A>())
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}
