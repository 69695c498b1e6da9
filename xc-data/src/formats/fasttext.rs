//! fastText: `__label__X __label__Y some words`.
//!
//! Every token that begins with the prefix is a label, at any position; the other tokens, joined by
//! single blanks, are the text. The specification is `docs/formats/fasttext.md`.

use crate::blocks::LineParser;
use crate::error::{LineError, ReadErrorKind, Snippet};
use crate::instance::TextInstance;
use crate::label::{LabelRef, LabelStrings};
use crate::row::MAX_IDS;
use crate::write::{same_rows, stream};
use std::io::{self, Write};
use xc_sparse::rows::LabelRows;

/// Prefix that marks a label.
pub const FASTTEXT_PREFIX: &str = "__label__";

/// Reads one line.
///
/// # Errors
/// Bytes that are not UTF-8, an empty label, a label that is no number under
/// [`LabelStrings::Ids`].
pub(crate) fn parse_fasttext_line(line: &[u8], labels: LabelStrings, into: &mut TextInstance) -> Result<(), LineError> {
    into.clear();
    let text = std::str::from_utf8(line).map_err(|e| utf8_error(line, e.valid_up_to()))?;
    let start = text.as_ptr() as usize;
    for token in text.split_ascii_whitespace() {
        let Some(name) = token.strip_prefix(FASTTEXT_PREFIX) else {
            if !into.text.is_empty() {
                into.text.push(' ');
            }
            into.text.push_str(token);
            continue;
        };
        let malformed = |expected| {
            let column = token.as_ptr() as usize - start;
            LineError::at(column, ReadErrorKind::Malformed { got: Snippet::new(token.as_bytes()), expected })
        };
        into.labels.push(match labels {
            _ if name.is_empty() => return Err(malformed("a label after __label__")),
            LabelStrings::Names => LabelRef::Name(name.to_owned()),
            LabelStrings::Ids => match name.parse() {
                Ok(id) if name.as_bytes()[0].is_ascii_digit() && u64::from(id) < MAX_IDS => LabelRef::Id(id),
                _ => return Err(malformed("a label id from 0 to 4294967294 after __label__")),
            },
        });
    }
    Ok(())
}

pub(crate) fn utf8_error(line: &[u8], valid: usize) -> LineError {
    let got = Snippet::new(&line[valid..line.len().min(valid + 8)]);
    LineError::at(valid, ReadErrorKind::Utf8 { got })
}

/// Instances of one block, and their lines.
#[derive(Clone, Debug, Default)]
pub struct TextRows {
    /// The instances.
    pub instances: Vec<TextInstance>,
    /// Line (from 1) of each instance.
    pub lines: Vec<u64>,
}

pub(crate) struct FastTextParser {
    pub(crate) labels: LabelStrings,
}

impl LineParser for FastTextParser {
    type Block = TextRows;

    fn parse_line(&self, line: &[u8], line_no: u64, into: &mut TextRows) -> Result<(), LineError> {
        let mut instance = TextInstance::default();
        parse_fasttext_line(line, self.labels, &mut instance)?;
        into.instances.push(instance);
        into.lines.push(line_no);
        Ok(())
    }
}

/// Appends one line of fastText, including its end. Runs of white space in the text become single
/// blanks.
///
/// # Errors
/// A label name that is empty or has white space, or a word of the text that would be read as a label.
pub fn push_fasttext_row<S: AsRef<str>>(
    out: &mut Vec<u8>,
    text: &str,
    labels: impl IntoIterator<Item = S>,
) -> io::Result<()> {
    let unwritable = |what: String| Err(io::Error::new(io::ErrorKind::InvalidData, what));
    let start = out.len();
    let separate = |out: &mut Vec<u8>| {
        if out.len() > start {
            out.push(b' ');
        }
    };
    for label in labels {
        let label = label.as_ref();
        if label.is_empty() || label.contains(|c: char| c.is_ascii_whitespace()) {
            return unwritable(format!(
                "fastText cannot hold the label name {label:?}: it is empty or has white space"
            ));
        }
        separate(out);
        out.extend_from_slice(FASTTEXT_PREFIX.as_bytes());
        out.extend_from_slice(label.as_bytes());
    }
    for word in text.split_ascii_whitespace() {
        if word.starts_with(FASTTEXT_PREFIX) {
            return unwritable(format!("fastText cannot hold the word {word:?}: it reads as a label"));
        }
        separate(out);
        out.extend_from_slice(word.as_bytes());
    }
    out.push(b'\n');
    Ok(())
}

/// Writes fastText; labels by name if there are names, otherwise by number.
pub fn write_fasttext<S: AsRef<str>>(
    into: &mut impl Write,
    texts: &[S],
    labels: &LabelRows,
    names: Option<&[String]>,
) -> io::Result<()> {
    same_rows(texts.len(), labels.len());
    stream(into, texts.len(), Vec::new(), |out, i| match names {
        Some(names) => push_fasttext_row(out, texts[i].as_ref(), labels.row(i).iter().map(|&l| &names[l as usize])),
        None => push_fasttext_row(out, texts[i].as_ref(), labels.row(i).iter().map(u32::to_string)),
    })
}
