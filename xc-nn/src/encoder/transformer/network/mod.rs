//! The network: embeddings, blocks, pooling, linear layers behind it; passes up and down.

mod attention;
mod cached;
mod dense;
mod distance;
mod embed;
mod gelu;
mod kept;
mod lanes;
mod layer;
mod linear;
mod norm;
mod pool;
mod ragged;

use super::params::{TooManyTokens, TransformerLearning, TransformerParams, TransformerParamsError};
use super::weights::TOGETHER;
use crate::activations::{Activation, ActivationDropout};
use crate::layer::{Named, squares};
use crate::optim::Moments;
use crate::parameter::{Decay, Init, Parameter};
use crate::state::State;
use crate::{Activations, Batch, Encoder, Mode, StepError, Update};
use cached::Cached;
use dense::{DenseLayers, DenseScratch};
use distance::OffsetTable;
use embed::{Embeddings, EmbeddingsScratch};
use layer::{Kept, Layer, VARIANCE, Work, stream};
use ragged::{Pass, Ragged};
use serde_json::json;
use xc_buffer::parallel::in_pool;
use xc_dense::MatmulPrecision;
use xc_hash::stream::mix;
use xc_sparse::rows::InputKind;

/// A transformer and what pools its states.
///
/// ```
/// use xc_nn::encoder::transformer::{Architecture, Transformer, TransformerParams};
/// use xc_nn::{Activations, Batch, Encoder, Mode, Row};
///
/// let params = TransformerParams {
///     family: Architecture::Bert,
///     vocabulary: 100,
///     positions: 32,
///     first_position: 0,
///     types: 2,
///     width: 16,
///     heads: 2,
///     units: 64,
///     layers: 2,
///     epsilon: 1e-12,
///     distances: None,
///     pooling: Default::default(),
///     dense: Vec::new(),
/// };
/// let encoder = Transformer::new(params, Default::default(), 1)?;
/// let mut batch = Batch::default();
/// batch.fill_one(Row::tokens(&[2, 45, 17, 3]), 100);
/// let mut vector = Activations::default();
/// encoder.forward(&batch, Mode::Predict, &mut vector, &mut Default::default())?;
/// assert_eq!((vector.len(), vector.width()), (1, 16));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```

#[derive(Clone, Debug)]
pub struct Transformer {
    params: TransformerParams,
    learning: TransformerLearning,
    embeddings: Embeddings,
    layers: Vec<Layer>,
    /// The bias of attention by distance, where there is one: buckets x heads.
    distances: Option<Parameter>,
    dense: DenseLayers,
    products: MatmulPrecision,
    init: Init,
    cached: Cached,
}

/// Buffers of a [`Transformer`].
#[derive(Default)]
pub struct TransformerScratch {
    /// Of the last forward pass.
    mode: Option<Mode>,
    embeddings: EmbeddingsScratch,
    /// What the layers that learn keep ([`Transformer::place_of`]).
    kept: Vec<Kept>,
    /// What goes into the lowest layer that learns, where that is not the first.
    lowest: Activations,
    offsets: OffsetTable,
    names: Vec<u32>,
    /// Where instances that are answered together end, and their vectors.
    ends: Vec<u32>,
    vectors: Activations,
    /// States between layers.
    x: Activations,
    next: Activations,
    work: Work,
    distances: Vec<f32>,
    dense: DenseScratch,
}

impl Transformer {
    /// A transformer that has learned nothing: weights even with BERT's variance of 0.02 squared, or zeros for values that
    /// come from elsewhere; gains 1, biases 0.
    ///
    /// # Errors
    /// What is impossible about its parameters.
    pub fn new(
        params: TransformerParams,
        learning: TransformerLearning,
        first: impl Into<Init>,
    ) -> Result<Self, TransformerParamsError> {
        params.check()?;
        learning.check(params.layers)?;
        let init = first.into();
        let distances = params.distances.map(|distances| {
            let mut table = Parameter::zeros(distances.buckets, params.heads, Decay::Yes);
            init.fill(stream(0, 3), (3.0 * VARIANCE).sqrt(), &mut table);
            table
        });
        Ok(Self {
            embeddings: Embeddings::new(&params, &learning, init),
            layers: (1..=params.layers).map(|number| Layer::new(&params, &learning, number, init)).collect(),
            distances,
            dense: DenseLayers::new(&params, init),
            products: MatmulPrecision::F32,
            params,
            learning,
            init,
            cached: Cached::default(),
        })
    }

    /// What products multiply. Default: f32.
    pub fn with_products(mut self, products: MatmulPrecision) -> Self {
        self.cached.changes();
        self.products = products;
        self.layers.iter_mut().for_each(|layer| layer.set_products(products));
        self.dense.set_products(products);
        self
    }

    /// What it is.
    pub fn params(&self) -> &TransformerParams {
        &self.params
    }

    /// How it learns.
    pub fn learning(&self) -> &TransformerLearning {
        &self.learning
    }
}

impl Transformer {
    /// The lowest layers that do not learn.
    fn n_frozen(&self) -> usize {
        self.learning.frozen_layers
    }

    /// Where a layer that learns keeps its states. Layers that keep nothing share the first place, with the lowest layer
    /// where all learn.
    fn place_of(&self, layer: usize) -> usize {
        layer - self.n_frozen() + usize::from(self.n_frozen() > 0)
    }

    /// Whether embeddings, and the bias by distance with them, learn.
    fn embeddings_learn(&self) -> bool {
        self.n_frozen() == 0
    }

    /// Share of the rate of a layer, counted from 1; the embeddings are layer 0.
    fn share(&self, layer: usize) -> f32 {
        self.learning.layer_decay.powi((self.layers.len() - layer) as i32)
    }

    /// Dropout of the vectors of instances.
    fn finish(&self) -> ActivationDropout {
        ActivationDropout {
            activation: Activation::Identity,
            dropout: self.learning.pooled_dropout,
            layer: stream(self.layers.len() + 1, 0),
        }
    }

    /// The tokens of a batch that was checked.
    fn tokens<'b>(&self, batch: &'b Batch) -> Ragged<'b> {
        let (ids, ends) = batch.tokens().expect("a batch that was checked");
        Ragged { ids, ends }
    }

    fn check(&self, batch: &Batch) -> Result<(), StepError> {
        batch.check(InputKind::Tokens, self.params.vocabulary)?;
        let (got, most) = (self.tokens(batch).longest(), self.params.positions);
        if got > most { Err(StepError::new("encoder", TooManyTokens { got, most })) } else { Ok(()) }
    }

    fn pass<'p>(&self, batch: &'p Batch, mode: Mode, names: &'p [u32]) -> Pass<'p> {
        let is_alone = batch.len() == 1 && !in_pool();
        Pass { batch: self.tokens(batch), mode, names, is_alone, products: self.products }
    }

    /// The names of tokens in dropout masks, where there are any.
    fn name_tokens(&self, batch: &Batch, mode: Mode, names: &mut Vec<u32>) {
        let TransformerLearning { dropout, attention_dropout, .. } = self.learning;
        names.clear();
        if mode == Mode::Predict || (dropout == 0.0 && attention_dropout == 0.0) {
            return;
        }
        let ragged = self.tokens(batch);
        for (i, &instance) in batch.instances().iter().enumerate() {
            let of_one = 0..ragged.range(i).len() as u64;
            names.extend(of_one.map(|position| (mix(u64::from(instance), position) >> 32) as u32));
        }
    }

    /// Vectors of all instances, some [`TOGETHER`] after others: memory does not grow with the batch.
    fn answer(&self, batch: &Batch, output: &mut Activations, scratch: &mut TransformerScratch) {
        let (all, width) = (self.tokens(batch), self.params.vector_width());
        output.reshape(all.len(), width);
        let pass = self.pass(batch, Mode::Predict, &[]);
        let (mut ends, mut vectors) = (std::mem::take(&mut scratch.ends), std::mem::take(&mut scratch.vectors));
        let mut first = 0;
        while first < all.len() {
            let n = all.together(first, TOGETHER);
            let some = all.part(first..first + n, &mut ends);
            let pass = Pass { batch: some, ..pass };
            self.run(&pass, 0..self.layers.len(), scratch);
            self.pool(&pass, &mut vectors, scratch);
            output.values_mut()[first * width..(first + n) * width].copy_from_slice(vectors.values());
            first += n;
        }
        (scratch.ends, scratch.vectors) = (ends, vectors);
    }

    /// Vectors of instances, of the states in `scratch.x`.
    fn pool(&self, pass: &Pass<'_>, vectors: &mut Activations, scratch: &mut TransformerScratch) {
        let TransformerScratch { x, dense, .. } = scratch;
        let pool = |out: &mut Activations| pool::forward(self.params.pooling, pass, x, out);
        if self.dense.is_empty() { pool(vectors) } else { self.dense.forward(pass, pool, vectors, dense) }
    }

    /// States of all tokens of a step into `scratch.x`; what it needs of them is kept.
    fn states(&self, pass: &Pass<'_>, instances: &[u32], scratch: &mut TransformerScratch) {
        let is_known = self.n_frozen() > 0 && self.copy_states(instances, pass.batch, &mut scratch.x);
        let first = if is_known { self.n_frozen() } else { 0 };
        self.run(pass, first..self.layers.len(), scratch);
    }

    /// States behind some layers, of the embeddings where the first is among these, else of what is in `scratch.x`.
    fn run(&self, pass: &Pass<'_>, layers: std::ops::Range<usize>, scratch: &mut TransformerScratch) {
        let TransformerScratch { embeddings, kept, lowest, offsets, x, next, work, .. } = scratch;
        let learns = pass.mode != Mode::Predict;
        let n_kept = if learns { self.place_of(self.layers.len()) } else { 1 };
        kept.resize_with(kept.len().max(n_kept), Kept::default);
        let offsets = self.distances.as_ref().zip(self.params.distances).map(|(table, of)| {
            offsets.fill(of, table, pass.batch.longest());
            offsets.view()
        });
        // What does not learn answers as in prediction.
        let of = |layer: usize| Pass { mode: if layer < self.n_frozen() { Mode::Predict } else { pass.mode }, ..*pass };
        if layers.start == 0 {
            self.embeddings.forward(&of(0), next, x, embeddings);
        }
        for (at, layer) in self.layers.iter().enumerate().take(layers.end).skip(layers.start) {
            let place = if learns && at >= self.n_frozen() { self.place_of(at) } else { 0 };
            if learns && at == self.n_frozen() && at > 0 {
                lowest.copy_from(x);
            }
            layer.forward(&of(at), offsets, x, next, &mut kept[place], work);
            std::mem::swap(x, next);
        }
    }

    /// The gradient of the states of all tokens, into `scratch.next`.
    fn begin_down(&self, pass: &Pass<'_>, batch: &Batch, gradient: &Activations, scratch: &mut TransformerScratch) {
        let (finish, width) = (self.finish(), gradient.width());
        scratch.x.copy_from(gradient);
        finish.forward(pass.mode, batch.instances(), width, scratch.x.values_mut());
        self.dense.backward(&mut scratch.x, &mut scratch.dense);
        pool::backward(self.params.pooling, pass, &scratch.x, &mut scratch.next);
        scratch.distances.clear();
        scratch.distances.resize(self.distances.as_ref().map_or(0, |table| table.values().len()), 0.0);
    }

    /// The gradients of the layer at a place, from 0, whose input is in `scratch.x` then.
    fn down(&self, pass: &Pass<'_>, at: usize, scratch: &mut TransformerScratch) {
        let TransformerScratch { embeddings, kept, lowest, offsets, x, next, work, distances, .. } = scratch;
        let offsets = self.distances.as_ref().map(|_| offsets.view());
        let place = self.place_of(at);
        let needs_input = at > self.n_frozen() || self.embeddings_learn();
        self.layers[at].backward(pass, offsets, next, &mut kept[place], work, needs_input);
        let of_batch = Layer::distance_gradient(work).chunks_exact(distances.len().max(1));
        of_batch.for_each(|of_one| xc_buffer::sums::add(distances, of_one));
        match at {
            0 => self.embeddings.again(pass, x, embeddings),
            _ if at == self.n_frozen() => x.copy_from(lowest),
            _ => self.layers[at - 1].again(&kept[place - 1], x),
        }
    }

    /// The mode of the forward pass, and the names that it made.
    ///
    /// # Panics
    /// If it was none of training.
    fn of_forward(scratch: &mut TransformerScratch) -> (Mode, Vec<u32>) {
        let mode = scratch.mode.filter(|mode| *mode != Mode::Predict);
        let mode = mode.unwrap_or_else(|| panic!("a gradient without a forward pass in training"));
        (mode, std::mem::take(&mut scratch.names))
    }
}

impl Encoder for Transformer {
    type Output = Activations;
    type Scratch = TransformerScratch;

    fn width(&self) -> usize {
        self.params.vector_width()
    }

    fn learns(&self) -> bool {
        self.n_frozen() < self.layers.len() || !self.dense.is_empty()
    }

    /// # Errors
    /// The batch holds no tokens, or those of another vocabulary; an instance has more tokens than there are positions
    /// ([`TooManyTokens`]).
    fn forward(
        &self,
        batch: &Batch,
        mode: Mode,
        output: &mut Activations,
        scratch: &mut TransformerScratch,
    ) -> Result<(), StepError> {
        self.check(batch)?;
        if mode == Mode::Predict {
            scratch.mode = Some(mode);
            self.answer(batch, output, scratch);
            return Ok(());
        }
        let mut names = std::mem::take(&mut scratch.names);
        self.name_tokens(batch, mode, &mut names);
        let pass = self.pass(batch, mode, &names);
        self.states(&pass, batch.instances(), scratch);
        self.pool(&pass, output, scratch);
        self.finish().forward(mode, batch.instances(), output.width(), output.values_mut());
        (scratch.mode, scratch.names) = (Some(mode), names);
        Ok(())
    }

    /// Goes down all layers, and changes nothing: [`Encoder::update`] goes down them again.
    ///
    /// # Panics
    /// If the last forward pass was not one of training.
    fn squared_norm(
        &self,
        batch: &Batch,
        gradient: &Activations,
        scratch: &mut TransformerScratch,
    ) -> Result<f64, StepError> {
        let (mode, names) = Self::of_forward(scratch);
        let pass = self.pass(batch, mode, &names);
        self.begin_down(&pass, batch, gradient, scratch);
        let mut sum = self.dense.squared_norm(&mut scratch.dense);
        for at in (self.n_frozen()..self.layers.len()).rev() {
            self.down(&pass, at, scratch);
            let TransformerScratch { kept, x, work, .. } = &mut *scratch;
            sum += self.layers[at].squared_norm(&pass, x, &mut kept[self.place_of(at)], work);
        }
        if self.embeddings_learn() {
            self.embeddings.backward(&pass, &mut scratch.next, &mut scratch.embeddings);
            sum += self.embeddings.squared_norm(batch, &scratch.next, &scratch.embeddings);
            sum += squares(&scratch.distances);
        }
        scratch.names = names;
        Ok(sum)
    }

    /// Goes down the layers: each changes its parameters as soon as its gradient was handed down.
    ///
    /// # Panics
    /// If the last forward pass was not one of training.
    fn update(
        &mut self,
        batch: &Batch,
        gradient: &Activations,
        scratch: &mut TransformerScratch,
        update: &Update,
    ) -> Result<(), StepError> {
        let (mode, names) = Self::of_forward(scratch);
        let pass = self.pass(batch, mode, &names);
        self.begin_down(&pass, batch, gradient, scratch);
        self.dense.update(&mut scratch.dense, update);
        for at in (self.n_frozen()..self.layers.len()).rev() {
            self.down(&pass, at, scratch);
            let (update, place) = (update.times(self.share(at + 1)), self.place_of(at));
            let TransformerScratch { kept, x, work, .. } = &mut *scratch;
            self.layers[at].update(&pass, x, &mut kept[place], work, &update);
        }
        if self.embeddings_learn() {
            self.embeddings.backward(&pass, &mut scratch.next, &mut scratch.embeddings);
            let update = update.times(self.share(0));
            self.embeddings.update(batch, &scratch.next, &scratch.embeddings, &update);
            if let Some(table) = &mut self.distances {
                table.rows_mut().update(&scratch.distances, &update.change);
            }
        }
        scratch.names = names;
        Ok(())
    }
}

impl State for Transformer {
    fn settings(&self) -> serde_json::Value {
        let Self { params, learning, products, init, .. } = self;
        json!({ "transformer": params, "learning": learning, "precision": products, "init": init })
    }

    fn parameters(&self) -> Vec<Named<&Parameter>> {
        let named = |parameter| Named { name: DISTANCES.to_owned(), parameter };
        let of_layers = self.layers.iter().flat_map(Layer::parameters);
        let below = self.embeddings.parameters().chain(self.distances.iter().map(named));
        below.chain(of_layers).chain(self.dense.parameters()).collect()
    }

    fn parameters_mut(&mut self) -> Vec<Named<&mut Parameter>> {
        self.cached.changes();
        let named = |parameter| Named { name: DISTANCES.to_owned(), parameter };
        let of_layers = self.layers.iter_mut().flat_map(Layer::parameters_mut);
        let below = self.embeddings.parameters_mut().chain(self.distances.iter_mut().map(named));
        below.chain(of_layers).chain(self.dense.parameters_mut()).collect()
    }

    /// What stays as it is has no moments.
    fn prepare(&mut self, moments: Moments) {
        let n_frozen = self.n_frozen();
        if self.embeddings_learn() {
            let of_embeddings = self.embeddings.parameters_mut().map(|named| named.parameter);
            of_embeddings.chain(&mut self.distances).for_each(|parameter| parameter.prepare(moments));
        }
        let learning = self.layers.iter_mut().skip(n_frozen).flat_map(Layer::parameters_mut);
        learning.chain(self.dense.parameters_mut()).for_each(|named| named.parameter.prepare(moments));
    }
}

/// Name of the bias of attention by distance.
const DISTANCES: &str = "transformer.distances";
