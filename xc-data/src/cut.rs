//! Where a file of lines is cut, so that several processes read a part each.
//!
//! ```text
//!   header │ row   row   row  │ row   row  │ row   row
//!          0                  ▲ S/3        ▲ 2S/3            S bytes below the header
//!                             the first row that begins at or behind this byte
//! ```
//!
//! The header, and what else all rows depend on, belongs to every part.

use super::compression::Compression;
use super::csv::Quotes;
use super::entries::IdKind;
use super::error::{ReadError, ReadErrorKind};
use super::form::Begun;
use super::format::Format;
use super::number::is_blank;
use super::options::ReadOptions;
use super::source::Source;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use xc_buffer::Part;

const MARK: &[u8] = b"\xef\xbb\xbf";

/// Which rows of its file a part has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartRows {
    /// Rows of the file before it, where they were counted.
    pub before: Option<u64>,
    /// Rows of the file, where its header says their number.
    pub promised: Option<u64>,
}

/// What a table begins with, read before the rows of a part.
pub(super) enum Lead {
    /// Its first row and what precedes it.
    FirstRow(Vec<u8>),
    /// A byte order mark, or nothing.
    Mark(Vec<u8>),
}

/// A part of a file.
pub(super) struct FileCut {
    /// The bytes of its rows.
    pub(super) source: Source,
    pub(super) begun: Begun,
    /// What a table begins with: the row that tells what the columns are, where it is no row of this part.
    pub(super) lead: Lead,
    /// Whether a byte order mark before them is to be taken off.
    pub(super) may_have_mark: bool,
    /// Number of its first line, in messages.
    pub(super) starts_at: u64,
    pub(super) rows: PartRows,
}

impl FileCut {
    /// Finds a part of a file whose format is stated.
    pub(super) fn new(path: &Path, part: Part, counts: bool, options: &ReadOptions) -> Result<Self, ReadError> {
        let refuse = |kind| Err(ReadError::path(path, kind));
        let fail = |e| ReadError::path(path, ReadErrorKind::Io(e));
        let name = path.display().to_string();
        let Some(format) = options.form.format else { return refuse(ReadErrorKind::UnknownFormat) };
        let mut file = File::open(path).map_err(fail)?;
        let meta = file.metadata().map_err(fail)?;
        if !meta.is_file() {
            return refuse(ReadErrorKind::Uncut("it is not a regular file"));
        }
        let mut head = Vec::new();
        file.by_ref().take(Compression::HEAD_BYTES as u64).read_to_end(&mut head).map_err(fail)?;
        if Compression::of(&head) != Compression::Plain {
            return refuse(ReadErrorKind::Uncut("it is compressed, and a line can be found from its beginning only"));
        }
        let is_spread = || Ok(!Source::open_to_look(path, None)?.holds_one_object_a_line());
        if format == Format::Jsonl && is_spread()? {
            return refuse(ReadErrorKind::Uncut("it is not one JSON object a line"));
        }
        // A file of nothing but a mark has a line, which is no row in svmlight.
        let is_more = meta.len() > MARK.len() as u64 || format == Format::Svmlight;
        let has_mark = head.starts_with(MARK) && is_more;
        let body = if has_mark { MARK.len() as u64 } else { 0 };
        let mut cutter = Cutter::new(file, body, Rule::of(format, options)).map_err(fail)?;

        // What all rows depend on.
        let delimiter = format.delimiter(options.form.delimiter);
        let looks = matches!(format, Format::Xc | Format::Jsonl) || delimiter.is_some();
        let first = if looks { cutter.first_row(options.max_line_bytes, &name)? } else { Vec::new() };
        if looks && first.is_empty() {
            return refuse(ReadErrorKind::Empty { expected: format.first_line() });
        }
        let line = first.strip_suffix(b"\n").unwrap_or(&first);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let mut begun = Begun::at(line, &name, format, IdKind::Feature, options)?;
        let has_header = begun.header.is_some() || (delimiter.is_some() && !options.form.no_header);
        let start = if has_header { body + first.len() as u64 } else { body };
        cutter.restart(start).map_err(fail)?;

        let size = meta.len().max(start);
        let range = part.range(size - start);
        let counts_all = begun.header.is_some();
        cutter.counts = counts || counts_all;
        let from = cutter.advance(start + range.start, &name)?;
        let promised = begun.header.map(|header| header.n_rows);
        // Blank lines behind the last row that the header promises are no rows.
        let lines = cutter.rows;
        let before = cutter.counts.then_some(promised.map_or(lines, |promised| lines.min(promised)));
        cutter.counts = counts_all;
        let to = if part.is_last() { size } else { cutter.advance(start + range.end, &name)? };
        if let (Some(header), Some(before)) = (&mut begun.header, before) {
            let left = header.n_rows.saturating_sub(before);
            header.n_rows = if part.is_last() { left } else { left.min(cutter.rows - lines) };
        }

        let is_behind = from > start;
        let name = if is_behind { format!("{name} (from byte {from})") } else { name };
        // Of a table without a header the first row is a row of the first part, unless that has none.
        let mark = &head[..body as usize];
        // Before its first row a table may have blank lines.
        let lead = match has_header || is_behind || to < body + first.len() as u64 {
            true => Lead::FirstRow([mark, &first].concat()),
            false => Lead::Mark(mark.to_vec()),
        };
        let lines_before = if has_header && !is_behind { count_lines(&first) } else { 0 };
        let mut file = cutter.reader.into_inner();
        file.seek(SeekFrom::Start(from)).map_err(fail)?;
        Ok(Self {
            source: Source::plain(name, file.take(to - from)),
            begun,
            lead,
            may_have_mark: from == 0,
            starts_at: 1 + lines_before,
            rows: PartRows { before, promised },
        })
    }
}

fn count_lines(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}

/// What ends a row, and which lines are rows.
enum Rule {
    /// Every line is a row.
    Lines,
    /// A line of svmlight: its first byte that is not blank, and its length. Empty lines and comments are no rows.
    Svmlight { first: Option<u8>, len: u64 },
    /// A table, whose rows may have line ends in quotes; `filled`: whether the row has a byte other than line ends.
    Table { quotes: Option<Quotes>, filled: bool },
}

impl Rule {
    fn of(format: Format, options: &ReadOptions) -> Self {
        match (format, format.delimiter(options.form.delimiter)) {
            (_, Some(delimiter)) => {
                Self::Table { quotes: (!options.form.no_quotes).then(|| Quotes::new(delimiter)), filled: false }
            }
            (Format::Svmlight, _) => Self::Svmlight { first: None, len: 0 },
            _ => Self::Lines,
        }
    }

    /// Goes on with another row.
    fn begin_row(&mut self) {
        match self {
            Self::Lines => {}
            Self::Svmlight { first, len } => (*first, *len) = (None, 0),
            Self::Table { filled, .. } => *filled = false,
        }
    }

    /// Begins anew.
    fn reset(&mut self) {
        if let Self::Table { quotes: Some(quotes), .. } = self {
            quotes.reset();
        }
        self.begin_row();
    }

    /// Whether every line end ends a row.
    fn ends_with_lines(&self) -> bool {
        !matches!(self, Self::Table { quotes: Some(_), .. })
    }

    /// Takes the next bytes of a line, up to its end if `ends`; gives whether a row was ended, where a line or a row
    /// was.
    fn pass(&mut self, piece: &[u8], ends: bool) -> Result<Option<bool>, ReadErrorKind> {
        match self {
            Self::Lines => Ok(ends.then_some(true)),
            Self::Svmlight { first, len } => {
                let text = piece.strip_suffix(b"\n").unwrap_or(piece);
                *first = first.or_else(|| text.iter().copied().find(|&b| !is_blank(b)));
                *len += text.len() as u64;
                let is_bare = *len == 0 || (*len == 1 && *first == Some(b'\r'));
                Ok(ends.then_some(!is_bare && *first != Some(b'#')))
            }
            Self::Table { quotes, filled } => {
                *filled |= piece.iter().any(|b| !b"\r\n".contains(b));
                if let Some(quotes) = quotes {
                    match quotes.pass(piece) {
                        // Said by the part that has the row.
                        None | Some(ReadErrorKind::BehindQuote { .. }) => {}
                        Some(kind) => return Err(kind),
                    }
                    if quotes.is_inside() {
                        return Ok(None);
                    }
                }
                Ok(ends.then_some(*filled))
            }
        }
    }
}

/// Goes through a file row by row.
struct Cutter {
    reader: BufReader<File>,
    rule: Rule,
    /// The next byte, and whether a row begins there.
    at: u64,
    at_row: bool,
    /// Rows that were passed, while they are counted.
    rows: u64,
    lines: u64,
    counts: bool,
}

impl Cutter {
    fn new(file: File, at: u64, rule: Rule) -> io::Result<Self> {
        let reader = BufReader::with_capacity(1 << 18, file);
        let mut cutter = Self { reader, rule, at: u64::MAX, at_row: true, rows: 0, lines: 0, counts: true };
        cutter.restart(at)?;
        Ok(cutter)
    }

    /// Goes to the beginning of a row, from which rows are counted.
    fn restart(&mut self, at: u64) -> io::Result<()> {
        if self.at != at {
            self.reader.seek(SeekFrom::Start(at))?;
            self.rule.reset();
            self.lines = 0;
        }
        (self.at, self.at_row, self.rows) = (at, true, 0);
        Ok(())
    }

    /// Takes what is in the buffer, up to a line end at most; `None` at the end of the file.
    fn step(&mut self, name: &str, keep: Option<&mut Vec<u8>>) -> Result<Option<()>, ReadError> {
        let buffer = self.reader.fill_buf().map_err(|e| ReadError::file(name, ReadErrorKind::Io(e)))?;
        let end = memchr::memchr(b'\n', buffer).map(|at| at + 1);
        let piece = &buffer[..end.unwrap_or(buffer.len())];
        // The end of the file ends a line.
        let ends = end.is_some() || (piece.is_empty() && !self.at_row);
        if piece.is_empty() && !ends {
            return Ok(None);
        }
        let wrong = |kind| ReadError::line(name, self.lines + 1, kind);
        let ended = self.rule.pass(piece, ends).map_err(wrong)?;
        if let Some(kept) = keep {
            kept.extend_from_slice(piece);
        }
        let n = piece.len();
        self.reader.consume(n);
        self.at += n as u64;
        self.lines += u64::from(end.is_some());
        self.at_row = ended.is_some() || (ends && n == 0);
        if let Some(is_row) = ended {
            self.rows += u64::from(is_row);
            self.rule.begin_row();
        }
        Ok(Some(()))
    }

    /// The first row and what precedes it, with its line end; empty where there is none.
    fn first_row(&mut self, max_bytes: usize, name: &str) -> Result<Vec<u8>, ReadError> {
        let mut bytes = Vec::new();
        while self.rows == 0 && self.step(name, Some(&mut bytes))?.is_some() {
            if bytes.len() > max_bytes.saturating_add(2) {
                return Err(ReadError::line(name, 1, ReadErrorKind::LineTooLong { limit_bytes: max_bytes }));
            }
        }
        Ok(bytes)
    }

    /// Goes to the first row that begins at or behind a byte; gives its beginning, or the end of the file.
    fn advance(&mut self, to: u64, name: &str) -> Result<u64, ReadError> {
        let fail = |e| ReadError::file(name, ReadErrorKind::Io(e));
        // The byte before tells whether a row begins there.
        let last = to.saturating_sub(1);
        if !self.counts && self.rule.ends_with_lines() && self.at < last {
            self.reader.seek(SeekFrom::Start(last)).map_err(fail)?;
            self.rule.reset();
            (self.at, self.at_row) = (last, false);
        }
        while !(self.at_row && self.at >= to) {
            if matches!(self.rule, Rule::Lines) && self.at < last {
                let buffer = self.reader.fill_buf().map_err(fail)?;
                let n = buffer.len().min(usize::try_from(last - self.at).unwrap_or(usize::MAX));
                if let Some(&before) = buffer[..n].last() {
                    let lines = count_lines(&buffer[..n]);
                    (self.rows, self.lines) = (self.rows + lines, self.lines + lines);
                    self.at_row = before == b'\n';
                    self.reader.consume(n);
                    self.at += n as u64;
                    continue;
                }
            }
            if self.step(name, None)?.is_none() {
                break;
            }
        }
        Ok(self.at)
    }
}
