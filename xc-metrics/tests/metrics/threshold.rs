//! Precision, recall and F1 at a threshold against their definitions.

use proptest::prelude::*;
use std::collections::HashSet;
use xc_metrics::{Average, Decision, EvaluatorParams, Metric, MetricReport, PairFilter, evaluate};
use xc_sparse::LabelRows;
use xc_sparse::rank::{RankedBatch, Scored};

const N_LABELS: u32 = 8;

#[derive(Clone, Debug)]
struct Row {
    weight: f64,
    truth: Vec<u32>,
    /// Labels with quarter scores, so that many are equal.
    list: Vec<(u32, f32)>,
    ignored: Vec<u32>,
}

fn row() -> impl Strategy<Value = Row> {
    let labels = || prop::collection::btree_set(0..N_LABELS + 2, 0..5);
    let list = prop::collection::btree_map(0..N_LABELS, 0u32..8, 0..8);
    (labels(), list, labels(), 0u32..4).prop_map(|(truth, list, ignored, weight)| {
        let mut list: Vec<(u32, f32)> = list.into_iter().map(|(l, s)| (l, s as f32 / 4.0)).collect();
        list.sort_by(|a, b| b.1.total_cmp(&a.1));
        Row {
            weight: f64::from(weight),
            truth: truth.into_iter().collect(),
            list,
            ignored: ignored.into_iter().collect(),
        }
    })
}

fn report(rows: &[Row], threshold: f32) -> MetricReport {
    let truth = LabelRows::from_lists(rows.iter().map(|r| r.truth.clone()), N_LABELS as usize + 2).unwrap();
    let mut lists = RankedBatch::new();
    for row in rows {
        let list: Vec<Scored> = row.list.iter().map(|&(label, score)| Scored { label, score }).collect();
        lists.push_row(&list);
    }
    let pairs = rows.iter().enumerate().flat_map(|(i, r)| r.ignored.iter().map(move |&l| (i, l))).collect();
    let params = EvaluatorParams {
        ks: vec![1],
        weights: Some(rows.iter().map(|r| r.weight).collect()),
        filter: PairFilter::try_new(pairs, rows.len()).unwrap(),
        threshold: Some(threshold),
        ..EvaluatorParams::new(N_LABELS as usize)
    };
    evaluate(&truth, &lists, params).unwrap()
}

fn divide(a: f64, b: f64) -> f64 {
    if b == 0.0 { 0.0 } else { a / b }
}

/// tp, predicted and true to a score.
fn score(of: Decision, (tp, predicted, n_true): (f64, f64, f64)) -> f64 {
    match of {
        Decision::Precision => divide(tp, predicted),
        Decision::Recall => divide(tp, n_true),
        Decision::F1 => divide(2.0 * tp, predicted + n_true),
    }
}

fn reference(rows: &[Row], threshold: f32, average: Average, of: Decision) -> f64 {
    let sets = |row: &Row| -> (HashSet<u32>, HashSet<u32>) {
        let kept = |l: &u32| !row.ignored.contains(l);
        let predicted = row.list.iter().filter(|e| e.1 >= threshold).map(|e| e.0).filter(kept).collect();
        (predicted, row.truth.iter().copied().filter(kept).collect())
    };
    let counts = |row: &Row, only: Option<u32>| {
        let (predicted, truth) = sets(row);
        let is = |l: &&u32| only.is_none_or(|only| only == **l);
        let tp = predicted.intersection(&truth).filter(is).count() as f64;
        (tp, predicted.iter().filter(is).count() as f64, truth.iter().filter(is).count() as f64)
    };
    let sum = |only: Option<u32>| {
        rows.iter().fold((0.0, 0.0, 0.0), |(a, b, c), row| {
            let (tp, predicted, n_true) = counts(row, only);
            (a + row.weight * tp, b + row.weight * predicted, c + row.weight * n_true)
        })
    };
    match average {
        Average::Micro => score(of, sum(None)),
        Average::Macro => {
            let all = (0..N_LABELS + 2).map(|l| sum(Some(l))).filter(|c| c.2 > 0.0);
            let all: Vec<f64> = all.map(|c| score(of, c)).collect();
            divide(all.iter().sum(), all.len() as f64)
        }
        Average::Instance => {
            let total: f64 = rows.iter().map(|r| r.weight).sum();
            rows.iter().map(|row| row.weight * score(of, counts(row, None))).sum::<f64>() / total
        }
    }
}

proptest! {
    #[test]
    fn every_average_equals_its_definition(rows in prop::collection::vec(row(), 1..30), threshold in -1i32..9) {
        prop_assume!(rows.iter().any(|r| r.weight > 0.0));
        let threshold = threshold as f32 / 4.0;
        let report = report(&rows, threshold);
        prop_assert_eq!(report.threshold(), Some(threshold));
        for average in Average::ALL {
            for decision in Decision::ALL {
                let metric = Metric::AtThreshold(average, decision);
                let (got, want) = (report.value(metric).unwrap(), reference(&rows, threshold, average, decision));
                prop_assert!((got - want).abs() < 1e-12, "{}: {}, reference {}", metric, got, want);
            }
        }
    }
}

#[test]
fn without_a_threshold_there_is_none_and_nan_is_refused() {
    let truth = LabelRows::from_lists([vec![0u32]], 2).unwrap();
    let mut lists = RankedBatch::new();
    lists.push_row(&[Scored { label: 0, score: 0.5 }]);
    let plain = evaluate(&truth, &lists, EvaluatorParams::new(2)).unwrap();
    assert_eq!(plain.threshold(), None);
    assert!(!plain.table().to_string().contains("threshold"));
    assert_eq!(plain.value(Metric::AtThreshold(Average::Micro, Decision::F1)), None);
    let at = |threshold| EvaluatorParams { threshold: Some(threshold), ..EvaluatorParams::new(2) };
    let text = evaluate(&truth, &lists, at(0.5)).unwrap().table().to_string();
    assert!(text.contains("threshold 0.5  precision") && text.contains("per instance"), "{text}");
    let error = evaluate(&truth, &lists, at(f32::NAN)).unwrap_err();
    assert_eq!(error.to_string(), "the threshold must be a number; got NaN");
}
