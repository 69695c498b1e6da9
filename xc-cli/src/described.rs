//! Commands whose options are described only where they were typed: to describe those of all commands takes longer than
//! most commands run.

use clap::{ArgMatches, Command, FromArgMatches};
use std::cell::RefCell;
use std::ffi::OsString;
use std::ops::Deref;
use xc_options::Build;

/// What of all commands is described.
#[derive(Clone, Debug)]
pub(crate) enum Scope {
    /// The options of commands that are among these words.
    Typed(Vec<OsString>),
    /// The options of all, with usual values where a command is among these words.
    Help(Vec<OsString>),
    /// The options of all, with usual values, of this build or of one with every part.
    All(Build),
}

thread_local! {
    /// What is described at this time; nothing: options of all commands, without usual values, which take longer.
    static SCOPE: RefCell<Option<Scope>> = const { RefCell::new(None) };
}

/// What `describe` gives for a scope.
pub(crate) fn within<T>(scope: Scope, describe: impl FnOnce() -> T) -> T {
    let before = SCOPE.replace(Some(scope));
    let described = describe();
    SCOPE.set(before);
    described
}

fn of_scope<T>(of: impl FnOnce(Option<&Scope>) -> T) -> T {
    SCOPE.with_borrow(|scope| of(scope.as_ref()))
}

fn has(words: &[OsString], name: &str) -> bool {
    words.iter().any(|word| word == name)
}

/// Whether the options of a command are described.
pub(crate) fn is_wanted(name: &str) -> bool {
    of_scope(|scope| !matches!(scope, Some(Scope::Typed(words)) if !has(words, name)))
}

/// Whether usual values of a command's options are said.
pub(crate) fn says_usual_values_of(name: &str) -> bool {
    of_scope(|scope| match scope {
        Some(Scope::Help(words)) => has(words, name) && ["--help", "-h", "help"].iter().any(|help| has(words, help)),
        Some(Scope::All(_)) => true,
        _ => false,
    })
}

/// Of which build options are described.
pub(crate) fn build() -> Build {
    of_scope(|scope| if let Some(Scope::All(build)) = scope { *build } else { Build::This })
}

/// Whether what a build has or lacks is left out.
pub(crate) fn is_left_out(is_built: bool) -> bool {
    !is_built && build() == Build::This
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
        let command = within(Scope::Typed(typed.clone()), Line::command);
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
