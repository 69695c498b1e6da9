//! What a search found: the best settings, and a table of trials.

use super::Tuning;
use super::parts::PART;
use super::rungs::Rung;
use super::stored::Run;
use crate::tune::{Paired, Search, Winner};
use serde_json::{Map, Value, json};
use std::fmt::Write as _;
use std::path::Path;
use xc_buffer::Part;
use xc_metrics::Metric;
use xc_model::message::chain;
use xc_store::atomic::write_file;
use xc_train::fit::FitError;

/// The file of the best options.
pub const BEST: &str = "best.toml";
const TABLE: &str = "trials.jsonl";
/// The picture of the trials.
pub const PICTURE: &str = "trials.svg";
/// Rows of the table that is printed.
const SHOWN: usize = 10;

/// A search's result so far.
#[derive(Clone, Debug)]
pub struct Found {
    /// The kind of model.
    pub kind: String,
    /// What was maximised.
    pub metric: Metric,
    /// The best trial.
    pub winner: Winner,
    /// Options that differ from the defaults.
    pub changes: Vec<(String, String)>,
    /// The same with what was given for all trials.
    options: Vec<(String, String)>,
    /// Value of the metric for the winner and for the defaults, on the rung that decided.
    pub values: [f64; 2],
    /// The rung that decided.
    pub decided_by: Option<String>,
    /// Settings that were tried.
    pub n_trials: usize,
    /// Seconds that runs took.
    pub spent: f64,
    /// The runs.
    pub rows: Vec<TrialRow>,
}

/// What a part of a round of trials came to.
#[derive(Clone, Debug)]
pub struct FoundPart {
    /// Which part.
    pub part: Part,
    /// The rung that was shared out.
    pub judged_by: String,
    /// Trials that the round has.
    pub n_trials: usize,
    /// Runs of the part.
    pub rows: Vec<TrialRow>,
}

/// A run as the table has it.
#[derive(Clone, Debug)]
pub struct TrialRow {
    /// Its trial.
    pub trial: usize,
    /// Its rung.
    pub rung: usize,
    /// What the rung is called.
    pub name: String,
    /// Settings that differ from the defaults.
    pub options: Vec<(String, String)>,
    /// The metric, and how it compares with that of the defaults; why there is none.
    pub value: Result<f64, String>,
    /// The difference from the defaults.
    pub against: Option<Paired>,
    /// Seconds.
    pub wall_s: f64,
    /// Instances that judged it.
    pub instances: usize,
}

/// Removes what is written here.
pub(super) fn remove(folder: &Path) -> Result<(), FitError> {
    let cannot = |path: &Path, e: &std::io::Error| {
        FitError::failed(format_args!("{}: cannot be removed: {}", path.display(), chain(e)))
    };
    let part = folder.join(PART);
    if part.is_dir() {
        std::fs::remove_dir_all(&part).map_err(|e| cannot(&part, &e))?;
    }
    for name in [BEST, TABLE, PICTURE] {
        let path = folder.join(name);
        match std::fs::remove_file(&path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
                return Err(cannot(&path, &e));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Changes as they are typed.
pub fn options_line<N: AsRef<str>, V: AsRef<str>>(changes: &[(N, V)]) -> String {
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

impl Found {
    pub(super) fn new(tuning: &Tuning, search: &Search, runs: &[Run], rungs: &[Rung]) -> Self {
        let winner = search.winner();
        let changes = owned(search.space().changes(search.settings(winner.trial)));
        let kept = tuning.training.choices.iter().filter(|(row, _)| row.name != "validation-fraction");
        let mut options: Vec<(String, String)> =
            kept.map(|(row, value)| (row.name.to_owned(), row.text(value))).collect();
        options.extend(changes.iter().cloned());
        let row = |run: &Run| {
            let trial = search.trial_of(&run.settings).unwrap_or_default();
            let value = search.score(trial, run.rung).unwrap_or_default();
            TrialRow {
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
            kind: tuning.training.kind().to_owned(),
            metric: tuning.metric,
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
    pub(super) fn write_table(&self, folder: &Path) -> Result<(), FitError> {
        let text: String = self.rows.iter().map(|row| format!("{}\n", self.line(row))).collect();
        write(&folder.join(TABLE), &text)
    }

    fn line(&self, row: &TrialRow) -> Value {
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

    /// Writes the best options.
    pub(super) fn write(&self, folder: &Path) -> Result<(), FitError> {
        write(&folder.join(BEST), &self.toml())
    }

    /// Options as `--config` reads them.
    fn toml(&self) -> String {
        let mut text = format!("# The best of {} trials of xc tune {} by {}.\n", self.n_trials, self.kind, self.metric);
        // Writing to a String cannot fail.
        let _ = writeln!(text, "# {}", self.verdict());
        for (name, value) in &self.options {
            let is_table =
                self.options.iter().any(|(other, _)| name.strip_prefix(&**other).is_some_and(|s| s.starts_with('.')));
            let key = if is_table { format!("\"{name}\"") } else { name.clone() };
            let _ = writeln!(text, "{key} = {}", plain(value));
        }
        text
    }

    /// What was found, in a sentence.
    pub fn verdict(&self) -> String {
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

    /// The trials that got furthest, best first, and the defaults, as a table.
    pub fn text(&self) -> String {
        let mut best: Vec<&TrialRow> = Vec::new();
        for row in self.rows.iter().filter(|row| row.value.is_ok()) {
            match best.iter_mut().find(|other| other.trial == row.trial) {
                Some(other) => *other = row,
                None => best.push(row),
            }
        }
        let value = |row: &TrialRow| row.value.as_ref().copied().unwrap_or_default();
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

fn write(path: &Path, text: &str) -> Result<(), FitError> {
    write_file(path, |out| std::io::Write::write_all(out, text.as_bytes())).map_err(|e| FitError::unwritable(&e))
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn numbers_and_truth_values_are_bare_and_everything_else_is_a_toml_string() {
        for text in ["12", "0.03", "-4", "true"] {
            assert_eq!(plain(text), text);
        }
        for text in ["squared-hinge", "3-5", "1e5", "007", "+1", "nan", "é"] {
            assert_eq!(plain(text), format!("\"{text}\""));
        }
        assert_eq!(plain("a\"b\\c\n\t;"), "\"a\\\"b\\\\c\\u000A\\u0009;\"");
    }
}
