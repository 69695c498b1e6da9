//! Single lines that come from anywhere, each an instance.
//!
//! ```
//! use xc_data::{Format, InstanceBuffer, InstanceParser, ReadOptions};
//!
//! let parser = InstanceParser::new("body", Format::Xc, &ReadOptions::default())?;
//! let mut instance = InstanceBuffer::default();
//! assert!(parser.parse(b"0,2 1:0.5 7:1", &mut instance).is_ok_and(|is_row| is_row));
//! assert_eq!(instance.row.features().indices(), [1, 7]);
//! # Ok::<(), xc_data::ReadError>(())
//! ```

use super::entries::IdKind;
use super::error::{LineError, ReadError, ReadErrorKind, Snippet};
use super::fasttext::parse_fasttext_line;
use super::form::{Begun, Form};
use super::format::Format;
use super::instance::TextInstance;
use super::jsonl::{self, parse_jsonl_features, parse_jsonl_text};
use super::options::ReadOptions;
use super::row::{RowBuffer, RowLimits};
use super::svmlight::parse_svmlight_line;
use super::xc_text::{HeaderRule, XcHeader, parse_xc_columns_line, parse_xc_line};

/// Buffer for one instance, reused between lines.
#[derive(Clone, Debug, Default)]
pub struct InstanceBuffer {
    /// Features, and label ids of XC text and svmlight.
    pub row: RowBuffer,
    /// Text; labels of every format that may name them, and the id of the instance.
    pub text: TextInstance,
}

/// Reads a line into `into`; false if it holds no instance, as the rows of tables, which their own reader takes.
pub(super) fn parse_line(
    line: &[u8],
    form: Form,
    limits: &RowLimits,
    options: &ReadOptions,
    into: &mut InstanceBuffer,
) -> Result<bool, LineError> {
    let outcome = match form {
        Form::Xc => parse_xc_line(line, limits, &mut into.row).map(|()| true),
        Form::XcColumns(_) => parse_xc_columns_line(line, limits, &mut into.row).map(|()| true),
        Form::Svmlight(form) => parse_svmlight_line(line, form, limits, &mut into.row),
        Form::FastText => parse_fasttext_line(line, options.label_strings, &mut into.text).map(|()| true),
        Form::JsonlText => parse_jsonl_text(line, options, &mut into.text).map(|()| true),
        Form::JsonlFeatures => {
            parse_jsonl_features(line, options, limits, &mut into.row, &mut into.text).map(|()| true)
        }
        Form::Table { .. } => Ok(false),
    };
    options.count_unseen(into.row.store.unseen);
    outcome
}

/// Parses lines of XC text, svmlight or fastText one by one. With [`Format::Jsonl`] it parses no lines: the caller
/// takes objects apart, and hands over their features.
#[derive(Clone, Debug)]
pub struct InstanceParser {
    /// `None`: lines are objects.
    form: Option<Form>,
    limits: RowLimits,
    options: ReadOptions,
}

impl InstanceParser {
    /// A parser of lines of this format; `name` is used in messages.
    ///
    /// # Errors
    /// A format that is not read line by line; svmlight without a base.
    pub fn new(name: &str, format: Format, options: &ReadOptions) -> Result<Self, ReadError> {
        let form = match format {
            Format::Jsonl => None,
            Format::Csv | Format::Tsv => {
                let kind = ReadErrorKind::WrongFormat { format: format.name(), expected: "one query a line" };
                return Err(ReadError::file(name, kind));
            }
            Format::Xc => Some(Form::Xc),
            format => Some(Begun::at(&[], name, format, IdKind::Feature, options)?.form),
        };
        Ok(Self { form, limits: options.limits(), options: options.clone() })
    }

    /// What lines hold; `None` for objects, of which the caller knows.
    pub fn holds_text(&self) -> Option<bool> {
        self.form.map(|form| matches!(form, Form::FastText))
    }

    /// Tells whether a line, the first one, is a header of XC text rather than an instance. Later rows are then
    /// bounded by it. Labels are not looked at.
    ///
    /// # Errors
    /// A header with a different number of features.
    pub fn header(&mut self, line: &[u8]) -> Result<bool, LineError> {
        if !matches!(self.form, Some(Form::Xc)) {
            return Ok(false);
        }
        let Ok(Some(header)) = XcHeader::parse(line, HeaderRule::Detect) else { return Ok(false) };
        self.limits.features = header.limits(&RowLimits { labels: None, ..self.limits })?.features;
        if header.n_labels.is_none() {
            self.form = Some(Form::XcColumns(IdKind::Feature));
        }
        Ok(true)
    }

    /// Reads a line into `into`; false for one that holds no instance, such as a comment.
    ///
    /// # Errors
    /// Column and cause; a line where only objects are expected.
    pub fn parse(&self, line: &[u8], into: &mut InstanceBuffer) -> Result<bool, LineError> {
        match self.form {
            Some(form) => parse_line(line, form, &self.limits, &self.options, into),
            None => {
                let kind = ReadErrorKind::Malformed { got: Snippet::new(line), expected: "a JSON object" };
                Err(LineError::whole(kind))
            }
        }
    }

    /// Reads features that are given as JSON: a map from id to value, or a list of pairs.
    ///
    /// # Errors
    /// Malformed JSON, a repeated feature, an id out of bounds.
    pub fn features_of_json(&self, json: &str) -> Result<RowBuffer, LineError> {
        let row = jsonl::parse_features(json, &self.limits)?;
        self.options.count_unseen(row.store.unseen);
        Ok(row)
    }
}
