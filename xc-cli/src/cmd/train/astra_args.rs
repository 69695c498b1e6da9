//! Which labels a step of ASTRA scores.

use super::network::{Session, Shape, params_error};
use crate::error::{CliError, chain};
use crate::named::{named, number_type};
use xc_sparse::dtype::DType;
use xc_train::astra::{AstraParams, Retrieval, Strategy};
use xc_train::classifier::{CandidateHeadParams, ClassifierParams, ClassifierParamsError, HeadParams};
use xc_train::sampler::{AnnParams, Lists, SamplerParamsError, Weighting};

/// Negatives of a step.
#[derive(clap::Args, Debug)]
#[command(next_help_heading = "Options of negatives")]
pub(crate) struct AstraArgs {
    /// Labels that a step scores beside the true ones: those whose weights score highest and uniform
    /// ones (weights), uniform ones alone (random), true labels of the batch (in-batch), or all
    #[arg(long, value_name = "WHICH", value_parser = named::<Strategy, _>(["weights", "random", "in-batch", "all"]), default_value = "weights")]
    negatives: Strategy,
    /// How the labels that score highest are found: by an index that follows the weights (in-step),
    /// or by a look at all labels (exact)
    #[arg(long, value_name = "HOW", value_parser = named::<Retrieval, _>(["in-step", "exact"]), default_value = "in-step")]
    retrieval: Retrieval,
    /// One list of negatives for a batch, or one for each instance, as in the paper
    #[arg(long, value_name = "WHOSE", value_parser = named::<Lists, _>(["shared", "own"]), default_value = "shared")]
    lists: Lists,
    /// Hard labels of an instance [default: 10]
    #[arg(long, value_name = "N")]
    hard: Option<usize>,
    /// Uniform labels of a list [default: 500 of up to 20,000 labels, rising to 2,000 of 70,000; 0
    /// with --negatives in-batch]
    #[arg(long, value_name = "N")]
    uniform: Option<usize>,
    /// What a uniform label counts: as many labels as it stands for, at most --weight-cap (capped), or
    /// without a limit (unbiased, lemma 4.1 of the paper), or 1 (none)
    #[arg(long, value_name = "WHAT", value_parser = ["capped", "unbiased", "none"], default_value = "capped")]
    weighting: String,
    /// Largest weight (--weighting capped)
    #[arg(long, value_name = "X", default_value_t = 4.0, allow_negative_numbers = true)]
    weight_cap: f32,
    /// First epoch with hard labels, from 1; before it there are uniform ones in their place
    #[arg(long, value_name = "EPOCH", default_value_t = 1)]
    hard_from_epoch: u32,
    /// Steps between repairs of the index [default: whenever the number of steps has doubled, and
    /// once an epoch]
    #[arg(long = "index.every", value_name = "STEPS")]
    every: Option<u64>,
    /// Up to so many labels all are compared rather than searched [default: 5000]
    #[arg(long = "index.exact-below", value_name = "LABELS")]
    exact_below: Option<usize>,
    /// Share of the hardest labels that a search is to find [default: 0.9]
    #[arg(long = "index.recall", value_name = "SHARE")]
    recall: Option<f64>,
    /// Type of the labels' rows, in training and in the model
    #[arg(long = "head.precision", value_name = "TYPE", value_parser = number_type([DType::F32, DType::Bf16]), default_value = "f32")]
    rows: DType,
}

impl AstraArgs {
    /// Gives the classifier this head, and refuses one that is impossible for instances of a shape.
    pub(super) fn apply(&self, shape: &Shape, params: &mut ClassifierParams) -> Result<(), CliError> {
        let negatives = self.params(shape.n_labels)?.negatives(shape.n_labels);
        params.head = HeadParams::Candidates(CandidateHeadParams { rows: self.rows, negatives });
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
        let weighting = match &*self.weighting {
            "none" => Weighting::None,
            "unbiased" => Weighting::Inverse { cap: None },
            _ => Weighting::Inverse { cap: Some(self.weight_cap) },
        };
        let params = AstraParams {
            strategy: self.negatives,
            retrieval: self.retrieval,
            lists: self.lists,
            hard,
            uniform: self.uniform,
            weighting,
            hard_from_epoch: self.hard_from_epoch.saturating_sub(1),
        };
        let has_hard = self.negatives == Strategy::Weights;
        let given = [
            ("hard", self.hard.is_some() && !has_hard),
            ("hard-from-epoch", self.hard_from_epoch > 1 && !has_hard),
            ("retrieval", self.retrieval != Retrieval::InStep && !has_hard),
            ("uniform", self.uniform.is_some() && self.negatives == Strategy::All),
        ];
        if let Some((option, _)) = given.into_iter().find(|(_, is_idle)| *is_idle) {
            return refused(option, "this option belongs to --negatives weights");
        }
        let has_index = has_hard && self.retrieval == Retrieval::InStep;
        let of_index = [
            ("index.every", self.every.is_some()),
            ("index.exact-below", self.exact_below.is_some()),
            ("index.recall", self.recall.is_some()),
        ];
        if let Some((option, _)) = of_index.into_iter().find(|(_, is_given)| *is_given && !has_index) {
            return refused(option, "there is no index; --negatives weights and --retrieval in-step are expected");
        }
        for (option, is_zero) in [
            ("hard", self.hard == Some(0)),
            ("hard-from-epoch", self.hard_from_epoch == 0),
            ("index.every", self.every == Some(0)),
            ("uniform", self.uniform == Some(0) && self.negatives == Strategy::Random),
        ] {
            if is_zero {
                return refused(option, "0, expected at least 1");
            }
        }
        if n_labels > 0 {
            self.check_labels(&params, n_labels)?;
        }
        Ok(params)
    }

    /// Refuses more negatives than there are labels.
    fn check_labels(&self, params: &AstraParams, n_labels: usize) -> Result<(), CliError> {
        let refused = |option: &str, got: usize| {
            Err(CliError::usage(format_args!(
                "--{option}: {got} of {n_labels} labels; fewer are expected, or --negatives all"
            )))
        };
        match (self.hard, self.uniform) {
            (Some(hard), _) if hard >= n_labels => refused("hard", hard),
            (_, Some(uniform)) if uniform >= n_labels => refused("uniform", uniform),
            _ => {
                let _ = params;
                Ok(())
            }
        }
    }

    /// Says what suits the data better, where something does.
    pub(super) fn announce(&self, session: &Session<'_>) {
        let _ = session;
    }
}

/// What is impossible, by the option that says it.
fn error(error: &ClassifierParamsError) -> CliError {
    use SamplerParamsError as E;
    let ClassifierParamsError::Sampler(cause) = error else { return params_error(error) };
    let option = match cause {
        E::Number { name: "cap", .. } => "weight-cap",
        E::Number { name: "recall", .. } => "index.recall",
        E::Number { name: "per_list", .. } => "uniform",
        _ => "hard",
    };
    CliError::usage(format_args!("--{option}: {}", chain(error)))
}
