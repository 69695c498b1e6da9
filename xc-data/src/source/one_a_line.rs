//! JSON of other shapes as JSONL: an array of objects, and objects that fill several lines.
//!
//! ```text
//!   [                                   {"text": "a", "labels": ["x"]}
//!     {"text": "a",            ─▶       {"text": "b"}
//!      "labels": ["x"]},
//!     {"text": "b"} ]
//! ```
//!
//! Line ends between the tokens of a value become blanks, and a value is followed by one line end. What is
//! JSONL already passes as it is: the first line decides. Only brackets and strings are looked at; the rest
//! is for the parser of a row. *Cost*: one buffer, whatever the length of the file.

use std::fmt;
use std::io::{self, Read};

/// What is wrong between values, and its line (from 1) in the file.
#[derive(Debug)]
pub(super) struct BadJson {
    pub(super) line: u64,
    pub(super) problem: &'static str,
}

impl fmt::Display for BadJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.problem)
    }
}

impl std::error::Error for BadJson {}

/// Where the next byte stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// Before the first byte that is not blank.
    Start,
    /// Between the values of a file without an array.
    Between,
    /// In an array: where a value may begin or the array end, where one has to begin, and behind one.
    First,
    Next,
    Behind,
    /// Behind the array.
    End,
    /// In a value.
    Value,
    /// The file is JSONL: nothing is looked at.
    Lines,
}

/// Gives the bytes of a reader with one JSON value on each line.
pub(super) struct OneALine<R> {
    reader: R,
    place: Place,
    /// Whether the values are those of an array.
    in_array: bool,
    /// Whether the first line has ended, and the file is thereby known not to be JSONL.
    is_spread: bool,
    /// Open brackets of the value, and which of them are braces, the innermost in the lowest bit.
    depth: u32,
    braces: u128,
    /// The last byte of the value outside of strings that is not blank.
    before: u8,
    /// Whether its next byte is inside a string, and behind a backslash.
    in_string: bool,
    escaped: bool,
    line: u64,
    is_ended: bool,
    failed: Option<io::Error>,
    input: Vec<u8>,
    out: Vec<u8>,
    given: usize,
}

const CHUNK: usize = 1 << 16;
/// As many as the parser of rows takes.
const MAX_DEPTH: u32 = 128;

impl<R: Read> OneALine<R> {
    pub(super) fn new(reader: R) -> Self {
        Self {
            reader,
            place: Place::Start,
            in_array: false,
            is_spread: false,
            depth: 0,
            braces: 0,
            before: 0,
            in_string: false,
            escaped: false,
            line: 1,
            is_ended: false,
            failed: None,
            input: Vec::new(),
            out: Vec::new(),
            given: 0,
        }
    }

    fn bad(&self, problem: &'static str) -> io::Error {
        io::Error::new(io::ErrorKind::InvalidData, BadJson { line: self.line, problem })
    }

    /// One byte of the file.
    fn take(&mut self, byte: u8) -> io::Result<()> {
        let is_blank = matches!(byte, b' ' | b'\t' | b'\r' | b'\n');
        match self.place {
            Place::Lines => self.out.push(byte),
            Place::Start if byte == b'[' => {
                // What stood before it is nothing.
                self.out.clear();
                (self.in_array, self.is_spread, self.place) = (true, true, Place::First);
            }
            // A blank first line, or anything that is no object, is for the parser of rows.
            Place::Start if byte == b'\n' => {
                self.out.push(byte);
                self.place = Place::Lines;
            }
            // Blanks and a byte order mark.
            Place::Start if is_blank || matches!(byte, 0xef | 0xbb | 0xbf) => self.out.push(byte),
            Place::Start if byte != b'{' => {
                self.out.push(byte);
                self.place = Place::Lines;
            }
            Place::Start => self.begin(byte),
            Place::Between | Place::First | Place::Next | Place::Behind | Place::End if is_blank => {}
            Place::Between => self.begin(byte),
            Place::First if byte == b']' => self.place = Place::End,
            Place::First | Place::Next if matches!(byte, b',' | b']') => {
                return Err(self.bad("malformed JSON: a comma without a value in an array, expected a value"));
            }
            Place::First | Place::Next => self.begin(byte),
            Place::Behind if byte == b',' => self.place = Place::Next,
            Place::Behind if byte == b']' => self.place = Place::End,
            Place::Behind => return Err(self.bad("malformed JSON: expected `,` or `]` behind a value of an array")),
            Place::End => return Err(self.bad("malformed JSON: text behind the array, expected its end")),
            Place::Value => return self.inside(byte),
        }
        Ok(())
    }

    fn begin(&mut self, byte: u8) {
        self.out.push(byte);
        self.place = Place::Value;
        (self.in_string, self.escaped, self.before) = (byte == b'"', false, byte);
        (self.depth, self.braces) = (u32::from(matches!(byte, b'{' | b'[')), u128::from(byte == b'{'));
    }

    /// What opens inside a value must follow what it may follow: otherwise the value that is open breaks
    /// off, and the rest of the file would be taken for a part of it.
    fn check_opening(&self, byte: u8) -> io::Result<()> {
        let in_object = self.braces & 1 == 1;
        let fits = match self.before {
            b':' => true,
            b'[' => !in_object,
            b'{' => byte == b'"',
            b',' => byte == b'"' || !in_object,
            _ => false,
        };
        if fits || !self.is_spread { Ok(()) } else { Err(self.bad("malformed JSON: the value before is not closed")) }
    }

    /// One byte of a value behind its first.
    fn inside(&mut self, byte: u8) -> io::Result<()> {
        if self.in_string {
            if byte == b'\n' {
                if !self.is_spread {
                    // A line that breaks off: JSONL, for the parser of rows to report.
                    self.place = Place::Lines;
                    self.out.push(byte);
                    return Ok(());
                }
                return Err(self.bad("malformed JSON: a string that is not closed on its line"));
            }
            self.out.push(byte);
            match (self.escaped, byte) {
                (true, _) => self.escaped = false,
                (false, b'\\') => self.escaped = true,
                (false, b'"') => {
                    self.in_string = false;
                    if self.depth == 0 {
                        self.end();
                    }
                }
                _ => {}
            }
            return Ok(());
        }
        match byte {
            b'"' => {
                self.check_opening(byte)?;
                self.in_string = true;
            }
            b'{' | b'[' => {
                self.check_opening(byte)?;
                if self.depth == MAX_DEPTH {
                    return Err(self.bad("malformed JSON: more than 128 brackets are open"));
                }
                self.depth += 1;
                self.braces = self.braces << 1 | u128::from(byte == b'{');
            }
            // The brackets of an array end its last value, when that is a number.
            b'}' | b']' | b',' if self.depth == 0 => {
                self.end();
                return self.take(byte);
            }
            b'}' | b']' => {
                self.depth -= 1;
                self.braces >>= 1;
                if self.depth == 0 {
                    self.out.push(byte);
                    self.end();
                    return Ok(());
                }
            }
            b'\n' | b'\r' => {
                self.is_spread |= byte == b'\n';
                self.out.push(b' ');
                return Ok(());
            }
            b' ' | b'\t' => {
                self.out.push(byte);
                return Ok(());
            }
            _ => {}
        }
        self.before = byte;
        self.out.push(byte);
        Ok(())
    }

    fn end(&mut self) {
        // An object on the first line: its rest decides.
        self.place = match (self.in_array, self.is_spread) {
            (true, _) => Place::Behind,
            (false, true) => Place::Between,
            (false, false) => Place::Lines,
        };
        if self.is_spread {
            self.out.push(b'\n');
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        match self.place {
            Place::First | Place::Next | Place::Behind => Err(self.bad("incomplete JSON: an array that is not closed")),
            Place::Value if self.in_array => Err(self.bad("incomplete JSON: an array that is not closed")),
            Place::Value if self.is_spread => Err(self.bad("incomplete JSON: an object that is not closed")),
            _ => Ok(()),
        }
    }
}

impl<R: Read> OneALine<R> {
    /// Reads the beginning; gives whether it shows that the file is not JSONL.
    pub(super) fn look(&mut self) -> bool {
        let is_open = |lines: &Self| match lines.place {
            Place::Start => true,
            Place::Value => !lines.is_spread,
            _ => false,
        };
        while is_open(self) && !self.is_ended && self.failed.is_none() && self.out.len() < CHUNK {
            // What is wrong is said when it is read.
            self.failed = self.more().err();
        }
        self.is_spread
    }

    /// Reads on.
    fn more(&mut self) -> io::Result<()> {
        if self.given == self.out.len() {
            self.out.clear();
            self.given = 0;
        }
        self.input.resize(CHUNK, 0);
        let got = self.reader.read(&mut self.input)?;
        let input = std::mem::take(&mut self.input);
        let outcome = input[..got].iter().try_for_each(|&byte| {
            let outcome = self.take(byte);
            self.line += u64::from(byte == b'\n');
            outcome
        });
        self.input = input;
        outcome?;
        self.is_ended = got == 0;
        if self.is_ended { self.finish() } else { Ok(()) }
    }
}

impl<R: Read> Read for OneALine<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        // Blanks and a byte order mark are nothing in front of an array.
        while self.given == self.out.len() || self.place == Place::Start {
            if let Some(error) = self.failed.take() {
                self.is_ended = true;
                return Err(error);
            }
            match (self.is_ended, self.place) {
                (true, _) => break,
                (false, Place::Lines) => return self.reader.read(buffer),
                // The values before what is wrong come first.
                (false, _) => self.failed = self.more().err(),
            }
        }
        let got = buffer.len().min(self.out.len() - self.given);
        buffer[..got].copy_from_slice(&self.out[self.given..self.given + got]);
        self.given += got;
        Ok(got)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    /// Gives as many bytes at a time as are asked for here.
    struct Pieces<'a>(&'a [u8], usize);

    impl Read for Pieces<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let n = self.1.min(into.len()).min(self.0.len());
            into[..n].copy_from_slice(&self.0[..n]);
            self.0 = &self.0[n..];
            Ok(n)
        }
    }

    fn lines(text: &str, piece: usize) -> io::Result<String> {
        let mut out = String::new();
        OneALine::new(Pieces(text.as_bytes(), piece)).read_to_string(&mut out)?;
        Ok(out)
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[a-c\"\\\\\\[\\]{},:\n é]{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 12, 3, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map("[a-c\"\\[}]{0,3}", inner, 0..3)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn every_shape_becomes_one_value_a_line(values in prop::collection::vec(value(), 0..5), piece in 1usize..40) {
            let array = Value::from(values.clone());
            for text in [array.to_string(), serde_json::to_string_pretty(&array).unwrap(), format!(" {array} \n\n")] {
                let out = lines(&text, piece).unwrap();
                let read: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
                prop_assert_eq!(&read, &values, "{}", text);
                // A beginning of it is no whole array.
                let cut = text.trim_end().len() - 1;
                if text.is_char_boundary(cut) {
                    prop_assert!(lines(&text[..cut], piece).is_err());
                }
            }
            let objects: Vec<Value> = values.into_iter().filter(Value::is_object).collect();
            let jsonl: String = objects.iter().map(|object| format!("{object}\n")).collect();
            prop_assert_eq!(lines(&jsonl, piece).unwrap(), &*jsonl);
            let spread: Vec<String> = objects.iter().map(|o| format!("{{\n{}", &o.to_string()[1..])).collect();
            let out = lines(&spread.join("\n"), piece).unwrap();
            let read: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
            prop_assert_eq!(read, objects);
        }

        #[test]
        fn what_is_no_json_passes_or_is_refused(text in "[\\[\\]{}\",:\na\\\\ ]{0,40}", piece in 1usize..9) {
            _ = lines(&text, piece);
        }
    }
}
