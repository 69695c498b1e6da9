//! What each further tree of an ensemble gains, on the validation instances.

use super::report::{Judging, score};
use super::tree::answer;
use crate::context::Context;
use crate::data::Datasets;
use crate::error::{CliError, chain};
use crate::model::beside;
use crate::output::{self, Output};
use crate::plot::{Axis, Chart, Picture, Scale, Series};
use serde_json::json;
use std::path::Path;
use xc_sparse::atomic::WriteFileError;
use xc_train::metrics::{Metric, MetricReport};

/// Numbers of trees up to which each has a point; beyond, each point has twice the trees of the one before.
const EACH: usize = 8;

/// Metrics of the first trees of an ensemble.
pub(super) struct TreeCurve {
    /// Number of trees, and what the mean of their scores reaches.
    points: Vec<(usize, MetricReport)>,
}

impl TreeCurve {
    /// Asks parts of the ensemble that was saved in `model`; `whole` are the metrics of all its trees.
    ///
    /// *Cost*: as many predictions as two ensembles and some more make.
    pub(super) fn of(
        model: &Path,
        n_trees: usize,
        whole: &MetricReport,
        instances: &Datasets,
        judging: &Judging,
        context: &Context,
    ) -> Result<Self, CliError> {
        let mut points = Vec::new();
        if let Some(validation) = &instances.validation {
            for n in numbers(n_trees) {
                let answers = answer(model, Some(n), validation.sparse(), context)?;
                points.extend(score(instances, &answers, judging)?.map(|metrics| (n, metrics)));
            }
        }
        points.push((n_trees, whole.clone()));
        Ok(Self { points })
    }

    /// Writes `log.jsonl` and `curve.svg` beside the model; says so where that fails.
    pub(super) fn write(&self, model: &Path, context: &Context) {
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
