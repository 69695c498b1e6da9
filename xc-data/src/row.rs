//! Buffers for one row and for many rows.

use super::error::{Bound, BoundFrom, LineError, ReadErrorKind};
use xc_sparse::rows::{SparseRow, sort_row, sort_unique};

/// Most features or labels that there can be: the number itself has to fit `u32` too, so the
/// largest id is one less.
pub(crate) const MAX_IDS: u64 = u32::MAX as u64;

/// Bounds on the ids of one file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowLimits {
    /// Bound on feature ids; ids up to 4294967294 if there is none.
    pub features: Option<Bound>,
    /// Bound on label ids; ids up to 4294967294 if there is none.
    pub labels: Option<Bound>,
    /// Features from this number on are left out; none is without it.
    pub known: Option<u64>,
}

impl RowLimits {
    /// Bounds set by the caller.
    pub fn given(n_features: Option<usize>, n_labels: Option<usize>) -> Self {
        let bound = |n: Option<usize>| n.map(|n| Bound { below: n as u64, from: BoundFrom::Caller });
        Self { features: bound(n_features), labels: bound(n_labels), known: None }
    }

    /// Number of features of a row, where it is known before the rows are.
    pub(crate) fn width(&self) -> Option<u64> {
        self.known.or(self.features.map(|bound| bound.below))
    }

    /// Whether a feature is to be left out.
    #[inline]
    pub(crate) fn leaves_out(&self, feature: u32) -> bool {
        self.known.is_some_and(|known| u64::from(feature) >= known)
    }

    /// Bound as a plain number; [`MAX_IDS`] when there is none.
    #[inline]
    pub(crate) fn below(bound: Option<Bound>) -> u64 {
        bound.map_or(MAX_IDS, |b| b.below)
    }
}

/// Buffer for one row: its features and label ids. It is reused between rows, so that reading does not
/// allocate once it is as large as the largest row.
#[derive(Clone, Debug, Default)]
pub struct RowBuffer {
    pub(crate) store: RowStore,
}

impl RowBuffer {
    /// An empty row.
    pub fn new() -> Self {
        Self::default()
    }

    /// Empties the row.
    pub fn clear(&mut self) {
        self.store.clear();
    }

    /// Features, ascending and unique, without entries of value 0.
    pub fn features(&self) -> SparseRow<'_> {
        SparseRow::from_checked(&self.store.indices, &self.store.values)
    }

    /// Gives the features away.
    pub fn into_features(self) -> (Vec<u32>, Vec<f32>) {
        (self.store.indices, self.store.values)
    }

    /// Label ids, ascending and unique.
    pub fn labels(&self) -> &[u32] {
        &self.store.labels
    }
}

/// Growing arrays that a row parser appends to.
#[derive(Clone, Debug, Default)]
pub(crate) struct RowStore {
    pub(crate) labels: Vec<u32>,
    pub(crate) indices: Vec<u32>,
    pub(crate) values: Vec<f32>,
    /// What was left out of the rows.
    pub(crate) unseen: Unseen,
    order: Vec<(u32, f32)>,
}

/// Entries that were left out, and the number of rows that had some.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Unseen {
    pub(crate) entries: u64,
    pub(crate) rows: u64,
}

impl Unseen {
    pub(crate) fn add(&mut self, entries: u64) {
        self.entries += entries;
        self.rows += u64::from(entries > 0);
    }
}

impl RowStore {
    pub(crate) fn clear(&mut self) {
        self.labels.clear();
        self.indices.clear();
        self.values.clear();
        self.unseen = Unseen::default();
    }

    /// Where a row begins.
    pub(crate) fn mark(&self) -> RowMark {
        RowMark { label: self.labels.len(), feature: self.indices.len() }
    }

    /// Makes the row from `mark` on a proper row: sorts what is not sorted, refuses a repeated
    /// feature, drops zeros and repeated labels. The caller says what it saw while appending.
    #[inline]
    pub(crate) fn finish_row(&mut self, mark: RowMark, seen: RowSeen) -> Result<(), LineError> {
        self.unseen.add(seen.unseen);
        if seen.labels_unsorted {
            sort_unique(&mut self.labels, mark.label);
        }
        if seen.features_unsorted {
            sort_row(&mut self.indices[mark.feature..], &mut self.values[mark.feature..], &mut self.order)
                .map_err(|e| LineError::whole(ReadErrorKind::RepeatedFeature { feature: u64::from(e.id) }))?;
        }
        if seen.zeros {
            let mut kept = mark.feature;
            for i in mark.feature..self.indices.len() {
                if self.values[i] != 0.0 {
                    self.indices[kept] = self.indices[i];
                    self.values[kept] = self.values[i];
                    kept += 1;
                }
            }
            self.indices.truncate(kept);
            self.values.truncate(kept);
        }
        Ok(())
    }
}

/// Lengths of the arrays where a row begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowMark {
    pub(crate) label: usize,
    pub(crate) feature: usize,
}

/// What a parser found while appending a row.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RowSeen {
    pub(crate) labels_unsorted: bool,
    pub(crate) features_unsorted: bool,
    pub(crate) zeros: bool,
    /// Features that were left out.
    pub(crate) unseen: u64,
}

/// Consecutive rows of one file.
#[derive(Clone, Debug, Default)]
pub(crate) struct RowBlock {
    /// Line (from 1) of each row.
    pub(crate) lines: Vec<u64>,
    pub(crate) feature_ends: Vec<usize>,
    pub(crate) label_ends: Vec<usize>,
    pub(crate) store: RowStore,
}

impl RowBlock {
    pub(crate) fn end_row(&mut self, line: u64) {
        self.lines.push(line);
        self.feature_ends.push(self.store.indices.len());
        self.label_ends.push(self.store.labels.len());
    }
}
