//! Trainings whose options a search chooses.
//!
//! A trial learns as the final model will, without instances that choose its epoch; those that are
//! held out judge what came out.

use super::inputs::{DataArgs, PlaceArgs};
use super::network::{self, Judges};
use super::report::{Judging, Report};
use super::{astra, dense, lns, mach, tree, tree_args, uniform};
use crate::context::Context;
use crate::error::CliError;
use xc_train::model::HoldOut;

/// A kind of model as a search sees it.
pub(in crate::cmd) trait Trial {
    /// Files, and where the model goes.
    fn data(&self) -> &DataArgs;

    /// What was asked for as the share of held-out instances.
    fn validation_fraction(&self) -> Option<f64>;

    /// Refuses options that do not go together, before any data are read.
    fn check(&self, seed: u64) -> Result<(), CliError>;

    /// Trains and saves a model; instances that are held out, or the validation file, judge it.
    fn train(
        &self,
        place: &PlaceArgs,
        hold_out: Option<HoldOut>,
        judging: &Judging,
        context: &Context,
    ) -> Result<Option<Report>, CliError>;
}

impl Trial for tree_args::Args {
    fn data(&self) -> &DataArgs {
        &self.data
    }

    fn validation_fraction(&self) -> Option<f64> {
        self.validation_fraction
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

/// The trials of a kind of network, whose instances come from its files, or from itself if it adds to
/// them.
macro_rules! network_trial {
    ($kind:ident, $args:ident => $source:expr) => {
        impl Trial for $kind::Args {
            fn data(&self) -> &DataArgs {
                &self.data.data
            }

            fn validation_fraction(&self) -> Option<f64> {
                self.network.validation_fraction()
            }

            fn check(&self, seed: u64) -> Result<(), CliError> {
                let $args = self;
                network::check(self, $source, &self.network.for_all(None), false, seed)
            }

            fn train(
                &self,
                place: &PlaceArgs,
                hold_out: Option<HoldOut>,
                judging: &Judging,
                context: &Context,
            ) -> Result<Option<Report>, CliError> {
                let ($args, judges) = (self, Judges { hold_out, judging, choose_epoch: false });
                network::train(self, $source, place, &self.network.for_all(None), &judges, context)
            }
        }
    };
}

network_trial!(mach, args => &args.data);
network_trial!(dense, args => &args.data);
network_trial!(uniform, args => &args.data);
network_trial!(lns, args => &args.data);
network_trial!(astra, args => args);
