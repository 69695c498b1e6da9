//! Vectors that were computed elsewhere.

use super::Encoder;
use crate::activations::{ActivationDropout, BLOCK};
use crate::state::State;
use crate::{Activation, Activations, Batch, Mode, StepError, Update};
use serde_json::json;
use xc_buffer::parallel::for_each_part;
use xc_sparse::rows::InputKind;

/// Hands on the dense rows of the batch; learns nothing.
#[derive(Clone, Copy, Debug)]
pub struct Precomputed {
    width: usize,
    finish: ActivationDropout,
}

impl Precomputed {
    /// For vectors of `width` values, handed on unchanged.
    pub fn new(width: usize) -> Self {
        Self { width, finish: ActivationDropout { activation: Activation::Identity, dropout: 0.0, layer: 0 } }
    }

    /// In training each value is dropped with this chance, and kept ones are divided by 1 - rate.
    ///
    /// # Panics
    /// If the rate is not in [0, 1).
    pub fn with_dropout(mut self, rate: f32) -> Self {
        assert!((0.0..1.0).contains(&rate), "dropout {rate}, expected 0 <= rate < 1");
        self.finish.dropout = rate;
        self
    }
}

impl Encoder for Precomputed {
    type Output = Activations;
    type Scratch = ();

    fn width(&self) -> usize {
        self.width
    }

    /// Never.
    fn learns(&self) -> bool {
        false
    }

    /// # Errors
    /// The batch's rows are not dense rows of this width.
    fn forward(&self, batch: &Batch, mode: Mode, output: &mut Activations, (): &mut ()) -> Result<(), StepError> {
        batch.check(InputKind::Dense, self.width)?;
        let dense = batch.dense().map_or(&[][..], |rows| rows.values());
        output.reshape(batch.len(), self.width);
        let (width, size) = (self.width, (BLOCK * self.width).max(1));
        for_each_part(output.values_mut(), size, |block, rows| {
            rows.copy_from_slice(&dense[block * size..][..rows.len()]);
            self.finish.forward(mode, &batch.instances()[block * BLOCK..], width, rows);
        });
        Ok(())
    }

    fn update(&mut self, _: &Batch, _: &Activations, (): &mut (), _: &Update) -> Result<(), StepError> {
        Ok(())
    }
}

impl State for Precomputed {
    fn settings(&self) -> serde_json::Value {
        json!({ "precomputed": self.width, "finish": self.finish })
    }
}
