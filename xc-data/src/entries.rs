//! `id:value` entries and id lists: the grammar that XC text and svmlight share.

use super::error::{Bound, BoundFrom, LineError, ReadErrorKind, Snippet};
use super::number::{IdTrouble, is_blank, parse_u64, scan_f32, scan_id, token_end};
use super::row::{MAX_IDS, RowLimits, RowSeen, RowStore};

/// What an id stands for, in messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IdKind {
    Feature,
    Label,
}

impl IdKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Feature => "feature",
            Self::Label => "label",
        }
    }

    fn expected(self, trouble: IdTrouble, negative: bool) -> &'static str {
        match (self, trouble, negative) {
            (Self::Feature, IdTrouble::TooLarge, _) => "a feature id up to 4294967294",
            (Self::Label, IdTrouble::TooLarge, _) => "a label id up to 4294967294",
            (Self::Feature, _, true) => "a feature id that is not negative",
            (Self::Label, _, true) => "a label id that is not negative",
            (Self::Feature, ..) => "a feature id (a whole number)",
            (Self::Label, ..) => "a label id (a whole number)",
        }
    }
}

/// Says why `token` is not an id. `column` counts from 0.
#[cold]
pub(crate) fn id_error(kind: IdKind, token: &[u8], trouble: IdTrouble, column: usize) -> LineError {
    let expected = kind.expected(trouble, token.first() == Some(&b'-') && token.len() > 1);
    LineError::at(column, ReadErrorKind::Malformed { got: Snippet::new(token), expected })
}

#[cold]
pub(crate) fn range_error(kind: IdKind, id: u32, bound: Option<Bound>, column: usize) -> LineError {
    LineError::at(column, out_of_range(kind, id, bound))
}

pub(crate) fn out_of_range(kind: IdKind, id: u32, bound: Option<Bound>) -> ReadErrorKind {
    let bound = bound.unwrap_or(Bound { below: MAX_IDS, from: BoundFrom::Width });
    ReadErrorKind::OutOfRange { what: kind.name(), got: u64::from(id), bound }
}

/// Reads `value` from `at` to the next blank.
#[inline(always)]
pub(crate) fn value_at(line: &[u8], at: usize) -> Result<(f32, usize), LineError> {
    match scan_f32(line, at) {
        Ok((value, end)) if value.is_finite() => Ok((value, end)),
        Ok((_, end)) => Err(value_error(line, at, end)),
        Err(end) => Err(value_error(line, at, end)),
    }
}

#[cold]
fn value_error(line: &[u8], at: usize, end: usize) -> LineError {
    let token = &line[at..end];
    // Digits make the difference between a number too large and the words inf and nan.
    let not_finite = std::str::from_utf8(token).is_ok_and(|t| t.parse::<f32>().is_ok());
    let expected = match (not_finite, token.iter().any(u8::is_ascii_digit)) {
        (true, true) => "a value that f32 can hold",
        (true, false) => "a finite value",
        (false, _) => "a value (a number)",
    };
    LineError::at(at, ReadErrorKind::Malformed { got: Snippet::new(token), expected })
}

#[cold]
pub(crate) fn pair_error(kind: IdKind, line: &[u8], at: usize) -> LineError {
    let end = token_end(line, at);
    let token = &line[at..end];
    let Some(colon) = token.iter().position(|&b| b == b':') else {
        let expected = if kind == IdKind::Feature { "feature:value" } else { "label:value" };
        return LineError::at(at, ReadErrorKind::Malformed { got: Snippet::new(token), expected });
    };
    let id = &token[..colon];
    let trouble = match scan_id(id, 0) {
        Err(trouble) => trouble,
        Ok(_) => IdTrouble::NoDigit,
    };
    id_error(kind, id, trouble, at)
}

/// Base that ids of a file count from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IndexBase {
    /// The first id is 0.
    #[default]
    Zero,
    /// The first id is 1.
    One,
}

/// Appends `feature:value` entries from `at` to the end of the line. `kind` says in messages what
/// the ids are.
#[inline]
pub(crate) fn append_features(
    kind: IdKind,
    line: &[u8],
    mut at: usize,
    base: IndexBase,
    limits: &RowLimits,
    store: &mut RowStore,
    seen: &mut RowSeen,
) -> Result<(), LineError> {
    let below = RowLimits::below(limits.features);
    let base_id = u32::from(base == IndexBase::One);
    let mut next_id = 0u64; // smallest id that keeps the row ascending
    loop {
        while line.get(at).copied().is_some_and(is_blank) {
            at += 1;
        }
        if at >= line.len() {
            return Ok(());
        }
        let (written, colon) = match scan_id(line, at) {
            Ok((id, end)) if line.get(end) == Some(&b':') => (id, end),
            _ => return Err(pair_error(kind, line, at)),
        };
        let Some(id) = written.checked_sub(base_id) else {
            let got = Snippet::new(&line[at..token_end(line, at)]);
            return Err(LineError::at(at, ReadErrorKind::Malformed { got, expected: "feature ids counted from 1" }));
        };
        let (value, end) = value_at(line, colon + 1)?;
        if u64::from(id) >= below {
            return Err(range_error(kind, id, limits.features, at));
        }
        if limits.leaves_out(id) {
            seen.unseen += 1;
            at = end;
            continue;
        }
        seen.features_unsorted |= u64::from(id) < next_id;
        seen.zeros |= value == 0.0;
        next_id = u64::from(id) + 1;
        store.indices.push(id);
        store.values.push(value);
        at = end;
    }
}

/// Appends a comma-separated list of label ids from `at`; gives the position after it. `None` when
/// the first id is followed by a colon: then there is no list. `decimals` says whether `1.0` is 1.
#[inline]
pub(crate) fn append_labels(
    line: &[u8],
    start: usize,
    base: IndexBase,
    decimals: bool,
    limits: &RowLimits,
    store: &mut RowStore,
    seen: &mut RowSeen,
) -> Result<Option<usize>, LineError> {
    let below = RowLimits::below(limits.labels);
    let base_id = u32::from(base == IndexBase::One);
    let mut next_id = 0u64;
    let mut at = start;
    loop {
        let token_end_here =
            |at: usize| line[at..].iter().position(|&b| is_blank(b) || b == b',').map_or(line.len(), |n| at + n);
        let (written, end) = match scan_id(line, at) {
            Ok(found) => found,
            Err(trouble) => return Err(id_error(IdKind::Label, &line[at..token_end_here(at)], trouble, at)),
        };
        let end = if decimals && line.get(end) == Some(&b'.') { behind_zeros(line, end + 1) } else { end };
        let delimiter = line.get(end).copied();
        match delimiter {
            Some(b':') if at == start => return Ok(None),
            None | Some(b',' | b' ' | b'\t') => {}
            Some(_) => return Err(id_error(IdKind::Label, &line[at..token_end_here(at)], IdTrouble::NoDigit, at)),
        }
        let Some(id) = written.checked_sub(base_id) else {
            let got = Snippet::new(&line[at..token_end_here(at)]);
            return Err(LineError::at(at, ReadErrorKind::Malformed { got, expected: "label ids counted from 1" }));
        };
        if u64::from(id) >= below {
            return Err(range_error(IdKind::Label, id, limits.labels, at));
        }
        seen.labels_unsorted |= u64::from(id) < next_id;
        next_id = u64::from(id) + 1;
        store.labels.push(id);
        if delimiter != Some(b',') {
            return Ok(Some(end));
        }
        at = end + 1;
    }
}

/// The position behind zeros: whole numbers that a program wrote as decimals.
fn behind_zeros(line: &[u8], at: usize) -> usize {
    at + line[at..].iter().take_while(|&&b| b == b'0').count()
}

/// Splits a line at blanks.
pub(crate) fn tokens(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|&b| is_blank(b)).filter(|t| !t.is_empty())
}

/// The line as whole numbers, when it is nothing else.
pub(crate) fn numbers(line: &[u8]) -> Option<Vec<u64>> {
    // A header has three numbers; a long line is no header and is not worth collecting.
    tokens(line).take(4).map(parse_u64).collect()
}
