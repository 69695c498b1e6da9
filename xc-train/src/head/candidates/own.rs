//! A list of labels for each instance: pairs of a label and an instance, label after label.
//!
//! ```text
//!   by label       label 3: instances 0 7      label 9: instance 2      scores: a row is read once for its instances
//!   by instance    instance 0: labels 3 12 40                            loss, and the gradient of its vector
//!   by label       the gradient of each row, which changes at once
//! ```

use super::rows::Rows;
use crate::head::tiled::{Table, change_bias, of_chosen};
use crate::loss::Corrections;
use crate::parameter::RowsMut;
use crate::sampler::{Candidates, LabelWeights};
use crate::stored::{StoredMut, Widened};
use crate::table::{self, Entries};
use crate::{Activations, Loss, Targets, Update};
use rayon::prelude::*;
use std::ops::Range;
use xc_hash::stream::mix;
use xc_sparse::buffer::FloatSlice;
use xc_sparse::dense::SplitRows;
use xc_sparse::simd::prefetch_start;
use xc_sparse::{Loop, vectorised_loop};

/// Pairs that one task takes.
const PAIRS: usize = 1024;
/// Rows between asking for a row and reading it.
const AHEAD: usize = 4;

/// The pairs of a step. Buffers only grow.
#[derive(Default)]
pub(super) struct Own {
    /// Where the pairs of each instance begin and end.
    ptr: Vec<u32>,
    labels: Vec<u32>,
    weight: Vec<f32>,
    log_q: Vec<f32>,
    true_log_q: Vec<f32>,
    /// Places of true labels among the pairs of their instance.
    truth_ptr: Vec<u32>,
    truth: Vec<u32>,
    /// Logits, then their gradients, in the order of `labels`.
    values: Vec<f32>,
    /// Logits in the order of `by_label`.
    sorted: Vec<f32>,
    losses: Vec<f64>,
    by_label: Entries,
}

impl Own {
    /// Puts the candidates and the true labels of each instance together; a label that is true is
    /// no candidate. One list is every instance's. `true_log_q`: of the true labels, in the order
    /// of the targets, where the loss wants to know.
    pub(super) fn fill(&mut self, candidates: &Candidates, targets: Targets<'_>, true_log_q: &[f32]) {
        self.ptr.clear();
        self.truth_ptr.clear();
        for list in [&mut self.labels, &mut self.truth] {
            list.clear();
        }
        for list in [&mut self.weight, &mut self.log_q, &mut self.true_log_q] {
            list.clear();
        }
        self.ptr.push(0);
        self.truth_ptr.push(0);
        let mut seen = 0;
        for i in 0..targets.len() {
            let list = candidates.list(i.min(candidates.len() - 1));
            let start = self.labels.len();
            let mut positives = targets.row(i).iter().copied().peekable();
            for (at, &label) in list.labels.iter().enumerate() {
                while let Some(positive) = positives.next_if(|&positive| positive <= label) {
                    self.push_true(positive, start, true_log_q.get(seen));
                    seen += 1;
                }
                if self.labels[start..].last() != Some(&label) {
                    self.push(label, list.weight[at], list.log_q[at], 0.0);
                }
            }
            for positive in positives {
                self.push_true(positive, start, true_log_q.get(seen));
                seen += 1;
            }
            self.ptr.push(self.labels.len() as u32);
            self.truth_ptr.push(self.truth.len() as u32);
        }
        self.values.clear();
        self.values.resize(self.labels.len(), 0.0);
        self.by_label.fill(&self.ptr, &self.labels, &self.values);
    }

    fn push_true(&mut self, label: u32, start: usize, log_q: Option<&f32>) {
        self.truth.push((self.labels.len() - start) as u32);
        self.push(label, 1.0, 0.0, log_q.copied().unwrap_or(0.0));
    }

    fn push(&mut self, label: u32, weight: f32, log_q: f32, true_log_q: f32) {
        self.labels.push(label);
        self.weight.push(weight);
        self.log_q.push(log_q);
        self.true_log_q.push(true_log_q);
    }

    /// Labels that any instance has, ascending.
    pub(super) fn touched(&self) -> &[u32] {
        self.by_label.rows()
    }

    /// Number of pairs.
    pub(super) fn n_pairs(&self) -> usize {
        self.labels.len()
    }

    /// Logits, loss, and the gradient of the logits. Gives the mean loss.
    pub(super) fn loss(&mut self, weights: LabelWeights<'_>, input: &Activations, loss: Loss) -> f64 {
        let n = input.len();
        let Self { by_label, sorted, values, .. } = &mut *self;
        sorted.clear();
        sorted.resize(values.len(), 0.0);
        score(by_label, 0..by_label.rows().len(), weights, input, sorted);
        by_label.places().zip(&*sorted).for_each(|(place, &logit)| values[place] = logit);
        self.losses.clear();
        self.losses.resize(n, 0.0);
        let Self { ptr, truth_ptr, truth, weight, log_q, true_log_q, values, sorted, losses, by_label, .. } =
            &mut *self;
        let by = Corrections { weight, log_q, true_log_q: Some(true_log_q) };
        let range = |ptr: &[u32], i: usize| ptr[i] as usize..ptr[i + 1] as usize;
        each_list(values, ptr, losses, &|i, row, out| {
            let by = by.part(range(ptr, i));
            *out = of_chosen(loss, row, &truth[range(truth_ptr, i)], by, 1.0 / n as f32);
        });
        sorted.iter_mut().zip(by_label.places()).for_each(|(to, place)| *to = values[place]);
        by_label.values_mut().copy_from_slice(sorted);
        self.losses.iter().sum::<f64>() / n as f64
    }

    /// Gradient with respect to the input.
    pub(super) fn backward(&self, weights: LabelWeights<'_>, gradient: &mut Activations) {
        let width = weights.width();
        gradient.reshape(self.ptr.len() - 1, width);
        if width == 0 {
            return;
        }
        let rows = gradient.values_mut().par_chunks_exact_mut(width).enumerate();
        rows.for_each_init(Vec::new, |buffer, (i, sum)| {
            let range = self.ptr[i] as usize..self.ptr[i + 1] as usize;
            let (labels, values) = (&self.labels[range.clone()], &self.values[range]);
            sum.fill(0.0);
            if let FloatSlice::F32(table) = weights.rows() {
                return table::add_rows(sum, table, labels, values);
            }
            for (&label, &value) in labels.iter().zip(values) {
                table::add_rows(sum, weights.row(label, buffer), &[0], &[value]);
            }
        });
    }

    /// Sum of squares of the gradient of weights and biases.
    pub(super) fn squared_norm(&self, input: &Activations) -> f64 {
        let bias = |at| f64::from(self.by_label.of(at).1.iter().sum::<f32>()).powi(2);
        table::squared_norm(&self.by_label, input) + (0..self.touched().len()).map(bias).sum::<f64>()
    }

    /// Changes the rows of the labels.
    ///
    /// `moved` gets how far each one moved, if it is as long as they are many.
    pub(super) fn update(&self, table: &mut Rows, input: &Activations, update: &Update, key: u64, moved: &mut [f32]) {
        let (rows, bias) = table.parts_mut();
        Change { own: self, input, update, key }.split(0..self.touched().len(), 0, rows, bias, moved);
    }
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

/// Logits of the pairs of the labels at some positions, label after label.
fn score(
    entries: &Entries,
    positions: Range<usize>,
    weights: LabelWeights<'_>,
    input: &Activations,
    logits: &mut [f32],
) {
    if positions.len() > 1 && logits.len() > PAIRS {
        let middle = positions.start + positions.len() / 2;
        let (low, high) = logits.split_at_mut(entries.range_of(positions.start..middle).len());
        rayon::join(
            || score(entries, positions.start..middle, weights, input, low),
            || score(entries, middle..positions.end, weights, input, high),
        );
        return;
    }
    vectorised_loop(Score { entries, positions, weights, input, logits });
}

struct Score<'a> {
    entries: &'a Entries,
    positions: Range<usize>,
    weights: LabelWeights<'a>,
    input: &'a Activations,
    logits: &'a mut [f32],
}

impl Loop for Score<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { entries, positions, weights, input, logits } = self;
        let (mut buffer, mut out) = (Vec::new(), logits.iter_mut());
        for at in positions.clone() {
            if at + AHEAD < positions.end {
                prefetch_row(weights, entries.rows()[at + AHEAD]);
            }
            let label = entries.rows()[at];
            let row = weights.row(label, &mut buffer);
            for (&instance, out) in entries.of(at).0.iter().zip(&mut out) {
                *out = weights.bias(label) + dot(row, input.row(instance as usize));
            }
        }
    }
}

/// Asks for the row of a label.
#[inline(always)]
fn prefetch_row(weights: LabelWeights<'_>, label: u32) {
    let range = label as usize * weights.width()..(label as usize + 1) * weights.width();
    match weights.rows() {
        FloatSlice::F32(rows) => prefetch_start(&rows[range]),
        FloatSlice::Bf16(rows) => prefetch_start(&rows[range]),
        _ => {}
    }
}

/// The product of two vectors, in one order of sums on every instruction set.
#[inline(always)]
fn dot(a: &[f32], b: &[f32]) -> f32 {
    const LANES: usize = 32;
    let mut lanes = [0.0f32; LANES];
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    for (a, b) in a.iter().zip(b) {
        for ((lane, a), b) in lanes.iter_mut().zip(a).zip(b) {
            *lane += a * b;
        }
    }
    for ((lane, a), b) in lanes.iter_mut().zip(a_rest).zip(b_rest) {
        *lane += a * b;
    }
    let mut half = LANES / 2;
    while half > 0 {
        for at in 0..half {
            lanes[at] += lanes[at + half];
        }
        half /= 2;
    }
    lanes[0]
}

/// What all tasks of a change read.
#[derive(Clone, Copy)]
struct Change<'a> {
    own: &'a Own,
    input: &'a Activations,
    update: &'a Update,
    key: u64,
}

impl Change<'_> {
    /// Changes the labels at some positions; `rows` and `bias` begin with those of `first`.
    fn split(self, positions: Range<usize>, first: usize, rows: StoredMut<'_>, bias: RowsMut<'_>, moved: &mut [f32]) {
        let entries = &self.own.by_label;
        if positions.len() < 2 || entries.range_of(positions.clone()).len() <= PAIRS {
            return self.labels(positions, first, rows, bias, moved);
        }
        // Labels are ascending: the middle one parts the table.
        let middle = positions.start + positions.len() / 2;
        let border = entries.rows()[middle] as usize;
        let (low, high) = rows.split_at((border - first) * self.input.width());
        let (bias_low, bias_high) = bias.split_at_row(border - first);
        let (moved_low, moved_high) = moved.split_at_mut((middle - positions.start).min(moved.len()));
        rayon::join(
            || self.split(positions.start..middle, first, low, bias_low, moved_low),
            || self.split(middle..positions.end, border, high, bias_high, moved_high),
        );
    }

    fn labels(
        self,
        positions: Range<usize>,
        first: usize,
        mut rows: StoredMut<'_>,
        mut bias: RowsMut<'_>,
        moved: &mut [f32],
    ) {
        let Self { own: Own { by_label: entries, .. }, input, update, key } = self;
        let (width, mut gradient, mut widened) = (input.width(), Vec::new(), Widened::default());
        for at in positions.clone() {
            if at + AHEAD < positions.end {
                rows.prefetch((entries.rows()[at + AHEAD] as usize - first) * width, width);
            }
            let label = entries.rows()[at] as usize;
            let (instances, values) = entries.of(at);
            table::gather(&mut gradient, input, instances, values);
            let (place, key) = ((label - first) * width, mix(key, label as u64));
            let bias = bias.rows(label - first..label - first + 1);
            let of_bias = change_bias(bias, values.iter().sum(), update);
            match moved.get_mut(at - positions.start) {
                None => rows.change(place, &gradient, &update.change, key, &mut widened),
                Some(moved) => {
                    let of_row = rows.change_measured(place, &gradient, &update.change, key, &mut widened);
                    *moved = (of_bias + of_row).sqrt();
                }
            }
        }
    }
}
