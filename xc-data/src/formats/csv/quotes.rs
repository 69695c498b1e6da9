//! What stands outside the quotes of a table, which `csv-core` reads without a word.

use crate::error::{ReadErrorKind, Snippet};

/// Where the next byte stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    FieldStart,
    /// Behind blanks at the beginning of a field.
    Blank,
    /// In a field whose first character behind blanks is a quote, which is text there: `quotes` is odd, and `last` is a quote,
    /// as far as was read.
    BlankQuote {
        odd: bool,
        last: bool,
    },
    Unquoted,
    Quoted,
    /// Behind a quote in a quoted field: it closes the field, or is the first of two.
    Closed,
}

/// Follows the fields of a table.
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
        let delimiter = self.delimiter;
        let ends = |b: u8| b == delimiter || matches!(b, b'\n' | b'\r');
        let outside = matches!(self.place, Place::FieldStart | Place::Blank | Place::Unquoted);
        if outside && memchr::memchr(b'"', bytes).is_none() {
            let n_blanks = bytes.iter().rev().take_while(|&&b| b == b' ').count();
            self.place = match (bytes.len() - n_blanks, n_blanks) {
                (0, 0) => self.place,
                (0, _) if self.place == Place::Unquoted => Place::Unquoted,
                (0, _) => Place::Blank,
                (end, n) if ends(bytes[end - 1]) => {
                    if n > 0 {
                        Place::Blank
                    } else {
                        Place::FieldStart
                    }
                }
                _ => Place::Unquoted,
            };
            return None;
        }
        let mut at = 0;
        loop {
            at += self.skip(&bytes[at..]);
            // The end of the bytes: nothing is wrong with them.
            let &byte = bytes.get(at)?;
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
                (Place::BlankQuote { odd, last }, _) if ends(byte) && (odd || last) => {
                    return Some(ReadErrorKind::BeforeQuote);
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
                (Place::Blank, b'"') => {
                    self.bare = true;
                    Place::BlankQuote { odd: true, last: true }
                }
                (Place::BlankQuote { odd, .. }, b'"') => Place::BlankQuote { odd: !odd, last: true },
                (Place::BlankQuote { odd, .. }, _) => Place::BlankQuote { odd, last: false },
                (Place::Unquoted, b'"') => {
                    self.bare = true;
                    Place::Unquoted
                }
                (Place::FieldStart | Place::Blank, b' ') => Place::Blank,
                (Place::FieldStart | Place::Blank | Place::Unquoted, _) => Place::Unquoted,
            };
            if self.bare && self.spanned {
                return Some(ReadErrorKind::MixedQuotes);
            }
            at += 1;
        }
    }

    /// Goes over bytes of a field that change nothing about where the next one stands; gives their number. Most bytes of
    /// a table are such.
    fn skip(&mut self, bytes: &[u8]) -> usize {
        match self.place {
            Place::Quoted => {
                let n = memchr::memchr(b'"', bytes).unwrap_or(bytes.len());
                if let Some(&last) = bytes[..n].last() {
                    self.spans = self.spans || memchr::memchr(b'\n', &bytes[..n]).is_some();
                    self.before = last;
                }
                n
            }
            // A carriage return begins a field too, but a needle more costs more than the bytes up to the last one.
            Place::Unquoted => {
                let n = memchr::memchr3(b'"', self.delimiter, b'\n', bytes).unwrap_or(bytes.len());
                match bytes[..n].last() {
                    Some(b'\r') => n - 1,
                    _ => n,
                }
            }
            Place::FieldStart | Place::Blank | Place::BlankQuote { .. } | Place::Closed => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The place behind bytes, one after the other, and whether they are refused: the definition.
    fn walked(delimiter: u8, bytes: &[u8]) -> (Place, bool) {
        let mut quotes = Quotes::new(delimiter);
        let refused = bytes.iter().any(|byte| quotes.pass(std::slice::from_ref(byte)).is_some());
        (quotes.place, refused)
    }

    proptest! {
        #[test]
        fn pieces_of_any_length_are_followed_as_single_bytes_are(
            text in r#"([a \\",\n\r;]|"a?b"|"\n"|, "a"){0,40}"#, cuts in prop::collection::vec(0usize..60, 0..4), semicolon: bool,
        ) {
            let (bytes, delimiter) = (text.as_bytes(), if semicolon { b';' } else { b',' });
            let (place, refused) = walked(delimiter, bytes);
            let mut ends: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            ends.push(bytes.len());
            ends.sort_unstable();
            let (mut quotes, mut from, mut failed) = (Quotes::new(delimiter), 0, false);
            for end in ends {
                failed |= quotes.pass(&bytes[from..end]).is_some();
                from = end;
                if failed {
                    break;
                }
            }
            prop_assert_eq!(failed, refused);
            if !refused {
                prop_assert_eq!(quotes.place, place);
            }
        }
    }

    #[test]
    fn a_quoted_field_behind_a_blank_is_refused_and_text_that_begins_with_a_quotation_is_not() {
        let refused = |text: &str| walked(b',', text.as_bytes()).1;
        for text in ["a, \"b\"\n", "  \"b\",a\n", "a, \"b, c\"\n", "a, \"\"\n", "a, \"b \"\"c\"\"\"\n"] {
            assert!(refused(text), "{text}");
        }
        for text in ["a, \"b\" said c\n", "a,\"b\"\n", "a, b \"c\"\n", " , \n", "a,  b\n"] {
            assert!(!refused(text), "{text}");
        }
    }
}
