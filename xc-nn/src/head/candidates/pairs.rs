//! Passes over pairs of a label and an instance, label after label.
//!
//! ```text
//!   leaf      some labels' pairs: one task, one sum for the gradient of the input; leaves are added as a tree
//!   block     some hundred pairs of a leaf: all are scored, then judged, then learned from, while the caches hold their rows
//! ```
//!
//! Leaves follow from the number of pairs alone, and a label lies in one of them: the bits do not
//! depend on threads.

use crate::head::tiled::change_bias;
use crate::loss::{Corrections, Stretch, Total};
use crate::parameter::RowsMut;
use crate::sampler::LabelWeights;
use crate::stored::{StoredMut, Widened};
use crate::table::ByRow;
use crate::{Activations, Loss, Update};
use std::ops::Range;
use xc_buffer::FloatSlice;
use xc_buffer::simd::prefetch_start;
use xc_buffer::sums::add;
use xc_buffer::{Loop, vectorised_loop};
use xc_dense::{SplitRows, dot};
use xc_hash::stream::mix;

/// Pairs of a block: at a width of 128 their rows, vectors and gradients fill a second-level cache
/// half.
const BLOCK: usize = 128;
/// Rows between asking for a row and reading it.
const AHEAD: usize = 4;
/// Pairs of an instance in a leaf, at least: then adding up leaves costs little.
const LEAF: usize = 16;
const MOST_LEAVES: usize = 32;

/// Cuts pairs into leaves: the place of the first label of each, and the number of labels.
pub(super) fn cut(pairs: ByRow<'_>, n_instances: usize, leaves: &mut Vec<usize>) {
    let n = pairs.instances.len();
    let n_leaves = (n / (LEAF * n_instances.max(1))).clamp(1, MOST_LEAVES);
    leaves.clear();
    leaves.extend((0..n_leaves).map(|leaf| pairs.ptr.partition_point(|&at| (at as usize) < leaf * n / n_leaves)));
    leaves.push(pairs.rows.len());
}

/// The rows of some labels: to be read, or changed too.
pub(super) enum View<'a> {
    Read(LabelWeights<'a>),
    /// Those of the labels from `first` on.
    Change {
        first: usize,
        width: usize,
        rows: StoredMut<'a>,
        bias: RowsMut<'a>,
    },
}

impl View<'_> {
    /// Weights of a row.
    pub(super) fn width(&self) -> usize {
        match self {
            Self::Read(weights) => weights.width(),
            Self::Change { width, .. } => *width,
        }
    }

    /// Those of labels below one, and the others; none: all, and nothing.
    fn split(self, label: Option<u32>) -> (Self, Self) {
        match self {
            Self::Read(weights) => (Self::Read(weights), Self::Read(weights)),
            Self::Change { first, width, rows, bias } => {
                let at = label.map_or(bias.values.len(), |label| label as usize - first);
                let (low, high) = rows.split_at(at * width);
                let (bias_low, bias_high) = bias.split_at_row(at);
                (
                    Self::Change { first, width, rows: low, bias: bias_low },
                    Self::Change { first: first + at, width, rows: high, bias: bias_high },
                )
            }
        }
    }

    #[inline(always)]
    fn row<'b>(&'b self, label: u32, buffer: &'b mut Vec<f32>) -> &'b [f32] {
        match self {
            Self::Read(weights) => weights.row(label, buffer),
            Self::Change { first, width, rows, .. } => rows.row((label as usize - first) * width, *width, buffer),
        }
    }

    #[inline(always)]
    fn bias(&self, label: u32) -> f32 {
        match self {
            Self::Read(weights) => weights.bias(label),
            Self::Change { first, bias, .. } => bias.values[label as usize - first],
        }
    }

    /// Asks for a row, with all that changes with it.
    #[inline(always)]
    fn prefetch(&self, label: u32) {
        match self {
            Self::Read(weights) => {
                let range = label as usize * weights.width()..(label as usize + 1) * weights.width();
                match weights.rows() {
                    FloatSlice::F32(rows) => prefetch_start(&rows[range]),
                    FloatSlice::Bf16(rows) => prefetch_start(&rows[range]),
                    _ => {}
                }
            }
            Self::Change { first, width, rows, .. } => rows.prefetch((label as usize - first) * width, *width),
        }
    }
}

/// How pairs are scored, before they are learned from.
#[derive(Clone, Copy)]
pub(super) enum Scoring {
    /// Gradients of logits are there.
    Done,
    /// Logits.
    Logits,
    /// Logits, then their gradients by a loss that adds up over labels.
    Gradients(Loss),
}

/// What all tasks of a pass read.
#[derive(Clone, Copy)]
pub(super) struct Pass<'a> {
    pub(super) pairs: ByRow<'a>,
    pub(super) leaves: &'a [usize],
    /// Instances.
    pub(super) n: usize,
    pub(super) width: usize,
    /// Looked at where pairs are scored or rows change.
    pub(super) input: &'a Activations,
    /// Places of the pairs that are true.
    pub(super) truth: &'a [u32],
    pub(super) corrections: Corrections<'a>,
    pub(super) scoring: Scoring,
    /// What changes the rows, and what names the streams of rounding.
    pub(super) update: Option<(&'a Update, u64)>,
}

/// What a task writes.
pub(super) struct Part<'a> {
    pub(super) view: View<'a>,
    /// Logits of the pairs, or their gradients.
    pub(super) values: &'a mut [f32],
    /// Gets the logits where gradients replace them; empty if nobody wants to know.
    pub(super) logits: &'a mut [f32],
    /// Gradients of the input, one a leaf; empty if nobody wants to know. The first gets the sum.
    pub(super) sums: &'a mut [f32],
    /// Loss of each leaf.
    pub(super) losses: &'a mut [f64],
    /// How far each label moved; empty if nobody wants to know.
    pub(super) moved: &'a mut [f32],
}

impl Pass<'_> {
    /// Goes over all pairs.
    pub(super) fn run(self, part: Part<'_>) {
        self.leaves(0..self.leaves.len() - 1, part);
    }

    fn leaves(self, leaves: Range<usize>, part: Part<'_>) {
        let (start, end) = (self.leaves[leaves.start], self.leaves[leaves.end]);
        if leaves.len() == 1 {
            let Part { view, values, logits, sums: sum, losses, moved } = part;
            sum.fill(0.0);
            let first = (start, self.pairs.ptr[start] as usize);
            let leaf = Leaf { pass: self, view, first, end, values, logits, sum, moved, buffers: Buffers::default() };
            losses[0] = leaf.run();
            return;
        }
        let half = leaves.len() / 2;
        let middle = self.leaves[leaves.start + half];
        let vector = part.sums.len() / leaves.len();
        let (view, view_b) = part.view.split(self.pairs.rows.get(middle).copied());
        let n_pairs = self.pairs.range_of(start..middle).len();
        let (values, values_b) = part.values.split_at_mut(n_pairs);
        let (logits, logits_b) = part.logits.split_at_mut(n_pairs.min(part.logits.len()));
        let (sums, sums_b) = part.sums.split_at_mut(half * vector);
        let (losses, losses_b) = part.losses.split_at_mut(half);
        let (moved, moved_b) = part.moved.split_at_mut((middle - start).min(part.moved.len()));
        let low = Part { view, values, logits, sums: &mut *sums, losses, moved };
        let high = Part {
            view: view_b,
            values: values_b,
            logits: logits_b,
            sums: &mut *sums_b,
            losses: losses_b,
            moved: moved_b,
        };
        rayon::join(
            || self.leaves(leaves.start..leaves.start + half, low),
            || self.leaves(leaves.start + half..leaves.end, high),
        );
        add(&mut sums[..vector], &sums_b[..vector]);
    }
}

/// A leaf at work. Labels go by their positions among those of the pass.
struct Leaf<'a> {
    pass: Pass<'a>,
    view: View<'a>,
    /// Position of its first label, and its first pair.
    first: (usize, usize),
    /// Where its labels end.
    end: usize,
    values: &'a mut [f32],
    logits: &'a mut [f32],
    sum: &'a mut [f32],
    moved: &'a mut [f32],
    buffers: Buffers,
}

#[derive(Default)]
struct Buffers {
    row: Vec<f32>,
    gradient: Vec<f32>,
    widened: Widened,
}

impl Leaf<'_> {
    /// Gives the loss.
    fn run(mut self) -> f64 {
        let Pass { pairs, scoring, update, .. } = self.pass;
        let (mut loss, mut start) = (0.0, self.first.0);
        while start < self.end {
            let is_in = |end: usize| end < self.end && (pairs.ptr[end + 1] - pairs.ptr[start]) as usize <= BLOCK;
            let end = (start + 1..).find(|&end| !is_in(end)).unwrap_or(self.end);
            if !matches!(scoring, Scoring::Done) {
                vectorised_loop(Score(&mut self, start..end));
            }
            if let Scoring::Gradients(by) = scoring {
                if !self.logits.is_empty() {
                    let places = self.places(start..end);
                    self.logits[places.clone()].copy_from_slice(&self.values[places]);
                }
                loss += self.judge(start..end, by);
            }
            if update.is_some() || !self.sum.is_empty() {
                vectorised_loop(Learn(&mut self, start..end));
            }
            start = end;
        }
        loss
    }

    /// Places of the pairs of some labels among those of the leaf.
    #[inline(always)]
    fn places(&self, at: Range<usize>) -> Range<usize> {
        let range = self.pass.pairs.range_of(at);
        range.start - self.first.1..range.end - self.first.1
    }

    /// Replaces the logits of some labels by their gradients; gives their loss.
    fn judge(&mut self, at: Range<usize>, loss: Loss) -> f64 {
        let Pass { pairs, truth, corrections, n, .. } = self.pass;
        let (range, places) = (pairs.range_of(at.clone()), self.places(at));
        let first = |at: usize| truth.partition_point(|&place| (place as usize) < at);
        let positives = &truth[first(range.start)..first(range.end)];
        let of = Stretch { first: range.start as u32, positives, n_positives: positives.len() };
        let (values, by) = (&mut self.values[places], corrections.part(range));
        loss.correct(values, of, by);
        loss.gradient_of_chosen(values, of, by, Total::EMPTY, 1.0 / n as f32)
    }

    /// Asks for the row of a label that comes later.
    #[inline(always)]
    fn prefetch(&self, at: usize) {
        if at < self.end {
            self.view.prefetch(self.pass.pairs.rows[at]);
        }
    }
}

/// Logits of some labels' pairs.
struct Score<'a, 'l>(&'a mut Leaf<'l>, Range<usize>);

impl Loop for Score<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self(leaf, positions) = self;
        let Pass { pairs, input, .. } = leaf.pass;
        for at in positions {
            leaf.prefetch(at + AHEAD);
            let (label, places) = (pairs.rows[at], leaf.places(at..at + 1));
            let bias = leaf.view.bias(label);
            let row = leaf.view.row(label, &mut leaf.buffers.row);
            for (&instance, to) in pairs.instances_of(at).iter().zip(&mut leaf.values[places]) {
                *to = bias + dot(row, input.row(instance as usize));
            }
        }
    }
}

/// Adds to the gradient of the input what some labels' pairs have of it, and changes the rows.
struct Learn<'a, 'l>(&'a mut Leaf<'l>, Range<usize>);

impl Loop for Learn<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self(leaf, positions) = self;
        let Pass { pairs, width, input, update, scoring, .. } = leaf.pass;
        for at in positions {
            if matches!(scoring, Scoring::Done) {
                leaf.prefetch(at + AHEAD);
            }
            let (label, instances, places) = (pairs.rows[at], pairs.instances_of(at), leaf.places(at..at + 1));
            let values = &leaf.values[places];
            if !leaf.sum.is_empty() {
                let row = leaf.view.row(label, &mut leaf.buffers.row);
                for (&instance, &value) in instances.iter().zip(values) {
                    add_times(&mut leaf.sum[instance as usize * width..][..width], value, row);
                }
            }
            let (Some((update, key)), View::Change { first, rows, bias, .. }) = (update, &mut leaf.view) else {
                continue;
            };
            let Buffers { gradient, widened, .. } = &mut leaf.buffers;
            gradient.clear();
            gradient.resize(width, 0.0);
            for (&instance, &value) in instances.iter().zip(values) {
                add_times(gradient, value, input.row(instance as usize));
            }
            let (place, key) = (label as usize - *first, mix(key, u64::from(label)));
            let of_bias = change_bias(bias.rows(place..place + 1), values.iter().sum(), update);
            match leaf.moved.get_mut(at - leaf.first.0) {
                None => rows.change(place * width, gradient, &update.change, key, widened),
                Some(moved) => {
                    let of_row = rows.change_measured(place * width, gradient, &update.change, key, widened);
                    *moved = (of_bias + of_row).sqrt();
                }
            }
        }
    }
}

/// `to += value * row`.
#[inline(always)]
fn add_times(to: &mut [f32], value: f32, row: &[f32]) {
    to.iter_mut().zip(row).for_each(|(to, x)| *to += value * x);
}
