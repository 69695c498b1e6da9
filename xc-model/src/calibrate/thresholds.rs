//! The thresholds with the largest F1.

use xc_sparse::LabelRows;
use xc_sparse::rank::{LabelId, RankedBatch};

/// A label in an answer of a model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    /// Its score.
    pub score: f32,
    /// Which label.
    pub label: LabelId,
    /// Whether it is true of the instance.
    pub is_true: bool,
}

impl Pair {
    /// Sorts by score, largest first; equal scores by label.
    pub fn sort(pairs: &mut [Self]) {
        pairs.sort_unstable_by(|a, b| b.score.total_cmp(&a.score).then(a.label.cmp(&b.label)));
    }
}

/// A threshold: labels that score at least this much are answered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BestThreshold {
    /// The threshold.
    pub threshold: f32,
    /// F1 at this threshold.
    pub f1: f64,
}

/// The threshold in the middle between the last score that is answered and the first that is not.
fn between(last: f32, next: Option<f32>) -> f32 {
    match next {
        Some(next) => {
            let middle = (f64::from(last) + f64::from(next)) / 2.0;
            // Rounding may give the lower one.
            if middle as f32 > next { (middle as f32).min(last) } else { last }
        }
        None => last,
    }
}

/// The threshold with the largest micro F1 of ranked lists whose true labels are known, the highest of several; `None`
/// if no answer is true.
///
/// *Cost*: sorts all answers.
///
/// # Panics
/// If there are fewer rows of true labels than lists.
pub fn best_threshold(truth: &LabelRows, answers: &RankedBatch) -> Option<BestThreshold> {
    let mut pairs: Vec<Pair> = Vec::new();
    for (row, list) in answers.iter().enumerate() {
        let labels = truth.row(row);
        let is_true = |label: u32| labels.binary_search(&label).is_ok();
        pairs.extend(list.iter().map(|s| Pair { score: s.score, label: s.label, is_true: is_true(s.label) }));
    }
    Pair::sort(&mut pairs);
    best_micro(&pairs, truth.nnz() as u64)
}

/// The threshold with the largest F1 over all pairs, the highest of several; `None` if nothing is
/// true. `pairs` are sorted by score, largest first; `n_true` also counts true labels that were not
/// answered.
///
/// *Cost*: O(pairs).
pub fn best_micro(pairs: &[Pair], n_true: u64) -> Option<BestThreshold> {
    let mut best: Option<BestThreshold> = None;
    let (mut tp, mut n) = (0u64, 0u64);
    each_cut(pairs, |same, next| {
        n += same.len() as u64;
        tp += same.iter().filter(|pair| pair.is_true).count() as u64;
        let f1 = f1(tp, n, n_true);
        if f1 > best.map_or(0.0, |best| best.f1) {
            best = Some(BestThreshold { threshold: between(same[0].score, next), f1 });
        }
    });
    best
}

/// The threshold with the largest mean F1 of the labels that have a true instance, the highest of
/// several. `n_true` has the number of true instances of each label; labels beyond its end have
/// none.
///
/// *Cost*: O(pairs + labels).
pub fn best_macro(pairs: &[Pair], n_true: &[u64]) -> Option<BestThreshold> {
    let n_labels = n_true.iter().filter(|&&n| n > 0).count() as f64;
    let mut best: Option<BestThreshold> = None;
    let mut counts = vec![(0u64, 0u64); n_true.len()];
    let mut sum = 0.0;
    each_cut(pairs, |same, next| {
        for pair in same {
            let Some(&n_true) = n_true.get(pair.label as usize).filter(|&&n| n > 0) else { continue };
            let (tp, n) = &mut counts[pair.label as usize];
            sum -= f1(*tp, *n, n_true);
            *n += 1;
            *tp += u64::from(pair.is_true);
            sum += f1(*tp, *n, n_true);
        }
        // The sum of many changes has a rounding error: smaller differences do not count.
        if sum > best.map_or(0.0, |best| best.f1) + 1e-9 {
            best = Some(BestThreshold { threshold: between(same[0].score, next), f1: sum });
        }
    });
    best.map(|best| BestThreshold { f1: best.f1 / n_labels, ..best })
}

/// For each label, the threshold with its largest F1; `usual` for labels with fewer than `least`
/// true instances, or without a true answer. `n_true` has a number for each label.
///
/// *Cost*: O(pairs log pairs + labels).
pub fn best_by_label(pairs: &[Pair], n_true: &[u64], least: u64, usual: f32) -> Vec<f32> {
    let mut by_label: Vec<Pair> = pairs.to_vec();
    // A stable sort: of each label, the largest score comes first.
    by_label.sort_by_key(|pair| pair.label);
    let mut thresholds = vec![usual; n_true.len()];
    for own in by_label.chunk_by(|a, b| a.label == b.label) {
        let label = own[0].label as usize;
        let Some(&n) = n_true.get(label).filter(|&&n| n >= least.max(1)) else { continue };
        if let Some(best) = best_micro(own, n) {
            thresholds[label] = best.threshold;
        }
    }
    thresholds
}

/// Calls `cut` with each run of equal scores, largest first, and the score after it.
fn each_cut(pairs: &[Pair], mut cut: impl FnMut(&[Pair], Option<f32>)) {
    let mut runs = pairs.chunk_by(|a, b| a.score == b.score).peekable();
    while let Some(same) = runs.next() {
        cut(same, runs.peek().map(|next| next[0].score));
    }
}

/// 2 tp / (predicted + true), 0 without any.
fn f1(tp: u64, predicted: u64, n_true: u64) -> f64 {
    if tp == 0 { 0.0 } else { 2.0 * tp as f64 / (predicted + n_true) as f64 }
}
