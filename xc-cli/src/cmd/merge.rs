//! `xc merge`: parts of a model that were trained apart become one model.

use crate::bytes::format_bytes;
use crate::context::Context;
use crate::data::NamesArgs;
use crate::error::{CliError, chain};
use crate::model;
use serde_json::json;
use std::path::PathBuf;
use xc_hash::universal::FamilyParamsError;
use xc_mach::AssignError;
use xc_sparse::store::ContainerWriter;
use xc_train::calibrate::Calibration;
use xc_train::fit::{Extras, save_created};
use xc_train::model::{InputForm, MergeError, Merged, TrainingRows, merge, read_pipeline, trained_alike};

/// Merge repetitions of MACH models that were trained separately into one model
///
/// The parts must agree in seed, buckets, network, features and labels, and hold
/// different repetitions (`xc train mach --repetitions-range`). The result is byte for
/// byte the model that one training run of all repetitions gives.
///
/// With --labels, labels are added without training: they are scored by the buckets
/// that they fall into. The prime family of hash functions (--hash.family) has room up
/// to its prime, the others for any number.
///
/// Examples:
///   xc merge part1.model part2.model --output my.model
///   xc merge my.model --labels 120000 --output grown.model
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// The model folders
    #[arg(value_name = "DIR", required = true)]
    parts: Vec<PathBuf>,
    /// Folder of the merged model; an existing model is replaced when the new one is complete
    #[arg(long, value_name = "DIR")]
    output: PathBuf,
    /// Number of labels, at least that of the parts
    #[arg(long, value_name = "L")]
    labels: Option<usize>,
    #[command(flatten)]
    names: NamesArgs,
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<(), CliError> {
    ContainerWriter::check(&args.output)?;
    // A part that lacks a file is no part to merge.
    let parts = args.parts.iter().map(|path| model::open_container(path)).collect::<Result<Vec<_>, _>>()?;
    let trained = parts.iter().map(|part| trained_alike(part, &parts[0])).collect::<Vec<_>>();
    let rows = parts.iter().map(TrainingRows::read).collect::<Result<Option<Vec<_>>, _>>();
    let rows = rows.map_err(|e| CliError::usage(chain(&e)))?;
    let calibrated = parts.iter().map(Calibration::is_in).collect::<Vec<_>>();
    let merged = merge(parts).map_err(|e| refused(&e))?;
    for (path, _) in args.parts.iter().zip(trained).filter(|(_, alike)| !alike) {
        context.warn(format_args!(
            "{} and {} were trained with different settings; those of the first are noted in the result",
            args.parts[0].display(),
            path.display()
        ));
    }
    for (path, _) in args.parts.iter().zip(calibrated).filter(|(_, calibrated)| *calibrated) {
        context.warn(format_args!("{}: its calibration is of other scores and is left out", path.display()));
    }
    let n_labels = args.labels.unwrap_or(merged.n_labels());
    let names = names(args, &merged, n_labels)?;
    merged.check_labels(n_labels).map_err(|e| no_room(n_labels, &e))?;

    let first = merged.first();
    let maker = read_pipeline(first).map_err(|e| CliError::usage(chain(&e)))?;
    let training = first.parameters().get("training").cloned();
    // Where one part does not know its rows, the whole does not either.
    let rows = rows.map(|rows| TrainingRows::union(&rows, n_labels));
    let input = InputForm::read(first).map_err(|e| CliError::usage(chain(&e)))?;
    let (maker, names, rows) = (maker.as_ref(), names.as_deref(), rows.as_ref());
    let extras = Extras { maker, names, input: Some(&input), training, rows };
    let numbers = merged.numbers();
    let task = context.task("repetitions merged", numbers.len() as u64);
    save_created(
        || merged.create(&args.output, n_labels),
        extras,
        |writer| {
            for at in 0..numbers.len() {
                context.check_interrupt()?;
                merged.write(at, writer).map_err(|e| refused(&e))?;
                task.advance(1);
            }
            Ok::<(), CliError>(())
        },
    )?;
    drop(task);
    let bytes = model::open_container(&args.output)?.n_bytes();
    if context.json {
        let report = json!({ "repetitions": numbers, "labels": n_labels, "model_bytes": bytes });
        return crate::output::print(&report.to_string());
    }
    let (output, n) = (args.output.display(), numbers.len());
    context.note(format_args!("merge: saved {output}: {n} repetitions, {n_labels} labels, {}", format_bytes(bytes)));
    Ok(())
}

/// Labels that a model cannot have, with the option of its training that would have made room.
fn no_room(n_labels: usize, error: &MergeError) -> CliError {
    let full = match error {
        MergeError::Model(error) => {
            matches!(error.downcast_ref(), Some(AssignError::Hash(FamilyParamsError::CannotGrow { .. })))
        }
        _ => false,
    };
    let advice = if full { " (xc train mach --hash.family multiply-shift makes models that can)" } else { "" };
    CliError::usage(format_args!("--labels {n_labels}: {}{advice}", chain(error)))
}

/// Parts that do not belong together are what the user named; the rest is the output's.
fn refused(error: &MergeError) -> CliError {
    match error {
        MergeError::Write(error) => error.into(),
        _ => CliError::usage(chain(error)),
    }
}

fn names(args: &Args, merged: &Merged, n_labels: usize) -> Result<Option<Vec<String>>, CliError> {
    let given = args.names.read()?;
    if given.is_some() && args.labels.is_none() {
        return Err(CliError::usage("--label-names: expected --labels too; a model keeps the names that it has"));
    }
    args.names.check(given.as_ref(), n_labels)?;
    let names = match given {
        Some(names) => Some(names.into_names()),
        None => merged.first().labels().map_err(|e| CliError::usage(chain(&e)))?,
    };
    match &names {
        Some(names) if names.len() != n_labels => Err(CliError::usage(format_args!(
            "{} label names for {n_labels} labels; expected --label-names with a name for each",
            names.len()
        ))),
        _ => Ok(names),
    }
}
