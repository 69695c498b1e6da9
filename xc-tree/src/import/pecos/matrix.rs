//! Matrices by columns, and their files.

use super::error::{PecosError, matrix_error};
use std::io::{self, Seek, Write};
use std::path::Path;
use xc_data::{NpzLayout, NpzMatrix, ReadOptions, read_npz, write_npz_arrays};
use xc_sparse::rows::sort_row;

/// A matrix by columns. After [`Columns::check`]: pointers rise from 0 to nnz, rows are in range
/// and ascend inside a column without repetition, values are finite.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Columns {
    pub(super) n_rows: usize,
    pub(super) indptr: Vec<usize>,
    pub(super) rows: Vec<u32>,
    pub(super) values: Vec<f32>,
}

impl Columns {
    pub(super) fn n_columns(&self) -> usize {
        self.indptr.len() - 1
    }

    /// Rows and values of column `c`.
    pub(super) fn column(&self, c: usize) -> (&[u32], &[f32]) {
        let range = self.indptr[c]..self.indptr[c + 1];
        (&self.rows[range.clone()], &self.values[range])
    }

    /// Checks what outside arrays must hold, and sorts the columns that are not in order.
    pub(super) fn check(&mut self, path: &Path) -> Result<(), PecosError> {
        let nnz = self.rows.len();
        if self.values.len() != nnz {
            return Err(matrix_error(
                path,
                format!("{} values, expected {nnz} as there are indices", self.values.len()),
            ));
        }
        if self.n_rows > u32::MAX as usize || self.n_columns() > u32::MAX as usize {
            return Err(matrix_error(path, format!("shape {} x {} is too large", self.n_rows, self.n_columns())));
        }
        if self.indptr.first() != Some(&0) || self.indptr.last() != Some(&nnz) {
            return Err(matrix_error(path, format!("indptr must go from 0 to {nnz}")));
        }
        if let Some(at) = self.indptr.windows(2).position(|w| w[0] > w[1]) {
            return Err(matrix_error(path, format!("indptr falls at column {at}")));
        }
        if let Some(at) = self.rows.iter().position(|&row| row as usize >= self.n_rows) {
            let (got, n) = (self.rows[at], self.n_rows);
            return Err(matrix_error(path, format!("entry {at}: row {got}, there are only {n}")));
        }
        if let Some(at) = self.values.iter().position(|value| !value.is_finite()) {
            let column = self.indptr.partition_point(|&start| start <= at) - 1;
            return Err(PecosError::NotFinite { path: path.to_owned(), column });
        }
        let mut scratch = Vec::new();
        for column in 0..self.n_columns() {
            let range = self.indptr[column]..self.indptr[column + 1];
            sort_row(&mut self.rows[range.clone()], &mut self.values[range], &mut scratch)
                .map_err(|e| PecosError::Repeated { path: path.to_owned(), column, row: e.id })?;
        }
        Ok(())
    }
}

/// Reads a CSC matrix that scipy saved.
///
/// *Cost*: one copy of each array in memory.
pub(super) fn read_columns(path: &Path) -> Result<Columns, PecosError> {
    let NpzMatrix { layout, rows: n_rows, indptr, indices: rows, values, .. } =
        read_npz(path, &ReadOptions::default()).map_err(PecosError::Npz)?;
    if layout != NpzLayout::Csc {
        return Err(matrix_error(path, "format \"csr\", expected \"csc\""));
    }
    let mut matrix = Columns { n_rows, indptr, rows, values };
    matrix.check(path)?;
    Ok(matrix)
}

/// Writes a CSC matrix as scipy's `save_npz(compressed=False)` does, which is what PECOS's own
/// reader wants.
pub(super) fn write_columns(into: &mut (impl Write + Seek), matrix: &Columns) -> io::Result<()> {
    let (rows, columns) = (matrix.n_rows, matrix.n_columns());
    write_npz_arrays(into, NpzLayout::Csc, rows, columns, &matrix.indptr, &matrix.rows, &matrix.values)
}
