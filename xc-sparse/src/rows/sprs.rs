//! To and from the matrices of the crate `sprs`, in the same arrays: nothing is copied.
//!
//! Both sides check what they are given. *Cost* of each: O(rows + entries).
//!
//! ```
//! use sprs::{CsMatI, CsMatViewI, TriMatI};
//! use xc_sparse::{CsrMatrix, CsrView};
//!
//! let mut triplets = TriMatI::<f32, u32>::new((2, 8));
//! triplets.add_triplet(0, 3, 0.5);
//! triplets.add_triplet(1, 0, 2.0);
//! let foreign: CsMatI<f32, u32, usize> = triplets.to_csr();
//!
//! let view = CsrView::try_from(foreign.view())?;
//! assert_eq!(view.data().as_ptr(), foreign.data().as_ptr());
//! let matrix = CsrMatrix::try_from(foreign)?;
//! let back: CsMatViewI<f32, u32, usize> = matrix.view().into();
//! assert_eq!((back.get(0, 3), back.data().as_ptr()), (Some(&0.5), matrix.data().as_ptr()));
//! # Ok::<(), xc_sparse::rows::FromSprsError>(())
//! ```

use super::{CscMatrix, CscView, CsrMatrix, CsrView, MatrixError};
use sprs::{CompressedStorage, CsMatI, CsMatViewI};
use thiserror::Error;

/// Why a matrix of sprs is none of ours.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum FromSprsError {
    /// It is compressed by the other dimension.
    #[error("a matrix in {got:?} storage, expected {expected:?}; to_other_storage() copies it")]
    Storage {
        /// How it is stored.
        got: CompressedStorage,
        /// How it should be.
        expected: CompressedStorage,
    },
    /// A value is not finite.
    #[error(transparent)]
    Matrix(#[from] MatrixError),
}

fn expect(got: CompressedStorage, expected: CompressedStorage) -> Result<(), FromSprsError> {
    if got == expected { Ok(()) } else { Err(FromSprsError::Storage { got, expected }) }
}

impl TryFrom<CsMatI<f32, u32, usize>> for CsrMatrix {
    type Error = FromSprsError;

    fn try_from(matrix: CsMatI<f32, u32, usize>) -> Result<Self, FromSprsError> {
        expect(matrix.storage(), CompressedStorage::CSR)?;
        let shape = matrix.shape();
        let (indptr, indices, data) = matrix.into_raw_storage();
        Ok(Self::try_new(shape, indptr, indices, data)?)
    }
}

impl TryFrom<CsMatI<f32, u32, usize>> for CscMatrix {
    type Error = FromSprsError;

    fn try_from(matrix: CsMatI<f32, u32, usize>) -> Result<Self, FromSprsError> {
        expect(matrix.storage(), CompressedStorage::CSC)?;
        let shape = matrix.shape();
        let (indptr, indices, data) = matrix.into_raw_storage();
        Ok(Self::try_new(shape, indptr, indices, data)?)
    }
}

/// Of a slice of a larger matrix too.
impl<'a> TryFrom<CsMatViewI<'a, f32, u32, usize>> for CsrView<'a> {
    type Error = FromSprsError;

    fn try_from(view: CsMatViewI<'a, f32, u32, usize>) -> Result<Self, FromSprsError> {
        expect(view.storage(), CompressedStorage::CSR)?;
        let shape = view.shape();
        let (indptr, indices, data) = view.into_raw_storage();
        Ok(Self::of_slice(shape, indptr, indices, data)?)
    }
}

/// Of a slice of a larger matrix too.
impl<'a> TryFrom<CsMatViewI<'a, f32, u32, usize>> for CscView<'a> {
    type Error = FromSprsError;

    fn try_from(view: CsMatViewI<'a, f32, u32, usize>) -> Result<Self, FromSprsError> {
        Ok(CsrView::try_from(view.transpose_into())?.transpose())
    }
}

/// # Panics
/// If there are more columns than a `u32` counts.
impl From<CsrMatrix> for CsMatI<f32, u32, usize> {
    fn from(matrix: CsrMatrix) -> Self {
        let shape = (matrix.rows(), matrix.cols());
        let (indptr, indices, data) = matrix.into_parts();
        Self::new(shape, indptr, indices, data)
    }
}

/// # Panics
/// If there are more rows than a `u32` counts.
impl From<CscMatrix> for CsMatI<f32, u32, usize> {
    fn from(matrix: CscMatrix) -> Self {
        Self::from(matrix.transpose()).transpose_into()
    }
}

/// # Panics
/// If there are more columns than a `u32` counts.
impl<'a> From<CsrView<'a>> for CsMatViewI<'a, f32, u32, usize> {
    fn from(view: CsrView<'a>) -> Self {
        Self::new((view.rows(), view.cols()), view.indptr(), view.indices(), view.data())
    }
}

/// # Panics
/// If there are more rows than a `u32` counts.
impl<'a> From<CscView<'a>> for CsMatViewI<'a, f32, u32, usize> {
    fn from(view: CscView<'a>) -> Self {
        Self::from(view.transpose()).transpose_into()
    }
}
