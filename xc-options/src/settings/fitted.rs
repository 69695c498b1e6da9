//! The settings of what is fitted to rows that models were not trained on: the rule of a blend, and calibrations.

use super::{At, Choices, Setting, SettingError, SettingPlace, Table, Values, field};
use Values::{Names, Size};
use xc_model::blend::RuleKind;
use xc_train::blend::FitParams;
use xc_train::calibrate::CalibrateParams;

const fn of_blend(name: &'static str, at: At<FitParams>, values: Values, unit: &'static str) -> Setting {
    Setting::new(name, values, unit).at(SettingPlace::Blend(at))
}

const fn of_curve(name: &'static str, at: At<CalibrateParams>, values: Values, unit: &'static str) -> Setting {
    Setting::new(name, values, unit).at(SettingPlace::Calibration(at))
}

/// Places are those of [`FitParams`].
pub const BLEND: Table = Table {
    rows: &[
        of_blend("rule", field!(rule), Names(&["reciprocal-ranks", "logistic", "net", "boosted"]), "RULE")
            .usual("the best of them in cross-validation")
            .help(
                "How the answers are merged into one ranking: reciprocal-ranks (only the probabilities are fitted), \
                 logistic, net, or boosted (trees of decisions)",
            ),
        of_blend("folds", field!(folds), Size, "N").help("Folds of the validation instances in cross-validation"),
        of_blend("hidden", field!(hidden), Size, "N").help("Hidden units of a network, at most 65536 (--rule net)"),
        of_blend("networks", field!(networks), Size, "N")
            .help("Networks whose answers are averaged, at most 1024 (--rule net)"),
    ],
    starts: &[],
};

/// Places are those of [`CalibrateParams`].
pub const CALIBRATION: Table = Table {
    rows: &[
        of_curve("method", field!(method), Names(&["isotonic", "platt"]), "NAME")
            .help("The curve: isotonic (any rising curve) or platt (a logistic one with two parameters, for few rows)"),
        of_curve("top-k", field!(top_k), Size, "K").help("Best labels of each row that are used"),
        of_curve("least-true", field!(least_true), Size, "N").help(
            "Number of rows with a label that it needs for its own threshold; other labels use the macro F1 threshold",
        ),
        of_curve("folds", field!(folds), Size, "N").help("Folds of the rows, each evaluated by a fit on the others"),
    ],
    starts: &[],
};

/// How a blend is fitted.
///
/// # Errors
/// A choice that has no effect, by the name of its setting. Numbers out of range are refused by [`FitParams::check`].
pub fn blend_params(choices: &Choices) -> Result<FitParams, SettingError> {
    let made = BLEND.place(FitParams::default(), choices)?;
    // Without a rule that is asked for, all are tried.
    let has_networks = made.rule.is_none_or(|rule| rule == RuleKind::Net);
    match ["hidden", "networks"].into_iter().find(|name| !has_networks && choices.get(name).is_some()) {
        Some(name) => Err(SettingError::idle(name, "--rule net (or no --rule)")),
        None => Ok(made),
    }
}

/// How a calibration is fitted.
///
/// # Errors
/// A value that its place cannot hold. Numbers out of range are refused where they are used.
pub fn calibration_params(choices: &Choices) -> Result<CalibrateParams, SettingError> {
    CALIBRATION.place(CalibrateParams::default(), choices)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Placed;

    fn choices(table: &Table, typed: &[(&str, &str)]) -> Choices {
        let mut choices = Choices::default();
        typed.iter().for_each(|(name, value)| choices.set(table.row(name).unwrap(), value).unwrap());
        choices
    }

    fn every_row_has_a_place<P: Placed>(table: &Table, usual: &P, made: impl Fn(&Choices) -> Result<P, SettingError>) {
        for row in table.rows {
            let value = row.names().map_or("7", |names| names[names.len() - 1]);
            let after = made(&choices(table, &[(row.name, value)])).unwrap();
            assert_eq!(row.shown_in(&after).as_deref(), Some(value), "{}", row.name);
            let changed = table.rows.iter().filter(|other| other.shown_in(&after) != other.shown_in(usual));
            assert_eq!(changed.map(|other| other.name).collect::<Vec<_>>(), [row.name]);
        }
    }

    #[test]
    fn every_row_leads_to_a_place_of_its_own_and_changes_it() {
        every_row_has_a_place(&BLEND, &FitParams::default(), blend_params);
        every_row_has_a_place(&CALIBRATION, &CalibrateParams::default(), calibration_params);
        assert_eq!(blend_params(&Choices::default()).unwrap(), FitParams::default());
        let refused = blend_params(&choices(&BLEND, &[("rule", "logistic"), ("hidden", "3")])).unwrap_err();
        assert_eq!(refused.to_string(), "--hidden has no effect here: add --rule net (or no --rule), or leave it out");
        assert!(blend_params(&choices(&BLEND, &[("rule", "net"), ("hidden", "3")])).is_ok());
    }
}
