//! One chunk as plain arrays: the output of trainers and importers.

use thiserror::Error;

/// The weights of one parent's children, feature row by feature row.
///
/// ```text
///   children   0     1     2
///   feature 2  0.5   .    -1.0        features  2  9  40        row_ptr  0 2 3 6
///   feature 9  .     2.0   .      =>  columns   0 2  1  0 1 2
///   feature 40 0.1   0.2   0.3        values    0.5 -1  2  .1 .2 .3
///   bias      -1.0  -1.1   0.0        bias      -1.0 -1.1 0.0
/// ```
///
/// # Invariants (checked by [`ChunkRows::check`])
/// `features` ascending and unique; `row_ptr` starts with 0 and ends with `values.len()`, no row is
/// empty; `columns` ascending and unique inside a row and below `n_columns`; `bias.len() ==
/// n_columns`; values finite.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChunkRows {
    /// Number of children.
    pub n_columns: usize,
    /// Feature ids that at least one child uses.
    pub features: Vec<u32>,
    /// Start of each feature's entries; one more than `features`.
    pub row_ptr: Vec<u32>,
    /// Child of each entry.
    pub columns: Vec<u32>,
    /// Weight of each entry.
    pub values: Vec<f32>,
    /// Bias weight of each child (0 if there is none).
    pub bias: Vec<f32>,
}

/// Which invariant of [`ChunkRows`] does not hold.
#[derive(Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChunkRowsError {
    /// Array lengths are inconsistent.
    #[error("chunk arrays disagree: {0}")]
    Lengths(&'static str),
    /// A row is out of order, empty or out of range.
    #[error("feature row {row} of the chunk: {what}")]
    Row {
        /// Position of the row.
        row: usize,
        /// What is wrong.
        what: &'static str,
    },
}

impl ChunkRows {
    /// A chunk of `n_columns` children without weights.
    pub fn empty(n_columns: usize) -> Self {
        Self { n_columns, row_ptr: vec![0], bias: vec![0.0; n_columns], ..Self::default() }
    }

    /// Number of stored weights, biases not counted.
    pub fn nnz(&self) -> usize {
        self.values.len()
    }

    /// Builds the rows from entries (feature, child, weight) in any order.
    ///
    /// # Errors
    /// A repeated (feature, child) pair, a child out of range, a weight that is not finite.
    pub fn from_entries(
        n_columns: usize,
        mut entries: Vec<(u32, u32, f32)>,
        bias: Vec<f32>,
    ) -> Result<Self, ChunkRowsError> {
        entries.sort_unstable_by_key(|&(feature, column, _)| (feature, column));
        let mut chunk = Self { n_columns, row_ptr: vec![0], bias, ..Self::default() };
        for (feature, column, value) in entries {
            if chunk.features.last() != Some(&feature) {
                if !chunk.features.is_empty() {
                    chunk.row_ptr.push(chunk.values.len() as u32);
                }
                chunk.features.push(feature);
            }
            chunk.columns.push(column);
            chunk.values.push(value);
        }
        if !chunk.features.is_empty() {
            chunk.row_ptr.push(chunk.values.len() as u32);
        }
        chunk.check()?;
        Ok(chunk)
    }

    /// Checks every invariant. *Cost*: O(nnz).
    pub fn check(&self) -> Result<(), ChunkRowsError> {
        if self.row_ptr.len() != self.features.len() + 1 || self.row_ptr.first() != Some(&0) {
            return Err(ChunkRowsError::Lengths("row_ptr has one entry more than features and starts with 0"));
        }
        if self.columns.len() != self.values.len()
            || self.row_ptr.last().map(|&v| v as usize) != Some(self.values.len())
        {
            return Err(ChunkRowsError::Lengths("columns, values and the last row_ptr are equal"));
        }
        if self.bias.len() != self.n_columns || self.bias.iter().any(|b| !b.is_finite()) {
            return Err(ChunkRowsError::Lengths("one finite bias a child"));
        }
        for row in 0..self.features.len() {
            let fail = |what| Err(ChunkRowsError::Row { row, what });
            if row > 0 && self.features[row] <= self.features[row - 1] {
                return fail("features must ascend");
            }
            let (a, b) = (self.row_ptr[row] as usize, self.row_ptr[row + 1] as usize);
            // Pointers may fall again before the last one, which is known to be right.
            if a >= b || b > self.values.len() {
                return fail("a row without entries, or falling row pointers");
            }
            let columns = &self.columns[a..b];
            if columns.windows(2).any(|w| w[0] >= w[1]) {
                return fail("children must ascend without repetition");
            }
            if columns[columns.len() - 1] as usize >= self.n_columns {
                return fail("a child out of range");
            }
            if self.values[a..b].iter().any(|v| !v.is_finite()) {
                return fail("a weight that is not finite");
            }
        }
        Ok(())
    }
}
