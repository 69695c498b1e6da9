//! What is wrong with the options that were typed, in a sentence.

use crate::config::Arguments;
use crate::error::CliError;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::io;

/// Help and version go to stdout; everything else clap has to say becomes one error line.
pub(crate) fn report(error: &clap::Error, root: &clap::Command, arguments: &Arguments) -> Result<(), CliError> {
    match error.kind() {
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
        (_, _, Some(name)) => {
            let names: Vec<_> = subcommands(command).collect();
            let near = nearest(name, names.iter().copied()).map(|near| format!("; a similar one is '{near}'"));
            format!("unknown command '{path} {name}'{}", near.unwrap_or_default())
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
        let (last, others) = names.split_last().unwrap_or((&"", &[]));
        let what = command.get_subcommand_value_name().map(str::to_lowercase);
        let what = what.unwrap_or_else(|| "command".to_owned());
        return format!(
            "unexpected argument '{argument}'; '{path}' takes a {what} first: {} or {last}",
            others.join(", ")
        );
    }
    let Some(name) = argument.strip_prefix("--") else { return format!("unexpected argument '{argument}'") };
    match nearest_option(name, root, command) {
        Some(near) => format!("unexpected argument '{argument}'; a similar one is '--{near}'"),
        None => format!("unexpected argument '{argument}'"),
    }
}

/// Names of the subcommands that help lists.
fn subcommands(command: &clap::Command) -> impl Iterator<Item = &str> {
    command.get_subcommands().filter(|sub| !sub.is_hide_set() && sub.get_name() != "help").map(|sub| sub.get_name())
}

/// The option of a command whose name is nearly this one.
pub(crate) fn nearest_option<'a>(name: &str, root: &'a clap::Command, command: &'a clap::Command) -> Option<&'a str> {
    let options = command.get_arguments().chain(root.get_arguments());
    let names: Vec<_> = options.filter(|option| !option.is_hide_set()).filter_map(|option| option.get_long()).collect();
    // The last part of a dotted name counts too: branching and linear.branching for tree.branching.
    let last = |name: &str| name.rsplit('.').next().unwrap_or_default().to_owned();
    nearest(name, names.iter().copied()).or_else(|| {
        let dotted = names.iter().copied().filter(|option| option.contains('.') || name.contains('.'));
        dotted.filter_map(|option| Some((similar(&last(name), &last(option))?, option))).min().map(|(_, option)| option)
    })
}

/// The name that is nearly this one: one letter in four may differ.
pub(crate) fn nearest<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    names.filter_map(|other| Some((similar(name, other)?, other))).min().map(|(_, other)| other)
}

/// The letters in which two names differ, unless they are too many for the names to be taken for one
/// another.
fn similar(a: &str, b: &str) -> Option<usize> {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().take(64).collect(), b.chars().take(64).collect());
    let most = a.len().max(b.len()) / 4;
    Some(differences(&a, &b)).filter(|&n| n <= most)
}

/// Letters to insert, to drop, to change or to swap with their neighbour.
fn differences(a: &[char], b: &[char]) -> usize {
    let mut rows = vec![(0..=b.len()).collect::<Vec<_>>()];
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let above = &rows[i - 1];
            let changed = above[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = changed.min(above[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(rows[i - 2][j - 2] + 1);
            }
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_may_be_meant_are_offered() {
        let near = |name, names: &[&'static str]| nearest(name, names.iter().copied());
        assert_eq!(near("serve", &["merge", "predict"]), None);
        assert_eq!(near("threshold", &["threads"]), None);
        assert_eq!(near("perdict", &["merge", "predict"]), Some("predict"));
        assert_eq!(near("tre", &["tree"]), Some("tree"));
        assert_eq!(near("k", &["o", "x"]), None);
        assert_eq!(near("", &["o", ""]), Some(""));
    }

    #[test]
    fn the_last_part_of_a_dotted_name_finds_it() {
        let option = |name: &'static str| clap::Arg::new(name).long(name);
        let command = clap::Command::new("tree").arg(option("tree.branching")).arg(option("beam"));
        let near = |name| nearest_option(name, &command, &command);
        assert_eq!(near("linear.branchng"), Some("tree.branching"));
        assert_eq!(near("branching"), Some("tree.branching"));
        assert_eq!(near("linear.rate"), None);
        assert_eq!(near("baem"), Some("beam"));
    }
}
