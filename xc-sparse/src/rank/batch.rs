//! Ranked lists of many queries in three arrays.

use super::{Scored, rank_order};
use crate::rows::not_pointers;
use thiserror::Error;

/// One ranked list a query: best first. Lists may be shorter than the k that was asked for.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(try_from = "Unchecked"))]
pub struct RankedBatch {
    indptr: Vec<usize>,
    items: Vec<Scored>,
}

/// A batch as it is read.
#[cfg(feature = "serde")]
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Unchecked {
    indptr: Vec<usize>,
    items: Vec<Scored>,
}

#[cfg(feature = "serde")]
impl TryFrom<Unchecked> for RankedBatch {
    type Error = RankedBatchError;

    fn try_from(Unchecked { indptr, items }: Unchecked) -> Result<Self, RankedBatchError> {
        Self::try_new(indptr, items)
    }
}

/// Why arrays are not ranked lists.
#[derive(Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum RankedBatchError {
    /// The row pointers do not describe the entries.
    #[error("row pointers must rise from 0 to {n_entries}; pointer {at} breaks this")]
    Indptr {
        /// Position in the row pointers.
        at: usize,
        /// Number of entries.
        n_entries: usize,
    },
    /// The numbers of labels and scores differ.
    #[error("{scores} scores for {labels} labels, expected as many")]
    Lengths {
        /// Number of labels.
        labels: usize,
        /// Number of scores.
        scores: usize,
    },
    /// A list is not ranked.
    #[error("row {row} is not ranked: position {position} stands before a better one")]
    Order {
        /// The row.
        row: usize,
        /// Position inside the row.
        position: usize,
    },
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

    /// Checks arrays and takes them, without a copy: list `i` is `items[indptr[i]..indptr[i + 1]]`.
    ///
    /// # Errors
    /// See [`RankedBatchError`].
    pub fn try_new(indptr: Vec<usize>, items: Vec<Scored>) -> Result<Self, RankedBatchError> {
        if let Some(at) = not_pointers(&indptr, items.len()) {
            return Err(RankedBatchError::Indptr { at, n_entries: items.len() });
        }
        let batch = Self { indptr, items };
        batch.check()?;
        Ok(batch)
    }

    /// As [`RankedBatch::try_new`], from three arrays. *Cost*: a pass over all entries, which are copied.
    ///
    /// # Errors
    /// See [`RankedBatchError`].
    pub fn from_arrays(indptr: Vec<usize>, labels: &[u32], scores: &[f32]) -> Result<Self, RankedBatchError> {
        if labels.len() != scores.len() {
            return Err(RankedBatchError::Lengths { labels: labels.len(), scores: scores.len() });
        }
        Self::try_new(indptr, labels.iter().zip(scores).map(|(&label, &score)| Scored { label, score }).collect())
    }

    /// The row pointers and all entries, without a copy. Entry `i` has its label in bytes `8 i..8 i + 4`,
    /// its score in the four that follow.
    pub fn into_parts(self) -> (Vec<usize>, Vec<Scored>) {
        (self.indptr, self.items)
    }

    /// Row pointers, labels and scores. *Cost*: a pass over all entries, which are copied.
    pub fn to_arrays(&self) -> (Vec<usize>, Vec<u32>, Vec<f32>) {
        let (labels, scores) = self.items.iter().map(|item| (item.label, item.score)).unzip();
        (self.indptr.clone(), labels, scores)
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
                return Err(RankedBatchError::Order { row, position });
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
        let (indptr, labels, scores) = all.to_arrays();
        assert_eq!(RankedBatch::from_arrays(indptr.clone(), &labels, &scores), Ok(all.clone()));
        let start = all.items.as_ptr();
        let (_, items) = all.into_parts();
        // Labels and scores lie where the arrays of other languages are told that they lie.
        let words: &[u32] = bytemuck::cast_slice(&items);
        assert!(words.iter().step_by(2).eq(&labels));
        assert!(words.iter().skip(1).step_by(2).map(|&bits| f32::from_bits(bits)).eq(scores.iter().copied()));
        assert_eq!(RankedBatch::try_new(indptr, items).unwrap().items.as_ptr(), start);
        batch.clear();
        assert_eq!(batch, RankedBatch::new());
    }

    #[test]
    fn arrays_that_are_no_ranked_lists_are_refused() {
        let of = |indptr: &[usize], scores: &[f32]| RankedBatch::from_arrays(indptr.to_vec(), &[4, 2, 9], scores);
        assert!(of(&[0, 2, 2, 3], &[0.5, 0.5, 0.75]).is_ok());
        for (indptr, at) in [(&[][..], 0), (&[1, 3], 0), (&[0, 2, 1, 3], 2), (&[0, 2], 1), (&[0, 4], 1)] {
            assert_eq!(of(indptr, &[0.0; 3]), Err(RankedBatchError::Indptr { at, n_entries: 3 }));
        }
        assert_eq!(of(&[0, 3], &[0.0; 2]), Err(RankedBatchError::Lengths { labels: 3, scores: 2 }));
        for score in [0.75, f32::INFINITY] {
            let order = Err(RankedBatchError::Order { row: 1, position: 1 });
            assert_eq!(of(&[0, 0, 3], &[0.75, 0.5, score]), order);
        }
        assert_eq!(of(&[0, 1, 3], &[0.5, f32::NAN, 0.1]), Err(RankedBatchError::Order { row: 1, position: 0 }));
    }
}
