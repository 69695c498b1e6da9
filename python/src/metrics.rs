//! Metrics of answers, and pictures.

use crate::error::{self, defect, guarded};
use crate::json::to_python;
use crate::labels::Labels;
use crate::train::chosen;
use numpy::{PyReadonlyArray1, PyUntypedArrayMethods};
use pyo3::prelude::*;
use serde_json::{Value, json};
use xc_metrics::{BootstrapParams, Evaluator, EvaluatorParams, LabelCut, LabelFigures, MetricReport, Propensity};
use xc_model::calibrate::best_threshold;
use xc_model::message::chain;
use xc_options::plot::{Axis, Chart, Picture, Scale, Series};
use xc_options::settings::judge::{self, Cut, JudgeParams, Propensities};
use xc_sparse::LabelRows;
use xc_sparse::rank::RankedBatch;

/// Ragged lists as arguments.
type Lists<'py> = (PyReadonlyArray1<'py, i64>, PyReadonlyArray1<'py, u32>, PyReadonlyArray1<'py, f32>);

/// What is computed.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Wanted {
    options: Vec<(String, String)>,
    n_labels: Option<usize>,
    seed: u64,
    weights: Option<Vec<f64>>,
    per_label: bool,
}

fn batch(py: Python<'_>, name: &str, lists: &Lists<'_>) -> PyResult<RankedBatch> {
    let (indptr, ids, scores) = lists;
    let slices = || -> Option<(&[i64], &[u32], &[f32])> {
        Some((indptr.as_slice().ok()?, ids.as_slice().ok()?, scores.as_slice().ok()?))
    };
    let wrong = |line: String| error::data(py, &format!("{name}: {line}"), None, None);
    let (indptr, ids, scores) = slices().ok_or_else(|| wrong("contiguous arrays are expected".to_owned()))?;
    let ends = indptr.iter().map(|&end| usize::try_from(end)).collect::<Result<Vec<_>, _>>();
    let ends = ends.map_err(|_| wrong("indptr has a number below 0".to_owned()))?;
    RankedBatch::from_arrays(ends, ids, scores).map_err(|e| wrong(chain(&e)))
}

/// Metrics of ranked lists.
#[pyfunction]
pub(crate) fn evaluate<'py>(
    py: Python<'py>,
    truth: Bound<'py, Labels>,
    answers: Lists<'py>,
    compare: Option<Lists<'py>>,
    propensity_from: Option<Bound<'py, Labels>>,
    wanted: Wanted,
) -> PyResult<Bound<'py, PyAny>> {
    let found = batch(py, "predictions", &answers)?;
    let other = compare.as_ref().map(|lists| batch(py, "compare", lists)).transpose()?;
    let truth = &truth.get().rows;
    for (name, lists) in [("predictions", Some(&found)), ("compare", other.as_ref())] {
        if let Some(lists) = lists
            && lists.len() != truth.len()
        {
            let (got, expected) = (lists.len(), truth.len());
            let line = format!("{name}: {got} lists for {expected} rows of true labels; as many are expected");
            return Err(error::data(py, &line, None, None));
        }
    }
    debug_assert_eq!(answers.1.len(), answers.2.len());
    let training = propensity_from.as_ref().map(|labels| &labels.get().rows);
    let choices = chosen(py, &judge::TABLE, &wanted.options)?;
    let params = judge::params(&choices, other.is_some(), training.is_some());
    let params = params.map_err(|e| error::option(py, &e.to_string()))?;
    let work = || judged(truth, &found, other.as_ref(), training, (&params, &wanted));
    let outcome = py.detach(|| guarded(work)).map_err(|panic| defect(py, &panic))?;
    to_python(py, &outcome.map_err(|line| error::of_line(py, &line))?)
}

fn judged(
    truth: &LabelRows,
    found: &RankedBatch,
    other: Option<&RankedBatch>,
    training: Option<&LabelRows>,
    (judge, wanted): (&JudgeParams, &Wanted),
) -> Result<Value, String> {
    let bootstrap = BootstrapParams { seed: wanted.seed, ..judge.bootstrap };
    let largest = |batch: &RankedBatch| batch.iter().flatten().map(|s| s.label as usize + 1).max().unwrap_or(0);
    let Propensities { a, b } = judge.propensity;
    let propensity = training.map(|rows| Propensity::from_training(rows, a, b));
    let propensity = propensity.transpose().map_err(|e| format!("--propensity-from: {}", chain(&e)))?;
    let n_labels = wanted.n_labels.unwrap_or_else(|| {
        let named = largest(found).max(other.map_or(0, largest));
        truth.n_labels().max(named).max(propensity.as_ref().map_or(0, Propensity::n_labels))
    });
    let mut params = EvaluatorParams {
        propensity,
        weights: wanted.weights.clone(),
        confusions: wanted.per_label,
        ..judge.evaluator(n_labels, other.is_some())
    };
    params.threshold = match judge.threshold {
        None => None,
        Some(Cut::At(at)) => Some(at),
        Some(Cut::Best) => Some(best_threshold(truth, found).ok_or("--threshold best: no answer is true")?.threshold),
    };
    let mut ks = params.ks.clone();
    ks.sort_unstable();
    let evaluator = Evaluator::new(params).map_err(|e| chain(&e))?;
    let added = |batch: &RankedBatch| {
        let mut evaluator = evaluator.part(0);
        evaluator.add_batch(truth, batch).map(|()| evaluator).map_err(|e| chain(&e))
    };
    let finished = |evaluator: Evaluator| -> Result<MetricReport, String> { evaluator.finish().map_err(|e| chain(&e)) };
    let own = added(found)?;
    let labels = wanted.per_label.then(|| own.labels());
    let mut report = finished(own)?;
    let comparison = match other {
        Some(other) => Some(report.compare(&finished(added(other)?)?, &bootstrap).map_err(|e| chain(&e))?),
        None => None,
    };
    if judge.intervals {
        report.add_intervals(&bootstrap).map_err(|e| chain(&e))?;
    }
    let table = report.table().to_string();
    let compared = comparison.as_ref().map(|comparison| comparison.table().to_string());
    Ok(json!({
        "metrics": report, "comparison": comparison, "table": table, "comparison_table": compared,
        "labels": labels.map(|labels| labels.iter().map(|of| label_row(of, &ks)).collect::<Vec<_>>()),
    }))
}

fn label_row(of: &LabelFigures, ks: &[usize]) -> Value {
    let mut row = json!({ "label": of.label, "support": of.support });
    let mut put = |at: &str, cut: &LabelCut| {
        for (name, value) in [
            ("predicted", cut.predicted),
            ("correct", cut.correct),
            ("precision", cut.precision),
            ("recall", cut.recall),
            ("f1", cut.f1),
        ] {
            row[format!("{name}{at}")] = json!(value);
        }
    };
    ks.iter().zip(&of.at_k).for_each(|(k, cut)| put(&format!("@{k}"), cut));
    of.at_threshold.iter().for_each(|cut| put("@threshold", cut));
    if let Some((label, n)) = of.confused {
        (row["confused_with"], row["confused"]) = (json!(label), json!(n));
    }
    row
}

/// A chart as an argument: the name of its axis, and its lines.
type ChartOf = (String, Vec<(String, Vec<(f64, f64)>)>);

/// A picture of lines over a common axis, as SVG; charts and lines without a point are left out.
#[pyfunction]
pub(crate) fn picture(py: Python<'_>, title: &str, x: &str, charts: Vec<ChartOf>) -> PyResult<String> {
    let linear = |name| Axis { name, scale: Scale::Linear };
    let charts: Vec<Chart<'_>> = charts
        .iter()
        .map(|(name, lines)| {
            let lines = lines.iter().filter(|(_, points)| !points.is_empty());
            Chart { y: linear(name), series: lines.map(|(name, points)| Series { name, points }).collect() }
        })
        .filter(|chart| !chart.series.is_empty())
        .collect();
    let drawn = guarded(|| Picture { title, x: linear(x), charts }.svg()).map_err(|panic| defect(py, &panic))?;
    drawn.map_err(|e| error::model(py, &e))
}
