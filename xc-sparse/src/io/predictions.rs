//! Ranked lists in files.
//!
//! | form | one line per instance |
//! |---|---|
//! | lines | `label:score label:score`, best first, empty if there are none |
//! | lines with names | `name:score TAB name:score` |
//! | jsonl | `{"labels":[4,9],"scores":[0.5,0.25]}`, `"names"` if labels have names; `{"error":"..."}` |
//! | npz | a csr matrix, rows in ranking order |
//!
//! The specification is `docs/formats/predictions.md`.

use super::blocks::{BlockReader, Blocks, LineParser};
use super::dataset::open_blocks;
use super::digits::{push_f32, push_u64};
use super::entries::{self, IdKind};
use super::error::{LineError, ReadError, ReadErrorKind, Snippet};
use super::format::Format;
use super::formats::fasttext::utf8_error;
use super::jsonl;
use super::label::LabelNames;
use super::npz::{self, Layout};
use super::number::{is_blank, scan_f32, scan_id, token_end};
use super::options::ReadOptions;
use super::row::Limits;
use super::source::Source;
use crate::rank::{RankedBatch, Scored, rank_order};
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::io::{self, Seek, Write};
use std::path::Path;

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

/// Appends `name:score TAB name:score` and the line end.
///
/// # Panics
/// If a label has no name (here and below).
pub fn push_prediction_names(out: &mut Vec<u8>, row: &[Scored], names: &[String]) {
    for (i, item) in row.iter().enumerate() {
        if i > 0 {
            out.push(b'\t');
        }
        out.extend_from_slice(names[item.label as usize].as_bytes());
        out.push(b':');
        push_f32(out, item.score);
    }
    out.push(b'\n');
}

/// Additional content of a JSON answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AnswerNotes<'a> {
    /// The query's id, as JSON.
    pub id: Option<&'a str>,
    /// Number of terms of a text that the model knows; written if it is 0.
    pub known_terms: Option<usize>,
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
    }
}

/// Appends `{"id":...,"error":"..."}` and the line end: the answer to a query that failed.
pub fn push_prediction_error(out: &mut Vec<u8>, id: Option<&str>, error: &str) {
    out.push(b'{');
    AnswerNotes { id, known_terms: None }.push(out);
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
    let mut indptr = vec![0usize];
    let (mut labels, mut scores) = (Vec::new(), Vec::new());
    for row in batch.iter() {
        for item in row {
            assert!((item.label as usize) < n_labels, "label {} among {n_labels}", item.label);
            labels.push(item.label);
            scores.push(item.score);
        }
        indptr.push(labels.len());
    }
    npz::write_npz_arrays(into, Layout::Csr, batch.len(), n_labels, &indptr, &labels, &scores)
}

/// Reads predictions: lines, JSONL or npz, detected from name and content or stated in
/// [`ReadOptions::format`] ([`Format::Xc`] means lines). Rows are returned in ranking order.
/// [`ReadOptions::n_labels`] bounds the labels.
///
/// # Errors
/// A repeated label in a row, NaN, a label out of range, or a problem of the file. An empty file has no
/// predictions and is an error.
pub fn read_predictions(path: &Path, options: &ReadOptions) -> Result<RankedBatch, ReadError> {
    let format = match options.format {
        Some(format) => format,
        None => match Format::of_name(path) {
            Some(format) => format,
            None => prediction_format(path, options)?,
        },
    };
    match format {
        Format::Npz => read_npz(path, options),
        Format::Jsonl => read_lines(path, options, JsonParser { limits: options.limits() }),
        Format::Xc => match &options.label_names {
            Some(names) if holds_names(path, options, names)? => {
                read_lines(path, options, NamedParser { names, limits: options.limits() })
            }
            _ => read_lines(path, options, ScoreParser { limits: options.limits() }),
        },
        other => {
            let kind = ReadErrorKind::WrongFormat { format: other.name(), expected: "predictions" };
            Err(ReadError::path(path, kind))
        }
    }
}

const EXPECTED: &str = "one line of label:score entries per instance";

/// Whether the first list that is not empty holds names. A single name that is a number reads as an id: names are
/// separated by tabs, ids by blanks as a rule.
fn holds_names(path: &Path, options: &ReadOptions, names: &LabelNames) -> Result<bool, ReadError> {
    let mut reader = open_blocks(path, options)?;
    let mut line = Vec::new();
    while reader.first_line(&mut line)? {
        if line.iter().all(|&byte| is_blank(byte)) {
            continue;
        }
        let limits = Limits::default();
        // A list that fails part way leaves its beginning in the block: each parser has one of its own.
        let by_id = ScoreParser { limits }.parse_line(&line, 1, &mut ScoreBlock::default()).is_ok();
        let by_name = NamedParser { names, limits }.parse_line(&line, 1, &mut ScoreBlock::default()).is_ok();
        return Ok(match (by_id, by_name) {
            (true, true) => line.contains(&b'\t'),
            (true, false) => false,
            (false, true) => true,
            (false, false) => !line[0].is_ascii_digit(),
        });
    }
    Ok(false)
}

fn prediction_format(path: &Path, options: &ReadOptions) -> Result<Format, ReadError> {
    let source = Source::open_to_look(path, options.max_expanded_bytes)?;
    let mut reader = BlockReader::new(source, options.block_bytes, options.max_line_bytes);
    let mut line = Vec::new();
    if !reader.first_line(&mut line)? {
        return Err(ReadError::path(path, ReadErrorKind::Empty { expected: EXPECTED }));
    }
    Ok(match line.first() {
        Some(b'{') => Format::Jsonl,
        _ if line.starts_with(b"PK\x03\x04") => Format::Npz,
        _ => Format::Xc,
    })
}

fn read_lines<P>(path: &Path, options: &ReadOptions, parser: P) -> Result<RankedBatch, ReadError>
where
    P: LineParser<Block = ScoreBlock>,
{
    let mut reader = open_blocks(path, options)?;
    let mut line = Vec::new();
    if !reader.first_line(&mut line)? {
        return Err(ReadError::path(path, ReadErrorKind::Empty { expected: EXPECTED }));
    }
    reader.put_back(&line);
    let mut batch = RankedBatch::new();
    for block in Blocks::new(reader, parser) {
        batch.append(&block?.batch);
    }
    Ok(batch)
}

#[derive(Default)]
struct ScoreBlock {
    batch: RankedBatch,
    row: Vec<Scored>,
    labels: Vec<u32>,
}

impl ScoreBlock {
    // Takes the row being read; lists of external programs need not break ties as ours do, so each
    // is sorted.
    fn end_row(&mut self) -> Result<(), LineError> {
        self.labels.clear();
        self.labels.extend(self.row.iter().map(|s| s.label));
        self.labels.sort_unstable();
        if let Some(w) = self.labels.windows(2).find(|w| w[0] == w[1]) {
            return Err(LineError::whole(ReadErrorKind::RepeatedLabel { label: w[0] }));
        }
        self.row.sort_by(|&a, &b| rank_order(a, b));
        self.batch.push_row(&self.row);
        self.row.clear();
        Ok(())
    }
}

struct ScoreParser {
    limits: Limits,
}

impl LineParser for ScoreParser {
    type Block = ScoreBlock;

    fn parse_line(&self, line: &[u8], _: u64, into: &mut ScoreBlock) -> Result<(), LineError> {
        let mut at = 0;
        loop {
            while line.get(at).copied().is_some_and(is_blank) {
                at += 1;
            }
            if at >= line.len() {
                return into.end_row();
            }
            let (label, colon) = match scan_id(line, at) {
                Ok((label, end)) if line.get(end) == Some(&b':') => (label, end),
                _ => return Err(entries::pair_error(IdKind::Label, line, at)),
            };
            // Infinite scores have a place in a ranking, NaN has not.
            let (score, end) = match scan_f32(line, colon + 1) {
                Ok((score, end)) if !score.is_nan() => (score, end),
                _ => {
                    let got = Snippet::new(&line[colon + 1..token_end(line, colon + 1)]);
                    let kind = ReadErrorKind::Malformed { got, expected: "a score (a number)" };
                    return Err(LineError::at(colon + 1, kind));
                }
            };
            if u64::from(label) >= Limits::below(self.limits.labels) {
                return Err(entries::range_error(IdKind::Label, label, self.limits.labels, at));
            }
            into.row.push(Scored { label, score });
            at = end;
        }
    }
}

/// `name:score TAB name:score`.
struct NamedParser<'a> {
    names: &'a LabelNames,
    limits: Limits,
}

impl LineParser for NamedParser<'_> {
    type Block = ScoreBlock;

    fn parse_line(&self, line: &[u8], _: u64, into: &mut ScoreBlock) -> Result<(), LineError> {
        let text = std::str::from_utf8(line).map_err(|e| utf8_error(line, e.valid_up_to()))?;
        let mut at = 0;
        for entry in text.split('\t').filter(|_| !line.iter().copied().all(is_blank)) {
            let malformed = |expected| {
                LineError::at(at, ReadErrorKind::Malformed { got: Snippet::new(entry.as_bytes()), expected })
            };
            let (name, score) = entry.rsplit_once(':').ok_or_else(|| malformed("name:score"))?;
            let score = score.parse::<f32>().ok().filter(|score| !score.is_nan());
            let score = score.ok_or_else(|| malformed("name:score, where the score is a number"))?;
            let label = self.names.id(name).ok_or_else(|| {
                let got = Snippet::new(name.as_bytes());
                LineError::at(at, ReadErrorKind::UnknownLabel { got, known: self.names.len() })
            })?;
            if u64::from(label) >= Limits::below(self.limits.labels) {
                return Err(entries::range_error(IdKind::Label, label, self.limits.labels, at));
            }
            into.row.push(Scored { label, score });
            at += entry.len() + 1;
        }
        into.end_row()
    }
}

struct JsonParser {
    limits: Limits,
}

#[derive(Deserialize)]
struct JsonRow {
    labels: Option<Vec<u32>>,
    scores: Option<Vec<f32>>,
    /// Of a query that has no answer.
    error: Option<IgnoredAny>,
}

impl LineParser for JsonParser {
    type Block = ScoreBlock;

    fn parse_line(&self, line: &[u8], _: u64, into: &mut ScoreBlock) -> Result<(), LineError> {
        let row: JsonRow = serde_json::from_slice(line).map_err(|e| jsonl::json_error(&e))?;
        let problem = |problem: String| LineError::whole(ReadErrorKind::Json { problem: problem.into() });
        let (labels, scores) = match (row.labels, row.scores, row.error) {
            (None, None, Some(_)) => return into.end_row(),
            (None, ..) => return Err(problem("missing field `labels`".to_owned())),
            (_, None, _) => return Err(problem("missing field `scores`".to_owned())),
            (Some(labels), Some(scores), _) => (labels, scores),
        };
        if labels.len() != scores.len() {
            return Err(problem(format!(
                "{} labels and {} scores, expected one score for each label",
                labels.len(),
                scores.len()
            )));
        }
        for (label, score) in labels.into_iter().zip(scores) {
            if u64::from(label) >= Limits::below(self.limits.labels) {
                let mut error = entries::range_error(IdKind::Label, label, self.limits.labels, 0);
                error.column = 0;
                return Err(error);
            }
            if score.is_nan() {
                return Err(problem(format!("label {label} has a score that is not a number")));
            }
            into.row.push(Scored { label, score });
        }
        into.end_row()
    }
}

fn read_npz(path: &Path, options: &ReadOptions) -> Result<RankedBatch, ReadError> {
    let file = path.display().to_string();
    let matrix = npz::read_npz(path, options)?;
    if matrix.layout != Layout::Csr {
        let kind = ReadErrorKind::WrongFormat { format: "a matrix by columns (csc)", expected: "predictions by rows" };
        return Err(ReadError::path(path, kind));
    }
    let limits = options.limits();
    let mut block = ScoreBlock::default();
    for row in 0..matrix.rows {
        for i in matrix.indptr[row]..matrix.indptr[row + 1] {
            let label = matrix.indices[i];
            if u64::from(label) >= Limits::below(limits.labels) {
                let mut error = entries::range_error(IdKind::Label, label, limits.labels, 0);
                error.column = 0;
                return Err(ReadError::row(&file, row as u64, error.kind));
            }
            block.row.push(Scored { label, score: matrix.values[i] });
        }
        block.end_row().map_err(|e| ReadError::row(&file, row as u64, e.kind))?;
    }
    Ok(block.batch)
}
