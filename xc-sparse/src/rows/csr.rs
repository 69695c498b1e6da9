//! Compressed matrices: features by rows, weights by columns.

use super::{LabelRows, SparseRow, SparseRowError, group_by, not_pointers};
use std::ops::Range;
use thiserror::Error;
use xc_dense::{DenseMatrix, DenseRows};

/// Features of many instances: one compressed row per instance, with `u32` feature ids ascending and unique.
///
/// *Shapes*: `rows()` = instances, `cols()` = features.
///
/// ```
/// use xc_sparse::CsrMatrix;
///
/// let matrix = CsrMatrix::try_new((2, 8), vec![0, 2, 3], vec![2, 7, 0], vec![0.5, 1.0, 2.0])?;
/// assert_eq!(matrix.row(0).indices(), [2, 7]);
/// // The same arrays, read as columns.
/// assert_eq!(matrix.view().transpose().column(1).values(), [2.0]);
/// assert!(CsrMatrix::try_new((2, 7), vec![0, 2, 3], vec![2, 7, 0], vec![0.5, 1.0, 2.0]).is_err());
/// # Ok::<(), xc_sparse::MatrixError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct CsrMatrix {
    indptr: Vec<usize>,
    indices: Vec<u32>,
    data: Vec<f32>,
    cols: usize,
}

/// A borrowed [`CsrMatrix`] or some successive rows of one, over memory or over a mapped file.
#[derive(Clone, Copy, Debug)]
pub struct CsrView<'a> {
    indptr: &'a [usize],
    indices: &'a [u32],
    data: &'a [f32],
    cols: usize,
}

/// Weights by columns: one compressed column per label, with `u32` row ids ascending and unique.
#[derive(Clone, Debug, PartialEq)]
pub struct CscMatrix(pub(super) CsrMatrix);

/// A borrowed [`CscMatrix`] or some successive columns of one.
#[derive(Clone, Copy, Debug)]
pub struct CscView<'a>(CsrView<'a>);

/// Why arrays are not a compressed matrix. Its lists are the rows of a [`CsrMatrix`], the columns of a
/// [`CscMatrix`].
#[derive(Clone, Copy, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum MatrixError {
    /// The pointers do not describe the entries.
    #[error("expected one pointer more than the {lists} lists, rising from 0 to {n_entries}; pointer {at} breaks this")]
    Indptr {
        /// Position in the pointers.
        at: usize,
        /// Number of lists.
        lists: usize,
        /// Number of entries.
        n_entries: usize,
    },
    /// The numbers of ids and values differ.
    #[error("{values} values for {ids} ids, expected as many")]
    Lengths {
        /// Number of ids.
        ids: usize,
        /// Number of values.
        values: usize,
    },
    /// An id is too large.
    #[error("list {list} has the id {id}, expected ids below {bound}")]
    OutOfRange {
        /// The list.
        list: usize,
        /// The id found.
        id: u32,
        /// Number of columns (of rows in a [`CscMatrix`]).
        bound: usize,
    },
    /// A list is not ascending and unique, or has a value that is not finite.
    #[error("list {list}: {source}")]
    List {
        /// The list.
        list: usize,
        /// What is wrong with it.
        source: SparseRowError,
    },
}

/// Whether arrays are a matrix; `row` says what else is asked of each row.
fn check<'a>(
    (rows, cols): (usize, usize),
    indptr: &[usize],
    indices: &'a [u32],
    data: &'a [f32],
    row: impl Fn(&SparseRow<'a>) -> Result<(), SparseRowError>,
) -> Result<(), MatrixError> {
    let n_entries = indices.len();
    if data.len() != n_entries {
        return Err(MatrixError::Lengths { ids: n_entries, values: data.len() });
    }
    let broken = |at| MatrixError::Indptr { at, lists: rows, n_entries };
    if Some(indptr.len()) != rows.checked_add(1) {
        return Err(broken(indptr.len()));
    }
    if let Some(at) = not_pointers(indptr, n_entries) {
        return Err(broken(at));
    }
    for list in 0..rows {
        let range = indptr[list]..indptr[list + 1];
        let entries = SparseRow::from_checked(&indices[range.clone()], &data[range]);
        row(&entries).map_err(|source| MatrixError::List { list, source })?;
        // Ascending: the last is the largest.
        if let Some(&id) = entries.indices().last().filter(|&&id| id as usize >= cols) {
            return Err(MatrixError::OutOfRange { list, id, bound: cols });
        }
    }
    Ok(())
}

impl CsrMatrix {
    /// Vectors as rows of features: those of each that are not 0.
    pub fn from_vectors(vectors: DenseRows<'_>) -> Self {
        let (mut indptr, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
        for row in vectors.iter() {
            for (id, &value) in (0..).zip(row).filter(|(_, value)| **value != 0.0) {
                indices.push(id);
                values.push(value);
            }
            indptr.push(indices.len());
        }
        Self::from_checked((vectors.len(), vectors.width()), indptr, indices, values)
    }

    /// The same of vectors that are given up: where nobody else has them, those that are rows already are freed while others
    /// are still vectors, so that at most one of both is in memory, and a MiB. *Cost*: two passes over the values.
    pub fn from_matrix(vectors: DenseMatrix) -> Self {
        /// Values that are freed together.
        const FREED: usize = 1 << 18;
        let DenseMatrix { rows, columns, values } = vectors;
        let mut values = match values.try_into_vec() {
            Ok(values) if columns > 0 => values,
            Ok(values) => return Self::from_vectors(DenseMatrix::new(rows, columns, values).view()),
            Err(shared) => return Self::from_vectors(DenseMatrix::new(rows, columns, shared).view()),
        };
        let mut indptr = vec![0; rows + 1];
        for (row, values) in values.chunks_exact(columns).enumerate() {
            indptr[row + 1] = indptr[row] + values.iter().filter(|value| **value != 0.0).count();
        }
        // Zeros take memory once they are written.
        let (mut indices, mut data) = (vec![0u32; indptr[rows]], vec![0.0f32; indptr[rows]]);
        let mut freed = values.len();
        for row in (0..rows).rev() {
            let entries = (0..).zip(&values[row * columns..]).filter(|(_, value)| **value != 0.0);
            for (at, (id, &value)) in (indptr[row]..).zip(entries) {
                (indices[at], data[at]) = (id, value);
            }
            values.truncate(row * columns);
            if freed - values.len() >= FREED {
                values.shrink_to_fit();
                freed = values.len();
            }
        }
        Self::from_checked((rows, columns), indptr, indices, data)
    }

    /// Checks the arrays and takes them, without a copy. *Shapes*: `(rows, cols)`; rows + 1 pointers from
    /// 0 on; the entries of row `i` are at `indptr[i]..indptr[i + 1]`. *Cost*: O(rows + entries).
    ///
    /// # Errors
    /// See [`MatrixError`].
    pub fn try_new(
        shape: (usize, usize),
        indptr: Vec<usize>,
        indices: Vec<u32>,
        data: Vec<f32>,
    ) -> Result<Self, MatrixError> {
        CsrView::try_new(shape, &indptr, &indices, &data)?;
        Ok(Self::from_checked(shape, indptr, indices, data))
    }

    /// As [`CsrMatrix::try_new`], for arrays that are known to be a matrix.
    ///
    /// # Panics
    /// If they are none; values that are not finite are let pass.
    pub fn from_checked(shape: (usize, usize), indptr: Vec<usize>, indices: Vec<u32>, data: Vec<f32>) -> Self {
        if let Err(error) = check(shape, &indptr, &indices, &data, SparseRow::check_order) {
            panic!("{error}");
        }
        Self { indptr, indices, data, cols: shape.1 }
    }

    /// A matrix without entries.
    pub fn zero((rows, cols): (usize, usize)) -> Self {
        Self { indptr: vec![0; rows + 1], indices: Vec::new(), data: Vec::new(), cols }
    }

    /// The rows with these numbers, which ascend, in the memory of all: nothing is copied elsewhere.
    ///
    /// # Panics
    /// If a number is not above the one before it, or there is no such row.
    pub fn keep(mut self, rows: &[u32]) -> Self {
        assert!(rows.is_sorted_by(|a, b| a < b), "numbers of rows that do not ascend");
        let mut end = 0;
        for (to, from) in rows.iter().map(|&row| row as usize).enumerate() {
            // Row `to` ends nowhere behind row `from`, so that its pointer may be written.
            let entries = self.indptr[from]..self.indptr[from + 1];
            let length = entries.len();
            self.indices.copy_within(entries.clone(), end);
            self.data.copy_within(entries, end);
            self.indptr[to] = end;
            end += length;
        }
        self.indptr.truncate(rows.len() + 1);
        self.indptr[rows.len()] = end;
        self.indices.truncate(end);
        self.data.truncate(end);
        self
    }

    /// The matrix, borrowed.
    #[inline]
    pub fn view(&self) -> CsrView<'_> {
        CsrView { indptr: &self.indptr, indices: &self.indices, data: &self.data, cols: self.cols }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.indptr.len() - 1
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Number of entries.
    pub fn nnz(&self) -> usize {
        self.indices.len()
    }

    /// Where each row begins among the entries, from 0, and the number of entries.
    pub fn indptr(&self) -> &[usize] {
        &self.indptr
    }

    /// The columns of the entries, row after row.
    pub fn indices(&self) -> &[u32] {
        &self.indices
    }

    /// The values of the entries.
    pub fn data(&self) -> &[f32] {
        &self.data
    }

    /// The values of the entries, to be changed.
    pub fn data_mut(&mut self) -> &mut [f32] {
        &mut self.data
    }

    /// See [`CsrView::row`].
    pub fn row(&self, i: usize) -> SparseRow<'_> {
        self.view().row(i)
    }

    /// See [`CsrView::slice`].
    pub fn slice(&self, rows: Range<usize>) -> CsrView<'_> {
        self.view().slice(rows)
    }

    /// The pointers and ids, and the values to be changed.
    pub fn parts_mut(&mut self) -> (&[usize], &[u32], &mut [f32]) {
        (&self.indptr, &self.indices, &mut self.data)
    }

    /// The pointers, ids and values, without a copy.
    pub fn into_parts(self) -> (Vec<usize>, Vec<u32>, Vec<f32>) {
        (self.indptr, self.indices, self.data)
    }

    /// Adds rows behind those that there are. *Cost*: a pass over those that are added, and over all where the arrays grow.
    ///
    /// # Panics
    /// If they are of another width.
    pub fn append(&mut self, more: CsrView<'_>) {
        assert_eq!(more.cols(), self.cols, "columns of rows that are added");
        let (behind, from) = (self.indices.len(), more.indptr[0]);
        self.indptr.extend(more.indptr[1..].iter().map(|at| at - from + behind));
        self.indices.extend_from_slice(more.indices);
        self.data.extend_from_slice(more.data);
    }

    /// The transposed matrix in the same arrays: each row is a column.
    pub fn transpose(self) -> CscMatrix {
        CscMatrix(self)
    }
}

impl<'a> CsrView<'a> {
    /// Checks borrowed arrays; see [`CsrMatrix::try_new`].
    ///
    /// # Errors
    /// See [`MatrixError`].
    pub fn try_new(
        (rows, cols): (usize, usize),
        indptr: &'a [usize],
        indices: &'a [u32],
        data: &'a [f32],
    ) -> Result<Self, MatrixError> {
        check((rows, cols), indptr, indices, data, SparseRow::check)?;
        Ok(Self { indptr, indices, data, cols })
    }

    /// As [`CsrView::try_new`], for a slice of a larger matrix, whose pointers count from its beginning.
    #[cfg(feature = "sprs")]
    pub(super) fn of_slice(
        shape: (usize, usize),
        indptr: &'a [usize],
        indices: &'a [u32],
        data: &'a [f32],
    ) -> Result<Self, MatrixError> {
        let base = indptr.first().copied().unwrap_or(0);
        let own: Vec<usize> = indptr.iter().map(|at| at.wrapping_sub(base)).collect();
        check(shape, &own, indices, data, SparseRow::check)?;
        Ok(Self { indptr, indices, data, cols: shape.1 })
    }

    /// As [`CsrView::try_new`], for arrays that are known to be a matrix, without a pass over them in
    /// release builds: others give wrong answers, or a panic where they are used.
    ///
    /// # Panics
    /// If the lengths do not fit each other. In debug builds if the arrays are no matrix; values that
    /// are not finite are let pass.
    pub fn from_checked(shape: (usize, usize), indptr: &'a [usize], indices: &'a [u32], data: &'a [f32]) -> Self {
        let (rows, cols) = shape;
        assert!(indptr.len() == rows + 1 && indptr[rows] - indptr[0] == indices.len(), "pointers of {rows} rows");
        assert_eq!(indices.len(), data.len(), "ids and values");
        if cfg!(debug_assertions)
            && let Err(error) = check(shape, indptr, indices, data, SparseRow::check_order)
        {
            panic!("{error}");
        }
        Self { indptr, indices, data, cols }
    }

    /// Number of rows.
    #[inline]
    pub fn rows(&self) -> usize {
        self.indptr.len() - 1
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Number of entries.
    pub fn nnz(&self) -> usize {
        self.indices.len()
    }

    /// Where each row begins, and the last ends; the first is not 0 where this is a slice of a larger
    /// matrix.
    pub fn indptr(&self) -> &'a [usize] {
        self.indptr
    }

    /// The columns of the entries, row after row.
    pub fn indices(&self) -> &'a [u32] {
        self.indices
    }

    /// The values of the entries.
    pub fn data(&self) -> &'a [f32] {
        self.data
    }

    /// Row `i`.
    ///
    /// # Panics
    /// If `i >= rows()`.
    #[inline]
    pub fn row(&self, i: usize) -> SparseRow<'a> {
        let range = self.range(i);
        SparseRow::from_checked(&self.indices[range.clone()], &self.data[range])
    }

    /// Where row `i` is among the entries.
    #[inline]
    pub fn range(&self, i: usize) -> Range<usize> {
        // A slice of a matrix keeps the pointers of the whole: offsets count from its first.
        let base = self.indptr[0];
        self.indptr[i] - base..self.indptr[i + 1] - base
    }

    /// Every row in order.
    pub fn iter(self) -> impl ExactSizeIterator<Item = SparseRow<'a>> + Clone {
        (0..self.rows()).map(move |i| self.row(i))
    }

    /// Successive rows, without a copy.
    ///
    /// # Panics
    /// If there are no such rows.
    pub fn slice(&self, rows: Range<usize>) -> Self {
        let base = self.indptr[0];
        let entries = self.indptr[rows.start] - base..self.indptr[rows.end] - base;
        let (indices, data) = (&self.indices[entries.clone()], &self.data[entries]);
        Self { indptr: &self.indptr[rows.start..=rows.end], indices, data, cols: self.cols }
    }

    /// A matrix of the rows with these numbers, in this order.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn select(&self, rows: &[u32]) -> CsrMatrix {
        let (mut indptr, mut indices, mut data) = (vec![0], Vec::new(), Vec::new());
        for &row in rows {
            let row = self.row(row as usize);
            indices.extend_from_slice(row.indices());
            data.extend_from_slice(row.values());
            indptr.push(indices.len());
        }
        CsrMatrix::from_checked((rows.len(), self.cols), indptr, indices, data)
    }

    /// A copy.
    pub fn to_owned(&self) -> CsrMatrix {
        let indptr = self.indptr.iter().map(|at| at - self.indptr[0]).collect();
        CsrMatrix::from_checked((self.rows(), self.cols), indptr, self.indices.to_vec(), self.data.to_vec())
    }

    /// The transposed matrix in the same arrays: each row is a column.
    pub fn transpose(self) -> CscView<'a> {
        CscView(self)
    }
}

impl CscMatrix {
    /// As [`CsrMatrix::try_new`], by columns. *Shapes*: `(rows, cols)`; cols + 1 pointers.
    ///
    /// # Errors
    /// See [`MatrixError`].
    pub fn try_new(
        (rows, cols): (usize, usize),
        indptr: Vec<usize>,
        indices: Vec<u32>,
        data: Vec<f32>,
    ) -> Result<Self, MatrixError> {
        CsrMatrix::try_new((cols, rows), indptr, indices, data).map(Self)
    }

    /// The matrix, borrowed.
    pub fn view(&self) -> CscView<'_> {
        self.0.view().transpose()
    }

    /// The transposed matrix in the same arrays: each column is a row.
    pub fn transpose(self) -> CsrMatrix {
        self.0
    }

    /// The same matrix by rows. *Cost*: O(rows + columns + entries).
    pub fn to_csr(&self) -> CsrMatrix {
        let columns = self.0.view();
        // Columns are visited in order: those of each row ascend.
        let entries = columns
            .iter()
            .zip(0..)
            .flat_map(|(entries, column)| entries.iter().map(move |(row, value)| (row, (column, value))));
        let (indptr, entries) = group_by(columns.cols, entries).into_parts();
        let (indices, data) = entries.into_iter().unzip();
        CsrMatrix { indptr, indices, data, cols: columns.rows() }
    }
}

impl<'a> CscView<'a> {
    /// Checks borrowed arrays; see [`CscMatrix::try_new`].
    ///
    /// # Errors
    /// See [`MatrixError`].
    pub fn try_new(
        (rows, cols): (usize, usize),
        indptr: &'a [usize],
        indices: &'a [u32],
        data: &'a [f32],
    ) -> Result<Self, MatrixError> {
        CsrView::try_new((cols, rows), indptr, indices, data).map(Self)
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.0.cols()
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.0.rows()
    }

    /// Column `j`: its rows and values.
    ///
    /// # Panics
    /// If `j >= cols()`.
    pub fn column(&self, j: usize) -> SparseRow<'a> {
        self.0.row(j)
    }

    /// Successive columns, without a copy.
    ///
    /// # Panics
    /// If there are no such columns.
    pub fn slice(&self, columns: Range<usize>) -> Self {
        Self(self.0.slice(columns))
    }

    /// The transposed matrix in the same arrays: each column is a row.
    pub fn transpose(self) -> CsrView<'a> {
        self.0
    }
}

/// Instances with features and labels, and the labels' names if the source has them.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Dataset {
    /// Features, one row per instance.
    pub features: CsrMatrix,
    /// Labels, one list per instance; as many rows as `features`.
    pub labels: LabelRows,
    /// Name of each label, if the source has names.
    pub label_names: Option<Vec<String>>,
}

#[cfg(test)]
mod tests;
