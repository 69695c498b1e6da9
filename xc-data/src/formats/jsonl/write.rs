//! Writing JSONL.

use crate::digits::{push_f32, push_u64};
use crate::write::{same_rows, stream};
use serde::Serialize;
use std::io::{self, Write};
use xc_sparse::rows::{CsrView, LabelRows, SparseRow};

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

/// Appends one line of JSONL with text, including its end; labels by name if there are names, otherwise
/// by number.
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

/// Appends one line of JSONL with sparse features, including its end.
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
    let rows = features;
    same_rows(rows.rows(), labels.len());
    stream(into, rows.rows(), Vec::new(), |out, i| push_jsonl_features(out, rows.row(i), labels.row(i), names))
}
