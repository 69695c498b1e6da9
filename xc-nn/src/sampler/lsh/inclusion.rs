//! The probability that tables return a label, over the draw of their hash functions.

use crate::sampler::LabelWeights;
use xc_buffer::vectorised;
use xc_dense::{MatMut, MatRef, MatmulPrecision, Start, product};
use xc_lsh::{FamilyParams, theory};

/// Number of intervals of the table of logarithms.
const PLACES: usize = 4096;
/// Lower bound of ln(1 - pi): a label at the bound is in every union.
const LEAST: f32 = -700.0;

/// ln(1 - pi) as a function of the cosine, with pi = 1 - (1 - q)^L for SimHash; q is the
/// probability that a key agrees.
#[derive(Clone, Debug)]
pub(super) struct Inclusion {
    by_cosine: Vec<f32>,
}

impl Inclusion {
    pub(super) fn new(params: &FamilyParams) -> Self {
        let miss = |at: usize| {
            let p = params.kind.probability(2.0 * at as f64 / PLACES as f64 - 1.0);
            let key = theory::key(p, params.n_codes, params.folded_bits());
            ((f64::from(params.n_tables) * (-key).ln_1p()) as f32).max(LEAST)
        };
        Self { by_cosine: (0..=PLACES).map(miss).collect() }
    }

    /// ln(1 - pi) of a cosine, by linear interpolation.
    fn log_miss(&self, cosine: f32) -> f32 {
        let place = (cosine.clamp(-1.0, 1.0) + 1.0) * (0.5 * PLACES as f32);
        let at = (place as usize).min(PLACES - 1);
        let part = place - at as f32;
        self.by_cosine[at] + part * (self.by_cosine[at + 1] - self.by_cosine[at])
    }

    /// Scales a vector to length 1, so that its product with a row is their cosine times the row's
    /// length. A vector of zeros stays as it is: its cosine with any row is 0.
    pub(super) fn normalise(vector: &mut [f32]) {
        let length = length(vector);
        if length > 0.0 {
            vector.iter_mut().for_each(|v| *v /= length);
        }
    }

    /// Probability that at least one of the queries finds each label; the queries are taken as
    /// independent. `queries` are normalised, and have the width of the rows and one more value for
    /// the bias.
    pub(super) fn chances(&self, queries: &[f32], weights: LabelWeights<'_>, labels: &[u32], out: &mut Vec<f64>) {
        /// Labels that are gathered at a time.
        const BLOCK: usize = 1024;
        let width = weights.width() + 1;
        let n = queries.len() / width;
        out.clear();
        let (mut rows, mut products, mut scratch) = (Vec::new(), Vec::new(), xc_dense::MatmulScratch::default());
        for labels in labels.chunks(BLOCK) {
            rows.clear();
            push_rows(weights, labels, &mut rows);
            products.resize(n * labels.len(), 0.0);
            let (a, b) = (MatRef::new(queries, n, width), MatRef::new(&rows, labels.len(), width).t());
            product(MatMut::new(&mut products, n, labels.len()), a, b, Start::Zero, MatmulPrecision::F32, &mut scratch);
            out.extend(rows.chunks_exact(width).enumerate().map(|(at, row)| {
                let length = length(row);
                let cosine = |of: &f32| if length > 0.0 { of / length } else { 0.0 };
                let log = products.iter().skip(at).step_by(labels.len());
                let log: f64 = log.map(|of| f64::from(self.log_miss(cosine(of)))).sum();
                -log.exp_m1()
            }));
        }
    }
}

/// Length of a vector, summed in lanes: the same bits on every instruction set.
fn length(values: &[f32]) -> f32 {
    vectorised(|| {
        let mut squares = [0.0f32; 16];
        let lanes = values.chunks_exact(16);
        let rest = lanes.remainder();
        for lane in lanes.chain([rest]) {
            lane.iter().enumerate().for_each(|(at, v)| squares[at] += v * v);
        }
        squares.iter().sum::<f32>().sqrt()
    })
}

/// Appends the rows of labels, each followed by its bias.
pub(super) fn push_rows(weights: LabelWeights<'_>, labels: &[u32], to: &mut Vec<f32>) {
    let mut buffer = Vec::new();
    to.reserve(labels.len() * (weights.width() + 1));
    for &label in labels {
        to.extend_from_slice(weights.row(label, &mut buffer));
        to.push(weights.bias(label));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xc_lsh::{FamilyKind, Projection};

    #[test]
    fn tabulated_chances_are_those_of_the_closed_form() {
        // Keys of 10 bits, and the same hashed to 4.
        for (n_codes, key_bits) in [(5, 32), (10, 32), (10, 4)] {
            let kind = FamilyKind::SimHash { projection: Projection::Gaussian };
            let params = FamilyParams { kind, width: 16, n_codes, n_tables: 20, key_bits, seed: 1 };
            let inclusion = Inclusion::new(&params);
            for s in [-1.0, -0.7, -0.2, 0.0, 0.1, 0.5, 0.9, 0.97, 1.0] {
                let expected = params.inclusion(f64::from(s));
                let got = -f64::from(inclusion.log_miss(s)).exp_m1();
                assert!((got - expected).abs() < 2e-3, "{params:?} at {s}: {got}, expected {expected}");
            }
        }
    }
}
