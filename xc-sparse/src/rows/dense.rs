//! Dense vectors of equal width, row after row.

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

/// Owned dense rows: `values[i * columns + j]`.
#[derive(Clone, Debug, PartialEq)]
pub struct DenseMatrix {
    /// Number of rows.
    pub rows: usize,
    /// Values of a row.
    pub columns: usize,
    /// Row after row.
    pub values: Vec<f32>,
}

impl DenseMatrix {
    /// The rows.
    ///
    /// # Panics
    /// As [`DenseRows::new`].
    pub fn view(&self) -> DenseRows<'_> {
        DenseRows::new(&self.values, self.columns)
    }
}
