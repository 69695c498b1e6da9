//! Vectors that were computed elsewhere.

use super::Encoder;
use crate::layer::Named;
use crate::{Activations, Batch, Mode, Parameter, Update};

/// Hands on the dense rows of the batch; learns nothing.
#[derive(Clone, Copy, Debug)]
pub struct Precomputed {
    width: usize,
}

impl Precomputed {
    /// For vectors of `width` values.
    pub fn new(width: usize) -> Self {
        Self { width }
    }
}

impl Encoder for Precomputed {
    type Workspace = ();

    fn width(&self) -> usize {
        self.width
    }

    /// # Panics
    /// If the batch's rows are not dense rows of this width.
    fn forward(&self, batch: &Batch, _: Mode, output: &mut Activations, (): &mut ()) {
        let wanted = batch.len() * self.width;
        assert!(batch.dense.len() == wanted, "{} dense values in a batch, wanted {wanted}", batch.dense.len());
        output.reshape(batch.len(), self.width);
        output.values_mut().copy_from_slice(&batch.dense);
    }

    fn backward(&self, _: &Batch, _: Mode, _: &Activations, _: &mut Activations, (): &mut ()) {}

    fn squared_norm(&self, _: &Batch, _: &Activations, (): &mut ()) -> f64 {
        0.0
    }

    fn update(&mut self, _: &Batch, _: &Activations, (): &mut (), _: &Update<'_>) {}

    fn settings(&self) -> String {
        format!("precomputed {}", self.width)
    }

    fn parameters(&self) -> Vec<Named<&Parameter>> {
        Vec::new()
    }

    fn parameters_mut(&mut self) -> Vec<Named<&mut Parameter>> {
        Vec::new()
    }
}
