//! Rows: features and their values, labels, dense vectors; and what is done to any of them.
//!
//! ```text
//!   instance 0   feature 2: 0.5   feature 7: 1.0        labels 4, 9
//!   instance 1   (none)                                 label  3
//!
//!   indptr  0 2 2      indices 2 7    values 0.5 1.0     indptr 0 2 3   labels 4 9 3
//! ```
//!
//! ```
//! use xc_sparse::rows::{LabelRows, group_by, normalise};
//!
//! let labels = LabelRows::from_lists([vec![9, 4], vec![3]], 10)?;
//! assert_eq!(labels.row(0), [4, 9]);
//! // The instances of each label.
//! assert_eq!(labels.transpose().row(4), [0]);
//!
//! // The same for any pairs: (key, item) by key, in the order in which they come.
//! let groups = group_by(3, [(2, 'a'), (0, 'b'), (2, 'c')].into_iter());
//! assert_eq!((groups.group(2), groups.starts()), (&['a', 'c'][..], &[0, 1, 1, 3][..]));
//!
//! let mut values = [3.0, 4.0];
//! normalise(&mut values);
//! assert_eq!(values, [0.6, 0.8]);
//! # Ok::<(), xc_sparse::LabelRowsError>(())
//! ```

mod csr;
mod group;
mod input;
#[cfg(feature = "store")]
mod key;
mod label_view;
mod labels;
mod normalise;
mod row;
#[cfg(feature = "serde")]
mod serde;
#[cfg(feature = "sprs")]
mod sprs;
mod tokens;

#[cfg(feature = "sprs")]
pub use self::sprs::FromSprsError;
pub use csr::{CscMatrix, CscView, CsrMatrix, CsrView, Dataset, MatrixError};
pub use group::{Groups, group_by};
pub use input::{InputKind, OneHot, OwnedRows, Row, Rows, Texts, WrongInput};
pub use label_view::{LabelRowsView, Pointers};
pub use labels::{LabelRows, LabelRowsError, sort_unique};
pub use normalise::{normalise, normalise_rows, normalised, typical_length, unit_scale};
pub use row::{RepeatedId, SparseRow, SparseRowError, sort_row};
pub use tokens::{TokenRow, TokenRows, TokenRowsError, TokenView};

/// Where pointers do not rise from 0 to the number of entries.
pub(crate) fn not_pointers(indptr: &[usize], n_entries: usize) -> Option<usize> {
    not_rising(indptr.len(), |i| indptr[i], n_entries)
}

/// The same of `n` pointers that `at` gives.
fn not_rising(n: usize, at: impl Fn(usize) -> usize, n_entries: usize) -> Option<usize> {
    if n == 0 || at(0) != 0 {
        return Some(0);
    }
    (1..n).find(|&i| at(i - 1) > at(i)).or((at(n - 1) != n_entries).then_some(n - 1))
}
