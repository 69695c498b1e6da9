//! Views of matrices for the crate `faer`, and of its matrices for products here: nothing is copied.
//!
//! ```
//! use faer::Mat;
//! use xc_dense::{DenseRows, MatRef};
//!
//! let values = [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0];
//! let view: faer::MatRef<'_, f32> = DenseRows::new(&values, 3).into();
//! assert_eq!((view.nrows(), view.ncols(), view[(1, 0)], view.as_ptr()), (2, 3, 4.0, values.as_ptr()));
//! let back = MatRef::try_from(view)?;
//! assert_eq!((back.shape(), back.values().as_ptr()), ((2, 3), values.as_ptr()));
//! // faer may leave a gap behind each column of a matrix of its own: such a matrix is copied.
//! let theirs = Mat::from_fn(3, 2, |i, j| (i + 10 * j) as f32);
//! assert_eq!(xc_dense::DenseMatrix::from(theirs.as_ref()).values[..], [0.0, 10.0, 1.0, 11.0, 2.0, 12.0]);
//! # Ok::<(), xc_dense::FromFaerError>(())
//! ```

#![allow(unsafe_code, reason = "strides of one crate are those of the other")]

use crate::{DenseMatrix, DenseRows, MatMut, MatRef};
use faer::{MatMut as FaerMut, MatRef as FaerRef};
use std::fmt;

/// A matrix whose memory holds more than its values, or not row after row where that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FromFaerError {
    /// Rows and columns.
    pub shape: (usize, usize),
    /// Values from one row to the next, and from one column to the next.
    pub strides: (isize, isize),
}

impl fmt::Display for FromFaerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { shape: (rows, columns), strides } = self;
        write!(
            f,
            "a {rows} x {columns} matrix by strides of {strides:?}, expected one without gaps; DenseMatrix::from copies it"
        )
    }
}

impl std::error::Error for FromFaerError {}

impl<'a> From<DenseRows<'a>> for FaerRef<'a, f32> {
    fn from(rows: DenseRows<'a>) -> Self {
        Self::from_row_major_slice(rows.values(), rows.len(), rows.width())
    }
}

impl<'a> From<MatRef<'a>> for FaerRef<'a, f32> {
    fn from(matrix: MatRef<'a>) -> Self {
        let ((rows, columns), (row_stride, column_stride)) = (matrix.shape(), matrix.strides());
        // SAFETY: `MatRef` holds that the last value that the strides reach is among the values, so all are, and a slice is at
        // most `isize::MAX` bytes. The values are borrowed for `'a`, and never written meanwhile.
        unsafe {
            Self::from_raw_parts(matrix.values().as_ptr(), rows, columns, row_stride as isize, column_stride as isize)
        }
    }
}

impl<'a> From<MatMut<'a>> for FaerMut<'a, f32> {
    fn from(matrix: MatMut<'a>) -> Self {
        let (rows, columns) = matrix.shape();
        Self::from_row_major_slice_mut(matrix.into_values(), rows, columns)
    }
}

/// Whether values lie one behind the other, by rows and by columns.
fn without_gaps((rows, columns): (usize, usize), strides: (isize, isize)) -> (bool, bool) {
    let is = |n: usize, stride: isize, expected: usize| n <= 1 || stride == expected as isize;
    let by_rows = is(columns, strides.1, 1) && is(rows, strides.0, columns);
    let by_columns = is(rows, strides.0, 1) && is(columns, strides.1, rows);
    (by_rows, by_columns)
}

impl<'a> TryFrom<FaerRef<'a, f32>> for MatRef<'a> {
    type Error = FromFaerError;

    fn try_from(matrix: FaerRef<'a, f32>) -> Result<Self, FromFaerError> {
        let (shape, strides) = (matrix.shape(), (matrix.row_stride(), matrix.col_stride()));
        let (rows, columns) = shape;
        if rows == 0 || columns == 0 {
            return Ok(Self::new(&[], rows, columns));
        }
        let (by_rows, by_columns) = without_gaps(shape, strides);
        if !by_rows && !by_columns {
            return Err(FromFaerError { shape, strides });
        }
        // SAFETY: without gaps the `rows * columns` values of the matrix are all that lies there, one behind the other from its
        // pointer on, initialised and borrowed for `'a`.
        let values = unsafe { std::slice::from_raw_parts(matrix.as_ptr(), rows * columns) };
        Ok(if by_rows { Self::new(values, rows, columns) } else { Self::new(values, columns, rows).t() })
    }
}

impl<'a> TryFrom<FaerMut<'a, f32>> for MatMut<'a> {
    type Error = FromFaerError;

    fn try_from(matrix: FaerMut<'a, f32>) -> Result<Self, FromFaerError> {
        let (shape, strides) = (matrix.shape(), (matrix.row_stride(), matrix.col_stride()));
        let (rows, columns) = shape;
        if rows == 0 || columns == 0 {
            return Ok(Self::new(&mut [], rows, columns));
        }
        if !without_gaps(shape, strides).0 {
            return Err(FromFaerError { shape, strides });
        }
        // SAFETY: as above; the matrix is consumed, so that nobody else writes for `'a`.
        let values = unsafe { std::slice::from_raw_parts_mut(matrix.as_ptr_mut(), rows * columns) };
        Ok(Self::new(values, rows, columns))
    }
}

/// A copy, row after row.
impl From<FaerRef<'_, f32>> for DenseMatrix {
    fn from(matrix: FaerRef<'_, f32>) -> Self {
        let (rows, columns) = matrix.shape();
        let values: Vec<f32> = (0..rows).flat_map(|i| (0..columns).map(move |j| matrix[(i, j)])).collect();
        Self::new(rows, columns, values)
    }
}
