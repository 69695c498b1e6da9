//! `xc train dense`: a network with one output per label.

use super::inputs::{DataArgs, FileArgs};
use super::network_args::{EncodedArgs, LOSSES, show_default};
use super::{Kind, joined};
use crate::settings::names;
use xc_options::data::Files;
use xc_options::settings::Choices;
use xc_train::preset;

/// Train a network with one output per label
///
/// Embeddings of the features are summed into a vector, which goes through the hidden
/// layers to one output per label. Weights and time grow with the number of labels. This
/// kind is the baseline that the others are compared with, and a good choice for a few
/// thousand labels. Prediction scores every label.
///
/// Progress is logged to MODEL.log (log.jsonl, curve.svg, train.json). --resume continues
/// an interrupted run, which ends with the same bytes as without the interruption.
///
/// Examples:
///   xc train dense --train train.txt --tfidf --model dense.model
///   xc train dense --train train.jsonl --validation dev.jsonl --epochs 20 --patience 2
///     --model dense.model
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
#[command(mut_args(|arg| show_default(&preset::dense(), arg)))]
#[command(mut_arg("loss", |arg| arg.value_parser(names(LOSSES)).help(
    "softmax (one true label), bce or squared-hinge (each label true or false) \
     [default: softmax if no training instance has more than one label, else bce]"
)))]
pub(crate) struct Args {
    #[command(flatten)]
    network: EncodedArgs,
    #[command(flatten, next_help_heading = None::<&str>)]
    pub(super) data: FileArgs,
}

impl Kind for Args {
    const KIND: &'static str = "dense";

    fn data(&self) -> &DataArgs {
        &self.data.data
    }

    fn files(&self) -> Files {
        self.data.files()
    }

    fn choices(&self) -> Choices {
        joined([&self.network.choices(), &self.data.data.choices()])
    }
}
