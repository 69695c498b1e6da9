//! What a training run says at its end.

use super::inputs::PlaceArgs;
use crate::bytes::format_bytes;
use crate::context::Context;
use crate::data::Dataset;
use crate::error::{CliError, chain};
use crate::measure::Usage;
use crate::model::{self, beside};
use crate::output::{self, Output};
use serde_json::{Map, Value, json};
use xc_metrics::evaluate;
use xc_metrics::{EvaluatorParams, KeepRows, MetricReport, Propensity};
use xc_sparse::LabelRows;
use xc_sparse::rank::RankedBatch;

/// What is computed of the answers to held-out instances.
pub(in crate::cmd) struct Judging {
    /// The cuts k of the metrics, 5 at most.
    pub(in crate::cmd) ks: Vec<usize>,
    /// Whether models are compared instance by instance.
    pub(in crate::cmd) keep_rows: KeepRows,
    /// Whether parts of an ensemble are judged too, for its curve.
    pub(in crate::cmd) curve: bool,
}

impl Default for Judging {
    fn default() -> Self {
        Self { ks: vec![1, 3, 5], keep_rows: KeepRows::No, curve: true }
    }
}

/// Figures of a training run.
pub(in crate::cmd) struct Report {
    /// Which system: `tree`, `mach`, ...
    pub(super) kind: &'static str,
    pub(in crate::cmd) usage: Usage,
    pub(super) read_s: f64,
    pub(super) train_s: f64,
    pub(super) save_s: f64,
    pub(in crate::cmd) metrics: Option<MetricReport>,
    /// What the model consists of, for a person: `3 trees, 170 weights`.
    pub(super) what: String,
    /// Further figures.
    pub(super) further: Map<String, Value>,
    /// What only the log gets.
    pub(super) logged: Map<String, Value>,
}

/// The metrics of what a model answers to labelled instances, propensities from the labels of the training.
pub(super) fn score_against(
    labels: &LabelRows,
    truth: &Dataset,
    answers: RankedBatch,
    judging: &Judging,
) -> Result<MetricReport, CliError> {
    let (ks, keep_rows) = (judging.ks.clone(), judging.keep_rows);
    let mut params = EvaluatorParams { ks, keep_rows, ..EvaluatorParams::new(labels.n_labels()) };
    // The constants of the literature; too few training instances leave the propensity metrics out.
    params.propensity = Propensity::from_training(labels, 0.55, 1.5).ok();
    evaluate(&truth.labels, &truth.answered(answers), params)
        .map_err(|e| CliError::failed(format_args!("validation: {}", chain(&e))))
}

impl Report {
    fn json(&self, model_bytes: u64) -> Map<String, Value> {
        let mut map = Map::new();
        let mut put = |name: &str, value: Value| map.insert(name.to_owned(), value);
        put("wall_s", json!(self.usage.wall_s));
        put("cpu_s", json!(self.usage.cpu_s));
        put("read_s", json!(self.read_s));
        put("train_s", json!(self.train_s));
        put("save_s", json!(self.save_s));
        put("peak_rss_bytes", json!(self.usage.peak_rss_bytes));
        put("peak_anon_bytes", json!(self.usage.peak_anon_bytes));
        put("model_bytes", json!(model_bytes));
        map.extend(self.further.clone());
        if let Some(Value::Object(metrics)) = self.metrics.as_ref().and_then(|m| serde_json::to_value(m).ok()) {
            map.extend(metrics);
        }
        map
    }

    /// Writes the log and says what was done.
    pub(in crate::cmd) fn finish(&self, args: &PlaceArgs, context: &Context) -> Result<(), CliError> {
        let model_bytes = model::open_container(&args.model)?.n_bytes();
        let map = self.json(model_bytes);
        // The log is for people and scripts; the model stands whether it can be written or not.
        let mut log = map.clone();
        log.insert("train".into(), json!(args.train.display().to_string()));
        log.insert("threads".into(), json!(context.threads));
        log.extend(self.logged.clone());
        let folder = beside(&args.model, "log");
        let written = output::make_folder(&folder).and_then(|()| {
            let mut file = Output::create(&folder.join("train.json"))?;
            file.put(format!("{:#}\n", Value::Object(log)).as_bytes())?;
            file.commit()
        });
        if let Err(e) = written {
            context.warn(e.line().unwrap_or_default());
        }
        if context.json {
            return output::print(&Value::Object(map).to_string());
        }
        context.note(format_args!(
            "train {}: saved {}: {}, {}, in {:.1} s",
            self.kind,
            args.model.display(),
            self.what,
            format_bytes(model_bytes),
            self.usage.wall_s
        ));
        match &self.metrics {
            Some(metrics) => output::print(&metrics.table().to_string()),
            None => Ok(()),
        }
    }
}
