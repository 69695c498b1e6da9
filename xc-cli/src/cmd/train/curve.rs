//! What each further tree of an ensemble gains, as a log and a picture.

use crate::context::Context;
use crate::error::chain;
use crate::output::{self, Output};
use serde_json::json;
use std::path::Path;
use xc_metrics::{Metric, MetricReport};
use xc_sparse::atomic::WriteFileError;
use xc_train::fit::Report;
use xc_train::plot::{Axis, Chart, Picture, Scale, Series};

/// Writes `log.jsonl` and `curve.svg` in a folder, where a run has a curve; says so where that fails.
pub(super) fn write(report: &Report, folder: &Path, context: &Context) {
    if !report.curve.is_empty() {
        TreeCurve { points: &report.curve }.write(folder, context);
    }
}

/// Metrics of the first trees of an ensemble: number of trees, and what the mean of their scores reaches.
struct TreeCurve<'a> {
    points: &'a [(usize, MetricReport)],
}

impl TreeCurve<'_> {
    /// Writes `log.jsonl` and `curve.svg` beside the model; says so where that fails.
    fn write(&self, folder: &Path, context: &Context) {
        let lines = || {
            output::make_folder(folder)?;
            let mut file = Output::create(&folder.join("log.jsonl"))?;
            for (n, metrics) in self.points {
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
