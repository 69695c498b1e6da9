//! Token ids in the order of their text.

use std::ops::Range;
use thiserror::Error;

/// The tokens of many instances, one after another: what a transformer reads of texts.
///
/// *Shapes*: `len()` instances, each an ordered list of ids below `vocabulary()`; an id may stand
/// several times, and a list may be empty.
///
/// # Invariants
/// As many ends as instances, never falling, the last of them the number of ids; every id is below
/// the vocabulary.
///
/// ```
/// use xc_sparse::rows::{Rows, TokenRows};
///
/// let mut tokens = TokenRows::new(30_522);
/// tokens.push(&[101, 7592, 102])?;
/// tokens.push(&[101, 102])?;
/// let rows = Rows::Tokens(tokens.view());
/// assert_eq!((rows.len(), rows.width()), (2, 30_522));
/// assert_eq!(tokens.view().row(0), [101, 7592, 102]);
/// assert!(tokens.push(&[30_522]).is_err());
/// # Ok::<(), xc_sparse::rows::TokenRowsError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TokenRows {
    ids: Vec<u32>,
    ends: Vec<u64>,
    vocabulary: usize,
}

/// Borrowed [`TokenRows`].
#[derive(Clone, Copy, Debug)]
pub struct TokenView<'a> {
    ids: &'a [u32],
    ends: &'a [u64],
    vocabulary: usize,
}

/// Why arrays are not lists of tokens.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum TokenRowsError {
    /// The ends do not describe the ids.
    #[error("ends of tokens must never fall and end with {n_ids}; end {at} breaks this")]
    Ends {
        /// Position in the ends.
        at: usize,
        /// Number of ids.
        n_ids: usize,
    },
    /// An id is too large.
    #[error("row {row} has token {id}; there are only {vocabulary} tokens")]
    OutOfRange {
        /// The row.
        row: usize,
        /// The id found.
        id: u32,
        /// Number of tokens that there are.
        vocabulary: usize,
    },
}

impl TokenRows {
    /// No instance yet; ids are to be below `vocabulary`.
    pub fn new(vocabulary: usize) -> Self {
        Self { vocabulary, ..Self::default() }
    }

    /// Checks the arrays and takes them: the ids of instance `i` end before `ends[i]`. *Cost*:
    /// O(ids + ends).
    ///
    /// # Errors
    /// See [`TokenRowsError`].
    pub fn try_new(ids: Vec<u32>, ends: Vec<u64>, vocabulary: usize) -> Result<Self, TokenRowsError> {
        let n_ids = ids.len();
        let falls = ends.windows(2).position(|w| w[0] > w[1]).map(|at| at + 1);
        let last = ends.last().copied().unwrap_or(0);
        if let Some(at) = falls.or((last != n_ids as u64).then(|| ends.len().saturating_sub(1))) {
            return Err(TokenRowsError::Ends { at, n_ids });
        }
        if let Some(at) = ids.iter().position(|&id| id as usize >= vocabulary) {
            let row = ends.partition_point(|&end| end <= at as u64);
            return Err(TokenRowsError::OutOfRange { row, id: ids[at], vocabulary });
        }
        Ok(Self { ids, ends, vocabulary })
    }

    /// Adds an instance.
    ///
    /// # Errors
    /// An id that is not below the vocabulary; nothing is added then.
    pub fn push(&mut self, ids: &[u32]) -> Result<(), TokenRowsError> {
        if let Some(&id) = ids.iter().find(|&&id| id as usize >= self.vocabulary) {
            return Err(TokenRowsError::OutOfRange { row: self.len(), id, vocabulary: self.vocabulary });
        }
        self.ids.extend_from_slice(ids);
        self.ends.push(self.ids.len() as u64);
        Ok(())
    }

    /// The rows, borrowed.
    pub fn view(&self) -> TokenView<'_> {
        TokenView { ids: &self.ids, ends: &self.ends, vocabulary: self.vocabulary }
    }

    /// Number of instances.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True when there is no instance.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
}

impl<'a> TokenView<'a> {
    /// Number of instances.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True when there is no instance.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// All ids, instance after instance.
    pub fn ids(&self) -> &'a [u32] {
        self.ids
    }

    /// Number of tokens that there are: every id is below it.
    pub fn vocabulary(&self) -> usize {
        self.vocabulary
    }

    /// The ids of instance `i`, in the order of its text.
    ///
    /// # Panics
    /// If there is none.
    pub fn row(&self, i: usize) -> &'a [u32] {
        &self.ids[self.range(i)]
    }

    /// Where the ids of instance `i` lie among all.
    fn range(&self, i: usize) -> Range<usize> {
        let start = i.checked_sub(1).map_or(0, |before| self.ends[before]);
        start as usize..self.ends[i] as usize
    }

    /// A copy of the instances with these numbers, in this order.
    ///
    /// # Panics
    /// If there is no such instance.
    pub fn select(&self, numbers: &[u32]) -> TokenRows {
        let mut out = TokenRows::new(self.vocabulary);
        for &i in numbers {
            out.ids.extend_from_slice(self.row(i as usize));
            out.ends.push(out.ids.len() as u64);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_are_no_lists_of_tokens_is_said() {
        let made = |ids: &[u32], ends: &[u64]| TokenRows::try_new(ids.to_vec(), ends.to_vec(), 5);
        let said = |ids: &[u32], ends: &[u64]| made(ids, ends).unwrap_err().to_string();
        assert_eq!(said(&[1, 2], &[2, 1, 2]), "ends of tokens must never fall and end with 2; end 1 breaks this");
        assert_eq!(said(&[1, 2], &[0, 1]), "ends of tokens must never fall and end with 2; end 1 breaks this");
        assert_eq!(said(&[1], &[]), "ends of tokens must never fall and end with 1; end 0 breaks this");
        assert_eq!(said(&[1, 2, 5], &[0, 2, 3]), "row 2 has token 5; there are only 5 tokens");
        assert!(made(&[], &[]).unwrap().is_empty());
        assert_eq!(made(&[], &[0, 0]).unwrap().len(), 2);
    }

    proptest! {
        #[test]
        fn rows_are_those_that_were_added(lists in prop::collection::vec(prop::collection::vec(0u32..9, 0..6), 0..9), at in any::<prop::sample::Index>()) {
            let mut tokens = TokenRows::new(9);
            lists.iter().for_each(|list| tokens.push(list).unwrap());
            let view = tokens.view();
            prop_assert_eq!((view.len(), view.is_empty(), view.vocabulary()), (lists.len(), lists.is_empty(), 9));
            for (i, list) in lists.iter().enumerate() {
                prop_assert_eq!(view.row(i), list);
            }
            prop_assert_eq!(view.ids(), lists.concat());
            prop_assert_eq!(TokenRows::try_new(view.ids().to_vec(), tokens.ends.clone(), 9), Ok(tokens.clone()));
            // An id past the vocabulary adds nothing.
            let before = tokens.clone();
            let error = TokenRowsError::OutOfRange { row: lists.len(), id: 9, vocabulary: 9 };
            prop_assert_eq!(tokens.push(&[0, 9]), Err(error));
            prop_assert_eq!(&tokens, &before);
            if !lists.is_empty() {
                let i = at.index(lists.len()) as u32;
                let some = tokens.view().select(&[i, 0, i]);
                prop_assert_eq!((some.len(), some.view().row(1)), (3, &lists[0][..]));
                prop_assert_eq!(some.view().row(2), &lists[i as usize]);
            }
        }
    }
}
