//! Which labels a step of ASTRA scores.

use super::explain::{Origin, Plan, Resolved};
use super::network::{Session, Shape, params_error};
use crate::error::{CliError, chain};
use crate::named::{name_of, named, number_type};
use xc_nn::Loss;
use xc_nn::sampler::{AnnParams, Lists, SamplerParamsError, Weighting};
use xc_sparse::dtype::DType;
use xc_train::astra::{AstraParams, Retrieval, Strategy};
use xc_train::classifier::{CandidateHeadParams, ClassifierParams, ClassifierParamsError, HeadParams};

/// Negatives of a step.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Options of negatives")]
pub(crate) struct AstraArgs {
    /// Labels that a step scores in addition to the true ones: those whose weights score highest and uniform ones
    /// (weights), those whose texts have similar encodings and uniform ones (label-text), uniform ones alone (random),
    /// true labels of the batch (in-batch), or all
    #[arg(long, value_name = "WHICH", value_parser = named::<Strategy, _>(["weights", "label-text", "random", "in-batch", "all"]), default_value = "weights")]
    negatives: Strategy,
    /// How the labels that score highest are found: in each step, by an index that follows the weights (in-step) or by
    /// comparing all labels (exact); or for all instances every few epochs, in parallel with training (schedule,
    /// algorithm 1 of the paper)
    #[arg(long, value_name = "HOW", value_parser = named::<Retrieval, _>(["in-step", "exact", "schedule"]), default_value = "in-step")]
    retrieval: Retrieval,
    /// Epochs between retrievals (--retrieval schedule) [default: 5]
    #[arg(long = "retrieval.every", value_name = "EPOCHS")]
    every_epochs: Option<u32>,
    /// One list of negatives per batch, or one per instance as in the paper [default: shared]
    #[arg(long, value_name = "WHOSE", value_parser = named::<Lists, _>(["shared", "own"]))]
    lists: Option<Lists>,
    /// Hard labels per instance [default: 10]
    #[arg(long, value_name = "N")]
    hard: Option<usize>,
    /// Uniform labels per list [default: 500 for up to 20,000 labels, rising to 2,000 for 70,000; 0 with --negatives
    /// in-batch]
    #[arg(long, value_name = "N")]
    uniform: Option<usize>,
    /// Weight of a uniform label: the number of labels that it stands for, at most --weight-cap (capped), or without a
    /// limit (unbiased, lemma 4.1 of the paper), or 1 (none) [default: capped]
    #[arg(long, value_name = "WHAT", value_parser = ["capped", "unbiased", "none"])]
    weighting: Option<String>,
    /// Largest weight (--weighting capped); 0: no limit [default: 4]
    #[arg(long, value_name = "X", allow_negative_numbers = true)]
    weight_cap: Option<f32>,
    /// First epoch with hard labels, from 1; earlier epochs have uniform labels in their place [default: 1; 3 with
    /// --retrieval schedule, which needs two epochs]
    #[arg(long, value_name = "EPOCH")]
    hard_from_epoch: Option<u32>,
    /// Steps between repairs of the index [default: whenever the number of steps has doubled, and once per epoch, but
    /// only after the steps since the last repair have changed four times as many labels as there are]
    #[arg(long = "index.every", value_name = "STEPS")]
    every: Option<u64>,
    /// Up to this many labels, compare all instead of searching [default: 5000]
    #[arg(long = "index.exact-below", value_name = "LABELS")]
    exact_below: Option<usize>,
    /// Share of the hardest labels that a search should find [default: 0.9]
    #[arg(long = "index.recall", value_name = "SHARE")]
    recall: Option<f64>,
    /// Type of the rows of label weights, in training and in the model
    #[arg(long = "head.precision", value_name = "TYPE", value_parser = number_type([DType::F32, DType::Bf16]), default_value = "f32")]
    rows: DType,
}

impl AstraArgs {
    /// Gives the classifier this head, and refuses one that is impossible for instances of a shape.
    pub(super) fn apply(&self, shape: &Shape, params: &mut ClassifierParams) -> Result<(), CliError> {
        let negatives = self.params(shape.n_labels)?.negatives(shape.n_labels);
        params.head = HeadParams::Candidates(CandidateHeadParams { rows: self.rows });
        params.learning.negatives = negatives;
        params.check(shape.n_features, shape.n_labels).map_err(|e| error(&e))
    }

    /// What was asked for, where there are `n_labels` (0: not known yet).
    fn params(&self, n_labels: usize) -> Result<AstraParams, CliError> {
        let refused = |option: &str, why: &str| Err(CliError::usage(format_args!("--{option}: {why}")));
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
        if self.negatives == Strategy::All && self.uniform.is_some() {
            return refused("uniform", "--negatives all scores every label");
        }
        if let Some((option, expected)) = self.idle() {
            return refused(option, &format!("{expected} is expected with it"));
        }
        if self.retrieval == Retrieval::Schedule && self.hard_from_epoch.is_some_and(|epoch| epoch < 3) {
            return refused(
                "hard-from-epoch",
                "a schedule keeps vectors in one epoch and asks in the next: 3 is the first",
            );
        }
        for (option, is_zero) in [
            ("hard", self.hard == Some(0)),
            ("hard-from-epoch", self.hard_from_epoch == Some(0)),
            ("retrieval.every", self.every_epochs == Some(0)),
            ("index.every", self.every == Some(0)),
            ("uniform", self.uniform == Some(0) && self.negatives == Strategy::Random),
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

    /// An option that was given and changes nothing, and what it goes with.
    fn idle(&self) -> Option<(&'static str, &'static str)> {
        let has_hard = matches!(self.negatives, Strategy::Weights | Strategy::LabelText);
        let follows = has_hard && self.retrieval == Retrieval::InStep;
        let has_index = has_hard && self.retrieval != Retrieval::Exact;
        let hard = "--negatives weights or label-text";
        let index = "--negatives weights or label-text, and an index (--retrieval in-step)";
        let is_all = self.negatives == Strategy::All;
        let has_uniform = match self.negatives {
            Strategy::All => false,
            Strategy::InBatch => self.uniform.is_some_and(|n| n > 0),
            _ => self.uniform != Some(0),
        };
        let caps = self.weighting.as_deref().is_none_or(|weighting| weighting == "capped");
        let given = [
            ("lists", "--negatives other than all", self.lists.is_some() && is_all),
            ("weighting", "a number of --uniform labels", self.weighting.is_some() && !has_uniform),
            ("weight-cap", "a number of --uniform labels", self.weight_cap.is_some() && !has_uniform),
            ("weight-cap", "--weighting capped", self.weight_cap.is_some() && !caps),
            ("hard", hard, self.hard.is_some() && !has_hard),
            ("hard-from-epoch", hard, self.hard_from_epoch.is_some() && !has_hard),
            ("retrieval", hard, self.retrieval != Retrieval::InStep && !has_hard),
            (
                "retrieval",
                "--negatives weights",
                self.retrieval == Retrieval::Schedule && self.negatives == Strategy::LabelText,
            ),
            (
                "retrieval.every",
                "--retrieval schedule",
                self.every_epochs.is_some() && self.retrieval != Retrieval::Schedule,
            ),
            ("index.every", index, self.every.is_some() && !follows),
            ("index.exact-below", index, self.exact_below.is_some() && !follows),
            ("index.recall", index, self.recall.is_some() && !has_index),
        ];
        given.into_iter().find(|(_, _, is_idle)| *is_idle).map(|(option, expected, _)| (option, expected))
    }

    /// Refuses labels that are compared by texts where there are none.
    pub(super) fn check_texts(&self, has_texts: bool) -> Result<(), CliError> {
        if self.negatives == Strategy::LabelText && !has_texts {
            return Err(CliError::usage(
                "--negatives label-text: texts of the labels are expected (--label-features FILE)",
            ));
        }
        Ok(())
    }

    /// Refuses more negatives than there are labels.
    fn check_labels(&self, n_labels: usize) -> Result<(), CliError> {
        let refused = |option: &str, got: usize| {
            Err(CliError::usage(format_args!(
                "--{option}: {got} of {n_labels} labels; fewer are expected, or --negatives all"
            )))
        };
        match (self.hard, self.uniform) {
            (Some(hard), _) if hard >= n_labels => refused("hard", hard),
            (_, Some(uniform)) if uniform >= n_labels => refused("uniform", uniform),
            _ => Ok(()),
        }
    }

    /// Says where all labels would do.
    pub(super) fn announce(&self, session: &Session<'_>) {
        let n_labels = session.shape.n_labels;
        if self.negatives != Strategy::All && n_labels < SOME_LABELS {
            session.context.note(format_args!(
                "{n_labels} labels: steps over all of them take little more time (--negatives all)"
            ));
        }
    }

    /// What training would do, and why.
    pub(super) fn explain(&self, session: &Session<'_>, plan: &mut Plan) {
        let n_labels = session.shape.n_labels;
        let mut out = Vec::new();
        let decay = match session.params.loss {
            Loss::Softmax => "one label is right",
            _ => "each label is right or not",
        };
        out.push(("loss", format!("{decay}; biases are initialised from the frequency of each label")));
        let of = self.params(n_labels).unwrap_or_default();
        let uniform = of.n_uniform(n_labels).min(n_labels);
        let hard_labels = of.hard.per_instance.min(n_labels);
        let hard = match (self.negatives, self.retrieval) {
            (Strategy::All, _) => "all labels: nothing is left out".to_owned(),
            (Strategy::Random, _) => format!("{uniform} uniform labels per list"),
            (Strategy::InBatch, _) => format!("true labels of the batch, {uniform} uniform ones"),
            (_, Retrieval::InStep) if of.hard.is_exact(n_labels) => format!(
                "{} hard labels per instance by comparing all (cheaper up to {} labels), {uniform} uniform ones per list",
                hard_labels, of.hard.exact_below
            ),
            (_, Retrieval::InStep) => format!(
                "{} hard labels per instance by an index of recall {}, repaired {}, {uniform} uniform ones per list",
                hard_labels,
                of.hard.recall,
                repairs(of.hard.every)
            ),
            (_, Retrieval::Exact) => {
                format!("{} hard labels per instance by comparing all, {uniform} uniform ones per list", hard_labels)
            }
            (_, Retrieval::Schedule) => format!(
                "{} hard labels per instance, found every {} epochs in parallel with training, {uniform} uniform ones per \
                 list",
                hard_labels, of.every_epochs
            ),
        };
        out.push(("negatives", hard));
        let weight = match of.weighting {
            Weighting::Inverse { cap: Some(cap) } => {
                format!(
                    "as many labels as it stands for, at most {cap}: larger weights dominate the optimiser's moments"
                )
            }
            Weighting::Inverse { cap: None } => "as many labels as it stands for: sums are unbiased".to_owned(),
            _ => "1".to_owned(),
        };
        out.push(("weights", format!("a uniform label counts {weight}")));
        let advice = match n_labels {
            0..SOME_LABELS if self.negatives != Strategy::All => {
                "--negatives all: on a CPU sampling saves little below 30,000 labels; training on all labels needs a \
                 lower rate"
            }
            0..SOME_LABELS => "all labels, as asked",
            _ => "lists: a step over all labels would take several times as long",
        };
        out.push(("advice", advice.to_owned()));
        plan.lines.extend(out);
        self.resolve(&of, n_labels, &mut plan.resolved);
    }

    /// The values of options that were not given.
    fn resolve(&self, of: &AstraParams, n_labels: usize, out: &mut Resolved) {
        let strategy = || Origin::Follows("negatives");
        let has_hard = matches!(self.negatives, Strategy::Weights | Strategy::LabelText);
        let hard = has_hard.then_some(of.hard.per_instance.min(n_labels));
        out.set_some("hard", hard, "none", if has_hard { Origin::Default } else { strategy() });
        let uniform = (self.negatives != Strategy::All).then(|| of.n_uniform(n_labels).min(n_labels));
        let by_labels = has_hard || self.negatives == Strategy::Random;
        out.set_some("uniform", uniform, "none: all labels", if by_labels { Origin::Data } else { strategy() });
        let lists = (self.negatives != Strategy::All).then(|| name_of(&of.lists));
        out.set_some("lists", lists, "none: all labels", Origin::Default);
        let has_uniform = self.negatives != Strategy::All && of.n_uniform(n_labels) > 0;
        let weighting = self.weighting.as_deref().unwrap_or("capped");
        out.set_some("weighting", has_uniform.then_some(weighting), "none", strategy());
        let cap = match of.weighting {
            Weighting::Inverse { cap } => cap.filter(|_| has_uniform),
            _ => None,
        };
        out.set_some("weight-cap", cap, "none", Origin::Follows("weighting"));
        let schedule = has_hard && self.retrieval == Retrieval::Schedule;
        out.set_some("retrieval.every", schedule.then_some(of.every_epochs), "none", Origin::Default);
        let first = of.negatives(n_labels).from_epoch + 1;
        out.set_some("hard-from-epoch", has_hard.then_some(first), "none", Origin::Follows("retrieval"));
        let follows = has_hard && self.retrieval == Retrieval::InStep;
        let every = follows.then_some(of.hard.every);
        out.set_some(
            "index.every",
            every.map(|every| if every == 0 { repairs(0) } else { every.to_string() }),
            "none",
            Origin::Default,
        );
        out.set_some("index.exact-below", follows.then_some(of.hard.exact_below), "none", Origin::Default);
        let recall = (has_hard && self.retrieval != Retrieval::Exact).then_some(of.hard.recall);
        out.set_some("index.recall", recall, "none", Origin::Default);
    }
}

/// Labels below which sampling saves little.
const SOME_LABELS: usize = 30_000;

/// What is impossible, by the option that says it.
fn error(error: &ClassifierParamsError) -> CliError {
    use SamplerParamsError as E;
    let ClassifierParamsError::Sampler(cause) = error else { return params_error(error) };
    let option = match cause {
        E::Number { name: "cap", .. } => "weight-cap",
        E::Number { name: "recall", .. } => "index.recall",
        E::Number { name: "per_list", .. } => "uniform",
        E::Number { name: "first_epoch", .. } => "hard-from-epoch",
        E::LabelTexts => "negatives",
        _ => "hard",
    };
    CliError::usage(format_args!("--{option}: {}", chain(error)))
}

/// When the index is repaired.
fn repairs(every: u64) -> String {
    match every {
        0 => "when the steps have doubled and once an epoch, if enough labels have changed".to_owned(),
        every => format!("every {every} steps and once an epoch"),
    }
}
