//! Vectors of texts by a transformer as it comes.

use crate::error::{self, defect, guarded, of_fit};
use crate::input::Input;
use crate::pools::{default_threads, pool};
use crate::train::chosen;
use numpy::{PyArray1, PyArray2, PyArrayMethods};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use std::path::PathBuf;
use xc_model::tokens::TextVectors;
use xc_options::settings::embed;
use xc_sparse::rows::Texts;
use xc_train::fit::Embed;
use xc_train::xc_hash::text::{Vectorise, VectoriseError};

/// Texts between two looks at signals, which take half a second on one thread where they are long.
const BLOCK: usize = 16;

/// A transformer with its tokenizer.
#[pyclass(frozen, module = "xc._native")]
pub(crate) struct Embedder {
    inner: TextVectors,
}

#[pymethods]
impl Embedder {
    /// Opens the folder of a transformer; with what is to be said of what the folder asks for.
    #[staticmethod]
    fn open(py: Python<'_>, from: PathBuf, options: Vec<(String, String)>) -> PyResult<(Self, Vec<String>)> {
        let of = embed::params(Embed::new(from), &chosen(py, &embed::TABLE, &options)?);
        let of = of.map_err(|e| error::option(py, &e.to_string()))?;
        let made = py.detach(|| guarded(|| of.open_and_say())).map_err(|panic| defect(py, &panic))?;
        let (inner, said) = made.map_err(|e| of_fit(py, &e))?;
        Ok((Self { inner }, said))
    }

    /// Values of a vector.
    #[getter]
    fn width(&self) -> usize {
        self.inner.width()
    }

    /// Vectors of texts, a row each, and what is to be said of texts that were cut.
    fn embed<'py>(
        &self,
        py: Python<'py>,
        texts: &Input,
        threads: Option<usize>,
    ) -> PyResult<(Bound<'py, PyArray2<f32>>, Option<String>)> {
        let pool =
            pool(threads.unwrap_or_else(default_threads)).map_err(|e| error::option(py, &format!("--threads: {e}")))?;
        let (rows, width) = (texts.rows(), self.inner.width());
        let (mut vectors, before) = (Vec::with_capacity(rows * width), self.inner.tokens().taken());
        for first in (0..rows).step_by(BLOCK) {
            let block = texts.block(first..rows.min(first + BLOCK)).map_err(|fault| fault.raised(py, texts.name()))?;
            let Some(block) = block.texts() else {
                return Err(PyTypeError::new_err(format!("{}: features; a list of texts is expected", texts.name())));
            };
            let work = || pool.install(|| self.inner.of(Texts::Slices(&block)));
            let some = py.detach(|| guarded(work)).map_err(|panic| defect(py, &panic))?;
            let (some, _) = some.map_err(|VectoriseError { at, why }| {
                error::data(py, &format!("{}: text {}: {why}", texts.name(), first + at), Some(first + at), None)
            })?;
            vectors.extend_from_slice(&some.values);
            py.check_signals()?;
        }
        let cut = self.inner.tokens().taken().since(before).note();
        Ok((PyArray1::from_vec(py, vectors).reshape([rows, width])?, cut))
    }
}
