//! XC-repository text: `labels feature:value ...` per line, below a header of counts.
//!
//! ```text
//!   one file                    two files: features         labels
//!   3 10 4                      3 10                        3 4
//!   0,2 1:0.5 7:1               1:0.5 7:1                   0:1 2:1
//!    3:2.5                      3:2.5
//!   1                                                       1:1
//! ```
//!
//! The specification is `docs/formats/xc-text.md`.

use crate::blocks::LineParser;
use crate::digits::push_u64;
use crate::entries;
use crate::entries::{IdKind, IndexBase};
use crate::error::{Bound, BoundFrom, LineError, ReadErrorKind, Snippet};
use crate::row::{MAX_IDS, RowBlock, RowBuffer, RowLimits, RowSeen, RowStore};
use crate::write::{push_features, push_labels, same_rows, stream};
use std::io::{self, Write};
use xc_sparse::rows::{CsrView, LabelRows, SparseRow};

/// Whether the first line is a header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HeaderRule {
    /// It is one if it consists of three whole numbers (or two, in the two-file form). A first line that
    /// is neither a header nor a row with features is an error.
    #[default]
    Detect,
    /// It must be a header.
    Required,
    /// It is a row.
    Absent,
}

/// Counts in the first line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct XcHeader {
    /// Number of rows.
    pub n_rows: u64,
    /// Number of features; number of columns in the two-file form.
    pub n_features: u64,
    /// Number of labels; `None` in the two-file form.
    pub n_labels: Option<u64>,
}

impl XcHeader {
    /// Reads the first line. `None` means that it is a row (only under [`HeaderRule::Detect`] and
    /// [`HeaderRule::Absent`]).
    ///
    /// # Errors
    /// A line that is not a header although one is expected; more than 4294967295 features or labels.
    pub fn parse(line: &[u8], rule: HeaderRule) -> Result<Option<Self>, LineError> {
        if rule == HeaderRule::Absent {
            return Ok(None);
        }
        let header = match entries::numbers(line).as_deref() {
            Some(&[n_rows, n_features, n_labels]) => Self { n_rows, n_features, n_labels: Some(n_labels) },
            Some(&[n_rows, n_features]) => Self { n_rows, n_features, n_labels: None },
            _ if rule == HeaderRule::Detect && line.contains(&b':') => return Ok(None),
            _ => {
                let expected = "a header of whole numbers: rows features labels (or rows columns)";
                return Err(LineError::whole(ReadErrorKind::Malformed { got: Snippet::new(line), expected }));
            }
        };
        for (what, got) in [("feature", header.n_features), ("label", header.n_labels.unwrap_or(0))] {
            if got > MAX_IDS {
                return Err(LineError::whole(ReadErrorKind::HeaderTooLarge { what, got, expected: MAX_IDS }));
            }
        }
        Ok(Some(header))
    }

    /// Bounds that this header sets, within those that the caller gave.
    ///
    /// # Errors
    /// The header has a different number of features, or more labels, than the caller gave.
    pub fn limits(&self, given: &RowLimits) -> Result<RowLimits, LineError> {
        if let Some(bound) = given.features
            && bound.below != self.n_features
        {
            let kind = ReadErrorKind::Width { got: self.n_features, expected: bound.below };
            return Err(LineError::whole(kind));
        }
        if let Some(expected) = given.known.filter(|&known| self.n_features < known) {
            return Err(LineError::whole(ReadErrorKind::Width { got: self.n_features, expected }));
        }
        self.limits_within(given)
    }

    /// The same where the header may also promise less.
    pub(crate) fn limits_within(&self, given: &RowLimits) -> Result<RowLimits, LineError> {
        let narrow = |what, got: u64, given: Option<Bound>| match given {
            Some(bound) if got > bound.below => {
                Err(LineError::whole(ReadErrorKind::HeaderTooLarge { what, got, expected: bound.below }))
            }
            _ => Ok(Some(Bound { below: got, from: BoundFrom::Header })),
        };
        Ok(RowLimits {
            features: narrow("feature", self.n_features, given.features)?,
            labels: match self.n_labels {
                Some(n) => narrow("label", n, given.labels)?,
                None => given.labels,
            },
            known: given.known,
        })
    }
}

#[inline]
fn append_row(line: &[u8], limits: &RowLimits, store: &mut RowStore) -> Result<(), LineError> {
    let mark = store.mark();
    let mut seen = RowSeen::default();
    let mut at = 0;
    if line.first().is_some_and(|&b| b != b' ' && b != b'\t') {
        at = entries::append_labels(line, 0, IndexBase::Zero, false, limits, store, &mut seen)?.unwrap_or(0);
    }
    entries::append_features(IdKind::Feature, line, at, IndexBase::Zero, limits, store, &mut seen)?;
    store.finish_row(mark, seen)
}

/// Reads one row of the one-file form into `row` (which it empties first): `l1,l2 f1:v1 f2:v2`. A
/// line that begins with a blank, or whose first token has a colon, has no labels.
///
/// # Errors
/// Column and cause; [`LineError::locate`] adds file and line.
pub(crate) fn parse_xc_line(line: &[u8], limits: &RowLimits, row: &mut RowBuffer) -> Result<(), LineError> {
    row.clear();
    append_row(line, limits, &mut row.store)
}

/// Reads one row of the two-file form: `index:value` entries alone. A row cannot have labels there.
///
/// # Errors
/// As [`parse_xc_line`].
pub(crate) fn parse_xc_columns_line(line: &[u8], limits: &RowLimits, row: &mut RowBuffer) -> Result<(), LineError> {
    row.clear();
    let mark = row.store.mark();
    let mut seen = RowSeen::default();
    entries::append_features(IdKind::Feature, line, 0, IndexBase::Zero, limits, &mut row.store, &mut seen)?;
    row.store.finish_row(mark, seen)
}

/// Rows of the one-file form.
pub(crate) struct XcParser {
    pub(crate) limits: RowLimits,
}

impl LineParser for XcParser {
    type Block = RowBlock;

    fn parse_line(&self, line: &[u8], line_no: u64, into: &mut RowBlock) -> Result<(), LineError> {
        append_row(line, &self.limits, &mut into.store)?;
        into.end_row(line_no);
        Ok(())
    }
}

/// Rows of the two-file form: `index:value` entries alone.
pub(crate) struct XcColumnsParser {
    pub(crate) limits: RowLimits,
    /// What the columns are: entries of labels keep their ids and not their values.
    pub(crate) columns: IdKind,
}

impl LineParser for XcColumnsParser {
    type Block = RowBlock;

    fn parse_line(&self, line: &[u8], line_no: u64, into: &mut RowBlock) -> Result<(), LineError> {
        let mark = into.store.mark();
        let mut seen = RowSeen::default();
        entries::append_features(self.columns, line, 0, IndexBase::Zero, &self.limits, &mut into.store, &mut seen)?;
        into.store.finish_row(mark, seen)?;
        if self.columns == IdKind::Label {
            let RowStore { labels, indices, values, .. } = &mut into.store;
            labels.extend_from_slice(&indices[mark.feature..]);
            indices.truncate(mark.feature);
            values.truncate(mark.feature);
        }
        into.end_row(line_no);
        Ok(())
    }
}

/// Appends one line of XC text, including its end.
pub fn push_xc_row(out: &mut Vec<u8>, features: SparseRow<'_>, labels: &[u32]) {
    push_labels(out, labels, 0);
    if features.nnz() > 0 {
        out.push(b' ');
        push_features(out, features, 0);
    }
    out.push(b'\n');
}

/// Appends the header of XC text, including its line end.
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

/// Writes XC text in the one-file form, with a header.
///
/// # Panics
/// If features and labels have different numbers of rows (here and below).
pub fn write_xc(into: &mut impl Write, features: CsrView<'_>, labels: &LabelRows) -> io::Result<()> {
    let rows = features;
    same_rows(rows.rows(), labels.len());
    let mut out = Vec::new();
    let (n_rows, n_features, n_labels) = (rows.rows() as u64, rows.cols() as u64, Some(labels.n_labels() as u64));
    push_xc_header(&mut out, &XcHeader { n_rows, n_features, n_labels });
    stream(into, rows.rows(), out, |out, i| {
        push_xc_row(out, rows.row(i), labels.row(i));
        Ok(())
    })
}

/// Writes the features of the two-file form of XC text.
pub fn write_xc_features(into: &mut impl Write, features: CsrView<'_>) -> io::Result<()> {
    let rows = features;
    let mut out = Vec::new();
    push_xc_header(&mut out, &XcHeader { n_rows: rows.rows() as u64, n_features: rows.cols() as u64, n_labels: None });
    stream(into, rows.rows(), out, |out, i| {
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
