//! The small files beside truth and predictions: weights, pairs to ignore, rows to leave out.

use crate::data::read_side_file;
use crate::error::CliError;
use std::fmt::Display;
use std::path::Path;
use std::str::FromStr;
use xc_metrics::{PairFilter, PairFilterError};

/// One weight a line, one line an instance.
pub(super) fn read_weights(path: &Path, n_instances: usize) -> Result<Vec<f64>, CliError> {
    let mut weights = Vec::new();
    for (line, words) in lines(path)?.iter().map(String::as_str).enumerate() {
        let weight: f64 = one(path, line, words, "a weight")?;
        if !(weight.is_finite() && weight >= 0.0) {
            return Err(bad(path, line, format_args!("got {words:?}, expected a finite weight of at least 0")));
        }
        weights.push(weight);
    }
    if weights.len() != n_instances {
        let got = weights.len();
        return Err(CliError::usage(format_args!(
            "{}: {got} weights, expected {n_instances}: one a line for each instance of the truth",
            path.display()
        )));
    }
    Ok(weights)
}

/// `instance label` a line, both from 0.
pub(super) fn read_pairs(path: &Path, n_instances: usize) -> Result<PairFilter, CliError> {
    let (mut pairs, mut places) = (Vec::new(), Vec::new());
    for (line, text) in lines(path)?.iter().enumerate() {
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        match words[..] {
            [] => continue,
            [instance, label] => {
                pairs.push((one(path, line, instance, "an instance")?, one(path, line, label, "a label id")?));
                places.push(line);
            }
            _ => return Err(bad(path, line, format_args!("got {text:?}, expected an instance and a label id"))),
        }
    }
    PairFilter::try_new(pairs, n_instances).map_err(|error| match error {
        PairFilterError::InstanceOutOfRange { pair, instance, n_instances } => {
            bad(path, places[pair], out_of_range(instance, n_instances))
        }
        other => CliError::input(path, &other),
    })
}

/// One instance a line, from 0.
pub(super) fn read_rows(path: &Path, n_instances: usize) -> Result<Vec<usize>, CliError> {
    let mut rows = Vec::new();
    for (line, text) in lines(path)?.iter().enumerate().filter(|(_, text)| !text.trim().is_empty()) {
        let row: usize = one(path, line, text, "an instance")?;
        if row >= n_instances {
            return Err(bad(path, line, out_of_range(row, n_instances)));
        }
        rows.push(row);
    }
    Ok(rows)
}

fn out_of_range(instance: usize, n_instances: usize) -> String {
    format!("instance {instance} is out of range; the truth has {n_instances}, counted from 0")
}

fn lines(path: &Path) -> Result<Vec<String>, CliError> {
    Ok(read_side_file(path)?.lines().map(str::to_owned).collect())
}

/// `line` counts from 0.
fn bad(path: &Path, line: usize, what: impl Display) -> CliError {
    CliError::usage(format_args!("{}: line {}: {what}", path.display(), line + 1))
}

fn one<T: FromStr>(path: &Path, line: usize, word: &str, expected: &str) -> Result<T, CliError> {
    let trimmed = word.trim();
    let value = trimmed.parse().ok().filter(|_| !trimmed.starts_with('+'));
    value.ok_or_else(|| bad(path, line, format_args!("got {trimmed:?}, expected {expected}")))
}
