//! Figures of labels and instances against counts of pairs, with ties, empty lists and weights.

use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use xc_metrics::{
    Evaluator, EvaluatorParams, InstanceFigures, LabelFigures, Metric, PairFilter, evaluate, worst_instances,
};
use xc_sparse::LabelRows;
use xc_sparse::rank::{RankedBatch, Scored, rank_order};

const N_LABELS: u32 = 7;

#[derive(Clone, Debug)]
struct Case {
    truth: Vec<BTreeSet<u32>>,
    lists: Vec<Vec<Scored>>,
    weights: Vec<f64>,
    ignored: BTreeSet<(usize, u32)>,
    excluded: BTreeSet<usize>,
    ks: Vec<usize>,
    threshold: Option<f32>,
}

fn case() -> impl Strategy<Value = Case> {
    let truth = prop::collection::btree_set(0..N_LABELS + 2, 0..4);
    // Few different scores: ties are the rule.
    let list = prop::collection::btree_map(0..N_LABELS, 0u8..4, 0..6);
    let rows = prop::collection::vec((truth, list, 0u8..4), 1..25);
    let pairs = prop::collection::btree_set((0usize..25, 0..N_LABELS), 0..12);
    let excluded = prop::collection::btree_set(0usize..25, 0..3);
    let ks = prop::collection::btree_set(1usize..8, 1..4);
    (rows, pairs, excluded, ks, prop::option::of(0u8..5)).prop_map(|(rows, ignored, excluded, ks, threshold)| {
        let n = rows.len();
        let ranked = |list: &BTreeMap<u32, u8>| {
            let mut list: Vec<Scored> =
                list.iter().map(|(&label, &score)| Scored { label, score: f32::from(score) / 4.0 }).collect();
            list.sort_by(|&a, &b| rank_order(a, b));
            list
        };
        Case {
            truth: rows.iter().map(|row| row.0.clone()).collect(),
            lists: rows.iter().map(|row| ranked(&row.1)).collect(),
            weights: rows.iter().map(|row| f64::from(row.2) / 2.0).collect(),
            ignored: ignored.into_iter().filter(|pair| pair.0 < n).collect(),
            excluded: excluded.into_iter().filter(|&row| row < n).collect(),
            ks: ks.into_iter().collect(),
            threshold: threshold.map(|at| f32::from(at) / 4.0),
        }
    })
}

impl Case {
    fn params(&self) -> EvaluatorParams {
        EvaluatorParams {
            ks: self.ks.iter().rev().copied().collect(),
            weights: Some(self.weights.clone()),
            filter: PairFilter::try_new(self.ignored.iter().copied().collect(), self.truth.len()).unwrap(),
            exclude: self.excluded.iter().copied().collect(),
            threshold: self.threshold,
            confusions: true,
            ..EvaluatorParams::new(N_LABELS as usize)
        }
    }

    fn truth(&self) -> LabelRows {
        LabelRows::from_lists(
            self.truth.iter().map(|row| row.iter().copied().collect::<Vec<_>>()),
            N_LABELS as usize + 2,
        )
        .unwrap()
    }

    fn predictions(&self) -> RankedBatch {
        let mut batch = RankedBatch::new();
        self.lists.iter().for_each(|list| batch.push_row(list));
        batch
    }

    fn rows(&self) -> impl Iterator<Item = usize> {
        (0..self.truth.len()).filter(|row| !self.excluded.contains(row))
    }

    fn is_true(&self, row: usize, label: u32) -> bool {
        self.truth[row].contains(&label) && !self.ignored.contains(&(row, label))
    }

    /// The labels of a list where it is cut: at a k, or by the threshold.
    fn cut(&self, row: usize, k: Option<usize>) -> Vec<u32> {
        let kept = self.lists[row].iter().filter(|item| !self.ignored.contains(&(row, item.label)));
        match k {
            Some(k) => kept.take(k).map(|item| item.label).collect(),
            None => kept.filter(|item| item.score >= self.threshold.unwrap()).map(|item| item.label).collect(),
        }
    }

    /// Instances, weighted, of which something holds.
    fn weight_of(&self, holds: impl Fn(usize) -> bool) -> f64 {
        self.rows().filter(|&row| holds(row)).map(|row| self.weights[row]).sum()
    }
}

fn share(a: f64, b: f64) -> f64 {
    if b == 0.0 { 0.0 } else { a / b }
}

/// Everything that is said about a label, by counting pairs one by one.
fn expected(case: &Case, label: u32) -> Option<LabelFigures> {
    let cuts: Vec<Option<usize>> = case.ks.iter().copied().map(Some).chain(case.threshold.map(|_| None)).collect();
    let support = case.weight_of(|row| case.is_true(row, label));
    let mut figures = LabelFigures { label, support, at_k: Vec::new(), at_threshold: None, confused: None };
    for &cut in &cuts {
        let has = |row: usize| case.cut(row, cut).contains(&label);
        let predicted = case.weight_of(has);
        let correct = case.weight_of(|row| has(row) && case.is_true(row, label));
        let (precision, recall) = (share(correct, predicted), share(correct, support));
        // The harmonic mean, where there is one.
        let f1 = share(2.0 * precision * recall, precision + recall);
        let of = xc_metrics::LabelCut { predicted, correct, precision, recall, f1 };
        match cut {
            Some(_) => figures.at_k.push(of),
            None => figures.at_threshold = Some(of),
        }
    }
    let cut = case.threshold.map_or(Some(case.ks[0]), |_| None);
    for other in 0..N_LABELS {
        let times = case.weight_of(|row| {
            let list = case.cut(row, cut);
            case.is_true(row, label) && !list.contains(&label) && list.contains(&other) && !case.is_true(row, other)
        });
        if times > figures.confused.map_or(0.0, |best| best.1) {
            figures.confused = Some((other, times));
        }
    }
    let is_predicted = figures.at_k.iter().chain(&figures.at_threshold).any(|cut| cut.predicted > 0.0);
    (support > 0.0 || is_predicted).then_some(figures)
}

proptest! {
    #[test]
    fn figures_of_labels_equal_counts_of_pairs(case in case()) {
        let mut evaluator = Evaluator::new(case.params()).unwrap();
        evaluator.add_batch(&case.truth(), &case.predictions()).unwrap();
        let got = evaluator.labels();
        let want: Vec<LabelFigures> = (0..N_LABELS + 2).filter_map(|label| expected(&case, label)).collect();
        prop_assert_eq!(got.len(), want.len());
        for (got, want) in got.iter().zip(&want) {
            prop_assert_eq!((got.label, got.support, got.confused), (want.label, want.support, want.confused));
            prop_assert_eq!((got.at_k.len(), got.at_threshold.is_some()), (want.at_k.len(), want.at_threshold.is_some()));
            let cuts = |of: &LabelFigures| of.at_k.iter().chain(&of.at_threshold).copied().collect::<Vec<_>>();
            for (got, want) in cuts(got).iter().zip(cuts(want)) {
                prop_assert_eq!((got.predicted, got.correct), (want.predicted, want.correct));
                for (got, want) in [(got.precision, want.precision), (got.recall, want.recall), (got.f1, want.f1)] {
                    prop_assert!((got - want).abs() < 1e-12, "{} {}", got, want);
                }
            }
        }
        // The macro mean is over the labels of the truth.
        if let Ok(report) = evaluate(&case.truth(), &case.predictions(), case.params()) {
            for (at, &k) in case.ks.iter().enumerate() {
                let own: Vec<f64> = got.iter().filter(|l| l.support > 0.0).map(|l| l.at_k[at].f1).collect();
                let mean = share(own.iter().sum(), own.len() as f64);
                prop_assert!((report.value(Metric::MacroF1(k)).unwrap() - mean).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn the_worst_instances_are_those_of_a_sort_of_all(case in case(), n in 0usize..30) {
        let k = *case.ks.last().unwrap();
        let mut all: Vec<(InstanceFigures, f32)> = Vec::new();
        for row in case.rows() {
            let labels: Vec<u32> = (0..N_LABELS + 2).filter(|&label| case.is_true(row, label)).collect();
            if labels.is_empty() {
                continue;
            }
            let list = case.cut(row, Some(k));
            let gain = |rank: usize| 1.0 / ((rank + 2) as f64).log2();
            let hits: Vec<usize> = (0..list.len()).filter(|&at| labels.contains(&list[at])).collect();
            let ideal: f64 = (0..k.min(labels.len())).map(gain).sum();
            let whole = case.cut(row, Some(usize::MAX));
            let wrong = whole.iter().find(|label| !labels.contains(label));
            let score = |label: u32| case.lists[row].iter().find(|item| item.label == label).unwrap().score;
            all.push((
                InstanceFigures {
                    instance: row,
                    precision: hits.len() as f64 / k as f64,
                    ndcg: hits.iter().map(|&at| gain(at)).sum::<f64>() / ideal,
                    recall: hits.len() as f64 / labels.len() as f64,
                },
                wrong.map_or(f32::NEG_INFINITY, |&label| score(label)),
            ));
        }
        all.sort_by(|a, b| {
            a.0.ndcg.total_cmp(&b.0.ndcg).then(b.1.total_cmp(&a.1)).then(a.0.instance.cmp(&b.0.instance))
        });
        all.truncate(n);
        let got = worst_instances(&case.truth(), &case.predictions(), &case.params(), k, n).unwrap();
        let want: Vec<InstanceFigures> = all.into_iter().map(|(figures, _)| figures).collect();
        prop_assert_eq!(got, want);
    }
}
