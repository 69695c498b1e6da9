//! Commands whose options are described only where they were typed: to describe those of all commands takes longer than
//! most commands run.

use clap::{ArgMatches, Command, FromArgMatches};
use std::cell::RefCell;
use std::ffi::OsString;
use std::ops::Deref;
use xc_options::Build;

thread_local! {
    /// What was typed, while the command line is described for that alone.
    static TYPED: RefCell<Option<Vec<OsString>>> = const { RefCell::new(None) };
}

/// What `describe` gives, with commands that are not among the words of `typed` left without their options.
pub(crate) fn for_typed<T>(typed: &[OsString], describe: impl FnOnce() -> T) -> T {
    let before = TYPED.replace(Some(typed.to_vec()));
    let described = describe();
    TYPED.set(before);
    described
}

/// Whether a command is described: it was typed, or all are.
pub(crate) fn is_wanted(name: &str) -> bool {
    TYPED.with_borrow(|typed| typed.as_ref().is_none_or(|words| words.iter().any(|word| word == name)))
}

/// Whether some word was typed.
fn was_typed(words: &[&str]) -> bool {
    std::env::args_os().skip(1).any(|typed| words.iter().any(|word| typed == *word))
}

/// Whether the help of a command is asked for, or what is written of all.
pub(crate) fn wants_help_of(name: &str) -> bool {
    was_typed(&["completions", "options"]) || was_typed(&["--help", "-h", "help"]) && was_typed(&[name])
}

/// Which options are described: those of this build, but for what is written of all builds.
pub(crate) fn described_build() -> Build {
    if was_typed(&["options"]) { Build::Whole } else { Build::This }
}

/// Whether help leaves out what a build has or lacks.
pub(crate) fn is_left_out(is_built: bool) -> bool {
    !is_built && described_build() == Build::This
}

/// Arguments of a subcommand.
#[derive(Debug)]
pub(crate) struct Described<A>(Box<A>);

impl<A> Deref for Described<A> {
    type Target = A;

    fn deref(&self) -> &A {
        &self.0
    }
}

impl<A: FromArgMatches> FromArgMatches for Described<A> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        A::from_arg_matches(matches).map(|args| Self(Box::new(args)))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }
}

impl<A: clap::Args> clap::Args for Described<A> {
    fn augment_args(command: Command) -> Command {
        if is_wanted(command.get_name()) { A::augment_args(command) } else { command }
    }

    fn augment_args_for_update(command: Command) -> Command {
        A::augment_args_for_update(command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory, Parser, Subcommand};

    #[derive(clap::Args, Debug)]
    struct Options {
        #[arg(long)]
        value: u32,
    }

    #[derive(Subcommand, Debug)]
    enum Which {
        One(Described<Options>),
        Two(Described<Options>),
    }

    #[derive(Parser, Debug)]
    struct Line {
        #[command(subcommand)]
        which: Which,
    }

    #[test]
    fn what_was_typed_is_described_and_parsed_and_the_rest_has_its_name() {
        let typed: Vec<OsString> = ["xc", "two", "--value", "7"].map(OsString::from).into();
        let command = for_typed(&typed, Line::command);
        let n = |command: &Command, name: &str| command.find_subcommand(name).unwrap().get_arguments().count();
        assert_eq!((n(&command, "one"), n(&command, "two")), (0, 1));
        let line = Line::from_arg_matches(&command.get_matches_from(&typed)).unwrap();
        let Which::Two(options) = line.which else { panic!("{line:?}") };
        assert_eq!(options.value, 7);
        let whole = Line::command();
        assert_eq!((n(&whole, "one"), n(&whole, "two")), (1, 1));
        assert!(matches!(Line::try_parse_from(["xc", "one", "--value", "1"]).unwrap().which, Which::One(_)));
    }
}
