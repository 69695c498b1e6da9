//! Where a model's instances come in.

use xc_nn::Named;
use xc_nn::encoder::transformer::{Transformer, TransformerScratch};
use xc_nn::encoder::{Bag, Precomputed};
use xc_nn::optim::Moments;
use xc_nn::state::State;
use xc_nn::{Activations, Batch, Encoder, Mode, Parameter, StepError, Update};

/// The lowest layer: of sparse features, or of vectors computed elsewhere.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "a model has one of them")]
pub enum Input {
    /// Sparse features; the table learns.
    Bag(Bag),
    /// Vectors, handed on.
    Vectors(Precomputed),
    /// Tokens of texts.
    Tokens(Box<Transformer>),
}

/// Buffers of an [`Input`].
#[derive(Default)]
pub struct InputScratch {
    tokens: TransformerScratch,
}

macro_rules! delegate {
    ($self:ident, $inner:ident => $call:expr) => {
        match $self {
            Input::Bag($inner) => $call,
            Input::Vectors($inner) => $call,
            Input::Tokens($inner) => $call,
        }
    };
    ($self:ident, $scratch:ident, $inner:ident, $buffers:ident => $call:expr) => {{
        match $self {
            Input::Bag($inner) => {
                let ($buffers, _) = (&mut (), $scratch);
                $call
            }
            Input::Vectors($inner) => {
                let ($buffers, _) = (&mut (), $scratch);
                $call
            }
            Input::Tokens($inner) => {
                let $buffers = &mut $scratch.tokens;
                $call
            }
        }
    }};
}

impl Input {
    /// Embeddings of the features, one row per feature, to be changed; none where instances are
    /// vectors.
    pub fn embeddings_mut(&mut self) -> Option<&mut [f32]> {
        match self {
            Self::Bag(bag) => Some(bag.table_mut()),
            Self::Vectors(_) => None,
            Self::Tokens(_) => None,
        }
    }
}

impl Encoder for Input {
    type Output = Activations;
    type Scratch = InputScratch;

    fn width(&self) -> usize {
        delegate!(self, inner => inner.width())
    }

    fn learns(&self) -> bool {
        delegate!(self, inner => inner.learns())
    }

    /// # Panics
    /// If the batch holds the other kind of rows, or rows of another width.
    fn forward(
        &self,
        batch: &Batch,
        mode: Mode,
        output: &mut Activations,
        scratch: &mut InputScratch,
    ) -> Result<(), StepError> {
        delegate!(self, scratch, inner, buffers => inner.forward(batch, mode, output, buffers))
    }

    fn backward(
        &self,
        batch: &Batch,
        mode: Mode,
        output: &Activations,
        gradient: &mut Activations,
        scratch: &mut InputScratch,
    ) -> Result<(), StepError> {
        delegate!(self, scratch, inner, buffers => inner.backward(batch, mode, output, gradient, buffers))
    }

    fn squared_norm(
        &self,
        batch: &Batch,
        gradient: &Activations,
        scratch: &mut InputScratch,
    ) -> Result<f64, StepError> {
        delegate!(self, scratch, inner, buffers => inner.squared_norm(batch, gradient, buffers))
    }

    fn update(
        &mut self,
        batch: &Batch,
        gradient: &Activations,
        scratch: &mut InputScratch,
        update: &Update,
    ) -> Result<(), StepError> {
        delegate!(self, scratch, inner, buffers => inner.update(batch, gradient, buffers, update))
    }
}

impl State for Input {
    fn settings(&self) -> serde_json::Value {
        delegate!(self, inner => inner.settings())
    }

    fn parameters(&self) -> Vec<Named<&Parameter>> {
        delegate!(self, inner => inner.parameters())
    }

    fn parameters_mut(&mut self) -> Vec<Named<&mut Parameter>> {
        delegate!(self, inner => inner.parameters_mut())
    }

    fn prepare(&mut self, moments: Moments) {
        delegate!(self, inner => inner.prepare(moments));
    }
}
