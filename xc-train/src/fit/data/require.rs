//! What is said of a file that holds too much or too little.

use crate::fit::{Context, FitError};
use std::path::Path;
use xc_sparse::LabelRows;
use xc_sparse::io::{Format, ReadOptions, UnseenCount, first_fields};

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
            let field = match &options.fields.indicators[..] {
                [] => options.fields.labels.clone(),
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
