//! How many repetitions and buckets: what the theory requires, what they cost, and defaults.

use serde::{Deserialize, Serialize};
use thiserror::Error;
use xc_hash::universal::UniversalFamily;

/// The size of a model: L labels, R repetitions of B buckets, d inputs to each output layer.
///
/// ```
/// use xc_mach::{Sizing, repetitions_needed};
/// let sizing = Sizing::try_new(50_000_000, 32, 20_000, 2000)?;
/// assert_eq!(sizing.output_parameters(), 32 * 20_000 * 2001);
/// assert!(sizing.reduction() > 78.0);
/// // Theorem 2: four or five repetitions tell 50 million labels apart.
/// assert_eq!(repetitions_needed(50_000_000, 20_000, 0.01)?, 5);
/// # Ok::<(), xc_mach::SizingError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sizing {
    n_labels: usize,
    n_repetitions: usize,
    n_buckets: usize,
    width: usize,
}

/// Why a size is not valid.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum SizingError {
    /// No repetition at all.
    #[error("0 repetitions, expected at least 1")]
    NoRepetitions,
    /// One bucket does not distinguish labels.
    #[error("{got} buckets, expected at least 2")]
    TooFewBuckets {
        /// Buckets found.
        got: usize,
    },
    /// At least as many buckets as labels: nothing is gained over one output per label.
    #[error(
        "{got} buckets for {n_labels} labels: expected fewer buckets than labels, or an output layer over the labels"
    )]
    TooManyBuckets {
        /// Buckets found.
        got: usize,
        /// Labels found.
        n_labels: usize,
    },
    /// An invalid probability.
    #[error("probability {got}, expected one above 0 and below 1")]
    Probability {
        /// The number found.
        got: f64,
    },
}

impl Sizing {
    /// Checks that hashing the labels makes sense.
    pub fn try_new(n_labels: usize, n_repetitions: usize, n_buckets: usize, width: usize) -> Result<Self, SizingError> {
        if n_repetitions == 0 {
            return Err(SizingError::NoRepetitions);
        }
        check_buckets(n_buckets)?;
        if n_buckets >= n_labels {
            return Err(SizingError::TooManyBuckets { got: n_buckets, n_labels });
        }
        Ok(Self { n_labels, n_repetitions, n_buckets, width })
    }

    /// Numbers learned by the R output layers, biases included: R B (d + 1).
    pub fn output_parameters(&self) -> u64 {
        (self.n_repetitions * self.n_buckets) as u64 * (self.width as u64 + 1)
    }

    /// Numbers that one output layer over the labels would learn: L (d + 1).
    pub fn dense_parameters(&self) -> u64 {
        self.n_labels as u64 * (self.width as u64 + 1)
    }

    /// Factor by which hashing reduces the parameters: L / (R B).
    pub fn reduction(&self) -> f64 {
        self.dense_parameters() as f64 / self.output_parameters() as f64
    }

    /// Bytes of the output layers in single precision.
    pub fn model_bytes(&self) -> u64 {
        4 * self.output_parameters()
    }

    /// Bytes of one repetition's output layer while it is trained: weights, gradients, and `states`
    /// numbers that the optimiser keeps for each (Adam 2, momentum 1, SGD 0).
    pub fn training_bytes(&self, states: u64) -> u64 {
        self.model_bytes() / self.n_repetitions as u64 * (2 + states)
    }

    /// Bytes of a query's bucket scores.
    pub fn scores_bytes(&self) -> u64 {
        4 * (self.n_repetitions * self.n_buckets) as u64
    }

    /// Look-ups of a full scan of one query: L R.
    pub fn scan_lookups(&self) -> u64 {
        self.n_labels as u64 * self.n_repetitions as u64
    }

    /// Labels of a bucket, on average.
    pub fn labels_per_bucket(&self) -> f64 {
        self.n_labels as f64 / self.n_buckets as f64
    }

    /// An upper bound of the probability that some two labels share their buckets in all
    /// repetitions: L^2 B^-R, at most 1 (`[medini2019mach, Lemma 1]` and the union bound).
    pub fn indistinguishable_probability(&self) -> f64 {
        let log = 2.0 * (self.n_labels as f64).ln() - self.n_repetitions as f64 * (self.n_buckets as f64).ln();
        log.exp().min(1.0)
    }
}

/// The least number of repetitions that distinguish all pairs of labels with probability at least 1 -
/// `delta`: R >= 2 log(L / sqrt(delta)) / log B (`[medini2019mach, Theorem 2]`).
pub fn repetitions_needed(n_labels: usize, n_buckets: usize, delta: f64) -> Result<usize, SizingError> {
    check_buckets(n_buckets)?;
    if !(delta > 0.0 && delta < 1.0) {
        return Err(SizingError::Probability { got: delta });
    }
    let needed = 2.0 * (n_labels.max(1) as f64 / delta.sqrt()).ln() / (n_buckets as f64).ln();
    Ok((needed.ceil() as usize).max(1))
}

/// Default repetitions, buckets and hash functions for a number of labels.
///
/// All repetitions together have half as many buckets as there are labels: eight repetitions as long as
/// B stays at 10,000 or below, then more, up to 32. The measurements are in
/// `bench/decisions/uniform-mach-defaults.md`.
///
/// ```
/// use xc_mach::UsualSize;
/// let size = |n_labels| {
///     let of = UsualSize::of(n_labels);
///     (of.n_repetitions, of.n_buckets)
/// };
/// assert_eq!((size(20_253), size(670_091)), ((8, 1265), (32, 10_000)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UsualSize {
    /// Repetitions, R.
    pub n_repetitions: u32,
    /// Buckets of each, B: fewer than labels, where there are three of them or more.
    pub n_buckets: u32,
    /// [`UniversalFamily::MultiplyShift`], to whose functions labels can be added, up to a million labels;
    /// beyond, [`UniversalFamily::Prime`], which needs no lists of the labels of a bucket.
    pub family: UniversalFamily,
}

impl UsualSize {
    /// The sizes for so many labels.
    pub fn of(n_labels: usize) -> Self {
        let n_repetitions = (n_labels / (2 * MOST_BUCKETS)).clamp(LEAST_REPETITIONS, MOST_REPETITIONS);
        let half = n_labels / 2;
        let n_buckets = (half / n_repetitions).clamp(LEAST_BUCKETS, MOST_BUCKETS).min(half).max(2);
        let family = if n_labels <= MOST_LISTED { UniversalFamily::MultiplyShift } else { UniversalFamily::Prime };
        Self { n_repetitions: n_repetitions as u32, n_buckets: n_buckets as u32, family }
    }
}

const LEAST_REPETITIONS: usize = 8;
const MOST_REPETITIONS: usize = 32;
const LEAST_BUCKETS: usize = 128;
const MOST_BUCKETS: usize = 10_000;
/// Labels of which lists are made when a model is opened: 4 bytes each and repetition.
const MOST_LISTED: usize = 1_000_000;

fn check_buckets(n_buckets: usize) -> Result<(), SizingError> {
    if n_buckets < 2 { Err(SizingError::TooFewBuckets { got: n_buckets }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repetitions_keep_the_bound_and_one_fewer_would_not() {
        for (n_labels, n_buckets, delta) in [(105_000, 32, 0.01), (21_841, 512, 0.001), (50_000_000, 20_000, 0.05)] {
            let needed = repetitions_needed(n_labels, n_buckets, delta).unwrap();
            let at = |r| Sizing::try_new(n_labels, r, n_buckets, 10).unwrap().indistinguishable_probability();
            assert!(at(needed) <= delta && at(needed - 1) > delta, "{n_labels} {n_buckets} {delta}: {needed}");
        }
    }

    #[test]
    fn sizes_are_those_of_the_paper() {
        // Amazon search: 32 repetitions of 20,000 buckets on 2000 inputs, 50 million products.
        let sizing = Sizing::try_new(50_000_000, 32, 20_000, 2000).unwrap();
        assert_eq!(sizing.output_parameters(), 1_280_640_000);
        assert_eq!(sizing.dense_parameters(), 100_050_000_000);
        assert_eq!(sizing.training_bytes(2), 20_000 * 2001 * 4 * 4);
        assert_eq!(sizing.scores_bytes(), 2_560_000);
        assert_eq!(sizing.scan_lookups(), 1_600_000_000);
        assert_eq!(sizing.labels_per_bucket(), 2500.0);
        // ODP: 32 buckets, 25 repetitions: "120 times" smaller counts 105,033 labels against 32 *
        // 25 and biases alike.
        assert!((Sizing::try_new(105_033, 25, 32, 422_713).unwrap().reduction() - 131.3).abs() < 0.1);
    }

    #[test]
    fn the_usual_sizes_are_possible_for_any_labels_and_tell_them_apart() {
        for n_labels in (3..3000).chain([4_682, 20_253, 69_925, 159_999, 670_091, 50_000_000]) {
            let UsualSize { n_repetitions, n_buckets, .. } = UsualSize::of(n_labels);
            let sizing = Sizing::try_new(n_labels, n_repetitions as usize, n_buckets as usize, 256).unwrap();
            assert!(n_labels < 100 || sizing.indistinguishable_probability() < 0.01, "{n_labels}");
        }
        let family = |n_labels| UsualSize::of(n_labels).family;
        assert_eq!(
            (family(MOST_LISTED), family(MOST_LISTED + 1)),
            (UniversalFamily::MultiplyShift, UniversalFamily::Prime)
        );
        assert!((0..3).all(|n_labels| UsualSize::of(n_labels).n_buckets == 2));
    }

    #[test]
    fn impossible_sizes_are_refused() {
        assert_eq!(Sizing::try_new(10, 0, 5, 1), Err(SizingError::NoRepetitions));
        assert_eq!(Sizing::try_new(10, 1, 1, 1), Err(SizingError::TooFewBuckets { got: 1 }));
        assert_eq!(Sizing::try_new(10, 1, 10, 1), Err(SizingError::TooManyBuckets { got: 10, n_labels: 10 }));
        assert_eq!(repetitions_needed(10, 5, 0.0), Err(SizingError::Probability { got: 0.0 }));
        assert!(repetitions_needed(10, 5, f64::NAN).is_err());
        assert_eq!(repetitions_needed(0, 5, 0.5), Ok(1));
    }
}
