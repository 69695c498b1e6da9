//! The settings of an index over vectors, or over the labels of a model.

use super::{At, Choices, Setting, SettingError, SettingPlace, Table, Values, field};
use Values::{F32, F64, Size};
use xc_ann::BuildParams;

const fn row(name: &'static str, at: At<BuildParams>, values: Values, unit: &'static str) -> Setting {
    Setting::new(name, values, unit).at(SettingPlace::Index(at))
}

/// Places are those of [`BuildParams`].
pub const TABLE: Table = Table {
    rows: &[
        row("degree", field!(max_degree), Size, "R").help("Maximum number of edges of a vector (elsewhere M)"),
        row("keep", field!(build_width), Size, "N")
            .help("Construction beam (elsewhere efConstruction): a wider one gives better edges and takes longer"),
        row("passes", field!(passes), Size, "N").help("Build passes: a later pass finds better edges"),
        row("factor", field!(alpha), F32, "X")
            .usual(
                "1; for inner products the one of 0.79, 0.9 and 1 that is best on small graphs over some of the vectors",
            )
            .help("Pruning factor: more edges above 1 for distances, below 1 for inner products"),
        row("cells", field!(cells), Size, "N")
            .usual("twice the square root of the number of vectors, kept if they are faster than the graph")
            .help("Cells of vectors near each other, in addition to the graph; 0: none"),
        row("top-k", field!(top_k), Size, "K").help("Answers per query that the width is fitted for"),
        row("target-recall", field!(target_recall), F64, "R")
            .usual("0.95; for a model 0.99, or --max-loss instead if the instances have labels")
            .excludes(&["max-loss"])
            .help("Share of the best to find. For a model, also the share of queries whose best label must be found"),
        row("min-recall", field!(min_recall), F64, "R")
            .help("Refuse an index that finds a smaller share of the best than this"),
    ],
    starts: &[],
};

/// The usual parameters with what was chosen.
///
/// # Errors
/// A number out of range, by the name of its setting.
pub fn params(usual: BuildParams, choices: &Choices) -> Result<BuildParams, SettingError> {
    let made = TABLE.place(usual, choices)?;
    if made.top_k == 0 {
        return Err(SettingError::of_value("top-k", 0, "at least 1 is expected"));
    }
    let shares = [("min-recall", made.min_recall), ("target-recall", Some(made.target_recall))];
    match shares.into_iter().find_map(|(name, share)| Some((name, share.filter(|v| !(0.0..=1.0).contains(v))?))) {
        Some((name, share)) => Err(SettingError::of_value(name, share, "a share from 0 to 1 is expected")),
        None => Ok(made),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xc_ann::Metric;

    fn chosen(name: &str, value: &str) -> Result<BuildParams, SettingError> {
        let mut choices = Choices::default();
        choices.set(TABLE.row(name).unwrap(), value)?;
        params(BuildParams::new(Metric::L2), &choices)
    }

    #[test]
    fn every_row_leads_to_a_place_of_its_own_and_changes_it() {
        let usual = BuildParams::new(Metric::L2);
        assert_eq!(params(usual, &Choices::default()).unwrap(), usual);
        for row in TABLE.rows {
            let value = if matches!(row.values, Size) { "7" } else { "0.625" };
            let made = chosen(row.name, value).unwrap();
            assert_eq!(row.shown_in(&made).as_deref(), Some(value), "{}", row.name);
            let changed = TABLE.rows.iter().filter(|other| other.shown_in(&made) != other.shown_in(&usual));
            assert_eq!(changed.map(|other| other.name).collect::<Vec<_>>(), [row.name]);
        }
    }

    #[test]
    fn what_cannot_be_is_said_by_the_name_of_the_setting() {
        for (name, value, expected) in [
            ("top-k", "0", "--top-k 0: at least 1 is expected"),
            ("min-recall", "2", "--min-recall 2: a share from 0 to 1 is expected"),
            ("target-recall", "-1", "--target-recall -1: a share from 0 to 1 is expected"),
            ("degree", "x", "--degree x: expected a number from 0 on, without a fraction"),
        ] {
            assert_eq!(chosen(name, value).unwrap_err().to_string(), expected);
        }
    }
}
