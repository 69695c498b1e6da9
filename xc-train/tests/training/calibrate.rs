//! Curves and thresholds against their definitions.

use proptest::prelude::*;
use std::sync::atomic::{AtomicUsize, Ordering};
use xc_buffer::Cancel;
use xc_metrics::{Average, Decision, Metric};
use xc_model::calibrate::{
    Curve, Method, Pair, Reliability, ThresholdKind, best_by_label, best_macro, best_micro, pool,
};
use xc_sparse::LabelRows;
use xc_sparse::rank::{RankedBatch, Scored, rank_order};
use xc_train::calibrate::{CalibrateParams, CurveFitError, fit};
use xc_train::fit::Silent;

/// Pairs with few different scores, sorted.
fn pairs() -> impl Strategy<Value = Vec<Pair>> {
    let pair = (0u32..12, 0u32..5, any::<bool>());
    prop::collection::vec(pair, 0..40).prop_map(|all| {
        let pair = |(score, label, is_true): (u32, u32, bool)| Pair { score: score as f32 / 12.0, label, is_true };
        let mut pairs: Vec<Pair> = all.into_iter().map(pair).collect();
        Pair::sort(&mut pairs);
        pairs
    })
}

/// Isotonic regression by its formula: at each score the largest, over starts, of the least, over
/// ends, of the mean of what lies between.
fn isotonic(pairs: &[Pair]) -> Vec<(f32, f64)> {
    let mut points: Vec<(f32, f64, f64)> = Vec::new();
    for pair in pairs.iter().rev() {
        match points.last_mut() {
            Some(last) if last.0 == pair.score => (last.1, last.2) = (last.1 + 1.0, last.2 + f64::from(pair.is_true)),
            _ => points.push((pair.score, 1.0, f64::from(pair.is_true))),
        }
    }
    let mean = |from: usize, to: usize| {
        let (n, n_true) = points[from..=to].iter().fold((0.0, 0.0), |sum, p| (sum.0 + p.1, sum.1 + p.2));
        n_true / n
    };
    let value = |at: usize| {
        (0..=at).map(|from| (at..points.len()).map(|to| mean(from, to)).fold(f64::MAX, f64::min)).fold(0.0, f64::max)
    };
    (0..points.len()).map(|at| (points[at].0, value(at))).collect()
}

fn f1(tp: usize, predicted: usize, n_true: u64) -> f64 {
    if tp == 0 { 0.0 } else { 2.0 * tp as f64 / (predicted as u64 + n_true) as f64 }
}

/// Every threshold that cuts these pairs in another way.
fn cuts(pairs: &[Pair]) -> Vec<f32> {
    pairs.iter().map(|pair| pair.score).collect()
}

fn micro(pairs: &[Pair], n_true: u64, threshold: f32) -> f64 {
    let kept: Vec<&Pair> = pairs.iter().filter(|pair| pair.score >= threshold).collect();
    f1(kept.iter().filter(|pair| pair.is_true).count(), kept.len(), n_true)
}

fn of_label(pairs: &[Pair], label: u32) -> Vec<Pair> {
    pairs.iter().copied().filter(|pair| pair.label == label).collect()
}

fn macro_(pairs: &[Pair], n_true: &[u64], threshold: f32) -> f64 {
    let labels: Vec<usize> = (0..n_true.len()).filter(|&label| n_true[label] > 0).collect();
    let own = |label: usize| micro(&of_label(pairs, label as u32), n_true[label], threshold);
    labels.iter().map(|&label| own(label)).sum::<f64>() / labels.len() as f64
}

/// True instances of each label, with some that no pair has.
fn n_true(pairs: &[Pair], more: &[u64]) -> Vec<u64> {
    let found = |label: u32| pairs.iter().filter(|pair| pair.label == label && pair.is_true).count() as u64;
    more.iter().zip(0..).map(|(more, label)| more + found(label)).collect()
}

proptest! {
    #[test]
    fn pooled_blocks_are_the_isotonic_regression(pairs in pairs()) {
        let blocks = pool(&pairs);
        prop_assert!(blocks.is_sorted_by(|a, b| a.score < b.score && a.share() < b.share()), "{:?}", blocks);
        prop_assert_eq!(blocks.iter().map(|block| block.n).sum::<u64>(), pairs.len() as u64);
        let expected = isotonic(&pairs);
        for &(score, value) in &expected {
            // The block of a score: that whose share it has.
            prop_assert!(blocks.iter().any(|block| (block.share() - value).abs() < 1e-12), "{} {}", score, value);
        }
        for block in &blocks {
            let own: Vec<f64> = expected.iter().filter(|e| (e.1 - block.share()).abs() < 1e-12).map(|e| f64::from(e.0)).collect();
            prop_assert!(own[0] <= block.score + 1e-9 && block.score <= own[own.len() - 1] + 1e-9);
        }
    }

    #[test]
    fn curves_rise_and_lists_keep_their_order(pairs in pairs(), scores in prop::collection::vec(prop_oneof![-2.0f32..2.0, Just(0.0), Just(1.0), Just(f32::MAX), Just(f32::MIN), Just(f32::INFINITY), Just(f32::NEG_INFINITY), Just(f32::MIN_POSITIVE)], 0..30)) {
        for method in Method::ALL {
            let curve = Curve::fit(&pairs, method);
            let mut list: Vec<Scored> = (0..).zip(&scores).map(|(label, &score)| Scored { label, score }).collect();
            list.sort_by(|&a, &b| rank_order(a, b));
            let p: Vec<f32> = list.iter().map(|s| curve.probability(s.score)).collect();
            prop_assert!(p.iter().all(|p| (0.0..=1.0).contains(p)), "{:?} {:?}", method, p);
            prop_assert!(p.is_sorted_by(|a, b| a >= b), "{:?}: {:?} of {:?}", curve, p, list);
            prop_assert!(curve.probability(f32::NAN).is_nan());
        }
    }

    #[test]
    fn thresholds_are_those_of_brute_force(pairs in pairs(), more in prop::collection::vec(0u64..3, 5), least in 0u64..4) {
        let n_true = n_true(&pairs, &more);
        let all: u64 = n_true.iter().sum();
        let largest = |value: &dyn Fn(f32) -> f64| cuts(&pairs).into_iter().map(value).fold(0.0, f64::max);
        let (expected, got) = (largest(&|t| micro(&pairs, all, t)), best_micro(&pairs, all));
        match got {
            None => prop_assert_eq!(expected, 0.0),
            Some(best) => {
                prop_assert_eq!(best.f1, expected);
                prop_assert_eq!(micro(&pairs, all, best.threshold), expected);
                // Of equal places the highest.
                let last = cuts(&pairs).into_iter().filter(|&t| t >= best.threshold).fold(f32::MAX, f32::min);
                prop_assert!(cuts(&pairs).into_iter().all(|t| t <= last || micro(&pairs, all, t) < expected));
            }
        }
        let (expected, got) = (largest(&|t| macro_(&pairs, &n_true, t)), best_macro(&pairs, &n_true));
        match got {
            None => prop_assert!(expected.is_nan() || expected == 0.0),
            Some(best) => {
                prop_assert!((best.f1 - expected).abs() < 1e-9);
                prop_assert!((macro_(&pairs, &n_true, best.threshold) - expected).abs() < 1e-9);
            }
        }
        let by_label = best_by_label(&pairs, &n_true, least, 7.0);
        prop_assert_eq!(by_label.len(), 5);
        for (label, &threshold) in by_label.iter().enumerate() {
            let own = of_label(&pairs, label as u32);
            let expected = cuts(&own).into_iter().map(|t| micro(&own, n_true[label], t)).fold(0.0, f64::max);
            if n_true[label] < least.max(1) || expected == 0.0 {
                prop_assert_eq!(threshold, 7.0);
            } else {
                prop_assert_eq!(micro(&own, n_true[label], threshold), expected);
            }
        }
    }

    #[test]
    fn bins_hold_every_score_once(scores in prop::collection::vec((0.0f32..=1.0, any::<bool>()), 0..50)) {
        let reliability = Reliability::of(scores.iter().copied()).unwrap();
        let bins = &reliability.bins;
        prop_assert_eq!(bins.iter().map(|bin| bin.count).sum::<u64>(), scores.len() as u64);
        for (at, bin) in bins.iter().enumerate().filter(|(_, bin)| bin.count > 0) {
            prop_assert!(bin.mean_score >= at as f64 / 10.0 - 1e-6 && bin.mean_score <= (at + 1) as f64 / 10.0 + 1e-6);
        }
        let own: f64 = bins.iter().map(|bin| bin.count as f64 * (bin.mean_score - bin.share_true).abs()).sum();
        prop_assert!((reliability.expected_calibration_error - own / scores.len().max(1) as f64).abs() < 1e-12);
        prop_assert_eq!(Reliability::of(scores.iter().copied().chain([(1.5, true)])), None);
    }

    #[test]
    fn a_fit_says_what_its_thresholds_are_worth_on_rows_apart(rows in prop::collection::vec((prop::collection::btree_map(0u32..4, 0u32..9, 0..4), prop::collection::btree_set(0u32..6, 0..3)), 0..14), folds in 2usize..6) {
        let mut answers = RankedBatch::new();
        for (list, _) in &rows {
            let mut list: Vec<Scored> = list.iter().map(|(&label, &s)| Scored { label, score: s as f32 / 8.0 }).collect();
            list.sort_by(|&a, &b| rank_order(a, b));
            answers.push_row(&list);
        }
        let truth = LabelRows::from_lists(rows.iter().map(|row| row.1.iter().copied().collect::<Vec<u32>>()), 6).unwrap();
        let any_true = rows.iter().any(|(list, truth)| list.keys().any(|label| truth.contains(label)));
        let params = CalibrateParams { folds, ..CalibrateParams::default() };
        match fit(&answers, &truth, 4, &params, &Silent) {
            Err(CurveFitError::Rows { got }) => prop_assert!(got == rows.len() && got < 2),
            Err(CurveFitError::NoTrue) => prop_assert!(!any_true),
            Err(other) => prop_assert!(false, "{}", other),
            Ok(fitted) => {
                prop_assert!(rows.len() >= 2 && any_true);
                prop_assert_eq!(fitted.n_pairs, rows.iter().map(|row| row.0.len() as u64).sum::<u64>());
                let counted: u64 = fitted.after.bins.iter().map(|bin| bin.count).sum();
                prop_assert_eq!(counted, fitted.n_pairs);
                prop_assert_eq!(fitted.decisions.len(), 3);
                let t = &fitted.calibration.thresholds;
                prop_assert!(t.by_label.len() == 4 && t.by_label.iter().chain([&t.micro, &t.macro_]).all(|t| t.is_finite()));
                for (_, report) in &fitted.decisions {
                    let f1 = report.value(Metric::AtThreshold(Average::Micro, Decision::F1)).unwrap();
                    prop_assert!((0.0..=1.0).contains(&f1));
                }
            }
        }
    }
}

#[test]
fn a_calibrated_sample_has_its_own_probabilities_back() {
    // 100,000 answers, of which a share s^2 is true.
    let n = 100_000u32;
    let noise = |i: u32| (u64::from(i) * 2_654_435_761 % 4_294_967_296) as f32 / 4_294_967_296.0;
    let pair = |i: u32| {
        let score = i as f32 / n as f32;
        Pair { score, label: 0, is_true: noise(i) < score * score }
    };
    let mut pairs: Vec<Pair> = (0..n).map(pair).collect();
    Pair::sort(&mut pairs);
    let curve = Curve::fit(&pairs, Method::Isotonic);
    for at in [0.05f32, 0.2, 0.5, 0.8, 0.95] {
        let p = curve.probability(at);
        assert!((p - at * at).abs() < 0.03, "{at}: {p}");
    }
    let before = Reliability::of(pairs.iter().map(|p| (p.score, p.is_true))).unwrap();
    let after = Reliability::of(pairs.iter().map(|p| (curve.probability(p.score), p.is_true))).unwrap();
    assert!(before.expected_calibration_error > 0.15 && after.expected_calibration_error < 0.01);
}

#[test]
fn settings_and_scores_that_cannot_be_are_refused() {
    let truth = LabelRows::from_lists([vec![0u32], vec![0]], 1).unwrap();
    let answers = |score: f32| {
        let mut answers = RankedBatch::new();
        (0..2).for_each(|_| answers.push_row(&[Scored { label: 0, score }]));
        answers
    };
    let said = |score: f32, params: CalibrateParams| {
        fit(&answers(score), &truth, 1, &params, &Silent).unwrap_err().to_string()
    };
    let usual = CalibrateParams::default();
    assert_eq!(said(0.5, CalibrateParams { folds: 1, ..usual }), "folds 1; at least 2 is expected");
    assert_eq!(said(0.5, CalibrateParams { top_k: 0, ..usual }), "labels asked for 0; at least 1 is expected");
    assert_eq!(said(f32::NAN, usual), "row 0: the score of label 0 is not a number");
    // Infinite scores are the largest; one class alone is a curve too.
    for method in Method::ALL {
        let fitted = fit(&answers(f32::INFINITY), &truth, 1, &CalibrateParams { method, ..usual }, &Silent).unwrap();
        assert!(fitted.calibration.curve.probability(f32::INFINITY) > 0.5 && fitted.before.is_none());
        assert_eq!(fitted.calibration.thresholds.of(ThresholdKind::Label, 0), fitted.calibration.thresholds.micro);
    }
}

/// Asks to stop from a question on.
struct From(usize, AtomicUsize);

impl Cancel for From {
    fn cancelled(&self) -> bool {
        self.1.fetch_add(1, Ordering::Relaxed) >= self.0
    }
}

#[test]
fn a_fit_that_is_asked_to_stop_ends_there() {
    let mut answers = RankedBatch::new();
    (0..3000).for_each(|i| answers.push_row(&[Scored { label: i % 3, score: (i % 7) as f32 / 8.0 }]));
    let truth = LabelRows::from_lists((0..3000u32).map(|i| [i % 2]), 3).unwrap();
    let fit = |from: &From| fit(&answers, &truth, 3, &CalibrateParams::default(), from);
    let never = From(usize::MAX, AtomicUsize::new(0));
    let whole = fit(&never).unwrap();
    let asked = never.1.into_inner();
    // Three times in 3,000 rows, and between the steps of each fold.
    assert!(asked > 40, "{asked} questions");
    for from in 0..asked {
        let stopped = fit(&From(from, AtomicUsize::new(0)));
        assert!(matches!(stopped, Err(CurveFitError::Cancelled)), "question {from} of {asked}");
    }
    assert_eq!(fit(&From(asked, AtomicUsize::new(0))).unwrap().calibration, whole.calibration);
}
