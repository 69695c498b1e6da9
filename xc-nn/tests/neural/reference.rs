//! The same networks in plain f64 loops, and small data to run them on.

use xc_nn::{Encoder, Head, Network};
use xc_sparse::{CsrMatrix, LabelRows};

/// Sparse rows; row 1 is empty, row 3 has one feature that the others share.
pub(crate) fn features(n: usize, n_features: usize) -> CsrMatrix {
    let (mut indptr, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for i in 0..n {
        let count = if i == 1 { 0 } else { 1 + (i * 5) % 7 };
        let mut row: Vec<u32> = (0..count).map(|j| ((i * 13 + j * j * 7 + j) % n_features) as u32).collect();
        row.sort_unstable();
        row.dedup();
        values.extend(row.iter().map(|&f| ((f as usize * 31 + i * 17) % 19) as f32 / 9.0 - 1.0));
        indices.extend(row);
        indptr.push(indices.len());
    }
    CsrMatrix::from_checked((n, n_features), indptr, indices, values)
}

/// Targets; every fifth row has none, others up to three.
pub(crate) fn targets(n: usize, n_outputs: usize) -> LabelRows {
    let rows = (0..n).map(|i| (0..i % 5).take(3).map(|j| ((i * 3 + j * 5) % n_outputs) as u32).collect::<Vec<_>>());
    LabelRows::from_lists(rows, n_outputs).unwrap()
}

/// Parameters by name, in f64.
#[derive(Clone)]
pub(crate) struct Values(pub(crate) Vec<(String, usize, Vec<f64>)>);

impl Values {
    pub(crate) fn of<E: Encoder, H: Head<Input = E::Output>>(network: &Network<E, H>) -> Self {
        let one = |n: xc_nn::Named<&xc_nn::Parameter>| {
            let values = n.parameter.values().iter().map(|&v| f64::from(v)).collect();
            (n.name, n.parameter.width(), values)
        };
        Self(network.parameters().into_iter().map(one).collect())
    }

    fn get(&self, name: &str) -> Option<(&[f64], usize)> {
        self.0.iter().find(|(n, ..)| n == name).map(|(_, width, values)| (&values[..], *width))
    }
}

/// Mean loss of all rows.
pub(crate) fn loss(values: &Values, x: &CsrMatrix, targets: &LabelRows, name: &str, relu: bool) -> f64 {
    let activate = |z: f64| if relu { z.max(0.0) } else { z };
    let linear = |input: &[f64], layer: &str| -> Vec<f64> {
        let (weights, width) = values.get(&format!("{layer}.weights")).unwrap();
        let (bias, _) = values.get(&format!("{layer}.bias")).unwrap();
        let dot = |row: &[f64]| row.iter().zip(input).map(|(a, b)| a * b).sum::<f64>();
        weights.chunks(width).zip(bias).map(|(row, b)| dot(row) + b).collect()
    };
    let mut total = 0.0;
    for i in 0..targets.len() {
        let row = x.row(i);
        let mut vector: Vec<f64> = match values.get("bag.table") {
            Some((table, width)) => {
                let mut sum = values.get("bag.bias").unwrap().0.to_vec();
                for (f, v) in row.iter() {
                    sum.iter_mut().zip(&table[f as usize * width..]).for_each(|(s, e)| *s += f64::from(v) * e);
                }
                sum.into_iter().map(activate).collect()
            }
            None => {
                let mut vector = vec![0.0; x.cols()];
                row.iter().for_each(|(f, v)| vector[f as usize] = f64::from(v));
                vector
            }
        };
        for layer in 1.. {
            if values.get(&format!("layer{layer}.bias")).is_none() {
                break;
            }
            vector = linear(&vector, &format!("layer{layer}")).into_iter().map(activate).collect();
        }
        let z = linear(&vector, "head");
        let positives = targets.row(i);
        let is_true = |j: usize| positives.contains(&(j as u32));
        total += match name {
            "softmax" if positives.is_empty() => 0.0,
            "softmax" => {
                let sum: f64 = z.iter().map(|z| z.exp()).sum();
                sum.ln() - positives.iter().map(|&j| z[j as usize]).sum::<f64>() / positives.len() as f64
            }
            "bce" => (0..z.len()).map(|j| z[j].exp().ln_1p() - if is_true(j) { z[j] } else { 0.0 }).sum(),
            "squared-hinge" => {
                (0..z.len()).map(|j| (1.0 - if is_true(j) { z[j] } else { -z[j] }).max(0.0).powi(2)).sum()
            }
            _ => unreachable!(),
        };
    }
    total / targets.len() as f64
}
