//! Multilabel svmlight (libsvm): `l1,l2 qid:7 f:v f:v # comment`.
//!
//! The caller states the base of the feature ids. `qid:` must be a whole number and is ignored; a
//! comment extends from `#` to the end of the line; a line with nothing else is not a row. The
//! specification is `docs/formats/svmlight.md`.

use crate::blocks::LineParser;
use crate::entries;
use crate::entries::{IdKind, IndexBase};
use crate::error::{LineError, ReadErrorKind, Snippet};
use crate::number::{is_blank, parse_u64, token_end};
use crate::row::{RowBlock, RowBuffer, RowLimits, RowSeen, RowStore};
use crate::write::{push_features, push_labels, same_rows, stream};
use std::io::{self, Write};
use xc_sparse::rows::{CsrView, LabelRows, SparseRow};

/// Bases of the ids in an svmlight file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SvmlightBases {
    /// Base of the feature ids.
    pub features: IndexBase,
    /// Base of the label ids.
    pub labels: IndexBase,
}

/// Reads one line into `row`; false when the line holds no row (blank or only a comment).
///
/// # Errors
/// Column and cause.
pub(crate) fn parse_svmlight_line(
    line: &[u8],
    form: SvmlightForm,
    limits: &RowLimits,
    row: &mut RowBuffer,
) -> Result<bool, LineError> {
    row.clear();
    append_row(line, form, limits, &mut row.store)
}

/// How the rows of a file are read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SvmlightForm {
    pub(crate) bases: SvmlightBases,
    /// Whether the labels are read, which stand first: an entry in their place may be a label with a weight.
    pub(crate) labels_first: bool,
}

fn append_row(line: &[u8], form: SvmlightForm, limits: &RowLimits, store: &mut RowStore) -> Result<bool, LineError> {
    let bases = form.bases;
    let comment = memchr::memchr(b'#', line);
    let line = &line[..comment.unwrap_or(line.len())];
    if comment.is_some() && line.iter().all(|&b| is_blank(b)) {
        return Ok(false);
    }
    if line.is_empty() {
        return Ok(false);
    }
    let mark = store.mark();
    let mut seen = RowSeen::default();
    let mut at = 0;
    if !is_blank(line[0]) && !line.starts_with(b"qid:") {
        at = match entries::append_labels(line, 0, bases.labels, true, limits, store, &mut seen)? {
            None if form.labels_first => {
                let got = Snippet::new(&line[..token_end(line, 0)]);
                let expected = "labels, without weights; a row without labels begins with a blank";
                return Err(LineError::at(0, ReadErrorKind::Malformed { got, expected }));
            }
            end => end.unwrap_or(0),
        };
    }
    while line.get(at).copied().is_some_and(is_blank) {
        at += 1;
    }
    if line[at..].starts_with(b"qid:") {
        let end = token_end(line, at);
        if parse_u64(&line[at + 4..end]).is_none() {
            let got = Snippet::new(&line[at..end]);
            return Err(LineError::at(at, ReadErrorKind::Malformed { got, expected: "qid:number" }));
        }
        at = end;
    }
    entries::append_features(IdKind::Feature, line, at, bases.features, limits, store, &mut seen)?;
    store.finish_row(mark, seen)?;
    Ok(true)
}

pub(crate) struct SvmlightParser {
    pub(crate) form: SvmlightForm,
    pub(crate) limits: RowLimits,
}

impl LineParser for SvmlightParser {
    type Block = RowBlock;

    fn parse_line(&self, line: &[u8], line_no: u64, into: &mut RowBlock) -> Result<(), LineError> {
        if append_row(line, self.form, &self.limits, &mut into.store)? {
            into.end_row(line_no);
        }
        Ok(())
    }
}

/// Appends one line of svmlight, including its end. A row with neither labels nor features is a single
/// blank.
pub fn push_svmlight_row(out: &mut Vec<u8>, features: SparseRow<'_>, labels: &[u32], bases: SvmlightBases) {
    let add = |base| u64::from(base == IndexBase::One);
    push_labels(out, labels, add(bases.labels));
    if features.nnz() > 0 || labels.is_empty() {
        out.push(b' ');
        push_features(out, features, add(bases.features));
    }
    out.push(b'\n');
}

/// Writes svmlight.
pub fn write_svmlight(
    into: &mut impl Write,
    features: CsrView<'_>,
    labels: &LabelRows,
    bases: SvmlightBases,
) -> io::Result<()> {
    let rows = features;
    same_rows(rows.rows(), labels.len());
    stream(into, rows.rows(), Vec::new(), |out, i| {
        push_svmlight_row(out, rows.row(i), labels.row(i), bases);
        Ok(())
    })
}
