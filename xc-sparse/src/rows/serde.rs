//! Rows as values of serde: their arrays, which are checked when they are read.

use super::{CscMatrix, CsrMatrix, LabelRows, TokenRows};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;

/// A compressed matrix, of which `lists` lists are stored.
#[derive(Serialize, Deserialize)]
#[serde(rename = "CsrMatrix", deny_unknown_fields)]
struct Matrix<'a> {
    rows: usize,
    cols: usize,
    indptr: Cow<'a, [usize]>,
    indices: Cow<'a, [u32]>,
    data: Cow<'a, [f32]>,
}

impl<'a> Matrix<'a> {
    fn of(matrix: &'a CsrMatrix, (rows, cols): (usize, usize)) -> Self {
        Self {
            rows,
            cols,
            indptr: matrix.indptr().into(),
            indices: matrix.indices().into(),
            data: matrix.data().into(),
        }
    }
}

impl Serialize for CsrMatrix {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        Matrix::of(self, (self.rows(), self.cols())).serialize(to)
    }
}

impl<'de> Deserialize<'de> for CsrMatrix {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let Matrix { rows, cols, indptr, indices, data } = Matrix::deserialize(from)?;
        Self::try_new((rows, cols), indptr.into_owned(), indices.into_owned(), data.into_owned())
            .map_err(D::Error::custom)
    }
}

impl Serialize for CscMatrix {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let by_column = &self.0;
        Matrix::of(by_column, (by_column.cols(), by_column.rows())).serialize(to)
    }
}

impl<'de> Deserialize<'de> for CscMatrix {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let Matrix { rows, cols, indptr, indices, data } = Matrix::deserialize(from)?;
        Self::try_new((rows, cols), indptr.into_owned(), indices.into_owned(), data.into_owned())
            .map_err(D::Error::custom)
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename = "LabelRows", deny_unknown_fields)]
struct Labels<'a> {
    n_labels: usize,
    indptr: Cow<'a, [usize]>,
    labels: Cow<'a, [u32]>,
}

impl Serialize for LabelRows {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let (n_labels, indptr, labels) = (self.n_labels(), self.indptr().into(), self.labels().into());
        Labels { n_labels, indptr, labels }.serialize(to)
    }
}

impl<'de> Deserialize<'de> for LabelRows {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let Labels { n_labels, indptr, labels } = Labels::deserialize(from)?;
        Self::try_new(indptr.into_owned(), labels.into_owned(), n_labels).map_err(D::Error::custom)
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename = "TokenRows", deny_unknown_fields)]
struct Tokens<'a> {
    vocabulary: usize,
    ends: Cow<'a, [u64]>,
    ids: Cow<'a, [u32]>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    words: Option<Cow<'a, CsrMatrix>>,
}

impl Serialize for TokenRows {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let (words, vocabulary) = (self.words.as_ref().map(Cow::Borrowed), self.vocabulary);
        Tokens { vocabulary, ends: (&*self.ends).into(), ids: (&*self.ids).into(), words }.serialize(to)
    }
}

impl<'de> Deserialize<'de> for TokenRows {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let Tokens { vocabulary, ends, ids, words } = Tokens::deserialize(from)?;
        let rows = Self::try_new(ids.into_owned(), ends.into_owned(), vocabulary).map_err(D::Error::custom)?;
        match words {
            Some(words) => rows.with_words(words.into_owned()).map_err(D::Error::custom),
            None => Ok(rows),
        }
    }
}
