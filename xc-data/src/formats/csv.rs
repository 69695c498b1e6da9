//! CSV and TSV: a header of column names, then one instance per row, with a text and labels.
//!
//! ```text
//!   id,title,text,labels
//!   7,A dog,"It barks, ""loudly"".",animal;noise
//! ```
//!
//! `csv-core` splits the rows, one record at a time and never ahead of a request, so that the same code
//! reads files and streams. The specification is `docs/formats/csv.md`.

mod quotes;

use super::fasttext::TextRows;
use crate::error::{FieldOf, LineError, ReadError, ReadErrorKind, Snippet};
use crate::fields::{LabelSeparator, Parts, join_text, quoted, split_labels};
use crate::format::Format;
use crate::ids::RowId;
use crate::instance::TextInstance;
use crate::label::{LabelRef, LabelStrings};
use crate::options::ReadOptions;
use crate::source::Source;
use crate::write::{same_rows, stream};
use csv_core::{ReadRecordResult, ReaderBuilder};
pub(crate) use quotes::Quotes;
use std::io::{self, Read, Write};
use std::ops::Range;
use xc_sparse::rows::LabelRows;

const INPUT_BYTES: usize = 1 << 16;

/// Cuts a source into records.
struct Records {
    core: csv_core::Reader,
    input: Vec<u8>,
    at: usize,
    is_ended: bool,
    /// Line (from 1) of the next byte.
    line: u64,
    /// Fields of the record, one after the other.
    bytes: Vec<u8>,
    ends: Vec<usize>,
    n_fields: usize,
    max_bytes: usize,
    /// What stands outside the quotes; `None` where quotes are text.
    quotes: Option<Quotes>,
    /// Whether a carriage return alone ends a row, as it ends the header; unknown before.
    ends_at_return: Option<bool>,
}

impl Records {
    /// `begun` stands before what the source still gives.
    fn new(delimiter: u8, begun: Vec<u8>, options: &ReadOptions) -> Self {
        Self {
            core: ReaderBuilder::new().delimiter(delimiter).quoting(!options.form.no_quotes).build(),
            input: begun,
            at: 0,
            is_ended: false,
            line: 1,
            bytes: vec![0; 1 << 10],
            ends: vec![0; 16],
            n_fields: 0,
            max_bytes: options.max_line_bytes,
            quotes: (!options.form.no_quotes).then(|| Quotes::new(delimiter)),
            ends_at_return: None,
        }
    }

    /// Reads on; false at the end of the input.
    fn fill(&mut self, source: &mut Source) -> Result<bool, ReadError> {
        if self.at < self.input.len() {
            return Ok(true);
        }
        self.at = 0;
        if self.is_ended {
            self.input.clear();
            return Ok(false);
        }
        self.input.resize(INPUT_BYTES, 0);
        let got = loop {
            let outcome = source.reading().read(&mut self.input);
            match outcome {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(source.fail(e)),
                Ok(got) => break got,
            }
        };
        self.input.truncate(got);
        self.is_ended = got == 0;
        Ok(got > 0)
    }

    /// Takes blank lines off the front; false when nothing follows.
    fn skip_blank(&mut self, source: &mut Source) -> Result<bool, ReadError> {
        loop {
            while let Some(&end @ (b'\n' | b'\r')) = self.input.get(self.at) {
                self.line += u64::from(end == b'\n');
                self.at += 1;
                if end == b'\r' && self.ends_at_return == Some(false) {
                    self.check_return(source, self.line)?;
                }
            }
            if self.at < self.input.len() {
                return Ok(true);
            }
            if !self.fill(source)? {
                return Ok(false);
            }
        }
    }

    /// After a carriage return of a file whose rows end with line feeds: it must be part of a line end.
    fn check_return(&mut self, source: &mut Source, line: u64) -> Result<(), ReadError> {
        while self.fill(source)? {
            match self.input[self.at] {
                b'\r' => self.at += 1,
                b'\n' => return Ok(()),
                _ => return Err(ReadError::line(source.name(), line, ReadErrorKind::CarriageReturn)),
            }
        }
        Ok(())
    }

    /// Settles what ends a row, when the byte behind the header is known.
    fn settle_line_ends(&mut self, source: &mut Source) -> Result<(), ReadError> {
        if self.ends_at_return.is_none() {
            self.ends_at_return = Some(false);
            let after_return = self.at > 0 && self.input.get(self.at - 1) == Some(&b'\r');
            if after_return {
                while self.fill(source)? && self.input[self.at] == b'\r' {
                    self.at += 1;
                }
                self.ends_at_return = Some(self.input.get(self.at).is_some_and(|&next| next != b'\n'));
            }
        }
        Ok(())
    }

    /// Takes a byte order mark off the front.
    fn skip_mark(&mut self, source: &mut Source) -> Result<(), ReadError> {
        const MARK: &[u8] = b"\xef\xbb\xbf";
        let mut seen = 0;
        while seen < MARK.len() && self.fill(source)? && self.input[self.at] == MARK[seen] {
            (self.at, seen) = (self.at + 1, seen + 1);
        }
        if seen < MARK.len() {
            self.input.splice(..self.at, MARK[..seen].iter().copied());
            self.at = 0;
        }
        Ok(())
    }

    /// Reads the next record; gives the line that it begins on, or `None` at the end.
    fn next(&mut self, source: &mut Source) -> Result<Option<u64>, ReadError> {
        if !self.skip_blank(source)? {
            return Ok(None);
        }
        let first = self.line;
        let fail = |source: &Source, kind| Err(ReadError::line(source.name(), first, kind));
        let (mut n_bytes, mut taken) = (0, 0);
        self.n_fields = 0;
        let mut closing = false;
        loop {
            let input: &[u8] = if closing { b"\n" } else { &self.input[self.at..] };
            let (bytes, ends) = (&mut self.bytes[n_bytes..], &mut self.ends[self.n_fields..]);
            let (result, n_in, n_out, n_ends) = self.core.read_record(input, bytes, ends);
            (n_bytes, self.n_fields, taken) = (n_bytes + n_out, self.n_fields + n_ends, taken + n_in);
            // The line end after the last byte counts: it closes a field.
            let refused = self.quotes.as_mut().and_then(|quotes| quotes.pass(&input[..n_in]));
            if !closing {
                self.line += memchr::memchr_iter(b'\n', &input[..n_in]).count() as u64;
                self.at += n_in;
            }
            if let Some(kind) = refused {
                // Nothing tells where the next row begins.
                self.input.clear();
                (self.at, self.is_ended) = (0, true);
                return fail(source, kind);
            }
            if taken > self.max_bytes {
                return fail(source, ReadErrorKind::LineTooLong { limit_bytes: self.max_bytes });
            }
            match result {
                ReadRecordResult::Record | ReadRecordResult::End => {
                    let by_return = !closing && self.at > 0 && self.input[self.at - 1] == b'\r';
                    if by_return && self.ends_at_return == Some(false) {
                        self.check_return(source, first)?;
                    }
                    return Ok(Some(first));
                }
                ReadRecordResult::OutputFull => self.bytes.resize(2 * self.bytes.len(), 0),
                ReadRecordResult::OutputEndsFull => self.ends.resize(2 * self.ends.len(), 0),
                // A line end after the last byte closes any field but a quoted one.
                ReadRecordResult::InputEmpty if closing => return fail(source, ReadErrorKind::OpenQuote),
                ReadRecordResult::InputEmpty => closing = !self.fill(source)?,
            }
        }
    }

    fn range(&self, field: usize) -> Range<usize> {
        let begin = field.checked_sub(1).map_or(0, |before| self.ends[before]);
        begin..self.ends[field]
    }

    fn field(&self, field: usize) -> &[u8] {
        &self.bytes[self.range(field)]
    }

    /// A field as text.
    fn text(&self, field: usize) -> Result<&str, ReadErrorKind> {
        let bytes = self.field(field);
        std::str::from_utf8(bytes).map_err(|e| {
            let bad = &bytes[e.valid_up_to()..];
            ReadErrorKind::Utf8 { got: Snippet::new(&bad[..bad.len().min(8)]) }
        })
    }
}

/// The columns that are read.
#[derive(Debug)]
struct Columns {
    names: Vec<String>,
    text: Vec<usize>,
    labels: Option<usize>,
    /// One 0 or 1 for each label, in the order of [`FileForm::label_fields`].
    indicators: Vec<usize>,
    id: Option<usize>,
}

impl Columns {
    fn new(names: Vec<String>, options: &ReadOptions) -> Result<Self, ReadErrorKind> {
        let repeated = |i: usize| !names[i].is_empty() && names[..i].contains(&names[i]);
        if let Some(i) = (0..names.len()).find(|&i| repeated(i)) {
            return Err(ReadErrorKind::RepeatedColumn { got: Snippet::new(names[i].as_bytes()) });
        }
        let form = &options.form;
        let (text, labels, indicators, id) = (form.texts(), form.labels(), form.indicators(), form.id());
        let find = |name: &str, what| match names.iter().position(|column| column == name) {
            Some(at) => Ok(at),
            None => {
                let (expected, delimiter) = (quoted([name]), other_delimiter(&names));
                Err(ReadErrorKind::MissingColumn { what, expected, columns: quoted(&names), delimiter })
            }
        };
        let (with_text, with_labels) = (options.parts.have_text(), options.parts.have_labels());
        let text = text.iter().filter(|_| with_text).map(|name| find(name, FieldOf::Text)).collect::<Result<_, _>>()?;
        if let Some(i) = (0..indicators.len()).find(|&i| indicators[..i].contains(&indicators[i])) {
            return Err(ReadErrorKind::RepeatedColumn { got: Snippet::new(indicators[i].as_bytes()) });
        }
        let indicators = indicators.iter().filter(|_| with_labels);
        let indicators = indicators.map(|name| find(name, FieldOf::Labels)).collect::<Result<Vec<_>, _>>()?;
        let labels = match with_labels && !labels.is_empty() && indicators.is_empty() {
            true => Some(find(labels, FieldOf::Labels)?),
            false => None,
        };
        let id = match (options.parts.have_ids(), find(id, FieldOf::Id)) {
            (true, Err(e)) if form.needs_id && options.parts == Parts::Queries => return Err(e),
            (true, found) => found.ok(),
            (false, _) => None,
        };
        Ok(Self { names, text, labels, indicators, id })
    }
}

/// What seems to stand between the columns of a header that reads as a single one.
fn other_delimiter(names: &[String]) -> Option<char> {
    let [one] = names else { return None };
    let count = |delimiter: &char| one.matches(*delimiter).count();
    [',', ';', '|', '\t'].into_iter().rev().max_by_key(count).filter(|delimiter| count(delimiter) > 0)
}

/// Reads instances out of a table.
pub(crate) struct CsvReader {
    records: Records,
    columns: Option<Columns>,
    /// Line of the record that is read and not yet given: the first one, where there is no header.
    held: Option<u64>,
    options: ReadOptions,
}

impl std::fmt::Debug for CsvReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CsvReader").field("columns", &self.columns).field("line", &self.records.line).finish()
    }
}

impl CsvReader {
    /// A reader of a source from its beginning, of which `begun` is already read.
    pub(crate) fn new(delimiter: u8, begun: Vec<u8>, options: &ReadOptions) -> Self {
        let records = Records::new(delimiter, begun, options);
        Self { records, columns: None, held: None, options: options.clone() }
    }

    /// A reader of rows that stand behind others in a file whose first row, which may name the columns, is `first`,
    /// with its line end. `starts_at`: line of the row that the source begins with.
    ///
    /// # Errors
    /// As [`Self::next_into`] about the first row; a file whose rows end with carriage returns.
    pub(crate) fn behind(
        first: Vec<u8>,
        source: &mut Source,
        delimiter: u8,
        starts_at: u64,
        options: &ReadOptions,
    ) -> Result<Self, ReadError> {
        let mut reader = Self::new(delimiter, first, options);
        // Where the first row has no line end, nothing follows it.
        if !reader.begin(source)? {
            return Err(ReadError::file(source.name(), ReadErrorKind::Empty { expected: "a header of column names" }));
        }
        reader.held = None;
        let rest = &reader.records.input[reader.records.at..];
        if rest.iter().any(|b| !b"\r\n".contains(b)) {
            return Err(ReadError::file(
                source.name(),
                ReadErrorKind::Uncut("its rows end with carriage returns alone"),
            ));
        }
        // The line end of the first row is still to be read.
        reader.records.line = starts_at - rest.iter().filter(|&&b| b == b'\n').count() as u64;
        Ok(reader)
    }

    /// Reads the header, unless that is done; false for an empty source.
    pub(crate) fn begin(&mut self, source: &mut Source) -> Result<bool, ReadError> {
        if self.columns.is_some() {
            return Ok(true);
        }
        self.records.skip_mark(source)?;
        let Some(line) = self.records.next(source)? else { return Ok(false) };
        let fail = |kind| ReadError::line(source.name(), line, kind);
        let has_header = !self.options.form.no_header;
        let name = |field| match has_header {
            true => self.records.text(field).map(str::to_owned),
            false => Ok((field + 1).to_string()),
        };
        let names = (0..self.records.n_fields).map(name).collect::<Result<_, _>>().map_err(fail)?;
        self.columns = Some(Columns::new(names, &self.options).map_err(fail)?);
        self.held = (!has_header).then_some(line);
        Ok(true)
    }

    /// Reads the next row; gives the line that it begins on, or `None` at the end. After an error
    /// about one row the next call goes on with the row after it.
    ///
    /// # Errors
    /// No header, or one without the columns that are read; a row of another width; a field that is
    /// not UTF-8; labels that cannot be told apart; a quoted field that is not closed.
    pub(crate) fn next_into(&mut self, source: &mut Source, into: &mut TextInstance) -> Result<Option<u64>, ReadError> {
        into.clear();
        if !self.begin(source)? {
            return Err(ReadError::file(source.name(), ReadErrorKind::Empty { expected: "a header of column names" }));
        }
        let line = match self.held.take() {
            Some(line) => line,
            None => {
                self.records.settle_line_ends(source)?;
                let Some(line) = self.records.next(source)? else { return Ok(None) };
                line
            }
        };
        match self.row(into) {
            Ok(()) => Ok(Some(line)),
            Err(kind) => Err(LineError::whole(kind).locate(source.name(), line)),
        }
    }

    fn row(&self, into: &mut TextInstance) -> Result<(), ReadErrorKind> {
        let Self { records, options, columns: Some(columns), .. } = self else { return Ok(()) };
        let (got, expected) = (records.n_fields, columns.names.len());
        if got != expected {
            return Err(ReadErrorKind::FieldCount { got, expected });
        }
        let in_column = |at: usize| {
            move |problem| ReadErrorKind::InColumn {
                column: Snippet::new(columns.names[at].as_bytes()),
                problem: Box::new(problem),
            }
        };
        let text = |at: usize| records.text(at).map_err(in_column(at));
        let parts = columns.text.iter().map(|&at| text(at)).collect::<Result<Vec<_>, _>>()?;
        join_text(parts, &mut into.text);
        if let Some(at) = columns.labels {
            let (separator, strings) = (options.form.label_separator.as_ref(), options.label_strings);
            split_labels(text(at)?, separator, strings, &mut into.labels).map_err(in_column(at))?;
        }
        for (&at, name) in columns.indicators.iter().zip(options.form.indicators()) {
            if indicated(text(at)?).ok_or_else(|| in_column(at)(not_an_indicator(records.field(at))))? {
                into.labels.push(LabelRef::Name(name.clone()));
            }
        }
        if let Some(at) = columns.id {
            into.id = Some(RowId::of_text(text(at)?));
        }
        Ok(())
    }
}

/// Instances of a table, some at a time.
pub(crate) struct CsvBlocks {
    source: Source,
    reader: CsvReader,
    block_bytes: usize,
    stopped: bool,
}

impl CsvBlocks {
    /// Opens a table and reads its header.
    ///
    /// # Errors
    /// As [`CsvReader::next_into`]; an empty source.
    pub(crate) fn new(mut source: Source, delimiter: u8, options: &ReadOptions) -> Result<Self, ReadError> {
        let mut reader = CsvReader::new(delimiter, Vec::new(), options);
        if !reader.begin(&mut source)? {
            let kind = ReadErrorKind::Empty { expected: Format::Csv.first_line() };
            return Err(ReadError::file(source.name(), kind));
        }
        Ok(Self { source, reader, block_bytes: options.block_bytes, stopped: false })
    }
}

impl Iterator for CsvBlocks {
    type Item = Result<TextRows, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        let (mut rows, mut bytes) = (TextRows::default(), 0);
        while !self.stopped && bytes < self.block_bytes {
            let mut instance = TextInstance::default();
            match self.reader.next_into(&mut self.source, &mut instance) {
                Ok(Some(line)) => {
                    bytes += instance.text.len() + 8 * instance.labels.len() + 16;
                    rows.instances.push(instance);
                    rows.lines.push(line);
                }
                Ok(None) => self.stopped = true,
                Err(error) => {
                    self.stopped = true;
                    return Some(Err(error));
                }
            }
        }
        (!rows.instances.is_empty()).then_some(Ok(rows))
    }
}

/// What a field says that is 1 where its label is true, and 0 where it is not.
fn indicated(field: &str) -> Option<bool> {
    match field.trim_ascii() {
        "1" | "1.0" => Some(true),
        "0" | "0.0" => Some(false),
        word if word.eq_ignore_ascii_case("true") => Some(true),
        word if word.eq_ignore_ascii_case("false") => Some(false),
        _ => None,
    }
}

fn not_an_indicator(field: &[u8]) -> ReadErrorKind {
    ReadErrorKind::Malformed { got: Snippet::new(field), expected: "0 or 1 (or false or true)" }
}

/// Appends a field, in quotes where it needs them.
pub fn push_field(out: &mut Vec<u8>, field: &str, delimiter: u8) {
    let special = |b: &u8| *b == delimiter || matches!(b, b'"' | b'\n' | b'\r');
    // A byte order mark would be taken off the first field.
    if !field.as_bytes().iter().any(special) && !field.starts_with('\u{feff}') {
        return out.extend_from_slice(field.as_bytes());
    }
    out.push(b'"');
    for (i, part) in field.split('"').enumerate() {
        out.extend_from_slice(if i > 0 { b"\"\"" } else { b"" });
        out.extend_from_slice(part.as_bytes());
    }
    out.push(b'"');
}

/// Writes a table with the columns `text` and `labels`. `separator` separates the labels of a row, which
/// are written by name if there are names, otherwise by number.
///
/// # Errors
/// A label name that would not read back: it contains the separator, is empty, begins or ends with a
/// blank, or looks like a list; a format other than CSV and TSV.
pub fn write_csv<S: AsRef<str>>(
    into: &mut impl Write,
    texts: &[S],
    labels: &LabelRows,
    names: Option<&[String]>,
    separator: &LabelSeparator,
    format: Format,
) -> io::Result<()> {
    same_rows(texts.len(), labels.len());
    let unwritable = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
    let Some(delimiter) = format.delimiter(None) else {
        return Err(unwritable(format!("{format} is no table, expected csv or tsv")));
    };
    let mut header = b"text,labels\n".to_vec();
    header[4] = delimiter;
    let (mut cell, mut kept, mut read) = (String::new(), Vec::new(), Vec::new());
    stream(into, texts.len(), header, |out, i| {
        cell.clear();
        kept.clear();
        for (j, &label) in labels.row(i).iter().enumerate() {
            match separator {
                LabelSeparator::Text(separator) if j > 0 => cell.push_str(separator),
                _ if j > 0 => {
                    return Err(unwritable(format!("row {i} has several labels, expected a label separator")));
                }
                _ => {}
            }
            let name = names.map_or_else(|| label.to_string(), |names| names[label as usize].clone());
            cell.push_str(&name);
            kept.push(LabelRef::Name(name));
        }
        read.clear();
        let outcome = split_labels(&cell, Some(separator), LabelStrings::Names, &mut read);
        if outcome.is_err() || read != kept {
            return Err(unwritable(format!(
                "the labels {cell:?} of row {i} do not read back from {format}; another label separator is expected"
            )));
        }
        push_field(out, texts[i].as_ref(), delimiter);
        out.push(delimiter);
        push_field(out, &cell, delimiter);
        out.push(b'\n');
        Ok(())
    })
}
