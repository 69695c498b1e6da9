//! Exact neighbours among sparse rows.

use crate::error::{self, defect, guarded};
use crate::index::{metric_of, row_bits};
use crate::input::Input;
use crate::json::to_python;
use crate::pools::{default_threads, pool};
use crate::ranked::{Arrays, arrays};
use crate::train::Run;
use crate::work::{Watch, in_parts, run};
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use serde_json::json;
use std::path::PathBuf;
use xc_ann::{Filter, InvertedIndex};
use xc_model::message::chain;
use xc_sparse::rows::OwnedRows;
use xc_sparse::{CsrMatrix, CsrView};
use xc_store::{ContainerWriter, OpenMode};

/// An index over sparse rows.
#[pyclass(frozen, module = "xc._native")]
pub(crate) struct SparseIndex {
    inner: InvertedIndex,
}

fn sparse(py: Python<'_>, rows: &Input) -> PyResult<CsrMatrix> {
    match rows.taken(py)? {
        OwnedRows::Sparse(rows) => Ok(rows),
        _ => Err(error::data(py, &format!("{}: sparse rows are expected", rows.name()), None, None)),
    }
}

#[pymethods]
impl SparseIndex {
    /// Builds an index.
    #[staticmethod]
    fn build(py: Python<'_>, rows: &Input, metric: &str, with: Run) -> PyResult<(Self, Py<PyAny>)> {
        let metric = metric_of(py, metric)?;
        let matrix = sparse(py, rows)?;
        let watch = Watch::default();
        let threads = with.context(py, &watch)?.threads;
        let pool = pool(threads).map_err(|e| error::option(py, &format!("--threads: {e}")))?;
        let built = run(py, &watch, with.callback(py).as_ref(), || {
            pool.install(|| InvertedIndex::build(matrix.view(), metric))
        })?;
        let inner = built.map_err(|e| error::data(py, &format!("{}: {}", rows.name(), chain(&e)), None, None))?;
        let report = json!({
            "metric": inner.metric(), "columns": inner.n_columns(), "values": inner.nnz(), "bytes": inner.n_bytes(),
        });
        Ok((Self { inner }, to_python(py, &report)?.unbind()))
    }

    /// Opens an index.
    #[staticmethod]
    #[pyo3(signature = (path, in_memory=false))]
    fn open(py: Python<'_>, path: PathBuf, in_memory: bool) -> PyResult<Self> {
        let mode = if in_memory { OpenMode::Read } else { OpenMode::Map };
        let opened = py.detach(|| guarded(|| InvertedIndex::open(&path, mode)));
        let inner = opened.map_err(|panic| defect(py, &panic))?.map_err(|e| error::model(py, &e))?;
        Ok(Self { inner })
    }

    /// Number of rows, and of columns.
    #[getter]
    fn shape(&self) -> (usize, usize) {
        (self.inner.len(), self.inner.n_columns())
    }

    /// Name of its metric.
    #[getter]
    fn metric(&self) -> String {
        self.inner.metric().name().to_owned()
    }

    /// The nearest rows of each query.
    #[pyo3(signature = (queries, top_k, filter=None, threads=None))]
    fn search<'py>(
        &self,
        py: Python<'py>,
        queries: &Input,
        top_k: usize,
        filter: Option<PyReadonlyArray1<'py, i64>>,
        threads: Option<usize>,
    ) -> PyResult<Arrays<'py>> {
        if top_k == 0 {
            return Err(error::option(py, "--top-k 0: at least 1 is expected"));
        }
        let asked = sparse(py, queries)?;
        let bits = filter.map(|rows| row_bits(py, &rows, self.inner.len())).transpose()?;
        let threads = threads.unwrap_or_else(default_threads);
        let pool = pool(threads).map_err(|e| error::option(py, &format!("--threads: {e}")))?;
        let (view, filter) = (asked.view(), bits.as_deref().map(Filter::Bits));
        let found = in_parts(py, asked.rows(), threads, |parts| {
            parts.each(|part| {
                let ends = &view.indptr()[part.start..=part.end];
                let entries = ends[0]..ends[part.len()];
                let ends: Vec<usize> = ends.iter().map(|end| end - entries.start).collect();
                let (indices, data) = (&view.indices()[entries.clone()], &view.data()[entries]);
                let some = CsrView::from_checked((part.len(), view.cols()), &ends, indices, data);
                let found = pool.install(|| self.inner.search_batch(some, top_k, filter.as_ref()));
                found.map(|found| found.0).map_err(|e| e.behind(part.start))
            })
        })?;
        let found = found.map_err(|e| error::data(py, &format!("{}: {}", queries.name(), chain(&e)), None, None))?;
        Ok(arrays(py, &found))
    }

    /// Saves it in a folder.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let work = || {
            ContainerWriter::check(&path).map_err(|e| chain(&e))?;
            self.inner.save(&path).map_err(|e| chain(&e))
        };
        let saved = py.detach(|| guarded(work)).map_err(|panic| defect(py, &panic))?;
        saved.map_err(|line| error::model_line(py, &line))
    }
}
