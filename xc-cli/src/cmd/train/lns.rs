//! `xc train lns`: a network whose steps score some labels.

use super::candidate_args::OfCandidates;
use super::inputs::{DataArgs, FileArgs};
use super::network_args::{EncodedArgs, show_defaults};
use super::{Kind, joined};
use crate::settings::Chosen;
use xc_options::data::Files;
use xc_options::settings::Choices;
use xc_train::preset::{self, DataShape, Preset};

/// Train a network with negative sampling
///
/// Embeddings of the features are summed into a vector; every label has a row of weights. A
/// step scores the true labels of its batch and those that a sampler chooses, so its time
/// does not grow with the number of labels. Prediction scores every label.
///
/// By default a batch shares one list of candidates: labels that hash tables find for its
/// instances, and uniform ones. The rows of these labels are multiplied with all vectors at
/// once. With --negatives.shared false, each instance has its own list.
///
/// Unless given, width, initial embeddings, loss, rate and epochs follow from the training
/// instances: fewer than 12,000 ("few"), 100 features or more on average ("long").
///
/// The time of each stage of a step is reported at the end and in MODEL.log (log.jsonl,
/// curve.svg, train.json). --resume continues an interrupted run, which ends with the same
/// bytes as without the interruption.
///
/// Examples:
///   xc train lns --train train.txt --tfidf --model lns.model
///   xc train lns --train train.txt --sampler midx --negatives.uniform 500 --model lns.model
///   xc train lns --train train.txt --preset amazon-670k --model lns.model
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
#[command(mut_args(|arg| show_default_of_data(&preset::lns_for, arg)))]
#[command(mut_arg("loss", |arg| arg.help("softmax (one true label), bce or squared-hinge (each label true or false), nce (true labels against drawn \
           ones; with --sampler uniform, log-uniform, frequency or midx) \
           [default: softmax if no training instance has more than one label, else bce; squared-hinge for long instances]")
))]
pub(crate) struct Args {
    #[command(flatten)]
    head: Chosen<OfCandidates>,
    #[command(flatten)]
    network: EncodedArgs,
    #[command(flatten, next_help_heading = None::<&str>)]
    pub(super) data: FileArgs,
}

/// Adds the default to the help of an option, where it follows from the data too.
pub(super) fn show_default_of_data(of: &dyn Fn(DataShape) -> Preset, arg: clap::Arg) -> clap::Arg {
    let [(_, usual), others @ ..] = preset::SHAPES;
    show_defaults(&of(usual), &others.map(|(whom, data)| (whom, of(data))), arg)
}

impl Kind for Args {
    const KIND: &'static str = "lns";

    fn data(&self) -> &DataArgs {
        &self.data.data
    }

    fn files(&self) -> Files {
        self.data.files()
    }

    fn choices(&self) -> Choices {
        joined([&self.head.choices, &self.network.choices(), &self.data.data.choices()])
    }
}
