//! Nearest neighbours among vectors.

use crate::error::{self, defect, guarded};
use crate::input::Input;
use crate::json::to_python;
use crate::labels::Labels;
use crate::model::Model;
use crate::pools::{default_threads, pool};
use crate::ranked::{Arrays, arrays};
use crate::train::{Run, chosen};
use crate::work::{Watch, in_parts, run};
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, TryLockError};
use std::time::Duration;
use xc_ann::{BuildError, BuildParams, Filter, Metric, Refresh, Scope, SearchParams};
use xc_buffer::Cancel;
use xc_dense::{DenseMatrix, DenseRows};
use xc_model::message::chain;
use xc_model::{IndexError, IndexFit, label_index_params};
use xc_options::settings::{Choices, index};
use xc_sparse::rows::OwnedRows;
use xc_store::{ContainerWriter, OpenMode};

/// An index over vectors.
#[pyclass(frozen, module = "xc._native")]
pub(crate) struct Index {
    inner: RwLock<xc_ann::Index>,
    /// Held by a change from the copy that it begins with until that is in place: of two at a time the second would undo
    /// the first.
    changing: Mutex<()>,
}

/// How long a change waits between two looks whether it is its turn.
const TURN: Duration = Duration::from_millis(2);

/// How an index is built, from options by their names and values as they are typed.
fn params(
    py: Python<'_>,
    usual: BuildParams,
    options: &[(String, String)],
    seed: u64,
) -> PyResult<(BuildParams, Choices)> {
    let choices = chosen(py, &index::TABLE, options)?;
    let made = index::params(usual, &choices).map_err(|e| error::option(py, &e.to_string()))?;
    Ok((BuildParams { seed, ..made }, choices))
}

fn dense(py: Python<'_>, rows: &Input) -> PyResult<DenseMatrix> {
    match rows.taken(py)? {
        OwnedRows::Dense(rows) => Ok(rows),
        _ => Err(error::data(py, &format!("{}: vectors are expected", rows.name()), None, None)),
    }
}

pub(crate) fn metric_of(py: Python<'_>, name: &str) -> PyResult<Metric> {
    let metric = serde_json::from_value(Value::String(name.to_owned()));
    metric.map_err(|_| error::option(py, "--metric: l2, cosine or ip is expected"))
}

/// A bit for each row that may be an answer.
pub(crate) fn row_bits(py: Python<'_>, rows: &PyReadonlyArray1<'_, i64>, n_rows: usize) -> PyResult<Vec<u64>> {
    let mut bits = vec![0u64; n_rows.div_ceil(64)];
    for &row in rows.as_array() {
        match usize::try_from(row) {
            Ok(row) if row < n_rows => bits[row / 64] |= 1 << (row % 64),
            _ => {
                let line = format!("filter: row {row}; rows from 0 and below {n_rows} are expected");
                return Err(error::data(py, &line, None, None));
            }
        }
    }
    Ok(bits)
}

fn build_error(py: Python<'_>, error: &BuildError) -> PyErr {
    match error {
        BuildError::Cancelled => pyo3::exceptions::PyKeyboardInterrupt::new_err("cancelled"),
        _ => error::data(py, &chain(error), None, None),
    }
}

#[pymethods]
impl Index {
    /// Builds an index.
    #[staticmethod]
    fn build(
        py: Python<'_>,
        vectors: &Input,
        metric: &str,
        fit_queries: Option<&Input>,
        options: Vec<(String, String)>,
        with: Run,
    ) -> PyResult<(Self, Py<PyAny>)> {
        let metric = metric_of(py, metric)?;
        let (params, _) = params(py, BuildParams::new(metric), &options, with.seed)?;
        let values = dense(py, vectors)?;
        let asked = fit_queries.map(|rows| dense(py, rows)).transpose()?;
        if let Some(asked) = &asked
            && asked.columns != values.columns
        {
            let (got, expected) = (asked.columns, values.columns);
            let line = format!("fit_queries: vectors of {got} values; the others have {expected}");
            return Err(error::data(py, &line, None, None));
        }
        let watch = Watch::default();
        let threads = with.context(py, &watch)?.threads;
        let pool = pool(threads).map_err(|e| error::option(py, &format!("--threads: {e}")))?;
        let width = values.columns;
        let built = run(py, &watch, with.callback(py).as_ref(), || {
            let asked = asked.as_ref().map(DenseMatrix::view);
            pool.install(|| xc_ann::Index::build_for(values.values, width, asked, &params, &watch))
        })?;
        let built = built.map_err(|e| build_error(py, &e))?;
        let graph = built.graph();
        let report = json!({
            "metric": built.metric(), "graph": graph.stats(), "cells": graph.n_cells(), "fitted": graph.fitted(),
            "scan": graph.is_scan(), "bytes": built.n_bytes(),
        });
        Ok((Self::of(built), to_python(py, &report)?.unbind()))
    }

    /// Opens an index.
    #[staticmethod]
    #[pyo3(signature = (path, in_memory=false))]
    fn open(py: Python<'_>, path: PathBuf, in_memory: bool) -> PyResult<Self> {
        let mode = if in_memory { OpenMode::Read } else { OpenMode::Map };
        let opened = py.detach(|| guarded(|| xc_ann::Index::open(&path, mode)));
        opened.map_err(|panic| defect(py, &panic))?.map(Self::of).map_err(|e| error::model(py, &e))
    }

    /// Number of vectors, those that were deleted included, and values of each.
    #[getter]
    fn shape(&self) -> (usize, usize) {
        self.read(|index| (index.rows().len(), index.graph().dim()))
    }

    /// Name of its metric.
    #[getter]
    fn metric(&self) -> String {
        self.read(|index| index.metric().name().to_owned())
    }

    /// The nearest vectors of each query.
    #[pyo3(signature = (queries, top_k, filter=None, search_width=None, cells=None, exact=false, threads=None))]
    fn search<'py>(
        &self,
        py: Python<'py>,
        queries: &Input,
        top_k: usize,
        filter: Option<PyReadonlyArray1<'py, i64>>,
        search_width: Option<f32>,
        cells: Option<usize>,
        exact: bool,
        threads: Option<usize>,
    ) -> PyResult<Arrays<'py>> {
        let asked = dense(py, queries)?;
        let (n_rows, width) = self.shape();
        if top_k == 0 {
            return Err(error::option(py, "--top-k 0: at least 1 is expected"));
        }
        if cells == Some(0) {
            return Err(error::option(py, "--cells 0: at least 1 is expected"));
        }
        if asked.columns != width {
            let (name, got) = (queries.name(), asked.columns);
            return Err(error::data(
                py,
                &format!("{name}: vectors of {got} values; the index has {width}"),
                None,
                None,
            ));
        }
        let bits = filter.map(|rows| row_bits(py, &rows, n_rows)).transpose()?;
        let threads = threads.unwrap_or_else(default_threads);
        let pool = pool(threads).map_err(|e| error::option(py, &format!("--threads: {e}")))?;
        let scope = cells.map(Scope::cells).or(search_width.map(Scope::width));
        // Rows are found in one state of the index: no change comes between two parts.
        let found = in_parts(py, asked.rows, threads, |parts| {
            let filter = bits.as_deref().map(Filter::Bits);
            self.read(|index| match exact {
                true => Ok(pool
                    .install(|| index.exact_stoppable(asked.view(), top_k, filter.as_ref(), parts.watch()))
                    .into_iter()
                    .collect()),
                false => parts.each(|part| {
                    let (values, params) =
                        (&asked.values[part.start * width..part.end * width], SearchParams { top_k, scope });
                    let found =
                        pool.install(|| index.search_batch(DenseRows::new(values, width), params, filter.as_ref()));
                    found.map(|found| found.0).map_err(|e| e.behind(part.start))
                }),
            })
        })?;
        Ok(arrays(py, &found.map_err(|e| error::data(py, &chain(&e), None, None))?))
    }

    /// Adds vectors behind the others; the row of the first.
    fn insert(&self, py: Python<'_>, vectors: &Input, with: Run) -> PyResult<usize> {
        let rows = dense(py, vectors)?;
        self.change(py, &with, |index, watch| {
            let first = index.rows().len();
            index.insert(rows.view(), watch).map(|()| first)
        })
    }

    /// Deletes rows; how many were there.
    fn delete(&self, py: Python<'_>, rows: Vec<u32>) -> PyResult<usize> {
        let n = self.shape().0;
        if let Some(row) = rows.iter().find(|&&row| row as usize >= n) {
            let line = format!("delete: row {row}; rows from 0 and below {n} are expected");
            return Err(error::data(py, &line, None, None));
        }
        let watch = Watch::default();
        let done = run(py, &watch, None, || {
            let _turn = self.turn(&watch)?;
            Ok(self.inner.write().unwrap_or_else(PoisonError::into_inner).delete(&rows))
        })?;
        done.map_err(|e| build_error(py, &e))
    }

    /// Brings the index up to vectors that have changed.
    fn refresh<'py>(
        &self,
        py: Python<'py>,
        vectors: &Input,
        fit_queries: Option<&Input>,
        policy: Option<&str>,
        with: Run,
    ) -> PyResult<Bound<'py, PyAny>> {
        let policy = policy.map(|name| policy_of(py, name)).transpose()?;
        let rows = dense(py, vectors)?;
        let (got, expected) = ((rows.rows, rows.columns), self.shape());
        if got != expected {
            let line = format!("{}: {got:?} values; {expected:?} are expected, as the index has", vectors.name());
            return Err(error::data(py, &line, None, None));
        }
        let asked = fit_queries.map(|rows| dense(py, rows)).transpose()?;
        let asked = asked.as_ref().map(DenseMatrix::view);
        let done = self.change(py, &with, |index, watch| index.refresh(rows.values, asked, policy, watch))?;
        to_python(py, &json!(done))
    }

    /// Saves it in a folder.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let work = || {
            ContainerWriter::check(&path).map_err(|e| chain(&e))?;
            self.read(|index| index.save(&path).map_err(|e| chain(&e)))
        };
        let saved = py.detach(|| guarded(work)).map_err(|panic| defect(py, &panic))?;
        saved.map_err(|line| error::model_line(py, &line))
    }
}

fn policy_of(py: Python<'_>, name: &str) -> PyResult<Refresh> {
    Ok(match name {
        "codes" => Refresh::Codes,
        "search" => Refresh::SHORT,
        "two-hops" => Refresh::TwoHops,
        "both" => Refresh::Both,
        "rebuild" => Refresh::Rebuild,
        _ => return Err(error::option(py, "--policy: codes, search, two-hops, both or rebuild is expected")),
    })
}

impl Index {
    fn of(inner: xc_ann::Index) -> Self {
        Self { inner: RwLock::new(inner), changing: Mutex::default() }
    }

    /// Waits until no other thread changes the index.
    fn turn(&self, watch: &Watch) -> Result<MutexGuard<'_, ()>, BuildError> {
        loop {
            match self.changing.try_lock() {
                Ok(turn) => return Ok(turn),
                Err(TryLockError::Poisoned(turn)) => return Ok(turn.into_inner()),
                Err(TryLockError::WouldBlock) if watch.cancelled() => return Err(BuildError::Cancelled),
                Err(TryLockError::WouldBlock) => std::thread::sleep(TURN),
            }
        }
    }

    fn read<T>(&self, work: impl FnOnce(&xc_ann::Index) -> T) -> T {
        work(&self.inner.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Changes a copy, which takes the place of the index when the change is complete: one that was interrupted leaves
    /// it as it was.
    fn change<T: Send>(
        &self,
        py: Python<'_>,
        with: &Run,
        work: impl FnOnce(&mut xc_ann::Index, &Watch) -> Result<T, BuildError> + Send,
    ) -> PyResult<T> {
        let watch = Watch::default();
        let threads = with.context(py, &watch)?.threads;
        let pool = pool(threads).map_err(|e| error::option(py, &format!("--threads: {e}")))?;
        let done = run(py, &watch, with.callback(py).as_ref(), || {
            let _turn = self.turn(&watch)?;
            let mut index = self.read(xc_ann::Index::clone);
            let done = pool.install(|| work(&mut index, &watch))?;
            *self.inner.write().unwrap_or_else(PoisonError::into_inner) = index;
            Ok(done)
        })?;
        done.map_err(|e| build_error(py, &e))
    }
}

/// Builds an index over the labels and saves it in the model's folder, or in another one.
#[pyfunction]
pub(crate) fn build_index<'py>(
    py: Python<'py>,
    model: &Model,
    queries: Option<&Input>,
    labels: Option<&Labels>,
    options: Vec<(String, String)>,
    max_loss: Option<f64>,
    output: Option<PathBuf>,
    with: Run,
) -> PyResult<Bound<'py, PyAny>> {
    let (params, choices) = params(py, label_index_params(), &options, with.seed)?;
    let target = choices.get("target-recall");
    if let Some(points) = max_loss {
        let line = match (labels, target) {
            _ if !(0.0..=100.0).contains(&points) => ": points from 0 to 100 are expected",
            (_, Some(_)) => ": cannot be used with --target-recall",
            (None, _) => " has no effect here: add X and Y, or leave it out",
            _ => "",
        };
        if !line.is_empty() {
            return Err(error::option(py, &format!("--max-loss {points}{line}")));
        }
    }
    if let (Some(labels), None) = (labels, queries) {
        let line =
            format!("Y: {} rows of labels, and no X; the queries that they belong to are expected", labels.rows.len());
        return Err(error::data(py, &line, None, None));
    }
    let asked = queries.map(|rows| rows.taken(py)).transpose()?;
    let n_labels = model.inner.describe().n_labels;
    let labels = labels.map(|labels| labels.rows.within(n_labels));
    if let (Some(asked), Some(labels)) = (&asked, &labels)
        && asked.len() != labels.len()
    {
        let (got, expected) = (labels.len(), asked.len());
        return Err(error::data(
            py,
            &format!("Y: {got} rows for {expected} queries; as many are expected"),
            None,
            None,
        ));
    }
    let usual = IndexFit::default();
    let fit = IndexFit {
        top_k: params.top_k,
        max_loss: max_loss.map_or(usual.max_loss, |points| points / 100.0),
        min_recall: params.min_recall,
    };
    let watch = Watch::default();
    let threads = with.context(py, &watch)?.threads;
    let pool = pool(threads).map_err(|e| error::option(py, &format!("--threads: {e}")))?;
    let built = run(py, &watch, with.callback(py).as_ref(), || {
        pool.install(|| {
            let view = asked.as_ref().map(OwnedRows::view);
            let mut index = model.inner.build_index(view, &params, &watch)?;
            let fitted = match (view, &labels, target) {
                (Some(view), Some(labels), None) => model.inner.fit_index(&mut index, view, labels, &fit)?,
                _ => None,
            };
            if model.inner.was_replaced() {
                return Ok(None);
            }
            model.inner.save_index(&index, output.as_deref())?;
            let lost = fitted.map(|(_, lost)| lost);
            Ok(Some(json!({
                "labels": n_labels, "lost": lost, "graph": index.graph().map(xc_ann::Graph::stats),
                "fitted": index.graph().and_then(xc_ann::Graph::fitted),
                "scan": index.graph().map(xc_ann::Graph::is_scan),
            })))
        })
    })?;
    let report = built.map_err(|e: IndexError| match &e {
        IndexError::Write(_) => error::model(py, &e),
        _ if watch_is_cancelled(&watch) => pyo3::exceptions::PyKeyboardInterrupt::new_err("cancelled"),
        _ => error::data(py, &chain(&e), None, None),
    })?;
    let replaced = || format!("{}: replaced since it was opened; no index was saved", model.inner.folder().display());
    let report = report.ok_or_else(|| error::model_line(py, &replaced()))?;
    to_python(py, &report)
}

fn watch_is_cancelled(watch: &Watch) -> bool {
    watch.cancelled()
}
