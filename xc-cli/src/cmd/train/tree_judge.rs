//! What a tree model that was just saved answers to the validation instances, and what each further tree of an
//! ensemble gains.

use super::report::{Judging, score_against};
use crate::context::Context;
use crate::data::Datasets;
use crate::error::{CliError, chain};
use crate::model::{self, beside};
use crate::output::{self, Output};
use crate::plot::{Axis, Chart, Picture, Scale, Series};
use serde_json::json;
use std::path::Path;
use xc_metrics::{Metric, MetricReport};
use xc_sparse::CsrMatrix;
use xc_sparse::atomic::WriteFileError;
use xc_sparse::rank::RankedBatch;
use xc_sparse::store::Container;
use xc_tree::{PredictParams, TreeModel};

/// Rows that a finished model answers at once: their answers touch some tens of MiB of it.
const AT_ONCE: usize = 256;
/// Numbers of trees up to which each has a point; beyond, each point has twice the trees of the one before.
const EACH: usize = 8;

/// The metrics of the validation instances, if there are any. Writes their curve over the number of trees beside the
/// model, where that is asked for.
///
/// *Cost*: with a curve, as many predictions as two ensembles and some more make.
pub(super) fn judge(
    folder: &Path,
    instances: &Datasets,
    judging: &Judging,
    context: &Context,
) -> Result<Option<MetricReport>, CliError> {
    let Some(validation) = &instances.validation else { return Ok(None) };
    let container = model::open_container(folder)?;
    let whole = model::open_just_saved(&container)?;
    let score = |model: &TreeModel| {
        let answers = answer(model, &container, validation.sparse(), context)?;
        score_against(&instances.train.labels, validation, answers, judging)
    };
    let metrics = score(&whole)?;
    if judging.curve {
        let n_trees = whole.trees().len();
        let parts = numbers(n_trees).into_iter().map(|n| Ok((n, score(&whole.first(n))?)));
        let mut points = parts.collect::<Result<Vec<_>, CliError>>()?;
        points.push((n_trees, metrics.clone()));
        TreeCurve { points }.write(folder, context);
    }
    Ok(Some(metrics))
}

/// The five best labels of each row. The model is mapped, and what rows touch of it does not stay resident.
fn answer(
    model: &TreeModel,
    container: &Container,
    rows: &CsrMatrix,
    context: &Context,
) -> Result<RankedBatch, CliError> {
    let params = PredictParams::top(5);
    let mut answers = RankedBatch::new();
    for first in (0..rows.rows()).step_by(AT_ONCE) {
        context.check_interrupt()?;
        let some = rows.slice(first..rows.rows().min(first + AT_ONCE));
        answers.append(&model.predict_batch(some, &params));
        container.release();
    }
    Ok(answers)
}

/// Metrics of the first trees of an ensemble.
struct TreeCurve {
    /// Number of trees, and what the mean of their scores reaches.
    points: Vec<(usize, MetricReport)>,
}

impl TreeCurve {
    /// Writes `log.jsonl` and `curve.svg` beside the model; says so where that fails.
    fn write(&self, model: &Path, context: &Context) {
        let folder = beside(model, "log");
        let lines = || {
            output::make_folder(&folder)?;
            let mut file = Output::create(&folder.join("log.jsonl"))?;
            for (n, metrics) in &self.points {
                let mut line = json!({ "event": "validation", "trees": n });
                for metric in metrics.values() {
                    line[metric.metric.to_string()] = json!(metric.value);
                }
                file.put(format!("{line}\n").as_bytes())?;
            }
            file.commit()
        };
        if let Err(e) = lines() {
            context.warn(e.line().unwrap_or_default());
        } else if let Err(e) = self.draw(&folder.join("curve.svg")) {
            context.warn(chain(&e));
        }
    }

    fn draw(&self, path: &Path) -> Result<(), WriteFileError> {
        let linear = |name| Axis { name, scale: Scale::Linear };
        let precision = self.lines(Metric::Precision);
        let propensity = self.lines(Metric::Psp);
        let mut charts = Vec::new();
        for (name, lines) in [("P@k", &precision), ("PSP@k", &propensity)] {
            let series: Vec<_> = lines.iter().map(|(name, points)| Series { name, points }).collect();
            charts.extend((!series.is_empty()).then(|| Chart { y: linear(name), series }));
        }
        Picture { title: "Validation metrics", x: linear("trees"), charts }.write(path)
    }

    /// A metric at each k that was computed, over trees.
    fn lines(&self, metric: fn(usize) -> Metric) -> Vec<(String, Points)> {
        let at = |k| {
            let value = |(n, metrics): &(usize, MetricReport)| Some((*n as f64, metrics.value(metric(k))?));
            (metric(k).to_string(), self.points.iter().filter_map(value).collect::<Points>())
        };
        [1, 3, 5].map(at).into_iter().filter(|(_, points)| !points.is_empty()).collect()
    }
}

type Points = Vec<(f64, f64)>;

/// Numbers of trees below all of them that get a point.
fn numbers(n_trees: usize) -> Vec<usize> {
    let beyond = std::iter::successors(Some(2 * EACH), |n| n.checked_mul(2));
    (1..=EACH).chain(beyond).take_while(|&n| n < n_trees).collect()
}

#[cfg(test)]
mod tests {
    use super::numbers;

    #[test]
    fn few_trees_each_have_a_point_and_many_cost_twice_as_much_at_most() {
        assert!(numbers(1).is_empty());
        assert_eq!(numbers(3), [1, 2]);
        assert_eq!(numbers(40), [1, 2, 3, 4, 5, 6, 7, 8, 16, 32]);
    }
}
