//! Lists of labels in the arrays of somebody else.

use super::{LabelRows, LabelRowsError, not_rising};

/// Row pointers as they lie: scipy has 32 bits where they suffice, 64 otherwise.
#[derive(Clone, Copy, Debug)]
pub enum Pointers<'a> {
    /// Of 32 bits.
    I32(&'a [i32]),
    /// Of 64 bits.
    I64(&'a [i64]),
    /// Of the machine's width.
    Usize(&'a [usize]),
}

impl Pointers<'_> {
    /// Number of pointers: one more than there are rows.
    pub fn len(&self) -> usize {
        match self {
            Self::I32(at) => at.len(),
            Self::I64(at) => at.len(),
            Self::Usize(at) => at.len(),
        }
    }

    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Pointer `i`. Negative ones are larger than any number of entries.
    #[inline]
    fn get(&self, i: usize) -> usize {
        match self {
            Self::I32(at) => at[i] as isize as usize,
            Self::I64(at) => at[i] as usize,
            Self::Usize(at) => at[i],
        }
    }
}

/// [`LabelRows`] in borrowed arrays, whose pointers may be narrower: nothing is copied.
///
/// ```
/// use xc_sparse::rows::{LabelRows, LabelRowsView, Pointers};
///
/// let (indptr, labels) = ([0i32, 2, 2, 3], [4u32, 9, 3]);
/// let view = LabelRowsView::try_new(Pointers::I32(&indptr), &labels, 10)?;
/// assert_eq!(view.row(0).as_ptr(), labels.as_ptr());
/// assert_eq!(view.to_owned(), LabelRows::from_lists([vec![4, 9], vec![], vec![3]], 10)?);
/// # Ok::<(), xc_sparse::LabelRowsError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct LabelRowsView<'a> {
    indptr: Pointers<'a>,
    labels: &'a [u32],
    n_labels: usize,
}

impl<'a> LabelRowsView<'a> {
    /// Checks the arrays. *Cost*: O(rows + labels).
    ///
    /// # Errors
    /// See [`LabelRowsError`].
    pub fn try_new(indptr: Pointers<'a>, labels: &'a [u32], n_labels: usize) -> Result<Self, LabelRowsError> {
        let n_entries = labels.len();
        if let Some(at) = not_rising(indptr.len(), |i| indptr.get(i), n_entries) {
            return Err(LabelRowsError::Indptr { at, n_entries });
        }
        let view = Self { indptr, labels, n_labels };
        (0..view.len()).try_for_each(|row| super::labels::check_list(row, view.row(row), n_labels))?;
        Ok(view)
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

    /// All label ids, row after row.
    pub fn labels(&self) -> &'a [u32] {
        self.labels
    }

    /// Labels of instance `i`, ascending.
    ///
    /// # Panics
    /// If `i >= len()`.
    #[inline]
    pub fn row(&self, i: usize) -> &'a [u32] {
        &self.labels[self.indptr.get(i)..self.indptr.get(i + 1)]
    }

    /// Every row in order.
    pub fn iter(self) -> impl ExactSizeIterator<Item = &'a [u32]> + Clone {
        (0..self.len()).map(move |i| self.row(i))
    }

    /// A copy.
    pub fn to_owned(&self) -> LabelRows {
        let indptr: Vec<usize> = (0..self.indptr.len()).map(|i| self.indptr.get(i)).collect();
        LabelRows::from_checked(indptr, self.labels.to_vec(), self.n_labels)
    }
}

impl<'a> From<&'a LabelRows> for LabelRowsView<'a> {
    fn from(rows: &'a LabelRows) -> Self {
        Self { indptr: Pointers::Usize(rows.indptr()), labels: rows.labels(), n_labels: rows.n_labels() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_view_is_what_the_same_arrays_are_when_they_are_owned(
            indptr in prop::collection::vec(-1i32..6, 0..6), labels in prop::collection::vec(0u32..5, 0..6), n_labels in 0usize..6,
        ) {
            let wide: Vec<i64> = indptr.iter().map(|&at| i64::from(at)).collect();
            let owned = LabelRows::try_new(indptr.iter().map(|&at| at as isize as usize).collect::<Vec<_>>(), labels.clone(), n_labels);
            for pointers in [Pointers::I32(&indptr), Pointers::I64(&wide)] {
                let view = LabelRowsView::try_new(pointers, &labels, n_labels);
                match (&owned, &view) {
                    (Ok(owned), Ok(view)) => prop_assert_eq!(owned, &view.to_owned()),
                    (Err(expected), Err(got)) => prop_assert_eq!(expected, got),
                    other => prop_assert!(false, "{other:?}"),
                }
            }
            if let Ok(owned) = &owned {
                let view = LabelRowsView::from(owned);
                prop_assert_eq!(view.iter().collect::<Vec<_>>(), owned.iter().collect::<Vec<_>>());
            }
        }
    }
}
