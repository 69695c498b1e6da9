//! Any case against a reference written from the formulas, metric by metric.

use crate::{ranked, truth, with_threads};
use proptest::prelude::*;
use std::collections::HashSet;
use xc_metrics::{Evaluator, EvaluatorParams, KeepRows, Metric, PairFilter, Propensity, evaluate};

const N_LABELS: u32 = 12;

/// Weight, truth, list.
type Row = (f64, HashSet<u32>, Vec<u32>);

#[derive(Clone, Debug)]
struct Case {
    truth: Vec<Vec<u32>>,
    lists: Vec<Vec<u32>>,
    weights: Vec<f64>,
    pairs: Vec<(usize, u32)>,
    exclude: Vec<usize>,
    ks: Vec<usize>,
    counts: Vec<u32>,
}

fn case() -> impl Strategy<Value = Case> {
    let labels = || prop::collection::hash_set(0..N_LABELS + 2, 0..6);
    let list = Just((0..N_LABELS).collect::<Vec<_>>()).prop_shuffle();
    let row = (labels(), list, 0..=N_LABELS as usize, 0u32..5);
    (
        prop::collection::vec(row, 1..40),
        prop::collection::vec((0usize..40, 0..N_LABELS + 2), 0..30),
        prop::collection::hash_set(0usize..40, 0..4),
        prop::collection::hash_set(1usize..15, 1..5),
        prop::collection::vec(0u32..50, N_LABELS as usize),
    )
        .prop_map(|(rows, pairs, exclude, ks, counts)| {
            let n = rows.len();
            let mut case = Case {
                truth: vec![],
                lists: vec![],
                weights: vec![],
                pairs: pairs.into_iter().filter(|p| p.0 < n).collect(),
                exclude: exclude.into_iter().filter(|&i| i < n).collect(),
                ks: ks.into_iter().collect(),
                counts,
            };
            for (labels, mut list, len, weight) in rows {
                let mut labels: Vec<u32> = labels.into_iter().collect();
                labels.sort_unstable();
                list.truncate(len);
                case.truth.push(labels);
                case.lists.push(list);
                case.weights.push(f64::from(weight) / 2.0);
            }
            case
        })
}

fn params(case: &Case) -> EvaluatorParams {
    EvaluatorParams {
        ks: case.ks.clone(),
        propensity: Some(Propensity::from_counts(100, &case.counts, 0.55, 1.5).unwrap()),
        weights: Some(case.weights.clone()),
        filter: PairFilter::try_new(case.pairs.clone(), case.truth.len()).unwrap(),
        exclude: case.exclude.clone(),
        keep_rows: KeepRows::Yes,
        ..EvaluatorParams::new(N_LABELS as usize)
    }
}

/// Instances that count.
fn kept(case: &Case) -> Vec<Row> {
    let ignored: HashSet<(usize, u32)> = case.pairs.iter().copied().collect();
    (0..case.truth.len())
        .filter(|i| !case.exclude.contains(i))
        .map(|i| {
            let keep = |l: &u32| !ignored.contains(&(i, *l));
            (
                case.weights[i],
                case.truth[i].iter().copied().filter(keep).collect(),
                case.lists[i].iter().copied().filter(keep).collect(),
            )
        })
        .collect()
}

fn discount(rank: usize) -> f64 {
    1.0 / ((rank + 1) as f64).log2()
}

fn divide(a: f64, b: f64) -> f64 {
    if b == 0.0 { 0.0 } else { a / b }
}

fn reference(metric: Metric, case: &Case) -> f64 {
    let rows = kept(case);
    let propensity = params(case).propensity.unwrap();
    let hits = |row: &Row, k: usize| -> Vec<(usize, u32)> {
        let ranks = row.2.iter().copied().take(k).enumerate();
        ranks.filter(|(_, l)| row.1.contains(l)).map(|(r, l)| (r + 1, l)).collect()
    };
    let mean = |f: &dyn Fn(&Row) -> f64| {
        let score = |row| if rows_truth(row) == 0 { 0.0 } else { f(row) };
        rows.iter().map(|row| row.0 * score(row)).sum::<f64>() / rows.iter().map(|r| r.0).sum::<f64>()
    };
    let ideal = |row: &Row, k: usize| (1..=k.min(row.1.len())).map(discount).sum::<f64>();
    let best = |row: &Row, k: usize| {
        let mut all: Vec<f64> = row.1.iter().map(|&l| propensity.inverse(l)).collect();
        all.sort_by(|a, b| b.total_cmp(a));
        all.truncate(k);
        all
    };
    let precision_sum =
        |h: &[(usize, u32)]| h.iter().enumerate().map(|(i, &(r, _))| (i + 1) as f64 / r as f64).sum::<f64>();
    let f1 = |labels: &dyn Fn(u32) -> bool, k: usize| {
        let (mut tp, mut both, mut n_true) = (0.0, 0.0, 0.0);
        for (w, truth, list) in &rows {
            for l in truth.iter().filter(|l| labels(**l)) {
                n_true += w;
                tp += if list.iter().take(k).any(|p| p == l) { *w } else { 0.0 };
            }
            both += w * list.iter().take(k).filter(|l| labels(**l)).count() as f64;
        }
        (tp, both + n_true, n_true)
    };
    let per_label = |k: usize, value: &dyn Fn(f64, f64) -> f64| {
        let all: Vec<f64> = (0..N_LABELS + 2)
            .map(|l| f1(&|m| m == l, k))
            .filter(|c| c.2 > 0.0)
            .map(|(tp, both, _)| value(tp, both))
            .collect();
        divide(all.iter().sum(), all.len() as f64)
    };
    match metric {
        Metric::Precision(k) => mean(&|r| hits(r, k).len() as f64 / k as f64),
        Metric::Ndcg(k) => mean(&|r| hits(r, k).iter().map(|h| discount(h.0)).sum::<f64>() / ideal(r, k)),
        Metric::Recall(k) => mean(&|r| hits(r, k).len() as f64 / r.1.len() as f64),
        Metric::MeanAveragePrecisionAt(k) => mean(&|r| precision_sum(&hits(r, k)) / k.min(r.1.len()) as f64),
        Metric::MeanAveragePrecision => mean(&|r| precision_sum(&hits(r, usize::MAX)) / r.1.len() as f64),
        Metric::MeanReciprocalRank => mean(&|r| hits(r, usize::MAX).first().map_or(0.0, |h| 1.0 / h.0 as f64)),
        Metric::Psp(k) => divide(
            mean(&|r| hits(r, k).iter().map(|h| propensity.inverse(h.1)).sum()),
            mean(&|r| best(r, k).iter().sum()),
        ),
        Metric::Psndcg(k) => divide(
            mean(&|r| hits(r, k).iter().map(|h| propensity.inverse(h.1) * discount(h.0)).sum::<f64>() / ideal(r, k)),
            mean(&|r| best(r, k).iter().enumerate().map(|(i, g)| g * discount(i + 1)).sum::<f64>() / ideal(r, k)),
        ),
        Metric::MicroF1(k) => {
            let (tp, both, _) = f1(&|_| true, k);
            divide(2.0 * tp, both)
        }
        Metric::MacroF1(k) => per_label(k, &|tp, both| divide(2.0 * tp, both)),
        Metric::Coverage(k) => per_label(k, &|tp, _| if tp > 0.0 { 1.0 } else { 0.0 }),
        _ => panic!("no reference for {metric}"),
    }
}

fn rows_truth(row: &Row) -> usize {
    row.1.len()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn every_metric_equals_the_reference(case in case()) {
        prop_assume!(kept(&case).iter().any(|r| r.0 > 0.0));
        let n_labels = N_LABELS as usize + 2;
        let report = evaluate(&truth(&case.truth, n_labels), &ranked(&case.lists), params(&case)).unwrap();
        prop_assert_eq!(report.values().len(), 9 * case.ks.len() + 2);
        for value in report.values() {
            let want = reference(value.metric, &case);
            prop_assert!((value.value - want).abs() < 1e-9, "{}: {}, reference {}", value.metric, value.value, want);
            prop_assert!((-1e-12..=1.0 + 1e-12).contains(&value.value), "{} = {}", value.metric, value.value);
            let is_of_labels = matches!(value.metric, Metric::MacroF1(_) | Metric::Coverage(_));
            let shares = report.by_instance(value.metric);
            prop_assert_eq!(shares.is_none(), is_of_labels);
            if let Some(shares) = shares {
                let mean = shares.iter().sum::<f64>() / shares.len() as f64;
                prop_assert_eq!(shares.len(), kept(&case).len());
                prop_assert!((mean - value.value).abs() < 1e-9, "{}: mean {mean}", value.metric);
            }
        }
        let counted: usize = kept(&case).iter().flat_map(|r| &r.1)
            .filter(|&&l| l >= N_LABELS || case.counts[l as usize] == 0).count();
        prop_assert_eq!(report.counts().unknown_pairs, counted as u64);
    }

    #[test]
    fn rows_batches_parts_and_threads_agree(case in case(), cut in 0usize..40) {
        prop_assume!(kept(&case).iter().any(|r| r.0 > 0.0));
        let (truth, lists) = (truth(&case.truth, N_LABELS as usize + 2), ranked(&case.lists));
        let json = |e: Evaluator| serde_json::to_string(&e.finish().unwrap()).unwrap();
        let mut by_row = Evaluator::new(params(&case)).unwrap();
        for i in 0..truth.len() {
            by_row.add(truth.row(i), lists.row(i)).unwrap();
        }
        let mut by_batch = by_row.part(0);
        with_threads(3, || by_batch.add_batch(&truth, &lists)).unwrap();

        let cut = cut.min(truth.len());
        let mut whole = by_row.part(0);
        let (mut head, mut tail) = (whole.part(0), whole.part(cut));
        for i in 0..truth.len() {
            let part = if i < cut { &mut head } else { &mut tail };
            part.add(truth.row(i), lists.row(i)).unwrap();
        }
        whole.merge(&head);
        whole.merge(&tail);
        let (one, merged) = (by_row.finish().unwrap(), whole.finish().unwrap());
        prop_assert_eq!(serde_json::to_string(&one).unwrap(), json(by_batch));
        prop_assert_eq!(one.counts(), merged.counts());
        for (a, b) in one.values().iter().zip(merged.values()) {
            prop_assert!((a.value - b.value).abs() < 1e-12, "{:?} {:?}", a, b);
        }
    }
}

#[test]
fn many_blocks_are_summed_in_row_order() {
    let n = 40_000; // more than one window of blocks
    let rows: Vec<Vec<u32>> = (0..n).map(|i| vec![i % 97, 97 + i % 31]).collect();
    let lists: Vec<Vec<u32>> = (0..n).map(|i| vec![(i + 1 + i % 5) % 97, i % 97, 97 + i % 29]).collect();
    let (truth, lists) = (truth(&rows, 128), ranked(&lists));
    let params = EvaluatorParams {
        weights: Some((0..n).map(|i| 0.1 + f64::from(i % 13)).collect()),
        ..EvaluatorParams::new(128)
    };
    let run = |threads| {
        let json = || serde_json::to_string(&evaluate(&truth, &lists, params.clone()).unwrap()).unwrap();
        with_threads(threads, json)
    };
    let mut by_row = Evaluator::new(params.clone()).unwrap();
    for i in 0..truth.len() {
        by_row.add(truth.row(i), lists.row(i)).unwrap();
    }
    let one = run(1);
    assert_eq!(one, run(4));
    assert_eq!(one, serde_json::to_string(&by_row.finish().unwrap()).unwrap());
}
