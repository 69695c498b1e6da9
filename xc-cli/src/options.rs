//! The options of a command as they were typed: what was given, and by whom.

use crate::config::Arguments;
use clap::parser::ValueSource;
use std::ffi::OsStr;

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

impl Options {
    /// Those of the command that was parsed, by `root`: options of all commands are among its own since then.
    pub(crate) fn new(root: &clap::Command, matches: &clap::ArgMatches, arguments: &Arguments) -> Self {
        let mut leaf = matches;
        while let Some((_, matches)) = leaf.subcommand() {
            leaf = matches;
        }
        let command = arguments.command(root);
        let hidden = ["help", "version", "config"];
        let described = command.get_arguments().filter_map(|option| {
            let name = option.get_long().filter(|name| !hidden.contains(name) && !option.is_hide_set())?;
            let id = option.get_id().as_str();
            let source = match leaf.value_source(id) {
                Some(ValueSource::CommandLine) if arguments.is_from_file(name) => Source::File,
                Some(ValueSource::CommandLine) => Source::Typed,
                _ => Source::Nobody,
            };
            let values = leaf.try_get_raw(id).ok().flatten().map(|values| values.map(OsStr::to_string_lossy));
            let value = values.map(|values| values.collect::<Vec<_>>().join(","));
            let heading = option.get_help_heading().unwrap_or("Options").to_owned();
            Some(CommandOption { name: name.to_owned(), heading, source, value })
        });
        Self(described.collect())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &CommandOption> {
        self.0.iter()
    }
}
