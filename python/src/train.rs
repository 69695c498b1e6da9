//! Training and tuning.

use crate::error::{self, of_fit};
use crate::input::{Input, List};
use crate::json::to_python;
use crate::labels::Labels;
use crate::pools::default_threads;
use crate::work::{Curve, Watch, run};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use xc_metrics::Metric;
use xc_options::settings::kinds::command_table;
use xc_options::settings::{Choices, Setting, Table, Values};
use xc_options::training::plan::TrainingPlan;
use xc_options::training::{usual_values, usual_values_of};
use xc_options::tuning::{Found, Tuning, parse_time};
use xc_options::{Build, KINDS, Training, rows};
use xc_sparse::LabelRows;
use xc_train::fit::{Arrays, Context, Place, Report};

/// What a run is given beside its data and settings.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Run {
    pub(crate) seed: u64,
    pub(crate) threads: Option<usize>,
    pub(crate) max_memory: Option<u64>,
    pub(crate) callback: Option<Py<PyAny>>,
}

impl Run {
    pub(crate) fn context<'w>(&self, py: Python<'_>, watch: &'w Watch) -> PyResult<Context<'w>> {
        let threads = self.threads.unwrap_or_else(default_threads);
        if threads == 0 || threads > 4096 {
            return Err(error::option(py, &format!("--threads {threads}: between 1 and 4096 are expected")));
        }
        let context = Context::new(watch).with_seed(self.seed).with_threads(threads);
        Ok(match self.max_memory {
            Some(bytes) => context.with_max_memory(bytes),
            None => context,
        })
    }

    pub(crate) fn callback<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        self.callback.as_ref().map(|callback| callback.bind(py).clone())
    }
}

/// Instances with labels, as arguments.
type Pair<'py> = (Bound<'py, Input>, Bound<'py, Labels>);

/// What is learned from, as arguments.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Data<'py> {
    x: Bound<'py, Input>,
    y: Option<Bound<'py, Labels>>,
    label_names: Option<Vec<String>>,
    validation: Option<Pair<'py>>,
    label_features: Option<Bound<'py, Input>>,
    instance_weights: Option<Vec<f32>>,
    label_costs: Option<Vec<f32>>,
}

/// Where a model goes, as arguments.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Folders {
    model: PathBuf,
    checkpoint: Option<PathBuf>,
    vectors: Option<PathBuf>,
    refit: Option<PathBuf>,
    resume: bool,
    restart: bool,
}

/// Rows with their labels, of which there are as many.
pub(crate) fn labelled(py: Python<'_>, x: &Input, y: Option<&Labels>) -> PyResult<xc_data::Data<'static>> {
    let labels = labels_of(py, x, y)?;
    Ok(xc_data::Data::new(x.taken(py)?, labels))
}

/// What the labels of rows are called: of `X of validation`, `Y of validation`.
fn of_labels(rows: &str) -> String {
    rows.replacen('X', "Y", 1)
}

/// The labels of rows, of which there are as many.
fn labels_of(py: Python<'_>, x: &Input, y: Option<&Labels>) -> PyResult<LabelRows> {
    let labels = match y {
        Some(y) => y.rows.clone(),
        // Words have no labels.
        None => LabelRows::from_lists(vec![Vec::<u32>::new(); x.rows()], 0).unwrap_or_else(|e| panic!("{e}")),
    };
    if labels.len() != x.rows() {
        let (got, expected, name) = (labels.len(), x.rows(), x.name());
        let line = format!("{name} has {expected} rows, and {} has {got}; they must be as many", of_labels(name));
        return Err(error::data(py, &line, None, None));
    }
    Ok(labels)
}

/// What is learned from, and a list of texts that is read where it lies. The arguments are given up: what was made for the
/// copy, and nobody else has, is freed.
fn given_up(data: &Bound<'_, PyDict>, may_share: bool) -> PyResult<(Arrays, Option<Arc<List>>)> {
    let given = data.extract::<Data<'_>>()?;
    let texts = given.x.get().list().filter(|_| may_share);
    let arrays = given.arrays(data.py(), texts.is_some())?;
    drop(given);
    data.clear();
    Ok((arrays, texts))
}

impl Data<'_> {
    /// The arguments as they are learned from; without training texts that are `shared`.
    fn arrays(&self, py: Python<'_>, shared: bool) -> PyResult<Arrays> {
        let y = self.y.as_ref().map(|y| y.get());
        let train = if shared {
            let labels = labels_of(py, self.x.get(), y)?;
            xc_data::Data::new(Vec::new(), labels)
        } else {
            labelled(py, self.x.get(), y)?
        };
        let validation = self.validation.as_ref();
        let validation = validation.map(|(x, y)| labelled(py, x.get(), Some(y.get()))).transpose()?;
        let label_features = self.label_features.as_ref().map(|rows| rows.get().taken(py)).transpose()?;
        let names = self.label_names.clone().or_else(|| y.and_then(|y| y.names.clone()));
        let (instance_weights, label_costs) = (self.instance_weights.clone(), self.label_costs.clone());
        let train = match names {
            Some(names) => train.with_names(names),
            None => train,
        };
        Ok(Arrays { train, validation, label_features, instance_weights, label_costs })
    }
}

fn training(
    py: Python<'_>,
    kind: &str,
    data: &Bound<'_, PyDict>,
    options: &[(String, String)],
    folders: &Folders,
    may_share: bool,
) -> PyResult<Training> {
    // A search reads them again and again, and words are learned from texts of its own.
    let (arrays, texts) = given_up(data, may_share && kind != "skipgram")?;
    let mut training = Training::new(kind, arrays, &folders.model).map_err(|e| of_fit(py, &e))?;
    if let Some(texts) = texts {
        training = training.over_texts(texts);
    }
    for (name, value) in options {
        training.set(name, value).map_err(|e| of_fit(py, &e))?;
    }
    let Folders { model, checkpoint, vectors, refit, resume, restart } = folders;
    training.place = Place {
        model: model.clone(),
        checkpoint: checkpoint.clone(),
        vectors: vectors.clone(),
        resume: *resume,
        restart: *restart,
        part: None,
    };
    training.refit = refit.clone();
    Ok(training)
}

/// Trains a model and saves it.
#[pyfunction]
pub(crate) fn train<'py>(
    py: Python<'py>,
    kind: &str,
    data: Bound<'py, PyDict>,
    options: Vec<(String, String)>,
    folders: Folders,
    with: Run,
) -> PyResult<Bound<'py, PyAny>> {
    let training = training(py, kind, &data, &options, &folders, true)?;
    let (watch, begin) = (Watch::default(), Instant::now());
    let context = with.context(py, &watch)?;
    let report = run(py, &watch, with.callback(py).as_ref(), || training.run_once(&context))?;
    let report = report.map_err(|e| of_fit(py, &e))?;
    to_python(py, &reported(&report, begin.elapsed().as_secs_f64(), &watch.curve()))
}

/// Says what would be done.
#[pyfunction]
pub(crate) fn explain<'py>(
    py: Python<'py>,
    kind: &str,
    data: Bound<'py, PyDict>,
    options: Vec<(String, String)>,
    folders: Folders,
    with: Run,
) -> PyResult<Bound<'py, PyAny>> {
    let training = training(py, kind, &data, &options, &folders, true)?;
    let watch = Watch::default();
    let context = with.context(py, &watch)?;
    let plan = run(py, &watch, with.callback(py).as_ref(), || training.explain(&context))?;
    let given: Vec<&str> = options.iter().map(|(name, _)| &**name).collect();
    to_python(py, &planned(&plan.map_err(|e| of_fit(py, &e))?, &given))
}

fn planned(plan: &TrainingPlan, given: &[&str]) -> Value {
    let rows = rows(plan.kind).into_iter();
    let options = rows.filter_map(|row| {
        let (value, origin) = plan.resolved.get(row.name)?;
        let origin = if given.contains(&row.name) { "given".to_owned() } else { origin.to_string() };
        Some(json!({ "option": row.name, "value": value, "from": origin }))
    });
    let lines = plan.lines.iter().map(|(what, text)| json!({ "about": what, "says": text }));
    json!({
        "kind": plan.kind, "memory_bytes": plan.memory, "data": plan.data, "options": options.collect::<Vec<_>>(),
        "plan": lines.collect::<Vec<_>>(),
    })
}

/// The report of a run.
fn reported(report: &Report, wall_s: f64, curve: &Curve) -> Value {
    let mut map = Map::new();
    let mut put = |name: &str, value: Value| map.insert(name.to_owned(), value);
    put("kind", json!(report.kind));
    put("model", json!(report.model.display().to_string()));
    put("what", json!(report.what));
    put("wall_s", json!(wall_s));
    put("read_s", json!(report.read_s));
    put("train_s", json!(report.train_s));
    put("save_s", json!(report.save_s));
    put("further", Value::Object(report.further.clone()));
    put("metrics", json!(report.metrics));
    put("table", json!(report.metrics.as_ref().map(|metrics| metrics.table().to_string())));
    put("settings", Value::Object(report.logged.clone()));
    put("data", json!(report.data.map(|data| format!("{data:016x}"))));
    put("charts", json!(charts(report, curve)));
    Value::Object(map)
}

/// What the picture of a run shows: for each chart, the name of its axis and its lines; over steps, or over trees.
fn charts(report: &Report, curve: &Curve) -> Value {
    if report.curve.is_empty() {
        let losses = json!([["training loss", curve.training], ["validation loss", curve.validation]]);
        let metric = json!([[format!("validation {}", curve.metric), curve.metrics]]);
        return json!({ "title": "Training", "x": "step", "charts": [["loss", losses], [curve.metric, metric]] });
    }
    let charts = json!([["P@k", report.curve_of(Metric::Precision)], ["PSP@k", report.curve_of(Metric::Psp)]]);
    json!({ "title": "Validation metrics", "x": "trees", "charts": charts })
}

/// A search.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Search {
    budget: Option<String>,
    trials: Option<usize>,
    metric: String,
    train_model: bool,
}

/// Searches for good settings, and trains a model with them.
#[pyfunction]
pub(crate) fn tune<'py>(
    py: Python<'py>,
    kind: &str,
    data: Bound<'py, PyDict>,
    options: Vec<(String, String)>,
    folders: Folders,
    with: Run,
    search: Search,
) -> PyResult<Bound<'py, PyAny>> {
    let mut tuning = Tuning::new(training(py, kind, &data, &options, &folders, false)?);
    let wrong = |name: &str, what: String| error::option(py, &format!("--{name}: {what}"));
    let budget = search.budget.as_deref().map(parse_time).transpose();
    tuning.budget = budget.map_err(|what| wrong("budget", what))?;
    tuning.metric = search.metric.parse().map_err(|e| wrong("metric", format!("{e}")))?;
    (tuning.trials, tuning.train_model) = (search.trials, search.train_model);
    let watch = Watch::default();
    let context = with.context(py, &watch)?;
    let callback = with.callback(py);
    let done = run(py, &watch, callback.as_ref(), || {
        let found = tuning.run(&context)?;
        let begin = Instant::now();
        let report = match tuning.train_model {
            true => Some(tuning.best(&found)?.train(&context)?),
            false => None,
        };
        Ok((found, report.map(|report| reported(&report, begin.elapsed().as_secs_f64(), &watch.curve()))))
    })?;
    let (found, report) = done.map_err(|e| of_fit(py, &e))?;
    let found = found_of(&found);
    to_python(py, &json!({ "found": found, "report": report }))
}

fn found_of(found: &Found) -> Value {
    let pairs = |options: &[(String, String)]| -> Map<String, Value> {
        options.iter().map(|(name, value)| (name.clone(), json!(value))).collect()
    };
    let row = |row: &xc_options::tuning::TrialRow| {
        json!({
            "trial": row.trial, "rung": row.rung, "judged_by": row.name, "options": pairs(&row.options),
            "value": row.value.as_ref().ok(), "failed": row.value.as_ref().err(),
            "difference": row.against.map(|paired| paired.difference),
            "standard_error": row.against.map(|paired| paired.standard_error),
            "wall_s": row.wall_s, "instances": row.instances,
        })
    };
    json!({
        "kind": found.kind, "metric": found.metric.to_string(), "options": pairs(&found.changes),
        "value": found.values[0], "default": found.values[1], "judged_by": found.decided_by,
        "trials": found.n_trials, "wall_s": found.spent, "verdict": found.verdict(), "text": found.text(),
        "runs": found.rows.iter().map(row).collect::<Vec<_>>(),
    })
}

/// Kinds of models.
#[pyfunction]
pub(crate) fn kinds() -> Vec<&'static str> {
    KINDS.to_vec()
}

/// Choices by the names of settings and values as they are typed.
pub(crate) fn chosen(py: Python<'_>, table: &Table, options: &[(String, String)]) -> PyResult<Choices> {
    let given = table.given(options.iter().map(|(name, value)| (&**name, &**value)));
    given.map_err(|e| error::option(py, &e.to_string()))
}

/// The settings of a kind, or of an index and the like: each row of its tables.
#[pyfunction]
pub(crate) fn settings<'py>(py: Python<'py>, kind: &str) -> PyResult<Bound<'py, PyAny>> {
    let (rows, usual) = match command_table(kind) {
        Some(table) => (table.rows.iter().collect(), usual_values_of(&table)),
        None => (rows(kind), usual_values(kind, Build::This)),
    };
    let row = |row: &Setting| {
        let (values, names) = match row.values {
            Values::Size => ("int", None),
            Values::Sizes => ("ints", None),
            Values::F32 | Values::F32OrInf | Values::F64 => ("float", None),
            Values::Bool => ("bool", None),
            Values::Switch => ("switch", None),
            Values::Names(_) | Values::Forms(_) => ("name", row.names()),
            Values::Text(_) => ("text", None),
        };
        json!({
            "name": row.name, "type": values, "names": names, "unit": row.unit, "help": row.help,
            "alias": row.alias, "in_search": row.in_search, "heading": row.heading,
            "belongs_to": row.belongs_to, "usual": usual.get(row.name), "excludes": row.excludes, "follows": row.follows, "none": row.none,
        })
    };
    to_python(py, &rows.into_iter().map(row).collect())
}
