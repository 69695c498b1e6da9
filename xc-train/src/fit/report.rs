//! What came out of a training run.

use super::FitError;
use super::data::Dataset;
use serde_json::{Map, Value};
use std::path::PathBuf;
use xc_metrics::evaluate;
use xc_metrics::{EvaluatorParams, KeepRows, Metric, MetricReport, Propensity};
use xc_model::message::chain;
use xc_sparse::LabelRows;
use xc_sparse::rank::RankedBatch;

/// What is computed of the answers to held-out instances.
#[derive(Clone, Debug)]
pub struct Judging {
    /// The cuts k of the metrics, 5 at most.
    pub ks: Vec<usize>,
    /// Whether models are compared instance by instance.
    pub keep_rows: KeepRows,
    /// Whether parts of an ensemble are judged too, for its curve.
    pub curve: bool,
}

impl Default for Judging {
    fn default() -> Self {
        Self { ks: vec![1, 3, 5], keep_rows: KeepRows::No, curve: true }
    }
}

/// Figures of a training run.
#[derive(Clone, Debug)]
pub struct Report {
    /// Which system: `tree`, `mach`, ...
    pub kind: &'static str,
    /// The folder of the model.
    pub model: PathBuf,
    /// Seconds of reading.
    pub read_s: f64,
    /// Seconds of training.
    pub train_s: f64,
    /// Seconds of saving.
    pub save_s: f64,
    /// The metrics of the finished model on instances that judge it, where there are some.
    pub metrics: Option<MetricReport>,
    /// The same of the first so many trees of an ensemble, where that was asked for.
    pub curve: Vec<(usize, MetricReport)>,
    /// What the model consists of, for a person: `3 trees, 170 weights`.
    pub what: String,
    /// Further figures.
    pub further: Map<String, Value>,
    /// Settings that it was trained with, by part.
    pub logged: Map<String, Value>,
    /// Fingerprint of the training instances and their labels, where they are known.
    pub data: Option<u64>,
}

impl Report {
    /// A metric at 1, 3 and 5 over the number of trees of an ensemble: its name and its points, for each k that was
    /// computed.
    pub fn curve_of(&self, metric: fn(usize) -> Metric) -> Vec<(String, Vec<(f64, f64)>)> {
        let at = |k| {
            let value = |(n, metrics): &(usize, MetricReport)| Some((*n as f64, metrics.value(metric(k))?));
            (metric(k).to_string(), self.curve.iter().filter_map(value).collect::<Vec<_>>())
        };
        [1, 3, 5].map(at).into_iter().filter(|(_, points)| !points.is_empty()).collect()
    }
}

/// The metrics of what a model answers to labelled instances, propensities from the labels of the training.
pub(super) fn score_against(
    labels: &LabelRows,
    truth: &Dataset,
    answers: RankedBatch,
    judging: &Judging,
) -> Result<MetricReport, FitError> {
    let (ks, keep_rows) = (judging.ks.clone(), judging.keep_rows);
    let mut params = EvaluatorParams { ks, keep_rows, ..EvaluatorParams::new(labels.n_labels()) };
    // The constants of the literature; too few training instances leave the propensity metrics out.
    params.propensity = Propensity::from_training(labels, 0.55, 1.5).ok();
    evaluate(&truth.labels, &truth.answered(answers), params)
        .map_err(|e| FitError::failed(format_args!("validation: {}", chain(&e))))
}
