//! Fits the rule that ranks candidates, on rows that no member was trained on.
//!
//! Rules are compared by cross-validation over these rows: each is fitted on all folds but one and
//! ranks the candidates of that one. The rule with the largest mean of P@1, P@3 and P@5 is fitted
//! once more, on all rows; of equal ones, the one with the fewest parameters. A rule below the best member alone is only
//! fitted where it is asked for.
//!
//! *Cost*: (folds + 1) times one pass per epoch over the candidates, of which each row has some
//! tens.
//!
//! *Determinism*: the same bits for the same seed, at any number of threads.

use crate::learn::initialise;
use rayon::prelude::*;
use serde::{Serialize, Serializer};
use std::fmt::{self, Display};
use std::ops::Range;
use thiserror::Error;
use xc_boost::BoostParams;
use xc_buffer::{Cancel, Unwatched};
use xc_dense::DenseRows;
use xc_hash::stream::{Purpose, Stream, mix, name};
use xc_metrics::evaluate;
use xc_metrics::{EvaluateError, EvaluatorParams, Metric, MetricReport};
use xc_model::blend::{DEPTH, FeatureScale, Features, Rule, RuleKind, RuleScratch, candidates};
use xc_model::classifier::{Classifier, ClassifierParams, DENSE, EncoderParams, LearningParams};
use xc_nn::schedule::WarmupCosine;
use xc_nn::trainer::{Keep, Monitor, Subset, TrainError};
use xc_nn::{Examples, Optimizer, Rows, TrainParams, Trainer};
use xc_sparse::LabelRows;
use xc_sparse::rank::{RankedBatch, Scored};

/// How a blend is fitted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FitParams {
    /// The rule; `None`: the best one in cross-validation.
    pub rule: Option<RuleKind>,
    /// Number of folds of the cross-validation, at least 2.
    pub folds: usize,
    /// Number of hidden units of a network, at most 65,536.
    pub hidden: usize,
    /// Number of networks whose logits are averaged, at most 1024.
    pub networks: usize,
    /// Minimum number of passes over the candidates; few candidates get more passes.
    pub epochs: u32,
    /// Learning rate (Adam).
    pub rate: f64,
    /// Seed of the folds, initial values and orders.
    pub seed: u64,
}

impl Default for FitParams {
    /// Five folds, four networks of 24 units, 10 epochs at 0.005.
    fn default() -> Self {
        Self { rule: None, folds: 5, hidden: 24, networks: 4, epochs: 10, rate: 5e-3, seed: 0 }
    }
}

impl FitParams {
    /// Checks the settings.
    ///
    /// # Errors
    /// A setting out of range.
    pub fn check(&self) -> Result<(), RuleFitError> {
        let settings = [
            ("folds", self.folds, 2..=usize::MAX),
            ("hidden units", self.hidden, 1..=MOST_HIDDEN),
            ("networks", self.networks, 1..=MOST_NETWORKS),
            ("epochs", self.epochs as usize, 1..=usize::MAX),
        ];
        match settings.into_iter().find(|(_, got, range)| !range.contains(got)) {
            Some((name, got, range)) if got > *range.end() => {
                Err(RuleFitError::TooLarge { name, got, most: *range.end() })
            }
            Some((name, got, range)) => Err(RuleFitError::Setting { name, got, least: *range.start() }),
            None => Ok(()),
        }
    }
}

/// Hidden units of a network, at most: of candidates with a few features each.
const MOST_HIDDEN: usize = 1 << 16;
/// Networks, at most.
const MOST_NETWORKS: usize = 1 << 10;
/// Candidates per step.
const BATCH: usize = 256;
/// Minimum number of steps of a network, however few candidates there are.
const LEAST_STEPS: u64 = 3000;

/// Why a blend cannot be fitted.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RuleFitError {
    /// Too few rows to split.
    #[error("{got} rows with labels; at least 2 are expected")]
    Rows {
        /// How many there are.
        got: usize,
    },
    /// No member has a true label among its best.
    #[error("no candidate is true: no member has a true label among its {DEPTH} best")]
    NoTrue,
    /// Every candidate is true.
    #[error("every candidate is true: there is nothing to tell apart")]
    AllTrue,
    /// Labels that members rank higher are not true more often.
    #[error("candidates are not more often true where their reciprocal ranks are larger")]
    Slope,
    /// No rule ranks as well as one member alone.
    #[error("no rule ranks as well as member {} alone: {_0}", _0.member)]
    Below(Below),
    /// Settings out of range.
    #[error("{name} {got}; at least {least} is expected")]
    Setting {
        /// The setting.
        name: &'static str,
        /// Its value.
        got: usize,
        /// Its minimum.
        least: usize,
    },
    /// A setting beyond what a rule may have.
    #[error("{name} {got}; at most {most} is expected")]
    TooLarge {
        /// The setting.
        name: &'static str,
        /// Its value.
        got: usize,
        /// Its maximum.
        most: usize,
    },
    /// A rule cannot be trained.
    #[error("fitting the {rule} rule")]
    Train {
        /// The rule.
        rule: RuleKind,
        /// Why.
        source: TrainError,
    },
    /// A ranking cannot be evaluated.
    #[error(transparent)]
    Evaluate(#[from] EvaluateError),
}

/// A rule that ranks less well than a member alone in cross-validation, by more than the standard error of the difference of
/// their P@1 + P@3 + P@5 over the rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Below {
    /// The rule.
    pub rule: RuleKind,
    /// Its P@1, P@3 and P@5.
    pub of_rule: [f64; 3],
    /// The number of the member.
    pub member: usize,
    /// Its P@1, P@3 and P@5 on the same rows.
    pub of_member: [f64; 3],
}

/// The quality of a rule on rows that it was not fitted on.
#[derive(Clone, Debug, Serialize)]
pub struct Judged {
    /// The rule.
    pub rule: RuleKind,
    /// P@1, P@3, P@5 and recall@5 of its rankings.
    #[serde(serialize_with = "some")]
    pub metrics: MetricReport,
    /// Mean log loss of the candidates' probabilities (natural logarithm).
    pub log_loss: f64,
    /// Calibration error: candidates are put into ten groups of equal size by their probability;
    /// this is the mean absolute difference between probability and frequency over the groups.
    pub calibration_error: f64,
    /// The sum of P@1, P@3 and P@5 of each row.
    #[serde(skip)]
    of_rows: Vec<f64>,
}

/// P@k and recall@5 by name, for reports and model folders.
fn some<S: Serializer>(metrics: &MetricReport, to: S) -> Result<S::Ok, S::Error> {
    let kept = [Metric::Precision(1), Metric::Precision(3), Metric::Precision(5), Metric::Recall(5)];
    to.collect_map(kept.iter().map(|&metric| (metric.to_string(), metrics.value(metric))))
}

/// The result of a fit.
#[derive(Debug)]
pub struct FittedRule {
    /// Computes features from answers.
    pub features: Features,
    /// Computes probabilities from features.
    pub rule: Rule,
    /// The rules in cross-validation.
    pub judged: Vec<Judged>,
    /// Each member alone on the same rows.
    pub members: Vec<MetricReport>,
    /// The rule beside the best member alone, where it is below it: only a rule that was asked for can be.
    pub below: Option<Below>,
    /// Number of candidates of all rows.
    pub n_candidates: usize,
    /// Number of true candidates.
    pub n_true: usize,
}

/// Answers of the members to the rows of a fit.
struct Sample<'a> {
    answers: &'a [RankedBatch],
    truth: &'a LabelRows,
    features: Features,
    /// Features of all candidates.
    values: Vec<f32>,
    /// Summed reciprocal ranks of all candidates.
    sums: Vec<f32>,
    /// One row per candidate: label 0 if it is true, else empty.
    targets: LabelRows,
    /// Where the candidates of each row end.
    ends: Vec<usize>,
}

/// Fits a blend. `answers` has each member's answers to all rows, `truth` the rows' labels, and
/// `label_counts` the number of training rows that have each label.
///
/// # Errors
/// Rows that nothing can be learned from; settings out of range; a stop requested by `cancel`.
///
/// # Panics
/// If there are not as many answers as rows, or not as many counts as labels.
pub fn fit(
    answers: &[RankedBatch],
    truth: &LabelRows,
    label_counts: &[u32],
    params: &FitParams,
    cancel: &dyn Cancel,
) -> Result<FittedRule, RuleFitError> {
    params.check()?;
    let got = truth.iter().filter(|labels| !labels.is_empty()).count();
    if got < 2 {
        return Err(RuleFitError::Rows { got });
    }
    let sample = Sample::new(answers, truth, label_counts);
    let n_true = sample.targets.nnz();
    match n_true {
        0 => return Err(RuleFitError::NoTrue),
        n if n == sample.targets.len() => return Err(RuleFitError::AllTrue),
        _ => {}
    }
    let kinds: Vec<RuleKind> = params.rule.map_or(RuleKind::ALL.to_vec(), |rule| vec![rule]);
    let folds = Folds::new(truth.len(), params.folds.min(truth.len()), params.seed);
    let judged = kinds.iter().map(|&kind| sample.judge(kind, &folds, params, cancel));
    let judged: Vec<Judged> = judged.collect::<Result<_, _>>()?;
    let members: Vec<MetricReport> = answers.iter().map(|answers| metrics(truth, answers)).collect::<Result<_, _>>()?;
    let total = |judged: &Judged| precisions(&judged.metrics).iter().sum::<f64>();
    let best = judged.iter().reduce(|best, next| if total(next) > total(best) { next } else { best });
    let kind = best.map_or(RuleKind::ReciprocalRanks, |best| best.rule);
    let below = best.and_then(|best| Below::of(best, &members, answers, truth));
    if let (None, Some(below)) = (params.rule, below) {
        return Err(RuleFitError::Below(below));
    }
    let all: Vec<u32> = (0..sample.targets.len() as u32).collect();
    let rule = sample.learn(kind, all, params, cancel)?;
    let n_candidates = sample.targets.len();
    Ok(FittedRule { features: sample.features, rule, judged, members, below, n_candidates, n_true })
}

/// P@1, P@3 and P@5.
fn precisions(metrics: &MetricReport) -> [f64; 3] {
    [1, 3, 5].map(|k| metrics.value(Metric::Precision(k)).unwrap_or(0.0))
}

/// The sum of P@1, P@3 and P@5 of one row.
fn precision_of(found: &[Scored], truth: &[u32]) -> f64 {
    let hits = |k: usize| found.iter().take(k).filter(|s| truth.binary_search(&s.label).is_ok()).count() as f64;
    [1, 3, 5].map(|k| hits(k) / k as f64).iter().sum()
}

impl Below {
    /// Whether a rule is below the best of the members, by more than the standard error of their difference over the rows.
    fn of(judged: &Judged, members: &[MetricReport], answers: &[RankedBatch], truth: &LabelRows) -> Option<Self> {
        let total = |values: &[f64; 3]| values.iter().sum::<f64>();
        let of_members = members.iter().map(precisions).enumerate();
        let (member, of_member) = of_members.max_by(|a, b| total(&a.1).total_cmp(&total(&b.1)).then(b.0.cmp(&a.0)))?;
        let (rule, of_rule) = (judged.rule, precisions(&judged.metrics));
        let rows = judged.of_rows.iter().zip(answers[member].iter()).zip(truth.iter());
        let lost: Vec<f64> = rows.map(|((of, found), truth)| precision_of(found, truth) - of).collect();
        let n = lost.len().max(1) as f64;
        let mean = lost.iter().sum::<f64>() / n;
        let variance = lost.iter().map(|lost| (lost - mean).powi(2)).sum::<f64>() / n;
        (mean > (variance / n).sqrt()).then_some(Self { rule, of_rule, member, of_member })
    }
}

impl Display for Below {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let said = |[one, three, five]: [f64; 3]| {
            format!("P@1 {:.2}, P@3 {:.2}, P@5 {:.2}", 100.0 * one, 100.0 * three, 100.0 * five)
        };
        write!(f, "{} has {}, that member alone {}", self.rule, said(self.of_rule), said(self.of_member))
    }
}

fn metrics(truth: &LabelRows, answers: &RankedBatch) -> Result<MetricReport, EvaluateError> {
    evaluate(truth, answers, EvaluatorParams { ks: vec![1, 3, 5], ..EvaluatorParams::new(truth.n_labels()) })
}

/// The fold of each row.
struct Folds {
    of_row: Vec<u32>,
    n: usize,
}

impl Folds {
    fn new(n_rows: usize, n: usize, seed: u64) -> Self {
        let mut rows: Vec<u32> = (0..n_rows as u32).collect();
        Stream::new(name(seed, Purpose::Split, &[2])).shuffle(&mut rows);
        let mut of_row = vec![0; n_rows];
        rows.iter().enumerate().for_each(|(place, &row)| of_row[row as usize] = (place % n) as u32);
        Self { of_row, n }
    }
}

impl<'a> Sample<'a> {
    fn new(answers: &'a [RankedBatch], truth: &'a LabelRows, label_counts: &[u32]) -> Self {
        let best = |answers: &'a RankedBatch| answers.iter().flat_map(|row| row.iter().take(DEPTH));
        let scales = answers.iter().map(|answers| FeatureScale::of(best(answers).map(|s| s.score))).collect();
        let features = Features::new(scales, label_counts.to_vec());
        let (mut values, mut sums, mut ends) = (Vec::new(), Vec::new(), Vec::new());
        let (mut labels, mut of_row, mut is_true) = (Vec::new(), Vec::new(), Vec::<Vec<u32>>::new());
        let mut scratch = Default::default();
        for row in 0..truth.len() {
            let lists: Vec<&[Scored]> = answers.iter().map(|answers| answers.row(row)).collect();
            labels.clear();
            features.fill(&lists, &mut scratch, &mut labels, &mut values);
            candidates(&lists, DEPTH, &mut of_row);
            sums.extend(of_row.iter().map(|s| s.score));
            let found = |label: &u32| truth.row(row).binary_search(label).is_ok();
            is_true.extend(labels.iter().map(|label| if found(label) { vec![0] } else { Vec::new() }));
            ends.push(is_true.len());
        }
        let mut features = features;
        features.standardise(&mut values);
        let targets = LabelRows::from_lists(is_true, 1);
        let targets = targets.unwrap_or_else(|e| panic!("one label or none: {e}"));
        Self { answers, truth, features, values, sums, targets, ends }
    }

    /// Candidates of a row.
    fn of_row(&self, row: usize) -> Range<usize> {
        let start = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        start..self.ends[row]
    }

    /// Features of all candidates.
    fn rows(&self) -> DenseRows<'_> {
        DenseRows::new(&self.values, self.features.n())
    }

    /// Ranks each fold by a rule that was fitted on the others, and evaluates the rankings.
    fn judge(
        &self,
        kind: RuleKind,
        folds: &Folds,
        params: &FitParams,
        cancel: &dyn Cancel,
    ) -> Result<Judged, RuleFitError> {
        let rules: Vec<Rule> = (0..folds.n as u32)
            .into_par_iter()
            .map(|fold| {
                let rows = (0..self.truth.len()).filter(|&row| folds.of_row[row] != fold);
                let learned: Vec<u32> = rows.flat_map(|row| self.of_row(row)).map(|at| at as u32).collect();
                self.learn(kind, learned, params, cancel)
            })
            .collect::<Result<_, _>>()?;
        let (mut ranked, mut scratch) = (RankedBatch::new(), RuleScratch::default());
        // Probability and truth of each candidate.
        let mut said: Vec<(f32, bool)> = Vec::with_capacity(self.targets.len());
        let mut of_rows = Vec::with_capacity(self.truth.len());
        for row in 0..self.truth.len() {
            let lists: Vec<&[Scored]> = self.answers.iter().map(|answers| answers.row(row)).collect();
            let rule = &rules[folds.of_row[row] as usize];
            rule.rank(&self.features, std::iter::once(&lists[..]), &mut scratch, |answer| {
                let is_true = |s: &Scored| self.truth.row(row).binary_search(&s.label).is_ok();
                said.extend(answer.iter().map(|s| (s.score, is_true(s))));
                of_rows.push(precision_of(answer, self.truth.row(row)));
                ranked.push_row(answer);
            });
        }
        let metrics = metrics(self.truth, &ranked)?;
        let (log_loss, calibration_error) = (log_loss(&said), calibration_error(&mut said));
        Ok(Judged { rule: kind, metrics, log_loss, calibration_error, of_rows })
    }

    /// Fits a rule on some candidates.
    fn learn(
        &self,
        kind: RuleKind,
        candidates: Vec<u32>,
        params: &FitParams,
        cancel: &dyn Cancel,
    ) -> Result<Rule, RuleFitError> {
        if kind == RuleKind::ReciprocalRanks {
            let of = |&at: &u32| (f64::from(self.sums[at as usize]), !self.targets.row(at as usize).is_empty());
            let [slope, bias] = line(&candidates.iter().map(of).collect::<Vec<_>>());
            let slope = Some(slope as f32).filter(|&slope| slope > 0.0).ok_or(RuleFitError::Slope)?;
            return Ok(Rule::ReciprocalRanks { slope, bias: bias as f32 });
        }
        let rows = self.rows();
        if kind == RuleKind::Boosted {
            let is_true: Vec<bool> = self.targets.iter().map(|labels| !labels.is_empty()).collect();
            let trees = xc_boost::fit(rows, &is_true, &candidates, &BoostParams::default(), cancel);
            let stopped = || RuleFitError::Train { rule: kind, source: TrainError::Cancelled { step: 0 } };
            return trees.map(Rule::Boosted).ok_or_else(stopped);
        }
        let hidden = if kind == RuleKind::Net { vec![params.hidden] } else { Vec::new() };
        let n = if kind == RuleKind::Net { params.networks } else { 1 };
        let failed = |source| RuleFitError::Train { rule: kind, source };
        let learn = |number: usize| {
            let seed = mix(name(params.seed, Purpose::Repetition, &[kind as u64]), number as u64);
            network(rows, &self.targets, candidates.clone(), hidden.clone(), params, seed, cancel)
        };
        let networks: Vec<Classifier> = (0..n).map(learn).collect::<Result<_, _>>().map_err(failed)?;
        Ok(Rule::Network(networks))
    }
}

/// Slope and bias of the line of logits with the least log loss, by Newton's method. A small
/// penalty on the slope keeps it finite if the sums separate true candidates from false ones.
fn line(points: &[(f64, bool)]) -> [f64; 2] {
    const PULL: f64 = 1e-3;
    let (mut slope, mut bias) = (0.0, 0.0);
    for _ in 0..50 {
        let (mut g, mut h) = ([PULL * slope, 0.0], [PULL, 0.0, 0.0]);
        for &(x, is_true) in points {
            let p = 1.0 / (1.0 + (-(slope * x + bias)).exp());
            let (error, w) = (p - f64::from(u8::from(is_true)), p * (1.0 - p));
            g = [g[0] + error * x, g[1] + error];
            h = [h[0] + w * x * x, h[1] + w * x, h[2] + w];
        }
        let determinant = h[0] * h[2] - h[1] * h[1];
        if determinant < 1e-12 {
            break;
        }
        // Steps are shortened at first: the second derivative vanishes far from the minimum.
        let [a, b] = [(h[2] * g[0] - h[1] * g[1]) / determinant, (h[0] * g[1] - h[1] * g[0]) / determinant];
        let step = (4.0 / a.abs().max(b.abs())).min(1.0);
        (slope, bias) = (slope - step * a, bias - step * b);
    }
    [slope, bias]
}

/// Trains a network that predicts the probability that a candidate is true.
fn network(
    rows: DenseRows<'_>,
    targets: &LabelRows,
    candidates: Vec<u32>,
    hidden: Vec<usize>,
    params: &FitParams,
    seed: u64,
    cancel: &dyn Cancel,
) -> Result<Classifier, TrainError> {
    let learning = LearningParams { seed, ..LearningParams::default() };
    let of = ClassifierParams { encoder: EncoderParams::vectors(hidden), learning, ..ClassifierParams::default() };
    let loss = of.loss;
    let made = Classifier::new(DENSE, rows.width(), 1, of);
    let mut network = made.unwrap_or_else(|e| panic!("a small network is possible: {e}"));
    let examples = Examples::try_new(Rows::Dense(rows), targets);
    let examples = examples.unwrap_or_else(|e| panic!("a target for each candidate: {e}"));
    let of_epoch = candidates.len().div_ceil(BATCH).max(1) as u64;
    let epochs = params.epochs.max(LEAST_STEPS.div_ceil(of_epoch) as u32);
    let steps = of_epoch * u64::from(epochs);
    let mut schedule = WarmupCosine { warmup: steps / 20, total: steps, floor: 0.0 };
    let training = TrainParams {
        batch_size: BATCH,
        epochs,
        rate: params.rate,
        seed,
        monitor: Monitor::Loss,
        keep: Keep::Last,
        ..TrainParams::default()
    };
    let watch = Unwatched(cancel);
    let mut trainer = Trainer {
        loss,
        optimizer: Optimizer::adam(),
        schedule: &mut schedule,
        params: training,
        checkpoint: None,
        hard: None,
        observer: &watch,
    };
    let train = Subset::some(examples, candidates);
    initialise(&mut network, None, &train, &watch)?;
    trainer.train(network.network_mut(), &train, None)?;
    Ok(network)
}

fn log_loss(said: &[(f32, bool)]) -> f64 {
    let of = |&(p, is_true): &(f32, bool)| {
        let p = f64::from(p).clamp(1e-7, 1.0 - 1e-7);
        if is_true { -p.ln() } else { -(-p).ln_1p() }
    };
    said.iter().map(of).sum::<f64>() / said.len().max(1) as f64
}

fn calibration_error(said: &mut [(f32, bool)]) -> f64 {
    // Candidates of equal probability stay in the order of their rows, which does not depend on
    // their truth.
    said.sort_by(|a, b| a.0.total_cmp(&b.0));
    let of = |group: &[(f32, bool)]| {
        let mean = group.iter().map(|s| f64::from(s.0)).sum::<f64>();
        (mean - group.iter().filter(|s| s.1).count() as f64).abs()
    };
    said.chunks(said.len().div_ceil(10).max(1)).map(of).sum::<f64>() / said.len().max(1) as f64
}

#[cfg(test)]
mod tests;
