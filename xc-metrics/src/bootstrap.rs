//! Percentile intervals from resampled instances (efron1993bootstrap, chapter 13).
//!
//! Resample number b draws, with replacement, as many units as there are, from a random stream
//! named by (seed, b) alone. Two reports on the same truth therefore see the very same draws, and
//! subtracting their values resample by resample is the paired bootstrap.

use super::{
    contributions::{Contributions, ratio},
    instance::Source,
};
use rayon::prelude::*;
use thiserror::Error;
use xc_hash::stream::{Stream, mix64};

/// How to resample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BootstrapParams {
    /// Number of resamples. Default 1000 (efron1993bootstrap, chapter 19).
    pub resamples: usize,
    /// Share of the resampled values inside the interval. Default 0.95.
    pub level: f64,
    /// Seed of the draws.
    pub seed: u64,
}

impl Default for BootstrapParams {
    fn default() -> Self {
        Self { resamples: 1000, level: 0.95, seed: 0 }
    }
}

impl BootstrapParams {
    /// Checks the ranges.
    pub fn check(&self) -> Result<(), BootstrapError> {
        if self.resamples == 0 {
            return Err(BootstrapError::NoResamples);
        }
        if !(self.level > 0.0 && self.level < 1.0) {
            return Err(BootstrapError::Level { level: self.level });
        }
        Ok(())
    }
}

/// Why there is no interval.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum BootstrapError {
    /// No resample at all.
    #[error("at least one resample is expected; got 0")]
    NoResamples,
    /// The level is no share.
    #[error("the level must lie between 0 and 1; got {level}")]
    Level {
        /// The value.
        level: f64,
    },
    /// The evaluator dropped the instances.
    #[error("intervals need an evaluator that keeps rows")]
    RowsDropped,
    /// Two reports do not judge the same instances.
    #[error("the two reports are not about the same truth ({left} instances, {right} instances)")]
    OtherTruth {
        /// Instances of one report.
        left: u64,
        /// Instances of the other.
        right: u64,
    },
    /// Two reports hold different metrics.
    #[error("the two reports hold different metrics")]
    OtherMetrics,
}

/// Where a value lies, by the resampled values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// True when `value` lies inside, ends included.
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// The middle `level` of the values; between two of them, linearly.
    pub(super) fn percentile(values: &mut [f64], level: f64) -> Self {
        values.sort_unstable_by(f64::total_cmp);
        let at = |share: f64| {
            let place = share * (values.len() - 1) as f64;
            let below = place.floor();
            let (a, b) = (values[below as usize], values[place.ceil() as usize]);
            a + (b - a) * (place - below)
        };
        Self { low: at((1.0 - level) / 2.0), high: at((1.0 + level) / 2.0) }
    }
}

/// Which units a stream draws; part of its name.
#[derive(Clone, Copy)]
enum Unit {
    Instance = 1,
    Label = 2,
}

/// Resamples that read the table together, to read it from memory once.
const TOGETHER: usize = 8;

/// Every metric's value in every resample: `[metric][resample]`.
///
/// *Cost*: O(resamples * instances * metrics) time; per thread 4 * [`TOGETHER`] bytes an instance.
pub(super) fn resample(table: &Contributions, params: &BootstrapParams) -> Vec<Vec<f64>> {
    let instance_sums = sums(&table.instances, table.instance_width, Unit::Instance, params);
    let label_sums = sums(&table.labels, table.label_width, Unit::Label, params);
    let n_labels = (table.labels.len() / table.label_width) as f64;
    let value = |source: &Source, b: usize| match *source {
        Source::Instances { numerator, denominator } => {
            ratio(instance_sums[b][numerator], instance_sums[b][denominator])
        }
        Source::Labels { column } => ratio(label_sums[b][column], n_labels),
    };
    table.sources.iter().map(|source| (0..params.resamples).map(|b| value(source, b)).collect()).collect()
}

/// Column sums of each resample of the rows of `table`.
fn sums(table: &[f64], width: usize, unit: Unit, params: &BootstrapParams) -> Vec<Vec<f64>> {
    let n = table.len() / width;
    let groups: Vec<Vec<Vec<f64>>> = (0..params.resamples.div_ceil(TOGETHER))
        .into_par_iter()
        .map(|group| {
            let resamples = group * TOGETHER..((group + 1) * TOGETHER).min(params.resamples);
            let mut times = vec![[0u32; TOGETHER]; n];
            for (lane, b) in resamples.clone().enumerate() {
                let name = mix64(mix64(params.seed) ^ mix64(((b as u64) << 2) | unit as u64));
                let mut stream = Stream::new(name);
                for _ in 0..n {
                    times[stream.below_u64(n as u64) as usize][lane] += 1;
                }
            }
            let mut out = vec![vec![0.0; width]; resamples.len()];
            for (row, times) in table.chunks_exact(width).zip(&times) {
                for (sums, &times) in out.iter_mut().zip(times) {
                    let times = f64::from(times);
                    sums.iter_mut().zip(row).for_each(|(sum, x)| *sum += times * x);
                }
            }
            out
        })
        .collect();
    groups.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_lie_between_order_statistics() {
        let mut values = vec![4.0, 1.0, 3.0, 2.0, 5.0];
        let interval = Interval::percentile(&mut values, 0.5);
        assert_eq!(interval, Interval { low: 2.0, high: 4.0 });
        let interval = Interval::percentile(&mut values, 0.9);
        assert!((interval.low - 1.2).abs() < 1e-12 && (interval.high - 4.8).abs() < 1e-12, "{interval:?}");
        assert_eq!(Interval::percentile(&mut [7.0], 0.95), Interval { low: 7.0, high: 7.0 });
    }

    #[test]
    fn each_resample_draws_as_many_rows_as_there_are() {
        let table: Vec<f64> = (0..101).flat_map(|i| [1.0, i as f64]).collect();
        let params = BootstrapParams { resamples: 19, ..BootstrapParams::default() };
        let all = sums(&table, 2, Unit::Instance, &params);
        assert_eq!(all.len(), 19);
        assert!(all.iter().all(|s| s[0] == 101.0));
        assert!(all.windows(2).all(|w| w[0][1] != w[1][1]), "resamples differ");
        let other = sums(&table, 2, Unit::Label, &params);
        assert_ne!(all, other, "units have streams of their own");
    }

    #[test]
    fn no_rows_make_no_sums() {
        assert_eq!(sums(&[], 2, Unit::Label, &BootstrapParams { resamples: 2, ..Default::default() }), [[0.0; 2]; 2]);
    }
}
