//! Ranked lists as text, JSON and arrays.

use crate::csv::push_field;
use crate::digits::{push_f32, push_u64};
use crate::ids::id_text;
use crate::npz;
use crate::npz::NpzLayout;
use std::io::{self, Seek, Write};
use xc_sparse::rank::{RankedBatch, Scored};

/// How predictions are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PredictionFormat {
    /// `label:score` entries.
    #[default]
    Lines,
    /// One JSON object per line.
    Jsonl,
    /// A csr matrix for scipy.
    Npz,
}

/// Appends `label:score label:score` and the line end.
pub fn push_prediction_line(out: &mut Vec<u8>, row: &[Scored]) {
    for (i, item) in row.iter().enumerate() {
        if i > 0 {
            out.push(b' ');
        }
        push_u64(out, u64::from(item.label));
        out.push(b':');
        push_f32(out, item.score);
    }
    out.push(b'\n');
}

/// Appends `name:score TAB name:score` and the line end. A name that could be read as an id, or as a name in quotes, is
/// written as a JSON string: `"2019":0.5`.
///
/// # Panics
/// If a label has no name (here and below).
pub fn push_prediction_names(out: &mut Vec<u8>, row: &[Scored], names: &[String]) {
    for (i, item) in row.iter().enumerate() {
        if i > 0 {
            out.push(b'\t');
        }
        let name = &names[item.label as usize];
        if needs_quotes(name) {
            // Writing a string to memory cannot fail.
            _ = serde_json::to_writer(&mut *out, name);
        } else {
            out.extend_from_slice(name.as_bytes());
        }
        out.push(b':');
        push_f32(out, item.score);
    }
    out.push(b'\n');
}

/// Whether a name in a list could be read as something else: a number, alone or before a colon, looks like an id.
fn needs_quotes(name: &str) -> bool {
    let rest = name.trim_start_matches([' ', '\t']);
    let behind = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_number = behind.len() < rest.len() && (behind.is_empty() || behind.starts_with(':'));
    // The first name of a file also tells its format.
    let is_sign = name.starts_with(['"', '{', '\u{feff}']) || name.starts_with("PK\x03\x04");
    is_number || is_sign || rest.is_empty() || name.contains(char::is_control)
}

/// Appends a row of the columns [`PREDICTION_CSV_HEADER`](super::PREDICTION_CSV_HEADER) for each label: the instance's
/// id, given as JSON (its number where it has none), the rank from 1, the label's id and name, and the score. An empty list has no row.
pub fn push_prediction_csv(
    out: &mut Vec<u8>,
    row: &[Scored],
    names: Option<&[String]>,
    id: Option<&str>,
    number: usize,
) {
    for (rank, item) in row.iter().enumerate() {
        match id {
            Some(id) => push_field(out, &id_text(id), b','),
            None => push_u64(out, number as u64),
        }
        out.push(b',');
        push_u64(out, rank as u64 + 1);
        out.push(b',');
        push_u64(out, u64::from(item.label));
        out.push(b',');
        push_field(out, names.map_or("", |names| &names[item.label as usize]), b',');
        out.push(b',');
        push_f32(out, item.score);
        out.push(b'\n');
    }
}

/// Additional content of a JSON answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AnswerNotes<'a> {
    /// The query's id, as JSON.
    pub id: Option<&'a str>,
    /// Number of terms of a text that the model knows; written if it is 0.
    pub known_terms: Option<usize>,
    /// What was left out of the query; written if there is something.
    pub warnings: &'a [String],
}

impl AnswerNotes<'_> {
    fn push(&self, out: &mut Vec<u8>) {
        if let Some(id) = self.id {
            out.extend_from_slice(b"\"id\":");
            out.extend_from_slice(id.as_bytes());
            out.push(b',');
        }
        if self.known_terms == Some(0) {
            out.extend_from_slice(b"\"known_terms\":0,");
        }
        if !self.warnings.is_empty() {
            out.extend_from_slice(b"\"warnings\":");
            // Writing strings to memory cannot fail.
            _ = serde_json::to_writer(&mut *out, self.warnings);
            out.push(b',');
        }
    }
}

/// Appends `{"id":...,"error":"..."}` and the line end: the answer to a query that failed.
pub fn push_prediction_error(out: &mut Vec<u8>, id: Option<&str>, error: &str) {
    out.push(b'{');
    AnswerNotes { id, ..AnswerNotes::default() }.push(out);
    out.extend_from_slice(b"\"error\":");
    // Writing a string to memory cannot fail.
    _ = serde_json::to_writer(&mut *out, error);
    out.extend_from_slice(b"}\n");
}

/// Appends `{"labels":[...],"scores":[...]}` and the line end. The notes come first; if there are
/// names, `"names"` is between labels and scores. JSON requires finite scores; others become
/// `null`.
pub fn push_prediction_json(out: &mut Vec<u8>, row: &[Scored], names: Option<&[String]>, notes: &AnswerNotes<'_>) {
    let list = |out: &mut Vec<u8>, push: &mut dyn FnMut(&mut Vec<u8>, Scored)| {
        out.push(b'[');
        for (i, &item) in row.iter().enumerate() {
            if i > 0 {
                out.push(b',');
            }
            push(out, item);
        }
        out.push(b']');
    };
    out.push(b'{');
    notes.push(out);
    out.extend_from_slice(b"\"labels\":");
    list(out, &mut |out, item| push_u64(out, u64::from(item.label)));
    if let Some(names) = names {
        out.extend_from_slice(b",\"names\":");
        // Writing a string to memory cannot fail.
        list(out, &mut |out, item| _ = serde_json::to_writer(out, &names[item.label as usize]));
    }
    out.extend_from_slice(b",\"scores\":");
    list(out, &mut |out, item| match item.score.is_finite() {
        true => push_f32(out, item.score),
        false => out.extend_from_slice(b"null"),
    });
    out.extend_from_slice(b"}\n");
}

/// Writes all rows as lines; with names if there are names.
///
/// # Errors
/// The writer's error.
pub fn write_prediction_lines(into: &mut impl Write, batch: &RankedBatch, names: Option<&[String]>) -> io::Result<()> {
    write_rows(into, batch, |out, row| match names {
        Some(names) => push_prediction_names(out, row, names),
        None => push_prediction_line(out, row),
    })
}

/// Writes all rows as JSONL.
///
/// # Errors
/// The writer's error.
pub fn write_prediction_jsonl(into: &mut impl Write, batch: &RankedBatch, names: Option<&[String]>) -> io::Result<()> {
    write_rows(into, batch, |out, row| push_prediction_json(out, row, names, &AnswerNotes::default()))
}

fn write_rows(
    into: &mut impl Write,
    batch: &RankedBatch,
    mut push: impl FnMut(&mut Vec<u8>, &[Scored]),
) -> io::Result<()> {
    let mut out = Vec::new();
    for row in batch.iter() {
        push(&mut out, row);
        if out.len() >= 1 << 16 {
            into.write_all(&out)?;
            out.clear();
        }
    }
    into.write_all(&out)
}

/// Writes all rows as an npz matrix of `n_labels` columns; the entries of a row are in ranking order.
///
/// # Errors
/// The writer's error.
///
/// # Panics
/// If a label is at or above `n_labels`.
pub fn write_prediction_npz(into: impl Write + Seek, batch: &RankedBatch, n_labels: usize) -> io::Result<()> {
    let (indptr, labels, scores) = batch.to_arrays();
    if let Some(label) = labels.iter().find(|&&label| label as usize >= n_labels) {
        panic!("label {label} among {n_labels}");
    }
    npz::write_npz_arrays(into, NpzLayout::Csr, batch.len(), n_labels, &indptr, &labels, &scores)
}
