//! `--config FILE.toml`: options of a file, put in front of those that were typed.
//!
//! ```text
//!   xc train tree --config a.toml --tree.branching 8        a.toml:  trees = 3
//!                                                                    [tree]
//!                                                                    branching = 32
//!   =>  xc train tree --trees 3 --config a.toml --tree.branching 8
//! ```
//!
//! A file's options become arguments, so both are checked by the same code; one that is typed as
//! well is left out.

use crate::data::without_mark;
use crate::error::CliError;
use crate::similar::nearest_option;
use std::ffi::OsString;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use toml::de::{DeTable, DeValue};

/// The arguments to parse, and where they come from.
#[derive(Debug)]
pub(crate) struct Arguments {
    /// Program name, subcommands, the file's options, then what was typed.
    pub(crate) all: Vec<OsString>,
    path: Vec<String>,
    file: Option<PathBuf>,
    from_file: Vec<String>,
}

impl Arguments {
    /// `xc train tree`.
    pub(crate) fn command_path(&self) -> String {
        self.path.join(" ")
    }

    /// Its definition.
    pub(crate) fn command<'a>(&self, root: &'a clap::Command) -> &'a clap::Command {
        self.path.iter().skip(1).fold(root, |command, name| command.find_subcommand(name).unwrap_or(command))
    }

    /// What was parsed for that command.
    pub(crate) fn of_command(matches: &clap::ArgMatches) -> &clap::ArgMatches {
        matches.subcommand().map_or(matches, |(_, matches)| Self::of_command(matches))
    }

    /// Whether the configuration file gave this option.
    pub(crate) fn is_from_file(&self, name: &str) -> bool {
        self.from_file.iter().any(|given| given == name)
    }

    /// An error about an option of the configuration file, with the name of the file.
    pub(crate) fn located(&self, error: CliError) -> CliError {
        let option = error.line().and_then(|line| line.strip_prefix("--")?.split([' ', ':', ',']).next());
        match (&self.file, option) {
            (Some(file), Some(option)) if self.is_from_file(option) => error.within(file),
            _ => error,
        }
    }

    /// The configuration file when it, and not the command line, gave the argument that clap
    /// refused.
    pub(crate) fn config_file_of(&self, error: &clap::Error) -> Option<&Path> {
        use clap::error::{ContextKind, ContextValue};
        let ContextValue::String(argument) = error.get(ContextKind::InvalidArg)? else { return None };
        let name = argument.strip_prefix("--")?.split([' ', '=']).next()?;
        self.file.as_deref().filter(|_| self.is_from_file(name))
    }
}

/// Finds the subcommand and `--config` among what was typed, reads the file and inserts its
/// options.
///
/// # Errors
/// The file is absent or is not TOML, or names an option that the subcommand does not have.
pub(crate) fn insert_config_file(root: &clap::Command, typed: Vec<OsString>) -> Result<Arguments, CliError> {
    let mut command = root;
    let mut path = vec![root.get_name().to_owned()];
    let mut insert_at = 1.min(typed.len());
    let mut file = None;
    let mut names: Vec<&str> = Vec::new();
    let mut at = 1;
    while at < typed.len() {
        let Some(text) = typed[at].to_str() else {
            at += 1;
            continue;
        };
        if text == "--" {
            break;
        }
        if let Some(option) = text.strip_prefix("--") {
            let (name, value) = match option.split_once('=') {
                Some((name, value)) => (name, Some(OsString::from(value))),
                None => (option, None),
            };
            names.push(name);
            let argument = find_argument(root, command, name);
            let separate = value.is_none() && argument.is_some_and(|a| a.get_action().takes_values());
            let value = if separate { typed.get(at + 1).cloned() } else { value };
            if name == "config" {
                file = value.map(PathBuf::from);
            }
            at += if separate { 2 } else { 1 };
            continue;
        }
        if let Some(sub) = command.find_subcommand(text) {
            command = sub;
            path.push(sub.get_name().to_owned());
            insert_at = at + 1;
        }
        at += 1;
    }
    let mut arguments = Arguments { all: typed.clone(), path, file: file.clone(), from_file: Vec::new() };
    if let Some(file) = file {
        for (name, values) in read_options(&file, root, command, &arguments.command_path())? {
            if names.contains(&&*name) {
                continue;
            }
            let inserted = values.into_iter().map(OsString::from);
            let count = inserted.len();
            arguments.all.splice(insert_at..insert_at, inserted);
            insert_at += count;
            arguments.from_file.push(name);
        }
    }
    Ok(arguments)
}

fn find_argument<'a>(root: &'a clap::Command, command: &'a clap::Command, name: &str) -> Option<&'a clap::Arg> {
    let long = |a: &&clap::Arg| a.get_long() == Some(name);
    command.get_arguments().find(long).or_else(|| root.get_arguments().find(long))
}

/// Bytes of an options file, at most.
const MOST_BYTES: u64 = 1 << 20;

/// The text of an options file. A device or pipe may have no end.
fn read_text(file: &Path) -> Result<String, CliError> {
    let mut text = String::new();
    let opened = std::fs::File::open(file).map_err(|e| CliError::input(file, &e))?;
    opened.take(MOST_BYTES + 1).read_to_string(&mut text).map_err(|e| CliError::input(file, &e))?;
    if text.len() as u64 > MOST_BYTES {
        let file = file.display();
        return Err(CliError::usage(format_args!(
            "{file}: more than {MOST_BYTES} bytes; a file of options is expected"
        )));
    }
    Ok(without_mark(&text).to_owned())
}

/// Each option of the file with the arguments it stands for (none for a switch that is `false`).
fn read_options(
    file: &Path,
    root: &clap::Command,
    command: &clap::Command,
    path: &str,
) -> Result<Vec<(String, Vec<String>)>, CliError> {
    let text = read_text(file)?;
    let line_of = |at: usize| 1 + text.as_bytes()[..at.min(text.len())].iter().filter(|&&b| b == b'\n').count();
    let bad =
        |at: usize, what: String| CliError::usage(format_args!("{}: line {}: {what}", file.display(), line_of(at)));
    let table = DeTable::parse(&text)
        .map_err(|e| bad(e.span().map_or(0, |s| s.start), format!("not TOML: {}", e.message())))?;
    let mut flat = Vec::new();
    flatten("", table.get_ref(), &mut flat);
    let mut options = Vec::new();
    for (name, value, at) in flat {
        if name == "config" {
            return Err(bad(at, "config: a file of options cannot name another one".to_owned()));
        }
        let unknown = || {
            let near = nearest_option(&name, root, command).map(|near| format!("; a similar one is --{near}"));
            bad(at, format!("`{path}` has no option --{name}{}", near.unwrap_or_default()))
        };
        let argument = find_argument(root, command, &name).ok_or_else(unknown)?;
        let takes_value = argument.get_action().takes_values();
        let values = match (scalar(&value), takes_value) {
            (Some(text), true) => vec![format!("--{name}={text}")],
            (Some(text), false) if text == "true" => vec![format!("--{name}")],
            (Some(text), false) if text == "false" => Vec::new(),
            (_, false) => return Err(bad(at, format!("{name} is a switch: true or false is expected"))),
            (None, true) => {
                let list = match &value {
                    DeValue::Array(items) => items.iter().map(|v| scalar(v.get_ref())).collect::<Option<Vec<_>>>(),
                    _ => None,
                };
                let list = list.ok_or_else(|| bad(at, format!("{name}: a value or a list of values is expected")))?;
                vec![format!("--{name}={}", list.join(","))]
            }
        };
        options.push((name, values));
    }
    Ok(options)
}

fn flatten<'i>(prefix: &str, table: &DeTable<'i>, out: &mut Vec<(String, DeValue<'i>, usize)>) {
    for (key, value) in table.iter() {
        let name = if prefix.is_empty() { key.get_ref().to_string() } else { format!("{prefix}.{}", key.get_ref()) };
        match value.get_ref() {
            DeValue::Table(inner) => flatten(&name, inner, out),
            other => out.push((name, other.clone(), key.span().start)),
        }
    }
}

fn scalar(value: &DeValue<'_>) -> Option<String> {
    Some(match value {
        DeValue::String(s) => s.to_string(),
        DeValue::Integer(i) => i.to_string(),
        DeValue::Float(f) => f.to_string(),
        DeValue::Boolean(b) => b.to_string(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Arg, ArgAction, Command};

    fn root() -> Command {
        let option = |name: &'static str| Arg::new(name).long(name).action(ArgAction::Set);
        let switch = Arg::new("tfidf").long("tfidf").action(ArgAction::SetTrue);
        let tree = Command::new("tree").arg(option("tree.branching")).arg(option("model")).arg(switch).arg(option("k"));
        Command::new("xc")
            .arg(option("config").global(true))
            .arg(option("threads").global(true))
            .subcommand(Command::new("train").subcommand(tree))
    }

    fn insert(toml: &str, typed: &[&str]) -> Result<Vec<String>, String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.toml");
        std::fs::write(&file, toml).unwrap();
        let mut all: Vec<OsString> = typed.iter().map(OsString::from).collect();
        all.push(format!("--config={}", file.display()).into());
        let arguments = insert_config_file(&root(), all).map_err(|e| e.line().unwrap_or_default().to_owned())?;
        let mut words: Vec<String> = arguments.all.iter().map(|a| a.to_str().unwrap().to_owned()).collect();
        words.pop();
        Ok(words)
    }

    #[test]
    fn a_files_options_stand_between_the_subcommand_and_what_was_typed() {
        let words =
            insert("threads = 2\ntfidf = true\n[tree]\nbranching = 32\n", &["xc", "train", "tree", "--model", "m"]);
        let mut words = words.unwrap();
        words[3..6].sort();
        assert_eq!(words, ["xc", "train", "tree", "--tfidf", "--threads=2", "--tree.branching=32", "--model", "m"]);
    }

    #[test]
    fn what_is_typed_wins_and_a_value_is_not_taken_for_a_subcommand() {
        let typed = ["xc", "train", "--threads", "7", "tree", "--model", "tree", "--tree.branching=8"];
        assert_eq!(insert("threads = 2\n[tree]\nbranching = 32\n", &typed).unwrap(), typed);
        assert_eq!(insert("k = [1, 3]\ntfidf = false", &typed).unwrap()[5], "--k=1,3");
    }

    #[test]
    fn an_unknown_option_or_bad_toml_names_file_and_line() {
        let error = insert("threads = 2\n[tree]\nbranchin = 3\n", &["xc", "train", "tree"]).unwrap_err();
        assert!(
            error.ends_with(
                "a.toml: line 3: `xc train tree` has no option --tree.branchin; a similar one is --tree.branching"
            ),
            "{error}"
        );
        let error = insert("[linear]\nbranchng = 3\n", &["xc", "train", "tree"]).unwrap_err();
        assert!(error.ends_with("`xc train tree` has no option --linear.branchng; a similar one is --tree.branching"));
        let error = insert("threads = 2\nmodel =\n", &["xc", "train", "tree"]).unwrap_err();
        assert!(error.contains("a.toml: line 2: not TOML"), "{error}");
    }
}
