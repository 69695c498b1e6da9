//! Token ids in the order of their text.

use super::{CsrMatrix, CsrView, SparseRow};
use std::ops::Range;
use thiserror::Error;

/// The tokens of many instances, one after another: what a transformer reads of texts. Beside them may stand
/// sparse features of the words of the same texts, all of them where tokens are cut.
///
/// *Shapes*: `len()` instances, each an ordered list of ids below `vocabulary()`; an id may stand
/// several times, and a list may be empty. Where there are words, a row of features for each instance.
///
/// # Invariants
/// As many ends as instances, never falling, the last of them the number of ids; every id is below
/// the vocabulary; as many rows of words as instances.
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
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TokenRows {
    pub(super) ids: Vec<u32>,
    pub(super) ends: Vec<u64>,
    pub(super) vocabulary: usize,
    pub(super) words: Option<CsrMatrix>,
}

/// One instance of tokens.
#[derive(Clone, Copy, Debug)]
pub struct TokenRow<'a> {
    /// The tokens, in the order of the text.
    pub ids: &'a [u32],
    /// Features of its words, where they stand beside the tokens.
    pub words: Option<SparseRow<'a>>,
}

/// Tokens alone.
impl<'a> From<&'a [u32]> for TokenRow<'a> {
    fn from(ids: &'a [u32]) -> Self {
        Self { ids, words: None }
    }
}

/// Borrowed [`TokenRows`].
#[derive(Clone, Copy, Debug)]
pub struct TokenView<'a> {
    ids: &'a [u32],
    ends: &'a [u64],
    vocabulary: usize,
    words: Option<CsrView<'a>>,
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
    /// Features of words are not those of the instances.
    #[error("{got} rows of words beside {expected} of tokens")]
    Words {
        /// Rows of words.
        got: usize,
        /// Instances.
        expected: usize,
    },
    /// Rows with words, and rows without or with words of another width.
    #[error("rows of tokens that cannot stand together: {what}")]
    Kinds {
        /// What they differ in.
        what: &'static str,
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
        Ok(Self { ids, ends, vocabulary, words: None })
    }

    /// The same with features of the words of each instance beside its tokens.
    ///
    /// # Errors
    /// Not as many rows as instances.
    pub fn with_words(self, words: CsrMatrix) -> Result<Self, TokenRowsError> {
        let (got, expected) = (words.rows(), self.len());
        if got != expected {
            return Err(TokenRowsError::Words { got, expected });
        }
        Ok(Self { words: Some(words), ..self })
    }

    /// Adds an instance without words.
    ///
    /// # Errors
    /// An id that is not below the vocabulary, instances that have words; nothing is added then.
    pub fn push(&mut self, ids: &[u32]) -> Result<(), TokenRowsError> {
        if self.words.is_some() {
            return Err(TokenRowsError::Kinds { what: "words are expected" });
        }
        if let Some(&id) = ids.iter().find(|&&id| id as usize >= self.vocabulary) {
            return Err(TokenRowsError::OutOfRange { row: self.len(), id, vocabulary: self.vocabulary });
        }
        self.ids.extend_from_slice(ids);
        self.ends.push(self.ids.len() as u64);
        Ok(())
    }

    /// Adds instances. Where there is none before, they have words if `more` has.
    ///
    /// # Errors
    /// Another vocabulary; words on one side alone, or of another width; nothing is added then.
    pub fn append(&mut self, more: &Self) -> Result<(), TokenRowsError> {
        let refused = |what| Err(TokenRowsError::Kinds { what });
        if self.vocabulary != more.vocabulary {
            return refused("vocabularies");
        }
        match (&mut self.words, &more.words) {
            (None, None) => {}
            (words @ None, Some(of_more)) if self.ends.is_empty() => *words = Some(of_more.clone()),
            (Some(words), Some(of_more)) if words.cols() == of_more.cols() => words.append(of_more.view()),
            (Some(_), Some(_)) => return refused("width of words"),
            _ => return refused("words"),
        }
        let first = self.ids.len() as u64;
        self.ids.extend_from_slice(&more.ids);
        self.ends.extend(more.ends.iter().map(|end| first + end));
        Ok(())
    }

    /// The rows, borrowed.
    pub fn view(&self) -> TokenView<'_> {
        let words = self.words.as_ref().map(CsrMatrix::view);
        TokenView { ids: &self.ids, ends: &self.ends, vocabulary: self.vocabulary, words }
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

    /// Features of the words of each instance, where they stand beside the tokens.
    pub fn words(&self) -> Option<CsrView<'a>> {
        self.words
    }

    /// Instance `i`, with its words.
    ///
    /// # Panics
    /// If there is none.
    pub fn instance(&self, i: usize) -> TokenRow<'a> {
        TokenRow { ids: self.row(i), words: self.words.map(|words| words.row(i)) }
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
        out.words = self.words.map(|words| words.select(numbers));
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

    #[test]
    fn words_stand_beside_tokens_and_go_with_them() {
        let words = |n: usize, width: usize| {
            let indices: Vec<u32> = (0..n).map(|i| (i % width) as u32).collect();
            CsrMatrix::from_checked((n, width), (0..=n).collect(), indices, (1..=n).map(|v| v as f32).collect())
        };
        let tokens = TokenRows::try_new(vec![1, 2, 3], vec![1, 1, 3], 5).unwrap();
        let bare = tokens.clone();
        let wrong = tokens.clone().with_words(words(2, 4)).unwrap_err();
        assert_eq!(wrong.to_string(), "2 rows of words beside 3 of tokens");
        let tokens = tokens.with_words(words(3, 4)).unwrap();
        let one = tokens.view().instance(2);
        assert_eq!((one.ids, one.words.unwrap().values()), (&[2, 3][..], &[3.0][..]));
        let some = tokens.view().select(&[2, 0]);
        assert_eq!((some.view().row(1), some.view().instance(0).words.unwrap().indices()), (&[1][..], &[2][..]));
        let mut all = TokenRows::new(5);
        all.append(&tokens).unwrap();
        all.append(&some).unwrap();
        assert_eq!((all.len(), all.view().instance(3).ids), (5, &[2, 3][..]));
        assert_eq!(all.view().instance(3).words.unwrap().values(), [3.0]);
        // What cannot stand together changes nothing.
        let before = all.clone();
        let narrow = bare.clone().with_words(words(3, 3)).unwrap();
        for (more, what) in [(&bare, "words"), (&narrow, "width of words"), (&TokenRows::new(6), "vocabularies")] {
            assert_eq!(all.append(more), Err(TokenRowsError::Kinds { what }));
        }
        assert!(all.push(&[1]).is_err() && all == before);
        let mut alone = bare.clone();
        assert_eq!(alone.append(&tokens), Err(TokenRowsError::Kinds { what: "words" }));
        assert_eq!(alone, bare);
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
