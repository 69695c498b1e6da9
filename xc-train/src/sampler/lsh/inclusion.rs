//! How likely it is that tables give a label, over the draw of their functions.

use crate::sampler::LabelWeights;
use rayon::prelude::*;
use xc_lsh::{Family, Kind};
use xc_sparse::dense::{self, MatRef, MatmulPrecision, Start, product};
use xc_sparse::vectorised;

/// Places of the table of logarithms.
const PLACES: usize = 4096;
/// Places at which the probability of a code is worked out, by angle.
const ANGLES: usize = 96;
/// What ln(1 - pi) is cut at: such a label is in every union.
const LEAST: f32 = -700.0;

/// ln(1 - pi) by similarity, pi = 1 - (1 - p^K)^L.
#[derive(Clone, Debug)]
pub(super) struct Inclusion {
    by_similarity: Vec<f32>,
    /// WTA goes by the order of coordinates: vectors are taken without their mean.
    is_centred: bool,
}

impl Inclusion {
    /// *Cost*: some tenths of a second for WTA.
    pub(super) fn new(family: &dyn Family) -> Self {
        let params = family.params();
        let by_angle: Vec<f64> = (0..=ANGLES)
            .into_par_iter()
            .map(|at| family.probability((std::f64::consts::PI * at as f64 / ANGLES as f64).cos()))
            .collect();
        let miss = |at: usize| {
            let similarity = 2.0 * at as f64 / PLACES as f64 - 1.0;
            let place = similarity.acos() / std::f64::consts::PI * ANGLES as f64;
            let (i, part) = ((place as usize).min(ANGLES - 1), place - (place as usize).min(ANGLES - 1) as f64);
            let p = by_angle[i] + part * (by_angle[i + 1] - by_angle[i]);
            let log = f64::from(params.n_tables) * (-p.powi(params.n_codes as i32)).ln_1p();
            (log as f32).max(LEAST)
        };
        let is_centred = matches!(params.kind, Kind::Wta { .. });
        Self { by_similarity: (0..=PLACES).map(miss).collect(), is_centred }
    }

    /// ln(1 - pi) of a similarity.
    fn log_miss(&self, similarity: f32) -> f32 {
        let place = (similarity.clamp(-1.0, 1.0) + 1.0) * (0.5 * PLACES as f32);
        let at = (place as usize).min(PLACES - 1);
        let part = place - at as f32;
        self.by_similarity[at] + part * (self.by_similarity[at + 1] - self.by_similarity[at])
    }

    /// Makes the product with a row its similarity times the row's length; a vector of nothing is
    /// like none.
    pub(super) fn normalise(&self, vector: &mut [f32]) {
        let (mean, length) = self.moments(vector);
        if length > 0.0 {
            vector.iter_mut().for_each(|v| *v = (*v - mean) / length);
        }
    }

    /// What is taken from the values of a vector, and the length of the rest.
    fn moments(&self, vector: &[f32]) -> (f32, f32) {
        let (sum, squares) = sums(vector);
        let n = vector.len() as f32;
        let mean = if self.is_centred { sum / n } else { 0.0 };
        (mean, (squares - n * mean * mean).max(0.0).sqrt())
    }

    /// Chance of each label that one of some queries finds it, queries taken as independent.
    /// `queries` are normalised, of the rows' width and a bias.
    pub(super) fn chances(&self, queries: &[f32], weights: LabelWeights<'_>, labels: &[u32], out: &mut Vec<f64>) {
        /// Labels that are gathered at a time.
        const BLOCK: usize = 1024;
        let width = weights.width() + 1;
        let n = queries.len() / width;
        out.clear();
        let (mut rows, mut products, mut scratch) = (Vec::new(), Vec::new(), dense::Scratch::default());
        for labels in labels.chunks(BLOCK) {
            rows.clear();
            push_rows(weights, labels, &mut rows);
            products.resize(n * labels.len(), 0.0);
            let (a, b) = (MatRef::new(queries, n, width), MatRef::new(&rows, labels.len(), width).t());
            product(&mut products, a, b, Start::Zero, MatmulPrecision::F32, &mut scratch);
            out.extend(rows.chunks_exact(width).enumerate().map(|(at, row)| {
                let length = self.moments(row).1;
                let similarity = |of: &f32| if length > 0.0 { of / length } else { 0.0 };
                let log = products.iter().skip(at).step_by(labels.len());
                let log: f64 = log.map(|of| f64::from(self.log_miss(similarity(of)))).sum();
                -log.exp_m1()
            }));
        }
    }
}

/// Sum of values and of their squares, in lanes: the same bits on every instruction set.
fn sums(values: &[f32]) -> (f32, f32) {
    vectorised(|| {
        let (mut sum, mut squares) = ([0.0f32; 16], [0.0f32; 16]);
        let lanes = values.chunks_exact(16);
        let rest = lanes.remainder();
        for lane in lanes.chain([rest]) {
            for (at, v) in lane.iter().enumerate() {
                sum[at] += v;
                squares[at] += v * v;
            }
        }
        (sum.iter().sum(), squares.iter().sum())
    })
}

/// Appends the rows of labels, the bias as one more value each.
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
    use xc_lsh::{FamilyParams, Projection, theory};

    #[test]
    fn tabulated_chances_are_those_of_the_closed_form() {
        for kind in [Kind::SimHash { projection: Projection::Gaussian }, Kind::Wta { bin: 4 }] {
            let family =
                FamilyParams { kind, width: 16, n_codes: 5, n_tables: 20, key_bits: 32, seed: 1 }.build().unwrap();
            let inclusion = Inclusion::new(&*family);
            for s in [-1.0, -0.7, -0.2, 0.0, 0.1, 0.5, 0.9, 0.97, 1.0] {
                let expected = theory::inclusion(family.probability(f64::from(s)), 5, 20);
                let got = -f64::from(inclusion.log_miss(s)).exp_m1();
                assert!((got - expected).abs() < 2e-3, "{kind:?} at {s}: {got}, expected {expected}");
            }
        }
    }
}
