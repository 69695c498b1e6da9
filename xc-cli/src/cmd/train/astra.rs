//! `xc train astra`: a network whose steps score the hardest labels, and uniform ones.

use super::astra_args::AstraArgs;
use super::dense::loss_for;
use super::explain::{Origin, Plan};
use super::inputs::PlaceArgs;
use super::instances::{FileArgs, Instances, Source};
use super::lns::{few_or_long, of_data_or_preset, show_default_of_data};
use super::network::{self, Session, Shape, System};
use super::network_args::{LOSSES, NetworkArgs};
use crate::context::Context;
use crate::data::add_label_rows;
use crate::error::{CliError, chain};
use crate::settings::names;
use std::path::{Path, PathBuf};
use xc_train::classifier::{ClassifierParams, InputKind, Preset, preset};
use xc_train::model::HoldOut;

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
    head: AstraArgs,
    #[command(flatten)]
    pub(super) network: NetworkArgs,
    #[command(flatten, next_help_heading = None::<&str>)]
    pub(super) data: FileArgs,
}

pub(super) fn run(args: &Args, context: &Context) -> Result<(), CliError> {
    network::run(args, args, &args.network, context)
}

impl Source for Args {
    fn place(&self) -> &PlaceArgs {
        self.data.place()
    }

    fn input(&self) -> InputKind {
        self.data.input()
    }

    fn refit(&self) -> Option<&Path> {
        self.data.refit()
    }

    fn has_validation(&self) -> bool {
        self.data.has_validation()
    }

    fn check(&self) -> Result<(), CliError> {
        self.data.check()?;
        let has_texts = self.label_features.is_some();
        if has_texts && self.input() == InputKind::Dense {
            return Err(CliError::usage(
                "--label-features: instances are vectors; sparse features or text are expected",
            ));
        }
        self.head.check_texts(has_texts)?;
        let Some(path) = &self.label_features else { return Ok(()) };
        let opened = std::fs::File::open(path);
        opened.map(drop).map_err(|e| CliError::usage(format_args!("{}: {}", path.display(), chain(&e))))
    }

    fn read(&self, hold_out: Option<HoldOut>, context: &Context) -> Result<Instances, CliError> {
        self.data.data.refuse_idle(self.data.features(), self.label_features.as_deref(), context)?;
        let mut instances = Instances::Files(self.data.read_files(hold_out, context)?);
        if let (Some(path), Instances::Files(sets)) = (&self.label_features, &mut instances) {
            let input = &self.data.data.input;
            sets.label_texts = Some(add_label_rows(&mut sets.train, path, input, context)?);
        }
        Ok(instances)
    }
}

impl System for Args {
    fn preset(&self) -> Preset {
        preset::astra()
    }

    fn preset_for(&self, shape: &Shape) -> Preset {
        shape.sparse_data().map_or_else(preset::astra, preset::astra_for)
    }

    fn params(&self, shape: &Shape, seed: u64) -> Result<ClassifierParams, CliError> {
        let mut params = self.network.apply(&self.preset_for(shape), shape.input, seed)?;
        if !self.network.has_loss() && shape.most_labels < 2 {
            params.loss = loss_for(shape);
        }
        self.head.apply(shape, &mut params)?;
        Ok(params)
    }

    fn announce(&self, session: &Session<'_>) -> Result<(), CliError> {
        self.head.announce(session);
        Ok(())
    }

    fn origin(&self, option: &str, shape: &Shape) -> Origin {
        of_data_or_preset(option, shape, None)
    }

    fn explain(&self, session: &Session<'_>, plan: &mut Plan) {
        plan.lines.push(few_or_long(&session.shape));
        self.head.explain(session, plan);
    }
}
