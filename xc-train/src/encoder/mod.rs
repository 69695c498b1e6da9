//! Encoders: a batch of instances in, one dense vector an instance out.

mod bag;
pub(crate) mod directions;
mod precomputed;
mod stack;

pub use bag::Bag;
pub use precomputed::Precomputed;
pub use stack::Stack;

use crate::state::State;
use crate::{Activations, Batch, Mode, Update};

/// A network from instances to vectors.
///
/// A training step calls `forward`, `backward` and `update` in this order with the same batch, mode and scratch;
/// `squared_norm` may come before `update`. Only `forward` when [`Encoder::wants_gradient`] says no.
pub trait Encoder: State {
    /// Buffers of a step; they grow to the largest batch and stay.
    type Scratch: Default + Send;

    /// Length of a vector.
    fn width(&self) -> usize;

    /// Whether the gradient with respect to the output is of use. Where nothing is learned it is not: a step then calls
    /// `forward` alone, and whoever is above need not compute that gradient.
    fn wants_gradient(&self) -> bool {
        true
    }

    /// Computes the vectors. A scratch that only predicts stays small.
    fn forward(&self, batch: &Batch, mode: Mode, output: &mut Activations, scratch: &mut Self::Scratch);

    /// Takes the gradient with respect to the output down to each layer's sums. `gradient` is used up: afterwards it
    /// belongs to the encoder, and `update` wants it unchanged.
    fn backward(
        &self,
        batch: &Batch,
        mode: Mode,
        output: &Activations,
        gradient: &mut Activations,
        scratch: &mut Self::Scratch,
    );

    /// Sum of squares of the gradient with respect to all parameters, after `backward`.
    fn squared_norm(&self, batch: &Batch, gradient: &Activations, scratch: &mut Self::Scratch) -> f64;

    /// Changes the parameters by their gradient.
    fn update(&mut self, batch: &Batch, gradient: &Activations, scratch: &mut Self::Scratch, update: &Update<'_>);
}
