//! What is said of a file that holds too much or too little.

use std::path::Path;
use xc_data::{Format, Joined, LabelSeparator, ReadOptions, UnseenCount, first_fields};
use xc_hash::text::alike;
use xc_sparse::LabelRows;
use xc_train::fit::data::Dataset;
use xc_train::fit::{Context, FitError};

/// Says how many entries of rows were left out, if any were.
pub fn report_unseen(name: impl std::fmt::Display, unseen: Option<&UnseenCount>, context: &Context) {
    if let Some(unseen) = unseen.filter(|unseen| unseen.entries() > 0) {
        context.warn(format_args!(
            "{name}: features that the model was not trained on: {} entries in {} rows, left out (--unseen refuse)",
            unseen.entries(),
            unseen.rows()
        ));
    }
}

/// Refuses a file in which no instance has a label, and says where labels are looked for; `option`
/// names a file with labels alone, if there is such an option.
pub fn require_labels(
    path: &Path,
    labels: &LabelRows,
    format: Option<Format>,
    options: &ReadOptions,
    option: Option<&str>,
) -> Result<(), FitError> {
    if labels.nnz() > 0 {
        return Ok(());
    }
    let hint = match (format, option) {
        (Some(Format::Jsonl | Format::Csv | Format::Tsv), _) => {
            let field = match options.form.indicators() {
                [] => options.form.labels().to_owned(),
                indicators => indicators.join(","),
            };
            let found = match format {
                Some(Format::Jsonl) => first_fields(path, options).unwrap_or_default(),
                _ => Vec::new(),
            };
            let found = found.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
            let found = if found.is_empty() { found } else { format!("; the first object has {found}") };
            format!(" (in the field {field:?}{found}; --label-field names another)")
        }
        (_, Some(option)) => format!(" (a file without labels in it takes them from --{option})"),
        _ => String::new(),
    };
    Err(FitError::usage(format_args!(
        "{}: no instance has a label; at least one label is expected{hint}",
        path.display()
    )))
}

/// Says that rows of two files were found by their ids, where their order or number is another.
pub fn report_joined(path: &Path, of: &Path, joined: Joined, context: &Context) {
    let (path, of) = (path.display(), of.display());
    if joined.is_reordered {
        context.note(format_args!("{path}: rows are in another order than in {of}, and were found by their ids"));
    }
    if joined.left_out > 0 {
        context.note(format_args!("{path}: {} rows without an instance in {of} are left out", joined.left_out));
    }
}

/// Says that entries of a matrix of labels are more than 0 and 1: each is a label.
pub fn report_graded(path: &Path, n_graded: u64, context: &Context) {
    if n_graded > 0 {
        context.note(format_args!(
            "{}: {n_graded} entries are other than 0 and 1; each above 0 is a label",
            path.display()
        ));
    }
}

/// Says which names of labels look alike: their instances are divided between labels.
pub fn report_alike(path: &Path, names: Option<&[String]>, context: &Context) {
    let found = alike(names.unwrap_or_default().iter().map(String::as_str));
    if found.n > 0 {
        let examples: Vec<String> =
            found.examples.iter().map(|[one, other]| format!("{one:?} and {other:?}")).collect();
        context.warn(format_args!(
            "{}: {} names of labels differ from another only in blanks at their ends, case, Unicode form or a fraction of 0: {}",
            path.display(),
            found.n,
            examples.join(", ")
        ));
    }
}

/// Says that labels seem to be separated by something else than what was stated: no instance has two, and most names have the
/// other in them.
pub fn report_separator(path: &Path, options: &ReadOptions, data: &Dataset, context: &Context) {
    let Some(LabelSeparator::Text(stated)) = &options.form.label_separator else { return };
    let names = data.names.as_deref().unwrap_or_default();
    if names.is_empty() || data.labels.iter().any(|labels| labels.len() > 1) {
        return;
    }
    let others = [";", "|", ","].into_iter().filter(|other| *other != stated);
    let count = |other: &&str| names.iter().filter(|name| name.contains(*other)).count();
    if let Some(other) = others.max_by_key(count).filter(|other| 2 * count(other) > names.len()) {
        context.warn(format_args!(
            "{}: no field of labels has {stated:?} in it, and most have {other:?}: --label-separator {other:?} is meant?",
            path.display()
        ));
    }
}
