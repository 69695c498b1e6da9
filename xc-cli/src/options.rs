//! The options of a command as they were typed: what was given, and by whom.

use crate::config::Arguments;
use crate::error::CliError;
use clap::parser::ValueSource;
use std::ffi::OsStr;
use std::fmt::Display;
use xc_options::settings::SettingError;

/// Every option of the command that was typed, in the order of its help.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options(Vec<CommandOption>);

/// One of them.
#[derive(Clone, Debug)]
pub(crate) struct CommandOption {
    /// Without the dashes.
    pub(crate) name: String,
    pub(crate) heading: String,
    pub(crate) source: Source,
    /// What was given, or the default that the help shows; nothing where neither is.
    pub(crate) value: Option<String>,
    is_switch: bool,
}

/// Who gave a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// The command line.
    Typed,
    /// `--config FILE`.
    File,
    Nobody,
}

impl CommandOption {
    /// As it is typed, for a message.
    fn typed(&self) -> String {
        match (&self.value, self.is_switch) {
            (Some(value), false) => format!("--{} {value}", self.name),
            _ => format!("--{}", self.name),
        }
    }
}

impl Options {
    /// Those of the command that was parsed, by `root`: options of all commands are among its own since then.
    pub(crate) fn new(root: &clap::Command, matches: &clap::ArgMatches, arguments: &Arguments) -> Self {
        let leaf = Arguments::of_command(matches);
        let command = arguments.command(root);
        let described = command.get_arguments().filter_map(|option| {
            let name = option.get_long().filter(|name| *name != "help" && *name != "version")?;
            let id = option.get_id().as_str();
            let source = match leaf.value_source(id) {
                Some(ValueSource::CommandLine) if arguments.is_from_file(name) => Source::File,
                Some(ValueSource::CommandLine) => Source::Typed,
                _ => Source::Nobody,
            };
            let is_shown = !option.is_hide_set() && name != "config";
            if !is_shown && source == Source::Nobody {
                return None;
            }
            let values = leaf.try_get_raw(id).ok().flatten().map(|values| values.map(OsStr::to_string_lossy));
            let value = values.map(|values| values.collect::<Vec<_>>().join(","));
            let heading = option.get_help_heading().unwrap_or("Options").to_owned();
            let is_switch = !option.get_action().takes_values();
            Some(CommandOption { name: name.to_owned(), heading, source, value, is_switch })
        });
        Self(described.collect())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &CommandOption> {
        self.0.iter()
    }

    /// Those that somebody gave.
    fn given(&self) -> impl Iterator<Item = &CommandOption> {
        self.0.iter().filter(|option| option.source != Source::Nobody)
    }

    /// Refuses each of some options that was given: nothing would read it, and `why` says what it needs.
    pub(crate) fn refuse(&self, names: &[&str], why: impl Display) -> Result<(), CliError> {
        self.refuse_if(|name| names.contains(&name), why)
    }

    /// Refuses each of some options that was given and has no effect without something, which `needs` says; `since`: why that
    /// is so, or nothing.
    pub(crate) fn refuse_idle(&self, names: &[&str], needs: &str, since: &str) -> Result<(), CliError> {
        match self.given().find(|option| names.contains(&&*option.name)) {
            Some(option) => {
                let said = SettingError::idle(option.typed().trim_start_matches("--"), needs);
                let since = if since.is_empty() { String::new() } else { format!(" ({since})") };
                Err(CliError::usage(format_args!("{said}{since}")))
            }
            None => Ok(()),
        }
    }

    /// The same of all options that fit.
    pub(crate) fn refuse_if(&self, fits: impl Fn(&str) -> bool, why: impl Display) -> Result<(), CliError> {
        match self.given().find(|option| fits(&option.name)) {
            Some(option) => Err(CliError::usage(format_args!("{}: {why}", option.typed()))),
            None => Ok(()),
        }
    }
}
