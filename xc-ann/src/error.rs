//! What can be wrong with rows and queries.

use thiserror::Error;

/// Why no graph was built.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum BuildError {
    /// A value that is not finite, or a row too long for distances.
    #[error("row {row}: a value that is not finite, or a length beyond 1.8e19")]
    Row {
        /// The row, from 0.
        row: usize,
    },
    /// Too wide rows.
    #[error("rows of {width} coordinates, expected at most {most}")]
    Width {
        /// Coordinates.
        width: usize,
        /// The most there may be.
        most: usize,
    },
    /// Somebody asked to stop.
    #[error("stopped")]
    Cancelled,
}

/// Why a query has no answer.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum QueryError {
    /// Another width.
    #[error("a query of {found} coordinates, expected {expected}")]
    Width {
        /// Coordinates of the query.
        found: usize,
        /// Coordinates of the rows.
        expected: usize,
    },
    /// A value that is not finite.
    #[error("query {query}: a value that is not finite")]
    NotFinite {
        /// The query, from 0.
        query: usize,
    },
}
