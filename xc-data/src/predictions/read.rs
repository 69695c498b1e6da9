//! Ranked lists from files and streams.

use crate::blocks::{BlockReader, Blocks, LineParser};
use crate::entries;
use crate::entries::IdKind;
use crate::error::{LineError, ReadError, ReadErrorKind, Snippet};
use crate::format::Format;
use crate::formats::fasttext::utf8_error;
use crate::ids::RowId;
use crate::jsonl;
use crate::label::{LabelNames, LabelRef};
use crate::npz;
use crate::npz::NpzLayout;
use crate::number::{is_blank, scan_f32, scan_id, token_end};
use crate::options::ReadOptions;
use crate::row::RowLimits;
use crate::source::Source;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use xc_sparse::rank::{RankedBatch, Scored};

/// Ranked lists, and what their file says beside them.
#[derive(Clone, Debug, Default)]
pub struct Predictions {
    /// One list per instance.
    pub ranked: RankedBatch,
    /// Ids of the instances (JSONL); empty if no list has one, else one per list.
    pub ids: Vec<Option<RowId>>,
    /// Number of columns of a matrix (npz).
    pub n_columns: Option<usize>,
}

/// Reads predictions: lines, JSONL or npz, detected from name and content or stated in [`FileForm::format`](crate::FileForm::format)
/// ([`Format::Xc`] means lines). [`ReadOptions::n_labels`] bounds the labels.
///
/// Lists are sorted: larger scores first, equal ones by ascending label. Scores are compared as f64, so that the order
/// of other programs is kept where two scores are one f32.
///
/// # Errors
/// A repeated label in a row, NaN, a label out of range, or a problem of the file. An empty file has no
/// predictions and is an error.
pub fn read_predictions(path: impl AsRef<Path>, options: &ReadOptions) -> Result<RankedBatch, ReadError> {
    let path = path.as_ref();
    read_predictions_of(path, options).map(|all| all.ranked)
}

/// Reads predictions, and the ids that their file gives.
///
/// # Errors
/// As [`read_predictions`].
pub fn read_predictions_of(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Predictions, ReadError> {
    let path = path.as_ref();
    let format = options.form.format.or_else(|| Format::of_name(path));
    match format {
        Some(Format::Npz) => read_npz(path, options),
        None if begins_as_archive(path) => read_npz(path, options),
        format => read_source(Source::open(path, options.max_expanded_bytes)?, format, options),
    }
}

/// Reads predictions from a stream, as lines or JSONL; `name` is used in messages.
///
/// # Errors
/// As [`read_predictions`]; npz, which is read back and forth.
pub fn read_prediction_stream(
    name: &str,
    input: impl Read + Send + 'static,
    options: &ReadOptions,
) -> Result<Predictions, ReadError> {
    read_source(Source::from_reader(name, input, options.max_expanded_bytes)?, options.form.format, options)
}

const EXPECTED: &str = "one line of label:score entries per instance";
const ARCHIVE: &[u8] = b"PK\x03\x04";

fn begins_as_archive(path: &Path) -> bool {
    let mut head = [0; 4];
    // What is read of a pipe is gone; what cannot be read is reported by the reader.
    let is_file = std::fs::metadata(path).is_ok_and(|meta| meta.is_file());
    is_file && File::open(path).and_then(|mut file| file.read_exact(&mut head)).is_ok() && head == *ARCHIVE
}

fn read_source(source: Source, format: Option<Format>, options: &ReadOptions) -> Result<Predictions, ReadError> {
    let mut reader = BlockReader::new(source, options.block_bytes, options.max_line_bytes);
    let mut line = Vec::new();
    if !reader.first_line(&mut line)? {
        return Err(ReadError::file(reader.name(), ReadErrorKind::Empty { expected: EXPECTED }));
    }
    let format = format.unwrap_or(if line.first() == Some(&b'{') { Format::Jsonl } else { Format::Xc });
    let of = Of { names: options.label_names.as_deref(), limits: options.limits() };
    let refused = |kind| Err(ReadError::file(reader.name(), kind));
    match format {
        _ if line.starts_with(ARCHIVE) => return refused(ReadErrorKind::ArchiveStream),
        Format::Jsonl | Format::Xc => reader.put_back(&line),
        other => {
            let expected = "predictions, which are lines, jsonl or npz";
            return refused(ReadErrorKind::WrongFormat { format: other.name(), expected });
        }
    }
    match format {
        Format::Jsonl => gather(reader, JsonParser(of)),
        _ => gather(reader, ListParser(of)),
    }
}

fn gather<P: LineParser<Block = ScoreBlock>>(reader: BlockReader, parser: P) -> Result<Predictions, ReadError> {
    let file = reader.name().to_owned();
    let mut all = Predictions::default();
    let (mut first_ids, mut first_names) = (None, None);
    for block in Blocks::new(reader, parser) {
        let block = block?;
        all.ranked.append(&block.batch);
        all.ids.extend(block.ids);
        first_ids = first_ids.or(block.first_ids);
        first_names = first_names.or(block.first_names);
        if let (Some(ids), Some(names)) = (first_ids, first_names) {
            return Err(ReadError::line(&file, ids, ReadErrorKind::IdsAmongNames { names }));
        }
    }
    if all.ids.iter().all(Option::is_none) {
        all.ids.clear();
    }
    Ok(all)
}

/// An entry of a list.
struct Item {
    label: u32,
    score: f32,
    /// The score by which the list is sorted.
    exact: f64,
}

#[derive(Default)]
struct ScoreBlock {
    batch: RankedBatch,
    ids: Vec<Option<RowId>>,
    /// The first line of ids, and the first of names, where names are given.
    first_ids: Option<u64>,
    first_names: Option<u64>,
    row: Vec<Item>,
    labels: Vec<u32>,
}

impl ScoreBlock {
    /// Takes the row being read; other programs need not break ties as ours do, so each is sorted.
    fn end_row(&mut self) -> Result<(), LineError> {
        self.labels.clear();
        self.labels.extend(self.row.iter().map(|item| item.label));
        self.labels.sort_unstable();
        if let Some(w) = self.labels.windows(2).find(|w| w[0] == w[1]) {
            return Err(LineError::whole(ReadErrorKind::RepeatedLabel { label: w[0] }));
        }
        let order = |a: &Item, b: &Item| b.exact.partial_cmp(&a.exact).map(|o| o.then(a.label.cmp(&b.label)));
        // No score is NaN.
        self.row.sort_by(|a, b| order(a, b).unwrap_or(std::cmp::Ordering::Equal));
        self.batch.push_items(self.row.iter().map(|&Item { label, score, .. }| Scored { label, score }));
        self.row.clear();
        Ok(())
    }
}

/// What labels may be.
#[derive(Clone, Copy)]
struct Of<'a> {
    names: Option<&'a LabelNames>,
    limits: RowLimits,
}

impl Of<'_> {
    fn check(&self, label: u32, column: Option<usize>) -> Result<(), LineError> {
        if u64::from(label) < RowLimits::below(self.limits.labels) {
            return Ok(());
        }
        let mut error = entries::range_error(IdKind::Label, label, self.limits.labels, column.unwrap_or(0));
        match self.names.filter(|names| label as usize >= names.len()) {
            Some(names) if names.id(&label.to_string()).is_some() => {
                error.kind = ReadErrorKind::NumberName { label, names: names.len() };
            }
            Some(names) => error.kind = names.has_no_name(label),
            None => {}
        }
        if column.is_none() {
            error.column = 0;
        }
        Err(error)
    }

    fn id(&self, name: &str, column: Option<usize>) -> Result<u32, LineError> {
        let kind = match self.names {
            Some(names) => match names.id(name) {
                Some(id) => return Ok(id),
                None => names.has_no_label(name),
            },
            None => {
                let got = Snippet::new(name.as_bytes());
                ReadErrorKind::Malformed { got, expected: "a label id, since no label names are given" }
            }
        };
        Err(LineError { column: column.map_or(0, |at| at as u64 + 1), kind })
    }
}

/// Lists of ids, or of names where names are given.
struct ListParser<'a>(Of<'a>);

impl LineParser for ListParser<'_> {
    type Block = ScoreBlock;

    fn parse_line(&self, line: &[u8], line_no: u64, into: &mut ScoreBlock) -> Result<(), LineError> {
        if line.iter().all(|&byte| is_blank(byte)) {
            return into.end_row();
        }
        let Some(names) = self.0.names else {
            self.ids(line, into)?;
            return into.end_row();
        };
        // A name that looks like an id is in quotes, so each line shows what it holds.
        match self.ids(line, into) {
            Ok(()) => {
                if line.contains(&b'\t') && into.row.iter().all(|item| names.id(&item.label.to_string()).is_some()) {
                    return Err(LineError::whole(ReadErrorKind::NamesOrIds));
                }
                into.first_ids.get_or_insert(line_no);
                into.row.iter().try_for_each(|item| self.0.check(item.label, None))?;
            }
            Err(by_id) => {
                into.row.clear();
                match self.named(line, into) {
                    Err(_) if line[0].is_ascii_digit() => return Err(by_id),
                    outcome => outcome?,
                }
                into.first_names.get_or_insert(line_no);
            }
        }
        into.end_row()
    }
}

impl ListParser<'_> {
    /// `label:score label:score`. Where names are given, the caller checks the ids.
    fn ids(&self, line: &[u8], into: &mut ScoreBlock) -> Result<(), LineError> {
        let mut at = 0;
        loop {
            while line.get(at).copied().is_some_and(is_blank) {
                at += 1;
            }
            if at >= line.len() {
                return Ok(());
            }
            let (label, colon) = match scan_id(line, at) {
                Ok((label, end)) if line.get(end) == Some(&b':') => (label, end),
                _ => return Err(entries::pair_error(IdKind::Label, line, at)),
            };
            let end = token_end(line, colon + 1);
            // Infinite scores have a place in a ranking, NaN has not.
            let exact = std::str::from_utf8(&line[colon + 1..end]).ok().and_then(|token| token.parse::<f64>().ok());
            let (Ok((score, _)), Some(exact)) = (scan_f32(line, colon + 1), exact.filter(|score| !score.is_nan()))
            else {
                let got = Snippet::new(&line[colon + 1..end]);
                let kind = ReadErrorKind::Malformed { got, expected: "a score (a number)" };
                return Err(LineError::at(colon + 1, kind));
            };
            if self.0.names.is_none() {
                self.0.check(label, Some(at))?;
            }
            into.row.push(Item { label, score, exact });
            at = end;
        }
    }

    /// `name:score TAB name:score`; a name in quotes is a JSON string.
    fn named(&self, line: &[u8], into: &mut ScoreBlock) -> Result<(), LineError> {
        let text = std::str::from_utf8(line).map_err(|e| utf8_error(line, e.valid_up_to()))?;
        let mut at = 0;
        for entry in text.split('\t') {
            let malformed = |expected| {
                LineError::at(at, ReadErrorKind::Malformed { got: Snippet::new(entry.as_bytes()), expected })
            };
            let (name, score) = entry.rsplit_once(':').ok_or_else(|| malformed("name:score"))?;
            let exact = score.parse::<f64>().ok().filter(|score| !score.is_nan());
            let (Some(exact), Ok(score)) = (exact, score.parse::<f32>()) else {
                return Err(malformed("name:score, where the score is a number"));
            };
            let quoted: String;
            let name = if name.starts_with('"') {
                quoted = serde_json::from_str(name).map_err(|_| malformed("a name in quotes as a JSON string"))?;
                &quoted
            } else {
                name
            };
            let label = self.0.id(name, Some(at))?;
            self.0.check(label, Some(at))?;
            into.row.push(Item { label, score, exact });
            at += entry.len() + 1;
        }
        Ok(())
    }
}

struct JsonParser<'a>(Of<'a>);

#[derive(Deserialize)]
struct JsonRow<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    labels: Option<&'a RawValue>,
    #[serde(borrow)]
    scores: Option<Vec<&'a RawValue>>,
    /// Of a query that has no answer.
    error: Option<IgnoredAny>,
}

impl LineParser for JsonParser<'_> {
    type Block = ScoreBlock;

    fn parse_line(&self, line: &[u8], _: u64, into: &mut ScoreBlock) -> Result<(), LineError> {
        let text = jsonl::line_text(line)?;
        if !text.trim_ascii_start().starts_with('{') {
            let kind = ReadErrorKind::Malformed { got: Snippet::new(line), expected: "a JSON object" };
            return Err(LineError::whole(kind));
        }
        let row: JsonRow<'_> = serde_json::from_str(text).map_err(|e| jsonl::json_error(&e))?;
        into.ids.push(row.id.and_then(|id| RowId::of_json(id.get())));
        let problem = |problem: String| LineError::whole(ReadErrorKind::Json { problem: problem.into() });
        let (labels, scores) = match (row.labels, row.scores, row.error) {
            (None, None, Some(_)) => return into.end_row(),
            (None, ..) => return Err(problem("missing field `labels`".to_owned())),
            (_, None, _) => return Err(problem("missing field `scores`".to_owned())),
            (Some(labels), Some(scores), _) => (labels, scores),
        };
        let labels = jsonl::labels_of_json(labels.get()).map_err(|e| jsonl::json_error(&e).kind);
        let labels = labels.map_err(LineError::whole)?;
        if labels.len() != scores.len() {
            return Err(problem(format!(
                "{} labels and {} scores, expected one score for each label",
                labels.len(),
                scores.len()
            )));
        }
        for (label, score) in labels.into_iter().zip(scores) {
            let label = match label {
                LabelRef::Id(id) => id,
                LabelRef::Name(name) => self.0.id(&name, None)?,
            };
            self.0.check(label, None)?;
            // The digits are read as both types: f32 by way of f64 may be another f32.
            let digits = score.get();
            let exact = digits.parse::<f64>().ok().filter(|score| score.is_finite());
            let (Some(exact), Ok(score)) = (exact, digits.parse::<f32>()) else {
                let got = Snippet::new(digits.as_bytes());
                return Err(problem(format!("label {label} has the score {got}, expected a number")));
            };
            into.row.push(Item { label, score, exact });
        }
        into.end_row()
    }
}

fn read_npz(path: &Path, options: &ReadOptions) -> Result<Predictions, ReadError> {
    let file = path.display().to_string();
    let matrix = npz::read_npz(path, options)?;
    if matrix.layout != NpzLayout::Csr {
        let kind = ReadErrorKind::WrongFormat { format: "a matrix by columns (csc)", expected: "predictions by rows" };
        return Err(ReadError::path(path, kind));
    }
    let exact = npz::read_npz_values(path, options)?;
    let of = Of { names: options.label_names.as_deref(), limits: options.limits() };
    let mut block = ScoreBlock::default();
    for row in 0..matrix.rows {
        let at_row = |e: LineError| ReadError::row(&file, row as u64, e.kind);
        for i in matrix.indptr[row]..matrix.indptr[row + 1] {
            let (label, score) = (matrix.indices[i], matrix.values[i]);
            of.check(label, None).map_err(at_row)?;
            block.row.push(Item { label, score, exact: exact.get(i).map_or(f64::from(score), |&exact| exact) });
        }
        block.end_row().map_err(at_row)?;
    }
    Ok(Predictions { ranked: block.batch, ids: Vec::new(), n_columns: Some(matrix.columns) })
}
