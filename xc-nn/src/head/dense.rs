//! Every output is connected with everything.

use super::tiled::{self, Pass, Table, TiledScratch, Truth};
use super::{Head, Ranked, RowScratch, judge_rows, rank_rows};
use crate::layer::{Leaves, Linear, Named};
use crate::parameter::{Init, RowsMut};
use crate::sampler::LabelWeights;
use crate::state::State;
use crate::stored::StoredMut;
use crate::{Activations, Loss, Mode, Parameter, StepError, Targets, Update};
use serde_json::json;
use std::ops::Range;
use xc_buffer::FloatSlice;
use xc_dense::{MatmulPrecision, MatmulScratch};

/// `logits = input * weights^T + bias`, weights label-major: one row an output.
#[derive(Clone, Debug)]
pub struct Dense {
    linear: Linear,
}

/// Buffers of a [`Dense`] step: the logits, which become their gradient, and one loss an instance.
#[derive(Default)]
pub struct DenseScratch {
    logits: Activations,
    losses: Vec<f64>,
    ranks: RowScratch,
    product: MatmulScratch,
    tiled: TiledScratch,
}

impl Dense {
    /// Number of this layer's random stream; far from those of the encoders' layers.
    const STREAM: u64 = 1 << 32;

    /// `n_outputs` outputs over vectors of `width`; first weights even, of variance 1/width.
    pub fn new(n_outputs: usize, width: usize, first: impl Into<Init>) -> Self {
        Self { linear: Linear::new(n_outputs, width, 3.0, first.into(), Self::STREAM, Leaves::HEAD) }
    }

    /// What it multiplies. Default: f32.
    pub fn with_products(mut self, products: MatmulPrecision) -> Self {
        self.linear.products = products;
        self
    }

    /// What it multiplies.
    pub fn products(&self) -> MatmulPrecision {
        self.linear.products
    }

    /// The layer.
    #[cfg(feature = "cuda")]
    pub(crate) fn answering(&self) -> &Linear {
        &self.linear
    }

    /// Weights, one row an output.
    pub fn weights(&self) -> &Parameter {
        &self.linear.weights
    }

    /// Bias of each output.
    pub fn bias(&self) -> &[f32] {
        self.linear.bias.values()
    }

    /// Bias of each output, to be changed.
    pub fn bias_mut(&mut self) -> &mut [f32] {
        self.linear.bias.values_mut()
    }
}

impl Head for Dense {
    type Input = Activations;
    type Scratch = DenseScratch;

    fn width(&self) -> usize {
        self.linear.weights.width()
    }

    fn labels(&self) -> Range<u32> {
        0..self.linear.weights.rows() as u32
    }

    fn loss(
        &self,
        input: &Activations,
        targets: Targets<'_>,
        loss: Loss,
        mode: Mode,
        scratch: &mut DenseScratch,
    ) -> Result<f64, StepError> {
        assert!(input.len() == targets.len(), "{} vectors, {} targets", input.len(), targets.len());
        let DenseScratch { logits, losses, product, tiled, .. } = scratch;
        tiled.hardest.begin(mode, input.len());
        self.linear.forward(input, logits, product);
        Ok(judge_rows(logits, targets, loss, &self.linear.output_blocks(), losses, &mut tiled.hardest))
    }

    fn backward(&self, gradient: &mut Activations, scratch: &mut DenseScratch) -> Result<(), StepError> {
        self.linear.backward(&scratch.logits, gradient, &mut scratch.product);
        Ok(())
    }

    fn squared_norm(&self, input: &Activations, scratch: &mut DenseScratch) -> Result<f64, StepError> {
        Ok(self.linear.squared_norm(input, &scratch.logits, &mut scratch.product))
    }

    fn update(&mut self, input: &Activations, scratch: &mut DenseScratch, update: &Update) -> Result<(), StepError> {
        self.linear.update(input, &scratch.logits, &mut scratch.product, update);
        Ok(())
    }

    /// Where the logits of a batch would fill the caches and more, in tiles of labels: the loss may
    /// then differ in its last bits from that of the phases, and a softmax's gradient does.
    fn step(
        &mut self,
        input: &Activations,
        targets: Targets<'_>,
        loss: Loss,
        update: &Update,
        gradient: Option<&mut Activations>,
        scratch: &mut DenseScratch,
    ) -> Result<f64, StepError> {
        let DenseScratch { tiled, .. } = scratch;
        if tiled::pays(loss, input.len(), self.labels().len()) {
            assert!(input.len() == targets.len(), "{} vectors, {} targets", input.len(), targets.len());
            let (order, rows, precision) =
                (self.linear.output_blocks(), self.linear.row_blocks(input.len()), self.linear.products);
            tiled.hardest.begin(Mode::Train(update.at), input.len());
            let pass =
                Pass { input, truth: Truth::of(targets), list: None, loss, precision, order, rows, tile: tiled::TILE };
            return Ok(pass.step(&mut self.linear, update, 0, gradient, &mut [], tiled));
        }
        let value = self.loss(input, targets, loss, Mode::Train(update.at), scratch)?;
        if value.is_finite() {
            if let Some(gradient) = gradient {
                self.backward(gradient, scratch)?;
            }
            self.update(input, scratch, update)?;
        }
        Ok(value)
    }

    fn collect(&self, n: usize, scratch: &mut DenseScratch) {
        scratch.tiled.hardest.collect(n);
    }

    fn collected<'s>(&self, scratch: &'s DenseScratch) -> &'s [u32] {
        scratch.tiled.hardest.labels()
    }

    fn logits(
        &self,
        input: &Activations,
        logits: &mut Activations,
        scratch: &mut DenseScratch,
    ) -> Result<(), StepError> {
        self.linear.forward(input, logits, &mut scratch.product);
        Ok(())
    }

    fn rank(
        &self,
        input: &Activations,
        truth: Option<(Targets<'_>, Loss)>,
        k: usize,
        scratch: &mut DenseScratch,
        out: &mut Ranked,
    ) -> Result<(), StepError> {
        let DenseScratch { logits, ranks, product, .. } = scratch;
        self.linear.forward(input, logits, product);
        rank_rows(logits, 0, truth, k, ranks, out);
        Ok(())
    }
}

impl State for Dense {
    fn settings(&self) -> serde_json::Value {
        json!({ "dense": self.linear.settings() })
    }

    fn parameters(&self) -> Vec<Named<&Parameter>> {
        self.linear.parameters("head")
    }

    fn parameters_mut(&mut self) -> Vec<Named<&mut Parameter>> {
        self.linear.parameters_mut("head")
    }
}

impl Table for Linear {
    fn weights(&self) -> LabelWeights<'_> {
        LabelWeights::new(FloatSlice::F32(self.weights.values()), self.weights.width(), self.bias.values())
    }

    fn parts_mut(&mut self) -> (StoredMut<'_>, RowsMut<'_>) {
        (self.weights.rows_mut().into(), self.bias.rows_mut())
    }
}
