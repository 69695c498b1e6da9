//! Logits, loss and its gradient for a tile of outputs; the gradient of the inputs.

use super::active::{Active, Positives};
use super::{Sparse, SparseWorkspace, Tile};
use crate::Activations;
use crate::loss::Separable;
use rayon::prelude::*;
use std::collections::VecDeque;
use xc_sparse::uniform::{Index, Kernels, LANES, Line, Numbers, Sums};
use xc_sparse::with_indices;

/// How many outputs ahead lines are asked for. 1 to 8 are about as good.
const AHEAD: usize = 2;
/// How many outputs with a gradient wait for the lines that they add to.
const BEHIND: usize = 4;

impl Sparse {
    /// Mean loss of the batch over a tile. Leaves the gradients in the workspace, and adds to the gradient of the inputs if that is wanted.
    pub(super) fn pass(&self, tile: Tile<'_>, loss: Separable, backward: bool, room: &mut SparseWorkspace) -> f64 {
        let SparseWorkspace { lines, gradient, positives, active, n_instances, .. } = room;
        let (lines, width) = (&*lines, self.connections.n_inputs());
        let scale = 1.0 / *n_instances as f32;
        let gradient: &mut [Sums] = if backward { gradient } else { &mut [] };
        // With nothing to add to, every block gets an empty part.
        let mut parts: Vec<&mut [Sums]> = gradient.chunks_mut(width.max(1)).collect();
        parts.resize_with(lines.n_blocks(), Default::default);
        let blocks = active.par_iter_mut().zip(positives.par_iter()).zip(parts);
        let losses: Vec<f64> = blocks
            .enumerate()
            .map(|(block, ((active, positives), gradient))| {
                let task = Task { lines: lines.block(block), lanes: valid(lines.lanes(block)), loss, scale };
                let gradient = backward.then_some(gradient);
                with_indices!(self.connections.indices(), inputs => {
                    self.block(tile, &task, inputs, positives, gradient, active)
                })
            })
            .collect();
        losses.iter().sum::<f64>() / *n_instances as f64
    }

    fn block<I: Index>(
        &self,
        tile: Tile<'_>,
        task: &Task<'_>,
        inputs: &[I],
        positives: &Positives,
        mut gradient: Option<&mut [Sums]>,
        active: &mut Active,
    ) -> f64 {
        let kernels = Kernels::current();
        let all_inputs = inputs;
        // Places whose gradients have been asked for and are added a little later, in their order.
        let mut waiting = VecDeque::with_capacity(BEHIND);
        active.begin(tile.len());
        let mut total = 0.0f64;
        let (mut sums, mut losses) = (Sums::default(), Sums::default());
        let mut weights = Weights::new(self.connections.weights());
        let mut cursor = positives.from(if tile.len() == 0 { 0 } else { tile.output(0) });
        for at in 0..tile.len() {
            let output = tile.output(at);
            let range = self.connections.range(output);
            let ahead = match at + AHEAD < tile.len() {
                true => &inputs[self.connections.range(tile.output(at + AHEAD))],
                false => &[],
            };
            let inputs = &inputs[range.clone()];
            let weights = weights.row(range);
            let positive = cursor.lanes(output);
            // Nearly always nothing is true and all is below the margin: then there is nothing more to do.
            let bar = if positive == 0 { task.loss.no_loss_below() } else { f32::NEG_INFINITY };
            let bias = [self.bias.values()[output], bar];
            if kernels.forward_above(task.lines, inputs, weights, ahead, bias, &mut sums) & task.lanes == 0 {
                continue;
            }
            let lanes = task.judge(&mut sums, positive, &mut losses);
            total += take(&mut losses);
            if lanes != 0 {
                active.set(at, lanes, &sums);
                if let Some(gradient) = &mut gradient {
                    kernels.prefetch_gradient(gradient, inputs, lanes);
                    if waiting.len() == BEHIND
                        && let Some(at) = waiting.pop_front()
                    {
                        self.add_gradient(tile.output(at), at, active, all_inputs, gradient);
                    }
                    waiting.push_back(at);
                }
            }
        }
        if let Some(gradient) = &mut gradient {
            waiting.into_iter().for_each(|at| self.add_gradient(tile.output(at), at, active, all_inputs, gradient));
        }
        total
    }

    fn add_gradient<I: Index>(&self, output: usize, at: usize, active: &Active, inputs: &[I], gradient: &mut [Sums]) {
        let range = self.connections.range(output);
        let mut weights = Weights::new(self.connections.weights());
        let (inputs, weights) = (&inputs[range.clone()], weights.row(range));
        let kernels = Kernels::current();
        kernels.add_input_gradient(gradient, inputs, weights, &active.gradient(at), active.lanes(at));
    }
}

/// Weights of an output in f32: as they lie there, or widened.
pub(super) struct Weights<'a> {
    all: &'a Numbers,
    row: Vec<f32>,
}

impl<'a> Weights<'a> {
    pub(super) fn new(all: &'a Numbers) -> Self {
        Self { all, row: Vec::new() }
    }

    #[inline(always)]
    pub(super) fn row(&mut self, range: std::ops::Range<usize>) -> &[f32] {
        if let Numbers::F32(values) = self.all {
            return &values[range];
        }
        self.row.resize(range.len(), 0.0);
        self.all.widen(range, &mut self.row);
        &self.row
    }
}

/// A mask of the first lanes.
pub(super) fn valid(lanes: usize) -> u32 {
    if lanes >= LANES { u32::MAX } else { (1 << lanes) - 1 }
}

fn take(losses: &mut Sums) -> f64 {
    let out = losses.as_flattened().iter().map(|&v| f64::from(v)).sum();
    *losses = Sums::default();
    out
}

/// A block of instances.
struct Task<'a> {
    lines: &'a [Line],
    /// Lanes that are instances.
    lanes: u32,
    loss: Separable,
    /// Factor of the gradient.
    scale: f32,
}

impl Task<'_> {
    /// Replaces the logits by `scale` times their gradient and adds their losses. Gives the lanes whose gradient is not 0.
    fn judge(&self, sums: &mut Sums, positive: u32, losses: &mut Sums) -> u32 {
        let mut lanes = 0;
        for lane in 0..LANES {
            let z = &mut sums[lane / 16][lane % 16];
            if self.lanes >> lane & 1 == 0 {
                *z = 0.0;
                continue;
            }
            let (loss, gradient) = self.loss.one(*z, positive >> lane & 1 == 1);
            losses[lane / 16][lane % 16] += loss;
            *z = gradient * self.scale;
            lanes |= u32::from(*z != 0.0) << lane;
        }
        lanes
    }
}

/// Turns gradients by blocks into rows, one an instance.
pub(super) fn unpack(blocks: &[Sums], n_instances: usize, width: usize, out: &mut Activations) {
    /// Inputs whose lines fit the first-level cache together with their rows.
    const STRIPE: usize = 64;
    out.reshape(n_instances, width);
    if width == 0 {
        return;
    }
    let rows = out.values_mut().par_chunks_mut(LANES * width);
    rows.zip(blocks.par_chunks(width)).for_each(|(rows, lines)| {
        for first in (0..width).step_by(STRIPE) {
            let last = width.min(first + STRIPE);
            for (lane, row) in rows.chunks_exact_mut(width).enumerate() {
                for (value, line) in row[first..last].iter_mut().zip(&lines[first..last]) {
                    *value = line[lane / 16][lane % 16];
                }
            }
        }
    });
}
