//! Lists of labels, one per instance.

use super::{group_by, not_pointers};
use std::borrow::Cow;
use thiserror::Error;
use xc_buffer::Buffer;

/// The labels of many instances: one list of label ids per row, ascending and unique.
///
/// # Invariants
/// `indptr` starts with 0, never decreases and ends with `labels.len()`; every label is below
/// `n_labels`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelRows {
    indptr: Buffer<usize>,
    labels: Buffer<u32>,
    n_labels: usize,
}

/// Why arrays are not label lists.
#[derive(Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum LabelRowsError {
    /// The row pointers do not describe the labels.
    #[error("row pointers must rise from 0 to {n_entries}; entry {at} breaks this")]
    Indptr {
        /// Position in the row pointers.
        at: usize,
        /// Number of label entries.
        n_entries: usize,
    },
    /// A label id is too large.
    #[error("row {row} has label {label}; there are only {n_labels} labels")]
    LabelOutOfRange {
        /// The row.
        row: usize,
        /// The label found.
        label: u32,
        /// The number of labels.
        n_labels: usize,
    },
    /// A row is not ascending and unique.
    #[error("row {row} is not ascending and unique at label {label}")]
    Order {
        /// The row.
        row: usize,
        /// The label found.
        label: u32,
    },
}

/// Whether a list is one of labels.
pub(super) fn check_list(row: usize, list: &[u32], n_labels: usize) -> Result<(), LabelRowsError> {
    if let Some(&label) = list.iter().find(|&&l| l as usize >= n_labels) {
        return Err(LabelRowsError::LabelOutOfRange { row, label, n_labels });
    }
    match list.windows(2).find(|w| w[0] >= w[1]) {
        Some(w) => Err(LabelRowsError::Order { row, label: w[1] }),
        None => Ok(()),
    }
}

impl From<LabelRows> for Cow<'_, LabelRows> {
    fn from(labels: LabelRows) -> Self {
        Self::Owned(labels)
    }
}

impl<'a> From<&'a LabelRows> for Cow<'a, LabelRows> {
    fn from(labels: &'a LabelRows) -> Self {
        Self::Borrowed(labels)
    }
}

impl LabelRows {
    /// Checks the arrays and takes them, without a copy: vectors, or [`Buffer`]s over the memory of somebody
    /// else. *Cost*: O(rows + labels).
    ///
    /// # Errors
    /// See [`LabelRowsError`].
    pub fn try_new(
        indptr: impl Into<Buffer<usize>>,
        labels: impl Into<Buffer<u32>>,
        n_labels: usize,
    ) -> Result<Self, LabelRowsError> {
        let (indptr, labels) = (indptr.into(), labels.into());
        if let Some(at) = not_pointers(&indptr, labels.len()) {
            return Err(LabelRowsError::Indptr { at, n_entries: labels.len() });
        }
        for row in 0..indptr.len() - 1 {
            check_list(row, &labels[indptr[row]..indptr[row + 1]], n_labels)?;
        }
        Ok(Self { indptr, labels, n_labels })
    }

    /// Of arrays that were checked.
    pub(super) fn from_checked(indptr: Vec<usize>, labels: Vec<u32>, n_labels: usize) -> Self {
        Self { indptr: indptr.into(), labels: labels.into(), n_labels }
    }

    /// Sorts each list and drops repeated labels, then wraps.
    ///
    /// # Errors
    /// A label at or above `n_labels`.
    pub fn from_lists<I>(lists: I, n_labels: usize) -> Result<Self, LabelRowsError>
    where
        I: IntoIterator,
        I::Item: AsRef<[u32]>,
    {
        let (mut indptr, mut labels) = (vec![0], Vec::new());
        for list in lists {
            let start = labels.len();
            labels.extend_from_slice(list.as_ref());
            sort_unique(&mut labels, start);
            indptr.push(labels.len());
        }
        Self::try_new(indptr, labels, n_labels)
    }

    /// Number of instances.
    pub fn len(&self) -> usize {
        self.indptr.len() - 1
    }

    /// True when there is no instance.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of labels that may occur.
    pub fn n_labels(&self) -> usize {
        self.n_labels
    }

    /// Number of (instance, label) pairs.
    pub fn nnz(&self) -> usize {
        self.labels.len()
    }

    /// Labels that some row has.
    pub fn n_used(&self) -> usize {
        let mut used = vec![false; self.n_labels];
        self.labels.iter().for_each(|&label| used[label as usize] = true);
        used.iter().filter(|&&is_used| is_used).count()
    }

    /// Row pointers, from 0.
    pub fn indptr(&self) -> &[usize] {
        &self.indptr
    }

    /// All label ids, row after row.
    pub fn labels(&self) -> &[u32] {
        &self.labels
    }

    /// Labels of instance `i`, ascending.
    ///
    /// # Panics
    /// If `i >= len()`.
    pub fn row(&self, i: usize) -> &[u32] {
        &self.labels[self.indptr[i]..self.indptr[i + 1]]
    }

    /// Every row in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[u32]> + Clone {
        self.indptr.windows(2).map(|w| &self.labels[w[0]..w[1]])
    }

    /// The instances of each label: labels become rows and instances become entries.
    pub fn transpose(&self) -> LabelRows {
        let pairs = self.iter().zip(0u32..).flat_map(|(list, i)| list.iter().map(move |&label| (label, i)));
        let (indptr, labels) = group_by(self.n_labels, pairs).into_parts();
        LabelRows { indptr: indptr.into(), labels: labels.into(), n_labels: self.len() }
    }

    /// The lists of the instances with these numbers, in this order.
    ///
    /// # Panics
    /// If there is no such instance.
    pub fn select(&self, rows: &[u32]) -> LabelRows {
        let (mut indptr, mut labels) = (vec![0], Vec::new());
        for &row in rows {
            labels.extend_from_slice(self.row(row as usize));
            indptr.push(labels.len());
        }
        LabelRows { indptr: indptr.into(), labels: labels.into(), n_labels: self.n_labels }
    }

    /// The lists without the labels from `n_labels` on.
    pub fn within(&self, n_labels: usize) -> LabelRows {
        let (mut indptr, mut labels) = (vec![0], Vec::with_capacity(self.nnz()));
        for row in self.iter() {
            labels.extend_from_slice(&row[..row.partition_point(|&label| (label as usize) < n_labels)]);
            indptr.push(labels.len());
        }
        LabelRows { indptr: indptr.into(), labels: labels.into(), n_labels }
    }

    /// The same lists where `n_labels` is at least as large as before.
    ///
    /// # Panics
    /// If `n_labels` would cut labels off.
    pub fn with_n_labels(mut self, n_labels: usize) -> Self {
        assert!(n_labels >= self.n_labels, "{n_labels} labels asked, {} present", self.n_labels);
        self.n_labels = n_labels;
        self
    }
}

/// Brings the ids from `start` on into ascending order and drops the repeated ones.
pub fn sort_unique(ids: &mut Vec<u32>, start: usize) {
    ids[start..].sort_unstable();
    let mut kept = start;
    for i in start..ids.len() {
        if i == start || ids[i] != ids[kept - 1] {
            ids[kept] = ids[i];
            kept += 1;
        }
    }
    ids.truncate(kept);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn lists_over_foreign_memory_are_checked_and_not_copied() {
        let owner = Arc::new((vec![0usize, 2, 2, 3], vec![1u32, 4, 0]));
        let of = |n_labels| {
            let indptr = Buffer::from_owner(Arc::clone(&owner), |owner| bytemuck::cast_slice(&owner.0)).unwrap();
            let labels = Buffer::from_owner(Arc::clone(&owner), |owner| bytemuck::cast_slice(&owner.1)).unwrap();
            LabelRows::try_new(indptr, labels, n_labels)
        };
        let rows = of(5).unwrap();
        assert_eq!((rows.indptr().as_ptr(), rows.labels().as_ptr()), (owner.0.as_ptr(), owner.1.as_ptr()));
        assert_eq!(rows, LabelRows::from_lists([&[4, 1][..], &[], &[0]], 5).unwrap());
        assert_eq!(of(4).unwrap_err(), LabelRowsError::LabelOutOfRange { row: 0, label: 4, n_labels: 4 });
        // The pointers and lists themselves do not move when the rows do.
        let moved = rows.clone().with_n_labels(9);
        assert_eq!(moved.labels().as_ptr(), owner.1.as_ptr());
    }
}
