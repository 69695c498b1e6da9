//! Rankers against one scalar ranker after the other, awkward labels, threads, cancelling.

use super::*;
use crate::train::linear::{Loss, reference};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use xc_buffer::Cancel;
use xc_buffer::Silent;
use xc_hash::stream::{Stream, mix};

fn matrix(rows: &[Vec<(u8, i8)>], n_features: usize) -> CsrMatrix {
    let (mut indptr, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for row in rows {
        let mut row: Vec<(u32, f32)> =
            row.iter().map(|&(f, v)| (u32::from(f) % n_features as u32, f32::from(v) / 64.0)).collect();
        row.sort_by_key(|e| e.0);
        row.dedup_by_key(|e| e.0);
        indices.extend(row.iter().map(|e| e.0));
        values.extend(row.iter().map(|e| e.1));
        indptr.push(indices.len());
    }
    CsrMatrix::from_checked((rows.len(), n_features), indptr, indices, values)
}

/// By the definition, without threads, lanes or shared memory.
fn expected(features: CsrView<'_>, rows: &RankerRows<'_>, params: &LinearParams, seed: u64) -> Vec<(Vec<u32>, u32)> {
    let ranker = |label: usize| {
        let weight = |row: u32| rows.instance_weights.map_or(1.0, |w| w[row as usize]);
        let of = |list: &[u32]| list.iter().copied().filter(|&row| weight(row) > 0.0).collect::<BTreeSet<u32>>();
        let (own, others) = (of(rows.positives.row(label)), of(rows.negatives.row(label)));
        let all: Vec<u32> = own.union(&others).copied().collect();
        if own.is_empty() || own.len() == all.len() {
            let bias = if own.is_empty() && params.bias > 0.0 { -1.0f32 } else { 0.0 };
            return (vec![0; features.cols()], bias.to_bits());
        }
        let positive: Vec<u16> = all.iter().map(|row| u16::from(own.contains(row))).collect();
        let inverse: Vec<f32> = all.iter().map(|&row| 1.0 / weight(row)).collect();
        let inverse = rows.instance_weights.map(|_| &inverse[..]);
        let (mut w, bias) = reference::ranker(features, &all, &positive, inverse, params, mix(seed, label as u64));
        w.iter_mut().filter(|w| w.abs() < params.prune_below).for_each(|w| *w = 0.0);
        (w.iter().map(|w| (w + 0.0).to_bits()).collect(), bias.to_bits())
    };
    (0..rows.positives.len()).map(ranker).collect()
}

fn dense(rankers: &Rankers) -> Vec<(Vec<u32>, u32)> {
    let label = |label: usize| {
        let mut w = vec![0; rankers.weights.cols()];
        rankers.weights.row(label).iter().for_each(|(f, v)| w[f as usize] = v.to_bits());
        (w, rankers.bias[label].to_bits())
    };
    assert_eq!(rankers.weights.rows(), rankers.bias.len());
    (0..rankers.bias.len()).map(label).collect()
}

fn on_threads(n: usize, solve: impl FnOnce() -> Rankers + Send) -> Rankers {
    rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap().install(solve)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn rankers_have_the_bits_of_the_reference(
        rows in prop::collection::vec(prop::collection::vec((any::<u8>(), any::<i8>()), 0..12), 0..30),
        // For each label a byte a row: positive, negative, both, or neither.
        kinds in prop::collection::vec(prop::collection::vec(0u8..7, 30), 0..9),
        prune_below in prop_oneof![Just(0.0f32), Just(0.05), Just(0.2)],
        bias in prop_oneof![Just(0.0f32), Just(1.0)],
        weighted: bool,
        seed: u64,
    ) {
        let features = matrix(&rows, 37);
        let list = |kinds: &Vec<u8>, which: &[u8]| -> Vec<u32> {
            (0..rows.len() as u32).filter(|&row| which.contains(&kinds[row as usize])).collect()
        };
        let positives = LabelRows::from_lists(kinds.iter().map(|k| list(k, &[0, 1])), rows.len()).unwrap();
        let negatives = LabelRows::from_lists(kinds.iter().map(|k| list(k, &[1, 2, 3, 4])), rows.len()).unwrap();
        let weights: Vec<f32> = (0..rows.len()).map(|row| (row % 4) as f32 * 0.5).collect();
        let rows = RankerRows { instance_weights: weighted.then_some(&weights[..]), ..RankerRows::new(&positives, &negatives) };
        let params = LinearParams { prune_below, bias, ..LinearParams::of_own_rows() };
        let solved = solve(features.view(), &rows, &params, seed, &Silent).unwrap();
        prop_assert_eq!(dense(&solved), expected(features.view(), &rows, &params, seed));
    }
}

/// Lists of some thousand rows for 90 labels, of very different lengths.
fn large() -> (CsrMatrix, LabelRows, LabelRows) {
    let mut rng = Stream::new(3);
    let rows: Vec<Vec<(u8, i8)>> =
        (0..3000).map(|_| (0..4).map(|_| (rng.below(200) as u8, 20 + rng.below(20) as i8)).collect()).collect();
    let mut lists = |most: u32| {
        let lists: Vec<Vec<u32>> =
            (0..90u32).map(|label| (0..most / (1 + label % 9)).map(|_| rng.below(3000)).collect()).collect();
        LabelRows::from_lists(lists, 3000).unwrap()
    };
    let (positives, negatives) = (lists(90), lists(2800));
    (matrix(&rows, 200), positives, negatives)
}

#[test]
fn any_number_of_threads_gives_the_same_bits() {
    let (features, positives, negatives) = large();
    let rows = RankerRows::new(&positives, &negatives);
    assert!(cut(&rows).len() > 3, "the test must be shared by threads");
    let params = LinearParams::of_own_rows();
    let solve = || solve(features.view(), &rows, &params, 5, &Silent).unwrap();
    let one = on_threads(1, solve);
    assert!(one.weights.nnz() > 1000);
    assert_eq!(dense(&one), expected(features.view(), &rows, &params, 5));
    for n in [2, 3] {
        assert_eq!(on_threads(n, solve), one);
    }
}

#[test]
fn labels_are_cut_into_ranges_that_hold_each_once() {
    let (_, positives, negatives) = large();
    let rows = RankerRows::new(&positives, &negatives);
    let ranges = cut(&rows);
    let mut end = 0;
    for (labels, pairs) in &ranges {
        assert_eq!((labels.start, *pairs), (end, labels.clone().map(|label| rows.pairs(label) + 1).sum()));
        assert!(*pairs >= PAIRS_AT_ONCE || labels.end == 90);
        assert!(labels.clone().skip(1).map(|label| rows.pairs(label) + 1).sum::<usize>() < *pairs);
        end = labels.end;
    }
    assert_eq!(end, 90);
    let none = LabelRows::from_lists(Vec::<Vec<u32>>::new(), 4).unwrap();
    assert_eq!(cut(&RankerRows::new(&none, &none)), []);
}

#[test]
fn a_label_that_lacks_a_side_has_no_weights_and_the_bias_of_what_is_known() {
    let features = matrix(&[vec![(0, 64)], vec![(1, 64)], vec![(2, 64)]], 4);
    // Both sides; positives alone; negatives alone; no rows; a negative that is a positive, too.
    let positives = LabelRows::from_lists([vec![0], vec![0, 1], vec![], vec![], vec![1]], 3).unwrap();
    let negatives = LabelRows::from_lists([vec![1], vec![], vec![0, 2], vec![], vec![1]], 3).unwrap();
    let rows = RankerRows::new(&positives, &negatives);
    let params = LinearParams::of_own_rows();
    let rankers = solve(features.view(), &rows, &params, 1, &Silent).unwrap();
    assert_eq!(rankers.weights.row(0).indices(), [0, 1]);
    assert!(rankers.weights.row(0).values()[0] > 0.5 && rankers.weights.row(0).values()[1] < -0.5);
    assert_eq!(rankers.weights.nnz(), 2);
    assert_eq!(rankers.bias[1..], [0.0, -1.0, -1.0, 0.0]);
    // Without the weight of its only negative, label 0 lacks one, too.
    let rows = RankerRows { instance_weights: Some(&[1.0, 0.0, 1.0]), ..rows };
    let rankers = solve(features.view(), &rows, &params, 1, &Silent).unwrap();
    assert_eq!((rankers.weights.nnz(), &rankers.bias[..]), (0, &[0.0, 0.0, -1.0, -1.0, -1.0][..]));
    let params = LinearParams { bias: 0.0, ..params };
    let rankers = solve(features.view(), &rows, &params, 1, &Silent).unwrap();
    assert_eq!(rankers.bias, [0.0; 5]);
    let none = LabelRows::from_lists(Vec::<Vec<u32>>::new(), 3).unwrap();
    let rankers = solve(features.view(), &RankerRows::new(&none, &none), &params, 1, &Silent).unwrap();
    assert_eq!((rankers.weights.rows(), rankers.weights.cols()), (0, 4));
}

#[test]
fn logistic_rankers_of_few_weights_tell_rows_apart() {
    let (features, positives, negatives) = large();
    let rows = RankerRows::new(&positives, &negatives);
    let params = LinearParams { max_weights: Some(40), ..LinearParams::of(Loss::Logistic) };
    let rankers = solve(features.view(), &rows, &params, 2, &Silent).unwrap();
    let score = |label: usize, row: u32| {
        let w = rankers.weights.row(label);
        let value = |f: u32| w.indices().binary_search(&f).map_or(0.0, |at| w.values()[at]);
        features.row(row as usize).iter().map(|(f, x)| x * value(f)).sum::<f32>() + rankers.bias[label]
    };
    let mean = |rows: &[u32], label| rows.iter().map(|&row| score(label, row)).sum::<f32>() / rows.len() as f32;
    for label in 0..90 {
        assert!((1..=40).contains(&rankers.weights.row(label).nnz()));
        assert!(mean(positives.row(label), label) > mean(negatives.row(label), label) + 0.2, "label {label}");
    }
}

/// Counts rankers, and asks to stop after some.
struct Stop {
    after: usize,
    asked: AtomicUsize,
    done: AtomicUsize,
}

impl Cancel for Stop {
    fn cancelled(&self) -> bool {
        self.asked.fetch_add(1, Ordering::Relaxed) >= self.after
    }
}

impl Observer<TreeEvent> for Stop {
    fn event(&self, event: TreeEvent) {
        if let TreeEvent::Rankers { done } = event {
            self.done.fetch_add(done, Ordering::Relaxed);
        }
    }
}

#[test]
fn an_observer_counts_the_rankers_and_stops_between_them() {
    let (features, positives, negatives) = large();
    let rows = RankerRows::new(&positives, &negatives);
    let run = |after| {
        let stop = Stop { after, asked: AtomicUsize::new(0), done: AtomicUsize::new(0) };
        let solved = solve(features.view(), &rows, &LinearParams::of_own_rows(), 5, &stop);
        (solved, stop.done.into_inner())
    };
    let (solved, done) = run(usize::MAX);
    assert_eq!((solved.unwrap().bias.len(), done), (90, 90));
    for after in [0, 1, 2, 30] {
        let (solved, done) = run(after);
        assert!(matches!(solved, Err(TrainError::Cancelled)), "after {after}");
        assert!(done < 90);
    }
}

#[test]
fn lists_weights_and_values_that_do_not_fit_are_refused() {
    let features = matrix(&[vec![(0, 64)], vec![(1, 64)]], 4);
    let lists = |n_labels: usize, n_rows: usize| LabelRows::from_lists(vec![vec![0u32]; n_labels], n_rows).unwrap();
    let solve = |features: &CsrMatrix, rows: &RankerRows<'_>, params: &LinearParams| {
        solve(features.view(), rows, params, 1, &Silent).unwrap_err().to_string()
    };
    let (params, fits) = (LinearParams::of_own_rows(), lists(3, 2));
    let rows = RankerRows::new(&fits, &fits);
    let (fewer, other) = (lists(2, 2), lists(3, 5));
    let got = solve(&features, &RankerRows::new(&fits, &fewer), &params);
    assert_eq!(got, "negatives: 2 rows, expected 3");
    let got = solve(&features, &RankerRows::new(&fits, &other), &params);
    assert_eq!(got, "rows of the negatives: 5 rows, expected 2");
    let got = solve(&features, &RankerRows { instance_weights: Some(&[1.0]), ..rows }, &params);
    assert_eq!(got, "instance weights: 1 rows, expected 2");
    let got = solve(&features, &RankerRows { instance_weights: Some(&[1.0, -1.0]), ..rows }, &params);
    assert_eq!(got, "instance weight 1 is -1, expected a finite number of 0 or more");
    let got = solve(&features, &rows, &LinearParams { cost: 0.0, ..params.clone() });
    assert!(got.contains("linear.cost"), "{got}");
    let infinite = CsrMatrix::from_checked((2, 4), vec![0, 1, 1], vec![3], vec![f32::INFINITY]);
    assert_eq!(solve(&infinite, &rows, &params), "features row 0, feature 3: value inf is not finite");
}
