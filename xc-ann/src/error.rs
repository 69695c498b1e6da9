//! Errors of settings, rows and queries.

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
    /// Rows are too wide.
    #[error("rows of {width} coordinates, expected at most {most}")]
    Width {
        /// Coordinates.
        width: usize,
        /// The most there may be.
        most: usize,
    },
    /// Rows of another width than those of the index.
    #[error("rows of {found} coordinates, the index has {expected}")]
    Coordinates {
        /// Coordinates of the rows.
        found: usize,
        /// Coordinates of the index.
        expected: usize,
    },
    /// Values that are not a whole number of rows, or other than those of the rows of the index.
    #[error("{n} values, expected {expected} in rows of {width} coordinates")]
    Values {
        /// Values that were given.
        n: usize,
        /// The nearest number of them that would do.
        expected: usize,
        /// Coordinates of a row.
        width: usize,
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
    /// An invalid pruning factor.
    #[error("factor {factor} of pruning, expected a number above 0")]
    Factor {
        /// What was asked for.
        factor: f32,
    },
    /// An invalid recall.
    #[error("recall {recall}, expected a share from 0 to 1")]
    Recall {
        /// What was asked for.
        recall: f64,
    },
    /// Fewer of the best rows are found than [`BuildParams::min_recall`](crate::BuildParams::min_recall) asks for.
    #[error("{recall} of the {k} best are found, expected at least {least}")]
    TooFewFound {
        /// The share of them that is found.
        recall: f64,
        /// Answers of a query.
        k: usize,
        /// The share that was asked for.
        least: f64,
    },
    /// A row that is in the graph already.
    #[error("row {row} is in the graph already, or stands twice among the new ones")]
    Present {
        /// The row, from 0.
        row: usize,
    },
    /// More rows than can be numbered.
    #[error("{n} rows, expected fewer than 2^32 - 1")]
    Rows {
        /// Rows.
        n: usize,
    },
    /// An invalid query among those to fit to.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// The observer asked to stop.
    #[error("stopped")]
    Cancelled,
}

/// Why a query has no answer.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum QueryError {
    /// The query has another width than the rows.
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
    /// Columns do not ascend, or there is not one value for each.
    #[error("query {query}: {source}")]
    Sparse {
        /// The query, from 0.
        query: usize,
        /// What is wrong.
        source: SparseRowError,
    },
    /// Cells were asked for, and the index has none.
    #[error("{asked} cells to look into; the index has none")]
    NoCells {
        /// What was asked for.
        asked: usize,
    },
    /// An invalid search width.
    #[error("search width {width}, expected a number above -1")]
    SearchWidth {
        /// What was asked for.
        width: f32,
    },
}

impl QueryError {
    /// The same of a query behind so many others.
    pub fn behind(self, n: usize) -> Self {
        match self {
            Self::NotFinite { query } => Self::NotFinite { query: query + n },
            Self::Sparse { query, source } => Self::Sparse { query: query + n, source },
            other => other,
        }
    }
}

/// Why an index cannot be opened.
#[cfg(feature = "store")]
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenGraphError {
    /// The folder, a parameter or an array is missing or of another form.
    #[error(transparent)]
    Open(#[from] xc_store::OpenError),
    /// The arrays are not those of a graph.
    #[error("{}: {what}", path.display())]
    Graph {
        /// The folder.
        path: std::path::PathBuf,
        /// What is wrong.
        what: &'static str,
    },
}
