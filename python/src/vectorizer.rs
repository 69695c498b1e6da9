//! Texts as feature rows, without a model.

use crate::error::{self, defect, guarded, of_fit};
use crate::input::Input;
use crate::pools::{default_threads, pool};
use crate::train::Run;
use crate::work::{Watch, run};
use numpy::{IntoPyArray, PyArray1};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use std::path::{Path, PathBuf};
use xc_model::message::chain;
use xc_model::{OwnedRows, read_pipeline, write_pipeline};
use xc_options::settings::{Choices, SettingError, text};
use xc_sparse::rows::Texts;
use xc_store::{Container, ContainerWriter, OpenMode};
use xc_train::fit::FitError;
use xc_train::fit::data::{Dataset, Making, TextSource, read_texts};
use xc_train::xc_hash::text::{Featurizer, Pipeline};

/// Texts that are made into rows between two looks at signals.
const BLOCK: usize = 2048;
/// The kind of the folder; `xc convert --pipeline` reads it.
const KIND: &str = "pipeline";

/// `indptr`, `indices`, `data` of sparse rows.
type Csr<'py> = (Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i32>>, Bound<'py, PyArray1<f32>>);

/// A fitted text pipeline.
#[pyclass(frozen, module = "xc._native")]
pub(crate) struct Vectorizer {
    pipeline: Pipeline,
}

/// The settings by their names, as they are typed.
fn choices(options: &[(String, String)]) -> Result<Choices, SettingError> {
    let mut choices = Choices::default();
    for (name, value) in options {
        let row = [text::TABLE, text::TOKENS].iter().find_map(|table| table.row(name));
        let row = row.ok_or_else(|| SettingError::of(name, "text has no such setting"))?;
        choices.set(row, value)?;
    }
    choices.refuse_conflicts()?;
    Ok(choices)
}

fn taken(py: Python<'_>, texts: &Input) -> PyResult<Vec<String>> {
    match texts.taken(py)? {
        OwnedRows::Texts(texts) => Ok(texts),
        _ => Err(no_texts(texts)),
    }
}

fn no_texts(texts: &Input) -> PyErr {
    PyTypeError::new_err(format!("{}: features; a list of texts is expected", texts.name()))
}

fn csr<'py>(py: Python<'py>, indptr: Vec<usize>, indices: Vec<u32>, values: Vec<f32>) -> Csr<'py> {
    let indptr: Vec<i64> = indptr.into_iter().map(|end| end as i64).collect();
    // There are fewer than 2^31 features.
    let indices: Vec<i32> = indices.into_iter().map(u32::cast_signed).collect();
    (indptr.into_pyarray(py), indices.into_pyarray(py), values.into_pyarray(py))
}

#[pymethods]
impl Vectorizer {
    /// Learns a pipeline from texts; gives their rows too.
    #[staticmethod]
    fn fit<'py>(
        py: Python<'py>,
        texts: &Input,
        options: Vec<(String, String)>,
        with: Run,
    ) -> PyResult<(Self, Csr<'py>)> {
        let choices = choices(&options).map_err(|e| error::option(py, &chain(&e)))?;
        let params = text::params(&choices).map_err(|e| error::option(py, &chain(&e)))?;
        let (name, texts) = (Path::new(texts.name()), taken(py, texts)?);
        let watch = Watch::default();
        let context = with.context(py, &watch)?;
        let pool = pool(context.threads).map_err(|e| error::option(py, &format!("--threads: {e}")))?;
        let work = || -> Result<Dataset, FitError> {
            let making = Making::Fit { text: &params, weighting: None, hold_out: None, tokens: None };
            pool.install(|| {
                read_texts(&TextSource::Memory { name, texts: Texts::Strings(&texts) }, false, making, &context)
            })
        };
        let made = run(py, &watch, with.callback(py).as_ref(), work)?.map_err(|e| of_fit(py, &e))?;
        let (Some(Featurizer::Text(pipeline)), OwnedRows::Sparse(rows)) = (made.maker, made.features) else {
            return Err(defect(py, "texts became no rows"));
        };
        let (indptr, indices, values) = rows.into_parts();
        Ok((Self { pipeline }, csr(py, indptr, indices, values)))
    }

    /// Opens a folder that [`Vectorizer::save`] or `xc convert --save-pipeline` wrote, or that of a model of texts.
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let read = || -> Result<Option<Featurizer>, String> {
            let container = Container::open(&path, OpenMode::Read).map_err(|e| chain(&e))?;
            read_pipeline(&container).map_err(|e| chain(&e))
        };
        match py.detach(read).map_err(|line| error::model_line(py, &line))? {
            Some(Featurizer::Text(pipeline)) => Ok(Self { pipeline }),
            _ => Err(error::model_line(py, &format!("{}: holds no text pipeline", path.display()))),
        }
    }

    /// Saves it in a folder.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let write = || -> Result<(), String> {
            ContainerWriter::check(&path).map_err(|e| chain(&e))?;
            let written = || {
                let mut writer = ContainerWriter::create(&path, KIND)?;
                writer.set_parameter("n_features", self.pipeline.n_features() as u64);
                writer.set_parameter("n_labels", 0u64);
                write_pipeline(&mut writer, self.pipeline.to_parts())?;
                writer.finish()
            };
            written().map_err(|e| chain(&e))
        };
        py.detach(write).map_err(|line| error::model_line(py, &line))
    }

    /// Features of a row.
    #[getter]
    fn n_features(&self) -> usize {
        self.pipeline.n_features()
    }

    /// The term of each feature; none where several may be counted by it.
    fn terms(&self) -> Vec<Option<&str>> {
        (0..self.pipeline.n_features()).map(|feature| self.pipeline.term(feature as u32)).collect()
    }

    /// Rows of texts.
    fn transform<'py>(&self, py: Python<'py>, texts: &Input, threads: Option<usize>) -> PyResult<Csr<'py>> {
        let threads = threads.unwrap_or_else(default_threads);
        if threads == 0 || threads > 4096 {
            return Err(error::option(py, &format!("--threads {threads}: between 1 and 4096 are expected")));
        }
        let pool = pool(threads).map_err(|e| error::option(py, &format!("--threads {threads}: {e}")))?;
        let (mut indptr, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
        for first in (0..texts.rows()).step_by(BLOCK) {
            let block = texts.block(first..texts.rows().min(first + BLOCK));
            let block = block.map_err(|fault| fault.raised(py, texts.name()))?;
            let Some(block) = block.texts() else { return Err(no_texts(texts)) };
            let made = py.detach(|| guarded(|| pool.install(|| self.pipeline.transform_batch(&block))));
            let made = made.map_err(|panic| defect(py, &panic))?;
            let base = indices.len();
            indptr.extend(made.indptr[1..].iter().map(|end| base + end));
            indices.extend_from_slice(&made.indices);
            values.extend_from_slice(&made.values);
            py.check_signals()?;
        }
        Ok(csr(py, indptr, indices, values))
    }
}
