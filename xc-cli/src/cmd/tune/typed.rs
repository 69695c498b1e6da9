//! What is typed: the options of a training run, which hold for every trial, and those of the search.

use super::TuneArgs;
use crate::cmd::train::{KindArgs, command_of, typed, with_kinds};
use clap::{ArgMatches, Args, Command, FromArgMatches};
use xc_buffer::Part;
use xc_options::rows;

/// Options of `xc tune KIND`: those of `xc train KIND`, where `--model` is called `--output`, and
/// those of the search.
#[derive(Debug)]
pub(crate) struct Typed {
    pub(super) tune: TuneArgs,
    pub(super) part: Option<Part>,
    pub(super) args: KindArgs,
}

impl FromArgMatches for Typed {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let (kind, of) = typed(matches)?;
        let part = of.get_one("part").copied();
        Ok(Self { tune: TuneArgs::from_arg_matches(of)?, part, args: KindArgs::from_matches(kind, of)? })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl clap::Subcommand for Typed {
    fn augment_subcommands(command: Command) -> Command {
        let kinds = super::ABOUT.map(|(kind, _)| kind);
        with_kinds(command, &kinds, search_of)
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        super::ABOUT.iter().any(|(kind, _)| *kind == name)
    }
}

/// The command that searches the options of a kind.
fn search_of(kind: &'static str, command: Command) -> Command {
    let command = TuneArgs::augment_args(command).next_help_heading(None::<&str>);
    let command = command_of(kind, command).next_help_heading(None::<&str>);
    // Options that a search has no use for are not listed.
    let of_training_alone = rows(kind).into_iter().filter(|row| !row.in_search).map(|row| row.name);
    let command = of_training_alone.chain(["checkpoint", "refit"]).fold(command, |command, name| {
        let id = command.get_arguments().find(|arg| arg.get_long() == Some(name)).map(|arg| arg.get_id().clone());
        id.into_iter().fold(command, |command, id| command.mut_arg(id, |arg| arg.hide(true)))
    });
    // Some kinds have one for their training.
    let has_part = command.get_arguments().any(|arg| arg.get_id() == "part");
    let command = if has_part { command } else { command.arg(super::part()) };
    command
        .mut_arg("validation-fraction", |arg| arg.help(super::FRACTION_HELP))
        .mut_arg("part", |arg| arg.help(super::PART_HELP).help_heading(super::HEADING).hide_short_help(true))
        .mut_arg("model", |arg| arg.long("output").help(super::OUTPUT_HELP))
        .mut_arg("resume", |arg| arg.help("Continue the search in --output, with the same data and options"))
        .mut_arg("restart", |arg| arg.help("Discard the search in --output, and start over"))
        .mut_arg("validation", |arg| arg.help("Evaluation instances [default: parts of the training instances]"))
        .about(super::about(kind))
        .long_about(super::long_about(kind))
}
