//! Texts or features of labels, as instances that are learned from.

use super::Dataset;
use crate::fit::FitError;
use crate::model::OwnedRows;
use std::path::Path;
use xc_sparse::{DenseMatrix, LabelRows};

/// Appends rows of features, tokens or vectors, one a label in the order of their ids, as instances of which that label is
/// true. Gives the number of the first one.
///
/// # Errors
/// The rows, which `name` calls, are not one a label.
///
/// # Panics
/// If they are not what the instances are.
pub fn add_label_rows(data: &mut Dataset, texts: &OwnedRows, name: &Path) -> Result<usize, FitError> {
    let (got, n_labels) = (texts.len(), data.labels.n_labels());
    if got != n_labels {
        return Err(FitError::usage(format_args!(
            "{}: {got} rows; one for each of the {n_labels} labels is expected",
            name.display()
        )));
    }
    let (first, own) = (data.len(), 0..n_labels as u32);
    let lists = data.labels.iter().map(<[u32]>::to_vec).chain(own.map(|label| vec![label]));
    data.labels = LabelRows::from_lists(lists, n_labels).unwrap_or_else(|e| panic!("one label a row: {e}"));
    match (&mut data.features, texts) {
        (OwnedRows::Sparse(rows), OwnedRows::Sparse(texts)) => rows.append(texts.view()),
        (OwnedRows::Tokens(rows), OwnedRows::Tokens(texts)) => {
            rows.append(texts).unwrap_or_else(|e| panic!("texts of the same tokenizer: {e}"));
        }
        (OwnedRows::Dense(rows), OwnedRows::Dense(texts)) if rows.columns == texts.columns => {
            let values = [&*rows.values, &*texts.values].concat();
            *rows = DenseMatrix::new(rows.rows + texts.rows, rows.columns, values);
        }
        _ => panic!("other rows for labels than for instances"),
    }
    Ok(first)
}
