//! Answers: logits of all outputs, or only the best ones.

use super::active::Cursor;
use super::tiles::Tile;
use super::weights::Weights;
use super::{Sparse, SparseScratch};
use crate::head::Ranked;
use crate::loss::{Shares, Total};
use crate::{Activations, Loss, Targets};
use rayon::prelude::*;
use xc_buffer::dtype::nearest_bf16;
use xc_buffer::parallel::{for_each_part, for_each_part_in_pool};
use xc_sparse::rank::{LabelId, Scored, TopK};
use xc_sparse::uniform::{FanIn, LANES, Sums, UniformKernels};
use xc_sparse::with_indices;

/// Outputs of a task: enough for an order of their own, few enough that one query keeps all cores
/// busy.
const OUTPUTS: usize = 1 << 14;

impl Sparse {
    /// Calls `visit` with the place of every output of a tile, the output and its logits for a
    /// block of instances.
    fn each(&self, tile: Tile<'_>, block: usize, scratch: &SparseScratch, mut visit: impl FnMut(usize, usize, &Sums)) {
        let kernels = UniformKernels::current();
        let lines = scratch.lines.block(block);
        let mut weights = Weights::new(self.connections.weights());
        with_indices!(self.connections.indices(), inputs => {
            for at in 0..tile.len() {
                let (output, ahead) = (tile.output(at), self.ahead(tile, at, inputs));
                let range = self.connections.range(output);
                let mut sums = kernels.forward(lines, &inputs[range.clone()], weights.row(range), ahead);
                let bias = self.bias.values()[output];
                sums.as_flattened_mut().iter_mut().for_each(|z| *z += bias);
                visit(at, output, &sums);
            }
        });
    }

    pub(super) fn all_logits(&self, input: &Activations, logits: &mut Activations, scratch: &mut SparseScratch) {
        let n = self.connections.n_labels();
        scratch.lines.fill(input.values(), input.len(), input.width());
        logits.reshape(input.len(), n);
        if n == 0 {
            return;
        }
        let scratch = &*scratch;
        for_each_part(logits.values_mut(), LANES * n, |block, rows| {
            self.each(Tile::Range { first: 0, len: n }, block, scratch, |_, output, sums| {
                for (row, z) in rows.chunks_exact_mut(n).zip(sums.as_flattened()) {
                    row[output] = *z;
                }
            });
        });
    }

    pub(super) fn ranked(
        &self,
        input: &Activations,
        truth: Option<(Targets<'_>, Loss)>,
        k: usize,
        scratch: &mut SparseScratch,
        out: &mut Ranked,
    ) {
        out.best.clear();
        out.losses.clear();
        if truth.is_none() && input.len() <= ALONE {
            let RankScratch { one, best, .. } = &mut scratch.ranks;
            for i in 0..input.len() {
                self.rank_one(input.row(i), k, one, best);
                out.best.push_row(best);
            }
            return;
        }
        let n = self.connections.n_labels();
        scratch.lines.fill(input.values(), input.len(), input.width());
        let n_blocks = scratch.lines.n_blocks();
        if let Some((targets, _)) = truth {
            scratch.fill_positives(targets);
        }
        let totals = match truth {
            Some((targets, loss)) => self.totals(Tile::Range { first: 0, len: n }, loss, targets, scratch),
            None => Vec::new(),
        };
        let mut ranks = std::mem::take(&mut scratch.ranks);
        let RankScratch { parts, top, .. } = &mut ranks;
        let (steps, tasks) = (&*scratch, n.div_ceil(OUTPUTS).max(1));
        if parts.len() < n_blocks * tasks {
            parts.resize_with(n_blocks * tasks, PartRank::default);
        }
        let parts = &mut parts[..n_blocks * tasks];
        parts.par_iter_mut().enumerate().for_each(|(task, PartRank { tops, losses })| {
            let (block, part) = (task / tasks, task % tasks);
            let outputs = part * OUTPUTS..n.min((part + 1) * OUTPUTS);
            let lanes = steps.lines.lanes(block);
            tops.resize_with(LANES, TopK::default);
            tops.iter_mut().for_each(|top| top.reset(k));
            let mut bars = Sums::default();
            bars.as_flattened_mut().fill(if k == 0 { f32::INFINITY } else { f32::NEG_INFINITY });
            *losses = [0.0f64; LANES];
            let mut cursor = truth.map(|_| steps.positives[block].from(outputs.start));
            let tile = Tile::Range { first: outputs.start, len: outputs.len() };
            self.each(tile, block, steps, |_, output, sums| {
                if let (Some((_, loss)), Some(cursor)) = (truth, &mut cursor) {
                    let shares = totals.get(block).map_or(&NONE, |of| &of.shares);
                    add_losses(loss, shares, cursor, output, sums, losses);
                }
                if !reaches(sums, &bars) {
                    return;
                }
                for lane in 0..lanes {
                    let (score, bar) = (sums[lane / 16][lane % 16], &mut bars[lane / 16][lane % 16]);
                    if score >= *bar {
                        tops[lane].push(Scored { label: output as u32, score });
                        *bar = tops[lane].threshold();
                    }
                }
            });
        });
        for (block, of_block) in parts.chunks_mut(tasks).enumerate() {
            for lane in 0..steps.lines.lanes(block) {
                top.reset(k);
                of_block.iter_mut().for_each(|part| part.tops[lane].best().iter().for_each(|&item| top.push(item)));
                out.best.push_row(top.sorted());
                if truth.is_some() {
                    let shared = totals.get(block).map_or(0.0, |of| of.losses[lane]);
                    out.losses.push(shared + of_block.iter().map(|part| part.losses[lane]).sum::<f64>());
                }
            }
        }
        scratch.ranks = ranks;
    }
}

/// Buffers of [`Sparse::ranked`]; they grow to the largest batch and stay.
#[derive(Default)]
pub(super) struct RankScratch {
    one: OneScratch,
    best: Vec<Scored>,
    /// For each block of instances and each part of the labels.
    parts: Vec<PartRank>,
    top: TopK,
}

/// The best of a part of the labels for each instance of a block, and what these labels add to the
/// losses.
struct PartRank {
    tops: Vec<TopK>,
    losses: [f64; LANES],
}

impl Default for PartRank {
    fn default() -> Self {
        Self { tops: Vec::new(), losses: [0.0; LANES] }
    }
}

/// Instances up to which each is answered by itself: a block of [`LANES`] costs as much as 3 of
/// them.
const ALONE: usize = 2;

/// Buffers of answering one instance; they grow to what is needed and stay.
#[derive(Debug, Default)]
pub struct OneScratch {
    /// The instance, rounded as in a block.
    values: Vec<f32>,
    /// The best of each part of the labels.
    parts: Vec<TopK>,
    top: TopK,
}

/// A value of an instance as the products read it: rounded to bf16.
pub fn as_read(value: f32) -> f32 {
    f32::from_bits(u32::from(nearest_bf16(value)) << 16)
}

/// The values of one instance as a block has them.
fn round(input: &[f32], values: &mut Vec<f32>) {
    values.clear();
    values.extend(input.iter().copied().map(as_read));
}

impl Sparse {
    /// The best labels of one instance by their logits into `out`: the same as in a block, to the
    /// bit. Its work is shared by the threads of the pool that the caller is in.
    pub fn rank_one(&self, input: &[f32], k: usize, scratch: &mut OneScratch, out: &mut Vec<Scored>) {
        let OneScratch { values, parts, top } = scratch;
        round(input, values);
        let n_parts = self.connections.n_labels().div_ceil(OUTPUTS);
        if parts.len() < n_parts {
            parts.resize_with(n_parts, || TopK::new(0));
        }
        let parts = &mut parts[..n_parts];
        for_each_part_in_pool(parts, 1, |part, top| {
            top[0].reset(k);
            self.rank_part(values, part, &mut top[0]);
        });
        top.reset(k);
        parts.iter_mut().for_each(|part| part.best().iter().for_each(|&item| top.push(item)));
        top.sorted().clone_into(out);
    }

    /// Offers the labels of a part.
    fn rank_part(&self, values: &[f32], part: usize, top: &mut TopK) {
        /// Outputs whose scores stand side by side.
        const SCORES: usize = 256;
        let kernels = UniformKernels::current();
        let end = self.connections.n_labels().min((part + 1) * OUTPUTS);
        let mut weights = Weights::new(self.connections.weights());
        let mut scores = [0.0f32; SCORES];
        for first in (part * OUTPUTS..end).step_by(SCORES) {
            let scores = &mut scores[..SCORES.min(end - first)];
            with_indices!(self.connections.indices(), inputs => {
                // Side by side where all have as many connections, else one at a time.
                let together = match self.connections.fan_in() {
                    FanIn::Uniform(_) => scores.len(),
                    FanIn::Varying(_) => 1,
                };
                for (at, scores) in scores.chunks_mut(together).enumerate() {
                    let output = first + at * together;
                    let begin = self.connections.range(output);
                    let range = begin.start..self.connections.range(output + scores.len() - 1).end;
                    let row = weights.row(range.clone());
                    kernels.forward_one(values, &inputs[range], row, begin.len(), scores);
                }
            });
            let biases = &self.bias.values()[first..];
            let mut bar = top.threshold();
            for (output, (sum, bias)) in (first..).zip(scores.iter().zip(biases)) {
                let score = sum + bias;
                if score >= bar {
                    top.push(Scored { label: output as u32, score });
                    bar = top.threshold();
                }
            }
        }
    }

    /// The best of some labels of one instance by their logits into `out`, as [`Sparse::rank_one`]
    /// scores them.
    pub fn rank_some(
        &self,
        input: &[f32],
        labels: &[LabelId],
        k: usize,
        scratch: &mut OneScratch,
        out: &mut Vec<Scored>,
    ) {
        let OneScratch { values, top, .. } = scratch;
        round(input, values);
        top.reset(k);
        let kernels = UniformKernels::current();
        let mut weights = Weights::new(self.connections.weights());
        with_indices!(self.connections.indices(), inputs => {
            for &label in labels {
                let range = self.connections.range(label as usize);
                let mut score = [0.0f32];
                kernels.forward_one(values, &inputs[range.clone()], weights.row(range.clone()), range.len(), &mut score);
                top.push(Scored { label, score: score[0] + self.bias.values()[label as usize] });
            }
        });
        top.sorted().clone_into(out);
    }
}

/// What a loss that looks at all logits of an instance knows of those of a block.
pub(super) struct BlockTotals {
    /// For the gradients of each lane.
    pub(super) shares: [Shares; LANES],
    /// The part of each lane's loss that no single logit has.
    pub(super) losses: [f64; LANES],
}

/// Of a loss that adds up over the outputs.
pub(super) const NONE: [Shares; LANES] = [Shares::NONE; LANES];

impl Sparse {
    /// What the loss knows of all logits of a tile before their gradients: for each block, or
    /// nothing if it adds up over the outputs.
    ///
    /// *Cost*: a forward product where there is something to know.
    pub(super) fn totals(
        &self,
        tile: Tile<'_>,
        loss: Loss,
        targets: Targets<'_>,
        scratch: &SparseScratch,
    ) -> Vec<BlockTotals> {
        /// Outputs whose logits stand side by side.
        const SIDE: usize = 256;
        if loss.is_separable() {
            return Vec::new();
        }
        let tasks = tile.len().div_ceil(OUTPUTS).max(1);
        let parts: Vec<[Total; LANES]> = (0..scratch.lines.n_blocks() * tasks)
            .into_par_iter()
            .map(|task| {
                let (block, part) = (task / tasks, task % tasks);
                let mut totals = [Total::EMPTY; LANES];
                let mut rows = vec![[0.0f32; SIDE]; LANES];
                let mut n = 0;
                let mut take = |rows: &[[f32; SIDE]], n: usize| {
                    totals.iter_mut().zip(rows).for_each(|(total, row)| total.add(loss, &row[..n]));
                };
                let tile = tile.part(part * OUTPUTS, OUTPUTS);
                let mut cursor = scratch.positives[block].from(if tile.len() == 0 { 0 } else { tile.output(0) });
                self.each(tile, block, scratch, |at, output, sums| {
                    let (log_q, positive) = (tile.correction(at).log_q, cursor.lanes(output));
                    for (lane, (row, &z)) in rows.iter_mut().zip(sums.as_flattened()).enumerate() {
                        row[n] = if positive >> lane & 1 == 1 { z } else { z - log_q };
                    }
                    n += 1;
                    if n == SIDE {
                        take(&rows, n);
                        n = 0;
                    }
                });
                take(&rows, n);
                totals
            })
            .collect();
        let of_block = |(block, parts): (usize, &[[Total; LANES]])| {
            let mut out = BlockTotals { shares: NONE, losses: [0.0; LANES] };
            for lane in 0..scratch.lines.lanes(block) {
                let mut total = Total::EMPTY;
                parts.iter().for_each(|part| total.merge(part[lane]));
                let n_positives = targets.row(block * LANES + lane).len();
                out.shares[lane] = Shares::new(total, n_positives);
                out.losses[lane] = loss.of_total(total, n_positives);
            }
            out
        };
        parts.chunks(tasks).enumerate().map(of_block).collect()
    }
}

fn add_losses(
    loss: Loss,
    shares: &[Shares; LANES],
    cursor: &mut Cursor<'_>,
    output: usize,
    sums: &Sums,
    losses: &mut [f64; LANES],
) {
    let positive = cursor.lanes(output);
    for (lane, (total, &z)) in losses.iter_mut().zip(sums.as_flattened()).enumerate() {
        *total += f64::from(loss.loss_and_gradient(z, positive >> lane & 1 == 1, shares[lane]).0);
    }
}

/// Whether a lane may be among the best: nearly always none is.
#[inline(always)]
fn reaches(sums: &Sums, bars: &Sums) -> bool {
    sums.as_flattened().iter().zip(bars.as_flattened()).fold(false, |any, (z, bar)| any | (z >= bar))
}
