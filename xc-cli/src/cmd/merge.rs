//! `xc merge`: repetitions of MACH models that were trained apart become one model.

use crate::context::{Context, format_bytes};
use crate::error::{CliError, chain};
use crate::model::{self, Extras, open_error};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use xc_sparse::io::{NameColumn, read_label_names};
use xc_sparse::store::ContainerWriter;
use xc_train::mach::MachContainer;
use xc_train::model::{PIPELINE_PREFIX, read_pipeline};

/// Put repetitions of MACH models that were trained apart into one model
///
/// The parts must agree in seed, buckets, network, features and labels, and hold
/// different repetitions (`xc train mach --repetitions-range`). The result is, to the
/// byte, the model that one training of all repetitions gives.
///
/// With --labels, labels are added without training: they are scored by the buckets
/// that they fall into. The prime family has room up to its prime, the others for
/// any number.
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
    /// Names of all labels, where labels are added to a model whose labels have names
    #[arg(long, value_name = "FILE", requires = "labels")]
    label_names: Option<PathBuf>,
}

pub(crate) fn run(args: &Args, context: &Context) -> Result<(), CliError> {
    ContainerWriter::check(&args.output).map_err(|e| model::write_error(&e))?;
    let parts = open(&args.parts)?;
    let (first, name) = (&parts[0], &args.parts[0]);
    for (part, path) in parts.iter().zip(&args.parts).skip(1) {
        same(name, first, path, part, context)?;
    }
    // Where each repetition lies.
    let mut places: Vec<(u32, usize)> = Vec::new();
    for (at, part) in parts.iter().enumerate() {
        for &number in part.numbers() {
            if let Some(&(_, other)) = places.iter().find(|&&(n, _)| n == number) {
                return Err(CliError::usage(format_args!(
                    "{}: repetition {number} is also in {}; parts with different repetitions are wanted \
                     (--repetitions-range)",
                    args.parts[at].display(),
                    args.parts[other].display()
                )));
            }
            places.push((number, at));
        }
    }
    places.sort_unstable();
    let numbers: Vec<u32> = places.iter().map(|&(number, _)| number).collect();
    let n_labels = args.labels.unwrap_or(first.n_labels());
    let names = names(args, first, n_labels)?;
    let params = first.params();
    // More labels than the family has room for are refused here, fewer than before as well.
    params
        .assignment(first.n_labels(), &numbers)
        .and_then(|assignment| Ok(assignment.grown_to(n_labels)?))
        .map_err(|e| CliError::usage(format_args!("--labels {n_labels}: {}", chain(&e))))?;

    let maker = read_pipeline(first.container()).map_err(|e| open_error(&e))?;
    let training = first.container().parameters().get("training").cloned();
    let extras = Extras { maker: maker.as_ref(), names: names.as_deref(), training };
    let task = context.task("repetitions merged", numbers.len() as u64);
    model::save_created(
        || params.create(&args.output, first.n_features(), n_labels, &numbers),
        extras,
        |writer| {
            for &(number, at) in &places {
                context.check_interrupt()?;
                let repetition = parts[at].repetition(number).map_err(|e| CliError::usage(chain(&e)))?;
                repetition.write(writer).map_err(|e| model::write_error(&e))?;
                task.advance(1);
            }
            Ok(())
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

fn open(paths: &[PathBuf]) -> Result<Vec<MachContainer>, CliError> {
    let open = |path: &PathBuf| {
        // A part that lacks a file is no part to merge.
        let part = MachContainer::of(model::open_container(path)?).map_err(|e| CliError::usage(chain(&e)))?;
        let found = part.container().verify().map_err(|e| CliError::usage(chain(&e)))?;
        match found.first() {
            Some(mismatch) => Err(CliError::usage(format_args!("{mismatch}: damaged since it was saved"))),
            None => Ok(part),
        }
    };
    paths.iter().map(open).collect()
}

/// Refuses parts that do not belong together, naming what differs.
fn same(
    path: &Path,
    first: &MachContainer,
    other_path: &Path,
    other: &MachContainer,
    context: &Context,
) -> Result<(), CliError> {
    let (container, other_container) = (first.container(), other.container());
    let (mine, theirs) = (container.parameters(), other_container.parameters());
    for key in ["mach", "n_features", "n_labels"] {
        if let Some((name, a, b)) = difference(key, &mine[key], &theirs[key]) {
            let (path, other_path) = (path.display(), other_path.display());
            return Err(CliError::usage(format_args!("{other_path}: {name} is {b}, wanted {a} as in {path}")));
        }
    }
    let hashes = |container: &xc_sparse::store::Container| {
        let arrays = container.arrays().filter(|(name, _)| name.starts_with(PIPELINE_PREFIX));
        arrays.map(|(name, entry)| (name.to_owned(), entry.xxh3.clone())).collect::<Vec<_>>()
    };
    let labels = |container: &xc_sparse::store::Container| container.labels().map_err(|e| CliError::usage(chain(&e)));
    let what = if container.pipeline() != other_container.pipeline() || hashes(container) != hashes(other_container) {
        "makes its features in another way than"
    } else if labels(container)? != labels(other_container)? {
        "names its labels in another way than"
    } else {
        if mine.get("training") != theirs.get("training") {
            context.warn(format_args!(
                "{} and {} were trained with different settings; those of the first are noted in the result",
                path.display(),
                other_path.display()
            ));
        }
        return Ok(());
    };
    Err(CliError::usage(format_args!("{}: {what} {}", other_path.display(), path.display())))
}

/// The first value in which two JSON values differ, with its dotted name.
fn difference(name: &str, a: &Value, b: &Value) -> Option<(String, Value, Value)> {
    if let (Value::Object(left), Value::Object(right)) = (a, b) {
        let keys = left.keys().chain(right.keys());
        let null = Value::Null;
        return keys
            .filter_map(|key| {
                let at = |map: &serde_json::Map<String, Value>| map.get(key).unwrap_or(&null).clone();
                difference(&format!("{name}.{key}"), &at(left), &at(right))
            })
            .next();
    }
    (a != b).then(|| (name.to_owned(), a.clone(), b.clone()))
}

fn names(args: &Args, first: &MachContainer, n_labels: usize) -> Result<Option<Vec<String>>, CliError> {
    let names = match &args.label_names {
        Some(path) => Some(read_label_names(path, NameColumn::First)?.names().to_vec()),
        None => first.container().labels().map_err(|e| CliError::usage(chain(&e)))?,
    };
    match &names {
        Some(names) if names.len() != n_labels => Err(CliError::usage(format_args!(
            "{} label names for {n_labels} labels; --label-names with a name for each is wanted",
            names.len()
        ))),
        _ => Ok(names),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_named() {
        let (a, b) = (json!({"x": {"seed": 1, "y": [1]}}), json!({"x": {"seed": 1, "y": [2]}}));
        assert_eq!(difference("mach", &a, &a), None);
        assert_eq!(difference("mach", &a, &b), Some(("mach.x.y".into(), json!([1]), json!([2]))));
        assert_eq!(difference("n", &json!(3), &Value::Null), Some(("n".into(), json!(3), Value::Null)));
        assert_eq!(difference("m", &json!({}), &json!({"z": 1})), Some(("m.z".into(), Value::Null, json!(1))));
    }
}
