//! Ids of instances.

use std::borrow::Cow;

/// The id of an instance, as JSON: a string in quotes, or a number as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowId(Box<str>);

impl RowId {
    /// An id that is a string.
    pub fn of_text(text: &str) -> Self {
        // A string becomes JSON, whatever it holds.
        Self(serde_json::to_string(text).unwrap_or_default().into())
    }

    /// An id in JSON; `None` where it is neither a string nor a number. The caller has checked that
    /// it is JSON.
    pub fn of_json(json: &str) -> Option<Self> {
        let begins = json.as_bytes().first()?;
        (*begins == b'"' || *begins == b'-' || begins.is_ascii_digit()).then(|| Self(json.into()))
    }

    /// The id in JSON.
    pub fn as_json(&self) -> &str {
        &self.0
    }

    /// The id as text: a string without its quotes, a number as it was written. Files of different formats write one id
    /// in both ways.
    pub fn text(&self) -> Cow<'_, str> {
        id_text(&self.0)
    }
}

/// An id in JSON as text.
pub(crate) fn id_text(json: &str) -> Cow<'_, str> {
    match serde_json::from_str::<String>(json) {
        Ok(text) => text.into(),
        Err(_) => json.into(),
    }
}

/// Ids of the rows of a file.
#[derive(Clone, Debug, Default)]
pub struct RowIds {
    /// One a row; empty where no row has one.
    pub ids: Vec<Option<RowId>>,
    /// The line of each row, from 1; empty where rows are no lines.
    pub lines: Vec<u64>,
}

impl RowIds {
    /// Nothing where no row has an id.
    pub(crate) fn unless_without(self) -> Self {
        if self.ids.iter().all(Option::is_none) { Self::default() } else { self }
    }
}
