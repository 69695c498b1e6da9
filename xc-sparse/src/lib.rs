//! Sparse rows, chunked weights, ranked lists and files: the ground floor of xc.

pub mod buffer;
pub mod chunked;
pub mod dense;
pub mod dtype;
#[cfg(feature = "io")]
pub mod io;
pub mod parallel;
pub mod rank;
pub mod rows;
pub mod simd;
#[cfg(feature = "store")]
pub mod store;
pub mod uniform;

pub use buffer::{Buffer, FloatBuffer};
pub use dtype::DType;
pub use rows::{
    CscMatrix, CscView, CsrMatrix, CsrView, Dataset, DenseMatrix, DenseRows, LabelRows, LabelRowsError, Rows,
    SparseRow, SparseRowError,
};
pub use simd::{Isa, Loop, vectorised, vectorised_loop, vectorised_loop_on};
