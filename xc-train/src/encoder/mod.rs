//! Encoders: a batch of instances in, one dense vector an instance out.

mod bag;
mod precomputed;
mod stack;

pub use bag::Bag;
pub use precomputed::Precomputed;
pub use stack::Stack;

use crate::layer::Named;
use crate::state::{self, Array, ArrayMut};
use crate::{Activations, Batch, Mode, Parameter, Update};

/// A network from instances to vectors.
///
/// A training step calls `forward`, `backward` and `update` in this order with the same batch, mode and workspace;
/// `squared_norm` may come before `update`. Only `forward` when [`Encoder::wants_gradient`] says no.
pub trait Encoder: Send + Sync {
    /// Buffers of a step; they grow to the largest batch and stay.
    type Workspace: Default + Send;

    /// Length of a vector.
    fn width(&self) -> usize;

    /// Whether the gradient with respect to the output is of use. Where nothing is learned it is not: a step then calls
    /// `forward` alone, and whoever is above need not compute that gradient.
    fn wants_gradient(&self) -> bool {
        true
    }

    /// Computes the vectors. A workspace that only predicts stays small.
    fn forward(&self, batch: &Batch, mode: Mode, output: &mut Activations, workspace: &mut Self::Workspace);

    /// Takes the gradient with respect to the output down to each layer's sums. `gradient` is used up: afterwards it
    /// belongs to the encoder, and `update` wants it unchanged.
    fn backward(
        &self,
        batch: &Batch,
        mode: Mode,
        output: &Activations,
        gradient: &mut Activations,
        workspace: &mut Self::Workspace,
    );

    /// Sum of squares of the gradient with respect to all parameters, after `backward`.
    fn squared_norm(&self, batch: &Batch, gradient: &Activations, workspace: &mut Self::Workspace) -> f64;

    /// Changes the parameters by their gradient.
    fn update(&mut self, batch: &Batch, gradient: &Activations, workspace: &mut Self::Workspace, update: &Update<'_>);

    /// All settings as text, to tell two networks apart.
    fn settings(&self) -> String;

    /// Every parameter with its name, always in the same order.
    fn parameters(&self) -> Vec<Named<&Parameter>>;

    /// Every parameter with its name, in the order of `parameters`.
    fn parameters_mut(&mut self) -> Vec<Named<&mut Parameter>>;

    /// Makes room for the `n_moments` moments of an optimiser.
    fn prepare(&mut self, n_moments: usize) {
        self.parameters_mut().into_iter().for_each(|named| named.parameter.prepare(n_moments));
    }

    /// Every array of the state, always in the same order: what a checkpoint holds. Default: those of `parameters`.
    fn arrays(&self) -> Vec<Array<'_>> {
        state::arrays_of(self.parameters())
    }

    /// The same arrays in the same order, to be overwritten as a whole.
    fn arrays_mut(&mut self) -> Vec<ArrayMut<'_>> {
        state::arrays_mut_of(self.parameters_mut())
    }

    /// Told when `arrays_mut` were overwritten, by a checkpoint or an earlier state: computes what depends on them and says
    /// what is impossible about them, since a file may hold anything.
    ///
    /// # Errors
    /// One line: which array, what was met, what was wanted.
    fn overwritten(&mut self) -> Result<(), String> {
        Ok(())
    }

    /// Whether every learned value is finite; asked before a state is saved. Default: by the types of the arrays, see
    /// [`state::are_finite`].
    fn is_finite(&self) -> bool {
        state::are_finite(&self.arrays())
    }
}
