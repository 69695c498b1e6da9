//! Logits, loss and its gradient for a tile of outputs; the gradient of the inputs.

use super::active::{Active, Cursor, Entry};
use super::rank::{BlockTotals, NONE};
use super::tiles::{Correction, Tile};
use super::weights::Weights;
use super::{Sparse, SparseScratch};
use crate::head::hardest::Selection;
use crate::loss::Shares;
use crate::{Activations, Loss};
use rayon::prelude::*;
use std::collections::VecDeque;

use xc_buffer::dtype::nearest_bf16;
use xc_buffer::vectorised;
use xc_sparse::uniform::{ByteBlock, IndexWidth, LANES, ScreenRows, Sums, UniformKernels, UniformLine};
use xc_sparse::with_indices;

/// How many outputs ahead lines are asked for. 1 to 8 are about as good.
const AHEAD: usize = 2;
/// How many outputs with a gradient wait for the lines that they add to.
const BEHIND: usize = 4;

impl Sparse {
    /// Mean loss of the batch over a tile. Leaves the gradients in the scratch, and adds to the
    /// gradient of the inputs if that is wanted. With `screens` outputs are screened, for which the
    /// scratch has the batch in bytes.
    pub(super) fn pass(
        &self,
        tile: Tile<'_>,
        loss: Loss,
        totals: &[BlockTotals],
        backward: bool,
        screens: bool,
        scratch: &mut SparseScratch,
    ) -> f64 {
        let SparseScratch { lines, bytes, screened, n_seen, gradient, positives, active, n_instances, hardest, .. } =
            scratch;
        let (lines, width) = (&*lines, self.connections.n_inputs());
        let scale = 1.0 / *n_instances as f32;
        let gradient: &mut [Sums] = if backward { gradient } else { &mut [] };
        // With nothing to add to, every block gets an empty part.
        let mut parts: Vec<&mut [Sums]> = gradient.chunks_mut(width.max(1)).collect();
        parts.resize_with(lines.n_blocks(), Default::default);
        let selections = hardest.selections().chunks_mut(LANES);
        let blocks = active.iter_mut().zip(&*positives).zip(parts).zip(selections).enumerate();
        let mut tasks: Vec<Task<'_>> = blocks
            .map(|(block, (((active, positives), gradient), selections))| Task {
                lines: lines.block(block),
                lanes: valid(lines.lanes(block)),
                loss,
                shares: totals.get(block).map_or(&NONE, |of| &of.shares),
                scale,
                cursor: positives.from(if tile.len() == 0 { 0 } else { tile.output(0) }),
                active,
                gradient: backward.then_some(gradient),
                waiting: VecDeque::with_capacity(BEHIND),
                collecting: Collecting::new(selections),
                n_seen: 0,
                total: 0.0,
            })
            .collect();
        if screens {
            let bar = loss.margin();
            screened.fill(&self.connections, self.bias.values(), bar, tile.len(), |at| tile.output(at));
            // Two lines of bytes share the reading of indices and weights, where that leaves two
            // tasks for each thread.
            let n_lines = if lines.n_blocks() >= 8 * rayon::current_num_threads() { 2 } else { 1 };
            with_indices!(self.connections.indices(), inputs => {
                tasks.par_chunks_mut(2 * n_lines).enumerate().for_each(|(at, tasks)| {
                    let first = at * n_lines;
                    match n_lines == 2 && first + 1 < bytes.n_blocks() {
                        true => self.screened(tile, inputs, screened, [bytes.block(first), bytes.block(first + 1)], tasks),
                        false => self.screened(tile, inputs, screened, [bytes.block(first)], tasks),
                    }
                });
            });
            *n_seen = tasks.iter().map(|task| task.n_seen).sum();
        } else {
            // Blocks go in pairs, which share the reading of indices and weights.
            with_indices!(self.connections.indices(), inputs => {
                tasks.par_chunks_mut(2).for_each(|tasks| self.blocks(tile, inputs, tasks));
            });
        }
        tasks.iter().map(|task| task.total).sum::<f64>() / *n_instances as f64
    }

    /// Inputs of the output whose lines are asked for while that at a place of a tile is worked on.
    #[inline(always)]
    pub(super) fn ahead<'a, I: IndexWidth>(&self, tile: Tile<'_>, at: usize, inputs: &'a [I]) -> &'a [I] {
        if at + AHEAD < tile.len() { &inputs[self.connections.range(tile.output(at + AHEAD))] } else { &[] }
    }

    /// A tile for one block or two.
    fn blocks<I: IndexWidth>(&self, tile: Tile<'_>, inputs: &[I], tasks: &mut [Task<'_>]) {
        let kernels = UniformKernels::current();
        let all_inputs = inputs;
        let mut sums = [Sums::default(); 2];
        let mut weights = Weights::new(self.connections.weights());
        for at in 0..tile.len() {
            let output = tile.output(at);
            let range = self.connections.range(output);
            let ahead = self.ahead(tile, at, inputs);
            let inputs = &inputs[range.clone()];
            let weights = weights.row(range);
            let mut positive = [0; 2];
            tasks.iter_mut().zip(&mut positive).for_each(|(task, positive)| *positive = task.cursor.lanes(output));
            // Nearly always nothing is true and all is below the margin: then there is nothing more
            // to do.
            let is_false = positive == [0; 2];
            let margin = if is_false { tasks[0].loss.margin() } else { f32::NEG_INFINITY };
            let bar = tasks.iter().fold(margin, |bar, task| bar.min(task.collecting.bar));
            let bounds = [self.bias.values()[output], bar];
            let above = match tasks {
                [a, b] => {
                    let [first, second] = &mut sums;
                    let lines = [a.lines, b.lines];
                    kernels.forward_above_two(lines, inputs, weights, ahead, bounds, [first, second])
                }
                _ => [kernels.forward_above(tasks[0].lines, inputs, weights, ahead, bounds, &mut sums[0]), 0],
            };
            for (which, task) in tasks.iter_mut().enumerate() {
                if above[which] & task.lanes != 0 && task.offer(output, positive[which], margin, &sums[which]) {
                    self.judge(tile, at, all_inputs, inputs, task, positive[which], &mut sums[which]);
                }
            }
        }
        self.add_waiting(all_inputs, tasks);
    }

    /// A tile for the blocks of `N` lines of bytes: what screening finds worth it is scored as in
    /// [`Self::blocks`].
    fn screened<const N: usize, I: IndexWidth>(
        &self,
        tile: Tile<'_>,
        all_inputs: &[I],
        rows: &ScreenRows,
        bytes: [ByteBlock<'_>; N],
        tasks: &mut [Task<'_>],
    ) {
        let kernels = UniformKernels::current();
        let mut sums = Sums::default();
        let mut weights = Weights::new(self.connections.weights());
        let next = |tasks: &[Task<'_>]| tasks.iter().map(|task| task.cursor.next()).min().unwrap_or(usize::MAX);
        let mut next_positive = next(tasks);
        for at in 0..tile.len() {
            let output = tile.output(at);
            let range = self.connections.range(output);
            let ahead = self.ahead(tile, at, all_inputs);
            let inputs = &all_inputs[range.clone()];
            let seen = kernels.screen(bytes, inputs, rows.row(at), ahead);
            // Nearly always nothing is seen and nothing is true.
            if seen == 0 && output < next_positive {
                continue;
            }
            for (which, task) in tasks.iter_mut().enumerate() {
                let positive = task.cursor.lanes(output);
                let is_seen = seen >> which & 1 == 1;
                if !is_seen && positive == 0 {
                    continue;
                }
                task.n_seen += usize::from(is_seen);
                let margin = if positive == 0 { task.loss.margin() } else { f32::NEG_INFINITY };
                let bar = margin.min(task.collecting.bar);
                let bounds = [self.bias.values()[output], bar];
                let weights = weights.row(range.clone());
                let above = kernels.forward_above(task.lines, inputs, weights, &[], bounds, &mut sums);
                if above & task.lanes != 0 && task.offer(output, positive, margin, &sums) {
                    self.judge(tile, at, all_inputs, inputs, task, positive, &mut sums);
                }
            }
            if output >= next_positive {
                next_positive = next(tasks);
            }
        }
        self.add_waiting(all_inputs, tasks);
    }

    fn add_waiting<I: IndexWidth>(&self, inputs: &[I], tasks: &mut [Task<'_>]) {
        for task in tasks {
            while let Some(entry) = task.waiting.pop_front() {
                self.add_gradient(entry, inputs, task);
            }
        }
    }

    /// Loss and gradient of an output for a block of which some lanes may have a loss.
    fn judge<I: IndexWidth>(
        &self,
        tile: Tile<'_>,
        at: usize,
        all_inputs: &[I],
        inputs: &[I],
        task: &mut Task<'_>,
        positive: u32,
        sums: &mut Sums,
    ) {
        let lanes = task.judge(tile.correction(at), sums, positive);
        if lanes == 0 {
            return;
        }
        let entry = task.active.entries().len();
        task.active.push(tile.output(at), lanes, sums);
        if let Some(gradient) = &mut task.gradient
            && !task.active.entries()[entry].is_few()
        {
            if task.active.note_many() {
                gradient.fill(Sums::default());
            }
            UniformKernels::current().prefetch_gradient(gradient, inputs, lanes);
            if task.waiting.len() == BEHIND
                && let Some(entry) = task.waiting.pop_front()
            {
                self.add_gradient(entry, all_inputs, task);
            }
            task.waiting.push_back(entry);
        }
    }

    fn add_gradient<I: IndexWidth>(&self, entry: usize, inputs: &[I], task: &mut Task<'_>) {
        let entry = task.active.entries()[entry];
        let range = self.connections.range(entry.output as usize);
        let mut weights = Weights::new(self.connections.weights());
        let (inputs, weights) = (&inputs[range.clone()], weights.row(range));
        if let Some(gradient) = &mut task.gradient {
            let of_one = task.active.gradient(&entry);
            UniformKernels::current().add_input_gradient(gradient, inputs, weights, &of_one);
        }
    }

    /// The gradients of outputs that few instances of a block have one for, instance after
    /// instance.
    pub(super) fn take_few(&self, input: &Activations, backward: bool, scratch: &mut SparseScratch) {
        let SparseScratch { rows, active, .. } = scratch;
        let width = self.connections.n_inputs();
        let size = (LANES * width).max(1);
        let rows: &mut [f32] = if backward { rows.values_mut() } else { &mut [] };
        let mut parts: Vec<&mut [f32]> = rows.chunks_mut(size).collect();
        parts.resize_with(active.len(), Default::default);
        let blocks = active.par_iter_mut().zip(parts).zip(input.values().par_chunks(size));
        with_indices!(self.connections.indices(), inputs => {
            blocks.for_each_init(OneInstance::default, |one, ((active, rows), values)| {
                self.take_few_of(inputs, active, rows, values, one);
            });
        });
    }

    fn take_few_of<I: IndexWidth>(
        &self,
        inputs: &[I],
        active: &mut Active,
        rows: &mut [f32],
        values: &[f32],
        one: &mut OneInstance,
    ) {
        let (kernels, width) = (UniformKernels::current(), self.connections.n_inputs());
        let mut weights = Weights::new(self.connections.weights());
        let range = |entry: &Entry| self.connections.range(entry.output as usize);
        let n_weights = |output| self.connections.range(output).len();
        active.take_few(n_weights, |lane, list, entries, of_weights| {
            let mut row: &mut [f32] = &mut [];
            if !rows.is_empty() {
                row = &mut rows[lane * width..][..width];
            }
            one.begin(&values[lane * width..][..width], row);
            for (n, &(at, gradient)) in list.iter().enumerate() {
                if let Some(&(next, _)) = list.get(n + SOON) {
                    let next = &entries[next as usize];
                    let range = range(next);
                    kernels.prefetch(&of_weights[next.first_weight()..][..range.len()]);
                    kernels.prefetch(&inputs[range.clone()]);
                    weights.prefetch(range);
                }
                let entry = &entries[at as usize];
                let range = range(entry);
                let sums = &mut of_weights[entry.first_weight()..][..range.len()];
                let inputs = &inputs[range.clone()];
                kernels.add_gradients_of_one(
                    &one.values,
                    &mut one.gradient,
                    inputs,
                    weights.row(range),
                    gradient,
                    sums,
                );
            }
            row.copy_from_slice(&one.gradient);
        });
    }
}

/// How many outputs ahead an instance's are asked for.
const SOON: usize = 4;

/// An instance's inputs as the products have them, and their gradient if it is wanted: both stay in
/// the second-level cache.
#[derive(Default)]
struct OneInstance {
    values: Vec<f32>,
    gradient: Vec<f32>,
}

impl OneInstance {
    fn begin(&mut self, values: &[f32], gradient: &[f32]) {
        self.values.resize(values.len(), 0.0);
        self.gradient.clear();
        self.gradient.extend_from_slice(gradient);
        let rounded = |value| f32::from_bits(u32::from(nearest_bf16(value)) << 16);
        vectorised(|| self.values.iter_mut().zip(values).for_each(|(to, &value)| *to = rounded(value)));
    }
}

/// A mask of the first lanes.
fn valid(lanes: usize) -> u32 {
    if lanes >= LANES { u32::MAX } else { (1 << lanes) - 1 }
}

/// A block of instances and what becomes of it in a tile.
struct Task<'a> {
    lines: &'a [UniformLine],
    /// Lanes that are instances.
    lanes: u32,
    loss: Loss,
    /// What it knows of all logits of each lane.
    shares: &'a [Shares; LANES],
    /// Factor of the gradient.
    scale: f32,
    cursor: Cursor<'a>,
    active: &'a mut Active,
    /// Of the inputs, if it is wanted.
    gradient: Option<&'a mut [Sums]>,
    /// Entries whose gradients have been asked for and are added a little later, in their order.
    waiting: VecDeque<usize>,
    collecting: Collecting<'a>,
    /// Outputs that screening found worth a full score.
    n_seen: usize,
    /// Losses so far.
    total: f64,
}

/// The best false labels of a block's instances.
struct Collecting<'a> {
    /// One an instance; empty if nobody collects.
    selections: &'a mut [Selection],
    /// What the logit of each lane has to reach.
    thresholds: [f32; LANES],
    /// At or below it no lane is of interest; infinite if nobody collects.
    bar: f32,
}

impl<'a> Collecting<'a> {
    fn new(selections: &'a mut [Selection]) -> Self {
        let collects = selections.first().is_some_and(Selection::collects);
        let selections = if collects { selections } else { &mut [] };
        let mut out = Self { selections, thresholds: [f32::INFINITY; LANES], bar: f32::INFINITY };
        if collects {
            let each = out.selections.iter().map(Selection::threshold);
            out.thresholds.iter_mut().zip(each).for_each(|(to, threshold)| *to = threshold);
            out.set_bar();
        }
        out
    }

    fn set_bar(&mut self) {
        let least = self.thresholds.iter().fold(f32::INFINITY, |least, &threshold| least.min(threshold));
        // A sum at the bar counts as below it.
        self.bar = least.next_down();
    }

    /// Offers the logits of an output, which is false of all lanes but some.
    #[inline(always)]
    fn offer(&mut self, output: usize, positive: u32, sums: &Sums) {
        let logits = sums.as_flattened();
        let may_keep = |any: bool, (z, threshold): (&f32, &f32)| any | (z >= threshold);
        if !logits.iter().zip(&self.thresholds).fold(false, may_keep) {
            return;
        }
        for (lane, selection) in self.selections.iter_mut().enumerate() {
            if positive >> lane & 1 == 0 && logits[lane] >= self.thresholds[lane] {
                selection.push(output as u32, logits[lane]);
                self.thresholds[lane] = selection.threshold();
            }
        }
        self.set_bar();
    }
}

impl Task<'_> {
    /// Offers the logits of an output to who collects. Gives whether a lane is above the margin: the loss is
    /// not asked about others.
    #[inline(always)]
    fn offer(&mut self, output: usize, positive: u32, margin: f32, sums: &Sums) -> bool {
        if self.collecting.selections.is_empty() {
            return true;
        }
        self.collecting.offer(output, positive, sums);
        let is_above = |lane: usize, z: f32| self.lanes >> lane & 1 == 1 && (z > margin || z.is_nan());
        margin == f32::NEG_INFINITY || sums.as_flattened().iter().enumerate().any(|(lane, &z)| is_above(lane, z))
    }

    /// Replaces the logits by `scale` times their gradient and adds their losses. Gives the lanes
    /// whose gradient is not 0.
    fn judge(&mut self, of: Correction, sums: &mut Sums, positive: u32) -> u32 {
        // The loss is known inside the loop over lanes, and that nothing is corrected.
        const NONE: Correction = Correction::NONE;
        match self.loss {
            Loss::Softmax => self.judge_by(Loss::Softmax, of, sums, positive),
            Loss::Bce if of.weight == 1.0 => self.judge_by(Loss::Bce, NONE, sums, positive),
            Loss::Bce | Loss::Nce => self.judge_by(Loss::Bce, of, sums, positive),
            Loss::SquaredHinge if of.weight == 1.0 => self.judge_by(Loss::SquaredHinge, NONE, sums, positive),
            Loss::SquaredHinge => self.judge_by(Loss::SquaredHinge, of, sums, positive),
            Loss::Own(loss) => self.judge_by(Loss::Own(loss), of, sums, positive),
        }
    }

    #[inline(always)]
    fn judge_by(&mut self, loss: Loss, of: Correction, sums: &mut Sums, positive: u32) -> u32 {
        let (mut lanes, mut total) = (0, 0.0f32);
        for lane in 0..LANES {
            let z = &mut sums[lane / 16][lane % 16];
            if self.lanes >> lane & 1 == 0 {
                *z = 0.0;
                continue;
            }
            let is_true = positive >> lane & 1 == 1;
            let (log_q, weight) = match loss {
                _ if is_true => (0.0, 1.0),
                Loss::Softmax => (of.log_q, 1.0),
                _ => (0.0, of.weight),
            };
            let (value, gradient) = loss.loss_and_gradient(*z - log_q, is_true, self.shares[lane]);
            total += value * weight;
            *z = gradient * weight * self.scale;
            lanes |= u32::from(*z != 0.0) << lane;
        }
        self.total += f64::from(total);
        lanes
    }
}

/// Adds gradients by blocks, where there are any, to rows, one an instance.
pub(super) fn add_blocks(blocks: &[Sums], active: &[Active], out: &mut Activations) {
    /// Inputs whose lines fit the first-level cache together with their rows.
    const STRIPE: usize = 64;
    let width = out.width();
    if width == 0 {
        return;
    }
    let rows = out.values_mut().par_chunks_mut(LANES * width);
    let blocks = rows.zip(blocks.par_chunks(width)).zip(active).filter(|(_, active)| active.has_many());
    blocks.for_each(|((rows, lines), _)| {
        for first in (0..width).step_by(STRIPE) {
            let last = width.min(first + STRIPE);
            for (lane, row) in rows.chunks_exact_mut(width).enumerate() {
                for (value, line) in row[first..last].iter_mut().zip(&lines[first..last]) {
                    *value += line[lane / 16][lane % 16];
                }
            }
        }
    });
}
