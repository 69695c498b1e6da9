//! One vector of the states of an instance's tokens.

use super::super::params::Pooling;
use super::ragged::{Pass, by_instance};
use crate::activations::Activations;
use xc_buffer::sums::add;

/// The vector of each instance; that of one without tokens is 0. *Shapes*: tokens x width to instances x width.
pub(super) fn forward(pooling: Pooling, pass: &Pass<'_>, states: &Activations, out: &mut Activations) {
    let width = states.width();
    out.reshape(pass.batch.len(), width);
    let parts = [(out.values_mut(), width)];
    by_instance(pass.is_alone, pass.batch, 0..pass.batch.len(), parts, [true], &|i, [out]| {
        let range = pass.batch.range(i);
        let rows = states.values()[range.start * width..range.end * width].chunks_exact(width);
        let (taken, share) = share(pooling, range.len());
        out.fill(0.0);
        rows.take(taken).for_each(|row| add(out, row));
        out.iter_mut().for_each(|value| *value *= share);
    });
}

/// The gradient of the states.
pub(super) fn backward(pooling: Pooling, pass: &Pass<'_>, gradient: &Activations, out: &mut Activations) {
    let width = gradient.width();
    out.reshape(pass.batch.ids.len(), width);
    let parts = [(out.values_mut(), width)];
    by_instance(pass.is_alone, pass.batch, 0..pass.batch.len(), parts, [false], &|i, [out]| {
        let (taken, share) = share(pooling, pass.batch.range(i).len());
        let (first, rest) = out.split_at_mut(taken * width);
        for row in first.chunks_exact_mut(width) {
            row.iter_mut().zip(gradient.row(i)).for_each(|(out, g)| *out = g * share);
        }
        rest.fill(0.0);
    });
}

/// How many of an instance's first states are added, and what their sum is multiplied by.
fn share(pooling: Pooling, n_tokens: usize) -> (usize, f32) {
    match pooling {
        Pooling::Mean => (n_tokens, 1.0 / n_tokens.max(1) as f32),
        Pooling::First => (n_tokens.min(1), 1.0),
    }
}
