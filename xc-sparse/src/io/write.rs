//! Writers of instances: XC text, svmlight, fastText, JSONL.
//!
//! Each writer appends one instance to a byte buffer, or streams a whole data set to a [`Write`]. What is written reads
//! back as the same rows, values bit for bit.

use super::entries::IndexBase;
use super::fasttext::FASTTEXT_PREFIX;
use super::output::{push_f32, push_u64};
use super::xc_text::XcHeader;
use crate::rows::{CsrView, LabelRows, Rows, SparseRow};
use serde::Serialize;
use std::io::{self, Write};

const FLUSH_BYTES: usize = 1 << 16;

/// Appends `features` as `id:value` entries.
fn push_features(out: &mut Vec<u8>, features: SparseRow<'_>, base: u64) {
    for (i, (id, value)) in features.iter().enumerate() {
        if i > 0 {
            out.push(b' ');
        }
        push_u64(out, u64::from(id) + base);
        out.push(b':');
        push_f32(out, value);
    }
}

fn push_labels(out: &mut Vec<u8>, labels: &[u32], base: u64) {
    for (i, &label) in labels.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        push_u64(out, u64::from(label) + base);
    }
}

/// Appends one line of XC text, its end included.
pub fn push_xc_row(out: &mut Vec<u8>, features: SparseRow<'_>, labels: &[u32]) {
    push_labels(out, labels, 0);
    if features.nnz() > 0 {
        out.push(b' ');
        push_features(out, features, 0);
    }
    out.push(b'\n');
}

/// Appends the header of XC text, its end included.
pub fn push_xc_header(out: &mut Vec<u8>, header: &XcHeader) {
    let numbers = [Some(header.n_rows), Some(header.n_features), header.n_labels];
    for (i, number) in numbers.into_iter().flatten().enumerate() {
        if i > 0 {
            out.push(b' ');
        }
        push_u64(out, number);
    }
    out.push(b'\n');
}

/// Appends one line of svmlight, its end included. A row with neither labels nor features is a single blank.
pub fn push_svmlight_row(out: &mut Vec<u8>, features: SparseRow<'_>, labels: &[u32], bases: super::SvmlightBases) {
    let add = |base| u64::from(base == IndexBase::One);
    push_labels(out, labels, add(bases.labels));
    if features.nnz() > 0 || labels.is_empty() {
        out.push(b' ');
        push_features(out, features, add(bases.features));
    }
    out.push(b'\n');
}

// Calls `push` for each row and writes the buffer out now and then.
fn stream(
    into: &mut impl Write,
    n_rows: usize,
    mut out: Vec<u8>,
    mut push: impl FnMut(&mut Vec<u8>, usize) -> io::Result<()>,
) -> io::Result<()> {
    for i in 0..n_rows {
        push(&mut out, i)?;
        if out.len() >= FLUSH_BYTES {
            into.write_all(&out)?;
            out.clear();
        }
    }
    into.write_all(&out)
}

fn same_rows(features: usize, labels: usize) {
    assert_eq!(features, labels, "{features} rows of features, {labels} rows of labels");
}

/// Writes XC text in the one-file form, with a header.
///
/// # Panics
/// If features and labels have different numbers of rows (here and below).
pub fn write_xc(into: &mut impl Write, features: CsrView<'_>, labels: &LabelRows) -> io::Result<()> {
    let rows = Rows::new(features);
    same_rows(rows.len(), labels.len());
    let mut out = Vec::new();
    let (n_rows, n_features, n_labels) = (rows.len() as u64, rows.n_features() as u64, Some(labels.n_labels() as u64));
    push_xc_header(&mut out, &XcHeader { n_rows, n_features, n_labels });
    stream(into, rows.len(), out, |out, i| {
        push_xc_row(out, rows.row(i), labels.row(i));
        Ok(())
    })
}

/// Writes the features of the two-file form of XC text.
pub fn write_xc_features(into: &mut impl Write, features: CsrView<'_>) -> io::Result<()> {
    let rows = Rows::new(features);
    let mut out = Vec::new();
    push_xc_header(
        &mut out,
        &XcHeader { n_rows: rows.len() as u64, n_features: rows.n_features() as u64, n_labels: None },
    );
    stream(into, rows.len(), out, |out, i| {
        push_features(out, rows.row(i), 0);
        out.push(b'\n');
        Ok(())
    })
}

/// Writes the labels of the two-file form of XC text: `label:1` entries.
pub fn write_xc_labels(into: &mut impl Write, labels: &LabelRows) -> io::Result<()> {
    let mut out = Vec::new();
    let header = XcHeader { n_rows: labels.len() as u64, n_features: labels.n_labels() as u64, n_labels: None };
    push_xc_header(&mut out, &header);
    stream(into, labels.len(), out, |out, i| {
        for (j, &label) in labels.row(i).iter().enumerate() {
            if j > 0 {
                out.push(b' ');
            }
            push_u64(out, u64::from(label));
            out.extend_from_slice(b":1");
        }
        out.push(b'\n');
        Ok(())
    })
}

/// Writes svmlight.
pub fn write_svmlight(
    into: &mut impl Write,
    features: CsrView<'_>,
    labels: &LabelRows,
    bases: super::SvmlightBases,
) -> io::Result<()> {
    let rows = Rows::new(features);
    same_rows(rows.len(), labels.len());
    stream(into, rows.len(), Vec::new(), |out, i| {
        push_svmlight_row(out, rows.row(i), labels.row(i), bases);
        Ok(())
    })
}

/// Appends one line of fastText, its end included. Runs of white space in the text become single blanks.
///
/// # Errors
/// A label name that is empty or has white space, or a word of the text that would read as a label.
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

/// Writes fastText; labels by name where there are names, else by number.
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

#[derive(Serialize)]
struct TextLine<'a> {
    text: &'a str,
    labels: Vec<NameOrId<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum NameOrId<'a> {
    Id(u32),
    Name(&'a str),
}

/// Appends one line of JSONL with text, its end included; labels by name where there are names, else by number.
pub fn push_jsonl_text(out: &mut Vec<u8>, text: &str, labels: &[u32], names: Option<&[String]>) -> io::Result<()> {
    let labels = labels.iter().map(|&l| match names {
        Some(names) => NameOrId::Name(&names[l as usize]),
        None => NameOrId::Id(l),
    });
    serde_json::to_writer(&mut *out, &TextLine { text, labels: labels.collect() })?;
    out.push(b'\n');
    Ok(())
}

/// Writes JSONL with the fields `text` and `labels`.
pub fn write_jsonl_text<S: AsRef<str>>(
    into: &mut impl Write,
    texts: &[S],
    labels: &LabelRows,
    names: Option<&[String]>,
) -> io::Result<()> {
    same_rows(texts.len(), labels.len());
    stream(into, texts.len(), Vec::new(), |out, i| push_jsonl_text(out, texts[i].as_ref(), labels.row(i), names))
}

/// Appends one line of JSONL with sparse features, its end included.
pub fn push_jsonl_features(
    out: &mut Vec<u8>,
    features: SparseRow<'_>,
    labels: &[u32],
    names: Option<&[String]>,
) -> io::Result<()> {
    out.extend_from_slice(b"{\"features\":{");
    for (i, (id, value)) in features.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        out.push(b'"');
        push_u64(out, u64::from(id));
        out.extend_from_slice(b"\":");
        push_f32(out, value);
    }
    out.extend_from_slice(b"},\"labels\":[");
    for (i, &label) in labels.iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        match names {
            Some(names) => serde_json::to_writer(&mut *out, &names[label as usize])?,
            None => push_u64(out, u64::from(label)),
        }
    }
    out.extend_from_slice(b"]}\n");
    Ok(())
}

/// Writes JSONL with the fields `features` and `labels`.
pub fn write_jsonl_features(
    into: &mut impl Write,
    features: CsrView<'_>,
    labels: &LabelRows,
    names: Option<&[String]>,
) -> io::Result<()> {
    let rows = Rows::new(features);
    same_rows(rows.len(), labels.len());
    stream(into, rows.len(), Vec::new(), |out, i| push_jsonl_features(out, rows.row(i), labels.row(i), names))
}
