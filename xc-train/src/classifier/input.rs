//! Where a model's instances come in.

use xc_nn::Named;
use xc_nn::encoder::{Bag, Precomputed};
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
}

macro_rules! delegate {
    ($self:ident, $inner:ident => $call:expr) => {
        match $self {
            Input::Bag($inner) => $call,
            Input::Vectors($inner) => $call,
        }
    };
}

impl Input {
    /// Embeddings of the features, one row per feature, to be changed; none where instances are
    /// vectors.
    pub fn embeddings_mut(&mut self) -> Option<&mut [f32]> {
        match self {
            Self::Bag(bag) => Some(bag.table_mut()),
            Self::Vectors(_) => None,
        }
    }
}

impl Encoder for Input {
    type Output = Activations;
    type Scratch = ();

    fn width(&self) -> usize {
        delegate!(self, inner => inner.width())
    }

    fn learns(&self) -> bool {
        delegate!(self, inner => inner.learns())
    }

    /// # Panics
    /// If the batch holds the other kind of rows, or rows of another width.
    fn forward(&self, batch: &Batch, mode: Mode, output: &mut Activations, (): &mut ()) -> Result<(), StepError> {
        delegate!(self, inner => inner.forward(batch, mode, output, &mut ()))
    }

    fn backward(
        &self,
        batch: &Batch,
        mode: Mode,
        output: &Activations,
        gradient: &mut Activations,
        (): &mut (),
    ) -> Result<(), StepError> {
        delegate!(self, inner => inner.backward(batch, mode, output, gradient, &mut ()))
    }

    fn squared_norm(&self, batch: &Batch, gradient: &Activations, (): &mut ()) -> Result<f64, StepError> {
        delegate!(self, inner => inner.squared_norm(batch, gradient, &mut ()))
    }

    fn update(&mut self, batch: &Batch, gradient: &Activations, (): &mut (), update: &Update) -> Result<(), StepError> {
        delegate!(self, inner => inner.update(batch, gradient, &mut (), update))
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
}
