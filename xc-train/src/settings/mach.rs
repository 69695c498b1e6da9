//! The settings of MACH models: repetitions, buckets, hash functions.

use super::{Choices, Setting, SettingError, Table, USUAL, Values};
use crate::classifier::ClassifierParams;
use crate::mach::MachParams;
use crate::tune::Scale;
use Values::{Names, Size, Text};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use xc_hash::universal::UniversalFamily;
use xc_mach::{Decoder, UsualSize};

const fn row(name: &'static str, field: &'static str, values: Values, unit: &'static str) -> Setting {
    Setting::new(name, field, values, unit).heading("MACH options")
}

/// Fields are those of [`MachSettings`].
pub const TABLE: Table = Table {
    rows: &[
        row("repetitions", "repetitions", Size, "R").of_data().excludes(&["repetitions-range"]).help(
            "Repetitions: more distinguish labels better, at proportional cost [default: 8 for up to 160000 labels, rising \
             to 32 for 640000]",
        )
        .searched(
            &[USUAL, "4", "16", "32"],
            0,
            Scale::Named,
            "more tell labels apart better, at a cost that grows with them",
        ),
        row("repetitions-range", "repetitions_range", Text(check_range), "FROM..TO").of_training_alone()
            .follows("repetitions")
            .help("Train only the repetitions with these numbers, excluding TO, to be merged with others"),
        row("buckets", "buckets", Size, "B").of_data().help(
            "Buckets of a repetition, fewer than labels [default: such that all repetitions together have half as many \
             buckets as there are labels; from 128, or half of the labels, to 10000]",
        )
        .searched(
            &[USUAL, "250", "500", "1000", "2000", "4000"],
            0,
            Scale::Named,
            "more make each repetition better",
        ),
        row("hash.family", "family", Names(&["prime", "mersenne61", "multiply-shift", "tabulation"]), "FAMILY").of_data().help(
            "Family of the hash functions; prime needs no memory for labels, but has room for few further labels (xc \
             merge --labels) [default: multiply-shift; prime for more than a million labels]",
        ),
        row("decoder", "decoder", Names(&["mean", "min", "median"]), "NAME").of_data().help(
            "How bucket scores are combined into a label's score, unless a query asks for another decoder. The median \
             was best, or within 0.1 points of P@1, on every data set measured; with tens of millions of labels the mean \
             decodes ten times as fast [default: median; min below 12 buckets, where labels share half of theirs too often \
             for a median]",
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

/// What was chosen; what was not follows from the labels.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MachSettings {
    /// Number of repetitions.
    pub repetitions: Option<u32>,
    /// Those to train, `FROM..TO`.
    pub repetitions_range: Option<String>,
    /// Buckets of a repetition.
    pub buckets: Option<u32>,
    /// Family of the hash functions.
    pub family: Option<UniversalFamily>,
    /// How bucket scores are combined.
    pub decoder: Option<Decoder>,
}

fn check_range(text: &str) -> Result<(), String> {
    range(text).map(|_| ())
}

fn range(text: &str) -> Result<Range<u32>, String> {
    let wrong = || format!("got {text:?}, expected FROM..TO such as 4..8, with at least one repetition");
    let (from, to) = text.split_once("..").ok_or_else(wrong)?;
    let range = from.trim().parse().map_err(|_| wrong())?..to.trim().parse().map_err(|_| wrong())?;
    if range.is_empty() { Err(wrong()) } else { Ok(range) }
}

impl MachSettings {
    /// What was chosen.
    ///
    /// # Errors
    /// No repetition at all.
    pub fn new(choices: &Choices) -> Result<Self, SettingError> {
        let all: Self = TABLE.apply(&Self::default(), choices)?;
        match all.repetitions {
            Some(0) => Err(SettingError::of_value("repetitions", 0, "at least 1 is expected")),
            _ => Ok(all),
        }
    }

    /// Those of a model of which some repetitions, that follow one another, are trained.
    pub fn of(params: &MachParams, numbers: &[u32]) -> Self {
        let MachParams { n_buckets, family, decoder, .. } = *params;
        let range = numbers.first().zip(numbers.last()).map(|(first, last)| format!("{first}..{}", last + 1));
        Self {
            repetitions: Some(numbers.len() as u32),
            repetitions_range: range,
            buckets: Some(n_buckets),
            family: Some(family),
            decoder: Some(decoder),
        }
    }

    /// Numbers of the repetitions to train, for so many labels.
    pub fn numbers(&self, n_labels: usize) -> Vec<u32> {
        let repetitions = self.repetitions.unwrap_or(UsualSize::of(n_labels).n_repetitions);
        let range = self.repetitions_range.as_deref().and_then(|text| range(text).ok());
        range.unwrap_or(0..repetitions).collect()
    }

    /// Buckets of a repetition.
    pub fn buckets(&self, n_labels: usize) -> u32 {
        self.buckets.unwrap_or(UsualSize::of(n_labels).n_buckets)
    }

    /// The model over so many labels whose repetitions are such classifiers.
    pub fn params(&self, n_labels: usize, classifier: &ClassifierParams) -> MachParams {
        let (usual, n_buckets) = (MachParams::usual(n_labels, classifier.clone()), self.buckets(n_labels));
        MachParams {
            n_buckets,
            family: self.family.unwrap_or(usual.family),
            decoder: self.decoder.unwrap_or(Decoder::usual(n_buckets)),
            ..usual
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mach;

    #[test]
    fn ranges_have_at_least_one_number() {
        assert_eq!(range("4..8"), Ok(4..8));
        for text in ["4", "4..4", "8..4", "a..b", "-1..3", "..3"] {
            assert!(range(text).unwrap_err().contains("expected FROM..TO"), "{text}");
        }
    }

    #[test]
    fn the_decoder_follows_the_buckets_unless_it_is_chosen() {
        let classifier = mach::preset().params;
        let of = |buckets, decoder, n_labels| {
            let all = MachSettings { buckets, decoder, ..Default::default() };
            all.params(n_labels, &classifier).decoder
        };
        assert_eq!((of(None, None, 23), of(None, None, 24)), (Decoder::Min, Decoder::Median));
        assert_eq!((of(Some(11), None, 9000), of(Some(12), None, 9000)), (Decoder::Min, Decoder::Median));
        assert_eq!(of(Some(4), Some(Decoder::Median), 9000), Decoder::Median);
    }

    #[test]
    fn nothing_chosen_is_the_usual_model() {
        let (all, classifier) = (MachSettings::new(&Choices::default()).unwrap(), mach::preset().params);
        for n_labels in [3, 23, 60, 30_000, 700_000] {
            assert_eq!(all.params(n_labels, &classifier), MachParams::usual(n_labels, classifier.clone()));
            assert_eq!(all.numbers(n_labels).len(), UsualSize::of(n_labels).n_repetitions as usize);
        }
    }
}
