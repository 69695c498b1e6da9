//! Files of label names: one name per line, the line's number (from 0) is the label's id.

use super::error::{ReadError, ReadErrorKind, Snippet};
use super::fasttext::utf8_error;
use super::fields::quoted;
use super::ids::RowId;
use super::jsonl;
use super::label::{LabelNames, PRINTABLE};
use super::source::Source;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;
use xc_buffer::is_control;

/// Which part of a line is the name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NameColumn {
    /// The whole line, which then has no tab.
    #[default]
    Line,
    /// The column of this number, from 0, with columns separated by tabs (`name TAB count TAB text`).
    At(usize),
}

impl NameColumn {
    /// The text before the first tab; the whole line if there is no tab.
    pub const FIRST: Self = Self::At(0);
}

const MAX_NAME_BYTES: usize = 1 << 20;

/// Reads a file of label names. Where the name is in a later column and the first column holds the numbers 0 to n - 1 of the n
/// lines in any order, these are the labels' ids.
///
/// # Errors
/// An empty file, an empty name, a repeated name, one with a control character, a tab under
/// [`NameColumn::Line`], a line without the column, bytes that are not UTF-8; a JSON object in the first line, which
/// [`read_label_names_field`] reads.
pub fn read_label_names(path: impl AsRef<Path>, column: NameColumn) -> Result<LabelNames, ReadError> {
    let path = path.as_ref();
    read_names(path, MAX_NAME_BYTES, |text, line_no| {
        let malformed = |expected| Err(ReadErrorKind::Malformed { got: Snippet::new(text.as_bytes()), expected });
        if line_no == 1 && text.starts_with('{') {
            let object: BTreeMap<String, IgnoredAny> = serde_json::from_str(text).unwrap_or_default();
            if !object.is_empty() {
                return Err(ReadErrorKind::NameField { fields: quoted(object.keys()) });
            }
        }
        match column {
            NameColumn::At(column) => match text.split('\t').nth(column) {
                Some(name) => Ok((name.to_owned(), number(text.split('\t').next().filter(|_| column > 0)))),
                None => malformed("a column of label names: columns are separated by tabs"),
            },
            NameColumn::Line if text.contains('\t') => malformed("one label name per line, without a tab"),
            NameColumn::Line => Ok((text.to_owned(), None)),
        }
    })?
    .named(false)
}

/// A whole number as it is usually written.
fn number(text: Option<&str>) -> Option<u64> {
    text.filter(|text| text.bytes().all(|b| b.is_ascii_digit()) && (text.len() == 1 || !text.starts_with('0')))?
        .parse()
        .ok()
}

/// Reads a file with a JSON object per line, whose `field` is the name of a label: a string or a number. Where every object has a
/// field `id` with a whole number, these are the labels' ids, in any order, or ascend as the lines do.
///
/// # Errors
/// As [`read_label_names`]; a line that is no object, or whose field is missing or of another type; ids that are whole numbers and
/// not as described.
pub fn read_label_names_field(path: impl AsRef<Path>, field: &str) -> Result<LabelNames, ReadError> {
    let path = path.as_ref();
    read_names(path, MAX_OBJECT_BYTES, |text, _| {
        let problem = |problem: String| ReadErrorKind::Json { problem: problem.into() };
        let object: BTreeMap<Cow<'_, str>, &RawValue> =
            serde_json::from_str(text).map_err(|e| jsonl::json_error(&e).kind)?;
        let Some(value) = object.get(field) else {
            let fields = object.keys().map(|key| &**key);
            return Err(problem(format!("the object has no field {field:?}; its fields are {}", quoted(fields))));
        };
        let Some(name) = RowId::of_json(value.get()) else {
            return Err(problem(format!("the field {field:?} is no string and no number")));
        };
        let id = object.get("id").filter(|_| field != "id").map(|id| id.get().trim_matches('"'));
        Ok((name.text().into_owned(), number(id)))
    })?
    .named(true)
}

/// Longest line of a file with objects, which may hold more than names.
const MAX_OBJECT_BYTES: usize = 1 << 26;

fn read_names(
    path: &Path,
    max_line_bytes: usize,
    name_of: impl Fn(&str, u64) -> Result<(String, Option<u64>), ReadErrorKind>,
) -> Result<Lines, ReadError> {
    let mut source = Source::open(path, None)?;
    let file = source.name().to_owned();
    let (mut names, mut ids): (Vec<String>, Vec<u64>) = (Vec::new(), Vec::new());
    let mut line = Vec::new();
    while source.read_line(&mut line, names.len() as u64 + 1, max_line_bytes)? {
        let line_no = names.len() as u64 + 1;
        let text = std::str::from_utf8(&line).map_err(|e| utf8_error(&line, e.valid_up_to()).locate(&file, line_no))?;
        let text = if line_no == 1 { text.strip_prefix('\u{feff}').unwrap_or(text) } else { text };
        let (name, id) = name_of(text, line_no).map_err(|kind| ReadError::line(&file, line_no, kind))?;
        if name.is_empty() {
            let expected = "a label name, not an empty one";
            let kind = ReadErrorKind::Malformed { got: Snippet::new(text.as_bytes()), expected };
            return Err(ReadError::line(&file, line_no, kind));
        }
        if name.contains(is_control) {
            let kind = ReadErrorKind::Malformed { got: Snippet::new(text.as_bytes()), expected: PRINTABLE };
            return Err(ReadError::line(&file, line_no, kind));
        }
        names.push(name);
        ids.extend(id);
    }
    if names.is_empty() {
        return Err(ReadError::path(path, ReadErrorKind::Empty { expected: "one label name per line" }));
    }
    Ok(Lines { file, names, ids })
}

/// Names in the order of their lines, and the whole numbers that stand beside them.
struct Lines {
    file: String,
    names: Vec<String>,
    ids: Vec<u64>,
}

impl Lines {
    /// The names in the order of the labels; `are_ids`: numbers beside all names are ids, or the file is refused.
    fn named(self, are_ids: bool) -> Result<LabelNames, ReadError> {
        let Self { file, names, ids } = self;
        let n = names.len();
        // The line of each label.
        let mut lines: Vec<usize> = (0..n).collect();
        if ids.len() == n {
            let mut line_of = vec![n; n];
            for (line, &id) in ids.iter().enumerate() {
                if let Some(of) = usize::try_from(id).ok().and_then(|id| line_of.get_mut(id)) {
                    *of = line;
                }
            }
            if !line_of.contains(&n) {
                lines = line_of;
            } else if let Some(at) = ids.windows(2).position(|w| w[0] >= w[1]).or((ids[0] == 0).then_some(n - 2))
                && are_ids
            {
                return Err(ReadError::line(
                    &file,
                    at as u64 + 2,
                    ReadErrorKind::NameId { got: ids[at + 1], n: n as u64 },
                ));
            }
        }
        let mut names: Vec<Option<String>> = names.into_iter().map(Some).collect();
        let names: Vec<String> = lines.iter().filter_map(|&line| names[line].take()).collect();
        LabelNames::try_new(names).map(|names| names.of_file(&file)).map_err(|twice| {
            let (first, second) = (lines[twice.first], lines[twice.second]);
            let (first, second) = (first.min(second) as u64, first.max(second) as u64);
            let kind = ReadErrorKind::RepeatedName { got: Snippet::new(twice.name.as_bytes()), first: first + 1 };
            ReadError::line(&file, second + 1, kind)
        })
    }
}

/// Writes label names, one per line.
///
/// # Errors
/// A name that is empty or has a tab, line break or another control character.
pub fn write_label_names<S: AsRef<str>>(into: &mut impl Write, names: &[S]) -> io::Result<()> {
    for (i, name) in names.iter().enumerate() {
        let name = name.as_ref();
        if name.is_empty() || name.contains(is_control) {
            let what = format!("the name {name:?} of label {i} is empty or has a control character");
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        into.write_all(name.as_bytes())?;
        into.write_all(b"\n")?;
    }
    Ok(())
}
