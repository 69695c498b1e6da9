//! `xc train uniform`: a network with a sparse output layer.

use super::inputs::{DataArgs, FileArgs};
use super::network_args::{EncodedArgs, LOSSES, show_defaults, with_default};
use super::{Kind, joined};
use crate::settings::{Chosen, OfTable, names};
use xc_model::classifier::{ConnectionLearning, SparseHeadParams};
use xc_options::data::Files;
use xc_options::settings::uniform;
use xc_options::settings::{Choices, Setting, Table};
use xc_train::preset;

/// Train a network with a sparse output layer
///
/// Each label is connected with --head.fan-in units of a wide layer
/// (--network.intermediate) instead of all of them: memory and time of the output layer
/// grow with labels * fan-in. The squared hinge skips labels that are right by a margin.
/// The weakest connections are dropped and redrawn during training.
///
/// Instances are sparse features or text, or vectors that were computed elsewhere:
/// --features FILE.npy (one row per instance, f32) in addition to --train, which then gives
/// only the labels. A file of plain f32 stays on disk.
///
/// The memory that training needs is printed before it begins; --max-memory refuses more.
/// Progress is logged to MODEL.log. --resume continues an interrupted run, which ends with
/// the same bytes as without the interruption.
///
/// Examples:
///   xc train uniform --train train.txt --tfidf --model my.model
///   xc train uniform --train labels.txt --features train.npy --head.precision bf16
///     --model my.model
///   xc train uniform --train l.txt --features x.npy --validation lv.txt
///     --validation-features v.npy --epochs 100 --schedule plateau --schedule.lowest 0.1
///     --monitor P@3 --patience 1 --patience-from lowest-rate --model my.model
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
#[command(mut_args(show_default_of_data))]
#[command(mut_arg("network.widths", |arg| arg.help(
    "Hidden layer sizes below the intermediate one, input side first, e.g. 512,512: for sparse features the first is the width of \
     their embeddings [default: 512 for sparse features, none for vectors]"
)))]
#[command(mut_arg("network.init", |arg| arg.help(
    "Initial embeddings of sparse features: random, or lsa (latent semantic analysis of the training rows) [default: lsa; \
     random without an intermediate layer]"
)))]
#[command(mut_arg("loss", |arg| arg.value_parser(names(LOSSES)).help(
    "squared-hinge or bce (each label true or false), softmax (one true label) [default: squared-hinge; softmax for many labels]"
)))]
pub(crate) struct Args {
    #[command(flatten)]
    head: Chosen<OfUniform>,
    #[command(flatten)]
    network: EncodedArgs,
    #[command(flatten, next_help_heading = None::<&str>)]
    pub(super) data: FileArgs,
}

/// Adds the default to the help of an option; vectors have that of the preset.
fn show_default_of_data(arg: clap::Arg) -> clap::Arg {
    let head = SparseHeadParams::default();
    match arg.get_id().as_str() {
        "head.fan-in" => {
            return with_default(arg, &format!("{}; {} for many labels", head.fan_in, preset::MANY_FAN_IN));
        }
        "head.rewire-fraction" => {
            return with_default(arg, &ConnectionLearning::default().rewire_fraction.to_string());
        }
        "network.activation" => return with_default(arg, "identity after lsa, else relu"),
        _ => {}
    }
    let [usual, few, _, many] = preset::SHAPES.map(|(whom, data)| (whom, preset::uniform_for(data)));
    show_defaults(&usual.1, &[few, many, ("vectors", preset::uniform())], arg)
}

/// The sparse output layer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OfUniform;

impl OfTable for OfUniform {
    const TABLE: Table = uniform::TABLE;

    fn usual(row: &Setting) -> Option<String> {
        (row.name == "head.wiring").then(|| "uniform".to_owned())
    }
}

impl Kind for Args {
    const KIND: &'static str = "uniform";

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
