//! `xc train mach`: networks over hashed labels.

use super::inputs::{DataArgs, FileArgs};
use super::network_args::{LOSSES, OfNetwork, show_default};
use super::{Kind, joined};
use crate::settings::{Chosen, OfTable, names};
use xc_train::fit::Files;
use xc_train::mach;
use xc_train::settings::mach::{self as settings, MachSettings};
use xc_train::settings::{Choices, Setting, Table, serialised};

/// Train MACH: networks over hashed labels
///
/// Labels are hashed into --buckets buckets, --repetitions times independently, and
/// each repetition is a network with one output per bucket: the number of weights and the
/// training time depend on the number of buckets, not of labels. A label's score combines
/// the scores of its buckets in all repetitions.
///
/// Repetitions are independent. --repetitions-range trains some of them, on this machine
/// or another, and `xc merge` combines them: the result is byte for byte that of one run.
///
/// A finished repetition is kept in MODEL.checkpoint until the model is complete, and
/// --resume continues an unfinished one. Progress is logged to MODEL.log.
///
/// Examples:
///   xc train mach --train train.txt --tfidf --repetitions 8 --buckets 2000 --model my.model
///   xc train mach --train train.txt --buckets 2000 --repetitions-range 4..8 --model part2.model
///   xc merge part1.model part2.model --output my.model
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
#[command(mut_args(|arg| show_default(&mach::preset(), arg)))]
#[command(mut_arg("loss", |arg| arg.value_parser(names(LOSSES)).help(
    "softmax (one true bucket), bce or squared-hinge (each bucket true or false) \
     [default: softmax if no training instance has more than one label, else bce]"
)))]
pub(crate) struct Args {
    #[command(flatten)]
    own: Chosen<OfMach>,
    #[command(flatten)]
    pub(super) network: Chosen<OfNetwork>,
    #[command(flatten, next_help_heading = None::<&str>)]
    pub(super) data: FileArgs,
}

/// MACH models.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OfMach;

impl OfTable for OfMach {
    const TABLE: Table = settings::TABLE;

    fn usual(row: &Setting) -> Option<String> {
        row.shown(&serialised(&MachSettings::default()))
    }
}

impl Kind for Args {
    const KIND: &'static str = "mach";

    fn data(&self) -> &DataArgs {
        &self.data.data
    }

    fn files(&self) -> Files {
        self.data.files()
    }

    fn choices(&self) -> Choices {
        joined([&self.own.choices, &self.network.choices, &self.data.data.choices()])
    }
}
