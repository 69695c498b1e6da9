//! `xc train lns`: a network whose steps score some labels.

use super::candidate_args::CandidateArgs;
use super::dense::loss_for;
use super::explain::{Origin, Plan};
use super::instances::FileArgs;
use super::network::{self, Session, Shape, System};
use super::network_args::{NetworkArgs, show_defaults};
use super::network_explain::resolve_candidates;
use crate::context::Context;
use crate::error::CliError;
use xc_train::classifier::preset::{DataShape, FEW, LONG, MANY};
use xc_train::classifier::{ClassifierParams, Preset, preset};

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
    head: CandidateArgs,
    #[command(flatten)]
    pub(super) network: NetworkArgs,
    #[command(flatten, next_help_heading = None::<&str>)]
    pub(super) data: FileArgs,
}

/// Adds the default to the help of an option, where it follows from the data too.
pub(super) fn show_default_of_data(of: &dyn Fn(DataShape) -> Preset, arg: clap::Arg) -> clap::Arg {
    let of = |n_instances, n_entries, n_labels| of(DataShape { n_instances, n_entries, n_labels });
    let others = [
        ("few instances", of(0, 0, 0)),
        ("long instances", of(usize::MAX, usize::MAX, 0)),
        ("many labels", of(usize::MAX, 0, usize::MAX)),
    ];
    show_defaults(&of(usize::MAX, 0, 0), &others, arg)
}

/// Where a value comes from that follows from the data, or from a preset that was chosen.
pub(super) fn of_data_or_preset(option: &str, shape: &Shape, preset: Option<&str>) -> Origin {
    let of_data = [
        "network.widths",
        "network.init",
        "network.activation",
        "network.dropout",
        "network.input-dropout",
        "loss",
        "epochs",
        "optimizer.rate",
    ]
    .contains(&option);
    match preset {
        Some(name) if of_data || option == "batch" => Origin::Preset(name.to_owned()),
        None if of_data && shape.sparse_data().is_some() => Origin::Data,
        None if option == "loss" => Origin::Data,
        _ => Origin::Default,
    }
}

/// What width, initial embeddings, dropout, loss, rate and epochs follow from.
pub(super) fn few_or_long(shape: &Shape) -> (&'static str, String) {
    let said = match shape.sparse_data() {
        Some(data) => {
            let number = if data.has_few_instances() { "fewer than" } else { "at least" };
            let length = if data.has_long_instances() { "at least" } else { "fewer than" };
            let labels = if data.has_many_labels() { "at least" } else { "fewer than" };
            format!(
                "{number} {FEW} instances, of {length} {LONG} features on average, {labels} {MANY} labels: width, initial \
                 embeddings, dropout, loss, rate and epochs follow from this; few instances come before long ones, long \
                 ones before many labels"
            )
        }
        None => "vectors: defaults do not depend on their number".to_owned(),
    };
    ("sizes", said)
}

pub(super) fn run(args: &Args, context: &Context) -> Result<(), CliError> {
    network::run(args, &args.data, &args.network, context)
}

impl System for Args {
    fn preset(&self) -> Preset {
        self.head.preset().as_deref().and_then(preset::lns_of).unwrap_or_else(preset::lns)
    }

    fn preset_for(&self, shape: &Shape) -> Preset {
        match (self.head.preset(), shape.sparse_data()) {
            (None, Some(data)) => preset::lns_for(data),
            _ => self.preset(),
        }
    }

    fn params(&self, shape: &Shape, seed: u64) -> Result<ClassifierParams, CliError> {
        let mut params = self.network.apply(&self.preset_for(shape), shape.input, seed)?;
        if !self.network.has_loss() && self.head.preset().is_none() && shape.most_labels < 2 {
            params.loss = loss_for(shape);
        }
        self.head.apply(shape, &mut params)?;
        Ok(params)
    }

    fn origin(&self, option: &str, shape: &Shape) -> Origin {
        of_data_or_preset(option, shape, self.head.preset().as_deref())
    }

    fn explain(&self, session: &Session<'_>, plan: &mut Plan) {
        plan.lines.extend(self.head.preset().is_none().then(|| few_or_long(&session.shape)));
        resolve_candidates(&self.head, session, &mut plan.resolved);
    }

    fn announce(&self, session: &Session<'_>) -> Result<(), CliError> {
        self.head.announce(session);
        Ok(())
    }
}
