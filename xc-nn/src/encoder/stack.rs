//! Dense layers on top of another encoder.

use super::Encoder;
use crate::activations::{ActivationDropout, BLOCK};
use crate::layer::{Leaves, Linear, Named};
use crate::optim::Moments;
use crate::parameter::Init;
use crate::state::{Arrays, State, StateError, Visitor, load_parameters, visit_parameters};
use crate::{Activation, Activations, Batch, Mode, Parameter, StepError, Update};
use serde_json::json;
use xc_buffer::parallel::for_each_part;
use xc_dense::{MatmulPrecision, MatmulScratch};

/// Dense layers above `E`, each `finish(input * weights^T + bias)`.
#[derive(Clone, Debug)]
pub struct Stack<E> {
    below: E,
    /// Share of the learning rate at which it learns.
    share_below: f32,
    layers: Vec<Layer>,
}

#[derive(Clone, Debug)]
struct Layer {
    linear: Linear,
    finish: ActivationDropout,
}

/// Buffers of a [`Stack`]: the input of each layer and its gradient.
pub struct StackScratch<W> {
    below: W,
    inputs: Vec<Activations>,
    gradients: Vec<Activations>,
    product: MatmulScratch,
}

impl<W: Default> Default for StackScratch<W> {
    fn default() -> Self {
        Self { below: W::default(), inputs: Vec::new(), gradients: Vec::new(), product: MatmulScratch::default() }
    }
}

impl<E: Encoder<Output = Activations>> Stack<E> {
    /// Only what is below, until layers are pushed.
    pub fn new(below: E) -> Self {
        Self { below, share_below: 1.0, layers: Vec::new() }
    }

    /// Puts a layer of `width` outputs on top. Weights begin as He proposes for ReLU, at variance
    /// 1/inputs otherwise.
    ///
    /// # Panics
    /// If the rate of dropout is not in [0, 1).
    pub fn push(mut self, width: usize, activation: Activation, dropout: f32, first: impl Into<Init>) -> Self {
        assert!((0.0..1.0).contains(&dropout), "dropout {dropout}, expected 0 <= rate < 1");
        let layer = self.layers.len() as u64 + 1;
        let gain = if activation == Activation::Relu { 6.0 } else { 3.0 };
        let linear = Linear::new(width, self.width(), gain, first.into(), layer, Leaves::HIDDEN);
        self.layers.push(Layer { linear, finish: ActivationDropout { activation, dropout, layer } });
        self
    }

    /// What all layers pushed so far multiply. Default: f32.
    pub fn with_products(mut self, products: MatmulPrecision) -> Self {
        self.layers.iter_mut().for_each(|layer| layer.linear.products = products);
        self
    }

    /// Lets what is below the layers learn at a share of their learning rate; at 0 it stays as it
    /// is.
    ///
    /// # Panics
    /// If the share is negative or no number.
    pub fn with_share_below(mut self, share: f32) -> Self {
        assert!(share >= 0.0 && share.is_finite(), "share {share}, expected at least 0");
        self.share_below = share;
        self
    }

    /// Whether what is below the layers learns.
    fn below_learns(&self) -> bool {
        self.share_below > 0.0 && self.below.learns()
    }

    /// The layers, and whether sums below 0 become 0.
    #[cfg(feature = "cuda")]
    pub(crate) fn answering(&self) -> impl Iterator<Item = (&Linear, bool)> {
        self.layers.iter().map(|layer| (&layer.linear, layer.finish.activation == Activation::Relu))
    }

    /// What is below the layers.
    pub fn below(&self) -> &E {
        &self.below
    }

    /// What is below the layers, to be changed.
    pub fn below_mut(&mut self) -> &mut E {
        &mut self.below
    }
}

impl<E: Encoder<Output = Activations>> Encoder for Stack<E> {
    type Output = Activations;
    type Scratch = StackScratch<E::Scratch>;

    fn width(&self) -> usize {
        self.layers.last().map_or(self.below.width(), |l| l.linear.weights.rows())
    }

    fn learns(&self) -> bool {
        !self.layers.is_empty() || self.below_learns()
    }

    fn forward(
        &self,
        batch: &Batch,
        mode: Mode,
        output: &mut Activations,
        scratch: &mut Self::Scratch,
    ) -> Result<(), StepError> {
        scratch.inputs.resize_with(self.layers.len(), Activations::default);
        let StackScratch { below, inputs, product, .. } = scratch;
        let lowest = inputs.first_mut().unwrap_or(output);
        self.below.forward(batch, mode, lowest, below)?;
        for (at, layer) in self.layers.iter().enumerate() {
            let (low, high) = inputs.split_at_mut(at + 1);
            layer.forward(mode, batch.instances(), &low[at], high.first_mut().unwrap_or(output), product);
        }
        Ok(())
    }

    fn backward(
        &self,
        batch: &Batch,
        mode: Mode,
        output: &Activations,
        gradient: &mut Activations,
        scratch: &mut Self::Scratch,
    ) -> Result<(), StepError> {
        let below_learns = self.below_learns();
        scratch.gradients.resize_with(self.layers.len(), Activations::default);
        let StackScratch { below, inputs, gradients, product } = scratch;
        for (at, layer) in self.layers.iter().enumerate().rev() {
            let (low, high) = gradients.split_at_mut(at + 1);
            let (output, gradient) = match high.first_mut() {
                Some(gradient) => (&inputs[at + 1], gradient),
                None => (output, &mut *gradient),
            };
            layer.finish.backward(mode, batch.instances(), output, gradient);
            if at > 0 || below_learns {
                layer.linear.backward(gradient, &mut low[at], product);
            }
        }
        if !below_learns {
            return Ok(());
        }
        let (output, gradient) = match gradients.first_mut() {
            Some(gradient) => (&inputs[0], gradient),
            None => (output, gradient),
        };
        self.below.backward(batch, mode, output, gradient, below)
    }

    fn squared_norm(
        &self,
        batch: &Batch,
        gradient: &Activations,
        scratch: &mut Self::Scratch,
    ) -> Result<f64, StepError> {
        let StackScratch { below, inputs, gradients, product } = scratch;
        let mut sum = 0.0;
        if self.below_learns() {
            sum += self.below.squared_norm(batch, gradients.first().unwrap_or(gradient), below)?;
        }
        for (at, layer) in self.layers.iter().enumerate() {
            sum += layer.linear.squared_norm(&inputs[at], gradients.get(at + 1).unwrap_or(gradient), product);
        }
        Ok(sum)
    }

    fn update(
        &mut self,
        batch: &Batch,
        gradient: &Activations,
        scratch: &mut Self::Scratch,
        update: &Update,
    ) -> Result<(), StepError> {
        let StackScratch { below, inputs, gradients, product } = scratch;
        if self.below_learns() {
            let update = update.times(self.share_below);
            self.below.update(batch, gradients.first().unwrap_or(gradient), below, &update)?;
        }
        for (at, layer) in self.layers.iter_mut().enumerate() {
            layer.linear.update(&inputs[at], gradients.get(at + 1).unwrap_or(gradient), product, update);
        }
        Ok(())
    }
}

impl<E: Encoder<Output = Activations>> State for Stack<E> {
    fn settings(&self) -> serde_json::Value {
        let layer = |l: &Layer| json!({ "linear": l.linear.settings(), "finish": l.finish });
        let layers: Vec<_> = self.layers.iter().map(layer).collect();
        json!({ "below": self.below.settings(), "share_below": self.share_below, "layers": layers })
    }

    fn parameters(&self) -> Vec<Named<&Parameter>> {
        self.below.parameters().into_iter().chain(self.own()).collect()
    }

    fn parameters_mut(&mut self) -> Vec<Named<&mut Parameter>> {
        let Self { below, layers, .. } = self;
        let own = layers.iter_mut().enumerate();
        let own = own.flat_map(|(at, l)| l.linear.parameters_mut(&format!("layer{}", at + 1)));
        below.parameters_mut().into_iter().chain(own).collect()
    }

    fn n_values(&self) -> usize {
        self.below.n_values() + self.own().map(|named| named.parameter.values().len()).sum::<usize>()
    }

    fn prepare(&mut self, moments: Moments) {
        self.below.prepare(moments);
        self.own_mut().for_each(|named| named.parameter.prepare(moments));
    }

    fn visit(&self, f: &mut Visitor<'_>) -> Result<(), StateError> {
        self.below.visit(f)?;
        visit_parameters(self.own(), f)
    }

    fn load(&mut self, from: &dyn Arrays) -> Result<(), StateError> {
        self.below.load(from)?;
        load_parameters(self.own_mut(), from)
    }

    fn check_finite(&self) -> Result<(), StateError> {
        self.below.check_finite()?;
        visit_parameters(self.own(), &mut |array| array.check_finite())
    }
}

impl<E> Stack<E> {
    /// The layers' parameters.
    fn own(&self) -> impl Iterator<Item = Named<&Parameter>> {
        self.layers.iter().enumerate().flat_map(|(at, l)| l.linear.parameters(&format!("layer{}", at + 1)))
    }

    fn own_mut(&mut self) -> impl Iterator<Item = Named<&mut Parameter>> {
        let layers = self.layers.iter_mut().enumerate();
        layers.flat_map(|(at, l)| l.linear.parameters_mut(&format!("layer{}", at + 1)))
    }
}

impl Layer {
    fn forward(
        &self,
        mode: Mode,
        instances: &[u32],
        input: &Activations,
        output: &mut Activations,
        scratch: &mut MatmulScratch,
    ) {
        self.linear.forward(input, output, scratch);
        let width = output.width();
        for_each_part(output.values_mut(), (BLOCK * width).max(1), |block, rows| {
            self.finish.forward(mode, &instances[block * BLOCK..], width, rows);
        });
    }
}
