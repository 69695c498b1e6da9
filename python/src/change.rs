//! Models changed without training, merged, looked at.

use crate::error::{self, defect, guarded, of_fit};
use crate::json::to_python;
use crate::model::{Model, changed};
use crate::train::{Run, chosen};
use crate::work::{Watch, run};
use pyo3::prelude::*;
use serde_json::Value;
use std::path::PathBuf;
use xc_buffer::dtype::DType;
use xc_data::LabelNames;
use xc_model::Extras;
use xc_model::message::chain;
use xc_model::{Changes, ImportOptions, import, inspected, open_container, tables};
use xc_options::settings::change;
use xc_store::{ContainerWriter, OpenMode};
use xc_train::fit::save_with;
use xc_train::xc_tree;

/// Saves a copy of a model with changes; what is said of it.
#[pyfunction]
pub(crate) fn convert(
    py: Python<'_>,
    model: &Model,
    options: Vec<(String, String)>,
    keep_labels: Option<Vec<u32>>,
    label_names: Option<Vec<String>>,
    output: PathBuf,
) -> PyResult<Vec<String>> {
    let changes = Changes { keep_labels, label_names, ..params(py, &options)? };
    let done = py.detach(|| guarded(|| changed(&model.inner, &changes, &output)));
    done.map_err(|panic| defect(py, &panic))?.map_err(|line| error::model_line(py, &line))
}

fn params(py: Python<'_>, options: &[(String, String)]) -> PyResult<Changes> {
    change::params(&chosen(py, &change::TABLE, options)?).map_err(|e| error::option(py, &e.to_string()))
}

/// Saves a model of another system as one of ours.
#[pyfunction]
pub(crate) fn import_model(
    py: Python<'_>,
    format: &str,
    source: PathBuf,
    options: Vec<(String, String)>,
    n_labels: Option<usize>,
    label_names: Option<Vec<String>>,
    output: PathBuf,
) -> PyResult<()> {
    let weights = params(py, &options)?.precision.unwrap_or(DType::F32);
    let n_labels = n_labels.or(label_names.as_ref().map(Vec::len));
    let work = || -> Result<(), String> {
        ContainerWriter::check(&output).map_err(|e| chain(&e))?;
        let model = import(format, &source, &ImportOptions { n_labels, weights }).map_err(|e| chain(&e))?;
        let (known, n_labels) = (label_names.as_deref(), model.info().n_labels);
        if let Some(names) = known.filter(|names| names.len() != n_labels) {
            return Err(format!("label_names: {} names for {n_labels} labels; one a label is expected", names.len()));
        }
        let extras = Extras { names: known, ..Extras::default() };
        let saved = save_with(&output, xc_tree::KIND, extras, |writer| model.write(writer));
        saved.map_err(|e| e.to_string())
    };
    let done = py.detach(|| guarded(work)).map_err(|panic| defect(py, &panic))?;
    done.map_err(|line| error::model_line(py, &line))
}

/// Merges parts of a MACH model.
#[pyfunction]
pub(crate) fn merge<'py>(
    py: Python<'py>,
    parts: Vec<PathBuf>,
    output: PathBuf,
    n_labels: Option<usize>,
    label_names: Option<Vec<String>>,
    with: Run,
) -> PyResult<Bound<'py, PyAny>> {
    let names = label_names.map(LabelNames::try_new).transpose();
    let names = names.map_err(|e| error::data(py, &format!("label_names: {e}"), None, None))?;
    let watch = Watch::default();
    let context = with.context(py, &watch)?;
    let work = || xc_options::data::merge(&parts, &output, n_labels, names, &context);
    let done = run(py, &watch, with.callback(py).as_ref(), work)?.map_err(|e| of_fit(py, &e))?;
    let mut report = serde_json::json!({ "labels": done.n_labels, "model_bytes": done.n_bytes });
    match done.trees {
        0 => report["repetitions"] = done.repetitions.into(),
        trees => report["trees"] = trees.into(),
    }
    to_python(py, &report)
}

/// What a folder holds.
#[pyfunction]
#[pyo3(signature = (path, verify=false))]
pub(crate) fn inspect<'py>(py: Python<'py>, path: PathBuf, verify: bool) -> PyResult<Bound<'py, PyAny>> {
    let work = || -> Result<Value, String> {
        let container = open_container(&path, OpenMode::Map).map_err(|e| chain(&e))?;
        let found = match verify {
            true => Some(container.verify().map_err(|e| chain(&e))?),
            false => None,
        };
        let of_kind = match &found {
            Some(found) if !found.is_empty() => Vec::new(),
            _ => tables(&container).map_err(|e| chain(&e))?,
        };
        let mut report = inspected(&container, &of_kind);
        if let Some(found) = found {
            report["damaged"] = found.iter().map(|mismatch| Value::String(mismatch.to_string())).collect();
        }
        Ok(report)
    };
    let done = py.detach(|| guarded(work)).map_err(|panic| defect(py, &panic))?;
    to_python(py, &done.map_err(|line| error::model_line(py, &line))?)
}
