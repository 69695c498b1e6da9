//! What is wrong with a request.

use crate::QueryError;
use crate::message::chain;
use thiserror::Error;
use xc_data::{LineError, ReadErrorKind};

/// The kind of an error in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequestCode {
    /// Nothing is asked.
    Blank,
    /// The line is longer than the caller allows.
    TooLong,
    /// No UTF-8, no JSON object, no row.
    Malformed,
    /// A field that nothing reads: one of a strict request, or one that is a misspelt option.
    UnknownField,
    /// A field that is given twice.
    RepeatedField,
    /// None of the fields that hold a query.
    MissingField,
    /// A value of the wrong type or out of range.
    InvalidValue,
    /// A label that the model does not have.
    UnknownLabel,
    /// Labels are named, and the model's names are damaged.
    LabelNames,
}

impl RequestCode {
    /// A name for programs: `unknown_field`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Blank => "blank",
            Self::TooLong => "too_long",
            Self::Malformed => "malformed",
            Self::UnknownField => "unknown_field",
            Self::RepeatedField => "repeated_field",
            Self::MissingField => "missing_field",
            Self::InvalidValue => "invalid_value",
            Self::UnknownLabel => "unknown_label",
            Self::LabelNames => "label_names",
        }
    }
}

/// Why a request has no answer.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{}{message}", column.map(|column| format!("column {column}: ")).unwrap_or_default())]
pub struct RequestError {
    /// The kind of error.
    pub code: RequestCode,
    /// The field that is wrong, where one is.
    pub field: Option<String>,
    /// The byte of the line, from 1, where it is known.
    pub column: Option<u64>,
    /// What was found and what was expected, in one line without control characters.
    pub message: String,
}

impl RequestError {
    pub(super) fn new(code: RequestCode, message: String) -> Self {
        Self { code, field: None, column: None, message }
    }

    pub(super) fn blank() -> Self {
        LineError { column: 0, kind: ReadErrorKind::Blank }.into()
    }

    /// The same of a field.
    pub(super) fn of_field(self, field: impl Into<String>) -> Self {
        Self { field: Some(field.into()), ..self }
    }
}

impl From<LineError> for RequestError {
    fn from(error: LineError) -> Self {
        let code = if matches!(error.kind, ReadErrorKind::Blank) { RequestCode::Blank } else { RequestCode::Malformed };
        Self { column: (error.column > 0).then_some(error.column), ..Self::new(code, chain(&error.kind)) }
    }
}

impl From<QueryError> for RequestError {
    fn from(error: QueryError) -> Self {
        let code = match error {
            QueryError::Label { .. } => RequestCode::UnknownLabel,
            _ => RequestCode::InvalidValue,
        };
        Self::new(code, chain(&error))
    }
}
