//! Gradients of the weights, and what they do to the weights.

use super::active::{Active, Entry, Touched};
use super::{Sparse, SparseScratch};
use crate::layer::squares;
use crate::optim::Change;
use crate::parameter::RowsMut;
use crate::{Decay, Update};
use rayon::prelude::*;
use std::ops::Range;
use xc_hash::stream::{Purpose, mix, name};
use xc_sparse::buffer::{FloatBuffer, FloatSliceMut};
use xc_sparse::uniform::{FanIn, Index, Kernels, Lines, weight_gradients};
use xc_sparse::with_indices;

/// Outputs that one task changes.
const LEAF: usize = 256;

/// Some neighbouring outputs, to be changed.
struct Part<'a> {
    /// Number of the first one, and of its first connection.
    first: usize,
    weights: FloatSliceMut<'a>,
    moments: [Option<FloatSliceMut<'a>>; 2],
    bias: RowsMut<'a>,
}

impl<'a> Part<'a> {
    fn split_at(self, output: usize, fan_in: &FanIn) -> (Self, Self) {
        let at = fan_in.range(output).start - fan_in.range(self.first).start;
        let (weights, weights_b) = self.weights.split_at(at);
        let [first, second] = self.moments.map(|moment| match moment.map(|moment| moment.split_at(at)) {
            Some((a, b)) => (Some(a), Some(b)),
            None => (None, None),
        });
        use xc_sparse::dense::SplitRows;
        let (bias, bias_b) = self.bias.split_at_row(output - self.first);
        (
            Self { first: self.first, weights, moments: [first.0, second.0], bias },
            Self { first: output, weights: weights_b, moments: [first.1, second.1], bias: bias_b },
        )
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
    fn fill<'a, I: Index>(
        &mut self,
        inputs: &[I],
        entries: impl Iterator<Item = (usize, &'a Entry)> + Clone,
        lines: &Lines,
        active: &[Active],
    ) {
        let kernels = Kernels::current();
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
        let mut moments = self.moments.iter_mut().map(FloatBuffer::to_mut);
        let moments = [moments.next(), moments.next()];
        let part = Part { first: 0, weights: weights.to_mut(), moments, bias: self.bias.rows_mut() };
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
    fn split<I: Index>(&self, places: Range<usize>, inputs: &[I], part: Part<'_>) {
        if places.len() <= LEAF {
            return self.leaf(places, inputs, part);
        }
        let half = places.start + places.len() / 2;
        let (a, b) = part.split_at(self.touched.output(half), self.fan_in);
        rayon::join(|| self.split(places.start..half, inputs, a), || self.split(half..places.end, inputs, b));
    }

    fn leaf<I: Index>(&self, places: Range<usize>, inputs: &[I], mut part: Part<'_>) {
        let mut gradient = Gradient::default();
        let mut scratch: [Vec<f32>; 3] = Default::default();
        let base = self.fan_in.range(part.first).start;
        let kernels = Kernels::current();
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
            self.change(&mut part, place, &gradient.weights, mix(self.key, output as u64), &mut scratch);
            let row = output - part.first;
            part.bias.rows(row..row + 1).update(&[gradient.bias], self.change);
        }
    }

    /// Applies the rule to an output's weights from place `at` on.
    fn change(&self, part: &mut Part<'_>, at: usize, gradient: &[f32], key: u64, scratch: &mut [Vec<f32>; 3]) {
        let len = gradient.len();
        let range = at..at + len;
        // In place where nothing is to be widened.
        if let FloatSliceMut::F32(weights) = &mut part.weights {
            let mut slices: [Option<&mut [f32]>; 2] = [None, None];
            let mut is_plain = true;
            for (slice, moment) in slices.iter_mut().zip(&mut part.moments) {
                match moment {
                    Some(FloatSliceMut::F32(values)) => *slice = Some(&mut values[range.clone()]),
                    Some(_) => is_plain = false,
                    None => {}
                }
            }
            if is_plain {
                let [first, second] = slices.map(Option::unwrap_or_default);
                return RowsMut::new(&mut weights[range], first, second, len, Decay::Yes).update(gradient, self.change);
            }
        }
        scratch.iter_mut().for_each(|values| values.resize(len, 0.0));
        let [weights, first, second] = scratch;
        part.weights.widen(range.clone(), weights);
        let [a, b] = &part.moments;
        for (moment, values) in [(a, &mut *first), (b, &mut *second)] {
            match moment {
                Some(moment) => moment.widen(range.clone(), values),
                None => values.clear(),
            }
        }
        RowsMut::new(weights, first, second, len, Decay::Yes).update(gradient, self.change);
        // Three streams of one output: the numbers 0, 3, 6, ... and so on.
        let random = |which: u64| {
            let mut number = which;
            move || {
                number += 3;
                (mix(key, number) >> 32) as u32
            }
        };
        part.weights.store(at, weights, random(0));
        let [a, b] = &mut part.moments;
        for (which, (moment, values)) in [(a, first), (b, second)].into_iter().enumerate() {
            if let Some(moment) = moment {
                moment.store(at, values, random(which as u64 + 1));
            }
        }
    }
}
