//! How likely a true label was recorded.

use thiserror::Error;
use xc_sparse::LabelRows;

/// Inverse propensities 1/p_l of all labels.
///
/// p_l = 1 / (1 + C (N_l + B)^-A), where N is the number of training instances, N_l the number that
/// carry label l, and C = (ln N - 1) (B + 1)^A (`[jain2016propensity]`). Usual values: A = 0.55, B =
/// 1.5; the Wikipedia sets take A = 0.5, B = 0.4, the Amazon sets A = 0.6, B = 2.6.
///
/// A label past the end of the training set counts as N_l = 0.
#[derive(Clone, Debug, PartialEq)]
pub struct Propensity {
    inverse: Vec<f64>,
    unseen: f64,             // 1/p of a label without training instance
    seen: Option<Vec<bool>>, // which labels have one; absent when the values were given
}

/// Why there are no propensities.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum PropensityError {
    /// ln N - 1 is not positive: p_l would be 1 or more.
    #[error("propensities need at least 3 training instances (ln N must exceed 1); got {n_instances}")]
    TooFewInstances {
        /// The number of training instances.
        n_instances: usize,
    },
    /// A is not usable.
    #[error("propensity A must be a finite number of at least 0; got {a}")]
    A {
        /// The value.
        a: f64,
    },
    /// B is not usable. At B = 0 a label without training instance would have propensity 0.
    #[error("propensity B must be a finite number above 0; got {b}")]
    B {
        /// The value.
        b: f64,
    },
    /// A given propensity is not a probability.
    #[error("the propensity of label {label} must be above 0 and at most 1; got {value}")]
    Value {
        /// The label.
        label: usize,
        /// The value.
        value: f64,
    },
}

impl Propensity {
    /// From the labels of the training instances.
    ///
    /// *Cost*: O(rows + labels).
    pub fn from_training(training: &LabelRows, a: f64, b: f64) -> Result<Self, PropensityError> {
        let mut counts = vec![0u32; training.n_labels()];
        for &label in training.labels() {
            counts[label as usize] += 1;
        }
        Self::from_counts(training.len(), &counts, a, b)
    }

    /// From the number of training instances of each label.
    pub fn from_counts(n_instances: usize, counts: &[u32], a: f64, b: f64) -> Result<Self, PropensityError> {
        if !(a.is_finite() && a >= 0.0) {
            return Err(PropensityError::A { a });
        }
        if n_instances < 3 {
            return Err(PropensityError::TooFewInstances { n_instances });
        }
        let c = ((n_instances as f64).ln() - 1.0) * (b + 1.0).powf(a);
        let inverse_of = |count: u32| 1.0 + c * (f64::from(count) + b).powf(-a);
        let unseen = inverse_of(0);
        if !(b.is_finite() && b > 0.0 && unseen.is_finite()) {
            return Err(PropensityError::B { b });
        }
        let inverse = counts.iter().map(|&count| inverse_of(count)).collect();
        Ok(Self { inverse, unseen, seen: Some(counts.iter().map(|&count| count > 0).collect()) })
    }

    /// From the propensities themselves, one a label. Labels past the end get the smallest of them.
    pub fn from_values(values: &[f64]) -> Result<Self, PropensityError> {
        if let Some(label) = values.iter().position(|&p| !(p > 0.0 && p <= 1.0 && (1.0 / p).is_finite())) {
            return Err(PropensityError::Value { label, value: values[label] });
        }
        let inverse: Vec<f64> = values.iter().map(|p| 1.0 / p).collect();
        let unseen = inverse.iter().copied().fold(1.0, f64::max);
        Ok(Self { inverse, unseen, seen: None })
    }

    /// 1/p_l.
    pub fn inverse(&self, label: u32) -> f64 {
        self.inverse.get(label as usize).copied().unwrap_or(self.unseen)
    }

    /// p_l.
    pub fn value(&self, label: u32) -> f64 {
        1.0 / self.inverse(label)
    }

    /// Number of labels of the training set.
    pub fn n_labels(&self) -> usize {
        self.inverse.len()
    }

    /// False when the training set has no instance of `label`. True for every label when only
    /// values were given.
    pub fn is_seen(&self, label: u32) -> bool {
        match &self.seen {
            Some(seen) => seen.get(label as usize).copied().unwrap_or(false),
            None => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-12
    }

    #[test]
    fn values_by_hand() {
        // N = 100, A = 1, B = 1: C = (ln 100 - 1) * 2 = 7.210340371976184; 1/p = 1 + C / (N_l + 1).
        let p = Propensity::from_counts(100, &[0, 1, 99], 1.0, 1.0).unwrap();
        let c = 7.210_340_371_976_184;
        assert!(close(p.inverse(0), 1.0 + c));
        assert!(close(p.inverse(1), 1.0 + c / 2.0));
        assert!(close(p.inverse(2), 1.0 + c / 100.0));
        assert!(close(p.inverse(3), 1.0 + c), "a label past the end has no training instance");
        assert!(close(p.value(1) * p.inverse(1), 1.0));
        assert_eq!([p.is_seen(0), p.is_seen(1), p.is_seen(3)], [false, true, false]);
    }

    #[test]
    fn training_rows_give_the_counts() {
        let rows = LabelRows::from_lists([vec![0, 2], vec![2], vec![], vec![2]], 4).unwrap();
        assert_eq!(Propensity::from_training(&rows, 0.55, 1.5), Propensity::from_counts(4, &[1, 0, 3, 0], 0.55, 1.5));
    }

    #[test]
    fn too_few_instances_and_bad_numbers_are_errors() {
        for n in 0..3 {
            assert_eq!(
                Propensity::from_counts(n, &[1], 0.55, 1.5),
                Err(PropensityError::TooFewInstances { n_instances: n })
            );
        }
        assert!(Propensity::from_counts(3, &[1], 0.55, 1.5).is_ok());
        for a in [f64::NAN, f64::INFINITY, -0.1] {
            assert!(matches!(Propensity::from_counts(9, &[1], a, 1.5), Err(PropensityError::A { .. })));
        }
        for b in [f64::NAN, f64::INFINITY, 0.0, -1.0, -2.0] {
            assert!(matches!(Propensity::from_counts(9, &[1], 0.55, b), Err(PropensityError::B { .. })));
        }
        for p in [0.0, -1.0, 1.5, f64::NAN] {
            assert!(matches!(Propensity::from_values(&[0.5, p]), Err(PropensityError::Value { label: 1, .. })));
        }
    }

    #[test]
    fn exponent_zero_makes_all_labels_equal() {
        let p = Propensity::from_counts(50, &[0, 3, 40], 0.0, 1.5).unwrap();
        assert!(close(p.inverse(0), p.inverse(1)) && close(p.inverse(1), p.inverse(2)));
    }
}
