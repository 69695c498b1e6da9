//! What a search found: best.toml, the table of trials, its picture.

use super::rungs::Rung;
use super::stored::Run;
use super::typed::Given;
use crate::context::Context;
use crate::error::{CliError, chain};
use crate::output::{self, Output};
use crate::plot::{Axis, Chart, Picture, Scale, Series};
use serde_json::{Map, Value, json};
use std::fmt::Write;
use std::path::Path;
use xc_metrics::Metric;
use xc_train::tune::{Paired, Search, Winner};

/// The file of the best options.
pub(super) const BEST: &str = "best.toml";
const TABLE: &str = "trials.jsonl";
const PICTURE: &str = "trials.svg";
/// Rows of the table that is printed.
const SHOWN: usize = 10;

/// Options of `xc train` that name files: they are named again.
const FILES: [&str; 11] = [
    "train",
    "train-labels",
    "validation",
    "validation-labels",
    "validation-fraction",
    "validation-features",
    "features",
    "label-names",
    "label-features",
    "instance-weights",
    "label-costs",
];

/// A search's result so far.
pub(super) struct Outcome {
    kind: &'static str,
    metric: Metric,
    winner: Winner,
    /// Options that differ from the defaults.
    pub(super) changes: Vec<(String, String)>,
    /// The same with what was given for all trials.
    options: Vec<(String, Vec<String>)>,
    /// Value of the metric for the winner and for the defaults, on the rung that decided.
    values: [f64; 2],
    decided_by: Option<String>,
    n_trials: usize,
    spent: f64,
    rows: Vec<Row>,
}

/// A run as the table has it.
struct Row {
    trial: usize,
    rung: usize,
    name: String,
    options: Vec<(String, String)>,
    /// The metric, and how it compares with that of the defaults; why there is none.
    value: Result<f64, String>,
    against: Option<Paired>,
    wall_s: f64,
    instances: usize,
}

/// Removes what is written here.
pub(super) fn remove(folder: &Path) -> Result<(), CliError> {
    for name in [BEST, TABLE, PICTURE] {
        let path = folder.join(name);
        match std::fs::remove_file(&path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                return Err(CliError::failed(format_args!("{}: cannot be removed: {}", path.display(), chain(&e))));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Changes as they are typed.
pub(super) fn options_line<N: AsRef<str>, V: AsRef<str>>(changes: &[(N, V)]) -> String {
    if changes.is_empty() {
        return "default options".to_owned();
    }
    let option = |(name, value): &(N, V)| match value.as_ref() {
        "true" => format!("--{}", name.as_ref()),
        value => format!("--{} {value}", name.as_ref()),
    };
    changes.iter().map(option).collect::<Vec<_>>().join(" ")
}

fn owned(changes: Vec<(&str, &str)>) -> Vec<(String, String)> {
    changes.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

impl Outcome {
    pub(super) fn new(
        kind: &'static str,
        metric: Metric,
        search: &Search,
        runs: &[Run],
        rungs: &[Rung],
        given: &[Given],
    ) -> Self {
        let winner = search.winner();
        let changes = owned(search.space().changes(search.settings(winner.trial)));
        let texts = |given: &Given| given.values.iter().map(|v| v.to_string_lossy().into_owned()).collect();
        let kept = given.iter().filter(|given| !FILES.contains(&&*given.name));
        let mut options: Vec<(String, Vec<String>)> = kept.map(|given| (given.name.clone(), texts(given))).collect();
        options.extend(
            changes
                .iter()
                .map(|(name, value)| (name.clone(), if value == "true" { Vec::new() } else { vec![value.clone()] })),
        );
        let row = |run: &Run| {
            let trial = search.trial_of(&run.settings).unwrap_or_default();
            let value = search.score(trial, run.rung).unwrap_or_default();
            Row {
                trial,
                rung: run.rung,
                name: rungs[run.rung].name.clone(),
                options: owned(search.space().changes(&run.settings)),
                value: run.scores.as_ref().map(|_| value).map_err(String::clone),
                against: if trial == 0 { None } else { search.against_default(trial, run.rung) },
                wall_s: run.wall_s,
                instances: run.scores.as_ref().map_or(0, Vec::len),
            }
        };
        let at = winner.rung.unwrap_or_default();
        let value = |trial| search.score(trial, at).unwrap_or_default();
        Self {
            kind,
            metric,
            winner,
            changes,
            options,
            values: [value(winner.trial), value(0)],
            decided_by: winner.rung.map(|rung| rungs[rung].name.clone()),
            n_trials: search.n_trials(),
            spent: runs.iter().map(|run| run.wall_s).sum(),
            rows: runs.iter().map(row).collect(),
        }
    }

    /// Writes the table of trials, a line a run.
    pub(super) fn write_table(&self, folder: &Path) -> Result<(), CliError> {
        let text: String = self.rows.iter().map(|row| format!("{}\n", self.line(row))).collect();
        write(&folder.join(TABLE), &text)
    }

    fn line(&self, row: &Row) -> Value {
        let mut map = Map::new();
        let mut put = |name: &str, value: Value| map.insert(name.to_owned(), value);
        put("trial", json!(row.trial));
        put("rung", json!(row.rung));
        put("judged_by", json!(row.name));
        let options = row.options.iter().map(|(name, value)| (name.clone(), json!(value)));
        put("options", Value::Object(options.collect()));
        match &row.value {
            Ok(value) => put(&self.metric.to_string(), json!(value)),
            Err(why) => put("failed", json!(why)),
        };
        if let Some(paired) = row.against {
            put("difference", json!(paired.difference));
            put("standard_error", json!(finite(paired.standard_error)));
        }
        put("instances", json!(row.instances));
        put("wall_s", json!((row.wall_s * 1e3).round() / 1e3));
        Value::Object(map)
    }

    /// Writes the best options and the picture.
    pub(super) fn write(&self, folder: &Path) -> Result<(), CliError> {
        write(&folder.join(BEST), &self.toml())?;
        self.draw(&folder.join(PICTURE))
    }

    /// Options as `--config` reads them.
    fn toml(&self) -> String {
        let mut text = format!("# The best of {} trials of xc tune {} by {}.\n", self.n_trials, self.kind, self.metric);
        // Writing to a String cannot fail.
        let _ = writeln!(text, "# {}", self.verdict());
        for (name, values) in &self.options {
            let is_table =
                self.options.iter().any(|(other, _)| name.strip_prefix(&**other).is_some_and(|s| s.starts_with('.')));
            let key = if is_table { format!("\"{name}\"") } else { name.clone() };
            let values: Vec<String> = values.iter().map(|value| plain(value)).collect();
            let _ = match &*values {
                [] => writeln!(text, "{key} = true"),
                [value] => writeln!(text, "{key} = {value}"),
                values => writeln!(text, "{key} = [{}]", values.join(", ")),
            };
        }
        text
    }

    fn verdict(&self) -> String {
        let [value, default] = self.values.map(|value| 100.0 * value);
        let Some(by) = &self.decided_by else {
            return "no other trial was judged by enough instances: the default options stay".to_owned();
        };
        match self.winner.against_default {
            None => format!(
                "{} {default:.2} ({by}): no trial is better than the default options by more than chance",
                self.metric
            ),
            Some(paired) => format!(
                "{} {value:.2}, default options {default:.2}: {:+.2}, standard error {:.2} ({by}, {} instances)",
                self.metric,
                100.0 * paired.difference,
                100.0 * paired.standard_error,
                paired.rows
            ),
        }
    }

    fn draw(&self, path: &Path) -> Result<(), CliError> {
        let highest = self.rows.iter().map(|row| row.rung).max().unwrap_or_default();
        let of = |rung: usize| -> Vec<(f64, f64)> {
            let mut spent = 0.0;
            let mut points = Vec::new();
            let mut best = f64::NEG_INFINITY;
            for row in &self.rows {
                spent += row.wall_s;
                if let (true, Ok(value)) = (row.rung == rung, &row.value) {
                    best = best.max(100.0 * value);
                    points.push((spent, best));
                }
            }
            points
        };
        let lines: Vec<(String, Vec<(f64, f64)>)> = (0..=highest)
            .filter_map(|rung| Some((self.rows.iter().find(|row| row.rung == rung)?.name.clone(), of(rung))))
            .collect();
        let series = lines.iter().map(|(name, points)| Series { name, points }).collect();
        let linear = |name| Axis { name, scale: Scale::Linear };
        let metric = format!("best {} so far, %", self.metric);
        let title = format!("xc tune {}: {} trials", self.kind, self.n_trials);
        let charts = vec![Chart { y: linear(&metric), series }];
        let picture = Picture { title: &title, x: linear("seconds"), charts };
        picture.write(path).map_err(|e| CliError::unwritable(&e))
    }

    /// Says what was found.
    pub(super) fn print(&self, folder: &Path, context: &Context) -> Result<(), CliError> {
        if context.json {
            let options = self.changes.iter().map(|(name, value)| (name.clone(), json!(value)));
            let report = json!({
                "metric": self.metric.to_string(),
                "value": self.values[0],
                "default": self.values[1],
                "difference": self.winner.against_default.map(|paired| paired.difference),
                "standard_error": self.winner.against_default.map(|paired| paired.standard_error),
                "trial": self.winner.trial,
                "judged_by": self.decided_by,
                "options": Value::Object(options.collect()),
                "trials": self.n_trials,
                "runs": self.rows.len(),
                "wall_s": self.spent,
            });
            return output::print(&report.to_string());
        }
        context.note(format_args!(
            "tune {}: {} trials; {}; {}",
            self.kind,
            self.n_trials,
            options_line(&self.changes),
            folder.join(BEST).display()
        ));
        output::print(&self.text())
    }

    /// The trials that got furthest, best first, and the defaults.
    fn text(&self) -> String {
        let mut best: Vec<&Row> = Vec::new();
        for row in self.rows.iter().filter(|row| row.value.is_ok()) {
            match best.iter_mut().find(|other| other.trial == row.trial) {
                Some(other) => *other = row,
                None => best.push(row),
            }
        }
        let value = |row: &Row| row.value.as_ref().copied().unwrap_or_default();
        best.sort_by(|a, b| b.rung.cmp(&a.rung).then(value(b).total_cmp(&value(a))).then(a.trial.cmp(&b.trial)));
        let default = best.iter().position(|row| row.trial == 0).unwrap_or_default();
        let shown = best.iter().enumerate().filter(|(at, _)| *at < SHOWN || *at == default);
        let metric = self.metric.to_string();
        let mut text = format!(
            "{:>5}  {:<20}{metric:>8}{:>12}{:>8}{:>9}  options\n",
            "trial", "judged by", "difference", "error", "s"
        );
        for (_, row) in shown {
            let against = match row.against {
                Some(paired) => {
                    format!("{:>+12.2}{:>8.2}", 100.0 * paired.difference, 100.0 * paired.standard_error)
                }
                None => " ".repeat(20),
            };
            let mark = if row.trial == self.winner.trial { "*" } else { " " };
            // Writing to a String cannot fail.
            let _ = writeln!(
                text,
                "{:>5}{mark} {:<20}{:>8.2}{against}{:>9.1}  {}",
                row.trial,
                row.name,
                100.0 * value(row),
                row.wall_s,
                options_line(&row.options)
            );
        }
        text + &self.verdict()
    }
}

fn finite(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

/// A value as TOML has it: numbers and truth values bare, anything else as a string.
fn plain(value: &str) -> String {
    let is_number = value.parse::<i64>().is_ok_and(|number| number.to_string() == value)
        || (value.contains('.') && value.parse::<f64>().is_ok_and(|number| number.to_string() == value));
    if is_number || value == "true" || value == "false" {
        return value.to_owned();
    }
    let escape = |c: char| match c {
        '"' => "\\\"".to_owned(),
        '\\' => "\\\\".to_owned(),
        c if c.is_control() => format!("\\u{:04X}", u32::from(c)),
        c => c.to_string(),
    };
    format!("\"{}\"", value.chars().map(escape).collect::<String>())
}

fn write(path: &Path, text: &str) -> Result<(), CliError> {
    let mut file = Output::create(path)?;
    file.put(text.as_bytes())?;
    file.commit()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_as_toml_reads_them() {
        let line = |text: &str| format!("x = {}", plain(text)).parse::<toml::Table>().unwrap()["x"].clone();
        for text in ["12", "0.03", "-4", "true", "squared-hinge", "3-5", "a\"b\\c\n\t;", "1e5", "007", "+1", "nan", "é"]
        {
            let read = match line(text) {
                toml::Value::String(text) => text,
                other => other.to_string(),
            };
            assert_eq!(read, text);
        }
    }
}
