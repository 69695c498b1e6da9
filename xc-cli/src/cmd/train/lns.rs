//! `xc train lns`: a network whose steps score some labels.

use super::candidate_args::CandidateArgs;
use super::dense::loss_for;
use super::instances::FileArgs;
use super::network::{self, Session, Shape, System};
use super::network_args::{NetworkArgs, show_default};
use crate::context::Context;
use crate::error::CliError;
use crate::named::named;
use xc_train::Loss;
use xc_train::classifier::{ClassifierParams, Preset, preset};

/// Train a network whose steps score some labels
///
/// Embeddings of the features are summed into a vector; every label has a row of weights. A
/// step scores the true labels of its batch and those that a sampler chooses, so that its
/// time does not grow with the labels. Answers score every label.
///
/// By default a batch shares one list of candidates: labels that hash tables find for its
/// instances, and uniform ones. Its rows are multiplied with all vectors at once. With
/// --lists own each instance has a list of its own.
///
/// What a step took, stage by stage, is said at the end and in MODEL.log (log.jsonl,
/// curve.svg, train.json). Interrupted training goes on with --resume, and ends with the
/// same bytes as if it had not been interrupted.
///
/// Examples:
///   xc train lns --train train.txt --tfidf --model lns.model
///   xc train lns --train train.txt --sampler midx --uniform 500 --model lns.model
///   xc train lns --train train.txt --preset amazon-670k --model lns.model
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
#[command(mut_args(|arg| show_default(&preset::lns(), arg)))]
#[command(mut_arg("loss", |arg| arg
    .value_parser(named::<Loss, _>(["softmax", "bce", "nce", "squared-hinge"]))
    .help("softmax (one label right), bce or squared-hinge (each label right or not), nce (true labels told from drawn \
           ones; with --sampler uniform, log-uniform, frequency or midx) \
           [default: softmax if no training instance has more than one label, else bce]")
))]
pub(crate) struct Args {
    #[command(flatten)]
    data: FileArgs,
    #[command(flatten)]
    head: CandidateArgs,
    #[command(flatten)]
    network: NetworkArgs,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<(), CliError> {
    network::run(args, &args.data, &args.network, context)
}

impl System for Args {
    fn preset(&self) -> Preset {
        self.head.preset.as_deref().and_then(preset::lns_of).unwrap_or_else(preset::lns)
    }

    fn params(&self, shape: &Shape, seed: u64) -> Result<ClassifierParams, CliError> {
        let mut params = self.network.apply(&self.preset(), shape.input, seed)?;
        if !self.network.has_loss() && self.head.preset.is_none() {
            params.loss = loss_for(shape);
        }
        self.head.apply(shape, &mut params)?;
        Ok(params)
    }

    fn announce(&self, session: &Session<'_>) -> Result<(), CliError> {
        self.head.announce(session);
        Ok(())
    }
}
