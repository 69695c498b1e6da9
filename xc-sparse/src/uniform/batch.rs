//! Forward and backward pass of a whole batch: the products of all labels with all instances.
//!
//! [`UniformKernels`] has the products that a trainer fuses with its loss and update; this is the plain form,
//! for any width of indices and any type of weights.

use super::product::{Sums, UniformKernels, weight_gradients};
use super::{Connections, LANES, Lines};
use crate::with_indices;
use rayon::prelude::*;

impl Connections {
    /// The score of every label for every instance, row-major: one row of `n_labels()` per instance.
    ///
    /// *Determinism*: sums have a fixed order, with the same bits at any number of threads. *Cost*: one
    /// cache line per connection for 32 instances; blocks of 32 instances in parallel.
    ///
    /// # Panics
    /// If the batch has a different number of inputs, there is not one bias per label, or `out` has a
    /// different length.
    pub fn forward(&self, batch: &Lines, biases: &[f32], out: &mut [f32]) {
        let n_labels = self.n_labels();
        self.expect_batch(batch, biases.len(), out.len());
        if out.is_empty() {
            return;
        }
        let kernels = UniformKernels::current();
        with_indices!(self.indices(), inputs => {
            out.par_chunks_mut(LANES * n_labels).enumerate().for_each_init(Vec::new, |row, (block, out)| {
                let lines = batch.block(block);
                for (label, &bias) in biases.iter().enumerate() {
                    let range = self.range(label);
                    let weights = self.weights_of(label, row);
                    // Lines of the label after next are asked for meanwhile.
                    let ahead = if label + 2 < n_labels { &inputs[self.range(label + 2)] } else { &[] };
                    let sums = kernels.forward(lines, &inputs[range], weights, ahead);
                    for (out, sum) in out.chunks_exact_mut(n_labels).zip(sums.as_flattened()) {
                        out[label] = sum + bias;
                    }
                }
            });
        });
    }

    /// Computes from the gradient of every score (in the layout of [`Connections::forward`]) the
    /// gradient of every weight, in the order of the connections, and of every input, one row of
    /// `n_inputs()` per instance. Both are overwritten.
    ///
    /// *Determinism*: as [`Connections::forward`]. *Cost*: about twice that of the forward
    /// products.
    ///
    /// # Panics
    /// If the batch has a different number of inputs, or a slice has a different length.
    pub fn backward(&self, batch: &Lines, gradient: &[f32], of_weights: &mut [f32], of_inputs: &mut [f32]) {
        let (n_labels, n_inputs) = (self.n_labels(), self.n_inputs());
        self.expect_batch(batch, n_labels, gradient.len());
        let lengths = (of_weights.len(), of_inputs.len());
        assert!(lengths == (self.len(), batch.len() * n_inputs), "gradients of {lengths:?} weights and inputs");
        let kernels = UniformKernels::current();
        let of_lanes = |block: usize, label: usize| {
            let mut sums = Sums::default();
            let rows = gradient[block * LANES * n_labels..].chunks_exact(n_labels).take(batch.lanes(block));
            sums.as_flattened_mut().iter_mut().zip(rows).for_each(|(sum, row)| *sum = row[label]);
            sums
        };
        with_indices!(self.indices(), inputs => {
            of_inputs.par_chunks_mut(LANES * n_inputs).enumerate().for_each_init(Vec::new, |row, (block, out)| {
                let mut sums = vec![Sums::default(); n_inputs];
                for label in 0..n_labels {
                    let range = self.range(label);
                    let weights = self.weights_of(label, row);
                    kernels.add_input_gradient(&mut sums, &inputs[range], weights, &of_lanes(block, label));
                }
                for (lane, out) in out.chunks_exact_mut(n_inputs).enumerate() {
                    out.iter_mut().zip(&sums).for_each(|(out, sums)| *out = sums.as_flattened()[lane]);
                }
            });
            let mut rest = of_weights;
            let mut rows = Vec::with_capacity(n_labels);
            for label in 0..n_labels {
                let (row, others) = rest.split_at_mut(self.range(label).len());
                rows.push(row);
                rest = others;
            }
            rows.into_par_iter().enumerate().for_each_init(Vec::new, |sums, (label, out)| {
                sums.clear();
                sums.resize(out.len(), [0.0f32; 16]);
                for block in 0..batch.n_blocks() {
                    let gradient = of_lanes(block, label);
                    kernels.add_weight_gradient(sums, batch.block(block), &inputs[self.range(label)], &gradient);
                }
                weight_gradients(sums, out);
            });
        });
    }

    /// The weights of a label in f32, widened into `room`.
    fn weights_of<'a>(&self, label: usize, room: &'a mut Vec<f32>) -> &'a [f32] {
        let range = self.range(label);
        room.resize(range.len(), 0.0);
        self.weights().widen(range, room);
        room
    }

    fn expect_batch(&self, batch: &Lines, n_labels: usize, n_scores: usize) {
        assert!(batch.n_inputs() == self.n_inputs(), "{} inputs, expected {}", batch.n_inputs(), self.n_inputs());
        assert!(n_labels == self.n_labels(), "{n_labels} labels, expected {}", self.n_labels());
        let expected = batch.len() * self.n_labels();
        assert!(n_scores == expected, "{n_scores} scores, expected {expected}");
    }
}
