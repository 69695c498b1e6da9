//! `-h`: the first clause of what `--help` says of an option, the command's own first, without those that few need.

use crate::help::by_heading;
use clap::{Arg, Command};

/// Columns of the screen.
const WIDTH: usize = 100;

/// Options that few need, beside the rare settings of training: `--help` alone lists them.
const RARE: [&str; 16] = [
    "train-labels",
    "validation-labels",
    "validation-features",
    "label-names-column",
    "label-names-field",
    "checkpoint",
    "restart",
    "refit",
    "instance-weights",
    "label-costs",
    "propensity-a",
    "propensity-b",
    "trusted",
    "in-memory",
    "max-age",
    "no-model",
];

/// Headings whose options are many and belong to one choice.
const RARE_HEADINGS: [&str; 1] = [xc_options::settings::candidates::TABLES];

/// The screen of a command that takes options; `path` is how it is called.
pub(crate) fn screen(command: &Command, path: &str) -> String {
    let is_listed = |arg: &&Arg| !arg.is_hide_set() && arg.get_long().is_some_and(|name| name != "help");
    let all: Vec<&Arg> = command.get_arguments().filter(is_listed).collect();
    let is_shown = |arg: &&&Arg| {
        !arg.is_hide_short_help_set()
            && !RARE.contains(&arg.get_long().unwrap_or_default())
            && !arg.get_help_heading().is_some_and(|heading| RARE_HEADINGS.contains(&heading))
    };
    let sections = by_heading(all.iter().filter(is_shown).copied());
    let names = sections.iter().flat_map(|(_, args)| args).map(|arg| typed(arg).chars().count());
    let column = names.map(|name| name + 4).max().unwrap_or(4);

    let mut out = format!("{}\n\n", command.get_about().map(ToString::to_string).unwrap_or_default());
    out += &format!("{}\n", usage(command, path));
    for (heading, args) in sections {
        out += &format!("\n{heading}:\n");
        for arg in args {
            for (at, line) in wrapped(&gist(arg), WIDTH - column).iter().enumerate() {
                let name = if at == 0 { typed(arg) } else { String::new() };
                out += &format!("  {name:<width$}{line}\n", width = column - 2);
            }
        }
    }
    let explain = match all.iter().any(|arg| arg.get_long() == Some("explain")) {
        true => "; --explain shows their values",
        false => "",
    };
    let options = if all.is_empty() { String::new() } else { format!(" and all {} options", all.len()) };
    out + &format!("\n'{path} --help' has examples{options}{explain}.")
}

/// `Usage: xc train tree [OPTIONS] --train <FILE>`.
fn usage(command: &Command, path: &str) -> String {
    let mut out = format!("Usage: {path} [OPTIONS]");
    for arg in command.get_arguments().filter(|arg| arg.is_required_set()) {
        out += &match arg.get_long() {
            Some(_) => format!(" {}", typed(arg)),
            None if arg.get_num_args().is_some_and(|n| n.max_values() > 1) => format!(" <{}>...", value(arg)),
            None => format!(" <{}>", value(arg)),
        };
    }
    for group in command.get_groups().filter(|group| group.is_required_set()) {
        let of = |id: &clap::Id| command.get_arguments().find(|arg| arg.get_id() == id).map(typed);
        let names: Vec<String> = group.get_args().filter_map(of).collect();
        out += &format!(" <{}>", names.join("|"));
    }
    out
}

fn value(arg: &Arg) -> String {
    arg.get_value_names().and_then(|names| names.first()).map_or_else(String::new, ToString::to_string)
}

/// `--train <FILE>`.
fn typed(arg: &Arg) -> String {
    let name = arg.get_long().unwrap_or_default();
    match arg.get_action().takes_values() {
        true => format!("--{name} <{}>", value(arg)),
        false => format!("--{name}"),
    }
}

/// What ends the first clause of a text, that which ends it soonest counts.
const ENDS: [&str; 6] = [": ", "; ", ". ", " (", ", e.g.", ", such as"];

/// The first clause of what help says of an option, and the usual value where it is short.
fn gist(arg: &Arg) -> String {
    let text = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (said, usual) = text.split_once(" [default: ").unwrap_or((&text, ""));
    let usual = match arg.get_default_values() {
        [value] if !arg.is_hide_default_value_set() && arg.get_action().takes_values() => value.to_string_lossy(),
        _ => usual.split([';', ']']).next().unwrap_or_default().into(),
    };
    let clause = first_clause(said);
    if usual.is_empty() || usual.len() > 16 { clause.to_owned() } else { format!("{clause} [{usual}]") }
}

fn first_clause(text: &str) -> &str {
    // What is shorter than this says too little.
    let from = text.char_indices().nth(14).map_or(text.len(), |(at, _)| at);
    let end = ENDS.iter().filter_map(|end| text[from..].find(end)).min().map_or(text.len(), |at| from + at);
    text[..end].trim_end_matches('.')
}

/// Words in lines of at most so many columns.
fn wrapped(text: &str, most: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.last_mut().map_or(0, |line| line.chars().count());
        if last > 0 && last + 1 + word.chars().count() > most {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            line.extend((!line.is_empty()).then_some(' '));
            line.push_str(word);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_clause_is_shown_with_a_short_default() {
        let of = |help: &'static str| gist(&Arg::new("x").long("x").help(help));
        assert_eq!(of("Children of a cluster [default: 16; 2 with bonsai]"), "Children of a cluster [16]");
        let both = "softmax (one true label), bce or squared-hinge (each label true)";
        assert_eq!(of(both), "softmax (one true label), bce or squared-hinge");
        assert_eq!(
            of("Hidden layer sizes, input side first, e.g. 512,512: more"),
            "Hidden layer sizes, input side first"
        );
        assert_eq!(of("Learning rate [default: 0.01 (adam and adamw)]"), "Learning rate");
        assert_eq!(of("Format [default: npz, jsonl or csv if the name ends so]"), "Format");
        assert_eq!(gist(&Arg::new("x").long("x").help("Schedule").default_value("cosine")), "Schedule [cosine]");
        assert_eq!(wrapped("a bb ccc dddd", 4), ["a bb", "ccc", "dddd"]);
        assert_eq!(wrapped("", 4), [""]);
    }
}
