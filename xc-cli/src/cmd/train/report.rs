//! What a training run says at its end.

use super::curve;
use super::record::record;
use crate::bytes::format_bytes;
use crate::context::Context;
use crate::error::CliError;
use crate::measure::Usage;
use crate::model::{self, beside};
use crate::output::{self, Output};
use crate::whole_stdin;
use serde_json::{Map, Value, json};
use xc_options::data::Source;
use xc_train::fit::Report;

fn as_json(report: &Report, usage: &Usage, model_bytes: u64) -> Map<String, Value> {
    let mut map = Map::new();
    let mut put = |name: &str, value: Value| map.insert(name.to_owned(), value);
    put("wall_s", json!(usage.wall_s));
    put("cpu_s", json!(usage.cpu_s));
    put("read_s", json!(report.read_s));
    put("train_s", json!(report.train_s));
    put("save_s", json!(report.save_s));
    put("peak_rss_bytes", json!(usage.peak_rss_bytes));
    put("peak_anon_bytes", json!(usage.peak_anon_bytes));
    put("model_bytes", json!(model_bytes));
    map.extend(report.further.clone());
    if let Some(Value::Object(metrics)) = report.metrics.as_ref().and_then(|m| serde_json::to_value(m).ok()) {
        map.extend(metrics);
    }
    map
}

/// Writes the log and says what was done.
pub(super) fn finish(report: &Report, usage: &Usage, source: &Source, context: &Context) -> Result<(), CliError> {
    let model_bytes = model::open_container(&report.model)?.n_bytes();
    let map = as_json(report, usage, model_bytes);
    // The log is for people and scripts; the model stands whether it can be written or not.
    let mut log = map.clone();
    log.insert("train".into(), json!(whole_stdin::named(&source.name().to_string_lossy())));
    log.insert("threads".into(), json!(context.threads));
    log.extend(report.logged.clone());
    log.insert("run".to_owned(), record(report.data));
    let folder = beside(&report.model, "log");
    let written = output::make_folder(&folder).and_then(|()| {
        let mut file = Output::create(&folder.join("train.json"))?;
        file.put(format!("{:#}\n", Value::Object(log)).as_bytes())?;
        file.commit()
    });
    if let Err(e) = written {
        context.warn(e.line().unwrap_or_default());
    }
    curve::write(report, &folder, context);
    if context.json {
        return output::print(&Value::Object(map).to_string());
    }
    context.note(format_args!(
        "train {}: saved {}: {}, {}, in {:.1} s",
        report.kind,
        report.model.display(),
        report.what,
        format_bytes(model_bytes),
        usage.wall_s
    ));
    match &report.metrics {
        Some(metrics) => output::print(&metrics.table().to_string()),
        None => Ok(()),
    }
}
