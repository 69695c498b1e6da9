//! Parts of a model that were trained apart, as one model: repetitions of MACH, or chunks of trees.

use std::path::{Path, PathBuf};
use xc_data::LabelNames;
use xc_hash::universal::UniversalParamsError;
use xc_mach::AssignError;
use xc_model::Extras;
use xc_model::calibrate::Calibration;
use xc_model::message::chain;
use xc_model::{TrainingRows, read_form, read_pipeline};
use xc_store::{Container, ContainerWriter};
use xc_train::fit::{Context, FitError, open_container, save_created, save_trees};
use xc_train::merge::{MergeError, MergedParts as Parts, merge as joined, merge_trees as joined_trees, trained_alike};
use xc_tree::{PART_KIND, TreeParams};

/// What came out of a merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merged {
    /// Numbers of the repetitions of a MACH model.
    pub repetitions: Vec<u32>,
    /// Number of trees of a tree model.
    pub trees: usize,
    /// Number of labels.
    pub n_labels: usize,
    /// Bytes of the model.
    pub n_bytes: u64,
}

/// Merges parts of a model and saves the result in the folder `output`: repetitions of a MACH model, or all parts of
/// trees ([`Place::part`](xc_train::fit::Place::part)), in any order. With `n_labels`, labels are added without
/// training (MACH); `names` are then those of all.
///
/// # Errors
/// Folders that are no parts of one model, labels for which there is no room, names that are not one a label, a folder
/// that cannot be written, or an observer that cancels.
pub fn merge(
    parts: &[PathBuf],
    output: impl AsRef<Path>,
    n_labels: Option<usize>,
    names: Option<LabelNames>,
    context: &Context<'_>,
) -> Result<Merged, FitError> {
    let output = output.as_ref();
    ContainerWriter::check(output)?;
    // A part that lacks a file is no part to merge.
    let opened = parts.iter().map(|path| open_container(path)).collect::<Result<Vec<_>, _>>()?;
    let Some(first) = opened.first() else { return Err(FitError::usage("merge: at least one part is expected")) };
    if first.kind() == PART_KIND {
        return merge_trees(opened, output, n_labels.is_some() || names.is_some(), context);
    }
    let trained: Vec<bool> = opened.iter().map(|part| trained_alike(part, first)).collect();
    let rows = opened.iter().map(TrainingRows::read).collect::<Result<Option<Vec<_>>, _>>();
    let rows = rows.map_err(|e| FitError::usage(chain(&e)))?;
    let calibrated: Vec<bool> = opened.iter().map(Calibration::is_in).collect();
    let merged = joined(opened).map_err(|e| refused(&e))?;
    for (path, _) in parts.iter().zip(trained).filter(|(_, alike)| !alike) {
        context.warn(format_args!(
            "{} and {} were trained with different settings; those of the first are noted in the result",
            parts[0].display(),
            path.display()
        ));
    }
    for (path, _) in parts.iter().zip(calibrated).filter(|(_, calibrated)| *calibrated) {
        context.warn(format_args!("{}: its calibration is of other scores and is left out", path.display()));
    }
    let names = names_of(&merged, n_labels, names)?;
    let n_labels = n_labels.unwrap_or(merged.n_labels());
    merged.check_labels(n_labels).map_err(|e| no_room(n_labels, &e))?;

    let first = merged.first();
    let maker = read_pipeline(first).map_err(|e| FitError::usage(chain(&e)))?;
    let training = first.parameters().get("training").cloned();
    // Where one part does not know its rows, the whole does not either.
    let rows = rows.map(|rows| TrainingRows::union(&rows, n_labels));
    let input = read_form(first).map_err(|e| FitError::usage(chain(&e)))?;
    let (maker, names, rows) = (maker.as_ref(), names.as_deref(), rows.as_ref());
    let extras = Extras { maker, names, input: Some(&input), training, rows };
    let numbers = merged.numbers();
    let mut advance = context.observer.task("repetitions merged");
    save_created(
        || merged.create(output, n_labels),
        extras,
        |writer| {
            for at in 0..numbers.len() {
                context.check_interrupt()?;
                merged.write(at, writer).map_err(|e| refused(&e))?;
                advance(1);
            }
            Ok::<(), FitError>(())
        },
    )?;
    drop(advance);
    let n_bytes = open_container(output)?.n_bytes();
    Ok(Merged { repetitions: numbers.to_vec(), trees: 0, n_labels, n_bytes })
}

/// Merges all parts of trees.
fn merge_trees(
    parts: Vec<Container>,
    output: &Path,
    has_labels: bool,
    context: &Context<'_>,
) -> Result<Merged, FitError> {
    if has_labels {
        return Err(FitError::usage("--labels, --label-names: trees get no labels without training"));
    }
    let folder = parts[0].folder().to_owned();
    let trees = joined_trees(parts).map_err(|e| refused(&e))?;
    context.check_interrupt()?;
    // All parts agree in what belongs to the model.
    let first = open_container(&folder)?;
    let unreadable = |e: &dyn std::error::Error| FitError::usage(chain(e));
    let maker = read_pipeline(&first).map_err(|e| unreadable(&e))?;
    let names = first.labels().map_err(|e| unreadable(&e))?;
    let rows = TrainingRows::read(&first).map_err(|e| unreadable(&e))?;
    let input = read_form(&first).map_err(|e| unreadable(&e))?;
    let training = first.parameters().get("training").cloned();
    let params: TreeParams = first.parameter("training").map_err(|e| unreadable(&e))?;
    let n_labels = first.parameter("n_labels").map_err(|e| unreadable(&e))?;
    let (maker, names, rows) = (maker.as_ref(), names.as_deref(), rows.as_ref());
    let extras = Extras { maker, names, input: Some(&input), training, rows };
    let create = || ContainerWriter::create(output, xc_tree::KIND);
    save_trees(create, extras, &trees, &params, context)?;
    let n_bytes = open_container(output)?.n_bytes();
    Ok(Merged { repetitions: Vec::new(), trees: trees.n_trees(), n_labels, n_bytes })
}

/// Labels that a model cannot have, with the option of its training that would have made room.
fn no_room(n_labels: usize, error: &MergeError) -> FitError {
    let full = match error {
        MergeError::Model(error) => {
            matches!(error.downcast_ref(), Some(AssignError::Hash(UniversalParamsError::CannotGrow { .. })))
        }
        _ => false,
    };
    let advice = if full { " (xc train mach --hash.family multiply-shift makes models that can)" } else { "" };
    FitError::usage(format_args!("--labels {n_labels}: {}{advice}", chain(error)))
}

/// Parts that do not belong together are what the user named; the rest is the output's.
fn refused(error: &MergeError) -> FitError {
    match error {
        MergeError::Write(error) => error.into(),
        _ => FitError::usage(chain(error)),
    }
}

fn names_of(
    merged: &Parts,
    n_labels: Option<usize>,
    given: Option<LabelNames>,
) -> Result<Option<Vec<String>>, FitError> {
    if given.is_some() && n_labels.is_none() {
        return Err(FitError::usage("--label-names: expected --labels too; a model keeps the names that it has"));
    }
    let n_labels = n_labels.unwrap_or(merged.n_labels());
    let names = match given {
        Some(names) => Some(names.into_names()),
        None => merged.first().labels().map_err(|e| FitError::usage(chain(&e)))?,
    };
    match &names {
        Some(names) if names.len() != n_labels => Err(FitError::usage(format_args!(
            "{} label names for {n_labels} labels; expected --label-names with a name for each",
            names.len()
        ))),
        _ => Ok(names),
    }
}
