//! Encoders: a batch of instances in, one dense vector per instance out.
//!
//! ```
//! use xc_sparse::{CsrMatrix, LabelRows};
//! use xc_nn::encoder::{Bag, Stack};
//! use xc_nn::{Activation, Activations, Batch, Encoder, Examples, Rows, Mode};
//!
//! // Four features, embedded in 8 values and summed; a layer of 3 above.
//! let encoder = Stack::new(Bag::new(4, 8, Activation::Relu, 0.0, 1)).push(3, Activation::Relu, 0.0, 1);
//! let x = CsrMatrix::try_new((2, 4), vec![0, 1, 3], vec![2, 0, 3], vec![1.0, 0.5, 0.5])?;
//! let y = LabelRows::from_lists([[0], [0]], 1)?;
//! let mut batch = Batch::default();
//! batch.fill(&Examples::try_new(Rows::Sparse(x.view()), &y)?, &[0, 1]);
//!
//! let mut vectors = Activations::default();
//! encoder.forward(&batch, Mode::Predict, &mut vectors, &mut Default::default())?;
//! assert_eq!((vectors.len(), vectors.width(), encoder.width()), (2, 3, 3));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod bag;
#[cfg(feature = "train")]
pub mod lsa;
#[cfg(feature = "train")]
mod orthonormal;
mod precomputed;
mod stack;
pub mod transformer;

pub use bag::Bag;
pub use precomputed::Precomputed;
pub use stack::Stack;

use crate::state::State;
use crate::{Batch, Mode, StepError, Update};

/// A network from instances to vectors.
///
/// A training step calls `forward`, `backward` and `update` in this order with the same batch, mode
/// and scratch; `squared_norm` may come before `update`. If the encoder does not learn, only `forward`
/// is called.
pub trait Encoder: State {
    /// The vectors of a batch: [`Activations`](crate::Activations) if they are in this process's memory.
    type Output: Default + Send;
    /// Buffers of a step; they grow to the largest batch and stay.
    type Scratch: Default + Send;

    /// Length of a vector.
    fn width(&self) -> usize;

    /// Whether there is anything to learn. If not, a step calls only `forward`, and the head need not
    /// compute the gradient with respect to the output.
    fn learns(&self) -> bool {
        true
    }

    /// Computes the vectors. A scratch that only predicts stays small.
    ///
    /// # Errors
    /// A resource of the encoder fails.
    fn forward(
        &self,
        batch: &Batch,
        mode: Mode,
        output: &mut Self::Output,
        scratch: &mut Self::Scratch,
    ) -> Result<(), StepError>;

    /// Backpropagates the gradient with respect to the output to each layer's sums. `gradient` is
    /// overwritten, and `update` expects it unchanged after that. Default: nothing, for encoders whose
    /// `update` starts from the gradient itself.
    ///
    /// # Errors
    /// A resource of the encoder fails.
    fn backward(
        &self,
        batch: &Batch,
        mode: Mode,
        output: &Self::Output,
        gradient: &mut Self::Output,
        scratch: &mut Self::Scratch,
    ) -> Result<(), StepError> {
        let _ = (batch, mode, output, gradient, scratch);
        Ok(())
    }

    /// Sum of squares of the gradient with respect to all parameters, after `backward`. Default: an error,
    /// for encoders whose gradients cannot be clipped.
    ///
    /// # Errors
    /// A resource of the encoder fails.
    fn squared_norm(
        &self,
        batch: &Batch,
        gradient: &Self::Output,
        scratch: &mut Self::Scratch,
    ) -> Result<f64, StepError> {
        let _ = (batch, gradient, scratch);
        Err(StepError::new("encoder", "it has no norm of its gradient: nothing can be clipped"))
    }

    /// Changes the parameters by their gradient.
    ///
    /// # Errors
    /// A resource of the encoder fails.
    fn update(
        &mut self,
        batch: &Batch,
        gradient: &Self::Output,
        scratch: &mut Self::Scratch,
        update: &Update,
    ) -> Result<(), StepError>;
}
