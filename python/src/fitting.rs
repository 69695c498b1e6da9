//! Blends and calibrated models.

use crate::error::{self, of_fit};
use crate::input::Input;
use crate::json::to_python;
use crate::labels::Labels;
use crate::model::Model;
use crate::train::{Run, chosen, labelled};
use crate::work::{Watch, run};
use pyo3::prelude::*;
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use xc_metrics::{Metric, MetricReport};
use xc_model::calibrate::Reliability;
use xc_model::{OpenOptions, UseIndex};
use xc_options::data::HeldOut;
use xc_options::settings::fitted;
use xc_store::OpenMode;
use xc_train::blend::FitParams;
use xc_train::calibrate::CalibrateParams;
use xc_train::fit::Arrays;

/// Rows that models are fitted to, as arguments.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Rows<'py> {
    x: Bound<'py, Input>,
    y: Bound<'py, Labels>,
    held_out: bool,
    unknown_rows: bool,
}

impl Rows<'_> {
    fn held_out(&self, py: Python<'_>) -> PyResult<HeldOut> {
        let rows = labelled(py, self.x.get(), Some(self.y.get()))?;
        let (leave_out_seen, allow_unverified) = (self.held_out, self.unknown_rows);
        Ok(HeldOut { leave_out_seen, allow_unverified, ..HeldOut::new(Arrays::from(rows)) })
    }
}

/// The models again: the library takes a list of them.
fn opened(py: Python<'_>, models: &[Bound<'_, Model>]) -> PyResult<Vec<xc_model::Model>> {
    let options = OpenOptions { mode: OpenMode::Map, index: UseIndex::Never, ..OpenOptions::default() };
    let open = |model: &Bound<'_, Model>| xc_model::Model::open_with(model.get().inner.folder(), &options);
    models.iter().map(|model| open(model).map_err(|e| error::model(py, &e))).collect()
}

/// Blends models into one and saves it.
#[pyfunction]
pub(crate) fn blend<'py>(
    py: Python<'py>,
    members: Vec<Bound<'py, Model>>,
    refits: Option<Vec<Bound<'py, Model>>>,
    rows: Rows<'py>,
    options: Vec<(String, String)>,
    output: PathBuf,
    with: Run,
) -> PyResult<Bound<'py, PyAny>> {
    let choices = chosen(py, &fitted::BLEND, &options)?;
    let params = fitted::blend_params(&choices).map_err(|e| error::option(py, &e.to_string()))?;
    let params = FitParams { seed: with.seed, ..params };
    let (rows, members) = (rows.held_out(py)?, opened(py, &members)?);
    let refits = refits.map(|refits| opened(py, &refits)).transpose()?;
    let watch = Watch::default();
    let context = with.context(py, &watch)?;
    let folders: Vec<String> = members.iter().map(|member| member.folder().display().to_string()).collect();
    let work = || xc_options::data::blend(members, refits, &rows, &params, &output, &context);
    let done = run(py, &watch, with.callback(py).as_ref(), work)?.map_err(|e| of_fit(py, &e))?;
    let fitted = &done.fitted;
    let with_metrics = |name: String, metrics: &MetricReport| {
        let mut map = Map::new();
        map.insert("name".to_owned(), json!(name));
        map.insert("metrics".to_owned(), json!(metrics));
        Value::Object(map)
    };
    let members = folders.into_iter().zip(&fitted.members);
    let report = json!({
        "rule": fitted.rule.kind().to_string(), "instances": done.instances, "left_out": done.left_out,
        "candidates": fitted.n_candidates, "true_candidates": fitted.n_true,
        "members": members.map(|(folder, metrics)| with_metrics(folder, metrics)).collect::<Vec<_>>(),
        "rules": fitted.judged.iter().map(|j| with_metrics(j.rule.to_string(), &j.metrics)).collect::<Vec<_>>(),
    });
    to_python(py, &report)
}

/// Fits probabilities and thresholds of a model's scores, and saves the model with them.
#[pyfunction]
pub(crate) fn calibrate<'py>(
    py: Python<'py>,
    model: Bound<'py, Model>,
    rows: Rows<'py>,
    options: Vec<(String, String)>,
    output: PathBuf,
    with: Run,
) -> PyResult<Bound<'py, PyAny>> {
    let choices = chosen(py, &fitted::CALIBRATION, &options)?;
    let params = fitted::calibration_params(&choices).map_err(|e| error::option(py, &e.to_string()))?;
    let params = CalibrateParams { seed: with.seed, ..params };
    let rows = rows.held_out(py)?;
    let watch = Watch::default();
    let context = with.context(py, &watch)?;
    let asked = model.get();
    let work = || xc_options::data::calibrate(&asked.inner, &rows, &params, &output, &context);
    let done = run(py, &watch, with.callback(py).as_ref(), work)?.map_err(|e| of_fit(py, &e))?;
    let fitted = &done.fitted;
    let decisions = fitted.decisions.iter().map(|(kind, report)| {
        let values = report.values().iter().filter(|v| matches!(v.metric, Metric::AtThreshold(..)));
        let values: Map<_, _> = values.map(|v| (v.metric.to_string(), json!(v.value))).collect();
        (kind.name().to_owned(), Value::Object(values))
    });
    let before = fitted.before.as_ref().map(Reliability::points).unwrap_or_default();
    let lines = json!([
        ["perfect", [[0.0, 0.0], [1.0, 1.0]]],
        ["before", before],
        ["after (cross-fitted)", fitted.after.points()]
    ]);
    let report = json!({
        "instances": done.instances, "left_out": done.left_out, "answers": fitted.n_pairs,
        "true_answers": fitted.n_true, "before": fitted.before, "after": fitted.after,
        "thresholds": {
            "micro": fitted.calibration.thresholds.micro, "macro": fitted.calibration.thresholds.macro_,
            "labels_of_their_own": fitted.n_own,
        },
        "decisions": decisions.collect::<Map<_, _>>(),
        "charts": { "title": "Reliability", "x": "mean score", "charts": [["share of true labels", lines]] },
    });
    to_python(py, &report)
}
