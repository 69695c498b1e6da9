//! Gradients of the weights, and what they do to the weights.

use super::active::{Active, Entry, Touched};
use super::{Sparse, SparseScratch};
use crate::Update;
use crate::layer::squares;
use crate::optim::Change;
use crate::parameter::RowsMut;
use crate::stored::{StoredMut, Widened};
use rayon::prelude::*;
use std::ops::Range;
use xc_hash::stream::{Purpose, mix, name};
use xc_sparse::uniform::{FanIn, IndexWidth, Lines, UniformKernels, weight_gradients};
use xc_sparse::with_indices;

/// Outputs that one task changes.
const LEAF: usize = 256;

/// Some neighbouring outputs, to be changed.
struct Part<'a> {
    /// Number of the first one, and of its first connection.
    first: usize,
    weights: StoredMut<'a>,
    bias: RowsMut<'a>,
}

impl<'a> Part<'a> {
    fn split_at(self, output: usize, fan_in: &FanIn) -> (Self, Self) {
        let at = fan_in.range(output).start - fan_in.range(self.first).start;
        let (weights, weights_b) = self.weights.split_at(at);
        use xc_dense::SplitRows;
        let (bias, bias_b) = self.bias.split_at_row(output - self.first);
        (Self { first: self.first, weights, bias }, Self { first: output, weights: weights_b, bias: bias_b })
    }
}

/// What all tasks read.
struct Learning<'a> {
    fan_in: &'a FanIn,
    lines: &'a Lines,
    active: &'a [Active],
    touched: &'a Touched,
    change: &'a Change,
    /// Names the streams of stochastic rounding.
    key: u64,
}

/// Gradient of one output's weights and bias.
#[derive(Default)]
struct Gradient {
    sums: Vec<[f32; 16]>,
    weights: Vec<f32>,
    bias: f32,
}

impl Gradient {
    /// Sums over the blocks with many instances, then over those with few, each in the order of the
    /// blocks.
    fn fill<'a, I: IndexWidth>(
        &mut self,
        inputs: &[I],
        entries: impl Iterator<Item = (usize, &'a Entry)> + Clone,
        lines: &Lines,
        active: &[Active],
    ) {
        let kernels = UniformKernels::current();
        self.sums.clear();
        self.sums.resize(inputs.len(), [0.0; 16]);
        self.weights.resize(inputs.len(), 0.0);
        self.bias = 0.0;
        for (block, entry) in entries.clone() {
            let gradient = active[block].gradient(entry);
            if !entry.is_few() {
                kernels.add_weight_gradient(&mut self.sums, lines.block(block), inputs, &gradient);
            }
            self.bias += gradient.as_flattened().iter().sum::<f32>();
        }
        weight_gradients(&self.sums, &mut self.weights);
        for (block, entry) in entries.filter(|(_, entry)| entry.is_few()) {
            let more = active[block].of_weights(entry, inputs.len());
            self.weights.iter_mut().zip(more).for_each(|(weight, more)| *weight += more);
        }
    }
}

impl Sparse {
    /// Changes outputs by their gradients. Those without a gradient stay as they are, moments
    /// included.
    pub(super) fn learn(&mut self, lines: &Lines, active: &[Active], update: &Update) {
        let touched = Touched::new(active);
        if touched.len() == 0 {
            return;
        }
        let (fan_in, indices, weights) = self.connections.parts_mut();
        let key = name(update.at.seed, Purpose::Rounding, &[super::STREAM, update.at.number]);
        let step = Learning { fan_in, lines, active, touched: &touched, change: &update.change, key };
        let part = Part { first: 0, weights: StoredMut::new(weights, &mut self.moments), bias: self.bias.rows_mut() };
        with_indices!(indices, inputs => step.split(0..touched.len(), &inputs[..], part));
    }

    /// Sum of squares of the gradient of all weights and biases.
    pub(super) fn norm_of(&self, scratch: &SparseScratch) -> f64 {
        let touched = Touched::new(&scratch.active);
        let leaf = |first: usize| {
            let mut gradient = Gradient::default();
            let one = |at: usize| {
                let range = self.connections.range(touched.output(at));
                with_indices!(self.connections.indices(), inputs => {
                    gradient.fill(&inputs[range], touched.of(at, &scratch.active), &scratch.lines, &scratch.active);
                });
                squares(&gradient.weights) + f64::from(gradient.bias).powi(2)
            };
            (first..touched.len().min(first + LEAF)).map(one).sum::<f64>()
        };
        let sums: Vec<f64> = (0..touched.len()).into_par_iter().step_by(LEAF).map(leaf).collect();
        sums.iter().sum()
    }
}

impl Learning<'_> {
    /// Halves the touched outputs until a leaf has a few.
    fn split<I: IndexWidth>(&self, places: Range<usize>, inputs: &[I], part: Part<'_>) {
        if places.len() <= LEAF {
            return self.leaf(places, inputs, part);
        }
        let half = places.start + places.len() / 2;
        let (a, b) = part.split_at(self.touched.output(half), self.fan_in);
        rayon::join(|| self.split(places.start..half, inputs, a), || self.split(half..places.end, inputs, b));
    }

    fn leaf<I: IndexWidth>(&self, places: Range<usize>, inputs: &[I], mut part: Part<'_>) {
        let mut gradient = Gradient::default();
        let mut widened = Widened::default();
        let base = self.fan_in.range(part.first).start;
        let kernels = UniformKernels::current();
        for at in places.clone() {
            if at + 1 < places.end {
                // Its lines come while this one is worked on.
                let inputs = &inputs[self.fan_in.range(self.touched.output(at + 1))];
                for (block, entry) in self.touched.of(at + 1, self.active) {
                    match entry.is_few() {
                        true => kernels.prefetch(self.active[block].of_weights(entry, inputs.len())),
                        false => kernels.prefetch_lines(self.lines.block(block), inputs),
                    }
                }
            }
            let output = self.touched.output(at);
            let range = self.fan_in.range(output);
            let place = range.start - base;
            gradient.fill(&inputs[range], self.touched.of(at, self.active), self.lines, self.active);
            let key = mix(self.key, output as u64);
            part.weights.change(place, &gradient.weights, self.change, key, &mut widened);
            let row = output - part.first;
            part.bias.rows(row..row + 1).update(&[gradient.bias], self.change);
        }
    }
}
