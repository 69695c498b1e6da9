//! An index that owns its rows.

use crate::error::{BuildError, QueryError};
use crate::graph::refresh_policy::{Refresh, Refreshed};
use crate::graph::whole::Graph;
use crate::metric::Metric;
use crate::observe::BuildEvent;
use crate::params::{BuildParams, Fitted, Scope, SearchParams};
use crate::search::beam::SearchStats;
use crate::search::filter::Filter;
use crate::search::norm_bounds::Lengths;
use crate::search::query::SearchScratch;
use xc_buffer::Buffer;
use xc_buffer::Cancel;
use xc_buffer::Observer;
use xc_dense::DenseRows;
use xc_sparse::rank::{RankedBatch, Scored};

/// Rows and a graph over them, which can be searched without further data.
///
/// Rows are numbered in the order in which they were added; numbers stay when other rows are deleted.
#[derive(Clone, Debug)]
pub struct Index {
    graph: Graph,
    rows: Buffer<f32>,
}

impl Index {
    /// Builds an index over rows: a vector, large pages, or values of a mapped file. See
    /// [`Graph::build`].
    ///
    /// # Errors
    /// See [`BuildError`].
    pub fn build(
        rows: impl Into<Buffer<f32>>,
        width: usize,
        params: &BuildParams,
        observer: &dyn Observer<BuildEvent>,
    ) -> Result<Self, BuildError> {
        Self::build_for(rows, width, None, params, observer)
    }

    /// [`Index::build`] for queries like these: see [`Graph::build_for`].
    ///
    /// # Errors
    /// See [`BuildError`].
    pub fn build_for(
        rows: impl Into<Buffer<f32>>,
        width: usize,
        queries: Option<DenseRows<'_>>,
        params: &BuildParams,
        observer: &dyn Observer<BuildEvent>,
    ) -> Result<Self, BuildError> {
        let rows = rows.into();
        if width == 0 {
            return Err(BuildError::Nothing { what: "the width of rows" });
        }
        if !rows.len().is_multiple_of(width) {
            return Err(BuildError::Values { n: rows.len(), expected: rows.len() / width * width, width });
        }
        let graph = Graph::build_for(DenseRows::new(&rows, width), queries, params, observer)?;
        Ok(Self { graph, rows })
    }

    /// Combines a graph with its rows.
    ///
    /// # Panics
    /// If rows of the graph are missing.
    pub fn of(graph: Graph, rows: impl Into<Buffer<f32>>) -> Self {
        let rows = rows.into();
        let n = rows.len() / graph.dim().max(1);
        assert!(graph.n_rows_needed() <= n, "{n} rows, the graph has {}", graph.n_rows_needed());
        Self { graph, rows }
    }

    /// The graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// All rows, deleted ones included.
    pub fn rows(&self) -> DenseRows<'_> {
        DenseRows::new(&self.rows, self.graph.dim())
    }

    /// The default scope of a search. See [`Graph::default_scope`].
    pub fn default_scope(&self) -> Scope {
        self.graph.default_scope()
    }

    /// The `k` best rows of a query, searched with the fitted scope. See [`Graph::search`].
    ///
    /// # Errors
    /// See [`QueryError`].
    pub fn nearest(&self, query: &[f32], k: usize, scratch: &mut SearchScratch) -> Result<Vec<Scored>, QueryError> {
        let mut out = Vec::new();
        self.search(query, SearchParams::top(k), None, scratch, &mut out)?;
        Ok(out)
    }

    /// See [`Graph::search`].
    ///
    /// # Errors
    /// See [`QueryError`].
    pub fn search(
        &self,
        query: &[f32],
        params: SearchParams,
        filter: Option<&Filter<'_>>,
        scratch: &mut SearchScratch,
        out: &mut Vec<Scored>,
    ) -> Result<SearchStats, QueryError> {
        self.graph.search(self.rows(), query, params, filter, scratch, out)
    }

    /// See [`Graph::search_batch`].
    ///
    /// # Errors
    /// See [`QueryError`].
    pub fn search_batch(
        &self,
        queries: DenseRows<'_>,
        params: SearchParams,
        filter: Option<&Filter<'_>>,
    ) -> Result<(RankedBatch, SearchStats), QueryError> {
        self.graph.search_batch(self.rows(), queries, params, filter)
    }

    /// The exact answers, by comparing all rows that are not deleted and pass the filter.
    ///
    /// # Panics
    /// If widths differ.
    pub fn exact(&self, queries: DenseRows<'_>, k: usize, filter: Option<&Filter<'_>>) -> RankedBatch {
        self.graph.exact(self.rows(), queries, k, filter)
    }

    /// [`Index::exact`]; `None` where `cancel` asked to stop meanwhile.
    ///
    /// # Panics
    /// If widths differ.
    pub fn exact_stoppable(
        &self,
        queries: DenseRows<'_>,
        k: usize,
        filter: Option<&Filter<'_>>,
        cancel: &dyn Cancel,
    ) -> Option<RankedBatch> {
        self.graph.exact_stoppable(self.rows(), queries, k, filter, cancel)
    }

    /// The share of the exact answers that were found. See [`Graph::recall`].
    ///
    /// # Panics
    /// If numbers of queries or widths differ.
    pub fn recall(&self, queries: DenseRows<'_>, found: &RankedBatch, exact: &RankedBatch) -> f64 {
        self.graph.recall(self.rows(), queries, found, exact)
    }

    /// The lengths of all rows that are not deleted, with which answers can be proven under inner products.
    pub fn lengths(&self) -> Option<Lengths> {
        let is_product = self.metric() == Metric::InnerProduct;
        is_product.then(|| Lengths::new(self.rows(), self.graph.live_rows()))
    }

    /// See [`Graph::fit`].
    ///
    /// # Errors
    /// See [`QueryError`].
    pub fn fit(&mut self, queries: DenseRows<'_>, k: usize, target: f64) -> Result<Fitted, QueryError> {
        self.graph.fit(DenseRows::new(&self.rows, self.graph.dim()), queries, k, target)
    }

    /// See [`Graph::fit_to`].
    ///
    /// # Errors
    /// See [`QueryError`].
    ///
    /// # Panics
    /// If there are not as many answers as queries.
    pub fn fit_to(
        &mut self,
        queries: DenseRows<'_>,
        truth: &RankedBatch,
        k: usize,
        target: f64,
    ) -> Result<Fitted, QueryError> {
        self.graph.fit_to(DenseRows::new(&self.rows, self.graph.dim()), queries, truth, k, target)
    }

    /// Adds rows, which get the next numbers. See [`Graph::insert`].
    ///
    /// # Errors
    /// See [`BuildError`].
    pub fn insert(&mut self, rows: DenseRows<'_>, observer: &dyn Observer<BuildEvent>) -> Result<(), BuildError> {
        self.graph.check_width(rows)?;
        let first = self.rows().len();
        let all: Vec<f32> = self.rows.iter().chain(rows.values()).copied().collect();
        let new: Vec<u32> = (first as u32..).take(rows.len()).collect();
        self.graph.insert(DenseRows::new(&all, rows.width()), &new, observer)?;
        self.rows = all.into();
        Ok(())
    }

    /// Deletes rows. See [`Graph::delete`].
    pub fn delete(&mut self, rows: &[u32]) -> usize {
        self.graph.delete(rows)
    }

    /// Updates the index to rows that moved. See [`Graph::refresh`].
    ///
    /// # Errors
    /// See [`BuildError`].
    pub fn refresh(
        &mut self,
        rows: impl Into<Buffer<f32>>,
        queries: Option<DenseRows<'_>>,
        policy: Option<Refresh>,
        observer: &dyn Observer<BuildEvent>,
    ) -> Result<Refreshed, BuildError> {
        let rows = rows.into();
        let (n, expected) = (rows.len(), self.rows.len());
        if n != expected {
            return Err(BuildError::Values { n, expected, width: self.graph.dim() });
        }
        let done = self.graph.refresh(DenseRows::new(&rows, self.graph.dim()), queries, policy, observer)?;
        self.rows = rows;
        Ok(done)
    }

    /// Bytes of memory, rows included.
    pub fn n_bytes(&self) -> usize {
        self.graph.n_bytes() + 4 * self.rows.len()
    }

    /// The metric of the scores.
    pub fn metric(&self) -> Metric {
        self.graph.params().metric
    }
}

#[cfg(feature = "store")]
mod file {
    use super::Index;
    use crate::error::OpenGraphError;
    use crate::graph::file::KIND;
    use crate::graph::whole::Graph;
    use std::path::Path;
    use xc_buffer::Buffer;
    use xc_store::{ArrayRef, Container, ContainerWriter, OpenMode, WriteError};

    impl Index {
        /// Saves graph and rows in a folder.
        ///
        /// # Errors
        /// The folder cannot be written.
        pub fn save(&self, folder: impl AsRef<Path>) -> Result<(), WriteError> {
            let folder = folder.as_ref();
            let mut writer = ContainerWriter::create(folder, KIND)?;
            self.graph.write(&mut writer)?;
            let (n, width) = (self.rows().len(), self.graph.dim());
            writer.set_parameter("n_rows", n);
            writer.add("rows", ArrayRef::new(&self.rows[..], &[n, width]))?;
            writer.finish()
        }

        /// Opens what [`Index::save`] wrote; arrays stay in the file until they are first changed.
        ///
        /// # Errors
        /// See [`OpenGraphError`].
        pub fn open(folder: impl AsRef<Path>, mode: OpenMode) -> Result<Self, OpenGraphError> {
            let folder = folder.as_ref();
            let container = Container::open(folder, mode)?;
            container.expect_kind(KIND)?;
            Self::read(&container)
        }

        /// The index of a container.
        ///
        /// *Cost*: a pass over all arrays.
        ///
        /// # Errors
        /// See [`OpenGraphError`].
        pub fn read(container: &Container) -> Result<Self, OpenGraphError> {
            let graph = Graph::read(container)?;
            let n: usize = container.parameter("n_rows")?;
            let rows: Buffer<f32> = container.array_shaped("rows", &[n, graph.dim()])?;
            let bad = |what| OpenGraphError::Graph { path: container.folder().to_owned(), what };
            if graph.n_rows_needed() > n {
                return Err(bad("a row of the graph that is not there"));
            }
            if !rows.iter().all(|v| v.is_finite()) {
                return Err(bad("a row with a value that is not finite"));
            }
            Ok(Self { graph, rows })
        }
    }
}
