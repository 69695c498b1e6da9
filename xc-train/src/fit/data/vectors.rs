//! Vectors as instances.

use super::Dataset;
use super::features::no_labels;
use crate::fit::FitError;
use xc_data::{Vectors, hash_rows};
use xc_model::OwnedRows;
use xc_sparse::rows::Rows;

/// Vectors without labels as they are learned from.
///
/// # Errors
/// A value that is not finite.
pub fn of_vectors(vectors: Vectors) -> Result<Dataset, FitError> {
    vectors.check(0..vectors.rows())?;
    let matrix = vectors.into_matrix();
    let rows = matrix.view();
    let hashes = hash_rows(Rows::Dense(rows));
    Ok(Dataset {
        labels: no_labels(matrix.rows),
        features: OwnedRows::Dense(matrix),
        names: None,
        maker: None,
        of_texts: false,
        hashes,
        form: Default::default(),
    })
}
