//! Files about labels: names, and sets of ids.

use crate::error::CliError;
use std::path::Path;
use xc_sparse::io::{Format, HeaderRule, LabelNames, ReadErrorKind};

fn read_lines(path: &Path) -> Result<Vec<String>, CliError> {
    let bytes = std::fs::read(path).map_err(|e| CliError::input(path, &e))?;
    let text = match std::str::from_utf8(&bytes) {
        Ok(text) => text,
        Err(e) => {
            let line = 1 + bytes[..e.valid_up_to()].iter().filter(|&&b| b == b'\n').count();
            return Err(CliError::usage(format_args!("{}: line {line}: not UTF-8", path.display())));
        }
    };
    Ok(text.lines().map(str::to_owned).collect())
}

/// The format of a file that is read for its labels alone, which may be lists of ids without
/// anything else.
pub(crate) fn label_format(path: &Path) -> Result<(Format, HeaderRule), CliError> {
    match Format::detect(path) {
        Ok(format) => Ok((format, HeaderRule::Detect)),
        // Lists of ids alone are XC text without header and features.
        Err(e) if matches!(e.kind(), ReadErrorKind::UnknownFormat) => Ok((Format::Xc, HeaderRule::Absent)),
        Err(e) => Err(e.into()),
    }
}

/// A set of labels: ids, or names where the model knows some, separated by line breaks; ascending
/// and unique.
pub(crate) fn read_label_set(path: &Path, n_labels: usize, names: Option<&LabelNames>) -> Result<Vec<u32>, CliError> {
    let expected = if names.is_some() { "a label name or an id" } else { "a label id" };
    let name = |line: &str| names.and_then(|names| names.id(line).or_else(|| names.id(line.trim())));
    read_set(path, n_labels, "label", expected, name)
}

/// A set of rows: their numbers, separated by line breaks; ascending and unique.
pub(crate) fn read_rows(path: &Path, n_rows: usize) -> Result<Vec<u32>, CliError> {
    read_set(path, n_rows, "row", "the number of a row", |_| None)
}

fn read_set(
    path: &Path,
    n: usize,
    what: &str,
    expected: &str,
    named: impl Fn(&str) -> Option<u32>,
) -> Result<Vec<u32>, CliError> {
    let mut ids = Vec::new();
    for (at, line) in read_lines(path)?.iter().enumerate() {
        let word = line.trim();
        if word.is_empty() {
            continue;
        }
        let id = named(line).or_else(|| word.parse::<u32>().ok().filter(|&id| (id as usize) < n));
        let Some(id) = id else {
            let (path, line) = (path.display(), at + 1);
            return Err(CliError::usage(format_args!(
                "{path}: line {line}: got {word:?}, expected {expected} below {n}"
            )));
        };
        ids.push(id);
    }
    if ids.is_empty() {
        return Err(CliError::usage(format_args!("{}: no {what}; one a line is expected", path.display())));
    }
    ids.sort_unstable();
    ids.dedup();
    Ok(ids)
}

/// One number a line (weights, costs).
pub(crate) fn read_numbers(path: &Path) -> Result<Vec<f32>, CliError> {
    let parse = |(at, line): (usize, &String)| {
        line.trim().parse::<f32>().map_err(|_| {
            CliError::usage(format_args!("{}: line {}: got {line:?}, expected one number", path.display(), at + 1))
        })
    };
    read_lines(path)?.iter().enumerate().map(parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        file
    }

    #[test]
    fn a_label_set_takes_ids_and_names() {
        let names = LabelNames::try_new(vec!["cat".into(), "7".into(), "big dog".into()]).unwrap();
        assert_eq!(read_label_set(file("2\n0\n\n2\n").path(), 3, None).unwrap(), [0, 2]);
        assert_eq!(read_label_set(file("big dog\n7\n").path(), 3, Some(&names)).unwrap(), [1, 2]);
        let error = read_label_set(file("0\n3\n").path(), 3, None).unwrap_err();
        assert!(error.line().unwrap().ends_with("line 2: got \"3\", expected a label id below 3"), "{error:?}");
        assert!(read_label_set(file("\n").path(), 3, None).is_err());
    }
}
