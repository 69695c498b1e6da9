//! Lines of a stream as they arrive, for programs that answer each of them.
//!
//! ```
//! use xc_data::LineBlocks;
//!
//! let mut blocks = LineBlocks::new("stdin", &b"first\nsecond"[..], None, 1 << 20)?;
//! let block = blocks.next_block()?.expect("a block of whole lines");
//! assert_eq!(block.line(0).text(), Some(&b"first"[..]));
//! let block = blocks.next_block()?.expect("the end of the stream ends a line");
//! assert_eq!((block.line(0).number(), block.line(0).text()), (2, Some(&b"second"[..])));
//! assert!(blocks.next_block()?.is_none());
//! # Ok::<(), xc_data::ReadError>(())
//! ```

use super::error::ReadError;
use super::source::Source;
use std::io::Read;

/// Splits a stream into blocks of whole lines. A block has the lines of one read: a line that arrives
/// alone is returned immediately as its own block.
///
/// *Cost*: memory for one read and for the longest line within the limit.
#[derive(Debug)]
pub struct LineBlocks {
    source: Source,
    max_line_bytes: usize,
    /// The beginning of a line whose end has not arrived.
    carry: Vec<u8>,
    /// Whether the line that begins in `carry` is beyond the limit; `carry` is then empty.
    too_long: bool,
    next_number: u64,
    ended: bool,
}

/// Whole lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineBlock {
    bytes: Vec<u8>,
    lines: Vec<Place>,
    first_number: u64,
}

/// Where a line stands in the bytes of its block, without its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Whole { start: usize, end: usize },
    TooLong,
}

/// One line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line<'a> {
    number: u64,
    text: Option<&'a [u8]>,
}

impl<'a> Line<'a> {
    /// Its number, from 1.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Its bytes without the line end; `None` if they exceed the limit.
    pub fn text(&self) -> Option<&'a [u8]> {
        self.text
    }
}

impl LineBlocks {
    /// Opens a stream, which may be compressed with gzip or zstd; `name` is used in messages. Lines of
    /// more than `max_line_bytes` bytes are reported without their text.
    ///
    /// # Errors
    /// The stream cannot be read.
    pub fn new(
        name: &str,
        input: impl Read + Send + 'static,
        max_expanded_bytes: Option<u64>,
        max_line_bytes: usize,
    ) -> Result<Self, ReadError> {
        let source = Source::from_reader(name, input, max_expanded_bytes)?;
        Ok(Self { source, max_line_bytes, carry: Vec::new(), too_long: false, next_number: 1, ended: false })
    }

    /// The lines that the next reads complete, at least one; `None` at the end.
    ///
    /// # Errors
    /// The stream cannot be read, or its compressed data is damaged. No block follows.
    pub fn next_block(&mut self) -> Result<Option<LineBlock>, ReadError> {
        let mut block = LineBlock { first_number: self.next_number, ..LineBlock::default() };
        while !self.ended && block.lines.is_empty() {
            let read = self.source.available()?;
            let n = read.len();
            if n == 0 {
                self.ended = true;
                let is_line = self.too_long || !self.carry.is_empty();
                if is_line {
                    end_line(&mut self.carry, &mut self.too_long, self.max_line_bytes, &[], &mut block);
                }
                continue;
            }
            let mut rest = read;
            while let Some(end) = memchr::memchr(b'\n', rest) {
                end_line(&mut self.carry, &mut self.too_long, self.max_line_bytes, &rest[..end], &mut block);
                rest = &rest[end + 1..];
            }
            // With its carriage return a line may be one byte longer.
            if self.too_long || self.carry.len() + rest.len() > self.max_line_bytes.saturating_add(1) {
                self.too_long = true;
                self.carry = Vec::new();
            } else {
                self.carry.extend_from_slice(rest);
            }
            self.source.consume(n)?;
        }
        if block.first_number == 1
            && let Some(Place::Whole { start, end }) = block.lines.first_mut()
            && block.bytes[*start..*end].starts_with(b"\xef\xbb\xbf")
        {
            *start += 3;
        }
        self.next_number += block.lines.len() as u64;
        Ok((!block.lines.is_empty()).then_some(block))
    }
}

/// Puts a line into the block: what was carried, and its last bytes.
fn end_line(carry: &mut Vec<u8>, too_long: &mut bool, limit: usize, last: &[u8], block: &mut LineBlock) {
    let start = block.bytes.len();
    let was_too_long = std::mem::take(too_long);
    if !was_too_long {
        block.bytes.append(carry);
        block.bytes.extend_from_slice(last);
    }
    let mut end = block.bytes.len();
    if block.bytes[start..].last() == Some(&b'\r') {
        end -= 1;
    }
    if was_too_long || end - start > limit {
        block.bytes.truncate(start);
        block.lines.push(Place::TooLong);
    } else {
        block.lines.push(Place::Whole { start, end });
    }
}

impl LineBlock {
    /// Number of lines.
    pub fn len(&self) -> usize {
        self.lines.len()
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Bytes of its lines.
    pub fn n_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Line `at` of the block, from 0.
    ///
    /// # Panics
    /// If there is no such line.
    pub fn line(&self, at: usize) -> Line<'_> {
        let text = match self.lines[at] {
            Place::Whole { start, end } => Some(&self.bytes[start..end]),
            Place::TooLong => None,
        };
        Line { number: self.first_number + at as u64, text }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    /// Gives its parts one by one.
    struct Parts(Vec<&'static [u8]>);

    impl Read for Parts {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            if self.0.is_empty() {
                return Ok(0);
            }
            let part = self.0[0];
            let n = part.len().min(into.len());
            into[..n].copy_from_slice(&part[..n]);
            self.0[0] = &part[n..];
            if self.0[0].is_empty() {
                self.0.remove(0);
            }
            Ok(n)
        }
    }

    /// Blocks as lists of lines; a line beyond the limit is `None`.
    fn blocks(parts: &[&'static [u8]], limit: usize) -> Vec<Vec<(u64, Option<String>)>> {
        let mut blocks = LineBlocks::new("test", Parts(parts.to_vec()), None, limit).unwrap();
        let text = |line: Line<'_>| line.text().map(|text| String::from_utf8(text.to_vec()).unwrap());
        let lines = |b: LineBlock| (0..b.len()).map(|at| (b.line(at).number(), text(b.line(at)))).collect();
        std::iter::from_fn(|| blocks.next_block().unwrap()).map(lines).collect()
    }

    fn line(number: u64, text: &str) -> (u64, Option<String>) {
        (number, Some(text.to_owned()))
    }

    #[test]
    fn a_line_that_arrives_alone_is_a_block_and_halves_are_put_together() {
        let got = blocks(&[b"a", b"b\r\n", b"c\nd\n\n", b"e\r", b"\r\nf"], 100);
        let expected = [
            vec![line(1, "ab")],
            vec![line(2, "c"), line(3, "d"), line(4, "")],
            vec![line(5, "e\r")],
            vec![line(6, "f")],
        ];
        assert_eq!(got, expected);
        assert_eq!(blocks(&[], 100), Vec::<Vec<_>>::new());
        assert_eq!(blocks(&[b"\xef\xbb\xbfa\n", b"\xef\xbb\xbfa\n"], 100)[..1], [vec![line(1, "a")]]);
    }

    #[test]
    fn compressed_streams_are_read_and_damage_is_an_error() {
        let packed = zstd::encode_all(&b"\xef\xbb\xbfa\nb"[..], 3).unwrap();
        let mut blocks = LineBlocks::new("test", io::Cursor::new(packed.clone()), None, 9).unwrap();
        let block = blocks.next_block().unwrap().unwrap();
        assert_eq!((block.len(), block.line(0).text()), (1, Some(&b"a"[..])));
        assert_eq!(blocks.next_block().unwrap().unwrap().line(0).text(), Some(&b"b"[..]));
        let torn = io::Cursor::new(packed[..packed.len() - 3].to_vec());
        let mut blocks = LineBlocks::new("test", torn, None, 9).unwrap();
        assert!((0..3).any(|_| blocks.next_block().is_err()));
    }

    #[test]
    fn a_line_beyond_the_limit_is_counted_and_not_kept() {
        for parts in [&[&b"123\n1234\n123\r\n12"[..]][..], &[b"12", b"3\n12", b"34", b"\n123\r", b"\n12"]] {
            let got: Vec<_> = blocks(parts, 3).concat();
            assert_eq!(got, [line(1, "123"), (2, None), line(3, "123"), line(4, "12")], "{parts:?}");
        }
        assert_eq!(blocks(&[b"1234567"], 3).concat(), [(1, None)]);
    }
}
