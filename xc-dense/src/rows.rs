//! Dense vectors of equal width, row after row.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use xc_buffer::Buffer;

/// Borrowed dense rows.
///
/// *Shapes*: `len()` rows of `width()` values, each row contiguous.
#[derive(Clone, Copy, Debug)]
pub struct DenseRows<'a> {
    values: &'a [f32],
    width: usize,
}

impl<'a> DenseRows<'a> {
    /// Wraps row-major values.
    ///
    /// # Panics
    /// If the width is 0 or the values are not a whole number of rows.
    pub fn new(values: &'a [f32], width: usize) -> Self {
        assert!(width > 0 && values.len().is_multiple_of(width), "{} values in rows of {width}", values.len());
        Self { values, width }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.values.len() / self.width
    }

    /// True when there is no row.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Values of a row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// All values, row after row.
    pub fn values(&self) -> &'a [f32] {
        self.values
    }

    /// Row `i`.
    ///
    /// # Panics
    /// If `i >= len()`.
    pub fn row(&self, i: usize) -> &'a [f32] {
        &self.values[i * self.width..][..self.width]
    }

    /// Every row in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &'a [f32]> {
        self.values.chunks_exact(self.width)
    }
}

/// Owned dense rows: `values[i * columns + j]`, in memory, in a mapped file or in the memory of somebody else.
#[derive(Clone, Debug, PartialEq)]
pub struct DenseMatrix {
    /// Number of rows.
    pub rows: usize,
    /// Values of a row.
    pub columns: usize,
    /// Row after row.
    pub values: Buffer<f32>,
}

impl DenseMatrix {
    /// Takes the values, without a copy: a vector, or a [`Buffer`] over the memory of somebody else.
    ///
    /// # Panics
    /// If there are not `rows * columns` values.
    pub fn new(rows: usize, columns: usize, values: impl Into<Buffer<f32>>) -> Self {
        let values = values.into();
        assert!(rows.checked_mul(columns) == Some(values.len()), "{} values in {rows} rows of {columns}", values.len());
        Self { rows, columns, values }
    }

    /// The rows.
    ///
    /// # Panics
    /// As [`DenseRows::new`].
    pub fn view(&self) -> DenseRows<'_> {
        DenseRows::new(&self.values, self.columns)
    }
}

/// As it is written and read.
#[derive(Serialize, Deserialize)]
#[serde(rename = "DenseMatrix", deny_unknown_fields)]
struct Form<'a> {
    rows: usize,
    columns: usize,
    values: Cow<'a, [f32]>,
}

impl Serialize for DenseMatrix {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        Form { rows: self.rows, columns: self.columns, values: (&*self.values).into() }.serialize(to)
    }
}

impl<'de> Deserialize<'de> for DenseMatrix {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let Form { rows, columns, values } = Form::deserialize(from)?;
        if rows.checked_mul(columns) != Some(values.len()) {
            let values = values.len();
            return Err(D::Error::custom(format_args!("{values} values in {rows} rows of {columns}")));
        }
        Ok(Self::new(rows, columns, values.into_owned()))
    }
}
