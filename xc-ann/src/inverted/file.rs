//! An inverted index in a folder: the arrays are mapped back as they are.

use super::{INVERTED_KIND, InvertedIndex, longest, rounded, span, square};
use crate::code::vertex_rows::is_beyond;
use crate::error::OpenGraphError;
use crate::metric::Metric;
use std::path::Path;
use xc_buffer::Buffer;
use xc_sparse::SparseRow;
use xc_store::{ArrayRef, Container, ContainerWriter, OpenMode, WriteError};

impl InvertedIndex {
    /// Saves the index in a folder.
    ///
    /// # Errors
    /// The folder cannot be written.
    pub fn save(&self, folder: impl AsRef<Path>) -> Result<(), WriteError> {
        let folder = folder.as_ref();
        let mut writer = ContainerWriter::create(folder, INVERTED_KIND)?;
        self.write(&mut writer)?;
        writer.finish()
    }

    /// Adds the arrays and parameters of the index to a container.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn write(&self, writer: &mut ContainerWriter) -> Result<(), WriteError> {
        writer.set_parameter("metric", self.metric.name());
        writer.set_parameter("n_rows", self.len());
        writer.set_parameter("n_columns", self.n_columns);
        writer.set_parameter("nnz", self.nnz());
        let nnz = [self.nnz()];
        writer.add("starts", ArrayRef::new(&self.starts[..], &[self.starts.len()]))?;
        writer.add("columns", ArrayRef::new(&self.columns[..], &nnz))?;
        writer.add("values", ArrayRef::new(&self.values[..], &nnz))?;
        writer.add("lists", ArrayRef::new(&self.lists[..], &[self.lists.len()]))?;
        writer.add("rows", ArrayRef::new(&self.rows[..], &nnz))?;
        writer.add("weights", ArrayRef::new(&self.weights[..], &nnz))
    }

    /// Opens what [`InvertedIndex::save`] wrote.
    ///
    /// # Errors
    /// See [`OpenGraphError`].
    pub fn open(folder: impl AsRef<Path>, mode: OpenMode) -> Result<Self, OpenGraphError> {
        let folder = folder.as_ref();
        let container = Container::open(folder, mode)?;
        container.expect_kind(INVERTED_KIND)?;
        Self::read(&container)
    }

    /// The index of a container.
    ///
    /// *Cost*: a pass over all arrays, after which no search panics, whatever they hold.
    ///
    /// # Errors
    /// See [`OpenGraphError`].
    pub fn read(container: &Container) -> Result<Self, OpenGraphError> {
        let bad = |what| OpenGraphError::Graph { path: container.folder().to_owned(), what };
        let (n, n_columns): (usize, usize) = (container.parameter("n_rows")?, container.parameter("n_columns")?);
        let (nnz, metric): (usize, Metric) = (container.parameter("nnz")?, container.parameter("metric")?);
        if n >= u32::MAX as usize || n_columns > u32::MAX as usize {
            return Err(bad("more rows or columns than have numbers"));
        }
        let starts: Buffer<u64> = container.array_shaped("starts", &[n + 1])?;
        let lists: Buffer<u64> = container.array_shaped("lists", &[n_columns + 1])?;
        let columns: Buffer<u32> = container.array_shaped("columns", &[nnz])?;
        let values: Buffer<f32> = container.array_shaped("values", &[nnz])?;
        let rows: Buffer<u32> = container.array_shaped("rows", &[nnz])?;
        let weights: Buffer<f32> = container.array_shaped("weights", &[nnz])?;
        let divides = |bounds: &[u64]| {
            bounds.first() == Some(&0)
                && bounds.last() == Some(&(nnz as u64))
                && bounds.windows(2).all(|pair| pair[0] <= pair[1])
        };
        if !divides(&starts) || !divides(&lists) {
            return Err(bad("bounds of rows or lists that do not ascend to the number of values"));
        }
        if rows.iter().any(|&row| row as usize >= n) || !weights.iter().all(|w| w.is_finite()) {
            return Err(bad("a list with a row that is not there, or a weight that is not finite"));
        }
        let spans: Vec<f32> =
            lists.windows(2).flat_map(|list| span(&weights[list[0] as usize..list[1] as usize])).collect();
        let mut index = Self {
            metric,
            n_columns,
            starts,
            columns,
            values,
            lists,
            rows,
            weights,
            spans: spans.into(),
            squares: Vec::new().into(),
            longest: 0.0,
        };
        let is_row = |row: &SparseRow<'_>| {
            row.check().is_ok() && row.indices().last().is_none_or(|&last| (last as usize) < n_columns)
        };
        let mut squares = Vec::with_capacity(n);
        for row in (0..n).map(|row| index.row(row)) {
            let square = square(row.values());
            if !is_row(&row) || is_beyond(square) {
                return Err(bad("a row with columns out of order or range, or a value that is not finite"));
            }
            squares.push(rounded(square));
        }
        index.longest = longest(metric, &squares);
        if metric != Metric::InnerProduct {
            index.squares = squares.into();
        }
        Ok(index)
    }
}
