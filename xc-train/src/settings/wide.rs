//! The settings of the wide term: rankers over sparse features beside a network, over those of all words where a
//! transformer reads the first tokens.

use super::{Choices, Setting, SettingError, Table, Values};
use crate::classifier::{InputKind, WideLearning};
use crate::tune::Scale;
use Values::{F32, Forms, Names, Size};
use serde::{Deserialize, Serialize};
use xc_buffer::dtype::DType;

const fn row(name: &'static str, field: &'static str, values: Values, unit: &'static str) -> Setting {
    Setting::new(name, field, values, unit).heading("Wide term options")
}

/// A setting of the term, where there is one.
const fn of_term(name: &'static str, field: &'static str, values: Values, unit: &'static str) -> Setting {
    row(name, field, values, unit).rare().belongs_to("wide", &["on"]).of_preset()
}

/// Fields are those of [`WideSettings`].
pub const TABLE: Table = Table {
    rows: &[
        Setting::new("wide", "wide", Names(&["on", "off"]), "on|off")
            .heading("Network options")
            .of_data()
            .help(
                "Rank the best labels again by sparse rankers, one a label: they keep rare words, which labels of few \
                 instances need (off where features are fewer than two for a value of an embedding, and over \
                 tokens, where on reads all words)",
            )
            .searched(&[super::USUAL, "on", "off"], 0, Scale::Named, "labels of few instances need rare words"),
        of_term("wide.weight", "weight", F32, "X")
            .help("Weight of the network beside them: of the logarithm of its probability, of a squared hinge of its margin")
            .none("the best on instances that are held out, else 0.3; of a squared hinge 1"),
        of_term("wide.labels", "labels", Size, "N").help("Labels of a query that are ranked again"),
        of_term("wide.negatives", "negatives", Size, "N").help(
            "False labels of the largest logits, of those that a step scores, that are kept of each instance in each epoch \
             for the rankers to learn from",
        ),
        of_term("wide.cost", "cost", F32, "C")
            .help("Weight of a ranker's errors against its regularisation"),
        of_term("wide.prune-below", "threshold", F32, "X").help("Drop weights of rankers below this magnitude"),
        of_term("wide.precision", "precision", Forms(&TYPES), "TYPE").help("Type of their weights in the model"),
    ],
    starts: &[],
};

/// Types of weights.
const TYPES: [(&str, &str); 3] = [("f32", "\"F32\""), ("bf16", "\"BF16\""), ("f16", "\"F16\"")];

/// Whether there is a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Presence {
    /// There is.
    On,
    /// There is none.
    Off,
}

/// What the settings come to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct WideSettings {
    /// Whether there is a term.
    pub wide: Presence,
    /// Weight of the network; nothing: fitted where instances are held out.
    pub weight: Option<f32>,
    /// Labels that are ranked again.
    pub labels: usize,
    /// False labels that are kept of an instance in an epoch.
    pub negatives: usize,
    /// Weight of errors.
    pub cost: f32,
    /// Weights below it are dropped.
    pub threshold: f32,
    /// Type of the weights.
    pub precision: DType,
}

impl WideSettings {
    /// Those of a term, or of none.
    pub fn of(learning: Option<WideLearning>) -> Self {
        let wide = if learning.is_some() { Presence::On } else { Presence::Off };
        let WideLearning { negatives, cost, threshold, weight, labels, precision } = learning.unwrap_or_default();
        Self { wide, weight, labels, negatives, cost, threshold, precision }
    }

    /// How the term is learned, where there is one.
    pub fn learning(&self) -> Option<WideLearning> {
        let Self { wide, weight, labels, negatives, cost, threshold, precision } = *self;
        (wide == Presence::On).then_some(WideLearning { negatives, cost, threshold, weight, labels, precision })
    }

    /// What a preset usually has for instances of a kind: vectors have no term, and tokens have one only where it is asked
    /// for.
    pub fn usual(of_preset: Option<WideLearning>, input: InputKind) -> Self {
        let mut usual = Self::of(of_preset.filter(|_| input != InputKind::Dense));
        if input == InputKind::Tokens {
            usual.wide = Presence::Off;
        }
        usual
    }

    /// What a preset [usually](Self::usual) has, with what was chosen.
    ///
    /// # Errors
    /// A choice that changes nothing, by the name of its setting.
    pub fn new(usual: Option<WideLearning>, input: InputKind, choices: &Choices) -> Result<Self, SettingError> {
        let made = TABLE.apply(&Self::usual(usual, input), choices)?;
        if made.wide == Presence::On && input == InputKind::Dense {
            let what = "instances are vectors; a term of features is expected to have features";
            return Err(SettingError::of_value("wide", "on", what));
        }
        Ok(made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(
        usual: Option<WideLearning>,
        input: InputKind,
        options: &[(&str, &str)],
    ) -> Result<Option<WideLearning>, String> {
        let mut choices = Choices::default();
        options.iter().for_each(|(name, value)| choices.set(TABLE.row(name).unwrap(), value).unwrap());
        WideSettings::new(usual, input, &choices).map(|made| made.learning()).map_err(|e| e.to_string())
    }

    #[test]
    fn a_term_is_chosen_or_usual_and_only_over_sparse_features() {
        let usual = WideLearning::default();
        let sparse = |usual, options| chosen(usual, InputKind::Sparse, options);
        assert_eq!((sparse(None, &[]), sparse(Some(usual), &[])), (Ok(None), Ok(Some(usual))));
        assert_eq!(sparse(Some(usual), &[("wide", "off")]), Ok(None));
        let made = sparse(None, &[("wide.cost", "0.5"), ("wide", "on"), ("wide.precision", "bf16")]).unwrap();
        assert_eq!(made, Some(WideLearning { cost: 0.5, precision: DType::Bf16, ..usual }));
        let idle = sparse(None, &[("wide.labels", "3")]).unwrap_err();
        assert_eq!(idle, "--wide.labels: changes nothing here; --wide on is expected with it");
        assert_eq!(chosen(Some(usual), InputKind::Dense, &[]), Ok(None));
        // Beside tokens there is one where it was asked for, with the other values of the preset.
        let more = WideLearning { negatives: 40, ..usual };
        assert_eq!(chosen(Some(more), InputKind::Tokens, &[]), Ok(None));
        assert_eq!(chosen(Some(more), InputKind::Tokens, &[("wide", "on")]), Ok(Some(more)));
        assert!(chosen(None, InputKind::Dense, &[("wide", "on")]).unwrap_err().starts_with("--wide on: "));
    }
}
