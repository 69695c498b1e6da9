//! Instances of different numbers of tokens, one after another, and how threads share them.

use crate::Mode;
use std::ops::Range;
use xc_dense::MatmulPrecision;

/// The tokens of a batch.
#[derive(Clone, Copy)]
pub(super) struct Ragged<'a> {
    /// All ids, instance after instance.
    pub(super) ids: &'a [u32],
    /// Where the tokens of each instance begin and end: one more than instances.
    pub(super) ends: &'a [u32],
}

impl Ragged<'_> {
    /// Number of instances.
    pub(super) fn len(self) -> usize {
        self.ends.len() - 1
    }

    /// Tokens of instance `i`.
    pub(super) fn range(self, i: usize) -> Range<usize> {
        self.ends[i] as usize..self.ends[i + 1] as usize
    }

    /// So many instances from one on as have at most `most` tokens together; at least one.
    pub(super) fn together(self, first: usize, most: usize) -> usize {
        let start = self.ends[first] as usize;
        let ends = self.ends[first + 1..].iter();
        ends.take_while(|&&end| end as usize - start <= most).count().max(1)
    }

    /// Some of the instances; `ends` is where theirs are written.
    pub(super) fn part<'p>(&'p self, instances: Range<usize>, ends: &'p mut Vec<u32>) -> Ragged<'p> {
        let start = self.ends[instances.start];
        ends.clear();
        ends.extend(self.ends[instances.start..=instances.end].iter().map(|end| end - start));
        Ragged { ids: &self.ids[start as usize..self.ends[instances.end] as usize], ends }
    }

    /// Tokens of the longest instance.
    pub(super) fn longest(self) -> usize {
        (0..self.len()).map(|i| self.range(i).len()).max().unwrap_or(0)
    }
}

/// What every layer is told of a pass over a batch.
#[derive(Clone, Copy)]
pub(super) struct Pass<'a> {
    pub(super) batch: Ragged<'a>,
    pub(super) mode: Mode,
    /// Names of the tokens in dropout masks: the same for a token of an instance in any batch.
    pub(super) names: &'a [u32],
    /// Whether the calling thread does all of it: a single query outside of a pool is not to start one.
    pub(super) is_alone: bool,
    pub(super) products: MatmulPrecision,
}

/// Rows that one task takes, at most: those of a short text are done before another thread is awake.
const ROWS: usize = 64;

/// Calls `work` with the number of the first row of a block of rows, and the block's part of each array, whose rows have
/// the widths that are given.
pub(super) fn in_blocks<const N: usize>(
    is_alone: bool,
    rows: usize,
    parts: [(&mut [f32], usize); N],
    work: &(impl Fn(usize, [&mut [f32]; N]) + Sync),
) {
    let most = if is_alone { rows } else { ROWS };
    split(most, 0, rows, parts, work);
}

/// The rows from `first` on, in halves until there are at most `most`.
fn split<const N: usize>(
    most: usize,
    first: usize,
    rows: usize,
    parts: [(&mut [f32], usize); N],
    work: &(impl Fn(usize, [&mut [f32]; N]) + Sync),
) {
    if rows > most {
        let half = rows.div_ceil(most).div_ceil(2) * most;
        let (low, high) = halves(parts, |_| half);
        rayon::join(|| split(most, first, half, low, work), || split(most, first + half, rows - half, high, work));
    } else if rows > 0 {
        work(first, parts.map(|(values, _)| values));
    }
}

/// Calls `work` with each instance and its part of each array: as many rows as tokens, of the widths that are given, or
/// one row where `by_instance` says so.
pub(super) fn by_instance<const N: usize>(
    is_alone: bool,
    batch: Ragged<'_>,
    instances: Range<usize>,
    parts: [(&mut [f32], usize); N],
    has_one_row: [bool; N],
    work: &(impl Fn(usize, [&mut [f32]; N]) + Sync),
) {
    if instances.len() > 1 {
        let middle = instances.start + instances.len() / 2;
        let tokens = (batch.ends[middle] - batch.ends[instances.start]) as usize;
        let rows = |at: usize| if has_one_row[at] { middle - instances.start } else { tokens };
        let (low, high) = halves(parts, rows);
        let first = || by_instance(is_alone, batch, instances.start..middle, low, has_one_row, work);
        let second = || by_instance(is_alone, batch, middle..instances.end, high, has_one_row, work);
        if is_alone {
            first();
            second();
        } else {
            rayon::join(first, second);
        }
    } else if !instances.is_empty() {
        work(instances.start, parts.map(|(values, _)| values));
    }
}

/// An array of rows, and their width.
type Part<'a> = (&'a mut [f32], usize);

/// The first rows of each array, as many as `rows` says of it, and the rest.
fn halves<const N: usize>(parts: [Part<'_>; N], rows: impl Fn(usize) -> usize) -> ([Part<'_>; N], [Part<'_>; N]) {
    let mut high: [Part<'_>; N] = std::array::from_fn(|_| (Default::default(), 0));
    let mut at = 0;
    let low = parts.map(|(values, width)| {
        let (first, rest) = values.split_at_mut(rows(at) * width);
        high[at] = (rest, width);
        at += 1;
        (first, width)
    });
    (low, high)
}
