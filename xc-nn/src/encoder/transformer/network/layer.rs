//! A block: attention, then two linear layers, each added to its input and normalised.
//!
//! ```text
//!   x ──▶ qkv ──▶ attention ──▶ attended ──▶ (+ x) norm1 ──▶ up ──▶ gelu ──▶ down ──▶ (+ norm1) norm2 ──▶
//! ```
//!
//! Outputs of norms and of GELU are computed again in backward rather than kept: ten widths a token stay of a block
//! whose units are four widths; with products of bf16 eight of them in half of the memory. The sums before GELU alone are
//! more than what products read: their gradient is taken at the rounded sum.

use super::super::params::{TransformerLearning, TransformerParams};
use super::attention::{Attention, dropout};
use super::distance::Offsets;
use super::gelu;
use super::kept::KeptState;
use super::norm::{Norm, NormGradient, Normalised};
use super::ragged::{Pass, in_blocks};
use crate::Update;
use crate::activations::{Activations, Mode};
use crate::layer::{Leaves, Linear, Named};
use crate::parameter::{Init, Parameter};
use xc_dense::{MatmulPrecision, MatmulScratch};

/// Number of what tells streams apart: of a layer (0: the embeddings) and a part of it. Those of other encoders and of
/// heads are small.
pub(super) fn stream(layer: usize, part: u64) -> u64 {
    1 << 32 | (layer as u64) << 8 | part
}

/// Variance of the initial weights, that of BERT.
pub(super) const VARIANCE: f32 = 0.02 * 0.02;

#[derive(Clone, Debug)]
pub(super) struct Layer {
    /// Queries, keys and values at once.
    qkv: Linear,
    attended: Linear,
    norm1: Norm,
    up: Linear,
    down: Linear,
    norm2: Norm,
    heads: usize,
    dropout: f32,
    attention_dropout: f32,
    /// From 1.
    number: usize,
}

/// What a layer keeps of a forward pass for its gradient.
#[derive(Default)]
pub(super) struct Kept {
    qkv: KeptState,
    mixed: KeptState,
    norm1: Normalised,
    up: KeptState,
    norm2: Normalised,
}

/// Buffers that the layers share.
#[derive(Default)]
pub(super) struct Work {
    /// A state behind a linear layer, or what attention mixed.
    a: Activations,
    /// Output of the first norm.
    x1: Activations,
    /// What is kept of the layer at work.
    qkv: Activations,
    up: Activations,
    /// Output of GELU where the sums before it are still wanted.
    activated: Activations,
    product: MatmulScratch,
    gradients: Gradients,
}

/// Gradients of one layer: of the sums of its linear layers, and of its norms.
#[derive(Default)]
struct Gradients {
    qkv: Activations,
    /// Where states are dropped; else it is `middle`.
    attended: Activations,
    norm1: NormGradient,
    /// Output of GELU in a forward pass.
    up: Activations,
    down: Activations,
    norm2: NormGradient,
    /// What comes into the first norm.
    middle: Activations,
    distances: Vec<f32>,
}

impl Gradients {
    /// That of what comes out of the linear layer behind attention, where so many states are dropped.
    fn of_attended(&self, dropout: f32) -> &Activations {
        if dropout > 0.0 { &self.attended } else { &self.middle }
    }
}

impl Layer {
    /// Layer `number`, from 1.
    pub(super) fn new(of: &TransformerParams, learning: &TransformerLearning, number: usize, init: Init) -> Self {
        let linear = |outputs: usize, width: usize, part: u64| {
            // Even in +-b has the variance b^2 / 3.
            let gain = 3.0 * VARIANCE * width as f32;
            Linear::new(outputs, width, gain, init, stream(number, part), Leaves::TOKENS)
        };
        let (width, norm) = (of.width, || Norm::new(of.width, of.epsilon));
        Self {
            qkv: linear(3 * width, width, 0),
            attended: linear(width, width, 1),
            norm1: norm(),
            up: linear(of.units, width, 2),
            down: linear(width, of.units, 3),
            norm2: norm(),
            heads: of.heads,
            dropout: learning.dropout,
            attention_dropout: learning.attention_dropout,
            number,
        }
    }

    pub(super) fn set_products(&mut self, products: MatmulPrecision) {
        let Self { qkv, attended, up, down, .. } = self;
        [qkv, attended, up, down].into_iter().for_each(|linear| linear.set_products(products));
    }

    fn attention<'a>(&self, offsets: Option<Offsets<'a>>) -> Attention<'a> {
        let dropout = dropout(self.attention_dropout, stream(self.number, 0));
        Attention { heads: self.heads, width: self.attended.weights.rows(), dropout, offsets }
    }

    /// Drops values of states of tokens, or of their gradient; `part` tells the masks of a layer apart.
    fn drop(&self, pass: &Pass<'_>, part: u64, states: &mut Activations) {
        drop_states(pass, self.dropout, stream(self.number, part), states);
    }

    pub(super) fn forward(
        &self,
        pass: &Pass<'_>,
        offsets: Option<Offsets<'_>>,
        x: &Activations,
        out: &mut Activations,
        kept: &mut Kept,
        work: &mut Work,
    ) {
        let Work { a, x1, qkv, up, product, gradients, .. } = work;
        let (is_alone, products, learns) = (pass.is_alone, pass.products, pass.mode != Mode::Predict);
        let mut sums = |of: &Linear, input: &Activations, sums: &mut Activations| of.sums(pass, input, sums, product);
        kept.qkv.open(products, qkv);
        sums(&self.qkv, x, qkv);
        // What attention mixes is in the place of the output until that is there.
        kept.mixed.open(products, out);
        self.attention(offsets).forward(pass, qkv, out);
        kept.qkv.keep(products, learns, qkv);
        sums(&self.attended, out, a);
        kept.mixed.keep(products, learns, out);
        self.drop(pass, 1, a);
        self.norm1.forward(is_alone, a, Some(x), &mut kept.norm1, x1);
        kept.up.open(products, up);
        sums(&self.up, x1, up);
        let activated = &mut gradients.up;
        activated.reshape(up.len(), up.width());
        gelu::forward(is_alone, up.values(), activated.values_mut());
        kept.up.keep(products, learns, up);
        sums(&self.down, activated, a);
        self.drop(pass, 2, a);
        self.norm2.forward(is_alone, a, Some(x1), &mut kept.norm2, out);
    }

    /// The output again, of what was kept.
    pub(super) fn again(&self, kept: &Kept, out: &mut Activations) {
        self.norm2.again(&kept.norm2, out);
    }

    /// Turns the gradient of the output into that of the input, where it is wanted; those of the parameters are in
    /// `work` until the next layer's: [`Layer::squared_norm`] or [`Layer::update`] has to follow.
    pub(super) fn backward(
        &self,
        pass: &Pass<'_>,
        offsets: Option<Offsets<'_>>,
        gradient: &mut Activations,
        kept: &mut Kept,
        work: &mut Work,
        needs_input: bool,
    ) {
        let Work { a, qkv, up, product, gradients: own, .. } = work;
        kept.up.restore(pass.products, up);
        self.norm2.backward(&kept.norm2, gradient, &mut own.norm2);
        own.down.copy_from(gradient);
        self.drop(pass, 2, &mut own.down);
        self.down.backward(&own.down, &mut own.up, product);
        gelu::backward(up.values(), own.up.values_mut());
        own.middle.copy_from(gradient);
        self.up.backward_onto(&own.up, &mut own.middle, product);
        self.norm1.backward(&kept.norm1, &mut own.middle, &mut own.norm1);
        if self.dropout > 0.0 {
            own.attended.copy_from(&own.middle);
            self.drop(pass, 1, &mut own.attended);
        }
        self.attended.backward(own.of_attended(self.dropout), a, product);
        kept.qkv.restore(pass.products, qkv);
        self.attention(offsets).backward(pass, qkv, a, &mut own.qkv, &mut own.distances);
        kept.qkv.close(pass.products, qkv);
        if needs_input {
            gradient.copy_from(&own.middle);
            self.qkv.backward_onto(&own.qkv, gradient, product);
        }
    }

    /// The gradient of the bias by distance, an instance a row.
    pub(super) fn distance_gradient(work: &Work) -> &[f32] {
        &work.gradients.distances
    }

    /// Sum of squares of the gradient of all parameters, after [`Layer::backward`]; `x` is the input.
    pub(super) fn squared_norm(&self, pass: &Pass<'_>, x: &Activations, kept: &mut Kept, work: &mut Work) -> f64 {
        let Work { a: mixed, x1, up, activated, product, gradients: own, .. } = work;
        self.norm1.again(&kept.norm1, x1);
        activated.reshape(up.len(), up.width());
        gelu::forward(false, up.values(), activated.values_mut());
        kept.up.close(pass.products, up);
        kept.mixed.restore(pass.products, mixed);
        let sum = self.qkv.squared_norm(x, &own.qkv, product)
            + self.attended.squared_norm(mixed, own.of_attended(self.dropout), product)
            + Norm::squared_norm(&own.norm1)
            + self.up.squared_norm(x1, &own.up, product)
            + self.down.squared_norm(activated, &own.down, product)
            + Norm::squared_norm(&own.norm2);
        kept.mixed.close(pass.products, mixed);
        sum
    }

    /// Changes all parameters, after [`Layer::backward`]; `x` is the input. What was kept is gone then.
    pub(super) fn update(
        &mut self,
        pass: &Pass<'_>,
        x: &Activations,
        kept: &mut Kept,
        work: &mut Work,
        update: &Update,
    ) {
        let Work { a: mixed, x1, up, product, gradients: own, .. } = work;
        self.norm1.again(&kept.norm1, x1);
        kept.mixed.restore(pass.products, mixed);
        gelu::in_place(up.values_mut());
        self.qkv.update(x, &own.qkv, product, update);
        self.attended.update(mixed, own.of_attended(self.dropout), product, update);
        self.norm1.update(&own.norm1, update);
        self.up.update(x1, &own.up, product, update);
        self.down.update(up, &own.down, product, update);
        kept.mixed.close(pass.products, mixed);
        kept.up.close(pass.products, up);
        self.norm2.update(&own.norm2, update);
    }

    fn name(&self) -> String {
        format!("transformer.layer{}", self.number)
    }

    pub(super) fn parameters(&self) -> impl Iterator<Item = Named<&Parameter>> {
        let name = self.name();
        let linears = [("qkv", &self.qkv), ("attended", &self.attended), ("up", &self.up), ("down", &self.down)];
        let linears: Vec<_> =
            linears.iter().flat_map(|(of, linear)| linear.parameters(&format!("{name}.{of}"))).collect();
        let norms = [("norm1", &self.norm1), ("norm2", &self.norm2)];
        let norms: Vec<_> = norms.iter().flat_map(|(of, norm)| norm.parameters(&format!("{name}.{of}"))).collect();
        linears.into_iter().chain(norms)
    }

    pub(super) fn parameters_mut(&mut self) -> impl Iterator<Item = Named<&mut Parameter>> {
        let name = self.name();
        let Self { qkv, attended, norm1, up, down, norm2, .. } = self;
        let linears = [("qkv", qkv), ("attended", attended), ("up", up), ("down", down)];
        let linears = linears.into_iter().flat_map(|(of, linear)| linear.parameters_mut(&format!("{name}.{of}")));
        let norms = [("norm1", norm1), ("norm2", norm2)];
        let norms = norms.into_iter().flat_map(|(of, norm)| norm.parameters_mut(&format!("{name}.{of}")));
        linears.chain(norms).collect::<Vec<_>>().into_iter()
    }
}

/// Drops values of states of tokens, or of their gradient, by the mask of a layer's part.
pub(super) fn drop_states(pass: &Pass<'_>, rate: f32, layer: u64, states: &mut Activations) {
    if rate == 0.0 || pass.mode == Mode::Predict {
        return;
    }
    let (n, width, dropout) = (states.len(), states.width(), dropout(rate, layer));
    in_blocks(pass.is_alone, n, [(states.values_mut(), width)], &|first, [rows]| {
        dropout.forward(pass.mode, &pass.names[first..], width, rows);
    });
}
