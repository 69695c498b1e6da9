//! Instances of any kind: features, vectors, texts, tokens of texts.

use super::{CsrMatrix, CsrView, SparseRow, TokenRow, TokenRows, TokenView};
use std::fmt;
use thiserror::Error;
use xc_dense::{DenseMatrix, DenseRows};

/// What an instance is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum InputKind {
    /// Text.
    Text,
    /// Sparse features.
    Sparse,
    /// A vector.
    Dense,
    /// The tokens of a text, in their order.
    Tokens,
}

impl fmt::Display for InputKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "text",
            Self::Sparse => "sparse features",
            Self::Dense => "a vector",
            Self::Tokens => "tokens",
        })
    }
}

/// Instances of another kind than is taken.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("an instance is {got}, expected {expected}")]
pub struct WrongInput {
    /// What an instance is.
    pub got: InputKind,
    /// What is taken.
    pub expected: InputKind,
}

/// One instance.
#[derive(Clone, Copy, Debug)]
pub enum Row<'a> {
    /// Weighted features.
    Sparse(SparseRow<'a>),
    /// A vector.
    Dense(&'a [f32]),
    /// A text.
    Text(&'a str),
    /// The tokens of a text, in their order; features of its words beside them where there are some.
    Tokens(TokenRow<'a>),
}

impl<'a> Row<'a> {
    /// Tokens alone.
    pub fn tokens(ids: &'a [u32]) -> Self {
        Self::Tokens(ids.into())
    }

    /// What it is.
    pub fn kind(&self) -> InputKind {
        match self {
            Self::Sparse(_) => InputKind::Sparse,
            Self::Dense(_) => InputKind::Dense,
            Self::Text(_) => InputKind::Text,
            Self::Tokens(_) => InputKind::Tokens,
        }
    }

    /// Values of the features or of the vector; of tokens those of the words beside them, and none of a text.
    pub fn values(&self) -> &'a [f32] {
        match self {
            Self::Dense(values) => values,
            other => other.words().map_or(&[], |row| row.values()),
        }
    }

    /// Its features, or those of the words beside tokens.
    pub fn words(&self) -> Option<SparseRow<'a>> {
        match self {
            Self::Sparse(row) => Some(*row),
            Self::Tokens(row) => row.words,
            Self::Dense(_) | Self::Text(_) => None,
        }
    }

    /// Its features.
    ///
    /// # Errors
    /// Another kind of instance.
    pub fn sparse(&self) -> Result<SparseRow<'a>, WrongInput> {
        match self {
            Self::Sparse(row) => Ok(*row),
            other => Err(WrongInput { got: other.kind(), expected: InputKind::Sparse }),
        }
    }
}

/// Instances with one feature each, of weight 1: sparse rows in 4 bytes per instance.
#[derive(Clone, Copy, Debug)]
pub struct OneHot<'a> {
    features: &'a [u32],
    n_features: usize,
}

impl<'a> OneHot<'a> {
    /// The feature of each instance, all below `n_features`.
    ///
    /// # Panics
    /// If one is not.
    pub fn new(features: &'a [u32], n_features: usize) -> Self {
        assert!(features.iter().all(|&f| (f as usize) < n_features), "a feature is not below {n_features}");
        Self { features, n_features }
    }

    /// The row of instance `i`.
    ///
    /// # Panics
    /// If there is none.
    pub fn row(&self, i: usize) -> SparseRow<'a> {
        SparseRow::from_checked(std::slice::from_ref(&self.features[i]), &[1.0])
    }
}

/// Many texts, borrowed.
#[derive(Clone, Copy, Debug)]
pub enum Texts<'a> {
    /// Slices of texts that lie anywhere.
    Slices(&'a [&'a str]),
    /// Texts that each own their memory.
    Strings(&'a [String]),
}

impl<'a> Texts<'a> {
    /// Number of texts.
    pub fn len(&self) -> usize {
        match self {
            Self::Slices(texts) => texts.len(),
            Self::Strings(texts) => texts.len(),
        }
    }

    /// True when there is no text.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Text `i`.
    ///
    /// # Panics
    /// If there is none.
    pub fn get(&self, i: usize) -> &'a str {
        match self {
            Self::Slices(texts) => texts[i],
            Self::Strings(texts) => &texts[i],
        }
    }

    /// Every text in order.
    pub fn iter(self) -> impl ExactSizeIterator<Item = &'a str> {
        (0..self.len()).map(move |i| self.get(i))
    }
}

/// Many instances of one kind, borrowed.
///
/// ```
/// use xc_dense::DenseRows;
/// use xc_sparse::rows::{InputKind, Rows};
///
/// let rows = Rows::Dense(DenseRows::new(&[1.0, 2.0, 3.0, 4.0], 2));
/// assert_eq!((rows.len(), rows.width(), rows.kind()), (2, 2, InputKind::Dense));
/// assert_eq!(rows.row(1).values(), [3.0, 4.0]);
/// assert!(rows.sparse().is_err());
/// ```
#[derive(Clone, Copy, Debug)]
pub enum Rows<'a> {
    /// Weighted features.
    Sparse(CsrView<'a>),
    /// Vectors.
    Dense(DenseRows<'a>),
    /// One feature of weight 1 each.
    OneHot(OneHot<'a>),
    /// Texts.
    Texts(Texts<'a>),
    /// Tokens of texts.
    Tokens(TokenView<'a>),
}

impl<'a> Rows<'a> {
    /// Texts that lie anywhere.
    pub fn texts(texts: &'a [&'a str]) -> Self {
        Self::Texts(Texts::Slices(texts))
    }

    /// What an instance is.
    pub fn kind(&self) -> InputKind {
        match self {
            Self::Sparse(_) | Self::OneHot(_) => InputKind::Sparse,
            Self::Dense(_) => InputKind::Dense,
            Self::Texts(_) => InputKind::Text,
            Self::Tokens(_) => InputKind::Tokens,
        }
    }

    /// Number of instances.
    pub fn len(&self) -> usize {
        match self {
            Self::Sparse(rows) => rows.rows(),
            Self::Dense(rows) => rows.len(),
            Self::OneHot(rows) => rows.features.len(),
            Self::Texts(texts) => texts.len(),
            Self::Tokens(rows) => rows.len(),
        }
    }

    /// True when there is no instance.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of features, of values of a vector, or of tokens that there are; 0 of texts.
    pub fn width(&self) -> usize {
        match self {
            Self::Sparse(rows) => rows.cols(),
            Self::Dense(rows) => rows.width(),
            Self::OneHot(rows) => rows.n_features,
            Self::Texts(_) => 0,
            Self::Tokens(rows) => rows.vocabulary(),
        }
    }

    /// Instance `i`.
    ///
    /// # Panics
    /// If there is none.
    #[inline]
    pub fn row(&self, i: usize) -> Row<'a> {
        match self {
            Self::Sparse(rows) => Row::Sparse(rows.row(i)),
            Self::Dense(rows) => Row::Dense(rows.row(i)),
            Self::OneHot(rows) => Row::Sparse(rows.row(i)),
            Self::Texts(texts) => Row::Text(texts.get(i)),
            Self::Tokens(rows) => Row::Tokens(rows.instance(i)),
        }
    }

    /// The features.
    ///
    /// # Errors
    /// Vectors, texts, tokens, or features that are one-hot.
    pub fn sparse(&self) -> Result<CsrView<'a>, WrongInput> {
        match self {
            Self::Sparse(rows) => Ok(*rows),
            other => Err(WrongInput { got: other.kind(), expected: InputKind::Sparse }),
        }
    }

    /// The features, or those of the words beside tokens.
    pub fn words(&self) -> Option<CsrView<'a>> {
        match self {
            Self::Sparse(rows) => Some(*rows),
            Self::Tokens(rows) => rows.words(),
            Self::Dense(_) | Self::OneHot(_) | Self::Texts(_) => None,
        }
    }

    /// A copy of the instances with these numbers, in this order; one-hot rows become sparse ones.
    ///
    /// # Panics
    /// If there is no such instance.
    pub fn select(&self, numbers: &[u32]) -> OwnedRows {
        let each = numbers.iter().map(|&i| i as usize);
        match self {
            Self::Sparse(rows) => OwnedRows::Sparse(rows.select(numbers)),
            Self::Dense(rows) => {
                let values: Vec<f32> = each.flat_map(|i| rows.row(i)).copied().collect();
                OwnedRows::Dense(DenseMatrix::new(numbers.len(), rows.width(), values))
            }
            Self::OneHot(rows) => {
                let (n, indices) = (numbers.len(), each.map(|i| rows.features[i]).collect());
                let matrix = CsrMatrix::from_checked((n, rows.n_features), (0..=n).collect(), indices, vec![1.0; n]);
                OwnedRows::Sparse(matrix)
            }
            Self::Texts(texts) => OwnedRows::Texts(each.map(|i| texts.get(i).to_owned()).collect()),
            Self::Tokens(rows) => OwnedRows::Tokens(rows.select(numbers)),
        }
    }
}

/// Many instances of one kind, owned.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum OwnedRows {
    /// Weighted features.
    Sparse(CsrMatrix),
    /// Vectors.
    Dense(DenseMatrix),
    /// Texts.
    Texts(Vec<String>),
    /// Tokens of texts.
    Tokens(TokenRows),
}

impl OwnedRows {
    /// The rows, borrowed.
    pub fn view(&self) -> Rows<'_> {
        match self {
            Self::Sparse(matrix) => Rows::Sparse(matrix.view()),
            Self::Dense(matrix) => Rows::Dense(matrix.view()),
            Self::Texts(texts) => Rows::Texts(Texts::Strings(texts)),
            Self::Tokens(rows) => Rows::Tokens(rows.view()),
        }
    }

    /// Number of instances.
    pub fn len(&self) -> usize {
        match self {
            Self::Sparse(matrix) => matrix.rows(),
            Self::Dense(matrix) => matrix.rows,
            Self::Texts(texts) => texts.len(),
            Self::Tokens(rows) => rows.len(),
        }
    }

    /// True when there is no instance.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The instances with these numbers, which ascend. Features are moved within their memory ([`CsrMatrix::keep`]), others
    /// copied.
    ///
    /// # Panics
    /// If a number is not above the one before it, or there is no such instance.
    pub fn keep(self, rows: &[u32]) -> Self {
        match self {
            Self::Sparse(matrix) => Self::Sparse(matrix.keep(rows)),
            other => other.view().select(rows),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selected_rows_are_those_of_the_numbers_whatever_they_are() {
        let features = CsrMatrix::try_new((3, 4), vec![0, 2, 2, 3], vec![0, 3, 1], vec![0.5, 2.0, 1.0]).unwrap();
        let vectors = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let (hot, texts) = ([2, 0, 1], ["a", "", "c d"]);
        let tokens = TokenRows::try_new(vec![4, 1, 4, 0], vec![3, 3, 4], 5).unwrap();
        let with_words = tokens.clone().with_words(features.clone()).unwrap();
        for rows in [
            Rows::Sparse(features.view()),
            Rows::Dense(DenseRows::new(&vectors, 2)),
            Rows::OneHot(OneHot::new(&hot, 3)),
            Rows::texts(&texts),
            Rows::Tokens(tokens.view()),
            Rows::Tokens(with_words.view()),
        ] {
            assert_eq!((rows.len(), rows.is_empty()), (3, false));
            for numbers in [&[][..], &[2, 0, 2], &[1]] {
                let some = rows.select(numbers);
                assert_eq!((some.len(), some.is_empty()), (numbers.len(), numbers.is_empty()));
                let some = some.view();
                assert_eq!((some.kind(), some.width()), (rows.kind(), rows.width()));
                for (i, &number) in numbers.iter().enumerate() {
                    let (one, other) = (some.row(i), rows.row(number as usize));
                    assert_eq!(format!("{one:?}"), format!("{other:?}"));
                    assert_eq!(one.kind(), rows.kind());
                    assert_eq!(one.sparse().is_ok(), rows.kind() == InputKind::Sparse);
                    let words = some.words().map(|words| words.row(i));
                    assert_eq!(words, one.words().filter(|_| !matches!(rows, Rows::OneHot(_)) || words.is_some()));
                }
            }
        }
        let wrong = Rows::texts(&texts).sparse().unwrap_err();
        assert_eq!(wrong.to_string(), "an instance is text, expected sparse features");
    }
}
