//! The settings of ASTRA: which labels a step scores.

use super::candidates::SHARED;
use super::network::params_error;
use super::{Choices, Setting, SettingError, Table, USUAL, Values, refuse_idle};
use crate::astra::{AstraParams, Retrieval, Strategy};
use crate::classifier::{CandidateHeadParams, ClassifierParams, ClassifierParamsError, HeadParams};
use crate::message::chain;
use crate::tune::Scale;
use Values::{F32, F64, Forms, Names, Size};
use serde::{Deserialize, Serialize};
use xc_buffer::dtype::DType;
use xc_nn::sampler::{AnnParams, Lists, SamplerParamsError, Weighting};

const fn row(name: &'static str, field: &'static str, values: Values, unit: &'static str) -> Setting {
    Setting::new(name, field, values, unit).heading("Options of negatives")
}

/// Strategies that choose labels.
const CHOOSING: [&str; 4] = ["weights", "label-text", "random", "in-batch"];
/// Those with hard labels.
const HARD: [&str; 2] = ["weights", "label-text"];

/// When an index is repaired unless a number of steps says it.
pub const REPAIRED: &str = "when the steps have doubled and once an epoch, if enough labels have changed";

/// Fields are those of [`AstraSettings`].
pub const TABLE: Table = Table {
    rows: &[
        row("sampler", "negatives", Names(&["weights", "label-text", "random", "in-batch", "all"]), "SAMPLER").help(
            "Labels that a step scores in addition to the true ones: those whose weights score highest and \
             uniform ones (weights), those whose texts have similar encodings and uniform ones (label-text), \
             uniform ones alone (random), true labels of the batch (in-batch), or all",
        ),
        row("retrieval", "retrieval", Names(&["in-step", "exact", "schedule"]), "HOW")
            .help(
                "How the labels that score highest are found: in each step, by an index that follows the weights \
                 (in-step) or by comparing all labels (exact); or for all instances every few epochs, in \
                 parallel with training (schedule, algorithm 1 of the paper)",
            )
            .belongs_to("sampler", &HARD),
        row("retrieval.every", "every_epochs", Size, "EPOCHS")
            .help("Epochs between retrievals (--retrieval schedule) [default: 5]")
            .belongs_to("retrieval", &["schedule"]),
        row("negatives.shared", "lists", Forms(&SHARED), "BOOL")
            .help("One list of negatives per batch, or, if false, one per instance as in the paper [default: true]")
            .belongs_to("sampler", &CHOOSING),
        row("negatives.hard", "hard", Size, "N")
            .help("Hard labels per instance [default: 10]")
            .belongs_to("sampler", &HARD)
            .searched(
                &["5", "10", "20", "40"],
                1,
                Scale::Ordered,
                "a step corrects more of the labels that are confused",
            ),
        row("negatives.uniform", "uniform", Size, "N")
            .of_data()
            .help(
                "Uniform labels per list [default: 500 for up to 20,000 labels, rising to 2,000 for 70,000; 0 \
                 with --sampler in-batch]",
            )
            .belongs_to("sampler", &CHOOSING)
            .searched(&[USUAL, "500", "2000", "8000"], 0, Scale::Named, "they stand for all other labels"),
        row("weighting", "weighting", Names(&["capped", "unbiased", "none"]), "WHAT")
            .follows("sampler")
            .help(
                "Weight of a uniform label: the number of labels that it stands for, at most --weight-cap \
                 (capped), or without a limit (unbiased, lemma 4.1 of the paper), or 1 (none) [default: capped]",
            )
            .belongs_to("sampler", &CHOOSING),
        row("weight-cap", "weight_cap", F32, "X")
            .follows("weighting")
            .help("Largest weight (--weighting capped); 0: no limit [default: 4]")
            .belongs_to("weighting", &["capped"]),
        row("hard-from-epoch", "hard_from_epoch", Size, "EPOCH")
            .follows("retrieval")
            .help(
                "First epoch with hard labels, from 1; earlier epochs have uniform labels in their place \
                 [default: 1; 3 with --retrieval schedule, which needs two epochs]",
            )
            .belongs_to("sampler", &HARD),
        row("index.every", "every", Size, "STEPS")
            .none(REPAIRED)
            .help(
                "Steps between repairs of the index [default: whenever the number of steps has doubled, and once \
                 per epoch, but only after the steps since the last repair have changed four times as many \
                 labels as there are]",
            )
            .belongs_to("retrieval", &["in-step"]),
        row("index.exact-below", "exact_below", Size, "LABELS")
            .help("Up to this many labels, compare all instead of searching [default: 5000]")
            .belongs_to("retrieval", &["in-step"]),
        row("index.recall", "recall", F64, "SHARE")
            .help("Share of the hardest labels that a search should find [default: 0.9]")
            .belongs_to("retrieval", &["in-step", "schedule"]),
        row("head.precision", "rows", Forms(&[("f32", "\"F32\""), ("bf16", "\"BF16\"")]), "TYPE")
            .help("Type of the rows of label weights, in training and in the model"),
    ],
    starts: &[],
};

/// What was chosen; what was not follows from the rest and the labels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AstraSettings {
    /// Which labels.
    pub negatives: Strategy,
    /// How hard ones are found.
    pub retrieval: Retrieval,
    /// Epochs between retrievals.
    pub every_epochs: Option<u32>,
    /// For whom.
    pub lists: Option<Lists>,
    /// Hard labels of an instance.
    pub hard: Option<usize>,
    /// Uniform labels of a list.
    pub uniform: Option<usize>,
    /// What a uniform label counts.
    pub weighting: Option<String>,
    /// Largest weight; 0: no limit.
    pub weight_cap: Option<f32>,
    /// First epoch with hard labels, from 1.
    pub hard_from_epoch: Option<u32>,
    /// Steps between repairs of the index.
    pub every: Option<u64>,
    /// Labels up to which all are compared.
    pub exact_below: Option<usize>,
    /// Share of the hardest labels to find.
    pub recall: Option<f64>,
    /// Type of the labels' rows.
    pub rows: DType,
}

impl Default for AstraSettings {
    /// Nothing chosen.
    fn default() -> Self {
        let AstraParams { strategy: negatives, retrieval, .. } = AstraParams::default();
        Self {
            negatives,
            retrieval,
            every_epochs: None,
            lists: None,
            hard: None,
            uniform: None,
            weighting: None,
            weight_cap: None,
            hard_from_epoch: None,
            every: None,
            exact_below: None,
            recall: None,
            rows: DType::F32,
        }
    }
}

impl AstraSettings {
    /// What was chosen.
    ///
    /// # Errors
    /// A value that is none.
    pub fn new(choices: &Choices) -> Result<Self, SettingError> {
        TABLE.put(&Self::default(), choices)
    }

    /// Everything that they came to where there are `n_labels`.
    pub fn of(params: &AstraParams, rows: DType, n_labels: usize) -> Self {
        let AstraParams { strategy, retrieval, lists, hard, every_epochs, weighting, .. } = *params;
        let uniform = params.n_uniform(n_labels).min(n_labels);
        let (weighting, weight_cap) = match weighting {
            Weighting::Inverse { cap } => (if cap.is_some() { "capped" } else { "unbiased" }, cap),
            _ => ("none", None),
        };
        Self {
            negatives: strategy,
            retrieval,
            every_epochs: Some(every_epochs),
            lists: Some(lists),
            hard: Some(hard.per_instance.min(n_labels)),
            uniform: Some(uniform),
            weighting: (uniform > 0).then(|| weighting.to_owned()),
            weight_cap,
            hard_from_epoch: Some(params.negatives(n_labels).from_epoch + 1),
            every: Some(hard.every).filter(|&steps| steps > 0),
            exact_below: Some(hard.exact_below),
            recall: Some(hard.recall),
            rows,
        }
    }

    /// Gives a classifier of so many features and labels (0: not known yet) this head.
    ///
    /// # Errors
    /// One that is impossible, or a choice that changes nothing, by the name of the setting.
    pub fn put(&self, n_features: usize, n_labels: usize, params: &mut ClassifierParams) -> Result<(), SettingError> {
        let negatives = self.params(n_labels)?.negatives(n_labels);
        params.head = HeadParams::Candidates(CandidateHeadParams { rows: self.rows });
        params.learning.negatives = negatives;
        params.check(n_features, n_labels).map_err(|e| error(&e))
    }

    /// What was asked for, where there are `n_labels` (0: not known yet).
    ///
    /// # Errors
    /// A choice that changes nothing, or a number out of range, by the name of its setting.
    pub fn params(&self, n_labels: usize) -> Result<AstraParams, SettingError> {
        let refused = |option: &str, why: &str| Err(SettingError::of(option, why));
        let of = AnnParams::default();
        let hard = AnnParams {
            per_instance: self.hard.unwrap_or(of.per_instance),
            every: self.every.unwrap_or(of.every),
            exact_below: self.exact_below.unwrap_or(of.exact_below),
            recall: self.recall.unwrap_or(of.recall),
            ..of
        };
        let weighting = match self.weighting.as_deref() {
            Some("none") => Weighting::None,
            Some("unbiased") => Weighting::Inverse { cap: None },
            _ => Weighting::Inverse { cap: Some(self.weight_cap.unwrap_or(4.0)).filter(|cap| *cap != 0.0) },
        };
        let params = AstraParams {
            strategy: self.negatives,
            retrieval: self.retrieval,
            lists: self.lists.unwrap_or_default(),
            hard,
            uniform: self.uniform,
            weighting,
            hard_from_epoch: self.hard_from_epoch.map_or(0, |epoch| epoch.saturating_sub(1)),
            every_epochs: self.every_epochs.unwrap_or(AstraParams::default().every_epochs),
        };
        self.refuse_idle()?;
        if self.retrieval == Retrieval::Schedule && self.hard_from_epoch.is_some_and(|epoch| epoch < 3) {
            return refused(
                "hard-from-epoch",
                "a schedule keeps vectors in one epoch and asks in the next: 3 is the first",
            );
        }
        for (option, is_zero) in [
            ("negatives.hard", self.hard == Some(0)),
            ("hard-from-epoch", self.hard_from_epoch == Some(0)),
            ("retrieval.every", self.every_epochs == Some(0)),
            ("index.every", self.every == Some(0)),
            ("negatives.uniform", self.uniform == Some(0) && self.negatives == Strategy::Random),
        ] {
            if is_zero {
                return refused(option, "0, expected at least 1");
            }
        }
        if n_labels > 0 {
            self.check_labels(n_labels)?;
        }
        Ok(params)
    }

    /// Refuses a setting that was chosen and changes nothing, with what it goes with.
    fn refuse_idle(&self) -> Result<(), SettingError> {
        let has_hard = matches!(self.negatives, Strategy::Weights | Strategy::LabelText);
        let has_uniform = match self.negatives {
            Strategy::All => false,
            Strategy::InBatch => self.uniform.is_some_and(|n| n > 0),
            _ => self.uniform != Some(0),
        };
        let has_none = self.negatives != Strategy::All && !has_uniform;
        let uniform = "a number of --negatives.uniform labels";
        refuse_idle(&[
            ("weighting", has_none && self.weighting.is_some(), uniform),
            ("weight-cap", has_none && self.weight_cap.is_some(), uniform),
            (
                "retrieval",
                self.retrieval == Retrieval::Schedule && self.negatives == Strategy::LabelText,
                "--sampler weights",
            ),
        ])?;
        let retrieval = match self.retrieval {
            Retrieval::InStep => "in-step",
            Retrieval::Exact => "exact",
            Retrieval::Schedule => "schedule",
        };
        let weighting = self.weighting.as_deref().unwrap_or("capped");
        let made = [("weighting", has_uniform.then_some(weighting)), ("retrieval", has_hard.then_some(retrieval))];
        TABLE.refuse_idle(self, &made)
    }

    /// Refuses more negatives than there are labels.
    fn check_labels(&self, n_labels: usize) -> Result<(), SettingError> {
        let refused = |option: &str, got: usize| {
            let what = format_args!("{got} of {n_labels} labels; fewer are expected, or --sampler all");
            Err(SettingError::of(option, what))
        };
        match (self.hard, self.uniform) {
            (Some(hard), _) if hard >= n_labels => refused("negatives.hard", hard),
            (_, Some(uniform)) if uniform >= n_labels => refused("negatives.uniform", uniform),
            _ => Ok(()),
        }
    }
}

/// What is impossible, by the option that says it.
fn error(error: &ClassifierParamsError) -> SettingError {
    use SamplerParamsError as E;
    let ClassifierParamsError::Sampler(cause) = error else { return params_error(error) };
    let option = match cause {
        E::Number { name: "cap", .. } => "weight-cap",
        E::Number { name: "recall", .. } => "index.recall",
        E::Number { name: "per_list", .. } => "negatives.uniform",
        E::Number { name: "first_epoch", .. } => "hard-from-epoch",
        E::LabelTexts => "sampler",
        _ => "negatives.hard",
    };
    SettingError::of(option, chain(error))
}
