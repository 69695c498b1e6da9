//! A page for each command.

use super::{Leaf, listed};
use crate::help::by_heading;
use clap::Arg;
use std::fmt::Write;
use xc_options::settings::kinds;

/// The file of a command's page.
pub(super) fn name(path: &str) -> String {
    format!("{}.md", path.replace(' ', "-"))
}

/// What commands there are, and the options of all of them.
pub(super) fn index(root: &clap::Command, leaves: &[Leaf<'_>]) -> String {
    let mut out =
        "# Commands and their options\n\nWritten by `xc options pages`. A default is that of 200,000 instances of 30 \
                   features and 30,000 labels; behind it, of others, and at other choices.\n\n"
            .to_owned();
    for (path, command) in leaves {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "- [`xc {path}`]({}): {}", name(path), about(command));
    }
    out += "\n## Options of every command\n\n";
    let common = root.get_arguments().filter(|arg| arg.is_global_set() && !arg.is_hide_set());
    common.for_each(|arg| out += &line(arg, None));
    out
}

/// What a command does, and its options by heading.
pub(super) fn page((path, command): &Leaf<'_>) -> String {
    let mut out = format!("# xc {path}\n\n");
    let text = command.get_long_about().or(command.get_about()).map(ToString::to_string).unwrap_or_default();
    out += &prose(&text);
    let kind = path.strip_prefix("train ").or(path.strip_prefix("tune "));
    for (heading, args) in by_heading(listed(command)) {
        let _ = write!(out, "\n## {heading}\n\n");
        args.into_iter().for_each(|arg| out += &line(arg, kind.zip(arg.get_long())));
    }
    out
}

fn about(command: &clap::Command) -> String {
    command.get_about().map(ToString::to_string).unwrap_or_default().replace('\n', " ")
}

/// Paragraphs as they are, and indented lines, such as examples, as they are typed.
fn prose(text: &str) -> String {
    let mut out = String::new();
    let mut is_code = false;
    for line in text.lines() {
        let indented = line.starts_with("  ");
        if indented != is_code {
            out += if indented { "\n```text\n" } else { "```\n" };
            is_code = indented;
        }
        out += line.strip_prefix("  ").unwrap_or(line);
        out += "\n";
    }
    if is_code { out + "```\n" } else { out }
}

/// An option: its name and values, its default, what it means, and what it needs.
fn line(arg: &Arg, of: Option<(&str, &str)>) -> String {
    let row = of.and_then(|(kind, name)| kinds::row(kind, name));
    let names: Vec<_> = arg.get_possible_values().iter().map(|value| value.get_name().to_owned()).collect();
    let takes = arg.get_action().takes_values();
    let value = match (takes, names.is_empty()) {
        (false, _) => String::new(),
        (true, false) => names.join("|"),
        (true, true) => {
            arg.get_value_names().unwrap_or_default().iter().map(|name| name.to_string()).collect::<Vec<_>>().join(" ")
        }
    };
    let name = match arg.get_long() {
        Some(long) => format!("--{long} {value}"),
        None => value,
    };
    let help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    let said = help.split_once(" [default: ").and_then(|(text, rest)| Some((text, rest.split_once(']')?)));
    let (text, said) = match said {
        Some((text, (said, rest))) => (format!("{text}{rest}"), Some(said.to_owned())),
        None => (help, None),
    };
    let shown = || {
        let values = arg.get_default_values().iter().map(|value| value.to_string_lossy().into_owned());
        Some(values.collect::<Vec<_>>().join(","))
            .filter(|shown| takes && !shown.is_empty() && !arg.is_hide_default_value_set())
    };
    let usual = said.or_else(shown).map_or_else(String::new, |usual| format!(" [{usual}]"));
    let required = if arg.is_required_set() { " Required." } else { "" };
    let needs = of.zip(row).and_then(|((kind, _), row)| kinds::needs(kind, row));
    let needs = needs.map_or_else(String::new, |needs| format!(" Needs `{needs}`."));
    let tried = row
        .and_then(|row| row.searched)
        .map_or_else(String::new, |of| format!(" `xc tune`: {}.", of.values.join(", ")));
    format!("- `{}`{usual}: {text}.{required}{needs}{tried}\n", name.trim_end())
}
