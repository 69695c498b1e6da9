//! Fitting what ranks candidates, on rows that no member was trained on.
//!
//! Rules are compared by cross-validation over these rows: each is fitted on all folds but one and
//! ranks the candidates of that one. The rule whose mean of P@1, P@3 and P@5 is largest is fitted
//! once more, on all rows; of equal ones that with the least to fit.
//!
//! *Cost*: (folds + 1) times a pass a epoch over the candidates, some tens a row.
//!
//! *Determinism*: the same bits for the same seed, at any number of threads.

use super::rule::mean_logits;
use super::{DEPTH, Features, Rule, RuleKind, RuleScratch, Scale};
use crate::classifier::{Classifier, EncoderParams, InputKind, preset};
use crate::metrics::{EvaluateError, EvaluatorParams, Metric, MetricReport, evaluate};
use crate::schedule::WarmupCosine;
use crate::trainer::{Event, Keep, Monitor, Observer, Subset, TrainError};
use crate::{DenseRows, Examples, Features as Rows, Loss, Optimizer, TrainParams, Trainer};
use rayon::prelude::*;
use serde::{Serialize, Serializer};
use std::ops::Range;
use thiserror::Error;
use xc_hash::stream::{Purpose, Stream, mix, name};
use xc_sparse::rank::{RankedBatch, Scored};
use xc_sparse::{Cancel, LabelRows};

/// How a blend is fitted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct FitParams {
    /// The rule; that which cross-validation finds best where none is named.
    pub rule: Option<RuleKind>,
    /// Parts of the rows in cross-validation, at least 2.
    pub folds: usize,
    /// Hidden units of a network.
    pub hidden: usize,
    /// Networks whose logits are averaged.
    pub networks: usize,
    /// Passes over the candidates.
    pub epochs: u32,
    /// Learning rate (Adam).
    pub rate: f64,
    /// Names folds, initial values and orders.
    pub seed: u64,
}

impl Default for FitParams {
    /// Five folds, four networks of 24 units, 10 epochs at 0.005.
    fn default() -> Self {
        Self { rule: None, folds: 5, hidden: 24, networks: 4, epochs: 10, rate: 5e-3, seed: 0 }
    }
}

impl FitParams {
    /// # Errors
    /// A setting out of range.
    pub fn check(&self) -> Result<(), FitError> {
        let settings = [
            ("folds", self.folds, 2),
            ("hidden units", self.hidden, 1),
            ("networks", self.networks, 1),
            ("epochs", self.epochs as usize, 1),
        ];
        match settings.iter().find(|&&(_, got, least)| got < least) {
            Some(&(name, got, least)) => Err(FitError::Setting { name, got, least }),
            None => Ok(()),
        }
    }
}

/// Candidates of a step.
const BATCH: usize = 256;

/// Why nothing is fitted.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FitError {
    /// Too few rows to part.
    #[error("{got} rows with labels; at least 2 are expected")]
    Rows {
        /// How many there are.
        got: usize,
    },
    /// No member says anything true.
    #[error("no candidate is true: no member has a true label among its {DEPTH} best")]
    NoTrue,
    /// Every candidate is true.
    #[error("every candidate is true: there is nothing to tell apart")]
    AllTrue,
    /// Labels that members rank higher are true less often.
    #[error("candidates are not more often true where their reciprocal ranks are larger")]
    Slope,
    /// Settings out of range.
    #[error("{name} {got}; at least {least} is expected")]
    Setting {
        /// The setting.
        name: &'static str,
        /// Its value.
        got: usize,
        /// The least one.
        least: usize,
    },
    /// A rule does not learn.
    #[error("fitting the {rule} rule")]
    Train {
        /// The rule.
        rule: RuleKind,
        /// Why.
        source: TrainError,
    },
    /// A ranking cannot be judged.
    #[error(transparent)]
    Evaluate(#[from] EvaluateError),
}

/// How good a rule is on rows that it was not fitted on.
#[derive(Clone, Debug, Serialize)]
pub struct Judged {
    /// The rule.
    pub rule: RuleKind,
    /// P@1, P@3, P@5 and recall@5 of its rankings.
    #[serde(serialize_with = "some")]
    pub metrics: MetricReport,
    /// Mean loss of a candidate's probability (natural logarithm).
    pub log_loss: f64,
    /// How far probabilities are from frequencies: the mean over ten groups of equal size, by
    /// probability, of the difference.
    pub calibration_error: f64,
}

/// P@k and recall@5 by name, as a report and a model folder keep them.
fn some<S: Serializer>(metrics: &MetricReport, to: S) -> Result<S::Ok, S::Error> {
    let kept = [Metric::Precision(1), Metric::Precision(3), Metric::Precision(5), Metric::Recall(5)];
    to.collect_map(kept.iter().map(|&metric| (metric.to_string(), metrics.value(metric))))
}

/// What came out of a fit.
#[derive(Debug)]
pub struct Fitted {
    /// From answers to numbers.
    pub features: Features,
    /// From numbers to probabilities.
    pub rule: Rule,
    /// The rules by cross-validation.
    pub judged: Vec<Judged>,
    /// Each member alone on the same rows.
    pub members: Vec<MetricReport>,
    /// Candidates of all rows, and how many of them are true.
    pub n_candidates: usize,
    /// True ones.
    pub n_true: usize,
}

/// Answers of the members to the rows of a fit.
struct Sample<'a> {
    answers: &'a [RankedBatch],
    truth: &'a LabelRows,
    features: Features,
    /// Numbers of all candidates.
    values: Vec<f32>,
    /// Summed reciprocal ranks of all candidates.
    sums: Vec<f32>,
    /// The label 0 where a candidate is true.
    targets: LabelRows,
    /// Where the candidates of each row end.
    ends: Vec<usize>,
}

/// Fits a blend. `answers` holds each member's answers to all rows, `truth` their labels,
/// `label_counts` how many training rows carry each label.
///
/// # Errors
/// Rows that nothing can be learned from; settings out of range; `cancel` asked to stop.
///
/// # Panics
/// If there are not as many answers as rows, or counts as labels.
pub fn fit(
    answers: &[RankedBatch],
    truth: &LabelRows,
    label_counts: &[u32],
    params: &FitParams,
    cancel: &dyn Cancel,
) -> Result<Fitted, FitError> {
    params.check()?;
    let got = truth.iter().filter(|labels| !labels.is_empty()).count();
    if got < 2 {
        return Err(FitError::Rows { got });
    }
    let sample = Sample::new(answers, truth, label_counts);
    let n_true = sample.targets.nnz();
    match n_true {
        0 => return Err(FitError::NoTrue),
        n if n == sample.targets.len() => return Err(FitError::AllTrue),
        _ => {}
    }
    let kinds: Vec<RuleKind> = params.rule.map_or(RuleKind::ALL.to_vec(), |rule| vec![rule]);
    let folds = Folds::new(truth.len(), params.folds.min(truth.len()), params.seed);
    let judged = kinds.iter().map(|&kind| sample.judge(kind, &folds, params, cancel));
    let judged: Vec<Judged> = judged.collect::<Result<_, _>>()?;
    let value = |judged: &Judged| [1, 3, 5].map(|k| judged.metrics.value(Metric::Precision(k)).unwrap_or(0.0));
    let total = |judged: &Judged| value(judged).iter().sum::<f64>();
    let best = judged.iter().reduce(|best, next| if total(next) > total(best) { next } else { best });
    let kind = best.map_or(RuleKind::ReciprocalRanks, |best| best.rule);
    let all: Vec<u32> = (0..sample.targets.len() as u32).collect();
    let rule = sample.learn(kind, all, params, cancel)?;
    let members = answers.iter().map(|answers| metrics(truth, answers)).collect::<Result<_, _>>()?;
    let n_candidates = sample.targets.len();
    Ok(Fitted { features: sample.features, rule, judged, members, n_candidates, n_true })
}

fn metrics(truth: &LabelRows, answers: &RankedBatch) -> Result<MetricReport, EvaluateError> {
    evaluate(truth, answers, EvaluatorParams { ks: vec![1, 3, 5], ..EvaluatorParams::new(truth.n_labels()) })
}

/// Which part of the rows each belongs to.
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
        let scales = answers.iter().map(|answers| Scale::of(best(answers).map(|s| s.score))).collect();
        let features = Features::new(scales, label_counts.to_vec());
        let (mut values, mut sums, mut ends) = (Vec::new(), Vec::new(), Vec::new());
        let (mut labels, mut of_row, mut is_true) = (Vec::new(), Vec::new(), Vec::<Vec<u32>>::new());
        let mut scratch = Default::default();
        for row in 0..truth.len() {
            let lists: Vec<&[Scored]> = answers.iter().map(|answers| answers.row(row)).collect();
            labels.clear();
            features.fill(&lists, &mut scratch, &mut labels, &mut values);
            super::candidates(&lists, DEPTH, &mut of_row);
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

    /// Numbers of all candidates, as a rule sees them.
    fn rows(&self, kind: RuleKind) -> DenseRows<'_> {
        match kind {
            RuleKind::ReciprocalRanks => DenseRows::new(&self.sums, 1),
            RuleKind::Logistic | RuleKind::Net => DenseRows::new(&self.values, self.features.n()),
        }
    }

    /// Ranks each fold by a rule that was fitted on the others.
    fn judge(
        &self,
        kind: RuleKind,
        folds: &Folds,
        params: &FitParams,
        cancel: &dyn Cancel,
    ) -> Result<Judged, FitError> {
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
        for row in 0..self.truth.len() {
            let lists: Vec<&[Scored]> = self.answers.iter().map(|answers| answers.row(row)).collect();
            let rule = &rules[folds.of_row[row] as usize];
            rule.rank(&self.features, std::iter::once(&lists[..]), &mut scratch, |answer| {
                let is_true = |s: &Scored| self.truth.row(row).binary_search(&s.label).is_ok();
                said.extend(answer.iter().map(|s| (s.score, is_true(s))));
                ranked.push_row(answer);
            });
        }
        let metrics = metrics(self.truth, &ranked)?;
        Ok(Judged { rule: kind, metrics, log_loss: log_loss(&said), calibration_error: calibration_error(&mut said) })
    }

    /// Fits a rule on some candidates.
    fn learn(
        &self,
        kind: RuleKind,
        candidates: Vec<u32>,
        params: &FitParams,
        cancel: &dyn Cancel,
    ) -> Result<Rule, FitError> {
        let rows = self.rows(kind);
        let hidden = if kind == RuleKind::Net { vec![params.hidden] } else { Vec::new() };
        let n = if kind == RuleKind::Net { params.networks } else { 1 };
        let failed = |source| FitError::Train { rule: kind, source };
        let learn = |number: usize| {
            let seed = mix(name(params.seed, Purpose::Repetition, &[kind as u64]), number as u64);
            network(rows, &self.targets, candidates.clone(), hidden.clone(), params, seed, cancel)
        };
        let networks: Vec<Classifier> = (0..n).map(learn).collect::<Result<_, _>>().map_err(failed)?;
        if kind != RuleKind::ReciprocalRanks {
            return Ok(Rule::Network(networks));
        }
        // The line through its logits at the sums 0 and 1.
        let mut ends = Vec::new();
        mean_logits(&networks, DenseRows::new(&[0.0, 1.0], 1), &mut Default::default(), &mut ends);
        let (slope, bias) = (ends[1] - ends[0], ends[0]);
        if slope > 0.0 { Ok(Rule::ReciprocalRanks { slope, bias }) } else { Err(FitError::Slope) }
    }
}

/// Stops a training when somebody asks.
struct Watch<'a>(&'a dyn Cancel);

impl Cancel for Watch<'_> {
    fn cancelled(&self) -> bool {
        self.0.cancelled()
    }
}

impl Observer for Watch<'_> {
    fn event(&self, _: Event<'_>) {}
}

/// Learns the chance that a candidate is true.
fn network(
    rows: DenseRows<'_>,
    targets: &LabelRows,
    candidates: Vec<u32>,
    hidden: Vec<usize>,
    params: &FitParams,
    seed: u64,
    cancel: &dyn Cancel,
) -> Result<Classifier, TrainError> {
    let mut of = preset::dense().params;
    let encoder = of.encoder;
    of.encoder = EncoderParams { input: InputKind::Dense, widths: hidden, input_dropout: 0.0, dropout: 0.0, ..encoder };
    (of.loss, of.seed) = (Loss::Bce, seed);
    let made = Classifier::new(preset::DENSE, rows.width(), 1, of);
    let mut network = made.unwrap_or_else(|e| panic!("a small network is possible: {e}"));
    let examples = Examples::try_new(Rows::Dense(rows), targets);
    let examples = examples.unwrap_or_else(|e| panic!("a target for each candidate: {e}"));
    let steps = (candidates.len().div_ceil(BATCH) as u64) * u64::from(params.epochs);
    let mut schedule = WarmupCosine { warmup: steps / 20, total: steps, floor: 0.0 };
    let training = TrainParams {
        batch_size: BATCH,
        epochs: params.epochs,
        rate: params.rate,
        seed,
        monitor: Monitor::Loss,
        keep: Keep::Last,
        ..TrainParams::default()
    };
    let watch = Watch(cancel);
    let mut trainer = Trainer {
        loss: Loss::Bce,
        optimizer: Optimizer::adam(),
        schedule: &mut schedule,
        params: training,
        checkpoint: None,
        observer: &watch,
    };
    let train = Subset::some(examples, candidates);
    network.initialise(&train, &watch)?;
    network.train(&mut trainer, &train, None)?;
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
    said.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let of = |group: &[(f32, bool)]| {
        let mean = group.iter().map(|s| f64::from(s.0)).sum::<f64>();
        (mean - group.iter().filter(|s| s.1).count() as f64).abs()
    };
    said.chunks(said.len().div_ceil(10).max(1)).map(of).sum::<f64>() / said.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use rayon::ThreadPoolBuilder;
    use xc_sparse::rank::rank_order;

    const N_LABELS: u32 = 50;

    struct Never;

    impl Cancel for Never {}

    /// Answers of a member that sees the true labels through noise: the larger, the blurrier.
    fn member(truth: &LabelRows, noise: f32, seed: u64) -> RankedBatch {
        let (mut stream, mut out) = (Stream::new(seed), RankedBatch::new());
        for labels in truth.iter() {
            let mut values = vec![0.0; N_LABELS as usize];
            stream.fill_uniform(noise, &mut values);
            let score = |(label, value): (u32, &f32)| {
                let z = value + if labels.contains(&label) { 1.0 } else { -1.0 };
                Scored { label, score: 1.0 / (1.0 + (-z).exp()) }
            };
            let mut row: Vec<Scored> = (0..).zip(&values).map(score).collect();
            row.sort_by(|&a, &b| rank_order(a, b));
            row.truncate(DEPTH + 5);
            out.push_row(&row);
        }
        out
    }

    fn truth(n: u32, seed: u32) -> LabelRows {
        let label = |i: u32, times: u32| (i * times + seed) % N_LABELS;
        let rows =
            (0..n).map(|i| if i % 5 == 0 { vec![label(i, 7)] } else { vec![label(i, 3) / 2, 25 + label(i, 3) / 2] });
        LabelRows::from_lists(rows, N_LABELS as usize).unwrap()
    }

    fn quick(rule: Option<RuleKind>) -> FitParams {
        FitParams { rule, networks: 2, epochs: 8, ..FitParams::default() }
    }

    /// Ranked lists of some rows.
    fn ranked(fitted: &Fitted, answers: &[RankedBatch]) -> RankedBatch {
        let rows = (0..answers[0].len()).map(|row| answers.iter().map(|of| of.row(row)).collect::<Vec<_>>());
        let (rows, mut out) = (rows.collect::<Vec<_>>(), RankedBatch::new());
        let lists = rows.iter().map(|lists| &lists[..]);
        fitted.rule.rank(&fitted.features, lists, &mut RuleScratch::default(), |row| out.push_row(row));
        out
    }

    fn p1(truth: &LabelRows, answers: &RankedBatch) -> f64 {
        metrics(truth, answers).unwrap().value(Metric::Precision(1)).unwrap()
    }

    #[test]
    fn a_blend_is_better_than_its_members_on_rows_that_it_has_not_seen() {
        let (held_out, test) = (truth(400, 1), truth(400, 3));
        let answers = |of: &LabelRows, seed| [member(of, 2.0, seed), member(of, 2.5, seed + 1)];
        let fitted = fit(&answers(&held_out, 1), &held_out, &[9; 50], &quick(None), &Never).unwrap();
        let seen = answers(&test, 5);
        let blended = ranked(&fitted, &seen);
        assert_eq!(blended.check(), Ok(()));
        let best = p1(&test, &seen[0]).max(p1(&test, &seen[1]));
        assert!(p1(&test, &blended) > best + 0.05, "{} beside {best}", p1(&test, &blended));
        assert!(fitted.judged.iter().all(|judged| judged.calibration_error < 0.03), "{:?}", fitted.judged);
        assert_eq!((fitted.judged.len(), fitted.members.len()), (3, 2));
    }

    #[test]
    fn the_same_bits_at_any_number_of_threads_and_for_a_row_alone() {
        let rows = truth(90, 2);
        let answers = [member(&rows, 2.0, 1), member(&rows, 3.0, 2)];
        for rule in RuleKind::ALL {
            let of_threads = [1, 3].map(|n| {
                let pool = ThreadPoolBuilder::new().num_threads(n).build().unwrap();
                pool.install(|| {
                    let fitted = fit(&answers, &rows, &[9; 50], &quick(Some(rule)), &Never).unwrap();
                    assert_eq!(fitted.rule.kind(), rule);
                    let all = ranked(&fitted, &answers);
                    let alone = |row| {
                        let alone = answers.each_ref().map(|of| {
                            let mut one = RankedBatch::new();
                            one.push_row(of.row(row));
                            one
                        });
                        ranked(&fitted, &alone).row(0).to_vec()
                    };
                    assert!((0..rows.len()).step_by(17).all(|row| alone(row) == all.row(row)));
                    all
                })
            });
            assert_eq!(of_threads[0], of_threads[1], "{rule}");
        }
    }

    /// Loss of a linear function of the numbers, in f64, and its gradient.
    fn loss_of(weights: &[f64], rows: &[f32], targets: &LabelRows) -> (f64, Vec<f64>) {
        let n = weights.len() - 1;
        let (mut loss, mut gradient) = (0.0, vec![0.0; n + 1]);
        for (row, target) in rows.chunks_exact(n).zip(targets.iter()) {
            let z = row.iter().zip(weights).map(|(x, w)| f64::from(*x) * w).sum::<f64>() + weights[n];
            let (p, y) = (1.0 / (1.0 + (-z).exp()), if target.is_empty() { 0.0 } else { 1.0 });
            loss -= if y > 0.0 { p.ln() } else { (1.0 - p).ln() };
            row.iter().zip(&mut gradient).for_each(|(x, g)| *g += (p - y) * f64::from(*x));
            gradient[n] += p - y;
        }
        let scale = 1.0 / targets.len() as f64;
        (loss * scale, gradient.into_iter().map(|g| g * scale).collect())
    }

    #[test]
    fn the_logistic_rule_comes_near_the_least_loss_of_any() {
        let rows = truth(300, 4);
        let answers = [member(&rows, 2.0, 1), member(&rows, 3.0, 2)];
        let sample = Sample::new(&answers, &rows, &[9; 50]);
        let (values, n) = (&sample.values[..], sample.features.n());
        // The reference: descent along a gradient that finite differences confirm.
        let mut best = vec![0.0; n + 1];
        let (loss, gradient) = loss_of(&best, values, &sample.targets);
        for at in 0..=n {
            let mut moved = best.clone();
            moved[at] += 1e-5;
            let slope = (loss_of(&moved, values, &sample.targets).0 - loss) / 1e-5;
            assert!((slope - gradient[at]).abs() < 1e-4, "number {at}: {slope} beside {}", gradient[at]);
        }
        for _ in 0..1500 {
            let gradient = loss_of(&best, values, &sample.targets).1;
            best.iter_mut().zip(gradient).for_each(|(w, g)| *w -= 0.5 * g);
        }
        let least = loss_of(&best, values, &sample.targets).0;
        let all = (0..sample.targets.len() as u32).collect();
        let rule = sample.learn(RuleKind::Logistic, all, &quick(None), &Never).unwrap();
        let Rule::Network(networks) = &rule else { panic!("a logistic rule is a network") };
        let parameters = networks[0].network().parameters();
        let weights: Vec<f64> =
            parameters.iter().flat_map(|p| p.parameter.values()).map(|&value| f64::from(value)).collect();
        let got = loss_of(&weights, values, &sample.targets).0;
        assert!(got < 1.02 * least, "{got}, the least is about {least}");
    }

    #[test]
    fn logits_of_a_net_are_those_of_the_definition() {
        let rows = truth(60, 4);
        let answers = [member(&rows, 2.0, 1)];
        let sample = Sample::new(&answers, &rows, &[9; 50]);
        let all = (0..sample.targets.len() as u32).collect();
        let params = FitParams { networks: 1, hidden: 5, ..quick(None) };
        let rule = sample.learn(RuleKind::Net, all, &params, &Never).unwrap();
        let Rule::Network(networks) = &rule else { panic!("a net is a network") };
        let parameters = networks[0].network().parameters();
        let values = |name: &str| parameters.iter().find(|p| p.name == name).unwrap().parameter.values();
        let [weights, bias] = [values("layer1.weights"), values("layer1.bias")];
        let mut logits = Vec::new();
        mean_logits(networks, sample.rows(RuleKind::Net), &mut Default::default(), &mut logits);
        for (row, logit) in sample.values.chunks_exact(sample.features.n()).zip(logits) {
            let unit = |(weights, bias): (&[f32], &f32)| {
                (weights.iter().zip(row).map(|(w, x)| f64::from(w * x)).sum::<f64>() + f64::from(*bias)).max(0.0)
            };
            let hidden = weights.chunks_exact(row.len()).zip(bias).map(unit);
            let expected = hidden.zip(values("head.weights")).map(|(h, w)| h * f64::from(*w)).sum::<f64>();
            let expected = expected + f64::from(values("head.bias")[0]);
            assert!((expected - f64::from(logit)).abs() < 1e-3, "{logit}, expected {expected}");
        }
    }

    #[test]
    fn what_cannot_be_fitted_says_why() {
        let rows = truth(20, 1);
        let good = member(&rows, 1.0, 1);
        let said = |answers: &RankedBatch, rows: &LabelRows, params: &FitParams| {
            fit(std::slice::from_ref(answers), rows, &[1; 50], params, &Never).unwrap_err().to_string()
        };
        let none = LabelRows::from_lists(vec![Vec::<u32>::new(); 20], 50).unwrap();
        assert_eq!(said(&good, &none, &quick(None)), "0 rows with labels; at least 2 are expected");
        let mut empty = RankedBatch::new();
        (0..20).for_each(|_| empty.push_row(&[]));
        let expected = "no candidate is true: no member has a true label among its 30 best";
        assert_eq!(said(&empty, &rows, &quick(None)), expected);
        let mut right = RankedBatch::new();
        rows.iter().for_each(|labels| right.push_row(&[Scored { label: labels[0], score: 0.5 }]));
        let expected = "every candidate is true: there is nothing to tell apart";
        assert_eq!(said(&right, &rows, &quick(None)), expected);
        // A member that ranks the true label last.
        let mut wrong = RankedBatch::new();
        for labels in rows.iter() {
            let other = |i: u32| (labels[0] + 1 + i) % N_LABELS;
            let list = (0..9).map(other).filter(|label| !labels.contains(label)).chain([labels[0]]);
            wrong.push_items(list.enumerate().map(|(i, label)| Scored { label, score: 0.9 - 0.05 * i as f32 }));
        }
        let expected = "candidates are not more often true where their reciprocal ranks are larger";
        assert_eq!(said(&wrong, &rows, &quick(Some(RuleKind::ReciprocalRanks))), expected);
        let params = FitParams { folds: 1, ..quick(None) };
        assert_eq!(said(&good, &rows, &params), "folds 1; at least 2 is expected");
    }

    #[test]
    fn losses_and_calibration_are_those_of_the_definitions() {
        let said = [(0.5, true), (0.5, false)];
        assert!((log_loss(&said) - 2f64.ln()).abs() < 1e-9);
        assert!(log_loss(&[(0.0, false), (1.0, true)]) < 1e-6 && log_loss(&[(1.0, false)]) > 10.0);
        // Groups of two: said 0.25 and 1 each, right in one of two and in both.
        let mut said: Vec<(f32, bool)> = [(0.25, false), (0.25, true), (1.0, true), (1.0, true)].repeat(5);
        assert!((calibration_error(&mut said) - 0.125).abs() < 1e-9);
        assert_eq!((log_loss(&[]), calibration_error(&mut [])), (0.0, 0.0));
    }
}
