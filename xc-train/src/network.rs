//! An encoder and a head, and one step of training.

use crate::layer::{Named, Update};
use crate::state::{Array, ArrayMut};
use crate::{Activations, Batch, Encoder, Head, Loss, Mode, Optimizer, Parameter};

/// A network: instances to vectors to logits.
#[derive(Clone, Debug)]
pub struct Network<E, H> {
    encoder: E,
    head: H,
}

/// Buffers of a step. Nothing is allocated once the largest batch has been seen.
pub struct Scratch<E: Encoder, H: Head> {
    vectors: Activations,
    gradient: Activations,
    encoder: E::Scratch,
    head: H::Scratch,
}

impl<E: Encoder, H: Head> Default for Scratch<E, H> {
    fn default() -> Self {
        let (vectors, gradient) = Default::default();
        Self { vectors, gradient, encoder: E::Scratch::default(), head: H::Scratch::default() }
    }
}

/// What a training step is told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepParams {
    /// Number of the step, from 0: dropout masks and bias corrections follow it.
    pub number: u64,
    /// Learning rate.
    pub rate: f64,
    /// Largest norm of the gradient over all parameters; a longer one is shortened to it.
    pub clip_norm: Option<f64>,
    /// Seed of the training: of the dropout masks, and of what is random in an update.
    pub seed: u64,
}

impl<E: Encoder, H: Head> Network<E, H> {
    /// Puts a head on an encoder.
    ///
    /// # Panics
    /// If the widths differ.
    pub fn new(encoder: E, head: H) -> Self {
        assert!(encoder.width() == head.width(), "encoder of {}, head for {}", encoder.width(), head.width());
        Self { encoder, head }
    }

    /// The encoder.
    pub fn encoder(&self) -> &E {
        &self.encoder
    }

    /// The head.
    pub fn head(&self) -> &H {
        &self.head
    }

    /// Both parts.
    pub fn into_parts(self) -> (E, H) {
        (self.encoder, self.head)
    }

    /// Makes room for an optimiser's moments.
    pub fn prepare(&mut self, optimizer: &dyn Optimizer) {
        self.encoder.prepare(optimizer.n_moments());
        self.head.prepare(optimizer.n_moments());
    }

    /// Trains on one batch and gives its mean loss, measured before the change. When the loss, or the norm of a gradient
    /// that is to be clipped, is not finite, it is returned as it is and nothing changes, except that a head which fuses its
    /// step may have changed some outputs (see [`Head::step`]).
    ///
    /// The network must be prepared for the optimiser.
    pub fn step(
        &mut self,
        batch: &Batch,
        loss: &dyn Loss,
        optimizer: &dyn Optimizer,
        params: &StepParams,
        scratch: &mut Scratch<E, H>,
    ) -> f64 {
        let Scratch { vectors, gradient, encoder, head } = scratch;
        let mode = Mode::Train { seed: params.seed, step: params.number };
        let learns = self.encoder.wants_gradient();
        let update = |scale| {
            let step = optimizer.step(params.number, params.rate, scale);
            Update { optimizer, step, number: params.number, seed: params.seed }
        };
        self.encoder.forward(batch, mode, vectors, encoder);
        let Some(limit) = params.clip_norm else {
            let update = update(1.0);
            let wanted = learns.then_some(&mut *gradient);
            let met = self.head.step(vectors, batch.targets(), loss, &update, wanted, head);
            if met.is_finite() && learns {
                self.encoder.backward(batch, mode, vectors, gradient, encoder);
                self.encoder.update(batch, gradient, encoder, &update);
            }
            return met;
        };
        let met = self.head.loss(vectors, batch.targets(), loss, head);
        if !met.is_finite() {
            return met;
        }
        if learns {
            self.head.backward(gradient, head);
            self.encoder.backward(batch, mode, vectors, gradient, encoder);
        }
        let mut squares = self.head.squared_norm(vectors, head);
        if learns {
            squares += self.encoder.squared_norm(batch, gradient, encoder);
        }
        if !squares.is_finite() {
            return squares;
        }
        let norm = squares.sqrt();
        let update = update(if norm > limit { limit / norm } else { 1.0 });
        self.head.update(vectors, head, &update);
        if learns {
            self.encoder.update(batch, gradient, encoder, &update);
        }
        met
    }

    /// Mean loss of a batch with its targets, dropout off.
    pub fn loss(&self, batch: &Batch, loss: &dyn Loss, scratch: &mut Scratch<E, H>) -> f64 {
        let Scratch { vectors, encoder, head, .. } = scratch;
        self.encoder.forward(batch, Mode::Predict, vectors, encoder);
        self.head.loss(vectors, batch.targets(), loss, head)
    }

    /// Logits of every output; one row an instance.
    pub fn logits(&self, batch: &Batch, logits: &mut Activations, scratch: &mut Scratch<E, H>) {
        let Scratch { vectors, encoder, head, .. } = scratch;
        self.encoder.forward(batch, Mode::Predict, vectors, encoder);
        self.head.logits(vectors, logits, head);
    }

    /// The `k` best outputs of each instance, and each one's loss if it is asked for.
    pub fn rank(
        &self,
        batch: &Batch,
        loss: Option<&dyn Loss>,
        k: usize,
        scratch: &mut Scratch<E, H>,
    ) -> Vec<crate::head::Ranked> {
        let Scratch { vectors, encoder, head, .. } = scratch;
        self.encoder.forward(batch, Mode::Predict, vectors, encoder);
        self.head.rank(vectors, loss.map(|loss| (batch.targets(), loss)), k, head)
    }

    /// Every parameter with its name, always in the same order.
    pub fn parameters(&self) -> Vec<Named<&Parameter>> {
        self.encoder.parameters().into_iter().chain(self.head.parameters()).collect()
    }

    /// Every parameter with its name, in the order of `parameters`.
    pub fn parameters_mut(&mut self) -> Vec<Named<&mut Parameter>> {
        self.encoder.parameters_mut().into_iter().chain(self.head.parameters_mut()).collect()
    }

    /// Every array of the state, always in the same order.
    pub fn arrays(&self) -> Vec<Array<'_>> {
        self.encoder.arrays().into_iter().chain(self.head.arrays()).collect()
    }

    /// Every array of the state, in the order of `arrays`. Whoever overwrites them calls [`Network::overwritten`] then.
    pub fn arrays_mut(&mut self) -> Vec<ArrayMut<'_>> {
        self.encoder.arrays_mut().into_iter().chain(self.head.arrays_mut()).collect()
    }

    /// Tells both parts that their arrays were overwritten.
    ///
    /// # Errors
    /// What is impossible about the arrays, in one line.
    pub fn overwritten(&mut self) -> Result<(), String> {
        self.encoder.overwritten()?;
        self.head.overwritten()
    }

    /// Whether every learned value is finite.
    pub fn is_finite(&self) -> bool {
        self.encoder.is_finite() && self.head.is_finite()
    }

    /// Number of learned values of the parameters.
    pub fn n_values(&self) -> usize {
        self.encoder.n_values() + self.head.n_values()
    }
}
