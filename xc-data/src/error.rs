//! Errors in files, and where they are.

use super::compression::Compression;
use super::foreign::ForeignFile;
use super::join::JoinError;
use std::error::Error;
use std::fmt;
use std::io;
use std::path::Path;

/// A file that could not be read: which file, where in it, what was found and what was expected.
///
/// Prints as one line: `train.txt: line 3, column 17: got "x:1", expected a feature id`.
#[derive(Debug)]
pub struct ReadError(Box<Located>);

#[derive(Debug)]
struct Located {
    file: String,
    line: Option<u64>,
    row: Option<u64>,
    column: Option<u64>,
    kind: ReadErrorKind,
}

impl ReadError {
    /// A problem of the whole file.
    pub fn file(file: &str, kind: ReadErrorKind) -> Self {
        Self(Box::new(Located { file: file.to_owned(), line: None, row: None, column: None, kind }))
    }

    /// A problem of the whole file at `path`.
    pub fn path(path: &Path, kind: ReadErrorKind) -> Self {
        Self::file(&path.display().to_string(), kind)
    }

    /// A problem of one line (counted from 1).
    pub fn line(file: &str, line: u64, kind: ReadErrorKind) -> Self {
        Self(Box::new(Located { file: file.to_owned(), line: Some(line), row: None, column: None, kind }))
    }

    /// A problem of one row (counted from 0) of a file without lines.
    pub fn row(file: &str, row: u64, kind: ReadErrorKind) -> Self {
        Self(Box::new(Located { file: file.to_owned(), line: None, row: Some(row), column: None, kind }))
    }

    /// The file as the caller named it.
    pub fn file_name(&self) -> &str {
        &self.0.file
    }

    /// The line, from 1, if there is one.
    pub fn line_number(&self) -> Option<u64> {
        self.0.line
    }

    /// The byte in the line, from 1, if it is known.
    pub fn column(&self) -> Option<u64> {
        self.0.column
    }

    /// What is wrong.
    pub fn kind(&self) -> &ReadErrorKind {
        &self.0.kind
    }
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Located { file, line, row, column, kind } = &*self.0;
        write!(f, "{file}: ")?;
        if let Some(line) = line {
            write!(f, "line {line}")?;
            if let Some(column) = column {
                write!(f, ", column {column}")?;
            }
            write!(f, ": ")?;
        }
        if let Some(row) = row {
            write!(f, "row {row}: ")?;
        }
        write!(f, "{kind}")
    }
}

impl Error for ReadError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.kind.source()
    }
}

/// A problem inside one line whose file and number the caller knows.
#[derive(Debug)]
pub struct LineError {
    /// The byte in the line, from 1; 0 for the whole line.
    pub column: u64,
    /// What is wrong.
    pub kind: ReadErrorKind,
}

impl LineError {
    pub(crate) fn at(column: usize, kind: ReadErrorKind) -> Self {
        Self { column: column as u64 + 1, kind }
    }

    pub(crate) fn whole(kind: ReadErrorKind) -> Self {
        Self { column: 0, kind }
    }

    /// Adds the file's name and the line's number (from 1).
    pub fn locate(self, file: &str, line: u64) -> ReadError {
        let column = (self.column > 0).then_some(self.column);
        ReadError(Box::new(Located { file: file.to_owned(), line: Some(line), row: None, column, kind: self.kind }))
    }
}

/// What was found and what was expected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadErrorKind {
    /// A system error.
    #[error("cannot be read")]
    Io(#[source] io::Error),
    /// The caller asked for the reading to stop.
    #[error("reading was cancelled")]
    Cancelled,
    /// A pipe or device, but the file has to be read twice.
    #[error(
        "it is not a regular file and cannot be read twice: expected a file, or its format stated (for jsonl, a file)"
    )]
    NotAFile,
    /// A file that is to be read in parts, and can be read whole only.
    #[error("cannot be read in parts: {0}")]
    Uncut(&'static str),
    /// A line without a query.
    #[error("a blank line")]
    Blank,
    /// An empty file.
    #[error("the file is empty, expected {expected}")]
    Empty {
        /// What was expected.
        expected: &'static str,
    },
    /// Text that the format does not allow here.
    #[error("got {got}, expected {expected}")]
    Malformed {
        /// The text, shortened.
        got: Snippet,
        /// What was expected.
        expected: &'static str,
    },
    /// An id beyond its bound.
    #[error("{what} {got} is out of range, expected an id below {bound}")]
    OutOfRange {
        /// `feature` or `label`.
        what: &'static str,
        /// The id found.
        got: u64,
        /// The bound and who set it.
        bound: Bound,
    },
    /// The number of features that a file states is not the one that the caller gave.
    #[error("{got} features, expected {expected}")]
    Width {
        /// The number that the file states.
        got: u64,
        /// The number that the caller gave.
        expected: u64,
    },
    /// A number in a header that exceeds what the caller allows.
    #[error("the header says {got} {what}s, expected at most {expected}")]
    HeaderTooLarge {
        /// `feature` or `label`.
        what: &'static str,
        /// The number in the header.
        got: u64,
        /// The largest number allowed.
        expected: u64,
    },
    /// A given number of features or labels that exceeds the largest possible one.
    #[error("{got} {what}s are given as the number, expected at most {expected}")]
    GivenTooLarge {
        /// `feature` or `label`.
        what: &'static str,
        /// The number given.
        got: u64,
        /// The largest possible number.
        expected: u64,
    },
    /// A matrix with more columns than the caller allows.
    #[error("got {got} columns, expected at most {expected} (the number given)")]
    TooManyColumns {
        /// Columns of the matrix.
        got: usize,
        /// The largest number allowed.
        expected: usize,
    },
    /// A repeated feature in one row.
    #[error("feature {feature} is named twice in this row, expected each feature once")]
    RepeatedFeature {
        /// The feature.
        feature: u64,
    },
    /// A repeated label in one ranked list.
    #[error("label {label} is named twice in this row, expected each label once")]
    RepeatedLabel {
        /// The label.
        label: u32,
    },
    /// The header's number of rows differs from that of the file.
    #[error("the header says {expected} rows, got {got}")]
    RowCount {
        /// Rows in the file.
        got: u64,
        /// Rows according to the header.
        expected: u64,
    },
    /// Features and labels with different numbers of instances.
    #[error("got {got} rows of labels, expected {expected}: one for each row of {features}")]
    LabelRows {
        /// Rows of labels.
        got: u64,
        /// Rows of features.
        expected: u64,
        /// The file with the features.
        features: String,
    },
    /// Numbers beside names of labels that are no ids of labels.
    #[error(
        "the id {got} beside a name; ids that are whole numbers are expected to be those of the {n} labels, from 0 on and each once, \
         or to ascend as the lines do from a number above 0"
    )]
    NameId {
        /// The id.
        got: u64,
        /// Number of names.
        n: u64,
    },
    /// Rows of two files that ids do not join.
    #[error(transparent)]
    Join(#[from] JoinError),
    /// Text that is not UTF-8.
    #[error("bytes that are not UTF-8, got {got} (iconv -f LATIN1 -t UTF-8 FILE converts a file of Latin-1)")]
    Utf8 {
        /// The bytes, with replacement characters.
        got: Snippet,
    },
    /// Text that is not the expected JSON.
    #[error("{problem}")]
    Json {
        /// What the JSON reader found and expected.
        problem: Box<str>,
    },
    /// A chosen field is missing.
    #[error("the object has none of the fields {expected}; its fields are {fields}")]
    MissingField {
        /// What is read from the field.
        what: FieldOf,
        /// The fields looked for.
        expected: Box<str>,
        /// The existing fields.
        fields: Box<str>,
    },
    /// A column that is missing in the header.
    #[error("the header has no column {expected}; its columns are {columns}")]
    MissingColumn {
        /// What is read from the column.
        what: FieldOf,
        /// The column looked for, in quotes.
        expected: Box<str>,
        /// The existing columns.
        columns: Box<str>,
        /// What seems to separate columns, where the header reads as a single one.
        delimiter: Option<char>,
    },
    /// A repeated column.
    #[error("column {got} is named twice in the header, expected each name once")]
    RepeatedColumn {
        /// The name.
        got: Snippet,
    },
    /// A row whose number of fields differs from the header's.
    #[error("{got} fields, expected {expected} as in the header")]
    FieldCount {
        /// Fields of the row.
        got: usize,
        /// Fields of the header.
        expected: usize,
    },
    /// Text between the closing quote of a field and the end of the field.
    #[error(
        "text behind the closing quote of a field in the row that begins here, got {got}{}",
        if *escaped { "; a backslash does not escape a quote: inside a quoted field a quote is written twice" }
        else { "; a field in quotes ends with its quote, and a quote inside it is written twice" }
    )]
    BehindQuote {
        /// The text.
        got: Snippet,
        /// Whether a backslash stands before the quote.
        escaped: bool,
    },
    /// A field that would be quoted without the blanks before its quote.
    #[error("blanks before the quote of a field in the row that begins here; a quoted field begins with its quote")]
    BeforeQuote,
    /// Quotes that enclose fields, and quotes that do not.
    #[error(
        "a quoted field of several lines in a file that also has quotes inside fields without quotes: expected one or \
         the other"
    )]
    MixedQuotes,
    /// A carriage return that is not part of a line end.
    #[error("a carriage return inside a field that is not in quotes, in the row that begins here")]
    CarriageReturn,
    /// A quoted field that is not closed before the file ends.
    #[error("a quoted field that is not closed in the row that begins here")]
    OpenQuote,
    /// A problem in one column.
    #[error("in column {column}: {problem}")]
    InColumn {
        /// Name of the column.
        column: Snippet,
        /// What is wrong.
        problem: Box<ReadErrorKind>,
    },
    /// A string that may be one label or several.
    #[error("{got} may be one label or several, expected a statement of what separates labels")]
    Undivided {
        /// The string.
        got: Snippet,
    },
    /// A list of labels written as a string.
    #[error("{got} is a list written as text, expected labels with a separator between them")]
    LabelList {
        /// The string.
        got: Snippet,
    },
    /// A JSON document instead of one object per line.
    #[error(
        "a JSON array, expected one object a line (pandas writes that with to_json(path, orient=\"records\", \
         lines=True))"
    )]
    JsonArray,
    /// A label beyond the names given.
    #[error("label {label} has no name: {file} names {names} labels, from 0 on")]
    NoName {
        /// Its id.
        label: u32,
        /// Where the names come from.
        file: Box<str>,
        /// Number of names.
        names: usize,
    },
    /// A label name that is not in the given list.
    #[error("label name {got} is not among the {known} {}", .file.as_ref().map_or("known names".into(), |file| format!("names of {file}")))]
    UnknownLabel {
        /// The name.
        got: Snippet,
        /// Number of known names.
        known: usize,
        /// Where the names come from, if that is known.
        file: Option<Box<str>>,
    },
    /// JSON objects where names are expected.
    #[error("a JSON object, expected a label name; a field of the object holds the name: state which of {fields}")]
    NameField {
        /// The fields of the object.
        fields: Box<str>,
    },
    /// A label id beyond the labels, whose digits are a label's name.
    #[error(
        "{label} is read as a label id, and there are {names} labels; the label with the name {label} is written \
         \"{label}\", in quotes"
    )]
    NumberName {
        /// The id.
        label: u32,
        /// Number of names.
        names: usize,
    },
    /// A ranked list whose entries may be ids or names.
    #[error(
        "the list may hold ids or names, since its numbers are also label names: expected ids with blanks between \
         them, or names in quotes with tabs between them"
    )]
    NamesOrIds,
    /// A list of ids in a file whose other lists hold names.
    #[error(
        "label ids, where line {names} has names: expected one of both (a name that is a number is written in quotes)"
    )]
    IdsAmongNames {
        /// The line with names, from 1.
        names: u64,
    },
    /// An npz archive where the bytes come one after the other.
    #[error("npz is not read from a stream: expected lines or jsonl, or a file")]
    ArchiveStream,
    /// A name that occurs twice in a list of names.
    #[error("label name {got} was already given on line {first}")]
    RepeatedName {
        /// The name.
        got: Snippet,
        /// Line of its first occurrence.
        first: u64,
    },
    /// Compressed data that cannot be decompressed.
    #[error("the {compression} data is truncated or damaged")]
    Compressed {
        /// The compression.
        compression: &'static str,
        /// The decompressor's error.
        source: Box<dyn Error + Send + Sync>,
    },
    /// Compressed data that expands beyond the limit.
    #[error("the compressed data expands to more than {limit_bytes} bytes, the limit")]
    Expands {
        /// The limit.
        limit_bytes: u64,
    },
    /// A line that is too long to be a row.
    #[error("a line of more than {limit_bytes} bytes, the limit")]
    LineTooLong {
        /// The limit.
        limit_bytes: usize,
    },
    /// The format is not known.
    #[error(
        "the format is not recognised: expected xc, svmlight, fasttext, jsonl, csv, tsv, npz or npy, named by the \
         extension or stated (texts alone, one a line, are fasttext without labels)"
    )]
    UnknownFormat,
    /// A file of a format that is not read.
    #[error("{0}")]
    Foreign(ForeignFile),
    /// The format does not have the requested content.
    #[error("{format} does not hold {expected}")]
    WrongFormat {
        /// The format.
        format: &'static str,
        /// The requested content.
        expected: &'static str,
    },
    /// The base of svmlight's ids is not stated.
    #[error("svmlight files count features from 0 or from 1: state which")]
    BaseNotStated,
    /// A member of an npz archive is missing.
    #[error("the archive has no member {member}, expected {expected}")]
    MissingMember {
        /// The member's name.
        member: &'static str,
        /// The expected kind of archive.
        expected: &'static str,
    },
    /// Two members of one name.
    #[error("the archive has two members of the name {got}, and readers differ in which of them counts: expected one")]
    RepeatedMember {
        /// The name.
        got: Snippet,
    },
    /// A binary file inside a compressed one.
    #[error("{format} inside {} is not read: expected the file after `{}`", compression.name(), compression.undo())]
    Wrapped {
        /// The format inside, as its name says.
        format: &'static str,
        /// What it is inside of.
        compression: Compression,
    },
    /// An invalid array in npy format.
    #[error("array {array}: {problem}")]
    Array {
        /// Name of the array.
        array: Box<str>,
        /// What is wrong.
        problem: ArrayProblem,
    },
}

/// What is read from a field of JSONL or a column of CSV.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldOf {
    /// Text.
    Text,
    /// Labels.
    Labels,
    /// Sparse features.
    Features,
    /// Ids.
    Id,
}

/// What is wrong with an array in npy format.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArrayProblem {
    /// Not an npy file.
    #[error("the npy header is malformed: {0}")]
    Header(&'static str),
    /// An unsupported type.
    #[error("type {got} is not read, expected {expected}")]
    Type {
        /// The type in the header.
        got: Snippet,
        /// Supported types.
        expected: &'static str,
    },
    /// An unsupported shape.
    #[error("shape {got}, expected {expected}")]
    Shape {
        /// The shape in the header.
        got: Box<str>,
        /// The shape expected.
        expected: Box<str>,
    },
    /// Fewer bytes than the shape requires.
    #[error("{got} bytes of data, the shape asks for {expected}")]
    Length {
        /// Bytes found.
        got: u64,
        /// Bytes expected.
        expected: u128,
    },
    /// More bytes than the shape requires.
    #[error("more than the {expected} bytes of data that the shape asks for")]
    Trailing {
        /// Bytes expected.
        expected: u128,
    },
    /// Entries of one place that add up to more than f32 can hold.
    #[error("the entries of id {id} in row (or column) {row} add up to more than f32 can hold")]
    Sum {
        /// The row or column, from 0.
        row: usize,
        /// The id.
        id: u32,
    },
    /// An entry whose value is not allowed.
    #[error("entry {at} is {got}, expected {expected}")]
    Entry {
        /// Position from 0.
        at: usize,
        /// The value found.
        got: Box<str>,
        /// What was expected.
        expected: Box<str>,
    },
}

/// A bound on ids, and who set it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Ids must be below it.
    pub below: u64,
    /// Who set it.
    pub from: BoundFrom,
}

/// Who set a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoundFrom {
    /// The header of the file.
    Header,
    /// The caller (a model, an option).
    Caller,
    /// The 32 bits of an id.
    Width,
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.from {
            BoundFrom::Header => write!(f, "{} (said by the header)", self.below),
            BoundFrom::Caller => write!(f, "{} (the number given)", self.below),
            BoundFrom::Width => write!(f, "{} (the most that 32 bits hold)", self.below),
        }
    }
}

/// An excerpt of input for a message: quoted, control characters escaped, at most 40 characters.
#[derive(Clone, PartialEq, Eq)]
pub struct Snippet(Box<str>);

impl Snippet {
    const MAX_CHARS: usize = 40;

    /// Quotes the beginning of `bytes`.
    pub fn new(bytes: &[u8]) -> Self {
        use fmt::Write;
        // Four bytes a character at most: no need to look further.
        let head = &bytes[..bytes.len().min(4 * Self::MAX_CHARS + 4)];
        let text = String::from_utf8_lossy(head);
        let mut out = String::from("\"");
        let mut chars = text.chars();
        for c in chars.by_ref().take(Self::MAX_CHARS) {
            match c {
                '"' => out.push_str("\\\""),
                c if c.is_control() => _ = write!(out, "{}", c.escape_default()),
                c => out.push(c),
            }
        }
        out.push_str(if chars.next().is_some() || head.len() < bytes.len() { "...\"" } else { "\"" });
        Self(out.into())
    }

    /// Text of our own, not quoted.
    pub(crate) fn bare(text: &str) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for Snippet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Snippet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
