//! `xc train mach`: networks over hashed labels.

use super::inputs::{DataArgs, FileArgs};
use super::network_args::{LOSSES, OfNetwork, show_default};
use super::transformer_args::OfTransformer;
use super::{Kind, joined};
use crate::settings::{Chosen, OfTable, names};
use xc_buffer::Part;
use xc_options::data::Files;
use xc_options::settings::mach as settings;
use xc_options::settings::{Choices, Setting, Table};
use xc_train::preset;

/// Train MACH: networks over hashed labels
///
/// Labels are hashed into --buckets buckets, --repetitions times independently, and
/// each repetition is a network with one output per bucket: the number of weights and the
/// training time depend on the number of buckets, not of labels. A label's score combines
/// the scores of its buckets in all repetitions.
///
/// Repetitions are independent. --part trains a share of them, --repetitions-range those
/// that it names, on this machine or another, and `xc merge` combines them: the result is
/// byte for byte that of one run.
///
/// A finished repetition is kept in MODEL.checkpoint until the model is complete, and
/// --resume continues an unfinished one. Progress is logged to MODEL.log.
///
/// Examples:
///   xc train mach --train train.txt --tfidf --repetitions 8 --buckets 2000 --model my.model
///   xc train mach --train train.txt --repetitions 8 --part 0/2 --model part-0.model
///   xc train mach --train train.txt --repetitions 8 --part 1/2 --model part-1.model
///   xc merge part-0.model part-1.model --output my.model
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
#[command(mut_args(|arg| show_default(&preset::mach(), arg)))]
#[command(mut_arg("loss", |arg| arg.value_parser(names(LOSSES)).help(
    "softmax (one true bucket), bce or squared-hinge (each bucket true or false) \
     [default: softmax if no training instance has more than one label, else bce]"
)))]
pub(crate) struct Args {
    #[command(flatten)]
    own: Chosen<OfMach>,
    #[command(flatten)]
    transformer: Chosen<OfTransformer<false>>,
    #[command(flatten)]
    pub(super) network: Chosen<OfNetwork>,
    /// Train part I of N of the repetitions, from 0/N on, as a process of its own: `xc merge` makes one model of all
    #[arg(long, value_name = "I/N")]
    pub(super) part: Option<Part>,
    #[command(flatten, next_help_heading = None::<&str>)]
    pub(super) data: FileArgs,
}

/// MACH models.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OfMach;

impl OfTable for OfMach {
    const TABLE: Table = settings::TABLE;

    /// They follow from the labels, which help says.
    fn usual(_: &Setting) -> Option<String> {
        None
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

    fn part(&self) -> Option<Part> {
        self.part
    }

    fn choices(&self) -> Choices {
        joined([&self.own.choices, &self.transformer.choices, &self.network.choices, &self.data.data.choices()])
    }
}
