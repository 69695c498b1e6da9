//! Fits a calibration and measures its quality.
//!
//! Rows are split into folds. The reported figures are those of each fold's rows with a calibration
//! fitted on the other folds. The calibration that is returned is fitted on all rows.
//!
//! *Determinism*: the result depends only on the answers, their truth and the parameters.

use rayon::prelude::*;
use serde::Serialize;
use thiserror::Error;
use xc_buffer::Cancel;
use xc_hash::stream::{Purpose, Stream, name};
use xc_metrics::evaluate;
use xc_metrics::{EvaluateError, EvaluatorParams, MetricReport};
use xc_model::calibrate::{
    Calibration, Curve, Method, Pair, Reliability, ThresholdKind, Thresholds, best_by_label, best_macro, best_micro,
};
use xc_sparse::LabelRows;
use xc_sparse::rank::{RankedBatch, Scored};

/// How a calibration is fitted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CalibrateParams {
    /// The kind of curve.
    pub method: Method,
    /// Number of folds, each of which is evaluated by a fit on the others; at least 2.
    pub folds: usize,
    /// Number of true rows that a label needs for its own threshold; others have that of macro F1.
    pub least_true: u64,
    /// Number of best labels that were requested for each row.
    pub top_k: usize,
    /// Seed of the folds.
    pub seed: u64,
}

impl Default for CalibrateParams {
    /// Isotonic, five folds; a label has its own threshold from five true rows on.
    fn default() -> Self {
        Self { method: Method::Isotonic, folds: 5, least_true: 5, top_k: 50, seed: 0 }
    }
}

/// Why a calibration cannot be fitted.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CurveFitError {
    /// A setting out of range.
    #[error("{name} {got}; at least {least} is expected")]
    Setting {
        /// The setting.
        name: &'static str,
        /// Its value.
        got: usize,
        /// Its minimum.
        least: usize,
    },
    /// Too few rows to split.
    #[error("{got} rows; at least 2 are expected")]
    Rows {
        /// How many there are.
        got: usize,
    },
    /// No answer is true.
    #[error("no answer is true: the model has no true label among its best")]
    NoTrue,
    /// A score is NaN.
    #[error("row {row}: the score of label {label} is not a number")]
    NotANumber {
        /// The row.
        row: usize,
        /// The label.
        label: u32,
    },
    /// Answers that cannot be evaluated.
    #[error(transparent)]
    Evaluate(#[from] EvaluateError),
    /// It was asked to stop.
    #[error("stopped")]
    Cancelled,
}

/// The result of a fit.
#[derive(Clone, Debug)]
pub struct FittedCurve {
    /// Fitted on all rows.
    pub calibration: Calibration,
    /// Reliability of the model's own scores; `None` if they do not lie between 0 and 1.
    pub before: Option<Reliability>,
    /// Reliability of the probabilities, each from a fit without its row.
    pub after: Reliability,
    /// Metrics of the answers cut at each kind of threshold, with probabilities and thresholds from
    /// fits without their rows.
    pub decisions: Vec<(ThresholdKind, MetricReport)>,
    /// Number of answers.
    pub n_pairs: u64,
    /// Number of true answers.
    pub n_true: u64,
    /// Number of labels with their own threshold.
    pub n_own: usize,
}

/// Fits a calibration. `answers` has the model's ranked list for each row, and `truth` the rows'
/// labels. Labels from `n_labels` on are unknown to the model and always missed.
///
/// *Cost*: O(n log n) per fold, for n answers; 12 bytes per answer for each fold in progress.
///
/// # Errors
/// Settings out of range; rows that nothing can be learned from; a stop requested by `cancel`.
///
/// # Panics
/// If there are not as many answers as rows.
pub fn fit(
    answers: &RankedBatch,
    truth: &LabelRows,
    n_labels: usize,
    params: &CalibrateParams,
    cancel: &dyn Cancel,
) -> Result<FittedCurve, CurveFitError> {
    assert_eq!(answers.len(), truth.len(), "one answer a row");
    for (name, got, least) in [("folds", params.folds, 2), ("labels asked for", params.top_k, 1)] {
        if got < least {
            return Err(CurveFitError::Setting { name, got, least });
        }
    }
    if truth.len() < 2 {
        return Err(CurveFitError::Rows { got: truth.len() });
    }
    let sample = Sample { answers, truth, n_labels, cancel };
    sample.check()?;
    let all = sample.pairs(|_| true)?;
    let (n_pairs, n_true) = (all.len() as u64, all.iter().filter(|pair| pair.is_true).count() as u64);
    if n_true == 0 {
        return Err(CurveFitError::NoTrue);
    }
    let before = Reliability::of(all.iter().map(|pair| (pair.score, pair.is_true)));
    let (calibration, n_own) = sample.calibration(all, |_| true, params)?;

    let folds = Folds::new(truth.len(), params.folds.min(truth.len()), params.seed);
    let of_folds: Vec<Calibration> = (0..folds.n)
        .into_par_iter()
        .map(|fold| {
            let others = |row: usize| folds.of_row[row] != fold;
            Ok(sample.calibration(sample.pairs(others)?, others, params)?.0)
        })
        .collect::<Result<_, CurveFitError>>()?;
    let (mut judged, mut list) = (Vec::with_capacity(n_pairs as usize), Vec::new());
    let mut kept = ThresholdKind::ALL.map(|kind| (kind, RankedBatch::new()));
    for row in 0..truth.len() {
        sample.go_on(row)?;
        let fitted = &of_folds[folds.of_row[row]];
        answers.row(row).clone_into(&mut list);
        fitted.apply(&mut list);
        judged.extend(list.iter().map(|s| (s.score, sample.is_true(row, s.label))));
        for (kind, batch) in &mut kept {
            batch.push_items(list.iter().copied().filter(|s| s.score >= fitted.thresholds.of(*kind, s.label)));
        }
    }
    // Probabilities lie between 0 and 1.
    let after = Reliability::of(judged.into_iter()).unwrap_or_else(|| panic!("a curve gives probabilities"));
    let decided = EvaluatorParams { ks: vec![1], threshold: Some(f32::NEG_INFINITY), ..EvaluatorParams::new(n_labels) };
    let judge = |(kind, batch): &(ThresholdKind, RankedBatch)| {
        sample.go_on(0)?;
        Ok((*kind, evaluate(truth, batch, decided.clone())?))
    };
    let decisions = kept.iter().map(judge).collect::<Result<Vec<_>, CurveFitError>>()?;
    Ok(FittedCurve { calibration, before, after, decisions, n_pairs, n_true, n_own })
}

/// Answers and their truth.
struct Sample<'a> {
    answers: &'a RankedBatch,
    truth: &'a LabelRows,
    n_labels: usize,
    cancel: &'a dyn Cancel,
}

impl Sample<'_> {
    /// Asks now and then whether to stop.
    fn go_on(&self, row: usize) -> Result<(), CurveFitError> {
        /// Rows between two questions.
        const ASK: usize = 1024;
        if row.is_multiple_of(ASK) && self.cancel.cancelled() { Err(CurveFitError::Cancelled) } else { Ok(()) }
    }

    fn check(&self) -> Result<(), CurveFitError> {
        for (row, list) in self.answers.iter().enumerate() {
            if let Some(s) = list.iter().find(|s| s.score.is_nan()) {
                return Err(CurveFitError::NotANumber { row, label: s.label });
            }
        }
        Ok(())
    }

    fn is_true(&self, row: usize, label: u32) -> bool {
        self.truth.row(row).binary_search(&label).is_ok()
    }

    /// The answers of some rows, sorted by score.
    fn pairs(&self, takes: impl Fn(usize) -> bool) -> Result<Vec<Pair>, CurveFitError> {
        // Curves take finite scores; the order of the others stays.
        let score = |s: &Scored| s.score.clamp(f32::MIN, f32::MAX);
        let mut pairs = Vec::new();
        for (row, list) in self.answers.iter().enumerate() {
            self.go_on(row)?;
            if takes(row) {
                let pair = |s: &Scored| Pair { score: score(s), label: s.label, is_true: self.is_true(row, s.label) };
                pairs.extend(list.iter().map(pair));
            }
        }
        Pair::sort(&mut pairs);
        Ok(pairs)
    }

    /// Number of true instances of each label that the model knows, and of all labels together.
    fn n_true(&self, takes: impl Fn(usize) -> bool) -> (Vec<u64>, u64) {
        let (mut by_label, mut all) = (vec![0; self.n_labels], 0);
        for (_, labels) in self.truth.iter().enumerate().filter(|(row, _)| takes(*row)) {
            all += labels.len() as u64;
            labels.iter().filter_map(|&label| by_label.get_mut(label as usize).map(|n| *n += 1)).for_each(drop);
        }
        (by_label, all)
    }

    /// The calibration of some rows, given their pairs, and the number of labels with their own
    /// threshold.
    fn calibration(
        &self,
        mut pairs: Vec<Pair>,
        takes: impl Fn(usize) -> bool,
        params: &CalibrateParams,
    ) -> Result<(Calibration, usize), CurveFitError> {
        self.go_on(0)?;
        let curve = Curve::fit(&pairs, params.method);
        self.go_on(0)?;
        // The curve is increasing: the order stays.
        pairs.iter_mut().for_each(|pair| pair.score = curve.probability(pair.score));
        let (n_true, all) = self.n_true(takes);
        // If nothing is true, nothing is answered.
        self.go_on(0)?;
        let micro = best_micro(&pairs, all).map_or(1.0, |best| best.threshold);
        let macro_ = best_macro(&pairs, &n_true).map_or(1.0, |best| best.threshold);
        self.go_on(0)?;
        let by_label = best_by_label(&pairs, &n_true, params.least_true, macro_);
        let n_own = n_true.iter().filter(|&&n| n >= params.least_true.max(1)).count();
        let thresholds = Thresholds { micro, macro_, by_label };
        Ok((Calibration { curve, thresholds, top_k: params.top_k }, n_own))
    }
}

/// The fold of each row.
struct Folds {
    of_row: Vec<usize>,
    n: usize,
}

impl Folds {
    fn new(n_rows: usize, n: usize, seed: u64) -> Self {
        let mut rows: Vec<u32> = (0..n_rows as u32).collect();
        Stream::new(name(seed, Purpose::Split, &[3])).shuffle(&mut rows);
        let mut of_row = vec![0; n_rows];
        rows.iter().enumerate().for_each(|(place, &row)| of_row[row as usize] = place % n);
        Self { of_row, n }
    }
}
