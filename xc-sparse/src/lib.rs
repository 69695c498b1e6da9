//! Sparse rows, chunked weights, ranked lists and files: the ground floor of xc.

mod arch;
pub mod chunked;
pub mod io;
pub mod matrix;
pub mod rank;
pub mod store;
pub mod uniform;

pub use arch::{Isa, Loop, vectorised, vectorised_loop};
pub use matrix::{CscMatrix, CscView, CsrMatrix, CsrView, Dataset, LabelRows, LabelRowsError, Rows, SparseRow};
