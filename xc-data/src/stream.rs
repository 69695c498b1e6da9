//! Instances one by one, for programs that answer line by line.
//!
//! ```
//! use xc_data::{Format, InstanceBuffer, InstanceReader, ReadOptions};
//!
//! let input = "0,2 1:0.5 7:1\n 3:2.5\n";
//! let options = ReadOptions::from(Format::Xc);
//! let mut reader = InstanceReader::new("stdin", input.as_bytes(), &options)?;
//! let mut instance = InstanceBuffer::default();
//! assert_eq!(reader.next_into(&mut instance)?, Some(1));
//! assert_eq!(instance.row.features().indices(), [1, 7]);
//! assert_eq!(reader.next_into(&mut instance)?, Some(2));
//! assert_eq!(reader.next_into(&mut instance)?, None);
//! # Ok::<(), xc_data::ReadError>(())
//! ```

use super::csv::CsvReader;
use super::cut::{FileCut, Lead, PartRows};
use super::entries::IdKind;
use super::error::{ReadError, ReadErrorKind};
use super::form::{Begun, Form};
use super::format::Format;
use super::options::ReadOptions;
use super::parser::{InstanceBuffer, parse_line};
use super::source::Source;
use std::io::Read;
use std::path::Path;
use xc_buffer::Part;

/// The content of a stream's instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Sparse features, in [`InstanceBuffer::row`].
    Features,
    /// Text, in [`InstanceBuffer::text`].
    Text,
}

/// Reads a stream line by line: no line is read ahead, so that each can be answered before the next.
///
/// *Cost*: one line of memory.
#[derive(Debug)]
pub struct InstanceReader {
    source: Source,
    options: ReadOptions,
    /// Unknown before the first line is read.
    begun: Option<Begun>,
    /// What reads the rows of a table, once that is known.
    table: Option<Box<CsvReader>>,
    line: Vec<u8>,
    line_no: u64,
    /// Whether the line has been read and not yet parsed.
    pending: bool,
    rows: u64,
    /// Whether a byte order mark may stand before the first line.
    may_have_mark: bool,
}

impl InstanceReader {
    /// Opens a stream; `name` is used in messages. Without [`FileForm::format`](crate::FileForm::format) the first line
    /// decides the format; it is read at the first call of [`InstanceReader::next_into`] (or
    /// [`InstanceReader::content`]).
    ///
    /// # Errors
    /// A format that is not read line by line (npz, npy), svmlight without a base.
    pub fn new(name: &str, input: impl Read + Send + 'static, options: &ReadOptions) -> Result<Self, ReadError> {
        Self::of(Source::from_reader(name, input, options.max_expanded_bytes)?, options)
    }

    /// Reads an opened file. One whose format is stated as JSONL may also be a JSON array, or have objects
    /// of several lines.
    ///
    /// # Errors
    /// As [`InstanceReader::new`].
    pub fn over(source: Source, options: &ReadOptions) -> Result<Self, ReadError> {
        match options.form.format {
            Some(Format::Jsonl) => Self::of(source.one_object_a_line(), options),
            _ => Self::of(source, options),
        }
    }

    fn of(source: Source, options: &ReadOptions) -> Result<Self, ReadError> {
        let mut table = None;
        let begun = match options.form.format {
            None | Some(Format::Jsonl | Format::Xc) => None,
            Some(format) => {
                let table_of = |delimiter| Box::new(CsvReader::new(delimiter, Vec::new(), options));
                table = format.delimiter(options.form.delimiter).map(table_of);
                Some(Begun::at(&[], source.name(), format, IdKind::Feature, options)?)
            }
        };
        let (options, line) = (options.clone(), Vec::new());
        Ok(Self { source, options, begun, table, line, line_no: 0, pending: false, rows: 0, may_have_mark: true })
    }

    /// Reads a part of a file of lines, whose format is stated: the rows that begin at or behind byte I n / N of the n
    /// bytes below the header, and before the byte where the next part begins. What all parts give is, in order, what
    /// the whole file gives. Lines of messages count from the byte that the name in the messages says.
    ///
    /// `counts`: whether [`PartRows::before`] is asked for. *Cost*: what precedes the part is read if it is, and where
    /// fields of a table may be in quotes, or rows are below a header of XC text; otherwise nothing of it.
    ///
    /// # Errors
    /// As [`InstanceReader::new`]; a file that is compressed, no regular file, a JSON array, has objects of several
    /// lines or rows that end with carriage returns.
    pub fn part(path: &Path, part: Part, counts: bool, options: &ReadOptions) -> Result<(Self, PartRows), ReadError> {
        let FileCut { mut source, begun, lead, may_have_mark, starts_at, rows } =
            FileCut::new(path, part, counts, options)?;
        let table = match (begun.form, lead) {
            (Form::Table { delimiter }, Lead::FirstRow(row)) => {
                Some(CsvReader::behind(row, &mut source, delimiter, starts_at, options)?)
            }
            (Form::Table { delimiter }, Lead::Mark(mark)) => Some(CsvReader::new(delimiter, mark, options)),
            _ => None,
        };
        let reader = Self {
            source,
            options: options.clone(),
            begun: Some(begun),
            table: table.map(Box::new),
            line: Vec::new(),
            line_no: starts_at - 1,
            pending: false,
            rows: 0,
            may_have_mark,
        };
        Ok((reader, rows))
    }

    /// What messages call it.
    pub fn name(&self) -> &str {
        self.source.name()
    }

    /// The content of the instances; reads the first line if necessary. `None` for an empty stream.
    ///
    /// # Errors
    /// A first line of unknown format, or a malformed header.
    pub fn content(&mut self) -> Result<Option<Content>, ReadError> {
        let text_or_not = |begun: Begun| if begun.holds_text() { Content::Text } else { Content::Features };
        Ok(self.begun()?.map(text_or_not))
    }

    /// Number of rows according to the header, if one was read.
    pub fn promised_rows(&self) -> Option<u64> {
        self.begun.and_then(|begun| begun.header).map(|header| header.n_rows)
    }

    fn read(&mut self) -> Result<bool, ReadError> {
        let more = self.source.read_line(&mut self.line, self.line_no + 1, self.options.max_line_bytes)?;
        self.line_no += u64::from(more);
        if self.line_no == 1 && self.may_have_mark && self.line.starts_with(b"\xef\xbb\xbf") {
            self.line.drain(..3);
        }
        Ok(more)
    }

    /// The form, told by the first line, which is kept for the next call unless it is a header;
    /// `None` for an empty stream.
    fn begun(&mut self) -> Result<Option<Begun>, ReadError> {
        if self.begun.is_some() || !self.read()? {
            return Ok(self.begun);
        }
        let name = self.source.name();
        let format = self.options.form.format.or_else(|| Format::of_content(&self.line, &self.options));
        let format = format.ok_or_else(|| ReadError::line(name, 1, ReadErrorKind::UnknownFormat))?;
        let begun = Begun::at(&self.line, name, format, IdKind::Feature, &self.options)?;
        if let Form::Table { delimiter } = begun.form {
            let begun = [&*self.line, b"\n"].concat();
            self.table = Some(Box::new(CsvReader::new(delimiter, begun, &self.options)));
        }
        self.pending = begun.header.is_none();
        self.begun = Some(begun);
        Ok(self.begun)
    }

    /// Reads the next instance into `into`; returns its line (from 1), or `None` at the end. After an
    /// error in one line the next call continues with the line after it.
    ///
    /// # Errors
    /// A malformed line; at the end, a header with a different number of rows.
    pub fn next_into(&mut self, into: &mut InstanceBuffer) -> Result<Option<u64>, ReadError> {
        let Some(Begun { form, header, limits }) = self.begun()? else { return Ok(None) };
        if let Some(table) = &mut self.table {
            return table.next_into(&mut self.source, &mut into.text);
        }
        into.text.clear();
        loop {
            if !std::mem::take(&mut self.pending) && !self.read()? {
                return self.end();
            }
            let (line, limits) = (&self.line, &limits);
            let outcome = parse_line(line, form, limits, &self.options, into);
            // Rows without anything behind the last row that the header promises are blank lines at
            // the end.
            let full = header.is_some_and(|h| self.rows >= h.n_rows);
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
        // Taken: it is said once.
        match self.begun.as_mut().and_then(|begun| begun.header.take()) {
            Some(header) if header.n_rows != self.rows => {
                let kind = ReadErrorKind::RowCount { got: self.rows, expected: header.n_rows };
                Err(ReadError::line(self.source.name(), 1, kind))
            }
            _ => Ok(None),
        }
    }
}
