//! `xc train astra`: a network whose steps score the hardest labels, and uniform ones.

use super::astra_args::OfAstra;
use super::inputs::{DataArgs, FileArgs};
use super::lns::show_default_of_data;
use super::network_args::{EncodedArgs, LOSSES};
use super::{Kind, joined};
use crate::settings::{Chosen, names};
use std::path::PathBuf;
use xc_options::data::Files;
use xc_options::settings::Choices;
use xc_train::preset;

/// Train a network with hard and uniform negatives (ASTRA)
///
/// Embeddings of the features are summed into a vector; every label has a row of weights. A
/// step scores the true labels of its batch, the false labels that score highest for its
/// instances, and uniform labels that stand for all others, so its time does not grow with
/// the number of labels. An index over the rows of weights finds the hardest labels; it is
/// updated as the weights change. Prediction scores every label.
///
/// Unless given, width, initial embeddings, loss, rate and epochs follow from the training
/// instances, as in `xc train lns`; --explain prints all values and the reasons for them,
/// and trains nothing.
///
/// The time of each stage of a step is reported at the end and in MODEL.log (log.jsonl,
/// curve.svg, train.json). --resume continues an interrupted run, which ends with the same
/// bytes as without the interruption.
///
/// Examples:
///   xc train astra --train train.txt --tfidf --model astra.model
///   xc train astra --train train.txt --negatives.hard 20 --negatives.uniform 4000 --model astra.model
///   xc train astra --train train.txt --sampler random --model random.model
///   xc train astra --train train.jsonl --label-features labels.jsonl --model astra.model
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
#[command(mut_args(|arg| show_default_of_data(&preset::astra_for, arg)))]
#[command(mut_arg("loss", |arg| arg.value_parser(names(LOSSES)).help(
    "softmax (one true label), bce or squared-hinge (each label true or false) \
     [default: softmax if no training instance has more than one label, else bce; squared-hinge for long instances]"
)))]
pub(crate) struct Args {
    /// Texts or features of the labels, one row per label: each becomes a training instance with that label, and its
    /// features are made as those of the others
    #[arg(long, value_name = "FILE")]
    label_features: Option<PathBuf>,
    #[command(flatten)]
    head: Chosen<OfAstra>,
    #[command(flatten)]
    network: EncodedArgs,
    #[command(flatten, next_help_heading = None::<&str>)]
    pub(super) data: FileArgs,
}

impl Kind for Args {
    const KIND: &'static str = "astra";

    fn data(&self) -> &DataArgs {
        &self.data.data
    }

    fn files(&self) -> Files {
        Files { label_features: self.label_features.clone(), ..self.data.files() }
    }

    fn choices(&self) -> Choices {
        joined([&self.head.choices, &self.network.choices(), &self.data.data.choices()])
    }
}
