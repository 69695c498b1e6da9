//! Which parts of instances are read, and how a string names labels.

use super::error::{ReadErrorKind, Snippet};
use super::label::{LabelRef, LabelStrings};
use super::row::MAX_IDS;

/// How a string with labels is split.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LabelSeparator {
    /// Not at all: every string is one label.
    Whole,
    /// At each occurrence of this text; blanks around labels are removed.
    Text(String),
}

impl LabelSeparator {
    /// The empty text means [`LabelSeparator::Whole`].
    pub fn of(text: &str) -> Self {
        if text.is_empty() { Self::Whole } else { Self::Text(text.to_owned()) }
    }
}

/// Which parts of the instances are read. The others may be missing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Parts {
    /// Text or features, and labels.
    #[default]
    Instances,
    /// Labels only (JSONL, CSV, TSV; other formats are read whole).
    Labels,
    /// Text or features, and ids; no labels (JSONL, CSV, TSV; other formats have no ids).
    Queries,
    /// Labels and ids (JSONL, CSV, TSV; other formats are read whole and have no ids).
    LabelsAndIds,
}

impl Parts {
    pub(crate) fn have_text(self) -> bool {
        matches!(self, Self::Instances | Self::Queries)
    }

    pub(crate) fn have_labels(self) -> bool {
        self != Self::Queries
    }

    pub(crate) fn have_ids(self) -> bool {
        matches!(self, Self::Queries | Self::LabelsAndIds)
    }
}

/// Appends the labels that `text` names.
///
/// # Errors
/// A text that may be several labels where nothing says how it is divided; a label with a tab or
/// line break; a label that is no number under [`LabelStrings::Ids`].
pub(crate) fn split_labels(
    text: &str,
    separator: Option<&LabelSeparator>,
    strings: LabelStrings,
    into: &mut Vec<LabelRef>,
) -> Result<(), ReadErrorKind> {
    let text = text.trim_ascii();
    if text.is_empty() {
        return Ok(());
    }
    let is_list = text.starts_with('[') && text.ends_with(']');
    match separator {
        Some(LabelSeparator::Whole) => into.push(label_of(text, strings)?),
        _ if is_list => return Err(ReadErrorKind::LabelList { got: Snippet::new(text.as_bytes()) }),
        None if text.contains([';', '|', ',', '\n', '\t']) => {
            return Err(ReadErrorKind::Undivided { got: Snippet::new(text.as_bytes()) });
        }
        None => into.push(label_of(text, strings)?),
        Some(LabelSeparator::Text(separator)) => {
            for part in text.split(separator.as_str()).map(str::trim_ascii).filter(|part| !part.is_empty()) {
                into.push(label_of(part, strings)?);
            }
        }
    }
    Ok(())
}

/// The label that a string means.
pub(crate) fn label_of(text: &str, strings: LabelStrings) -> Result<LabelRef, ReadErrorKind> {
    let malformed = |expected| Err(ReadErrorKind::Malformed { got: Snippet::new(text.as_bytes()), expected });
    match strings {
        LabelStrings::Names if text.contains(['\t', '\n', '\r']) => {
            malformed("a label name without tab and line break")
        }
        LabelStrings::Names => Ok(LabelRef::Name(text.to_owned())),
        LabelStrings::Ids => match text.parse() {
            Ok(id) if text.as_bytes()[0].is_ascii_digit() && u64::from(id) < MAX_IDS => Ok(LabelRef::Id(id)),
            _ => malformed("a label id from 0 to 4294967294, since the labels have no names"),
        },
    }
}

/// Joins fields into one text, by blanks; empty ones are left out.
pub fn join_text<'a>(parts: impl IntoIterator<Item = &'a str>, into: &mut String) {
    into.clear();
    for part in parts.into_iter().filter(|part| !part.is_empty()) {
        if !into.is_empty() {
            into.push(' ');
        }
        into.push_str(part);
    }
}

/// Names in quotes, with commas between them, for a message; the first of very many.
pub(crate) fn quoted<S: AsRef<str>>(names: impl IntoIterator<Item = S>) -> Box<str> {
    const MOST: usize = 20;
    let mut names = names.into_iter();
    let quote = |name: S| Snippet::new(name.as_ref().as_bytes()).to_string();
    let mut shown = names.by_ref().take(MOST).map(quote).collect::<Vec<_>>().join(", ");
    let more = names.count();
    if more > 0 {
        shown.push_str(&format!(" and {more} more"));
    }
    shown.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str, separator: Option<LabelSeparator>) -> Result<Vec<String>, String> {
        let mut labels = Vec::new();
        split_labels(text, separator.as_ref(), LabelStrings::Names, &mut labels).map_err(|e| e.to_string())?;
        let name = |label: LabelRef| match label {
            LabelRef::Name(name) => name,
            LabelRef::Id(id) => id.to_string(),
        };
        Ok(labels.into_iter().map(name).collect())
    }

    #[test]
    fn a_string_that_may_be_several_labels_is_divided_only_as_stated() {
        assert_eq!(names(" red fox ", None).unwrap(), ["red fox"]);
        assert!(names("", None).unwrap().is_empty());
        for text in ["a;b", "a|b", "a, b", "a\nb", "['a', 'b']", "[]"] {
            assert!(names(text, None).is_err(), "{text}");
        }
        assert_eq!(names("a; b;;c ", Some(LabelSeparator::of(";"))).unwrap(), ["a", "b", "c"]);
        assert_eq!(names("Washington, DC", Some(LabelSeparator::of(""))).unwrap(), ["Washington, DC"]);
        assert_eq!(names("a || b", Some(LabelSeparator::of("||"))).unwrap(), ["a", "b"]);
        assert!(names("['a', 'b']", Some(LabelSeparator::of(","))).is_err());
        assert!(names("a\tb", Some(LabelSeparator::of(""))).is_err());
    }
}
