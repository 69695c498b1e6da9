//! Steps and answers over many labels, a tile of them at a time: logits of few labels exist.
//!
//! ```text
//!   for a tile of labels     logits = input * rows^T + bias     loss, gradient     input's gradient += gradient * rows
//!                            rows change by gradient^T * input, a few at a time
//! ```
//!
//! The labels are all of a head, or some that were chosen. A softmax needs the sum over all of them
//! first: it computes the logits twice. Tiles lie within the leaves of the sums over labels, so the
//! gradients have the bits that they have when the labels are worked on at once.

use super::hardest::{Hardest, Selection};
use super::{Ranked, RowRank, RowScratch, each_row};
use crate::layer::column_sums;
use crate::loss::{Corrections, Stretch, Total};
use crate::parameter::RowsMut;
use crate::sampler::LabelWeights;
use crate::stored::{StoredMut, Widened};
use crate::{Activations, Loss, Targets, Update};
use rayon::prelude::*;
use std::ops::Range;
use xc_buffer::FloatSlice;
use xc_buffer::parallel::for_each_part_in_pool;
use xc_buffer::sums::{Blocks, TreeSum};
use xc_dense::{
    MatMut, MatRef, MatmulPrecision, MatmulScratch, SplitRows, Start, product, product_by_rows, product_in_leaves,
};
use xc_hash::stream::mix;
use xc_sparse::rank::Scored;

/// Labels of a tile: the logits of a batch of 256 take 1 MB.
pub(super) const TILE: usize = 1024;
/// Logits that are kept rather than worked on in tiles: 16 MB, about a last-level cache.
const KEPT: usize = 1 << 22;
/// The same where tiles cost a product more (128 MB).
const KEPT_SOFTMAX: usize = 1 << 25;

/// Whether a step over so many labels goes in tiles.
pub(super) fn pays(loss: Loss, n_instances: usize, n_labels: usize) -> bool {
    n_instances.saturating_mul(n_labels) > kept(loss)
}

/// Logits that a step keeps at most.
pub(crate) fn kept(loss: Loss) -> usize {
    if loss.is_separable() { KEPT } else { KEPT_SOFTMAX }
}

/// Rows of labels with their biases, to be read and changed.
pub(super) trait Table {
    fn weights(&self) -> LabelWeights<'_>;
    /// Weights and biases of all labels.
    fn parts_mut(&mut self) -> (StoredMut<'_>, RowsMut<'_>);
}

/// The labels of a step: all, or some that were chosen.
#[derive(Clone, Copy, Debug)]
pub(super) struct List<'a> {
    /// Ascending.
    pub(super) labels: &'a [u32],
    pub(super) corrections: Corrections<'a>,
}

/// The places of true labels among those of the step; where these are all labels, the labels
/// themselves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Truth<'a> {
    pub(super) ptr: &'a [u32],
    pub(super) places: &'a [u32],
}

impl<'a> Truth<'a> {
    pub(super) fn of(targets: Targets<'a>) -> Self {
        let (_, ptr, places) = targets.parts();
        Self { ptr, places }
    }

    pub(super) fn row(self, i: usize) -> &'a [u32] {
        &self.places[self.ptr[i] as usize..self.ptr[i + 1] as usize]
    }
}

/// What a step goes over.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pass<'a> {
    pub(super) input: &'a Activations,
    pub(super) truth: Truth<'a>,
    pub(super) list: Option<List<'a>>,
    pub(super) loss: Loss,
    pub(super) precision: MatmulPrecision,
    /// The order of sums over the labels of the step.
    pub(super) order: Blocks,
    /// The order of sums over the batch.
    pub(super) rows: Blocks,
    /// Labels of a tile.
    pub(super) tile: usize,
}

/// Buffers of a step.
#[derive(Default)]
pub(super) struct TiledScratch {
    /// Logits of a tile, then their gradient.
    pub(super) logits: Activations,
    pub(super) product: MatmulScratch,
    /// Begun by who takes the step.
    pub(super) hardest: Hardest,
    gathered: Vec<f32>,
    biases: Vec<f32>,
    totals: Vec<Total>,
    losses: Vec<f64>,
    leaf_losses: Vec<f64>,
    sum: TreeSum,
}

impl Pass<'_> {
    /// Loss, gradient and change of the labels, tile after tile. Gives the mean loss.
    pub(super) fn step(
        &self,
        table: &mut impl Table,
        update: &Update,
        key: u64,
        gradient: Option<&mut Activations>,
        moved: &mut [f32],
        scratch: &mut TiledScratch,
    ) -> f64 {
        let (n, width) = (self.input.len(), self.input.width());
        self.total(table.weights(), scratch);
        scratch.leaf_losses.clear();
        let mut sum = std::mem::take(&mut scratch.sum);
        sum.begin(if gradient.is_some() { n * width } else { 0 });
        for leaf in 0..self.order.n_leaves() {
            scratch.losses.clear();
            scratch.losses.resize(n, 0.0);
            sum.add(|sum| {
                sum.fill(0.0);
                for tile in pieces(self.order.leaf(leaf), self.tile) {
                    self.logits(table.weights(), tile.clone(), scratch);
                    self.judge(tile.start, scratch);
                    if !sum.is_empty() {
                        self.add_input_gradient(table.weights(), tile.clone(), sum, scratch);
                    }
                    self.change(table, tile, update, key, moved, scratch);
                }
            });
            scratch.leaf_losses.extend_from_slice(&scratch.losses);
        }
        if let Some(gradient) = gradient {
            gradient.reshape(n, width);
            gradient.values_mut().copy_from_slice(sum.total());
        }
        scratch.sum = sum;
        scratch.hardest.finish();
        let loss = |i: usize| {
            let mut parts = scratch.leaf_losses.iter().skip(i).step_by(n);
            let total = scratch.totals.get(i).copied().unwrap_or(Total::EMPTY);
            self.order.sum(|_| parts.next().copied().unwrap_or(0.0))
                + self.loss.of_total(total, self.truth.row(i).len())
        };
        (0..n).map(loss).sum::<f64>() / n as f64
    }

    /// Logits of all labels of the step at once, then loss and gradient, which stays. Gives the
    /// mean loss.
    pub(super) fn loss(&self, weights: LabelWeights<'_>, scratch: &mut TiledScratch) -> f64 {
        let (n, n_labels) = (self.input.len(), self.order.n_items());
        self.logits(weights, 0..n_labels, scratch);
        let TiledScratch { logits, losses, hardest, .. } = scratch;
        losses.clear();
        losses.resize(n, 0.0);
        let scale = 1.0 / n as f32;
        each_instance(logits, (&mut *losses, hardest.selections()), |i, row, (out, selection)| {
            let positives = self.truth.row(i);
            self.offer(selection, row, Stretch { first: 0, positives, n_positives: positives.len() });
            *out = match self.list {
                None => self.loss.of_blocks(row, &self.order, positives, scale),
                Some(list) => of_chosen(self.loss, row, positives, list.corrections, scale),
            };
        });
        hardest.finish();
        losses.iter().sum::<f64>() / n as f64
    }

    /// Gradient with respect to the input, after [`Pass::loss`].
    pub(super) fn backward(&self, weights: LabelWeights<'_>, gradient: &mut Activations, scratch: &mut TiledScratch) {
        let TiledScratch { logits, product, gathered, .. } = scratch;
        gradient.reshape(logits.len(), weights.width());
        let rows = self.rows(weights, 0..self.order.n_items(), gathered);
        let (of, order) = (logits.matrix(), &self.order);
        product_in_leaves(gradient.matrix_mut(), of, rows, order, self.precision, product);
    }

    /// Changes the labels, after [`Pass::loss`]. `moved` gets how far each one moved, if it is as
    /// long as the labels are many.
    pub(super) fn update(
        &self,
        table: &mut impl Table,
        update: &Update,
        key: u64,
        moved: &mut [f32],
        scratch: &mut TiledScratch,
    ) {
        self.change(table, 0..self.order.n_items(), update, key, moved, scratch);
    }

    /// Sum of squares of the gradient of weights and biases, after [`Pass::loss`].
    pub(super) fn squared_norm(&self, scratch: &mut TiledScratch) -> f64 {
        let TiledScratch { logits, product, .. } = scratch;
        crate::layer::squared_norm(self.input, logits, &self.order, &self.rows, self.precision, product)
    }

    /// Maximum and sum of the logits of each instance, if the loss wants to know them.
    fn total(&self, weights: LabelWeights<'_>, scratch: &mut TiledScratch) {
        scratch.totals.clear();
        if self.loss.is_separable() {
            return;
        }
        scratch.totals.resize(self.input.len(), Total::EMPTY);
        for tile in (0..self.order.n_leaves()).flat_map(|leaf| pieces(self.order.leaf(leaf), self.tile)) {
            self.logits(weights, tile.clone(), scratch);
            let TiledScratch { logits, totals, .. } = &mut *scratch;
            each_instance(logits, &mut *totals, |i, row, total| {
                self.correct(i, tile.start, row);
                total.add(self.loss, row);
            });
        }
    }

    /// Logits of some labels.
    fn logits(&self, weights: LabelWeights<'_>, range: Range<usize>, scratch: &mut TiledScratch) {
        let TiledScratch { logits, product: buffers, gathered, biases, .. } = scratch;
        logits.reshape(self.input.len(), range.len());
        let all = weights.biases();
        let bias = match self.list {
            None => &all[range.clone()],
            Some(list) => {
                biases.clear();
                biases.extend(list.labels[range.clone()].iter().map(|&label| all[label as usize]));
                biases
            }
        };
        let rows = self.rows(weights, range, gathered);
        product(logits.matrix_mut(), self.input.matrix(), rows.t(), Start::Bias(bias), self.precision, buffers);
    }

    /// Rows of some labels: as they lie there, or gathered.
    fn rows<'r>(&self, weights: LabelWeights<'r>, range: Range<usize>, gathered: &'r mut Vec<f32>) -> MatRef<'r> {
        let (n, width) = (range.len(), weights.width());
        match (self.list, weights.rows()) {
            (None, FloatSlice::F32(rows)) => MatRef::new(&rows[range.start * width..range.end * width], n, width),
            (list, rows) => {
                gathered.resize(gathered.len().max(n * width), 0.0);
                let gathered = &mut gathered[..n * width];
                let of_place = |place: usize| {
                    let label = list.map_or(place, |list| list.labels[place] as usize);
                    label * width..(label + 1) * width
                };
                for_each_part_in_pool(gathered, (64 * width).max(1), |part, out| {
                    for (at, out) in out.chunks_exact_mut(width.max(1)).enumerate() {
                        let place = range.start + part * 64 + at;
                        if place + AHEAD < range.end {
                            rows.prefetch(of_place(place + AHEAD));
                        }
                        rows.widen(of_place(place), out);
                    }
                });
                MatRef::new(gathered, n, width)
            }
        }
    }

    /// Adds the losses of a tile and replaces its logits by their gradient.
    fn judge(&self, first: usize, scratch: &mut TiledScratch) {
        let TiledScratch { logits, totals, losses, hardest, .. } = scratch;
        let scale = 1.0 / self.input.len() as f32;
        each_instance(logits, (losses, hardest.selections()), |i, row, (loss, selection)| {
            let of = self.stretch(i, first, row.len());
            self.offer(selection, row, of);
            self.correct(i, first, row);
            let total = totals.get(i).copied().unwrap_or(Total::EMPTY);
            *loss += match self.corrections(first, row.len()) {
                None => self.loss.gradient(row, of, total, scale),
                Some(by) => self.loss.gradient_of_chosen(row, of, by, total, scale),
            };
        });
    }

    /// Offers logits that are not corrected.
    fn offer(&self, selection: &mut Selection, row: &[f32], of: Stretch<'_>) {
        let first = of.first as usize;
        match self.list {
            None => selection.offer(row, of, |at| (first + at) as u32),
            Some(List { labels, .. }) => selection.offer(row, of, |at| labels[first + at]),
        }
    }

    fn correct(&self, i: usize, first: usize, row: &mut [f32]) {
        if let Some(by) = self.corrections(first, row.len()) {
            self.loss.correct(row, self.stretch(i, first, row.len()), by);
        }
    }

    fn corrections(&self, first: usize, len: usize) -> Option<Corrections<'_>> {
        self.list.as_ref().map(|list| list.corrections.part(first..first + len))
    }

    fn stretch(&self, i: usize, first: usize, len: usize) -> Stretch<'_> {
        let all = self.truth.row(i);
        let at = |place: usize| all.partition_point(|&positive| (positive as usize) < place);
        Stretch { first: first as u32, positives: &all[at(first)..at(first + len)], n_positives: all.len() }
    }

    /// `sum += gradient * rows` of a tile.
    fn add_input_gradient(
        &self,
        weights: LabelWeights<'_>,
        tile: Range<usize>,
        sum: &mut [f32],
        scratch: &mut TiledScratch,
    ) {
        let TiledScratch { logits, product: buffers, gathered, .. } = scratch;
        let rows = self.rows(weights, tile, gathered);
        let sum = MatMut::new(sum, logits.len(), weights.width());
        product(sum, logits.matrix(), rows, Start::Kept, self.precision, buffers);
    }

    /// Changes the rows and biases of a tile by their gradient.
    fn change(
        &self,
        table: &mut impl Table,
        tile: Range<usize>,
        update: &Update,
        key: u64,
        moved: &mut [f32],
        scratch: &mut TiledScratch,
    ) {
        let TiledScratch { logits, product, .. } = scratch;
        let width = self.input.width();
        let moved = if moved.is_empty() { moved } else { &mut moved[tile.clone()] };
        let labels = self.list.map(|list| &list.labels[tile.clone()]);
        let (rows, mut bias) = table.parts_mut();
        let sums = column_sums(logits, &self.rows);
        match labels {
            None => bias.rows(tile.clone()).update(&sums, &update.change),
            Some(labels) => {
                for (at, (&label, &sum)) in labels.iter().zip(&sums).enumerate() {
                    let bias = bias.rows(label as usize..label as usize + 1);
                    let squares = change_bias(bias, sum, update);
                    moved.get_mut(at).into_iter().for_each(|moved| *moved = squares);
                }
            }
        }
        let first = labels.map_or(tile.start, |labels| labels.first().map_or(0, |&label| label as usize));
        let (_, rows) = rows.split_at(first * width);
        let target = Target { rows, first, width, moved, labels: labels.map_or(Labels::From(first), Labels::List) };
        let visit = |_: usize, block: &[f32], mut target: Target<'_>| target.change(block, update, key);
        product_by_rows(logits.matrix().t(), self.input.matrix(), &self.rows, target, self.precision, product, &visit);
    }
}

/// Loss and gradient of an instance, from the logits of all labels that were chosen for it.
pub(super) fn of_chosen(loss: Loss, row: &mut [f32], positives: &[u32], by: Corrections<'_>, scale: f32) -> f64 {
    let of = Stretch { first: 0, positives, n_positives: positives.len() };
    loss.correct(row, of, by);
    let mut total = Total::EMPTY;
    if !loss.is_separable() && !positives.is_empty() {
        total.add(loss, row);
    }
    loss.gradient_of_chosen(row, of, by, total, scale) + loss.of_total(total, positives.len())
}

/// Cuts a leaf into tiles.
fn pieces(leaf: Range<usize>, tile: usize) -> impl Iterator<Item = Range<usize>> {
    leaf.clone().step_by(tile).map(move |first| first..leaf.end.min(first + tile))
}

/// Calls `work` with each row of logits and what is kept of its instance.
fn each_instance<K>(logits: &mut Activations, kept: K, work: impl Fn(usize, &mut [f32], K::Item) + Sync)
where
    K: IntoParallelIterator<Iter: IndexedParallelIterator>,
{
    let width = logits.width();
    if width == 0 {
        return kept.into_par_iter().enumerate().for_each(|(i, kept)| work(i, &mut [], kept));
    }
    let rows = logits.values_mut().par_chunks_exact_mut(width).zip(kept);
    rows.enumerate().for_each(|(i, (row, kept))| work(i, row, kept));
}

/// Which label each row of a gradient is of.
#[derive(Clone, Copy)]
enum Labels<'a> {
    From(usize),
    List(&'a [u32]),
}

/// Rows of some labels, to be changed by one task.
struct Target<'a> {
    /// Those of the labels from `first` on.
    rows: StoredMut<'a>,
    first: usize,
    width: usize,
    labels: Labels<'a>,
    /// Squares of how far each row moves, to be added; empty if nobody wants to know.
    moved: &'a mut [f32],
}

impl SplitRows for Target<'_> {
    fn split_at_row(self, row: usize) -> (Self, Self) {
        let Self { rows, first, width, labels, moved } = self;
        let end = first + rows.len() / width.max(1);
        let (a, b, border) = match labels {
            Labels::From(label) => (labels, Labels::From(label + row), label + row),
            Labels::List(list) => {
                let (a, b) = list.split_at(row);
                (Labels::List(a), Labels::List(b), b.first().map_or(end, |&label| label as usize))
            }
        };
        let (low, high) = rows.split_at((border - first) * width);
        let (moved, moved_b) = moved.split_at_mut(row.min(moved.len()));
        (
            Self { rows: low, first, width, labels: a, moved },
            Self { rows: high, first: border, width, labels: b, moved: moved_b },
        )
    }
}

impl Target<'_> {
    /// Changes the rows by a gradient of as many.
    fn change(&mut self, gradient: &[f32], update: &Update, key: u64) {
        let Self { rows, first, width, labels, moved } = self;
        let mut widened = Widened::default();
        if let (Labels::From(_), true) = (&labels, rows.is_plain()) {
            return rows.change(0, gradient, &update.change, key, &mut widened);
        }
        let labels = *labels;
        let label = |at: usize| match labels {
            Labels::From(label) => label + at,
            Labels::List(list) => list[at] as usize,
        };
        let n = gradient.len() / (*width).max(1);
        for (at, gradient) in gradient.chunks_exact((*width).max(1)).enumerate() {
            if at + AHEAD < n {
                rows.prefetch((label(at + AHEAD) - *first) * *width, *width);
            }
            let place = (label(at) - *first) * *width;
            let key = mix(key, label(at) as u64);
            match moved.get_mut(at) {
                None => rows.change(place, gradient, &update.change, key, &mut widened),
                Some(moved) => {
                    *moved += rows.change_measured(place, gradient, &update.change, key, &mut widened);
                    *moved = moved.sqrt();
                }
            }
        }
    }
}

/// Changes a bias; gives the square of the change.
pub(super) fn change_bias(mut bias: RowsMut<'_>, gradient: f32, update: &Update) -> f32 {
    let before = bias.values[0];
    bias.rows(0..1).update(&[gradient], &update.change);
    (bias.values[0] - before).powi(2)
}

/// Rows between asking for a row and gathering or changing it.
const AHEAD: usize = 6;

/// The `k` best labels of each instance, and their losses if they are judged, a tile of labels at a
/// time.
pub(super) fn rank(
    weights: LabelWeights<'_>,
    input: &Activations,
    loss_of: Option<(Targets<'_>, Loss)>,
    k: usize,
    precision: MatmulPrecision,
    scratch: &mut TiledScratch,
    ranks: &mut RowScratch,
    out: &mut Ranked,
) {
    // Not looked at.
    let nothing = Truth { ptr: &[], places: &[] };
    let (truth, loss) = loss_of.map_or((nothing, Loss::Bce), |(targets, loss)| (Truth::of(targets), loss));
    let order = Blocks::whole(weights.n());
    let pass = Pass { input, truth, list: None, loss, precision, order, rows: Blocks::whole(input.len()), tile: TILE };
    ranks.resize_with(ranks.len().max(input.len()), RowRank::default);
    for RowRank { top, loss, total, .. } in &mut ranks[..input.len()] {
        top.reset(k);
        (*loss, *total) = (0.0, Total::EMPTY);
    }
    for tile in pieces(0..weights.n(), TILE) {
        pass.logits(weights, tile.clone(), scratch);
        each_row(&mut scratch.logits, ranks, |i, row, RowRank { top, loss: value, total, .. }| {
            let labels = tile.start as u32..;
            row.iter().zip(labels).for_each(|(&score, label)| top.push(Scored { label, score }));
            if loss_of.is_some() {
                if !loss.is_separable() {
                    total.add(loss, row);
                }
                *value += loss.gradient(row, pass.stretch(i, tile.start, row.len()), *total, 1.0);
            }
        });
    }
    out.best.clear();
    out.losses.clear();
    for (i, RowRank { top, loss: value, total, .. }) in ranks[..input.len()].iter_mut().enumerate() {
        out.best.push_row(top.sorted());
        let judged = loss_of.map(|_| *value + loss.of_total(*total, truth.row(i).len()));
        out.losses.extend(judged);
    }
}

/// Logits of all labels; one row an instance.
pub(super) fn logits(
    weights: LabelWeights<'_>,
    input: &Activations,
    precision: MatmulPrecision,
    scratch: &mut TiledScratch,
    out: &mut Activations,
) {
    let truth = Truth { ptr: &[], places: &[] };
    let (order, rows) = (Blocks::whole(weights.n()), Blocks::whole(input.len()));
    let pass = Pass { input, truth, list: None, loss: Loss::Bce, precision, order, rows, tile: TILE };
    std::mem::swap(&mut scratch.logits, out);
    pass.logits(weights, 0..weights.n(), scratch);
    std::mem::swap(&mut scratch.logits, out);
}
