//! Ranked lists of many queries in three arrays.

use super::{Scored, rank_order};
use thiserror::Error;

/// One ranked list a query: best first. Lists may be shorter than the k that was asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct RankedBatch {
    indptr: Vec<usize>,
    items: Vec<Scored>,
}

/// Why a list is not ranked.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("row {row} is not ranked: position {position} stands before a better one")]
pub struct RankedBatchError {
    /// The row.
    pub row: usize,
    /// Position inside the row.
    pub position: usize,
}

impl Default for RankedBatch {
    fn default() -> Self {
        Self::new()
    }
}

impl RankedBatch {
    /// No rows yet.
    pub fn new() -> Self {
        Self { indptr: vec![0], items: Vec::new() }
    }

    /// Leaves no rows; the memory stays.
    pub fn clear(&mut self) {
        self.indptr.truncate(1);
        self.items.clear();
    }

    /// Appends one ranked list.
    pub fn push_row(&mut self, row: &[Scored]) {
        self.push_items(row.iter().copied());
    }

    /// Appends one ranked list, item by item.
    pub fn push_items(&mut self, row: impl IntoIterator<Item = Scored>) {
        self.items.extend(row);
        self.indptr.push(self.items.len());
    }

    /// Appends all rows of another batch.
    pub fn append(&mut self, other: &RankedBatch) {
        let before = self.items.len();
        self.items.extend_from_slice(&other.items);
        self.indptr.extend(other.indptr[1..].iter().map(|end| before + end));
    }

    /// The rows of some batches, one batch after the other.
    pub fn concat(parts: Vec<RankedBatch>) -> Self {
        let n_items = parts.iter().map(|part| part.items.len()).sum::<usize>();
        let n_rows = parts.iter().map(RankedBatch::len).sum::<usize>();
        let mut parts = parts.into_iter();
        let Some(mut all) = parts.next() else { return Self::new() };
        all.items.reserve_exact(n_items - all.items.len());
        all.indptr.reserve_exact(n_rows - all.len());
        parts.for_each(|part| all.append(&part));
        all
    }

    /// Number of lists.
    pub fn len(&self) -> usize {
        self.indptr.len() - 1
    }

    /// True when there is no list.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// List `i`, best first.
    ///
    /// # Panics
    /// If `i >= len()`.
    pub fn row(&self, i: usize) -> &[Scored] {
        &self.items[self.indptr[i]..self.indptr[i + 1]]
    }

    /// All lists in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[Scored]> {
        (0..self.len()).map(|i| self.row(i))
    }

    /// Sorts every list into ranking order.
    pub fn sort(&mut self) {
        for w in self.indptr.windows(2) {
            self.items[w[0]..w[1]].sort_by(|&a, &b| rank_order(a, b));
        }
    }

    /// Checks that no score rises inside a list. (Equal scores may stand in any order: a score that
    /// is returned can be rounded from the finer scale that ranked it.)
    pub fn check(&self) -> Result<(), RankedBatchError> {
        for (row, list) in self.iter().enumerate() {
            if let Some(position) =
                list.windows(2).position(|w| w[0].score < w[1].score || (w[0].score.is_nan() && !w[1].score.is_nan()))
            {
                return Err(RankedBatchError { row, position });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_empty_batch() {
        assert_eq!(RankedBatch::default(), RankedBatch::new());
        let mut batch = RankedBatch::default();
        batch.push_row(&[Scored { label: 1, score: 0.5 }]);
        batch.push_row(&[]);
        assert_eq!((batch.len(), batch.row(0).len(), batch.row(1).len()), (2, 1, 0));
        let other =
            RankedBatch { indptr: vec![0, 2], items: [2, 3].map(|label| Scored { label, score: 0.25 }).to_vec() };
        let all = RankedBatch::concat(vec![batch.clone(), RankedBatch::new(), other.clone(), batch.clone()]);
        let rows: Vec<&[Scored]> = all.iter().collect();
        assert_eq!(rows, [batch.row(0), &[], other.row(0), batch.row(0), &[]]);
        assert_eq!(RankedBatch::concat(Vec::new()), RankedBatch::new());
        batch.clear();
        assert_eq!(batch, RankedBatch::new());
    }
}
