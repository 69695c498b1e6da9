//! `xc train dense`: a network with one output per label.

use super::explain::{Origin, Plan};
use super::instances::FileArgs;
use super::network::{self, Session, Shape, System, params_error};
use super::network_args::{NetworkArgs, show_default};
use crate::context::Context;
use crate::error::CliError;
use xc_train::Loss;
use xc_train::classifier::{ClassifierParams, DifferentiatedHeadParams, HeadParams, Preset, preset};
use xc_train::head::BlockShare;

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
///   xc train dense --train train.txt --tfidf --head differentiated --model dense.model
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
#[command(mut_args(|arg| show_default(&preset::dense(), arg)))]
#[command(mut_arg("loss", |arg| arg.help(
    "softmax (one true label), bce or squared-hinge (each label true or false) \
     [default: softmax if no training instance has more than one label, else bce]"
)))]
pub(crate) struct Args {
    #[command(flatten)]
    head: HeadArgs,
    #[command(flatten)]
    pub(super) network: NetworkArgs,
    #[command(flatten, next_help_heading = None::<&str>)]
    pub(super) data: FileArgs,
}

/// What the output layer is.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Output layer options")]
struct HeadArgs {
    /// dense: each label is connected with every unit; differentiated: labels are divided into blocks by frequency, and
    /// each block has its own units
    #[arg(long, value_name = "HEAD", value_parser = ["dense", "differentiated"], default_value = "dense")]
    head: String,
    /// Shares of the labels and of the units in each block, the most frequent labels first (--head differentiated)
    /// [default: 0.1:0.5,0.3:0.25,0.6:0.25]
    #[arg(long = "head.blocks", value_name = "LABELS:UNITS,...", value_delimiter = ',', value_parser = parse_block)]
    blocks: Option<Vec<BlockShare>>,
}

fn parse_block(text: &str) -> Result<BlockShare, String> {
    let wrong = || format!("got {text:?}, expected two shares such as 0.1:0.5");
    let (labels, units) = text.split_once(':').ok_or_else(wrong)?;
    Ok(BlockShare { labels: labels.parse().map_err(|_| wrong())?, units: units.parse().map_err(|_| wrong())? })
}

impl HeadArgs {
    fn params(&self) -> Result<HeadParams, CliError> {
        match (&*self.head, &self.blocks) {
            ("dense", Some(_)) => Err(CliError::usage("--head.blocks: --head differentiated is expected with it")),
            ("dense", None) => Ok(HeadParams::Dense),
            (_, None) => Ok(HeadParams::Differentiated(DifferentiatedHeadParams::default())),
            (_, Some(blocks)) => Ok(HeadParams::Differentiated(DifferentiatedHeadParams { blocks: blocks.clone() })),
        }
    }
}

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
        params.head = self.head.params()?;
        params.check(shape.n_features, shape.n_labels).map_err(|e| params_error(&e))?;
        Ok(params)
    }

    fn origin(&self, option: &str, _: &Shape) -> Origin {
        if option == "loss" { Origin::Data } else { Origin::Default }
    }

    fn explain(&self, session: &Session<'_>, plan: &mut Plan) {
        let HeadParams::Differentiated(head) = &session.params.head else { return };
        let blocks: Vec<_> = head.blocks.iter().map(|block| format!("{}:{}", block.labels, block.units)).collect();
        plan.resolved.set("head.blocks", blocks.join(","), Origin::Default);
    }
}

/// The loss for instances unless one was asked for: softmax where one label is right.
pub(super) fn loss_for(shape: &Shape) -> Loss {
    if shape.most_labels <= 1 { Loss::Softmax } else { Loss::Bce }
}
