//! Trainings of networks whose options a search chooses.
//!
//! A trial learns as the final model will, without instances that choose its epoch; those that are
//! held out judge what came out.

use super::inputs::{DataArgs, PlaceArgs};
use super::network::{self, Judges};
use super::network_args::NetworkArgs;
use super::report::{Judging, Report};
use super::{astra, dense, lns, mach, uniform};
use crate::context::Context;
use crate::error::CliError;
use xc_train::model::HoldOut;

/// A kind of network as a search sees it.
pub(in crate::cmd) trait Trial {
    /// Files, and where the model goes.
    fn data(&self) -> &DataArgs;

    /// Options that all networks have.
    fn network(&self) -> &NetworkArgs;

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

/// The trials of a kind, whose instances come from its files, or from itself if it adds to them.
macro_rules! trial {
    ($kind:ident, $args:ident => $source:expr) => {
        impl Trial for $kind::Args {
            fn data(&self) -> &DataArgs {
                &self.data.data
            }

            fn network(&self) -> &NetworkArgs {
                &self.network
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

trial!(mach, args => &args.data);
trial!(dense, args => &args.data);
trial!(uniform, args => &args.data);
trial!(lns, args => &args.data);
trial!(astra, args => args);
