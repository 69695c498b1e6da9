//! Logits, loss and its gradient for a tile of outputs; the gradient of the inputs.

use super::active::{Active, Positives};
use super::{Sparse, SparseWorkspace, Tile};
use crate::Activations;
use crate::arch::vectorised;
use crate::loss::Separable;
use rayon::prelude::*;
use xc_sparse::uniform::{Index, Kernels, LANES, Line, Numbers, Sums};
use xc_sparse::with_indices;

/// Outputs after which a sum of losses in f32 goes over into f64.
const RUN: usize = 64;

impl Sparse {
    /// Mean loss of the batch over a tile. Leaves the gradients in the workspace, and adds to the gradient of the inputs if that is wanted.
    pub(super) fn pass(&self, tile: Tile<'_>, loss: Separable, backward: bool, room: &mut SparseWorkspace) -> f64 {
        let SparseWorkspace { lines, gradient, positives, active, n_instances, .. } = room;
        let (lines, width) = (&*lines, self.connections.n_inputs());
        let scale = 1.0 / *n_instances as f32;
        let mut none: Vec<Sums> = Vec::new();
        let gradient = if backward { gradient } else { &mut none };
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
        active.clear();
        let mut total = 0.0f64;
        let mut losses = Sums::default();
        let mut weights = Weights::new(self.connections.weights());
        let mut cursor = positives.from(if tile.len() == 0 { 0 } else { tile.output(0) });
        for at in 0..tile.len() {
            let output = tile.output(at);
            let range = self.connections.range(output);
            let inputs = &inputs[range.clone()];
            let weights = weights.row(range);
            let mut sums = kernels.forward(task.lines, inputs, weights);
            let lanes = task.judge(&mut sums, self.bias.values()[output], cursor.lanes(output), &mut losses);
            if lanes != 0
                && let Some(gradient) = &mut gradient
            {
                kernels.add_input_gradient(gradient, inputs, weights, &sums, lanes);
            }
            active.push(lanes, &sums);
            if at % RUN == RUN - 1 {
                total += take(&mut losses);
            }
        }
        total + take(&mut losses)
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
    /// Adds the bias, replaces the logits by `scale` times their gradient and adds their losses. Gives the lanes whose gradient
    /// is not 0.
    #[inline(always)]
    fn judge(&self, sums: &mut Sums, bias: f32, positive: u32, losses: &mut Sums) -> u32 {
        if self.loss == Separable::SquaredHinge && positive == 0 {
            // The common case: nothing is true, and all is below the margin. NaN is not below.
            let is_below = vectorised(|| {
                let mut all = true;
                for half in sums.iter_mut() {
                    for z in half {
                        *z += bias;
                        all &= *z <= -1.0;
                    }
                }
                all
            });
            if is_below {
                return 0;
            }
        } else {
            sums.as_flattened_mut().iter_mut().for_each(|z| *z += bias);
        }
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
