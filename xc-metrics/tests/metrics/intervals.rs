//! Bootstrap intervals and paired comparisons.

use crate::{ranked, truth, with_threads};
use rand_xoshiro::{
    Xoshiro256PlusPlus,
    rand_core::{Rng, SeedableRng},
};
use xc_metrics::{
    BootstrapError, BootstrapParams, EvaluatorParams, KeepRows, Metric, MetricReport, Propensity, evaluate,
};

/// Lists of 3 of 20 labels, of which the first is right with chance `right` (in percent), by seed.
fn report(n: usize, seed: u64, right: u64, keep_rows: KeepRows) -> MetricReport {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
    let (mut labels, mut lists) = (Vec::new(), Vec::new());
    for i in 0..n as u32 {
        let label = (i * i) % 20;
        labels.push(vec![label, (label + 5) % 20]);
        let first = if rng.next_u64() % 100 < right { label } else { (label + 1) % 20 };
        lists.push(vec![first, (label + 2) % 20, (label + 5 + (rng.next_u64() % 2) as u32) % 20]);
    }
    let truth = truth(&labels, 20);
    let propensity = Propensity::from_training(&truth, 0.55, 1.5).unwrap();
    let params = EvaluatorParams {
        ks: vec![1, 3],
        propensity: Some(propensity),
        weights: Some((0..n).map(|i| 1.0 + (i % 3) as f64).collect()),
        keep_rows,
        ..EvaluatorParams::new(20)
    };
    evaluate(&truth, &ranked(&lists), params).unwrap()
}

#[test]
fn intervals_hold_the_estimate_and_have_the_textbook_width() {
    let n = 2000;
    let mut report = report(n, 1, 60, KeepRows::Yes);
    report.add_intervals(&BootstrapParams::default()).unwrap();
    for value in report.values() {
        let interval = value.interval.unwrap();
        assert!(interval.contains(value.value), "{value:?}");
        assert!(interval.low >= 0.0 && interval.high <= 1.0, "{value:?}");
    }
    // P@1 is a weighted share p of n: standard error sqrt(p (1 - p) * sum w^2) / sum w.
    let p = report.value(Metric::Precision(1)).unwrap();
    let weights: Vec<f64> = (0..n).map(|i| 1.0 + (i % 3) as f64).collect();
    let error = (p * (1.0 - p) * weights.iter().map(|w| w * w).sum::<f64>()).sqrt() / weights.iter().sum::<f64>();
    let interval = report.values()[0].interval.unwrap();
    let width = (interval.high - interval.low) / (2.0 * 1.96 * error);
    assert!((0.9..1.1).contains(&width), "width {width} times the textbook one");
}

#[test]
fn same_seed_same_interval_at_any_number_of_threads() {
    let run = |threads, seed| {
        with_threads(threads, || {
            let mut report = report(700, 2, 50, KeepRows::Yes);
            report.add_intervals(&BootstrapParams { resamples: 50, seed, ..BootstrapParams::default() }).unwrap();
            serde_json::to_string(&report).unwrap()
        })
    };
    let one = run(1, 7);
    assert_eq!(one, run(3, 7));
    assert_eq!(one, run(8, 7));
    assert_ne!(one, run(1, 8));
    assert!(one.contains(r#""intervals":{"level":0.95,"resamples":50,"seed":7,"P@1":["#), "{one}");
}

#[test]
fn a_report_against_itself_differs_by_nothing() {
    let report = report(300, 3, 50, KeepRows::Yes);
    let comparison = report.compare(&report, &BootstrapParams { resamples: 20, ..Default::default() }).unwrap();
    for d in comparison.differences() {
        assert_eq!((d.difference, d.interval.low, d.interval.high), (0.0, 0.0, 0.0), "{d:?}");
    }
}

#[test]
fn the_paired_interval_is_narrower_and_finds_a_real_difference() {
    // Seeds are shared: the two systems err on the same instances, one on some more.
    let (mut good, mut bad) = (report(1500, 4, 64, KeepRows::Yes), report(1500, 4, 60, KeepRows::Yes));
    let params = BootstrapParams::default();
    let comparison = good.compare(&bad, &params).unwrap();
    let paired = comparison.difference(Metric::Precision(1)).unwrap();
    assert!(paired.difference > 0.0 && paired.interval.low > 0.0, "{paired:?}");
    assert!(paired.interval.contains(paired.difference));
    good.add_intervals(&params).unwrap();
    bad.add_intervals(&params).unwrap();
    let width = |r: &MetricReport| r.values()[0].interval.map(|i| i.high - i.low).unwrap();
    assert!(paired.interval.high - paired.interval.low < 0.6 * (width(&good) + width(&bad)));
    let table = comparison.table().to_string();
    assert!(table.starts_with("instances 1500; paired bootstrap: 95 % of 1000 resamples, seed 0\n"), "{table}");
    let json = serde_json::to_value(&comparison).unwrap();
    assert_eq!(json["P@1"]["difference"].as_f64(), Some(paired.difference));
}

#[test]
fn what_cannot_be_resampled_is_an_error() {
    let params = BootstrapParams { resamples: 5, ..Default::default() };
    let mut kept = report(100, 5, 50, KeepRows::Yes);
    let mut dropped = report(100, 5, 50, KeepRows::No);
    assert_eq!(dropped.add_intervals(&params), Err(BootstrapError::RowsDropped));
    assert_eq!(kept.compare(&dropped, &params), Err(BootstrapError::RowsDropped));
    let zero = BootstrapParams { resamples: 0, ..params };
    assert_eq!(kept.add_intervals(&zero), Err(BootstrapError::NoResamples));
    for level in [0.0, 1.0, f64::NAN] {
        assert!(matches!(kept.add_intervals(&BootstrapParams { level, ..params }), Err(BootstrapError::Level { .. })));
    }
    let fewer = report(99, 5, 50, KeepRows::Yes);
    assert_eq!(kept.compare(&fewer, &params), Err(BootstrapError::OtherTruth { left: 100, right: 99 }));
    let with_ks = |truth_rows: [[u32; 1]; 2], ks: Vec<usize>| {
        let params = EvaluatorParams { ks, keep_rows: KeepRows::Yes, ..EvaluatorParams::new(3) };
        evaluate(&truth(&truth_rows, 3), &ranked(&[[0u32], [1]]), params).unwrap()
    };
    let one = with_ks([[0], [1]], vec![1]);
    assert_eq!(
        one.compare(&with_ks([[1], [0]], vec![1]), &params),
        Err(BootstrapError::OtherTruth { left: 2, right: 2 })
    );
    assert_eq!(one.compare(&with_ks([[0], [1]], vec![2]), &params), Err(BootstrapError::OtherMetrics));
}

#[test]
fn one_instance_gives_intervals_without_width() {
    let params = EvaluatorParams { keep_rows: KeepRows::Yes, ..EvaluatorParams::new(3) };
    let mut report = evaluate(&truth(&[[0u32]], 3), &ranked(&[[0u32, 1]]), params).unwrap();
    report.add_intervals(&BootstrapParams { resamples: 3, ..Default::default() }).unwrap();
    assert!(report.values().iter().all(|v| v.interval.is_some_and(|i| i.low == v.value && i.high == v.value)));
}
