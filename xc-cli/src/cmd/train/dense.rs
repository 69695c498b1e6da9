//! `xc train dense`: a network with one output per label.

use super::explain::Origin;
use super::instances::FileArgs;
use super::network::{self, Shape, System, params_error};
use super::network_args::{LOSSES, NetworkArgs, show_default};
use crate::context::Context;
use crate::error::CliError;
use crate::settings::names;
use xc_nn::Loss;
use xc_train::classifier::{ClassifierParams, Preset, preset};

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
    pub(super) network: NetworkArgs,
    #[command(flatten, next_help_heading = None::<&str>)]
    pub(super) data: FileArgs,
}

/// What the output layer is.
pub(super) fn run(args: &Args, context: &Context) -> Result<(), CliError> {
    network::run(args, &args.data, &args.network, context)
}

impl System for Args {
    fn preset(&self) -> Preset {
        preset::dense()
    }

    fn params(&self, shape: &Shape, seed: u64) -> Result<ClassifierParams, CliError> {
        let mut params = self.network.apply(&self.preset(), shape.input, seed)?;
        if !self.network.has_loss() {
            params.loss = loss_for(shape);
        }
        params.check(shape.n_features, shape.n_labels).map_err(|e| params_error(&e))?;
        Ok(params)
    }

    fn origin(&self, option: &str, _: &Shape) -> Origin {
        if option == "loss" { Origin::Data } else { Origin::Default }
    }
}

/// The loss for instances unless one was asked for: softmax where one label is right.
pub(super) fn loss_for(shape: &Shape) -> Loss {
    if shape.most_labels <= 1 { Loss::Softmax } else { Loss::Bce }
}
