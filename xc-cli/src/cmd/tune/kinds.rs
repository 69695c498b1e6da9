//! The kinds of models whose options are searched: how each is trained, which is `xc train`'s affair.

use super::spaces::{self, Listed};
use crate::cmd::train::inputs::{DataArgs, PlaceArgs};
use crate::cmd::train::report::{Judging, Report};
use crate::cmd::train::trial::Trial;
use crate::cmd::train::{astra, dense, lns, mach, tree, tree_args, uniform};
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

/// A kind of network: how each is trained is the same but for its options.
trait Network: Trial + clap::Args + std::fmt::Debug {
    const KIND: &'static str;
    const ABOUT: &'static str;
    const SPACE: Listed;
}

impl<N: Network> Tuned for N {
    const KIND: &'static str = N::KIND;
    const ABOUT: &'static str = N::ABOUT;

    fn space() -> Listed {
        N::SPACE
    }

    fn data(&self) -> &DataArgs {
        Trial::data(self)
    }

    fn validation_fraction(&self) -> Option<f64> {
        self.network().validation_fraction()
    }

    fn explains(&self) -> bool {
        Trial::data(self).place.explain
    }

    fn check(&self, seed: u64) -> Result<(), CliError> {
        Trial::check(self, seed)
    }

    fn train(
        &self,
        place: &PlaceArgs,
        hold_out: Option<HoldOut>,
        judging: &Judging,
        context: &Context,
    ) -> Result<Option<Report>, CliError> {
        Trial::train(self, place, hold_out, judging, context)
    }
}

impl Network for mach::Args {
    const KIND: &'static str = "mach";
    const ABOUT: &'static str = "Tune the options of MACH for a data set";
    const SPACE: Listed = spaces::MACH;
}

impl Network for dense::Args {
    const KIND: &'static str = "dense";
    const ABOUT: &'static str = "Tune the options of a network with one output per label for a data set";
    const SPACE: Listed = spaces::DENSE;
}

impl Network for uniform::Args {
    const KIND: &'static str = "uniform";
    const ABOUT: &'static str = "Tune the options of a network with a sparse output layer for a data set";
    const SPACE: Listed = spaces::UNIFORM;
}

impl Network for lns::Args {
    const KIND: &'static str = "lns";
    const ABOUT: &'static str = "Tune the options of a network with negative sampling for a data set";
    const SPACE: Listed = spaces::LNS;
}

impl Network for astra::Args {
    const KIND: &'static str = "astra";
    const ABOUT: &'static str = "Tune the options of a network with hard and uniform negatives (ASTRA) for a data set";
    const SPACE: Listed = spaces::ASTRA;
}
