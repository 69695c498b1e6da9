//! Exact search of sparse rows, through lists of rows by column.
//!
//! ```text
//!   columns of the query ─▶ their lists, those that lift scores most for their length first ─▶ a sum for each row
//!       ─▶ when the lists that are left cannot lift a row among the best: rows that still may be, scored exactly
//! ```
//!
//! Long lists belong to columns of small values (frequent words); they come last, and often need not be
//! read at all (`[turtle1995query]`).

mod add;
#[cfg(feature = "store")]
mod file;
mod search;

pub use search::{InvertedScratch, SparseEffort};

use crate::code::vertex_rows::is_beyond;
use crate::error::BuildError;
use crate::metric::Metric;
use rayon::prelude::*;
use xc_buffer::Buffer;
use xc_sparse::rows::group_by;
use xc_sparse::{CsrView, SparseRow};

/// The kind in the configuration of an inverted index folder.
#[cfg(feature = "store")]
pub const INVERTED_KIND: &str = "inverted-index";

/// Sparse rows, and for each column the rows with a value in it. Answers are exact.
///
/// ```
/// use xc_ann::{InvertedIndex, InvertedScratch, Metric};
/// use xc_sparse::{CsrMatrix, SparseRow};
///
/// let rows = CsrMatrix::try_new((3, 4), vec![0, 2, 3, 4], vec![0, 2, 2, 3], vec![1.0, 2.0, 0.5, 4.0])?;
/// let index = InvertedIndex::build(rows.view(), Metric::InnerProduct)?;
/// let query = SparseRow::try_new(&[2], &[1.0])?;
/// let found = index.nearest(query, 2, &mut InvertedScratch::default())?;
/// assert_eq!(found.iter().map(|f| (f.label, f.score)).collect::<Vec<_>>(), [(0, 2.0), (1, 0.5)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct InvertedIndex {
    metric: Metric,
    n_columns: usize,
    /// Rows as they were given: the values of row i are `values[starts[i]..starts[i + 1]]`.
    starts: Buffer<u64>,
    columns: Buffer<u32>,
    values: Buffer<f32>,
    /// The same by columns; under the cosine divided by the length of the row.
    lists: Buffer<u64>,
    rows: Buffer<u32>,
    weights: Buffer<f32>,
    /// The least and the largest weight of each list; both 0 where it is empty.
    spans: Buffer<f32>,
    /// The square of the length of each row; nothing for inner products.
    squares: Buffer<f32>,
    /// What sums of distances begin with at most: the largest square; 0 for the other metrics.
    longest: f32,
}

/// The square of a row's length, summed in the order of its products with queries: a row in a query's direction has a
/// cosine of 1.
fn square(values: &[f32]) -> f64 {
    values.iter().map(|&v| f64::from(v) * f64::from(v)).sum()
}

impl InvertedIndex {
    /// Builds an index over rows.
    ///
    /// *Cost*: two passes over all values. *Memory*: [`InvertedIndex::bytes`].
    ///
    /// # Errors
    /// [`BuildError::Row`] and [`BuildError::Rows`].
    pub fn build(matrix: CsrView<'_>, metric: Metric) -> Result<Self, BuildError> {
        if matrix.rows() >= u32::MAX as usize {
            return Err(BuildError::Rows { n: matrix.rows() });
        }
        let (n, n_columns) = (matrix.rows(), matrix.cols());
        let squares: Vec<f64> = (0..n).into_par_iter().map(|row| square(matrix.row(row).values())).collect();
        if let Some(row) = squares.iter().position(|square| is_beyond(*square)) {
            return Err(BuildError::Row { row });
        }
        let scale = |row: usize| match metric {
            Metric::Cosine if squares[row] > 0.0 => 1.0 / squares[row].sqrt(),
            _ => 1.0,
        };
        let entries = (0..n).flat_map(|row| {
            let scale = scale(row);
            matrix.row(row).iter().map(move |(column, value)| (column, (row as u32, (f64::from(value) * scale) as f32)))
        });
        let (lists, listed) = group_by(n_columns, entries).into_parts();
        let (rows, weights): (Vec<u32>, Vec<f32>) = listed.into_iter().unzip();
        let spans = lists.windows(2).flat_map(|list| span(&weights[list[0]..list[1]])).collect::<Vec<f32>>();
        let squares: Vec<f32> = match metric {
            Metric::InnerProduct => Vec::new(),
            _ => squares.into_iter().map(rounded).collect(),
        };
        let longest = longest(metric, &squares);
        let (mut columns, mut values) = (Vec::with_capacity(matrix.nnz()), Vec::with_capacity(matrix.nnz()));
        for row in (0..n).map(|row| matrix.row(row)) {
            columns.extend_from_slice(row.indices());
            values.extend_from_slice(row.values());
        }
        let base = matrix.indptr()[0];
        let starts: Vec<u64> = matrix.indptr().iter().map(|&at| (at - base) as u64).collect();
        let lists: Vec<u64> = lists.into_iter().map(|at| at as u64).collect();
        Ok(Self {
            metric,
            n_columns,
            starts: starts.into(),
            columns: columns.into(),
            values: values.into(),
            lists: lists.into(),
            rows: rows.into(),
            weights: weights.into(),
            spans: spans.into(),
            squares: squares.into(),
            longest,
        })
    }

    /// Bytes of an index over `n` rows of `n_columns` columns with `nnz` values.
    pub fn bytes(n: usize, n_columns: usize, nnz: usize) -> usize {
        16 * nnz + 12 * n + 16 * n_columns + 16
    }

    /// Bytes held.
    pub fn n_bytes(&self) -> usize {
        8 * (self.starts.len() + self.lists.len())
            + 4 * (self.columns.len() + self.values.len() + self.rows.len() + self.weights.len())
            + 4 * (self.spans.len() + self.squares.len())
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Columns of a row, those without a value included.
    pub fn n_columns(&self) -> usize {
        self.n_columns
    }

    /// Stored values.
    pub fn nnz(&self) -> usize {
        self.values.len()
    }

    /// The metric of the scores.
    pub fn metric(&self) -> Metric {
        self.metric
    }

    /// Row `i`, as it was given.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn row(&self, i: usize) -> SparseRow<'_> {
        let range = self.starts[i] as usize..self.starts[i + 1] as usize;
        SparseRow::from_checked(&self.columns[range.clone()], &self.values[range])
    }

    /// Rows and weights of a column.
    fn list(&self, column: u32) -> (&[u32], &[f32]) {
        let range = self.lists[column as usize] as usize..self.lists[column as usize + 1] as usize;
        (&self.rows[range.clone()], &self.weights[range])
    }
}

/// A square as it is kept: above 0 where it is, however small.
fn rounded(square: f64) -> f32 {
    let least = if square > 0.0 { f32::from_bits(1) } else { 0.0 };
    least.max(square as f32)
}

/// The largest square, where sums begin with it.
fn longest(metric: Metric, squares: &[f32]) -> f32 {
    if metric == Metric::L2 { squares.iter().copied().fold(0.0, f32::max) } else { 0.0 }
}

/// The least and the largest of some weights; both 0 where there are none.
fn span(weights: &[f32]) -> [f32; 2] {
    let first = weights.first().copied().unwrap_or(0.0);
    weights.iter().fold([first, first], |[least, most], &w| [least.min(w), most.max(w)])
}
