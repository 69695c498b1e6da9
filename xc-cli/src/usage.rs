//! What is wrong with the options that were typed, in a sentence.

use crate::config::Arguments;
use crate::error::CliError;
use crate::output;
use crate::short_help;
use crate::similar::{nearest, nearest_option};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::io;

/// Help and version go to stdout; everything else clap has to say becomes one error line.
pub(crate) fn report(error: &clap::Error, root: &clap::Command, arguments: &Arguments) -> Result<(), CliError> {
    match error.kind() {
        ErrorKind::DisplayHelp if is_short(arguments) && !arguments.command(root).has_subcommands() => {
            return output::print(&short_help::screen(arguments.command(root), &arguments.command_path()));
        }
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            return match error.print() {
                Err(e) if e.kind() != io::ErrorKind::BrokenPipe => Err(CliError::write("standard output", &e)),
                _ => Ok(()),
            };
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            return Err(CliError::usage("a subcommand is expected; the list is above"));
        }
        _ => {}
    }
    let said = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(&**text),
        _ => None,
    };
    let (path, command) = (arguments.command_path(), arguments.command(root));
    let sentence = match (error.kind(), said(ContextKind::InvalidArg), said(ContextKind::InvalidSubcommand)) {
        (ErrorKind::UnknownArgument, Some(argument), _) => unknown_argument(argument, &path, root, command),
        // What clap says is missing of it is the name of the command itself.
        (ErrorKind::MissingSubcommand, ..) => match path == root.get_name() {
            true => "a command is expected".to_owned(),
            false => format!("a subcommand is expected: {}", one_of(&subcommands(command).collect::<Vec<_>>())),
        },
        (_, _, Some(name)) => {
            let names: Vec<_> = subcommands(command).collect();
            let further = match nearest(name, names.iter().copied()) {
                Some(near) => format!("; a similar one is '{near}'"),
                // The list of all commands is long.
                None if path == root.get_name() => String::new(),
                None => format!("; {} is expected", one_of(&names)),
            };
            format!("unknown command '{path} {name}'{further}")
        }
        (ErrorKind::InvalidValue, ..) => {
            let value = said(ContextKind::InvalidValue).unwrap_or_default();
            let near = match error.get(ContextKind::ValidValue) {
                Some(ContextValue::Strings(values)) => nearest(value, values.iter().map(|v| &**v)).map(str::to_owned),
                _ => None,
            };
            let near = near.map(|near| format!("; a similar one is '{near}'")).unwrap_or_default();
            rendered(error) + &near
        }
        _ => rendered(error),
    };
    let place = arguments.config_file_of(error).map(|file| format!("{}: ", file.display())).unwrap_or_default();
    Err(CliError::usage(format!("{place}{sentence} (see '{path} --help')")))
}

/// Whether `-h` was typed rather than `--help`.
fn is_short(arguments: &Arguments) -> bool {
    let asked = arguments.all.iter().find(|word| *word == "-h" || *word == "--help" || *word == "help");
    asked.is_some_and(|word| word == "-h")
}

/// What clap says, without its tips and the usage block, which is for `--help`.
fn rendered(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let text = text.strip_prefix("error: ").unwrap_or(&text);
    let lines = text.lines().map(str::trim);
    let lines = lines.take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more information"));
    lines.filter(|line| !line.is_empty() && !line.starts_with("tip:")).collect::<Vec<_>>().join(" ")
}

fn unknown_argument(argument: &str, path: &str, root: &clap::Command, command: &clap::Command) -> String {
    if command.has_subcommands() {
        let names: Vec<_> = subcommands(command).collect();
        let what = command.get_subcommand_value_name().map(str::to_lowercase);
        let what = what.unwrap_or_else(|| "command".to_owned());
        return format!("unexpected argument '{argument}'; '{path}' takes a {what} first: {}", one_of(&names));
    }
    let Some(name) = argument.strip_prefix("--") else { return format!("unexpected argument '{argument}'") };
    match nearest_option(name, root, command) {
        Some(near) => format!("unexpected argument '{argument}'; a similar one is '--{near}'"),
        None => format!("unexpected argument '{argument}'"),
    }
}

/// `a, b or c`.
fn one_of(names: &[&str]) -> String {
    match names.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => names.join(""),
    }
}

/// Names of the subcommands that help lists.
fn subcommands(command: &clap::Command) -> impl Iterator<Item = &str> {
    command.get_subcommands().filter(|sub| !sub.is_hide_set() && sub.get_name() != "help").map(|sub| sub.get_name())
}
