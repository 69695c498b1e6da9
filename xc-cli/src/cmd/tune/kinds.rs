//! The kinds of models whose options are searched: how each is trained, which is `xc train`'s affair.

use super::spaces::{self, Listed};
use crate::cmd::train::inputs::{DataArgs, PlaceArgs};
use crate::cmd::train::report::{Judging, Report};
use crate::cmd::train::{tree, tree_args};
use crate::context::Context;
use crate::error::CliError;
use xc_train::model::HoldOut;

/// A kind of model with options to choose.
pub(super) trait Tuned: clap::Args + std::fmt::Debug {
    /// As `xc train` calls it.
    const KIND: &'static str;
    /// One line about the command.
    const ABOUT: &'static str;

    /// The options that are searched.
    fn space() -> Listed;

    /// Files, and where the model goes.
    fn data(&self) -> &DataArgs;

    /// What was asked for as the share of held-out instances.
    fn validation_fraction(&self) -> Option<f64>;

    /// Whether only the plan is asked for.
    fn explains(&self) -> bool;

    /// Refuses options that do not go together, before any data are read.
    fn check(&self, seed: u64) -> Result<(), CliError>;

    /// Trains, saves and judges a model.
    fn train(
        &self,
        place: &PlaceArgs,
        hold_out: Option<HoldOut>,
        judging: &Judging,
        context: &Context,
    ) -> Result<Option<Report>, CliError>;
}

impl Tuned for tree_args::Args {
    const KIND: &'static str = "tree";
    const ABOUT: &'static str = "Tune the options of a label tree for a data set";

    fn space() -> Listed {
        spaces::TREE
    }

    fn data(&self) -> &DataArgs {
        &self.data
    }

    fn validation_fraction(&self) -> Option<f64> {
        self.validation_fraction
    }

    fn explains(&self) -> bool {
        self.data.place.explain
    }

    fn check(&self, seed: u64) -> Result<(), CliError> {
        self.data.text.params()?;
        self.params(seed).map(drop)
    }

    fn train(
        &self,
        place: &PlaceArgs,
        hold_out: Option<HoldOut>,
        judging: &Judging,
        context: &Context,
    ) -> Result<Option<Report>, CliError> {
        tree::train(self, place, hold_out, judging, context)
    }
}
