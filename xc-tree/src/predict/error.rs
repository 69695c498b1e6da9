//! Queries that a model does not take.

use crate::model::ModelInfo;
use xc_sparse::{CsrView, SparseRow};

/// Why a query has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QueryError {
    /// A matrix of another width.
    #[error("queries of {found} features, the model has {expected}")]
    Width {
        /// Columns of the matrix.
        found: usize,
        /// Features of the model.
        expected: usize,
    },
    /// A feature that the model does not have.
    #[error("a query with feature {feature}, the model has {n_features}")]
    Feature {
        /// The feature, from 0.
        feature: u32,
        /// Features of the model.
        n_features: usize,
    },
}

/// Refuses a row with features that the model does not have.
pub(super) fn check_row(row: SparseRow<'_>, info: &ModelInfo) -> Result<(), QueryError> {
    match row.indices().last() {
        // They ascend.
        Some(&feature) if feature as usize >= info.n_features => {
            Err(QueryError::Feature { feature, n_features: info.n_features })
        }
        _ => Ok(()),
    }
}

/// Refuses a matrix of another width than the model's.
pub(crate) fn check_rows(rows: CsrView<'_>, info: &ModelInfo) -> Result<(), QueryError> {
    let (found, expected) = (rows.cols(), info.n_features);
    if found == expected { Ok(()) } else { Err(QueryError::Width { found, expected }) }
}
