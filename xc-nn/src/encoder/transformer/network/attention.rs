//! Attention within each instance.
//!
//! ```text
//!   of a head:   S = Q K^T / sqrt(width) + bias by distance     P = softmax of each row, some dropped     out = P V
//! ```
//!
//! An instance is one task (where there are fewer instances than threads, some of its heads are), whose weights `P` exist
//! for a head at a time: backward computes them again. So memory grows with the tokens of a batch and with the square of
//! the longest instance alone.

use super::distance::Offsets;
use super::lanes::{largest, sum};
use super::ragged::{Pass, by_instance};
use crate::activations::{Activation, ActivationDropout, Activations, Mode};
use rayon::prelude::*;
use std::cell::Cell;
use xc_buffer::parallel::in_pool;
use xc_buffer::simd::exp;
use xc_buffer::{Loop, vectorised_loop};
use xc_dense::{MatMut, MatRef, MatmulPrecision, MatmulScratch, Start, product_alone};
use xc_hash::stream::mix;

thread_local! {
    /// Matrices of a head. Taken rather than borrowed: nothing waits meanwhile, but nothing has to know that.
    static OWN: Cell<Option<Box<Own>>> = const { Cell::new(None) };
}

#[derive(Default)]
struct Own {
    /// Weights of attention, and what they are behind dropout, where there is any.
    weights: Vec<f32>,
    kept: Vec<f32>,
    /// Their gradient.
    gradient: Vec<f32>,
    /// A head's part of what goes out.
    part: Vec<f32>,
    names: Vec<u32>,
    product: MatmulScratch,
}

/// Attention of a layer.
#[derive(Clone, Copy)]
pub(super) struct Attention<'a> {
    pub(super) heads: usize,
    pub(super) width: usize,
    /// Dropout of weights; its number tells the layer.
    pub(super) dropout: ActivationDropout,
    /// The bias by distance, where there is one.
    pub(super) offsets: Option<Offsets<'a>>,
}

/// What an instance's heads are computed with.
struct Heads<'a> {
    of: Attention<'a>,
    pass: &'a Pass<'a>,
    /// Queries, keys and values of its tokens, side by side.
    qkv: &'a [f32],
    /// Its tokens.
    len: usize,
    /// Names of its tokens.
    names: &'a [u32],
}

impl Attention<'_> {
    /// Mixes the values of each instance's tokens. *Shapes*: `qkv` tokens x 3 widths, `out` tokens x width.
    pub(super) fn forward(&self, pass: &Pass<'_>, qkv: &Activations, out: &mut Activations) {
        let (width, batch) = (self.width, pass.batch);
        out.reshape(qkv.len(), width);
        let parts = [(out.values_mut(), width)];
        let shares_heads = !pass.is_alone && in_pool() && batch.len() < rayon::current_num_threads();
        by_instance(pass.is_alone, batch, 0..batch.len(), parts, [false], &|i, [out]| {
            let heads = self.heads_of(pass, qkv, i);
            if shares_heads {
                return heads.forward_together(out);
            }
            let mut own = OWN.take().unwrap_or_default();
            for head in 0..self.heads {
                heads.forward(head, &mut own, out);
            }
            OWN.set(Some(own));
        });
    }

    /// The gradient of `qkv` by that of the output. That of the bias by distance is written to `distances`, one row an
    /// instance of a number for each bucket and head.
    pub(super) fn backward(
        &self,
        pass: &Pass<'_>,
        qkv: &Activations,
        gradient: &Activations,
        out: &mut Activations,
        distances: &mut Vec<f32>,
    ) {
        let (width, batch) = (self.width, pass.batch);
        let n_offsets = self.offsets.map_or(0, |offsets| offsets.n_values());
        out.reshape(qkv.len(), 3 * width);
        distances.clear();
        distances.resize(batch.len() * n_offsets, 0.0);
        let parts = [(out.values_mut(), 3 * width), (&mut distances[..], n_offsets)];
        by_instance(pass.is_alone, batch, 0..batch.len(), parts, [false, true], &|i, [out, distances]| {
            let (heads, range) = (self.heads_of(pass, qkv, i), batch.range(i));
            let gradient = &gradient.values()[range.start * width..range.end * width];
            let mut own = OWN.take().unwrap_or_default();
            for head in 0..self.heads {
                heads.backward(head, gradient, &mut own, out, distances);
            }
            OWN.set(Some(own));
        });
    }

    fn heads_of<'a>(&'a self, pass: &'a Pass<'a>, qkv: &'a Activations, i: usize) -> Heads<'a> {
        let range = pass.batch.range(i);
        let names = pass.names.get(range.clone()).unwrap_or_default();
        let qkv = &qkv.values()[range.start * 3 * self.width..range.end * 3 * self.width];
        Heads { of: *self, pass, qkv, len: range.len(), names }
    }
}

/// Which of the three matrices that lie side by side.
#[derive(Clone, Copy)]
enum Part {
    Queries,
    Keys,
    Values,
}

impl Heads<'_> {
    /// Values of a head.
    fn width(&self) -> usize {
        self.of.width / self.of.heads
    }

    fn scale(&self) -> f32 {
        1.0 / (self.width() as f32).sqrt()
    }

    /// The queries, keys or values of a head.
    fn part(&self, part: Part, head: usize) -> MatRef<'_> {
        let first = part as usize * self.of.width + head * self.width();
        MatRef::with_strides(&self.qkv[first..], (self.len, self.width()), (3 * self.of.width, 1))
    }

    /// Whether weights are dropped.
    fn drops(&self) -> bool {
        self.of.dropout.dropout > 0.0 && self.pass.mode != Mode::Predict
    }

    /// The weights of a head, and what dropout leaves of them where there is any.
    fn weigh(&self, head: usize, own: &mut Own) {
        let n = self.len * self.len;
        own.weights.resize(own.weights.len().max(n), 0.0);
        let weights = &mut own.weights[..n];
        let (queries, keys) = (self.part(Part::Queries, head), self.part(Part::Keys, head));
        times(weights, queries, keys.t(), self.pass.products, &mut own.product);
        let offsets = self.of.offsets.map(|offsets| offsets.of_head(head));
        vectorised_loop(Softmax { weights, len: self.len, scale: self.scale(), offsets });
        if !self.drops() {
            return;
        }
        own.kept.resize(own.kept.len().max(n), 0.0);
        own.kept[..n].copy_from_slice(weights);
        own.names.clear();
        own.names.extend(self.names.iter().map(|&name| (mix(u64::from(name), head as u64) >> 32) as u32));
        self.drop(&own.names, &mut own.kept[..n]);
    }

    /// The weights that values are mixed by.
    fn mixing<'a>(&self, weights: &'a [f32], kept: &'a [f32]) -> MatRef<'a> {
        let values = if self.drops() { kept } else { weights };
        MatRef::new(&values[..self.len * self.len], self.len, self.len)
    }

    fn drop(&self, names: &[u32], weights: &mut [f32]) {
        self.of.dropout.forward(self.pass.mode, names, self.len, weights);
    }

    fn forward(&self, head: usize, own: &mut Own, out: &mut [f32]) {
        if self.len == 0 {
            return;
        }
        let mut part = std::mem::take(&mut own.part);
        part.resize(self.len * self.width(), 0.0);
        self.mix(head, own, &mut part);
        put(&part, self.width(), out, self.of.width, head * self.width());
        own.part = part;
    }

    /// All heads, shared by the threads of the pool.
    fn forward_together(&self, out: &mut [f32]) {
        let each = self.len * self.width();
        if each == 0 {
            return;
        }
        let mut parts = vec![0.0; each * self.of.heads];
        let some = self.of.heads.div_ceil(rayon::current_num_threads());
        parts.par_chunks_mut(some * each).enumerate().for_each(|(first, parts)| {
            let mut own = OWN.take().unwrap_or_default();
            for (head, part) in (first * some..).zip(parts.chunks_exact_mut(each)) {
                self.mix(head, &mut own, part);
            }
            OWN.set(Some(own));
        });
        for (head, part) in parts.chunks_exact(each).enumerate() {
            put(part, self.width(), out, self.of.width, head * self.width());
        }
    }

    /// A head's part of what goes out.
    fn mix(&self, head: usize, own: &mut Own, part: &mut [f32]) {
        self.weigh(head, own);
        let Own { weights, kept, product, .. } = own;
        let kept = self.mixing(weights, kept);
        times(part, kept, self.part(Part::Values, head), self.pass.products, product);
    }

    fn backward(&self, head: usize, gradient: &[f32], own: &mut Own, out: &mut [f32], distances: &mut [f32]) {
        if self.len == 0 {
            return;
        }
        self.weigh(head, own);
        let (len, width, products) = (self.len, self.width(), self.pass.products);
        let Own { weights, kept, gradient: of_weights, part, names, product } = own;
        let (kept, square) = (self.mixing(weights, kept), len * len);
        let weights = &weights[..square];
        let gradient = MatRef::with_strides(&gradient[head * width..], (len, width), (self.of.width, 1));
        let mut put_part = |part: &[f32], which: Part| {
            put(part, width, out, 3 * self.of.width, which as usize * self.of.width + head * width);
        };
        part.resize(len * width, 0.0);
        times(part, kept.t(), gradient, products, product);
        put_part(part, Part::Values);
        of_weights.resize(of_weights.len().max(square), 0.0);
        let of_weights = &mut of_weights[..square];
        times(of_weights, gradient, self.part(Part::Values, head).t(), products, product);
        if self.drops() {
            self.drop(names, of_weights);
        }
        vectorised_loop(SoftmaxBackward { weights, gradient: of_weights, len });
        if let Some(offsets) = self.of.offsets {
            offsets.add_gradient(head, of_weights, len, distances);
        }
        let scale = self.scale();
        vectorised_loop(Scale { values: of_weights, scale });
        let of_sums = MatRef::new(of_weights, len, len);
        times(part, of_sums, self.part(Part::Keys, head), products, product);
        put_part(part, Part::Queries);
        times(part, of_sums.t(), self.part(Part::Queries, head), products, product);
        put_part(part, Part::Keys);
    }
}

/// `c = a * b` on this thread.
fn times(c: &mut [f32], a: MatRef<'_>, b: MatRef<'_>, products: MatmulPrecision, scratch: &mut MatmulScratch) {
    let c = MatMut::new(c, a.shape().0, b.shape().1);
    product_alone(c, a, b, Start::Zero, products, scratch);
}

/// Copies rows of `width` values into rows of `stride`, from column `first` on.
fn put(rows: &[f32], width: usize, out: &mut [f32], stride: usize, first: usize) {
    for (row, out) in rows.chunks_exact(width).zip(out.chunks_exact_mut(stride)) {
        out[first..first + width].copy_from_slice(row);
    }
}

/// Dropout of weights of attention, of a layer whose number tells its masks apart.
pub(super) fn dropout(rate: f32, layer: u64) -> ActivationDropout {
    ActivationDropout { activation: Activation::Identity, dropout: rate, layer }
}

/// The softmax of each row of scores times `scale`, plus what its distances add.
struct Softmax<'a> {
    weights: &'a mut [f32],
    len: usize,
    scale: f32,
    /// What each distance adds, from that of the first token to the last on.
    offsets: Option<&'a [f32]>,
}

impl Loop for Softmax<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { weights, len, scale, offsets } = self;
        for (i, row) in weights.chunks_exact_mut(len).enumerate() {
            match offsets {
                Some(offsets) => {
                    // The distances of this token to all: the middle of the list is that to itself.
                    let of_row = &offsets[offsets.len() / 2 - i..][..len];
                    row.iter_mut().zip(of_row).for_each(|(x, offset)| *x = *x * scale + offset);
                }
                None => row.iter_mut().for_each(|x| *x *= scale),
            }
            let most = largest(row);
            row.iter_mut().for_each(|x| *x = exp(*x - most));
            let share = 1.0 / sum(len, |j| row[j]);
            row.iter_mut().for_each(|x| *x *= share);
        }
    }
}

/// Turns the gradient of weights into that of scores: `g = p * (g - sum of g * p)`.
struct SoftmaxBackward<'a> {
    weights: &'a [f32],
    gradient: &'a mut [f32],
    len: usize,
}

impl Loop for SoftmaxBackward<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { weights, gradient, len } = self;
        for (p, g) in weights.chunks_exact(len).zip(gradient.chunks_exact_mut(len)) {
            let along = sum(len, |j| p[j] * g[j]);
            g.iter_mut().zip(p).for_each(|(g, p)| *g = p * (*g - along));
        }
    }
}

struct Scale<'a> {
    values: &'a mut [f32],
    scale: f32,
}

impl Loop for Scale<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        self.values.iter_mut().for_each(|value| *value *= self.scale);
    }
}
