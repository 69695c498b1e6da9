//! How help screens are arranged, and which common options a command has.

use crate::data::of_labels;
use clap::{Arg, Command};

/// Headings of options that many commands share: the short help leaves them out.
const SHARED: [&str; 3] = ["Input options", "Text options", "Common options"];

/// Options without a heading that many commands share: they follow a command's own.
const SHARED_NAMES: [&str; 17] = [
    "checkpoint",
    "resume",
    "restart",
    "explain",
    "train-labels",
    "features",
    "validation",
    "validation-labels",
    "validation-features",
    "validation-fraction",
    "split-seed",
    "refit",
    "label-names",
    "label-names-field",
    "label-names-column",
    "tfidf",
    "normalise",
];

/// Options that come first though some other option may stand in for them.
const IN_FRONT: [&str; 1] = ["model"];

/// Each command with the common options that it can use.
pub(crate) fn arrange(root: Command) -> Command {
    let root = root.mut_args(|arg| match arg.is_global_set() {
        true => arg.hide_short_help(true),
        false => arg,
    });
    let common: Vec<Arg> = root.get_arguments().filter(|arg| arg.is_global_set()).cloned().collect();
    arranged(root, &mut Vec::new(), &common)
}

fn arranged(command: Command, path: &mut Vec<String>, common: &[Arg]) -> Command {
    if command.has_subcommands() {
        return command.mut_subcommands(|sub| {
            path.push(sub.get_name().to_owned());
            let sub = arranged(sub, path, common);
            path.pop();
            sub
        });
    }
    let unused = without_use(&path.join(" "));
    // Labels of the input are not looked at: options about them are refused, and not listed.
    let labels = if *path == ["explain"] || *path == ["embed"] { of_labels() } else { Vec::new() };
    let hidden = common.iter().filter(|arg| arg.get_long().is_some_and(|name| unused.contains(&name)));
    let command = command.args(hidden.map(|arg| arg.clone().hide(true)));
    let mut order: Vec<_> = command.get_arguments().map(|arg| (rank(arg), arg.get_id().clone())).collect();
    // A stable sort: within a rank the order is that of the definition.
    order.sort_by_key(|(rank, _)| *rank);
    command.mut_args(|arg| {
        let at = order.iter().position(|(_, id)| id == arg.get_id()).unwrap_or(order.len());
        let is_shared = arg.get_help_heading().is_some_and(|heading| SHARED.contains(&heading));
        let arg = if is_shared { arg.hide_short_help(true) } else { arg };
        let arg = if arg.get_long().is_some_and(|name| labels.contains(&name)) { arg.hide(true) } else { arg };
        arg.display_order(at)
    })
}

/// Options by their headings, in the order in which they are shown; a heading may come back behind others.
pub(crate) fn by_heading<'a>(options: impl IntoIterator<Item = &'a Arg>) -> Vec<(&'a str, Vec<&'a Arg>)> {
    let mut options: Vec<&Arg> = options.into_iter().collect();
    options.sort_by_key(|arg| arg.get_display_order());
    let mut out: Vec<(&str, Vec<&Arg>)> = Vec::new();
    for arg in options {
        let heading = arg.get_help_heading().unwrap_or("Options");
        match out.iter_mut().find(|(of, _)| *of == heading) {
            Some((_, all)) => all.push(arg),
            None => out.push((heading, vec![arg])),
        }
    }
    out
}

/// What is required comes first, what many commands share last.
fn rank(arg: &Arg) -> u8 {
    let is_shared = arg.get_long().is_some_and(|name| SHARED_NAMES.contains(&name));
    match () {
        () if arg.is_required_set() || IN_FRONT.contains(&arg.get_id().as_str()) => 0,
        () if is_shared => 2,
        () => 1,
    }
}

/// Common options that every command takes, so that a script can give them to all: without effect where a command does not
/// list them.
const TAKEN_BY_ALL: [&str; 3] = ["threads", "seed", "quiet"];

/// Whether a common option is refused by a command.
pub(crate) fn is_refused(command: &str, option: &str) -> bool {
    without_use(command).contains(&option) && !TAKEN_BY_ALL.contains(&option)
}

/// Common options that a command has no use for: they are not listed.
fn without_use(command: &str) -> &'static [&'static str] {
    match command {
        "completions" | "options" => {
            &["threads", "seed", "max-memory", "json", "progress", "quiet", "config", "verify"]
        }
        "bench curves" => &["threads", "seed", "progress", "verify"],
        "bench predict" => &["seed", "progress"],
        "index evaluate" => &["seed", "progress", "verify"],
        "evaluate" => &["progress"],
        "explain" => &["seed", "progress"],
        "embed" => &["seed", "max-memory", "verify"],
        "index search" => &["seed", "json", "progress", "verify"],
        "convert" => &["seed", "json", "progress"],
        "predict" => &["seed", "json"],
        "index refresh" | "inspect" => &["seed"],
        // What is merged is always compared with its hashes.
        "merge" => &["seed", "verify"],
        "quickstart" | "generate" => &["verify"],
        command if command.starts_with("tune ") => &["progress", "verify"],
        command if command.starts_with("train ") => &["verify"],
        _ => &[],
    }
}
