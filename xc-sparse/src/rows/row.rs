//! One compressed row.

use thiserror::Error;

/// One instance: feature ids (ascending, unique) and their values.
///
/// ```
/// use xc_sparse::SparseRow;
///
/// let row = SparseRow::try_new(&[2, 7], &[0.5, 1.0])?;
/// assert_eq!((row.nnz(), row.iter().last()), (2, Some((7, 1.0))));
/// assert!(SparseRow::try_new(&[7, 2], &[0.5, 1.0]).is_err());
/// assert!(SparseRow::try_new(&[2, 7], &[0.5, f32::NAN]).is_err());
/// # Ok::<(), xc_sparse::SparseRowError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SparseRow<'a> {
    indices: &'a [u32],
    values: &'a [f32],
}

/// Why two lists are not a sparse row.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum SparseRowError {
    /// The numbers of features and values differ.
    #[error("{values} values for {features} features, expected as many")]
    Lengths {
        /// Number of features.
        features: usize,
        /// Number of values.
        values: usize,
    },
    /// A feature is repeated, or follows a larger one.
    #[error("feature {next} stands after feature {previous}, expected ascending features without repetition")]
    Order {
        /// The feature before.
        previous: u32,
        /// The feature found.
        next: u32,
    },
    /// A value is infinite or not a number.
    #[error("feature {feature} has the value {value}, expected a finite number")]
    NotFinite {
        /// The feature.
        feature: u32,
        /// Its value.
        value: f32,
    },
}

impl<'a> SparseRow<'a> {
    /// Checks that the features ascend, that there is one value per feature, and that values are
    /// finite. *Cost*: O(features).
    ///
    /// # Errors
    /// See [`SparseRowError`].
    pub fn try_new(indices: &'a [u32], values: &'a [f32]) -> Result<Self, SparseRowError> {
        if indices.len() != values.len() {
            return Err(SparseRowError::Lengths { features: indices.len(), values: values.len() });
        }
        let row = Self { indices, values };
        row.check()?;
        Ok(row)
    }

    /// Takes the lists of a row that is known to be one, such as a row of a checked matrix, without a
    /// pass over them. A row that is none gives wrong answers or a panic where it is used.
    ///
    /// # Panics
    /// If there is not one value per feature.
    #[inline]
    pub fn from_checked(indices: &'a [u32], values: &'a [f32]) -> Self {
        assert_eq!(indices.len(), values.len(), "features and values of a row");
        Self { indices, values }
    }

    /// Checks the features and values of a row that was made by [`SparseRow::from_checked`].
    ///
    /// # Errors
    /// See [`SparseRowError`].
    pub fn check(&self) -> Result<(), SparseRowError> {
        self.check_order()?;
        let is_finite = self.values.iter().fold(true, |all, value| all & value.is_finite());
        match self.iter().find(|(_, value)| !is_finite && !value.is_finite()) {
            Some((feature, value)) => Err(SparseRowError::NotFinite { feature, value }),
            None => Ok(()),
        }
    }

    /// Whether its features ascend.
    pub(super) fn check_order(&self) -> Result<(), SparseRowError> {
        // Without a branch for each, so that it auto-vectorises.
        let ascends = self.indices.windows(2).fold(true, |all, w| all & (w[0] < w[1]));
        match self.indices.windows(2).find(|w| !ascends && w[0] >= w[1]) {
            Some(w) => Err(SparseRowError::Order { previous: w[0], next: w[1] }),
            None => Ok(()),
        }
    }

    /// Feature ids, ascending and unique.
    #[inline]
    pub fn indices(&self) -> &'a [u32] {
        self.indices
    }

    /// As many values as [`SparseRow::indices`].
    #[inline]
    pub fn values(&self) -> &'a [f32] {
        self.values
    }

    /// Number of stored features.
    pub fn nnz(&self) -> usize {
        self.indices.len()
    }

    /// Pairs (feature, value) in ascending order of the feature.
    pub fn iter(&self) -> impl Iterator<Item = (u32, f32)> + Clone + use<'a> {
        self.indices.iter().copied().zip(self.values.iter().copied())
    }
}

/// An id stands twice in a row.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("id {id} stands twice in a row")]
pub struct RepeatedId {
    /// The id.
    pub id: u32,
}

/// Brings the entries of one row into ascending order of their ids, where they are not yet.
/// `scratch` is a reusable buffer.
///
/// # Errors
/// An id that stands twice; the row is left as it was.
///
/// # Panics
/// If there are not as many values as ids.
#[inline]
pub fn sort_row(ids: &mut [u32], values: &mut [f32], scratch: &mut Vec<(u32, f32)>) -> Result<(), RepeatedId> {
    assert_eq!(ids.len(), values.len(), "ids and values of a row");
    if ids.is_sorted_by(|a, b| a < b) { Ok(()) } else { sort_unsorted(ids, values, scratch) }
}

#[cold]
fn sort_unsorted(ids: &mut [u32], values: &mut [f32], scratch: &mut Vec<(u32, f32)>) -> Result<(), RepeatedId> {
    scratch.clear();
    scratch.extend(ids.iter().copied().zip(values.iter().copied()));
    scratch.sort_unstable_by_key(|&(id, _)| id);
    if let Some(w) = scratch.windows(2).find(|w| w[0].0 == w[1].0) {
        return Err(RepeatedId { id: w[0].0 });
    }
    for (at, &(id, value)) in scratch.iter().enumerate() {
        (ids[at], values[at]) = (id, value);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn sorting_a_row_keeps_its_pairs_and_finds_what_stands_twice(pairs in prop::collection::vec((0u32..40, -1f32..1.0), 0..20)) {
            let (mut ids, mut values): (Vec<u32>, Vec<f32>) = pairs.iter().copied().unzip();
            let unique: BTreeMap<u32, f32> = pairs.iter().copied().collect();
            let sorted = sort_row(&mut ids, &mut values, &mut Vec::new());
            if unique.len() == pairs.len() {
                prop_assert_eq!(sorted, Ok(()));
                prop_assert_eq!(ids.into_iter().zip(values).collect::<Vec<_>>(), unique.into_iter().collect::<Vec<_>>());
            } else {
                let RepeatedId { id } = sorted.unwrap_err();
                prop_assert!(pairs.iter().filter(|p| p.0 == id).count() > 1);
                prop_assert_eq!(ids.into_iter().zip(values).collect::<Vec<_>>(), pairs);
            }
        }
    }
}
