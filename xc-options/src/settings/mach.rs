//! The settings of MACH models: repetitions, buckets, hash functions.

use super::{At, Choices, Setting, SettingError, SettingPlace, Table, USUAL, Values, field};
use crate::tune::Scale;
use Values::{Names, Size, Text};
use std::ops::Range;
use xc_model::mach::MachLayout;

const fn row(name: &'static str, at: At<MachLayout>, values: Values, unit: &'static str) -> Setting {
    Setting::new(name, values, unit).at(SettingPlace::Mach(at)).heading("MACH options")
}

/// The number of the repetitions, from 0 on.
const REPETITIONS: At<MachLayout> = At::Form {
    name: "numbers.len",
    get: |of| Some(of.numbers.len().into()),
    put: |of, value| {
        of.numbers = 0..serde_json::from_value(value.clone()).map_err(|e| e.to_string())?;
        Ok(())
    },
};

const RANGE: At<MachLayout> = At::Form {
    name: "numbers",
    get: |of| Some(format!("{}..{}", of.numbers.start, of.numbers.end).into()),
    put: |of, value| {
        of.numbers = range(value.as_str().unwrap_or_default())?;
        Ok(())
    },
};

/// Places are those of [`MachLayout`].
pub const TABLE: Table = Table {
    rows: &[
        row("repetitions", REPETITIONS, Size, "R").of_data().excludes(&["repetitions-range"]).help(
            "Repetitions: more distinguish labels better, at proportional cost",
        )
        .searched(
            &[USUAL, "4", "16", "32"],
            0,
            Scale::Named,
            "more tell labels apart better, at a cost that grows with them",
        ),
        row("repetitions-range", RANGE, Text(check_range), "FROM..TO").of_training_alone()
            .follows("repetitions")
            .help("Train only the repetitions with these numbers, excluding TO, to be merged with others"),
        row("buckets", field!(n_buckets), Size, "B").of_data().help(
            "Buckets of a repetition, fewer than labels",
        )
        .searched(
            &[USUAL, "250", "500", "1000", "2000", "4000"],
            0,
            Scale::Named,
            "more make each repetition better",
        ),
        row("hash.family", field!(family), Names(&["prime", "mersenne61", "multiply-shift", "tabulation"]), "FAMILY").of_data().help(
            "Family of the hash functions; prime needs no memory for labels, but has room for few further labels (xc \
             merge --labels)",
        ),
        row("decoder", field!(decoder), Names(&["mean", "min", "median"]), "NAME").of_data().help(
            "How bucket scores are combined into a label's score, unless a query asks for another decoder. The median \
             was best, or within 0.1 points of P@1, on every data set measured",
        )
        .searched(
            &["median", "mean"],
            0,
            Scale::Named,
            "many buckets hold few frequent labels that would spoil a mean",
        ),
    ],
    starts: &[],
};

fn check_range(text: &str) -> Result<(), String> {
    range(text).map(|_| ())
}

fn range(text: &str) -> Result<Range<u32>, String> {
    let wrong = || format!("got {text:?}, expected FROM..TO such as 4..8, with at least one repetition");
    let (from, to) = text.split_once("..").ok_or_else(wrong)?;
    let range = from.trim().parse().map_err(|_| wrong())?..to.trim().parse().map_err(|_| wrong())?;
    if range.is_empty() { Err(wrong()) } else { Ok(range) }
}

/// The layout of so many labels (0: not known yet), as it was chosen; of what was not, it is the usual one.
///
/// # Errors
/// No repetition at all.
pub fn layout(n_labels: usize, choices: &Choices) -> Result<MachLayout, SettingError> {
    let mut usual = MachLayout::usual(n_labels);
    if let Some(n_buckets) = choices.value("buckets") {
        usual.hash_into(n_buckets);
    }
    let made = TABLE.place(usual, choices)?;
    if made.numbers.is_empty() {
        return Err(SettingError::of_value("repetitions", 0, "at least 1 is expected"));
    }
    Ok(made)
}

#[cfg(test)]
mod tests {
    use super::*;
    use xc_mach::Decoder;

    fn chosen(n_labels: usize, options: &[(&str, &str)]) -> Result<MachLayout, String> {
        let mut choices = Choices::default();
        options.iter().for_each(|(name, value)| choices.set(TABLE.row(name).unwrap(), value).unwrap());
        layout(n_labels, &choices).map_err(|e| e.to_string())
    }

    #[test]
    fn ranges_have_at_least_one_number() {
        assert_eq!(range("4..8"), Ok(4..8));
        for text in ["4", "4..4", "8..4", "a..b", "-1..3", "..3"] {
            assert!(range(text).unwrap_err().contains("expected FROM..TO"), "{text}");
        }
    }

    #[test]
    fn the_decoder_follows_the_buckets_unless_it_is_chosen() {
        let decoder = |n_labels, options: &[(&str, &str)]| chosen(n_labels, options).unwrap().decoder;
        assert_eq!((decoder(23, &[]), decoder(24, &[])), (Decoder::Min, Decoder::Median));
        assert_eq!(decoder(9000, &[("buckets", "11")]), Decoder::Min);
        assert_eq!(decoder(9000, &[("buckets", "12")]), Decoder::Median);
        assert_eq!(decoder(9000, &[("decoder", "median"), ("buckets", "4")]), Decoder::Median);
    }

    #[test]
    fn every_row_leads_to_a_place_of_its_own() {
        for (name, value) in [
            ("repetitions", "3"),
            ("repetitions-range", "2..5"),
            ("buckets", "7"),
            ("hash.family", "prime"),
            ("decoder", "mean"),
        ] {
            let (row, usual) = (TABLE.row(name).unwrap(), MachLayout::usual(700_000));
            let made = chosen(700_000, &[(name, value)]).unwrap();
            assert_eq!(row.shown_in(&made).as_deref(), Some(value));
            assert!(made != usual || row.shown_in(&usual).as_deref() == Some(value), "{name}");
        }
        assert_eq!(chosen(9000, &[("repetitions-range", "2..5")]).unwrap().numbers, 2..5);
        assert_eq!(chosen(9000, &[("repetitions", "0")]).unwrap_err(), "--repetitions 0: at least 1 is expected");
        assert!(chosen(9000, &[("buckets", "4294967296")]).unwrap_err().starts_with("--buckets 4294967296: "));
    }

    #[test]
    fn nothing_chosen_is_the_usual_model() {
        for n_labels in [0, 3, 23, 60, 30_000, 700_000] {
            assert_eq!(chosen(n_labels, &[]), Ok(MachLayout::usual(n_labels)));
        }
    }
}
