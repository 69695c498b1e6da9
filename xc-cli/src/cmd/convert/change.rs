//! `xc convert --from xc --to xc`: a trained model, changed without training.

use super::Args;
use crate::bytes::format_bytes;
use crate::context::Context;
use crate::data::read_label_set;
use crate::error::{CliError, chain};
use crate::model::OpenArgs;
use crate::settings::{Chosen, OfTable};
use crate::written::is_same;
use std::path::PathBuf;
use xc_data::{LabelNames, UnknownLabels};
use xc_model::{ChangeError, Changes};
use xc_options::settings::{Table, change as changes};
use xc_store::ContainerWriter;

/// What can be changed about a trained model.
#[derive(clap::Args, Debug)]
pub(super) struct ChangeArgs {
    #[command(flatten)]
    settings: Chosen<OfChange>,
    /// Predict only these labels: ids or names, one per line. Labels keep their ids and names; the clusters and weights
    /// of the others are dropped (trees)
    #[arg(long, value_name = "FILE", help_heading = changes::TABLE.rows[1].heading)]
    keep_labels: Option<PathBuf>,
}

/// What of its weights and scores.
#[derive(Clone, Copy, Debug)]
struct OfChange;

impl OfTable for OfChange {
    const TABLE: Table = changes::TABLE;
}

impl ChangeArgs {
    /// What was chosen of weights and scores.
    pub(super) fn params(&self) -> Result<Changes, CliError> {
        Ok(changes::params(&self.settings.choices)?)
    }

    /// The first option that was given, of those that a model of another system does not have.
    pub(super) fn given(&self) -> Option<&'static str> {
        let named = self.settings.choices.iter().map(|(row, _)| row.name).filter(|name| *name != changes::PRECISION);
        named.chain(self.keep_labels.as_ref().map(|_| "keep-labels")).next()
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
        keep_labels,
        label_names: given.as_ref().map(|names| LabelNames::names(names).to_vec()),
        ..change.params()?
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
