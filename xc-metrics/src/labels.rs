//! Counts of each label: what macro F1 and coverage are made of.

use super::contributions::ratio;
use super::per_label::{LabelCut, LabelFigures};
use std::collections::BTreeMap;

/// Weighted numbers of true, predicted and correctly predicted instances of each label, for each
/// cut: every k, and perhaps a threshold behind them.
///
/// ```text
///   n_true      l0 l1 l2 ...
///   tp          k0: l0 l1 l2 ...   k1: ...        predicted likewise
/// ```
/// True labels at or above `n_labels` are kept apart: no list can name them, so they are only
/// counted.
#[derive(Clone, Debug)]
pub(super) struct LabelCounts {
    n_labels: usize,
    n_true: Vec<f64>,
    tp: Vec<f64>,
    predicted: Vec<f64>,
    out_of_range: BTreeMap<u32, f64>,
}

impl LabelCounts {
    pub(super) fn new(n_labels: usize, n_cuts: usize) -> Self {
        Self {
            n_labels,
            n_true: vec![0.0; n_labels],
            tp: vec![0.0; n_labels * n_cuts],
            predicted: vec![0.0; n_labels * n_cuts],
            out_of_range: BTreeMap::new(),
        }
    }

    /// Adds one instance, whose list is cut at each of `cuts`; every label of `ranked` is below
    /// `n_labels`.
    pub(super) fn add(
        &mut self,
        cuts: impl Iterator<Item = usize>,
        truth: &[u32],
        ranked: &[u32],
        hits: &[bool],
        weight: f64,
    ) {
        for &label in truth {
            match self.n_true.get_mut(label as usize) {
                Some(count) => *count += weight,
                None => *self.out_of_range.entry(label).or_default() += weight,
            }
        }
        for (at, k) in cuts.enumerate() {
            let offset = at * self.n_labels;
            for (&label, &hit) in ranked.iter().zip(hits).take(k) {
                self.predicted[offset + label as usize] += weight;
                if hit {
                    self.tp[offset + label as usize] += weight;
                }
            }
        }
    }

    /// What each label that is true or predicted shows, ascending, without confusions.
    pub(super) fn figures(&self, n_ks: usize, threshold: bool) -> Vec<LabelFigures> {
        let of = |label: usize| {
            let support = self.n_true[label];
            let cut = |at: usize| {
                let at = at * self.n_labels + label;
                LabelCut::new(support, self.predicted[at], self.tp[at])
            };
            let at_k: Vec<LabelCut> = (0..n_ks).map(cut).collect();
            let at_threshold = threshold.then(|| cut(n_ks));
            let is_predicted = at_k.iter().chain(&at_threshold).any(|cut| cut.predicted > 0.0);
            let figures = LabelFigures { label: label as u32, support, at_k, at_threshold, confused: None };
            (support > 0.0 || is_predicted).then_some(figures)
        };
        let never = LabelCut::default();
        let beyond = self.out_of_range.iter().filter(|&(_, &support)| support > 0.0);
        let beyond = beyond.map(|(&label, &support)| LabelFigures {
            label,
            support,
            at_k: vec![never; n_ks],
            at_threshold: threshold.then_some(never),
            confused: None,
        });
        (0..self.n_labels).filter_map(of).chain(beyond).collect()
    }

    pub(super) fn merge(&mut self, other: &Self) {
        assert_eq!(self.tp.len(), other.tp.len(), "label counts of different shapes");
        let pairs =
            [(&mut self.n_true, &other.n_true), (&mut self.tp, &other.tp), (&mut self.predicted, &other.predicted)];
        for (mine, theirs) in pairs {
            mine.iter_mut().zip(theirs).for_each(|(a, b)| *a += b);
        }
        for (&label, &count) in &other.out_of_range {
            *self.out_of_range.entry(label).or_default() += count;
        }
    }

    /// Covered (0 or 1) and F1 for each k, precision, recall and F1 where there is a threshold, one
    /// row for each label of the truth in ascending order; and their number.
    pub(super) fn table(&self, n_ks: usize, threshold: bool) -> (Vec<f64>, usize) {
        let mut table = Vec::new();
        let mut n_present = 0;
        for (label, &n_true) in self.n_true.iter().enumerate().filter(|&(_, &n)| n > 0.0) {
            n_present += 1;
            for at in 0..n_ks {
                let tp = self.tp[at * self.n_labels + label];
                let predicted = self.predicted[at * self.n_labels + label];
                table.push(if tp > 0.0 { 1.0 } else { 0.0 });
                table.push(2.0 * tp / (n_true + predicted));
            }
            if threshold {
                let at = n_ks * self.n_labels + label;
                let (tp, predicted) = (self.tp[at], self.predicted[at]);
                table.extend([ratio(tp, predicted), tp / n_true, 2.0 * tp / (n_true + predicted)]);
            }
        }
        let never = self.out_of_range.values().filter(|&&n| n > 0.0).count();
        table.resize(table.len() + never * (2 * n_ks + if threshold { 3 } else { 0 }), 0.0);
        (table, n_present + never)
    }
}
