//! Texts or features of labels, as instances that are learned from.

use super::Dataset;
use crate::fit::FitError;
use crate::model::OwnedRows;
use std::path::Path;
use xc_sparse::{CsrMatrix, LabelRows};

/// Appends rows of features, one a label in the order of their ids, as instances of which that label is
/// true. Gives the number of the first one.
///
/// # Errors
/// The rows, which `name` calls, are not one a label.
pub fn add_label_rows(data: &mut Dataset, texts: &CsrMatrix, name: &Path) -> Result<usize, FitError> {
    let (got, n_labels) = (texts.rows(), data.labels.n_labels());
    if got != n_labels {
        return Err(FitError::usage(format_args!(
            "{}: {got} rows; one for each of the {n_labels} labels is expected",
            name.display()
        )));
    }
    let (first, own) = (data.len(), 0..n_labels as u32);
    let lists = data.labels.iter().map(<[u32]>::to_vec).chain(own.map(|label| vec![label]));
    data.labels = LabelRows::from_lists(lists, n_labels).unwrap_or_else(|e| panic!("one label a row: {e}"));
    let (before, width) = (data.sparse(), data.width());
    let end = before.nnz();
    let mut indptr = before.indptr().to_vec();
    indptr.extend(texts.indptr()[1..].iter().map(|at| end + at));
    let (indices, values) = ([before.indices(), texts.indices()].concat(), [before.data(), texts.data()].concat());
    data.features = OwnedRows::Sparse(CsrMatrix::from_checked((first + n_labels, width), indptr, indices, values));
    Ok(first)
}
