//! The settings of an evaluation of answers.

use super::{At, Choices, Setting, SettingError, SettingPlace, Table, Values, field};
use Values::{F64, Size, Sizes, Switch, Text};
use xc_metrics::{BootstrapParams, EvaluatorParams, KeepRows};
use xc_model::message::chain;

/// Which metrics, and with what beside them.
#[derive(Clone, Debug, PartialEq)]
pub struct JudgeParams {
    /// Numbers of best labels.
    pub ks: Vec<usize>,
    /// Constants of the propensity model 1 / (1 + C (n + B)^-A).
    pub propensity: Propensities,
    /// Where answers are cut.
    pub threshold: Option<Cut>,
    /// Whether metrics have intervals.
    pub intervals: bool,
    /// Of intervals and comparisons.
    pub bootstrap: BootstrapParams,
}

/// Constants of the propensity model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Propensities {
    /// The exponent A.
    pub a: f64,
    /// The offset B.
    pub b: f64,
}

/// Where answers are cut.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cut {
    /// At a score.
    At(f32),
    /// Where micro F1 is largest.
    Best,
}

impl Default for JudgeParams {
    fn default() -> Self {
        let (propensity, bootstrap) = (Propensities { a: 0.55, b: 1.5 }, BootstrapParams::default());
        Self { ks: vec![1, 3, 5], propensity, threshold: None, intervals: false, bootstrap }
    }
}

impl JudgeParams {
    /// Metrics over so many labels; `compares`: whether they are compared with those of other answers.
    pub fn evaluator(&self, n_labels: usize, compares: bool) -> EvaluatorParams {
        let keep_rows = if self.intervals || compares { KeepRows::Yes } else { KeepRows::No };
        EvaluatorParams { ks: self.ks.clone(), keep_rows, ..EvaluatorParams::new(n_labels) }
    }
}

const fn row(name: &'static str, at: At<JudgeParams>, values: Values, unit: &'static str) -> Setting {
    Setting::new(name, values, unit).at(SettingPlace::Judge(at))
}

const BEST: &str = "best";

const THRESHOLD: At<JudgeParams> = At::Form {
    name: "threshold",
    get: |of| {
        of.threshold.map(|cut| match cut {
            Cut::At(at) => at.to_string().into(),
            Cut::Best => BEST.into(),
        })
    },
    put: |of, value| {
        of.threshold = Some(parse_cut(value.as_str().unwrap_or_default())?);
        Ok(())
    },
};

/// Places are those of [`JudgeParams`].
pub const TABLE: Table = Table {
    rows: &[
        row("k", field!(ks), Sizes, "K,...").help("Values of k for every metric"),
        row("propensity-a", field!(propensity.a), F64, "A").help("A of the propensity model 1 / (1 + C (n + B)^-A)"),
        row("propensity-b", field!(propensity.b), F64, "B").help("B of the propensity model"),
        row("threshold", THRESHOLD, Text(|text| parse_cut(text).map(drop)), "T").help(
            "Add precision, recall and F1 (micro, macro, per instance) of the labels that score at least T; best: the \
             threshold with the largest micro F1 on these same rows",
        ),
        row("intervals", field!(intervals), Switch, "").help("Add a bootstrap interval to every metric"),
        row("resamples", field!(bootstrap.resamples), Size, "N").help("Number of bootstrap resamples"),
        row("level", field!(bootstrap.level), F64, "SHARE").help("Share of the resamples inside an interval"),
    ],
    starts: &[],
};

fn parse_cut(text: &str) -> Result<Cut, String> {
    match text.parse::<f32>() {
        _ if text == BEST => Ok(Cut::Best),
        Ok(at) if at.is_finite() => Ok(Cut::At(at)),
        _ => Err(format!("got {text:?}, expected a number or best")),
    }
}

/// What was chosen of an evaluation; `compares`: whether other answers are compared with, `has_training`: whether the labels
/// of the training are known.
///
/// # Errors
/// A number out of range or a choice without an effect, by the name of its setting.
pub fn params(choices: &Choices, compares: bool, has_training: bool) -> Result<JudgeParams, SettingError> {
    let made = TABLE.place(JudgeParams::default(), choices)?;
    made.bootstrap.check().map_err(|e| SettingError::of("resamples, --level", chain(&e)))?;
    let idle = |names: &[&'static str]| names.iter().copied().find(|name| choices.get(name).is_some());
    if !made.intervals
        && !compares
        && let Some(name) = idle(&["resamples", "level"])
    {
        return Err(SettingError::idle(name, "--intervals or --compare"));
    }
    if !has_training && let Some(name) = idle(&["propensity-a", "propensity-b"]) {
        return Err(SettingError::idle(name, "--propensity-from"));
    }
    made.evaluator(0, compares).check().map_err(|e| SettingError::of("k", chain(&e)))?;
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(given: &[(&str, &str)], compares: bool, has_training: bool) -> Result<JudgeParams, SettingError> {
        params(&TABLE.given(given.iter().copied())?, compares, has_training)
    }

    #[test]
    fn every_row_leads_to_a_place_of_its_own_and_changes_it() {
        let usual = JudgeParams::default();
        assert_eq!(made(&[], false, false).unwrap(), usual);
        for row in TABLE.rows {
            let value = match row.values {
                Sizes => "2,7",
                Size => "9",
                Switch => "true",
                _ => "0.25",
            };
            let after = made(&[(row.name, value)], true, true).unwrap();
            assert_eq!(row.shown_in(&after).as_deref(), Some(value), "{}", row.name);
            let changed = TABLE.rows.iter().filter(|other| other.shown_in(&after) != other.shown_in(&usual));
            assert_eq!(changed.map(|other| other.name).collect::<Vec<_>>(), [row.name]);
        }
        assert_eq!(made(&[("threshold", "best")], false, false).unwrap().threshold, Some(Cut::Best));
    }

    #[test]
    fn what_cannot_be_or_has_no_effect_is_refused_by_its_name() {
        for (name, value, expected) in [
            ("k", "0", "--k: "),
            ("k", "a", "--k a: expected a number from 0 on"),
            ("threshold", "inf", "--threshold inf: got \"inf\", expected a number or best"),
            ("level", "0.9", "--level has no effect here: add --intervals or --compare"),
            ("resamples", "9", "--resamples has no effect here: add --intervals or --compare"),
            ("propensity-b", "1", "--propensity-b has no effect here: add --propensity-from"),
        ] {
            let refused = made(&[(name, value)], false, false).unwrap_err().to_string();
            assert!(refused.starts_with(expected), "{refused}");
        }
        let refused = made(&[("level", "1.5")], true, false).unwrap_err().to_string();
        assert!(refused.starts_with("--resamples, --level: "), "{refused}");
    }
}
