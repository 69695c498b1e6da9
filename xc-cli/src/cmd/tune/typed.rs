//! What is typed: the options of a training run, which hold for every trial, and those of the search.

use super::{TuneArgs, Tuned};
use clap::{ArgMatches, Command, FromArgMatches};
use xc_buffer::Part;

/// Options of `xc tune KIND`: those of `xc train KIND`, where `--model` is called `--output`, and
/// those of the search.
#[derive(Debug)]
pub(crate) struct Typed<A> {
    pub(super) tune: TuneArgs,
    pub(super) part: Option<Part>,
    pub(super) args: A,
}

impl<A: Tuned> FromArgMatches for Typed<A> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let part = matches.get_one("part").copied();
        Ok(Self { tune: TuneArgs::from_arg_matches(matches)?, part, args: A::from_arg_matches(matches)? })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl<A: Tuned> clap::Args for Typed<A> {
    fn augment_args(command: Command) -> Command {
        let command = TuneArgs::augment_args(command).next_help_heading(None::<&str>);
        let command = A::augment_args(command).next_help_heading(None::<&str>);
        // Options that a search has no use for are not listed.
        let rows = xc_options::tables(A::KIND).into_iter().flat_map(|table| table.rows);
        let of_training_alone = rows.filter(|row| !row.in_search).map(|row| row.name);
        let command = of_training_alone.chain(["checkpoint", "refit"]).fold(command, |command, name| {
            let id = command.get_arguments().find(|arg| arg.get_long() == Some(name)).map(|arg| arg.get_id().clone());
            id.into_iter().fold(command, |command, id| command.mut_arg(id, |arg| arg.hide(true)))
        });
        let fraction = command.get_arguments().find(|arg| arg.get_long() == Some("validation-fraction"));
        let fraction = fraction.map(|arg| arg.get_id().clone());
        let command =
            fraction.into_iter().fold(command, |command, id| command.mut_arg(id, |arg| arg.help(super::FRACTION_HELP)));
        // Some kinds have one for their training.
        let has_part = command.get_arguments().any(|arg| arg.get_id() == "part");
        let command = if has_part { command } else { command.arg(super::part()) };
        command
            .mut_arg("part", |arg| arg.help(super::PART_HELP).help_heading(super::HEADING).hide_short_help(true))
            .mut_arg("model", |arg| arg.long("output").help(super::OUTPUT_HELP))
            .mut_arg("resume", |arg| arg.help("Continue the search in --output, with the same data and options"))
            .mut_arg("restart", |arg| arg.help("Discard the search in --output, and start over"))
            .mut_arg("validation", |arg| arg.help("Evaluation instances [default: parts of the training instances]"))
            .about(A::ABOUT)
            .long_about(super::long_about::<A>())
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}
