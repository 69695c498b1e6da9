//! `xc convert --from xc --to xc`: a trained model, changed without training.

use super::Args;
use crate::bytes::format_bytes;
use crate::context::Context;
use crate::data::read_label_set;
use crate::error::{CliError, chain};
use crate::model::OpenArgs;
use crate::written::is_same;
use std::path::PathBuf;
use xc_data::{LabelNames, UnknownLabels};
use xc_model::{ChangeError, Changes};
use xc_store::ContainerWriter;
use xc_tree::PostProcessor;

/// What can be changed about a trained model.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Changes of a model (--from xc --to xc)")]
pub(super) struct ChangeArgs {
    /// Drop weights of a tree or of a wide term below this magnitude, as --linear.prune-below and --wide.prune-below do in
    /// training
    #[arg(long, value_name = "X")]
    prune_below: Option<f32>,
    /// Leave out the wide term of a network
    #[arg(long, value_name = "off", value_parser = ["off"])]
    wide: Option<String>,
    /// Keep the first T trees of an ensemble
    #[arg(long, value_name = "T", value_parser = clap::value_parser!(u32).range(1..))]
    trees: Option<u32>,
    /// Predict only these labels: ids or names, one per line. Labels keep their ids and names; the clusters and weights
    /// of the others are dropped (trees)
    #[arg(long, value_name = "FILE")]
    keep_labels: Option<PathBuf>,
    /// How margins of a tree become scores: sigmoid, log-sigmoid, noop, lP-hinge or log-lP-hinge
    /// with P from 1 to 9
    #[arg(long, value_name = "NAME")]
    post_processor: Option<PostProcessor>,
}

impl ChangeArgs {
    /// The first option that was given.
    pub(super) fn given(&self) -> Option<&'static str> {
        let given = [
            (self.prune_below.is_some(), "--prune-below"),
            (self.wide.is_some(), "--wide"),
            (self.trees.is_some(), "--trees"),
            (self.keep_labels.is_some(), "--keep-labels"),
            (self.post_processor.is_some(), "--post-processor"),
        ];
        given.into_iter().find_map(|(is_given, name)| is_given.then_some(name))
    }
}

pub(super) fn run(args: &Args, context: &Context) -> Result<(), CliError> {
    let (source, destination) = (args.source.display(), &args.destination);
    if is_same(&args.source, destination) {
        return Err(CliError::usage(format_args!(
            "convert: {source} and {} are one folder; another folder is expected",
            destination.display()
        )));
    }
    ContainerWriter::check(destination)?;
    let model = OpenArgs::default().open_whole(&args.source, context)?;
    let given = args.names.read()?;
    let change = &args.change;
    let keep_labels = match &change.keep_labels {
        None => None,
        Some(path) => {
            let own = model.dictionary()?;
            let names = given.as_ref().or(own.as_ref());
            Some(read_label_set(path, model.describe().n_labels, names, UnknownLabels::Refuse)?.0)
        }
    };
    let changes = Changes {
        precision: args.precision,
        prune_below: change.prune_below,
        without_wide: change.wide.is_some(),
        n_trees: change.trees.map(|n| n as usize),
        keep_labels,
        post: change.post_processor,
        label_names: given.as_ref().map(|names| LabelNames::names(names).to_vec()),
    };
    let changed = context.on_threads(|| model.change(&changes)).map_err(|e| change_error(args, &e))?;
    if changed.drops_index() {
        context.warn(format_args!("{source}: the index of its labels is of other weights and is left out"));
    }
    if changed.drops_calibration() {
        context.warn(format_args!("{source}: its calibration is of other scores and is left out"));
    }
    let before = model.describe().n_bytes;
    changed.save(destination)?;
    let after = OpenArgs::default().open_whole(destination, context)?.describe().n_bytes;
    context.note(format_args!(
        "convert: {}: {}, from {} of {source}",
        destination.display(),
        format_bytes(after),
        format_bytes(before)
    ));
    Ok(())
}

/// What was asked for does not fit the model; options are named where they are to blame.
fn change_error(args: &Args, error: &ChangeError) -> CliError {
    match (error, args.names.path()) {
        (ChangeError::Kind { path, kind, option, expected }, _) => CliError::usage(format_args!(
            "--{option}: {} is a model of kind {kind:?}; expected {expected}",
            path.display()
        )),
        (ChangeError::Names { .. }, Some(path)) => CliError::input(path, error),
        _ => CliError::usage(chain(error)),
    }
}
