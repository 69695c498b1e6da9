//! What stands outside the quotes of a table, which `csv-core` reads without a word.

use crate::io::error::{ReadErrorKind, Snippet};

/// Where the next byte stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    FieldStart,
    Unquoted,
    Quoted,
    /// Behind a quote in a quoted field: it closes the field, or is the first of two.
    Closed,
}

/// Follows the fields of a table, byte by byte.
pub(crate) struct Quotes {
    delimiter: u8,
    place: Place,
    /// The byte before, in a quoted field.
    before: u8,
    /// Whether the byte before the last quote was a backslash.
    escaped: bool,
    /// Whether the quoted field has a line feed.
    spans: bool,
    /// Whether a quoted field had one, and whether a field without quotes had a quote inside.
    spanned: bool,
    bare: bool,
}

impl Quotes {
    pub(crate) fn new(delimiter: u8) -> Self {
        let place = Place::FieldStart;
        Self { delimiter, place, before: 0, escaped: false, spans: false, spanned: false, bare: false }
    }

    /// Begins anew.
    pub(crate) fn reset(&mut self) {
        *self = Self::new(self.delimiter);
    }

    /// Whether the last byte stands inside a quoted field, so that a line end there ends no row.
    pub(crate) fn is_inside(&self) -> bool {
        self.place == Place::Quoted
    }

    /// Goes over bytes of the table; gives what is wrong with them.
    pub(crate) fn pass(&mut self, bytes: &[u8]) -> Option<ReadErrorKind> {
        let ends = |b: u8| b == self.delimiter || matches!(b, b'\n' | b'\r');
        let outside = matches!(self.place, Place::FieldStart | Place::Unquoted);
        if outside && memchr::memchr(b'"', bytes).is_none() {
            if let Some(&last) = bytes.last() {
                self.place = if ends(last) { Place::FieldStart } else { Place::Unquoted };
            }
            return None;
        }
        for (at, &byte) in bytes.iter().enumerate() {
            self.place = match (self.place, byte) {
                (Place::Quoted, b'"') => {
                    self.escaped = self.before == b'\\';
                    Place::Closed
                }
                (Place::Quoted, _) => {
                    self.spans |= byte == b'\n';
                    self.before = byte;
                    Place::Quoted
                }
                (Place::Closed, b'"') => {
                    self.before = byte;
                    Place::Quoted
                }
                (place, _) if ends(byte) => {
                    self.spanned |= place == Place::Closed && self.spans;
                    Place::FieldStart
                }
                (Place::Closed, _) => {
                    let rest = &bytes[at..];
                    let line = rest.split(|&b| b == b'\n').next().unwrap_or(rest);
                    let got = Snippet::new(line);
                    return Some(ReadErrorKind::BehindQuote { got, escaped: self.escaped });
                }
                (Place::FieldStart, b'"') => {
                    (self.before, self.spans) = (0, false);
                    Place::Quoted
                }
                (Place::Unquoted, b'"') => {
                    self.bare = true;
                    Place::Unquoted
                }
                (Place::FieldStart | Place::Unquoted, _) => Place::Unquoted,
            };
            if self.bare && self.spanned {
                return Some(ReadErrorKind::MixedQuotes);
            }
        }
        None
    }
}
