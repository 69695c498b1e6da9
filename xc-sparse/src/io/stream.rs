//! Instances one by one, for programs that answer line by line.
//!
//! ```
//! use xc_sparse::io::{Format, InstanceBuffer, InstanceReader, ReadOptions};
//!
//! let input = "0,2 1:0.5 7:1\n 3:2.5\n";
//! let options = ReadOptions { format: Some(Format::Xc), ..ReadOptions::default() };
//! let mut reader = InstanceReader::new("stdin", input.as_bytes(), &options)?;
//! let mut instance = InstanceBuffer::default();
//! assert_eq!(reader.next_into(&mut instance)?, Some(1));
//! assert_eq!(instance.row.features().indices, [1, 7]);
//! assert_eq!(reader.next_into(&mut instance)?, Some(2));
//! assert_eq!(reader.next_into(&mut instance)?, None);
//! # Ok::<(), xc_sparse::io::ReadError>(())
//! ```

use super::error::{ReadError, ReadErrorKind};
use super::fasttext::parse_fasttext_line;
use super::format::Format;
use super::jsonl::{parse_jsonl_features, parse_jsonl_text};
use super::label::{LabelRef, TextInstance};
use super::options::ReadOptions;
use super::row::{Limits, RowBuffer};
use super::source::Source;
use super::svmlight::{SvmlightBases, parse_svmlight_line};
use super::xc_text::{XcHeader, parse_xc_columns_line, parse_xc_line};
use std::io::Read;

/// What the instances of a stream hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Sparse features, in [`InstanceBuffer::row`].
    Features,
    /// Text, in [`InstanceBuffer::text`].
    Text,
}

/// Room for one instance, reused from line to line.
#[derive(Clone, Debug, Default)]
pub struct InstanceBuffer {
    /// Features, and label ids of XC text and svmlight.
    pub row: RowBuffer,
    /// Text and its labels.
    pub text: TextInstance,
    /// Labels of JSONL with features.
    pub labels: Vec<LabelRef>,
}

/// Reads a stream line by line: no line is read before it is asked for, so an answer can be given to each.
///
/// *Cost*: one line of memory.
#[derive(Debug)]
pub struct InstanceReader {
    source: Source,
    options: ReadOptions,
    form: Form,
    limits: Limits,
    line: Vec<u8>,
    line_no: u64,
    pending: bool,
    header: Option<XcHeader>,
    rows: u64,
}

#[derive(Clone, Copy, Debug)]
enum Form {
    Xc,
    XcColumns,
    Svmlight(SvmlightBases),
    FastText,
    JsonlText,
    JsonlFeatures,
    // Told by the first line.
    Unknown,
}

impl InstanceReader {
    /// Opens a stream; `name` stands in messages. Without [`ReadOptions::format`] the first line tells the format; it
    /// is read at the first call of [`InstanceReader::next_into`] (or [`InstanceReader::content`]).
    ///
    /// # Errors
    /// A format that is not read line by line (npz, npy), svmlight without a base.
    pub fn new(name: &str, input: impl Read + Send + 'static, options: &ReadOptions) -> Result<Self, ReadError> {
        Self::over(Source::from_reader(name, input, options.max_expanded_bytes)?, options)
    }

    /// Reads an opened source.
    ///
    /// # Errors
    /// As [`InstanceReader::new`].
    pub fn over(source: Source, options: &ReadOptions) -> Result<Self, ReadError> {
        let form = match options.format {
            None | Some(Format::Jsonl | Format::Xc) => Form::Unknown,
            Some(Format::FastText) => Form::FastText,
            Some(Format::Svmlight) => Form::Svmlight(svmlight_bases(source.name(), options)?),
            Some(other) => {
                let kind = ReadErrorKind::WrongFormat { format: other.name(), expected: "one instance a line" };
                return Err(ReadError::file(source.name(), kind));
            }
        };
        Ok(Self {
            source,
            options: options.clone(),
            form,
            limits: options.limits(),
            line: Vec::new(),
            line_no: 0,
            pending: false,
            header: None,
            rows: 0,
        })
    }

    /// What the instances hold; reads the first line when that is needed. `None` for an empty stream.
    ///
    /// # Errors
    /// A first line that is of no known format, or a malformed header.
    pub fn content(&mut self) -> Result<Option<Content>, ReadError> {
        if matches!(self.form, Form::Unknown) && !self.settle()? {
            return Ok(None);
        }
        Ok(Some(match self.form {
            Form::FastText | Form::JsonlText => Content::Text,
            _ => Content::Features,
        }))
    }

    fn read(&mut self) -> Result<bool, ReadError> {
        let more = self.source.read_line(&mut self.line, self.line_no + 1, self.options.max_line_bytes)?;
        self.line_no += u64::from(more);
        if self.line_no == 1 && self.line.starts_with(b"\xef\xbb\xbf") {
            self.line.drain(..3);
        }
        Ok(more)
    }

    // Tells the form by the first line, which is kept for the next call unless it is a header.
    fn settle(&mut self) -> Result<bool, ReadError> {
        if !self.read()? {
            return Ok(false);
        }
        let name = self.source.name();
        let format = match self.options.format.or_else(|| Format::of_content(&self.line)) {
            Some(format) => format,
            None => return Err(ReadError::line(name, 1, ReadErrorKind::UnknownFormat)),
        };
        self.pending = true;
        self.form = match format {
            Format::FastText => Form::FastText,
            Format::Svmlight => Form::Svmlight(svmlight_bases(name, &self.options)?),
            Format::Jsonl if super::dataset::object_holds_text(&self.line, &self.options.fields) => Form::JsonlText,
            Format::Jsonl => Form::JsonlFeatures,
            Format::Xc => {
                self.header =
                    XcHeader::parse(&self.line, self.options.header).map_err(|e| e.locate(name, self.line_no))?;
                self.pending = self.header.is_none();
                match self.header {
                    Some(header) => {
                        self.limits = header.limits(&self.limits).map_err(|e| e.locate(name, self.line_no))?;
                        if header.n_labels.is_some() { Form::Xc } else { Form::XcColumns }
                    }
                    None => Form::Xc,
                }
            }
            other => {
                let kind = ReadErrorKind::WrongFormat { format: other.name(), expected: "one instance a line" };
                return Err(ReadError::file(name, kind));
            }
        };
        Ok(true)
    }

    /// Reads the next instance into `into`; gives its line (from 1), or `None` at the end. After an error about one
    /// line the next call goes on with the line behind it.
    ///
    /// # Errors
    /// A malformed line; at the end, a header that promised another number of rows.
    pub fn next_into(&mut self, into: &mut InstanceBuffer) -> Result<Option<u64>, ReadError> {
        if matches!(self.form, Form::Unknown) && !self.settle()? {
            return Ok(None);
        }
        loop {
            if !std::mem::take(&mut self.pending) && !self.read()? {
                return self.end();
            }
            let (line, limits) = (&self.line, &self.limits);
            let outcome = match self.form {
                Form::Xc => parse_xc_line(line, limits, &mut into.row).map(|()| true),
                Form::XcColumns => parse_xc_columns_line(line, limits, &mut into.row).map(|()| true),
                Form::Svmlight(bases) => parse_svmlight_line(line, bases, limits, &mut into.row),
                Form::FastText => {
                    parse_fasttext_line(line, self.options.fasttext_labels, &mut into.text).map(|()| true)
                }
                Form::JsonlText => parse_jsonl_text(line, &self.options.fields, &mut into.text).map(|()| true),
                Form::JsonlFeatures | Form::Unknown => {
                    parse_jsonl_features(line, &self.options.fields, limits, &mut into.row, &mut into.labels)
                        .map(|()| true)
                }
            };
            // Rows without anything behind the last row that the header promises are blank lines at the end.
            let full = self.header.is_some_and(|h| self.rows >= h.n_rows);
            let bare = || into.row.features().nnz() == 0 && into.row.labels().is_empty();
            if full && outcome.is_ok() && bare() {
                continue;
            }
            self.rows += 1;
            match outcome {
                Ok(true) => return Ok(Some(self.line_no)),
                Ok(false) => {}
                Err(error) => return Err(error.locate(self.source.name(), self.line_no)),
            }
        }
    }

    fn end(&mut self) -> Result<Option<u64>, ReadError> {
        match self.header.take() {
            Some(header) if header.n_rows != self.rows => {
                let kind = ReadErrorKind::RowCount { got: self.rows, expected: header.n_rows };
                Err(ReadError::line(self.source.name(), 1, kind))
            }
            _ => Ok(None),
        }
    }
}

fn svmlight_bases(name: &str, options: &ReadOptions) -> Result<SvmlightBases, ReadError> {
    match options.svmlight_base {
        Some(features) => Ok(SvmlightBases { features, labels: options.svmlight_label_base }),
        None => Err(ReadError::file(name, ReadErrorKind::BaseNotStated)),
    }
}
