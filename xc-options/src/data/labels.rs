//! Files about labels: names, and sets of ids.

use super::read_side_file;
use std::path::{Path, PathBuf};
use xc_data::{
    Format, HeaderRule, LabelNames, LabelStrings, NameColumn, ReadErrorKind, ReadOptions, UnknownLabels,
    read_label_names, read_label_names_field,
};
use xc_train::fit::FitError;

/// Where names of labels are.
#[derive(Clone, Debug, Default)]
pub struct NamesFile {
    /// Names of the labels, one per line in the order of their ids, such as labels.txt of a model.
    pub path: Option<PathBuf>,
    /// Which of the columns, separated by tabs, holds them, from 0.
    pub column: usize,
    /// Field that holds them, if the file has a JSON object per line.
    pub field: Option<String>,
}

impl NamesFile {
    /// The file, where one is given.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Reads the names, where a file is given.
    pub fn read(&self) -> Result<Option<LabelNames>, FitError> {
        let column = NameColumn::At(self.column);
        let read = |path| match &self.field {
            Some(field) => read_label_names_field(path, field),
            None => read_label_names(path, column),
        };
        Ok(self.path().map(read).transpose()?)
    }

    /// Refuses names that are fewer or more than the labels.
    pub fn check(&self, names: Option<&LabelNames>, n_labels: usize) -> Result<(), FitError> {
        match (names, self.path()) {
            (Some(names), Some(path)) if names.len() != n_labels => Err(FitError::usage(format_args!(
                "{}: {} names; expected one for each of {n_labels} labels",
                path.display(),
                names.len()
            ))),
            _ => Ok(()),
        }
    }
}

/// The format of a file that is read for its labels alone, which may be lists of ids without
/// anything else.
pub fn label_format(path: &Path, options: &ReadOptions) -> Result<(Format, HeaderRule), FitError> {
    let options = options.clone().of_any_format();
    match Format::detect(path, &options) {
        Ok(format) => Ok((format, HeaderRule::Detect)),
        // Lists of ids alone are XC text without header and features.
        Err(e) if matches!(e.kind(), ReadErrorKind::UnknownFormat) => Ok((Format::Xc, HeaderRule::Absent)),
        Err(e) => Err(e.into()),
    }
}

/// How strings name labels for a model with these label names: without names they are ids, and nothing else.
pub fn strings_for(names: Option<&LabelNames>) -> LabelStrings {
    if names.is_some() { LabelStrings::Names } else { LabelStrings::Ids }
}

/// The label that a word means: by name where the model knows some, else by id. A name may stand in quotes, as a JSON
/// string; a number that is the id of one label and the name of another has to.
///
/// # Errors
/// Such a number without quotes.
pub fn label_of(line: &str, n_labels: usize, names: Option<&LabelNames>) -> Result<Option<u32>, String> {
    let word = line.trim();
    let quoted = || serde_json::from_str::<String>(line).ok();
    let named = |names: &LabelNames| names.id(line).or_else(|| names.id(word)).or_else(|| names.id(&quoted()?));
    match (names.and_then(named), id_below(word, n_labels)) {
        (Some(name), Some(id)) if name != id => Err(format!(
            "{id} is the id of a label and the name of label {name}; expected the id {name} for the latter, or its \
             name in quotes"
        )),
        (name, id) => Ok(name.or(id)),
    }
}

/// A set of labels ([`label_of`]), separated by line breaks; ascending and unique. With [`UnknownLabels::Drop`] also the
/// number of lines of labels that are not there, which are left out.
///
/// # Errors
/// A file that cannot be read, without a label, or with one that is not there.
pub fn read_label_set(
    path: &Path,
    n_labels: usize,
    names: Option<&LabelNames>,
    unknown: UnknownLabels,
) -> Result<(Vec<u32>, usize), FitError> {
    let expected = if names.is_some() { "a label name or an id" } else { "a label id" };
    read_set(path, n_labels, ("label", expected), unknown, |line| label_of(line, n_labels, names))
}

fn id_below(word: &str, n: usize) -> Option<u32> {
    word.parse::<u32>().ok().filter(|&id| (id as usize) < n)
}

/// A set of rows: their numbers, separated by line breaks; ascending and unique.
pub fn read_rows(path: &Path, n_rows: usize) -> Result<Vec<u32>, FitError> {
    let of_line = |line: &str| Ok(id_below(line.trim(), n_rows));
    Ok(read_set(path, n_rows, ("row", "the number of a row"), UnknownLabels::Refuse, of_line)?.0)
}

fn read_set(
    path: &Path,
    n: usize,
    (what, expected): (&str, &str),
    unknown: UnknownLabels,
    read: impl Fn(&str) -> Result<Option<u32>, String>,
) -> Result<(Vec<u32>, usize), FitError> {
    let (mut ids, mut n_unknown) = (Vec::new(), 0);
    for (at, line) in read_side_file(path)?.lines().enumerate() {
        let word = line.trim();
        if word.is_empty() {
            continue;
        }
        let (path, line_no) = (path.display(), at + 1);
        let id = read(line).map_err(|why| FitError::usage(format_args!("{path}: line {line_no}: {why}")))?;
        let Some(id) = id else {
            if unknown == UnknownLabels::Drop {
                n_unknown += 1;
                continue;
            }
            return Err(FitError::usage(format_args!(
                "{path}: line {line_no}: got {:?}, expected {expected} below {n}",
                shortened(word)
            )));
        };
        ids.push(id);
    }
    if ids.is_empty() && n_unknown > 0 {
        let path = path.display();
        return Err(FitError::usage(format_args!("{path}: none of its {n_unknown} lines is {expected} below {n}")));
    }
    if ids.is_empty() {
        return Err(FitError::usage(format_args!("{}: no {what}; one a line is expected", path.display())));
    }
    ids.sort_unstable();
    ids.dedup();
    Ok((ids, n_unknown))
}

/// One number a line (weights, costs), finite and as `fits` says; `which` are those.
pub fn read_numbers(path: &Path, which: &str, fits: impl Fn(f32) -> bool) -> Result<Vec<f32>, FitError> {
    let parse = |(at, line): (usize, &str)| {
        let number = line.trim().parse::<f32>().ok().filter(|&number| number.is_finite() && fits(number));
        number.ok_or_else(|| {
            let (path, at, got) = (path.display(), at + 1, shortened(line));
            FitError::usage(format_args!("{path}: line {at}: got {got:?}, expected one number {which}"))
        })
    };
    read_side_file(path)?.lines().enumerate().map(parse).collect()
}

/// The beginning of a text that nobody wants to read whole.
fn shortened(text: &str) -> String {
    const LONGEST: usize = 40;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        file
    }

    fn set(path: &Path, n: usize, names: Option<&LabelNames>) -> Result<Vec<u32>, FitError> {
        read_label_set(path, n, names, UnknownLabels::Refuse).map(|(labels, _)| labels)
    }

    #[test]
    fn numbers_that_do_not_fit_are_named_by_file_and_line() {
        let read = |text: &str| {
            let file = file(text);
            let outcome = read_numbers(file.path(), "of 0 or more", |w| w >= 0.0);
            outcome.map_err(|e| e.to_string().replace(&file.path().display().to_string(), "w"))
        };
        assert_eq!(read("1\n0.5\n"), Ok(vec![1.0, 0.5]));
        for (text, got) in [("1\n-1\n", "-1"), ("0\nNaN\n", "NaN"), ("2\ninf\n", "inf"), ("0\nx\n", "x")] {
            assert_eq!(read(text).unwrap_err(), format!("w: line 2: got {got:?}, expected one number of 0 or more"));
        }
        assert!(read(&"x".repeat(100_000)).unwrap_err().len() < 200);
        assert!(set(file(&"7".repeat(100_000)).path(), 3, None).unwrap_err().to_string().len() < 200);
    }

    #[test]
    fn a_label_set_takes_ids_and_names() {
        let names = LabelNames::try_new(vec!["cat".into(), "7".into(), "big dog".into()]).unwrap();
        assert_eq!(set(file("2\n0\n\n2\n").path(), 3, None).unwrap(), [0, 2]);
        assert_eq!(set(file("big dog\n7\n").path(), 3, Some(&names)).unwrap(), [1, 2]);
        let error = set(file("0\n3\n").path(), 3, None).unwrap_err();
        assert!(error.to_string().ends_with("line 2: got \"3\", expected a label id below 3"), "{error:?}");
        assert!(set(file("\n").path(), 3, None).is_err());
        let known = |text: &str| read_label_set(file(text).path(), 3, Some(&names), UnknownLabels::Drop);
        assert_eq!(known("9\nbig dog\nfox\n").unwrap(), (vec![2], 2));
        assert!(
            known("fox\n").unwrap_err().to_string().ends_with("none of its 1 lines is a label name or an id below 3")
        );
    }

    #[test]
    fn a_number_that_is_an_id_and_another_labels_name_is_refused_unless_it_says_which() {
        let names = LabelNames::try_new(vec!["1".into(), "0".into(), "2".into(), "9".into()]).unwrap();
        let read = |text: &str| set(file(text).path(), 4, Some(&names)).map_err(|e| e.to_string());
        assert_eq!(read("2\n9\n"), Ok(vec![2, 3]));
        assert_eq!(read("\"0\"\n3\n"), Ok(vec![1, 3]));
        for text in ["0\n", "2\n1\n"] {
            assert!(read(text).unwrap_err().contains("is the id of a label and the name of label"), "{text}");
        }
    }
}
