//! Labels as vectors whose inner products with those of instances order them as their logits do.
//!
//! ```text
//!   label      (weights, (bias - mean) / s)
//!   instance   (vector, s)
//! ```
//!
//! A constant added to all biases changes no ranking; `s` balances the last value of labels and of
//! instances against the others, as codes have a scale for each vector.

mod weights;

pub use weights::LabelWeights;

use xc_dense::{DenseMatrix, DenseRows};

/// The coordinate that a bias becomes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BiasCoordinate {
    /// Taken from each bias.
    pub mean: f32,
    /// What biases are divided by, and the last value of an instance.
    pub scale: f32,
}

impl BiasCoordinate {
    /// With a scale that is known.
    pub fn with_scale(biases: &[f32], scale: f32) -> Self {
        let sum: f64 = biases.iter().map(|&bias| f64::from(bias)).sum();
        Self { mean: (sum / biases.len().max(1) as f64) as f32, scale }
    }

    /// With the scale that makes the last values of labels and of instances about as large as the others.
    pub fn balanced(weights: LabelWeights<'_>, vectors: Option<DenseRows<'_>>) -> Self {
        let largest = |row: &[f32]| row.iter().fold(0.0f32, |most, v| most.max(v.abs()));
        let middle = |mut of: Vec<f32>| {
            of.sort_unstable_by(f32::total_cmp);
            of.get(of.len() / 2).copied().filter(|v| *v > 0.0).unwrap_or(1.0)
        };
        let plain = Self::with_scale(weights.biases(), 1.0);
        let bias = weights.biases().iter().map(|bias| (bias - plain.mean).abs()).fold(0.0, f32::max);
        let mut buffer = Vec::new();
        let of_labels = (0..weights.n() as u32).map(|label| largest(weights.row(label, &mut buffer))).collect();
        let of_vectors = vectors.map_or(1.0, |vectors| middle(vectors.iter().map(largest).collect()));
        let scale = (bias / middle(of_labels) * of_vectors).sqrt();
        let scale = if scale.is_finite() && scale > 0.0 { scale.clamp(0.01, 100.0) } else { 1.0 };
        Self { scale, ..plain }
    }

    /// Appends the vectors of labels.
    pub fn push_labels(
        self,
        weights: LabelWeights<'_>,
        labels: impl Iterator<Item = u32>,
        buffer: &mut Vec<f32>,
        to: &mut Vec<f32>,
    ) {
        for label in labels {
            to.extend_from_slice(weights.row(label, buffer));
            to.push((weights.bias(label) - self.mean) / self.scale);
        }
    }

    /// All labels.
    pub fn labels(self, weights: LabelWeights<'_>) -> DenseMatrix {
        let (n, columns) = (weights.n(), weights.width() + 1);
        let mut values = Vec::with_capacity(n * columns);
        self.push_labels(weights, 0..n as u32, &mut Vec::new(), &mut values);
        DenseMatrix::new(n, columns, values)
    }

    /// Appends the vectors of instances.
    pub fn push_instances(self, vectors: DenseRows<'_>, to: &mut Vec<f32>) {
        for row in vectors.iter() {
            to.extend_from_slice(row);
            to.push(self.scale);
        }
    }
}
