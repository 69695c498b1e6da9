//! The settings of what is changed about a trained model, without training.

use super::tree::WEIGHTS;
use super::{At, Choices, Setting, SettingError, SettingPlace, Slot, Table, Values, field};
use Values::{F32, Names, Size, Text};
use serde_json::Value;
use xc_model::Changes;
use xc_tree::PostProcessor;

const fn row(name: &'static str, at: At<Changes>, values: Values, unit: &'static str) -> Setting {
    Setting::new(name, values, unit).at(SettingPlace::Change(at)).heading("Changes of a model (--from xc --to xc)")
}

const WIDE: At<Changes> = At::Form {
    name: "wide",
    get: |of| of.without_wide.then(|| Value::from("off")),
    put: |of, _| {
        of.without_wide = true;
        Ok(())
    },
};

const TREES: At<Changes> = At::Form {
    name: "n_trees",
    get: |of| of.n_trees.map(Value::from),
    put: |of, value| {
        of.n_trees.put(value)?;
        if of.n_trees == Some(0) { Err("1 or more is expected".to_owned()) } else { Ok(()) }
    },
};

/// The setting that a model of another system can have too.
pub const PRECISION: &str = "precision";

/// Places are those of [`Changes`].
pub const TABLE: Table = Table {
    rows: &[
        Setting { heading: None, ..row(PRECISION, field!(precision), WEIGHTS, "TYPE") }
            .usual("f32 for a model of another system, else that of SRC")
            .help("Type of the weights of an xc model: f32, f16 or bf16"),
        row("prune-below", field!(prune_below), F32, "X").help(
            "Drop weights of a tree or of a wide term below this magnitude, as --linear.prune-below and --wide.prune-below \
             do in training",
        ),
        row("wide", WIDE, Names(&["off"]), "off").help("Leave out the wide term of a network"),
        row("trees", TREES, Size, "T").help("Keep the first T trees of an ensemble"),
        row("post-processor", field!(post), Text(check_post_processor), "NAME").help(
            "How margins of a tree become scores: sigmoid, log-sigmoid, noop, lP-hinge or log-lP-hinge with P from 1 to 9",
        ),
    ],
    starts: &[],
};

fn check_post_processor(name: &str) -> Result<(), String> {
    name.parse::<PostProcessor>().map(drop).map_err(|e| e.to_string())
}

/// What was chosen of a change.
///
/// # Errors
/// A number out of range, by the name of its setting.
pub fn params(choices: &Choices) -> Result<Changes, SettingError> {
    TABLE.place(Changes::default(), choices)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_leads_to_a_place_of_its_own_and_changes_it() {
        let rows = || TABLE.rows.iter();
        for row in rows() {
            let value = match row.name {
                "post-processor" => "log-l2-hinge",
                _ => row.names().map_or("7", |names| names[0]),
            };
            let mut choices = Choices::default();
            choices.set(row, value).unwrap();
            let made = params(&choices).unwrap();
            let changed = rows().filter(|other| other.shown_in(&made).is_some());
            let changed: Vec<_> = changed.map(|other| (other.name, other.shown_in(&made).unwrap())).collect();
            assert_eq!(changed, [(row.name, value.to_owned())]);
        }
        assert_eq!(params(&Choices::default()).unwrap(), Changes::default());
    }

    #[test]
    fn what_cannot_be_is_refused_by_its_name() {
        for (name, value, expected) in [
            ("trees", "0", "--trees 0: 1 or more is expected"),
            (
                "post-processor",
                "l0-hinge",
                "--post-processor l0-hinge: unknown post-processor \"l0-hinge\"; expected sigmoid, log-sigmoid, noop, \
                 lP-hinge or log-lP-hinge with P from 1 to 9",
            ),
        ] {
            let made = TABLE.given([(name, value)]).and_then(|choices| params(&choices));
            assert_eq!(made.unwrap_err().to_string(), expected);
        }
    }
}
