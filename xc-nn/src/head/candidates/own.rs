//! A list of labels for each instance: pairs of a label and an instance, label after label.
//!
//! ```text
//!   by label       label 3: instances 0 7      label 9: instance 2      a row is read once: scored for its instances,
//!                                                                       learned from, changed
//!   by instance    instance 0: labels 3 12 40                           only a softmax: the sum over its labels,
//!                                                                       so that rows are read twice
//! ```

use super::pairs::{self, Part, Pass, Scoring, View};
use super::rows::Rows;
use crate::head::hardest::Hardest;
use crate::head::tiled::{Table, of_chosen};
use crate::loss::{Corrections, Stretch};
use crate::sampler::{Candidates, LabelWeights};
use crate::table::{self, Entries};
use crate::{Activations, Loss, Targets, Update};
use rayon::prelude::*;
use std::ops::Range;

/// The pairs of a step. Buffers only grow.
#[derive(Default)]
pub(super) struct Own {
    /// Where the pairs of each instance begin and end.
    ptr: Vec<u32>,
    labels: Vec<u32>,
    is_true: Vec<bool>,
    judged: Judged,
    by_label: Entries,
    /// As `judged`, label after label, and the places of true pairs there: where the loss adds up
    /// over labels.
    sorted: Judged,
    truth: Vec<u32>,
    /// Logits, then their gradients, label after label.
    values: Vec<f32>,
    /// Copies of the logits, which become gradients a block at a time where the loss adds up over labels;
    /// empty if nobody collects.
    logits: Vec<f32>,
    lists: Lists,
    leaves: Vec<usize>,
    /// Losses of leaves.
    losses: Vec<f64>,
    /// Gradients of the input, one a leaf.
    sums: Vec<f32>,
}

/// What becomes of each pair.
#[derive(Default)]
struct Judged {
    weight: Vec<f32>,
    log_q: Vec<f32>,
    true_log_q: Vec<f32>,
}

/// What a softmax looks at, and who collects labels: instance after instance.
#[derive(Default)]
struct Lists {
    values: Vec<f32>,
    /// Places of true labels among the pairs of their instance.
    truth_ptr: Vec<u32>,
    truth: Vec<u32>,
    losses: Vec<f64>,
}

impl Judged {
    fn parts(&mut self) -> [&mut Vec<f32>; 3] {
        [&mut self.weight, &mut self.log_q, &mut self.true_log_q]
    }

    fn corrections(&self) -> Corrections<'_> {
        Corrections { weight: &self.weight, log_q: &self.log_q, true_log_q: Some(&self.true_log_q) }
    }
}

impl Own {
    /// Puts the candidates and the true labels of each instance together; a label that is true is
    /// no candidate. One list is every instance's. `true_log_q`: of the true labels, in the order
    /// of the targets, where the loss wants to know. `collects`: [`Own::collect`] follows the scoring.
    pub(super) fn fill(
        &mut self,
        candidates: &Candidates,
        targets: Targets<'_>,
        true_log_q: &[f32],
        loss: Loss,
        collects: bool,
    ) {
        self.ptr.clear();
        self.labels.clear();
        self.is_true.clear();
        self.judged.parts().into_iter().for_each(Vec::clear);
        self.ptr.push(0);
        let mut seen = 0;
        for i in 0..targets.len() {
            let list = candidates.list(i.min(candidates.len() - 1));
            let start = self.labels.len();
            let mut positives = targets.row(i).iter().copied().peekable();
            let mut next = |own: &mut Self, below: u32| {
                while let Some(label) = positives.next_if(|&label| label <= below) {
                    own.push(label, true, [1.0, 0.0, true_log_q.get(seen).copied().unwrap_or(0.0)]);
                    seen += 1;
                }
            };
            for (at, &label) in list.labels.iter().enumerate() {
                next(self, label);
                if self.labels[start..].last() != Some(&label) {
                    self.push(label, false, [list.weight[at], list.log_q[at], 0.0]);
                }
            }
            next(self, u32::MAX);
            self.ptr.push(self.labels.len() as u32);
        }
        self.values.clear();
        self.values.resize(self.labels.len(), 0.0);
        self.by_label.fill(&self.ptr, &self.labels, &self.values);
        pairs::cut(self.by_label.by_row(), targets.len(), &mut self.leaves);
        if loss.is_separable() {
            self.sort();
        }
        if collects || !loss.is_separable() {
            self.lists.fill(&self.ptr, &self.is_true);
        }
        self.logits.resize(if collects && loss.is_separable() { self.labels.len() } else { 0 }, 0.0);
    }

    fn push(&mut self, label: u32, is_true: bool, of: [f32; 3]) {
        self.labels.push(label);
        self.is_true.push(is_true);
        self.judged.parts().into_iter().zip(of).for_each(|(list, value)| list.push(value));
    }

    /// What becomes of the pairs, label after label.
    fn sort(&mut self) {
        let Self { judged, sorted, by_label, truth, is_true, .. } = self;
        for (to, from) in sorted.parts().into_iter().zip(judged.parts()) {
            to.clear();
            to.extend(by_label.places().map(|place| from[place]));
        }
        truth.clear();
        truth.extend((0..).zip(by_label.places()).filter(|&(_, place)| is_true[place]).map(|(at, _)| at));
    }

    /// Labels that any instance has, ascending.
    pub(super) fn touched(&self) -> &[u32] {
        self.by_label.by_row().rows
    }

    /// Number of pairs.
    pub(super) fn n_pairs(&self) -> usize {
        self.labels.len()
    }

    /// Logits, loss, and the gradient of the logits. Gives the mean loss.
    pub(super) fn loss(
        &mut self,
        weights: LabelWeights<'_>,
        input: &Activations,
        loss: Loss,
        hardest: &mut Hardest,
    ) -> f64 {
        let view = View::Read(weights);
        if loss.is_separable() {
            let value = self.pass(Scoring::Gradients(loss), view, input, None, None, &mut []);
            self.collect(hardest);
            return value;
        }
        self.pass(Scoring::Logits, view, input, None, None, &mut []);
        let Self { lists, by_label, values, ptr, judged, labels, .. } = self;
        lists.take(by_label, values);
        lists.offer(ptr, labels, hardest);
        let total = lists.judge(loss, ptr, judged.corrections());
        values.iter_mut().zip(by_label.places()).for_each(|(to, place)| *to = lists.values[place]);
        total
    }

    /// Collects labels of the logits that were kept, where the loss adds up over labels.
    pub(super) fn collect(&mut self, hardest: &mut Hardest) {
        if hardest.collects() {
            let Self { lists, by_label, logits, ptr, labels, .. } = self;
            lists.take(by_label, logits);
            lists.offer(ptr, labels, hardest);
        }
    }

    /// Gradient with respect to the input.
    pub(super) fn backward(&mut self, weights: LabelWeights<'_>, gradient: &mut Activations) {
        let input = Activations::default();
        self.pass(Scoring::Done, View::Read(weights), &input, None, Some(gradient), &mut []);
    }

    /// Sum of squares of the gradient of weights and biases.
    pub(super) fn squared_norm(&mut self, input: &Activations) -> f64 {
        self.by_label.values_mut().copy_from_slice(&self.values);
        let bias = |at| f64::from(self.by_label.of(at).1.iter().sum::<f32>()).powi(2);
        table::squared_norm(&self.by_label, input) + (0..self.touched().len()).map(bias).sum::<f64>()
    }

    /// Changes the rows of the labels, scored first if that is not done, in one pass. Gives the
    /// mean loss where it scores.
    ///
    /// `moved` gets how far each one moved, if it is as long as they are many.
    pub(super) fn learn(
        &mut self,
        scoring: Scoring,
        table: &mut Rows,
        input: &Activations,
        by: (&Update, u64),
        gradient: Option<&mut Activations>,
        moved: &mut [f32],
    ) -> f64 {
        let (rows, bias) = table.parts_mut();
        let view = View::Change { first: 0, width: input.width(), rows, bias };
        self.pass(scoring, view, input, Some(by), gradient, moved)
    }

    fn pass(
        &mut self,
        scoring: Scoring,
        view: View<'_>,
        input: &Activations,
        update: Option<(&Update, u64)>,
        gradient: Option<&mut Activations>,
        moved: &mut [f32],
    ) -> f64 {
        let Self { by_label, sorted, truth, leaves, losses, sums, values, logits, .. } = self;
        let (n, width, n_leaves) = (self.ptr.len() - 1, view.width(), leaves.len() - 1);
        let vector = if gradient.is_some() { n * width } else { 0 };
        losses.clear();
        losses.resize(n_leaves, 0.0);
        sums.resize(sums.len().max(n_leaves * vector), 0.0);
        let (pairs, corrections) = (by_label.by_row(), sorted.corrections());
        let pass = Pass { pairs, leaves, n, width, input, truth, corrections, scoring, update };
        // Later passes have no logits.
        let logits: &mut [f32] = if matches!(scoring, Scoring::Gradients(_)) { logits } else { &mut [] };
        pass.run(Part { view, values, logits, sums: &mut sums[..n_leaves * vector], losses, moved });
        if let Some(gradient) = gradient {
            gradient.reshape(n, width);
            gradient.values_mut().copy_from_slice(&sums[..vector]);
        }
        losses.iter().sum::<f64>() / n as f64
    }
}

impl Lists {
    fn fill(&mut self, ptr: &[u32], is_true: &[bool]) {
        self.truth.clear();
        self.truth_ptr.clear();
        self.truth_ptr.push(0);
        for range in ptr.windows(2) {
            let list = (0..).zip(&is_true[range[0] as usize..range[1] as usize]);
            self.truth.extend(list.filter(|(_, is_true)| **is_true).map(|(at, _)| at));
            self.truth_ptr.push(self.truth.len() as u32);
        }
    }

    /// Takes logits that lie label after label.
    fn take(&mut self, by_label: &Entries, logits: &[f32]) {
        self.values.resize(logits.len(), 0.0);
        by_label.places().zip(logits).for_each(|(place, &logit)| self.values[place] = logit);
    }

    /// Offers the logits of each instance.
    fn offer(&self, ptr: &[u32], labels: &[u32], hardest: &mut Hardest) {
        if !hardest.collects() {
            return;
        }
        hardest.selections().par_iter_mut().enumerate().for_each(|(i, selection)| {
            let (pairs, positives) = (range(ptr, i), &self.truth[range(&self.truth_ptr, i)]);
            let (logits, labels) = (&self.values[pairs.clone()], &labels[pairs]);
            selection.offer(logits, Stretch { first: 0, positives, n_positives: positives.len() }, |at| labels[at]);
        });
        hardest.finish();
    }

    /// Replaces logits by their gradients. Gives the mean loss.
    fn judge(&mut self, loss: Loss, ptr: &[u32], by: Corrections<'_>) -> f64 {
        let Self { values, truth_ptr, truth, losses } = self;
        let n = ptr.len() - 1;
        losses.clear();
        losses.resize(n, 0.0);
        each_list(values, ptr, losses, &|i, row, out| {
            let by = by.part(range(ptr, i));
            *out = of_chosen(loss, row, &truth[range(truth_ptr, i)], by, 1.0 / n as f32);
        });
        losses.iter().sum::<f64>() / n as f64
    }
}

/// Where the pairs of an instance lie.
fn range(ptr: &[u32], i: usize) -> Range<usize> {
    ptr[i] as usize..ptr[i + 1] as usize
}

/// Calls `work` with the values of each list and what is kept of it.
fn each_list<T: Send>(
    values: &mut [f32],
    ptr: &[u32],
    kept: &mut [T],
    work: &(impl Fn(usize, &mut [f32], &mut T) + Sync),
) {
    fn split<T: Send>(
        first: usize,
        values: &mut [f32],
        ptr: &[u32],
        kept: &mut [T],
        work: &(impl Fn(usize, &mut [f32], &mut T) + Sync),
    ) {
        match kept {
            [] => {}
            [one] => work(first, values, one),
            _ => {
                let half = kept.len() / 2;
                let (low, high) = values.split_at_mut((ptr[first + half] - ptr[first]) as usize);
                let (kept_low, kept_high) = kept.split_at_mut(half);
                rayon::join(
                    || split(first, low, ptr, kept_low, work),
                    || split(first + half, high, ptr, kept_high, work),
                );
            }
        }
    }
    split(0, values, ptr, kept, work);
}
