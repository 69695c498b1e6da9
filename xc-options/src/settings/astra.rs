//! The settings of ASTRA: which labels a step scores.

use super::candidates::{ROWS, SHARED};
use super::network::params_error;
use super::{At, Choices, Setting, SettingError, SettingPlace, Slot, Table, USUAL, Values, field, refuse_idle};
use crate::tune::Scale;
use Values::{F32, F64, Forms, Names, Size};
use xc_buffer::dtype::DType;
use xc_model::classifier::{CandidateHeadParams, ClassifierParamsError, HeadParams};
use xc_model::message::{chain, name_of};
use xc_nn::sampler::{SamplerParamsError, Weighting};
use xc_train::astra::{AstraParams, Retrieval, Strategy};
use xc_train::network::NetworkParams;

const HEADING: &str = "Options of negatives";

const fn row(name: &'static str, at: At<AstraParams>, values: Values, unit: &'static str) -> Setting {
    Setting::new(name, values, unit).at(SettingPlace::Astra(at)).heading(HEADING)
}

/// Strategies that choose labels.
const CHOOSING: [&str; 4] = ["weights", "label-text", "random", "in-batch"];
/// Those with hard labels.
const HARD: [&str; 2] = ["weights", "label-text"];

/// When an index is repaired unless a number of steps says it.
pub const REPAIRED: &str = "when the steps have doubled and once an epoch, if enough labels have changed";

const WEIGHTING: At<AstraParams> = At::Form {
    name: "weighting",
    get: |of| match of.weighting {
        // Of no label.
        _ if of.uniform == Some(0) => None,
        Weighting::Inverse { cap: Some(_) } => Some("capped".into()),
        Weighting::Inverse { cap: None } => Some("unbiased".into()),
        _ => Some("none".into()),
    },
    put: |of, value| {
        of.weighting = match value.as_str() {
            Some("none") => Weighting::None,
            Some("unbiased") => Weighting::Inverse { cap: None },
            _ => Weighting::CAPPED,
        };
        Ok(())
    },
};

const WEIGHT_CAP: At<AstraParams> = At::Form {
    name: "weighting.cap",
    get: |of| match of.weighting {
        Weighting::Inverse { cap } => cap.map(|cap| cap.get()),
        _ => None,
    },
    put: |of, value| {
        if let Weighting::Inverse { cap } = &mut of.weighting {
            cap.put(value)?;
            *cap = cap.filter(|&cap| cap != 0.0);
        }
        Ok(())
    },
};

/// From 1 on, where parameters begin with 0.
const FROM_EPOCH: At<AstraParams> = At::Form {
    name: "hard_from_epoch",
    get: |of| Some((of.hard_from_epoch + 1).into()),
    put: |of, value| {
        let mut epoch: u32 = 0;
        epoch.put(value)?;
        of.hard_from_epoch = epoch.saturating_sub(1);
        Ok(())
    },
};

/// Nothing where numbers of steps follow from the training.
const EVERY: At<AstraParams> = At::Form {
    name: "hard.every",
    get: |of| Some(of.hard.every).filter(|&steps| steps > 0).map(|steps| steps.into()),
    put: |of, value| of.hard.every.put(value),
};

/// Places are those of [`AstraParams`], and of the head.
pub const TABLE: Table = Table {
    rows: &[
        row("sampler", field!(strategy), Names(&["weights", "label-text", "random", "in-batch", "all"]), "SAMPLER")
            .help(
                "Labels that a step scores in addition to the true ones: those whose weights score highest and \
             uniform ones (weights), those whose texts have similar encodings and uniform ones (label-text), \
             uniform ones alone (random), true labels of the batch (in-batch), or all",
            ),
        row("retrieval", field!(retrieval), Names(&["in-step", "exact", "schedule"]), "HOW")
            .help(
                "How the labels that score highest are found: in each step, by an index that follows the weights \
                 (in-step) or by comparing all labels (exact); or for all instances every few epochs, in \
                 parallel with training (schedule, algorithm 1 of the paper)",
            )
            .belongs_to("sampler", &HARD),
        row("retrieval.every", field!(every_epochs), Size, "EPOCHS")
            .rare()
            .help("Epochs between retrievals (--retrieval schedule)")
            .belongs_to("retrieval", &["schedule"]),
        row("negatives.shared", field!(lists), Forms(&SHARED), "BOOL")
            .help("One list of negatives per batch, or, if false, one per instance as in the paper")
            .belongs_to("sampler", &CHOOSING),
        row("negatives.hard", field!(hard.per_instance), Size, "N")
            .help("Hard labels per instance")
            .belongs_to("sampler", &HARD)
            .searched(
                &["5", "10", "20", "40"],
                1,
                Scale::Ordered,
                "a step corrects more of the labels that are confused",
            ),
        row("negatives.uniform", field!(uniform), Size, "N")
            .of_data()
            .help("Uniform labels per list")
            .belongs_to("sampler", &CHOOSING)
            .searched(&[USUAL, "500", "2000", "8000"], 0, Scale::Named, "they stand for all other labels"),
        row("weighting", WEIGHTING, Names(&["capped", "unbiased", "none"]), "WHAT")
            .follows("sampler")
            .rare()
            .help(
                "Weight of a uniform label: the number of labels that it stands for, at most --weight-cap \
                 (capped), or without a limit (unbiased, lemma 4.1 of the paper), or 1 (none)",
            )
            .belongs_to("sampler", &CHOOSING),
        row("weight-cap", WEIGHT_CAP, F32, "X")
            .follows("weighting")
            .rare()
            .help("Largest weight (--weighting capped); 0: no limit")
            .belongs_to("weighting", &["capped"]),
        row("hard-from-epoch", FROM_EPOCH, Size, "EPOCH")
            .follows("retrieval")
            .rare()
            .help("First epoch with hard labels, from 1; earlier epochs have uniform labels in their place")
            .belongs_to("sampler", &HARD),
        row("index.every", EVERY, Size, "STEPS")
            .none(REPAIRED)
            .help("Steps between repairs of the index")
            .belongs_to("retrieval", &["in-step"]),
        row("index.exact-below", field!(hard.exact_below), Size, "LABELS")
            .rare()
            .help("Up to this many labels, compare all instead of searching")
            .belongs_to("retrieval", &["in-step"]),
        row("index.recall", field!(hard.recall), F64, "SHARE")
            .rare()
            .help("Share of the hardest labels that a search should find")
            .belongs_to("retrieval", &["in-step", "schedule"]),
        Setting::new("head.precision", Forms(&[("f32", "\"F32\""), ("bf16", "\"BF16\"")]), "TYPE")
            .at(SettingPlace::Network(ROWS))
            .heading(HEADING)
            .rare()
            .help("Type of the rows of label weights, in training and in the model"),
    ],
    starts: &[],
};

/// Gives a network over so many features and labels (0: not known yet) this head.
///
/// # Errors
/// One that is impossible, or a choice that changes nothing, by the name of the setting.
pub fn add(
    mut network: NetworkParams,
    n_features: usize,
    n_labels: usize,
    choices: &Choices,
) -> Result<NetworkParams, SettingError> {
    let negatives = params(n_labels, choices)?.negatives(n_labels);
    network.classifier.head = HeadParams::Candidates(CandidateHeadParams { rows: DType::F32 });
    network.classifier.learning.negatives = negatives;
    let made = TABLE.place(network, choices)?;
    made.classifier.check(n_features, n_labels).map_err(|e| error(&e))?;
    Ok(made)
}

/// What was chosen, where there are `n_labels` (0: not known yet); what was not follows from the rest and the labels.
///
/// # Errors
/// A choice that changes nothing, or a number out of range, by the name of its setting.
pub fn params(n_labels: usize, choices: &Choices) -> Result<AstraParams, SettingError> {
    let refused = |option: &str, why: &str| Err(SettingError::of(option, why));
    let is_given = |name: &str| choices.get(name).is_some();
    let is_zero = |name: &str| choices.value::<u64>(name) == Some(0);
    let of = TABLE.fill(AstraParams::default(), choices)?;
    check_idle(&of, choices)?;
    if of.retrieval == Retrieval::Schedule && is_given("hard-from-epoch") && of.hard_from_epoch < 2 {
        return refused(
            "hard-from-epoch",
            "a schedule keeps vectors in one epoch and asks in the next: 3 is the first",
        );
    }
    let all = ["negatives.hard", "hard-from-epoch", "retrieval.every", "index.every"];
    let random = (of.strategy == Strategy::Random).then_some("negatives.uniform");
    if let Some(option) = all.into_iter().chain(random).find(|name| is_zero(name)) {
        return refused(option, "0, expected at least 1");
    }
    let too_many = |option: &str, got: usize| {
        let what = format_args!("{got} of {n_labels} labels; fewer are expected, or --sampler all");
        Err(SettingError::of(option, what))
    };
    match of.uniform {
        _ if n_labels == 0 => Ok(of),
        _ if is_given("negatives.hard") && of.hard.per_instance >= n_labels => {
            too_many("negatives.hard", of.hard.per_instance)
        }
        Some(uniform) if uniform >= n_labels => too_many("negatives.uniform", uniform),
        _ => Ok(of),
    }
}

/// Parameters as they are shown where there are `n_labels`.
pub fn shown(of: &AstraParams, n_labels: usize) -> AstraParams {
    let mut shown = *of;
    shown.uniform = Some(of.n_uniform(n_labels).min(n_labels));
    shown.hard.per_instance = of.hard.per_instance.min(n_labels);
    shown.hard_from_epoch = of.negatives(n_labels).from_epoch;
    shown
}

/// Refuses a setting that was chosen and changes nothing, with what it goes with.
fn check_idle(of: &AstraParams, choices: &Choices) -> Result<(), SettingError> {
    let has_uniform = match of.strategy {
        Strategy::All => false,
        Strategy::InBatch => of.uniform.is_some_and(|n| n > 0),
        _ => of.uniform != Some(0),
    };
    let has_none = of.strategy != Strategy::All && !has_uniform;
    let uniform = "a number of --negatives.uniform labels";
    let is_given = |name: &str| choices.get(name).is_some();
    refuse_idle(&[
        ("weighting", has_none && is_given("weighting"), uniform),
        ("weight-cap", has_none && is_given("weight-cap"), uniform),
        ("retrieval", of.retrieval == Retrieval::Schedule && of.strategy == Strategy::LabelText, "--sampler weights"),
    ])?;
    let has_hard = matches!(of.strategy, Strategy::Weights | Strategy::LabelText);
    // The usual one is no choice.
    let mut asked = choices.clone();
    if of.retrieval == Retrieval::default() {
        asked.remove("retrieval");
    }
    let weighting = choices.value("weighting").unwrap_or_else(|| "capped".to_owned());
    TABLE.refuse_idle(&asked, |other| match other.name {
        "weighting" => has_uniform.then(|| weighting.clone()),
        "retrieval" => has_hard.then(|| name_of(&of.retrieval)),
        _ => other.shown_in(of),
    })
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
