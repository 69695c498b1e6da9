//! What can be wrong with settings, rows and queries.

use thiserror::Error;
use xc_sparse::rows::SparseRowError;

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
    /// No or too many edges.
    #[error("degree {degree}: expected 1 to {most} edges of a vertex")]
    Degree {
        /// What was asked for.
        degree: usize,
        /// The most there may be.
        most: usize,
    },
    /// A setting of 0.
    #[error("{what} is 0, expected at least 1")]
    Nothing {
        /// The setting.
        what: &'static str,
    },
    /// A factor of pruning that is none.
    #[error("factor {factor} of pruning, expected a number above 0")]
    Factor {
        /// What was asked for.
        factor: f32,
    },
    /// A recall that is none.
    #[error("recall {recall}, expected a share from 0 to 1")]
    Recall {
        /// What was asked for.
        recall: f64,
    },
    /// A row that is there already.
    #[error("row {row} is in the graph already, or stands twice among the new ones")]
    Present {
        /// The row, from 0.
        row: usize,
    },
    /// More rows than numbers for them.
    #[error("{n} rows, expected fewer than 2^32 - 1")]
    Rows {
        /// Rows.
        n: usize,
    },
    /// A query that settings were to be fitted to.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// Somebody asked to stop.
    #[error("stopped")]
    Cancelled,
}

/// Why a query has no answer.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum QueryError {
    /// Another width.
    #[error("queries of {found} coordinates, the index has {expected}")]
    Width {
        /// Coordinates of the query.
        found: usize,
        /// Coordinates of the rows.
        expected: usize,
    },
    /// A value that is not finite.
    #[error("query {query}: a value that is not finite, or a length beyond 1.8e19")]
    NotFinite {
        /// The query, from 0.
        query: usize,
    },
    /// Columns that do not ascend, or not as many values.
    #[error("query {query}: {source}")]
    Sparse {
        /// The query, from 0.
        query: usize,
        /// What is wrong.
        source: SparseRowError,
    },
    /// No direction.
    #[error("query {query}: all values are 0, which has no cosine")]
    Zero {
        /// The query, from 0.
        query: usize,
    },
    /// Cells of an index that has none.
    #[error("{asked} cells to look into; the index has none")]
    NoCells {
        /// What was asked for.
        asked: usize,
    },
    /// A width that is none.
    #[error("search width {width}, expected a number above -1")]
    SearchWidth {
        /// What was asked for.
        width: f32,
    },
}

/// Why an index does not open.
#[cfg(feature = "store")]
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenGraphError {
    /// The folder, a parameter or an array is missing or of another form.
    #[error(transparent)]
    Open(#[from] xc_sparse::store::OpenError),
    /// Arrays that no graph has.
    #[error("{}: {what}", path.display())]
    Graph {
        /// The folder.
        path: std::path::PathBuf,
        /// What is wrong.
        what: &'static str,
    },
}
