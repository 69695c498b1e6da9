//! An encoder and a head, and one step of training.

use crate::head::Ranked;
use crate::layer::Named;
use crate::state::{Arrays, State, StateError, Visitor};
use crate::{
    Activations, Batch, Encoder, Head, Loss, Mode, Optimizer, Parameter, StepCost, StepError, StepParams, Update,
};
use std::time::Instant;

/// A network: from instances to vectors, and from vectors to logits.
#[derive(Clone, Debug)]
pub struct Network<E, H> {
    encoder: E,
    head: H,
}

/// Buffers of a step. They allocate nothing once the largest batch has been seen.
pub struct Scratch<E: Encoder, H: Head> {
    vectors: E::Output,
    gradient: E::Output,
    encoder: E::Scratch,
    head: H::Scratch,
    cost: StepCost,
}

impl<E: Encoder, H: Head> Default for Scratch<E, H> {
    fn default() -> Self {
        let (vectors, gradient) = Default::default();
        Self {
            vectors,
            gradient,
            encoder: E::Scratch::default(),
            head: H::Scratch::default(),
            cost: StepCost::default(),
        }
    }
}

impl<E: Encoder, H: Head> Scratch<E, H> {
    /// The cost of the last [`Network::step`].
    pub fn cost(&self) -> &StepCost {
        &self.cost
    }
}

impl<E: Encoder, H: Head<Input = E::Output>> Network<E, H> {
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

    /// The encoder, mutable.
    pub fn encoder_mut(&mut self) -> &mut E {
        &mut self.encoder
    }

    /// The head.
    pub fn head(&self) -> &H {
        &self.head
    }

    /// The head, mutable.
    pub fn head_mut(&mut self) -> &mut H {
        &mut self.head
    }

    /// Both parts.
    pub fn into_parts(self) -> (E, H) {
        (self.encoder, self.head)
    }

    /// Allocates the optimisers' moments.
    pub fn prepare(&mut self, encoder: Optimizer, head: Optimizer) {
        self.encoder.prepare(encoder.moments());
        self.head.prepare(head.moments());
    }

    /// Trains on one batch and returns its mean loss, measured before the change. If the loss, or the
    /// norm of a gradient to be clipped, is not finite, it is returned and nothing changes, except that a
    /// head that fuses its step may have changed some labels (see [`Head::step`]).
    ///
    /// The encoder learns if its rate is above 0 and it [has something to learn](Encoder::learns).
    /// The network must be prepared for the optimisers.
    ///
    /// # Errors
    /// A part fails; the step is then incomplete.
    pub fn step(
        &mut self,
        batch: &Batch,
        loss: Loss,
        params: &StepParams,
        scratch: &mut Scratch<E, H>,
    ) -> Result<f64, StepError> {
        let began = Instant::now();
        let value = self.timed_step(batch, loss, params, scratch)?;
        let mut cost = self.head.cost(&scratch.head);
        cost.encode = began.elapsed().saturating_sub(cost.of_head());
        scratch.cost = cost;
        Ok(value)
    }

    fn timed_step(
        &mut self,
        batch: &Batch,
        loss: Loss,
        params: &StepParams,
        scratch: &mut Scratch<E, H>,
    ) -> Result<f64, StepError> {
        let Scratch { vectors, gradient, encoder, head, .. } = scratch;
        let mode = Mode::Train(params.at);
        let learns = params.encoder.rate > 0.0 && self.encoder.learns();
        self.encoder.forward(batch, mode, vectors, encoder)?;
        let Some(limit) = params.clip_norm else {
            let update = Update::new(params.at, params.head, 1.0);
            let expected = learns.then_some(&mut *gradient);
            let value = self.head.step(vectors, batch.targets(), loss, &update, expected, head)?;
            if value.is_finite() && learns {
                self.encoder.backward(batch, mode, vectors, gradient, encoder)?;
                let update = Update::new(params.at, params.encoder, 1.0);
                self.encoder.update(batch, gradient, encoder, &update)?;
            }
            return Ok(value);
        };
        let value = self.head.loss(vectors, batch.targets(), loss, mode, head)?;
        if !value.is_finite() {
            return Ok(value);
        }
        if learns {
            self.head.backward(gradient, head)?;
            self.encoder.backward(batch, mode, vectors, gradient, encoder)?;
        }
        let mut squares = self.head.squared_norm(vectors, head)?;
        if learns {
            squares += self.encoder.squared_norm(batch, gradient, encoder)?;
        }
        if !squares.is_finite() {
            return Ok(squares);
        }
        let norm = squares.sqrt();
        let scale = if norm > limit { limit / norm } else { 1.0 };
        self.head.update(vectors, head, &Update::new(params.at, params.head, scale))?;
        if learns {
            self.encoder.update(batch, gradient, encoder, &Update::new(params.at, params.encoder, scale))?;
        }
        Ok(value)
    }

    /// Mean loss of a batch with its targets, as in prediction: dropout off, all labels scored.
    ///
    /// # Errors
    /// A part fails.
    pub fn loss(&self, batch: &Batch, loss: Loss, scratch: &mut Scratch<E, H>) -> Result<f64, StepError> {
        let Scratch { vectors, encoder, head, .. } = scratch;
        self.encoder.forward(batch, Mode::Predict, vectors, encoder)?;
        self.head.loss(vectors, batch.targets(), loss, Mode::Predict, head)
    }

    /// Logits of every label; one row per instance.
    ///
    /// # Errors
    /// A part fails.
    pub fn logits(
        &self,
        batch: &Batch,
        logits: &mut Activations,
        scratch: &mut Scratch<E, H>,
    ) -> Result<(), StepError> {
        let Scratch { vectors, encoder, head, .. } = scratch;
        self.encoder.forward(batch, Mode::Predict, vectors, encoder)?;
        self.head.logits(vectors, logits, head)
    }

    /// The `k` best labels of each instance, and each one's loss if it is asked for, in place of
    /// what `out` holds.
    ///
    /// # Errors
    /// A part fails.
    pub fn rank(
        &self,
        batch: &Batch,
        loss: Option<Loss>,
        k: usize,
        scratch: &mut Scratch<E, H>,
        out: &mut Ranked,
    ) -> Result<(), StepError> {
        let Scratch { vectors, encoder, head, .. } = scratch;
        self.encoder.forward(batch, Mode::Predict, vectors, encoder)?;
        self.head.rank(vectors, loss.map(|loss| (batch.targets(), loss)), k, head, out)
    }

    /// As [`Head::collect`].
    #[cfg(feature = "train")]
    pub(crate) fn collect(&self, n: usize, scratch: &mut Scratch<E, H>) {
        self.head.collect(n, &mut scratch.head);
    }

    /// As [`Head::collected`].
    #[cfg(feature = "train")]
    pub(crate) fn collected<'s>(&self, scratch: &'s Scratch<E, H>) -> &'s [u32] {
        self.head.collected(&scratch.head)
    }

    /// Every parameter with its name, always in the same order.
    pub fn parameters(&self) -> Vec<Named<&Parameter>> {
        self.encoder.parameters().into_iter().chain(self.head.parameters()).collect()
    }

    /// Every parameter with its name, in the order of `parameters`.
    pub fn parameters_mut(&mut self) -> Vec<Named<&mut Parameter>> {
        self.encoder.parameters_mut().into_iter().chain(self.head.parameters_mut()).collect()
    }

    /// Both parts, as what a checkpoint holds.
    pub fn parts(&self) -> [&dyn State; 2] {
        [&self.encoder, &self.head]
    }

    /// Shows every array of the state, always in the same order.
    ///
    /// # Errors
    /// Those of `f`, and what keeps an array from being read.
    pub fn visit(&self, f: &mut Visitor<'_>) -> Result<(), StateError> {
        self.encoder.visit(f)?;
        self.head.visit(f)
    }

    /// Overwrites every array of the state.
    ///
    /// # Errors
    /// An array cannot be read, or its content is impossible; the network is then only partly loaded.
    pub fn load(&mut self, from: &dyn Arrays) -> Result<(), StateError> {
        self.encoder.load(from)?;
        self.head.load(from)
    }

    /// Looks for a learned value that is not finite.
    ///
    /// # Errors
    /// The first one that is found.
    pub fn check_finite(&self) -> Result<(), StateError> {
        self.encoder.check_finite()?;
        self.head.check_finite()
    }

    /// Number of learned values of the parameters.
    pub fn n_values(&self) -> usize {
        self.encoder.n_values() + self.head.n_values()
    }
}
