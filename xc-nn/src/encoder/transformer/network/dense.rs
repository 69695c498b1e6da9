//! Linear layers behind the pooling, which sentence-transformers calls Dense: each `activation(input * weights^T + bias)`.

use super::super::params::{DenseActivation, DenseParams, TransformerParams};
use super::super::weights::dense_name;
use super::layer::stream;
use super::ragged::Pass;
use crate::Update;
use crate::activations::Activations;
use crate::layer::{Leaves, Linear, Named};
use crate::parameter::{Init, Parameter};
use xc_dense::{MatmulPrecision, MatmulScratch};

impl DenseActivation {
    fn of(self, value: f32) -> f32 {
        match self {
            Self::Identity => value,
            Self::Tanh => f64::from(value).tanh() as f32,
            Self::Relu => value.max(0.0),
            Self::Sigmoid => (1.0 / (1.0 + (-f64::from(value)).exp())) as f32,
        }
    }

    /// The derivative where the output is `y`; that of [`DenseActivation::Relu`] at 0 is taken as 0.
    fn slope(self, y: f32) -> f32 {
        match self {
            Self::Identity => 1.0,
            Self::Tanh => 1.0 - y * y,
            Self::Relu => f32::from(u8::from(y > 0.0)),
            Self::Sigmoid => y * (1.0 - y),
        }
    }
}

/// The layers of a transformer, in their order.
#[derive(Clone, Debug)]
pub(super) struct DenseLayers(Vec<(Linear, DenseActivation)>);

/// What is kept of a forward pass, and buffers.
#[derive(Default)]
pub(super) struct DenseScratch {
    /// What comes to each layer, and the output of the last.
    values: Vec<Activations>,
    /// Gradients of the sums of each.
    gradients: Vec<Activations>,
    product: MatmulScratch,
}

impl DenseLayers {
    pub(super) fn new(of: &TransformerParams, init: Init) -> Self {
        let one = |(at, &DenseParams { inputs, outputs, activation }): (usize, &DenseParams)| {
            let gain = if activation == DenseActivation::Relu { 6.0 } else { 3.0 };
            // Behind the names of the blocks, and of the dropout of vectors.
            let names = stream(of.layers + 2 + at, 0);
            (Linear::new(outputs, inputs, gain, init, names, Leaves::TOKENS), activation)
        };
        Self(of.dense.iter().enumerate().map(one).collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn set_products(&mut self, products: MatmulPrecision) {
        self.0.iter_mut().for_each(|(linear, _)| linear.set_products(products));
    }

    /// The vectors that become of what `pool` fills, which is kept for [`DenseLayers::backward`].
    pub(super) fn forward(
        &self,
        pass: &Pass<'_>,
        pool: impl FnOnce(&mut Activations),
        out: &mut Activations,
        scratch: &mut DenseScratch,
    ) {
        let DenseScratch { values, product, .. } = scratch;
        values.resize_with(self.0.len() + 1, Activations::default);
        pool(&mut values[0]);
        for (at, (linear, activation)) in self.0.iter().enumerate() {
            let (low, high) = values.split_at_mut(at + 1);
            linear.sums(pass, &low[at], &mut high[0], product);
            high[0].values_mut().iter_mut().for_each(|value| *value = activation.of(*value));
        }
        out.copy_from(&values[self.0.len()]);
    }

    /// Turns the gradient of the vectors into that of what was pooled; those of the layers' sums are kept.
    pub(super) fn backward(&self, gradient: &mut Activations, scratch: &mut DenseScratch) {
        let DenseScratch { values, gradients, product } = scratch;
        gradients.resize_with(self.0.len(), Activations::default);
        for (at, (linear, activation)) in self.0.iter().enumerate().rev() {
            let pairs = gradient.values_mut().iter_mut().zip(values[at + 1].values());
            pairs.for_each(|(gradient, &y)| *gradient *= activation.slope(y));
            gradients[at].copy_from(gradient);
            linear.backward(&gradients[at], gradient, product);
        }
    }

    /// Sum of squares of the gradients of weights and biases, after [`DenseLayers::backward`].
    pub(super) fn squared_norm(&self, scratch: &mut DenseScratch) -> f64 {
        let DenseScratch { values, gradients, product } = scratch;
        let layers = self.0.iter().zip(values.iter().zip(gradients));
        layers.map(|((linear, _), (input, gradient))| linear.squared_norm(input, gradient, product)).sum()
    }

    /// Changes weights and biases by their gradients, after [`DenseLayers::backward`].
    pub(super) fn update(&mut self, scratch: &mut DenseScratch, update: &Update) {
        let DenseScratch { values, gradients, product } = scratch;
        let layers = self.0.iter_mut().zip(values.iter().zip(gradients));
        layers.for_each(|((linear, _), (input, gradient))| linear.update(input, gradient, product, update));
    }

    pub(super) fn parameters(&self) -> impl Iterator<Item = Named<&Parameter>> {
        self.0.iter().enumerate().flat_map(|(at, (linear, _))| linear.parameters(&dense_name(at)))
    }

    pub(super) fn parameters_mut(&mut self) -> impl Iterator<Item = Named<&mut Parameter>> {
        self.0.iter_mut().enumerate().flat_map(|(at, (linear, _))| linear.parameters_mut(&dense_name(at)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [DenseActivation; 4] =
        [DenseActivation::Identity, DenseActivation::Tanh, DenseActivation::Relu, DenseActivation::Sigmoid];

    #[test]
    fn slopes_are_those_of_the_activations() {
        for activation in ALL {
            for x in [-3.0f32, -0.5, 0.25, 2.0] {
                let difference = (activation.of(x + 1e-2) - activation.of(x - 1e-2)) / 2e-2;
                assert!((activation.slope(activation.of(x)) - difference).abs() < 1e-3, "{activation:?} {x}");
            }
        }
        let at_0 = ALL.map(|activation| activation.of(0.0));
        assert_eq!(at_0, [0.0, 0.0, 0.0, 0.5]);
    }
}
