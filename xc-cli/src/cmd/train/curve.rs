//! What each further tree of an ensemble gains, as a log and a picture.

use crate::context::Context;
use crate::error::chain;
use crate::output::{self, Output};
use serde_json::json;
use std::path::Path;
use xc_metrics::Metric;
use xc_options::plot::{Axis, Chart, Picture, Scale, Series};
use xc_store::atomic::WriteFileError;
use xc_train::fit::Report;

/// Writes `log.jsonl` and `curve.svg` in a folder, where a run has a curve; says so where that fails.
pub(super) fn write(report: &Report, folder: &Path, context: &Context) {
    if report.curve.is_empty() {
        return;
    }
    let lines = || {
        output::make_folder(folder)?;
        let mut file = Output::create(&folder.join("log.jsonl"))?;
        for (n, metrics) in &report.curve {
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
    } else if let Err(e) = draw(report, &folder.join("curve.svg")) {
        context.warn(chain(&e));
    }
}

/// Metrics of the first trees of an ensemble: number of trees, and what the mean of their scores reaches.
fn draw(report: &Report, path: &Path) -> Result<(), WriteFileError> {
    let linear = |name| Axis { name, scale: Scale::Linear };
    let (precision, propensity) = (report.curve_of(Metric::Precision), report.curve_of(Metric::Psp));
    let mut charts = Vec::new();
    for (name, lines) in [("P@k", &precision), ("PSP@k", &propensity)] {
        let series: Vec<_> = lines.iter().map(|(name, points)| Series { name, points }).collect();
        charts.extend((!series.is_empty()).then(|| Chart { y: linear(name), series }));
    }
    Picture { title: "Validation metrics", x: linear("trees"), charts }.write(path)
}
