//! Text in blocks of whole lines, which are parsed on all threads and returned in order.
//!
//! ```text
//!   read     | batch 1 | batch 2        | batch 3       |
//!   parse              | 1a 1b 1c 1d    | 2a 2b 2c 2d   | ...      one batch is read while the one before is parsed
//!   hand out                            1a 1b 1c 1d     2a ...
//! ```
//!
//! *Cost*: memory for two batches of two blocks per thread, and their rows.

use super::error::{LineError, ReadError, ReadErrorKind};
use super::source::Source;
use rayon::prelude::*;
use std::collections::VecDeque;

/// Longest line that readers accept unless told otherwise.
pub(crate) const MAX_LINE_BYTES: usize = 1 << 28;
/// Size of a block unless told otherwise.
pub(crate) const BLOCK_BYTES: usize = 1 << 20;

/// Parses single lines into a block of results.
pub(crate) trait LineParser: Sync {
    type Block: Default + Send;
    /// Appends what `line` holds (without its end). `line_no` counts from 1.
    fn parse_line(&self, line: &[u8], line_no: u64, into: &mut Self::Block) -> Result<(), LineError>;
}

/// Whole lines of a source.
pub(crate) struct TextBlock {
    bytes: Vec<u8>,
    first_line: u64,
}

/// Cuts a source at line ends.
pub(crate) struct BlockReader {
    source: Source,
    block_bytes: usize,
    max_line_bytes: usize,
    carry: Vec<u8>,
    next_line: u64,
}

impl BlockReader {
    pub(crate) fn new(source: Source, block_bytes: usize, max_line_bytes: usize) -> Self {
        Self { source, block_bytes: block_bytes.max(1), max_line_bytes, carry: Vec::new(), next_line: 1 }
    }

    pub(crate) fn name(&self) -> &str {
        self.source.name()
    }

    /// Takes one line off the front, before any block; `None` at the end of the input.
    pub(crate) fn first_line(&mut self, line: &mut Vec<u8>) -> Result<bool, ReadError> {
        let more = self.source.read_line(line, self.next_line, self.max_line_bytes)?;
        if more && self.next_line == 1 && line.starts_with(b"\xef\xbb\xbf") {
            line.drain(..3);
        }
        self.next_line += u64::from(more);
        Ok(more)
    }

    /// Puts a line taken by [`Self::first_line`] back.
    pub(crate) fn put_back(&mut self, line: &[u8]) {
        debug_assert!(self.carry.is_empty(), "lines are put back before blocks are read");
        self.carry.extend_from_slice(line);
        // With the longer line end: one carriage return is taken off again, and the line may end
        // with another.
        self.carry.extend_from_slice(b"\r\n");
        self.next_line -= 1;
    }

    fn next_block(&mut self) -> Result<Option<TextBlock>, ReadError> {
        let mut bytes = std::mem::take(&mut self.carry);
        let mut searched = 0;
        let mut want = self.block_bytes;
        loop {
            let got = self.source.append(want, &mut bytes)?;
            let last_end = memchr::memrchr(b'\n', &bytes[searched..]).map(|n| n + searched);
            match last_end {
                _ if got == 0 => break,
                Some(end) => {
                    self.carry = bytes[end + 1..].to_vec();
                    bytes.truncate(end + 1);
                    break;
                }
                None if bytes.len() > self.max_line_bytes.saturating_add(2) => {
                    let kind = ReadErrorKind::LineTooLong { limit_bytes: self.max_line_bytes };
                    return Err(ReadError::line(self.name(), self.next_line, kind));
                }
                None => {
                    searched = bytes.len();
                    want = bytes.len().max(self.block_bytes);
                }
            }
        }
        if bytes.is_empty() {
            return Ok(None);
        }
        let first_line = self.next_line;
        self.next_line += memchr::memchr_iter(b'\n', &bytes).count() as u64;
        Ok(Some(TextBlock { bytes, first_line }))
    }

    /// Up to `n` blocks; the second value is what stopped the reading early.
    fn next_batch(&mut self, n: usize) -> (Vec<TextBlock>, Option<ReadError>) {
        let mut batch = Vec::with_capacity(n);
        while batch.len() < n {
            match self.next_block() {
                Ok(Some(block)) => batch.push(block),
                Ok(None) => break,
                Err(error) => return (batch, Some(error)),
            }
        }
        (batch, None)
    }
}

/// Parsed blocks in file order. After an error nothing follows.
pub(crate) struct Blocks<P: LineParser> {
    reader: BlockReader,
    parser: P,
    unparsed: Vec<TextBlock>,
    ready: VecDeque<Result<P::Block, ReadError>>,
    stopped: Option<ReadError>,
    started: bool,
}

impl<P: LineParser> Blocks<P> {
    pub(crate) fn new(reader: BlockReader, parser: P) -> Self {
        Self { reader, parser, unparsed: Vec::new(), ready: VecDeque::new(), stopped: None, started: false }
    }

    fn parse(parser: &P, block: &TextBlock, file: &str, max_line_bytes: usize) -> Result<P::Block, ReadError> {
        let mut out = P::Block::default();
        let mut rest = block.bytes.as_slice();
        let mut line_no = block.first_line;
        while !rest.is_empty() {
            let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            let mut line = &rest[..end];
            if let [head @ .., b'\r'] = line {
                line = head;
            }
            if line.len() > max_line_bytes {
                return Err(ReadError::line(file, line_no, ReadErrorKind::LineTooLong { limit_bytes: max_line_bytes }));
            }
            parser.parse_line(line, line_no, &mut out).map_err(|e| e.locate(file, line_no))?;
            line_no += 1;
            rest = rest.get(end + 1..).unwrap_or_default();
        }
        Ok(out)
    }

    fn refill(&mut self) {
        let n = 2 * rayon::current_num_threads();
        if !self.started {
            self.started = true;
            (self.unparsed, self.stopped) = self.reader.next_batch(n);
        }
        let batch = std::mem::take(&mut self.unparsed);
        if batch.is_empty() {
            return;
        }
        let file = self.reader.name().to_owned();
        let longest = self.reader.max_line_bytes;
        let (parser, reader, stopped) = (&self.parser, &mut self.reader, self.stopped.is_some());
        let (parsed, (next, stop)) = rayon::join(
            || batch.into_par_iter().map(|block| Self::parse(parser, &block, &file, longest)).collect::<Vec<_>>(),
            || if stopped { (Vec::new(), None) } else { reader.next_batch(n) },
        );
        self.ready.extend(parsed);
        self.unparsed = next;
        if stop.is_some() {
            self.stopped = stop;
        }
    }
}

impl<P: LineParser> Iterator for Blocks<P> {
    type Item = Result<P::Block, ReadError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ready.is_empty() {
            self.refill();
        }
        let item = self.ready.pop_front().or_else(|| self.stopped.take().map(Err))?;
        if item.is_err() {
            self.ready.clear();
            self.unparsed.clear();
            self.stopped = None;
        }
        Some(item)
    }
}
