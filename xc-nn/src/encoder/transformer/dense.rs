//! Linear layers behind the pooling, which sentence-transformers calls Dense: as they come, nothing is trained.

use serde::{Deserialize, Serialize};

/// A linear layer and its activation.
///
/// *Determinism*: a vector has the same bits alone and among others, on any instruction set.
#[derive(Clone, Debug, PartialEq)]
pub struct Dense {
    params: DenseParams,
    /// Outputs x inputs.
    weights: Vec<f32>,
    bias: Vec<f32>,
}

/// What a linear layer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DenseParams {
    /// Values of a vector that comes in.
    pub inputs: usize,
    /// Values of one that goes out.
    pub outputs: usize,
    /// What they go through at last.
    pub activation: DenseActivation,
}

/// What the values of a linear layer go through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DenseActivation {
    /// Nothing.
    Identity,
    /// The hyperbolic tangent.
    Tanh,
    /// Those above 0, and 0 for others.
    Relu,
    /// The logistic function.
    Sigmoid,
}

/// Sums that an output is added up in, so that instructions of any width give the same bits.
const SUMS: usize = 8;

impl Dense {
    /// Most values of a vector that goes out.
    pub const MOST_OUTPUTS: usize = 1 << 20;

    /// A layer of as many outputs as `bias` has.
    ///
    /// # Panics
    /// If the weights are no row of the same number of values for each output.
    pub fn new(activation: DenseActivation, weights: Vec<f32>, bias: Vec<f32>) -> Self {
        let (inputs, outputs) = (weights.len() / bias.len().max(1), bias.len());
        assert_eq!(inputs * outputs, weights.len(), "weights of {outputs} outputs");
        Self { params: DenseParams { inputs, outputs, activation }, weights, bias }
    }

    /// The activation of a class of PyTorch.
    pub(super) fn activation_of(class: &str) -> Option<DenseActivation> {
        match class {
            "Identity" => Some(DenseActivation::Identity),
            "Tanh" => Some(DenseActivation::Tanh),
            "ReLU" => Some(DenseActivation::Relu),
            "Sigmoid" => Some(DenseActivation::Sigmoid),
            _ => None,
        }
    }

    /// What it is.
    pub fn params(&self) -> DenseParams {
        self.params
    }

    /// Values of a vector that goes out.
    pub fn outputs(&self) -> usize {
        self.params.outputs
    }

    /// Weights, outputs x inputs, and biases.
    pub fn values(&self) -> [&[f32]; 2] {
        [&self.weights, &self.bias]
    }

    /// The vector that becomes of one.
    ///
    /// # Panics
    /// If it has another number of values than the layer takes.
    pub fn apply(&self, vector: &[f32]) -> Vec<f32> {
        assert_eq!(vector.len(), self.params.inputs, "values of a vector");
        let rows = self.weights.chunks_exact(self.params.inputs.max(1));
        let sums = rows.zip(&self.bias).map(|(row, bias)| product(row, vector) + bias);
        sums.map(|sum| self.params.activation.of(sum)).collect()
    }
}

impl DenseActivation {
    fn of(self, value: f32) -> f32 {
        match self {
            Self::Identity => value,
            Self::Tanh => f64::from(value).tanh() as f32,
            Self::Relu => value.max(0.0),
            Self::Sigmoid => (1.0 / (1.0 + (-f64::from(value)).exp())) as f32,
        }
    }
}

fn product(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0; SUMS];
    for (a, b) in a.chunks(SUMS).zip(b.chunks(SUMS)) {
        a.iter().zip(b).zip(&mut sums).for_each(|((a, b), sum)| *sum += a * b);
    }
    sums.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn outputs_are_sums_of_products(inputs in 1usize..40, outputs in 1usize..5, seeds in prop::collection::vec(-2.0f32..2.0, 40 * 6)) {
            let (vector, rest) = seeds.split_at(inputs);
            let (weights, bias) = (&rest[..inputs * outputs], &seeds[seeds.len() - outputs..]);
            let of = |activation| Dense::new(activation, weights.to_vec(), bias.to_vec()).apply(vector);
            let plain = of(DenseActivation::Identity);
            for (i, (&got, bias)) in plain.iter().zip(bias).enumerate() {
                let row = &weights[i * inputs..][..inputs];
                let sum: f64 = row.iter().zip(vector).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
                prop_assert!((f64::from(got) - sum - f64::from(*bias)).abs() < 1e-3);
            }
            for (activation, of_one) in [
                (DenseActivation::Tanh, (|x: f32| x.tanh()) as fn(f32) -> f32),
                (DenseActivation::Relu, |x| x.max(0.0)),
                (DenseActivation::Sigmoid, |x| 1.0 / (1.0 + (-x).exp())),
            ] {
                let expected = plain.iter().map(|&x| of_one(x));
                prop_assert!(of(activation).into_iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-5));
            }
        }
    }
}
