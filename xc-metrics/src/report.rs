//! What an evaluation says.

use super::{
    bootstrap::{BootstrapError, BootstrapParams, Interval, resample},
    contributions::{Contributions, ratio},
    instance::Source,
    metric::Metric,
};
use serde::{Serialize, Serializer, ser::SerializeMap};

/// How many of what was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Instances evaluated (excluded ones are not).
    #[serde(skip)]
    pub instances: u64,
    /// Evaluated instances without a true label.
    pub without_labels: u64,
    /// Evaluated instances with an empty ranked list.
    pub without_predictions: u64,
    /// Instances left out on request.
    pub excluded: u64,
    /// Labels that predictions may name.
    pub labels: u64,
    /// Labels with at least one true instance: what coverage and macro F1 are means over.
    pub labels_in_truth: u64,
    /// Distinct true labels that are out of range, or without training instance where the training
    /// labels are given.
    pub unknown_labels: u64,
    /// (instance, label) pairs of the truth with such a label.
    pub unknown_pairs: u64,
    /// Pairs taken out of the truth by the filter.
    pub filtered_truth: u64,
    /// Pairs taken out of the ranked lists by the filter.
    pub filtered_predictions: u64,
}

impl Counts {
    pub(super) fn add(&mut self, other: &Self) {
        self.instances += other.instances;
        self.without_labels += other.without_labels;
        self.without_predictions += other.without_predictions;
        self.excluded += other.excluded;
        self.unknown_pairs += other.unknown_pairs;
        self.filtered_truth += other.filtered_truth;
        self.filtered_predictions += other.filtered_predictions;
    }
}

/// One metric's value, a fraction of 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MetricValue {
    /// The metric.
    pub metric: Metric,
    /// Its value.
    pub value: f64,
    /// Where it lies, once [`MetricReport::add_intervals`] was asked.
    pub interval: Option<Interval>,
}

/// The values of all metrics.
///
/// As JSON (serde): `"instances"`, `"threshold"` where there is one, then each metric by name in a fixed order, `"counts"`, and, once
/// they were asked for, `"intervals"` (`{"level", "resamples", "seed", "P@1": [low, high], ...}`).
#[derive(Clone, Debug)]
pub struct MetricReport {
    values: Vec<MetricValue>,
    counts: Counts,
    contributions: Option<Contributions>,
    bootstrap: Option<BootstrapParams>,
    threshold: Option<f32>,
}

impl MetricReport {
    pub(super) fn new(
        values: Vec<MetricValue>,
        counts: Counts,
        contributions: Option<Contributions>,
        threshold: Option<f32>,
    ) -> Self {
        Self { values, counts, contributions, bootstrap: None, threshold }
    }

    /// The threshold of the metrics at a threshold, where there are some.
    pub fn threshold(&self) -> Option<f32> {
        self.threshold
    }

    /// Every metric, in the order of the JSON.
    pub fn values(&self) -> &[MetricValue] {
        &self.values
    }

    /// One metric, when it was computed.
    pub fn value(&self, metric: Metric) -> Option<f64> {
        self.values.iter().find(|v| v.metric == metric).map(|v| v.value)
    }

    /// What each instance adds to a metric: numbers whose mean is the metric's value. Those of two
    /// reports on the same truth can be compared instance by instance. Nothing for means over labels
    /// (coverage, macro F1), for a metric that was not computed, and without kept rows.
    pub fn by_instance(&self, metric: Metric) -> Option<Vec<f64>> {
        let table = self.contributions.as_ref()?;
        let at = self.values.iter().position(|v| v.metric == metric)?;
        let Source::Instances { numerator, denominator } = table.sources[at] else { return None };
        let rows = || table.instances.chunks_exact(table.instance_width);
        let whole: f64 = rows().map(|row| row[denominator]).sum();
        let n = rows().len() as f64;
        Some(rows().map(|row| n * ratio(row[numerator], whole)).collect())
    }

    /// How many of what was found.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// What the intervals were made with, once they were.
    pub fn bootstrap(&self) -> Option<&BootstrapParams> {
        self.bootstrap.as_ref()
    }

    /// Computes an interval for every metric.
    ///
    /// Means and ratios over instances (P, nDCG, PSP, PSnDCG, recall, MAP, MRR, micro F1) resample
    /// instances, weights and both sums of a ratio together. Means over labels (macro F1, coverage)
    /// resample the labels of the truth: a resample of instances loses a third of the rare labels,
    /// so its values would all lie below the estimate.
    ///
    /// *Errors*: bad parameters, or an evaluator that dropped the rows. *Determinism*: a function
    /// of the rows and the parameters. *Cost*: see [`BootstrapParams`]; 1000 resamples of 100 000
    /// instances take about 3e9 additions.
    pub fn add_intervals(&mut self, params: &BootstrapParams) -> Result<(), BootstrapError> {
        params.check()?;
        let table = self.contributions.as_ref().ok_or(BootstrapError::RowsDropped)?;
        for (value, mut resampled) in self.values.iter_mut().zip(resample(table, params)) {
            value.interval = Some(Interval::percentile(&mut resampled, params.level));
        }
        self.bootstrap = Some(*params);
        Ok(())
    }

    /// The paired bootstrap: `self` minus `other` on the same truth, each resample drawn once for
    /// both.
    ///
    /// # Errors
    /// As [`Self::add_intervals`]; and reports about another truth (instances, labels or weights),
    /// or with other metrics.
    pub fn compare(&self, other: &MetricReport, params: &BootstrapParams) -> Result<Comparison, BootstrapError> {
        params.check()?;
        let (Some(mine), Some(theirs)) = (&self.contributions, &other.contributions) else {
            return Err(BootstrapError::RowsDropped);
        };
        if mine.truth_digest != theirs.truth_digest || self.counts.instances != other.counts.instances {
            return Err(BootstrapError::OtherTruth { left: self.counts.instances, right: other.counts.instances });
        }
        if !self.values.iter().map(|v| v.metric).eq(other.values.iter().map(|v| v.metric)) {
            return Err(BootstrapError::OtherMetrics);
        }
        let resampled = resample(mine, params).into_iter().zip(resample(theirs, params));
        let differences = (self.values.iter().zip(&other.values).zip(resampled))
            .map(|((a, b), (left, right))| {
                let mut gaps: Vec<f64> = left.iter().zip(&right).map(|(l, r)| l - r).collect();
                Difference {
                    metric: a.metric,
                    value: a.value,
                    other: b.value,
                    difference: a.value - b.value,
                    interval: Interval::percentile(&mut gaps, params.level),
                }
            })
            .collect();
        Ok(Comparison { instances: self.counts.instances, differences, bootstrap: *params })
    }
}

/// One metric of two reports.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// The metric.
    pub metric: Metric,
    /// Value of the report that was asked.
    pub value: f64,
    /// Value of the other.
    pub other: f64,
    /// `value - other`.
    pub difference: f64,
    /// Where the difference lies; when 0 is inside, the resamples do not tell the two apart.
    pub interval: Interval,
}

/// The paired comparison of two reports.
///
/// As JSON: `{"instances", "level", "resamples", "seed", "P@1": {"value", "other", "difference",
/// "interval": [low, high]}, ...}`.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    instances: u64,
    differences: Vec<Difference>,
    bootstrap: BootstrapParams,
}

impl Comparison {
    /// Every metric, in the order of the reports.
    pub fn differences(&self) -> &[Difference] {
        &self.differences
    }

    /// One metric, when it was computed.
    pub fn difference(&self, metric: Metric) -> Option<&Difference> {
        self.differences.iter().find(|d| d.metric == metric)
    }

    /// Instances of both reports.
    pub fn instances(&self) -> u64 {
        self.instances
    }

    /// How the differences were resampled.
    pub fn bootstrap(&self) -> &BootstrapParams {
        &self.bootstrap
    }
}

fn bootstrap_entries<M: SerializeMap>(map: &mut M, params: &BootstrapParams) -> Result<(), M::Error> {
    map.serialize_entry("level", &params.level)?;
    map.serialize_entry("resamples", &params.resamples)?;
    map.serialize_entry("seed", &params.seed)
}

struct Intervals<'a>(&'a [MetricValue], &'a BootstrapParams);

impl Serialize for Intervals<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        bootstrap_entries(&mut map, self.1)?;
        for value in self.0 {
            if let Some(Interval { low, high }) = value.interval {
                map.serialize_entry(&value.metric.to_string(), &[low, high])?;
            }
        }
        map.end()
    }
}

impl Serialize for MetricReport {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("instances", &self.counts.instances)?;
        if let Some(threshold) = self.threshold {
            map.serialize_entry("threshold", &threshold)?;
        }
        for value in &self.values {
            map.serialize_entry(&value.metric.to_string(), &value.value)?;
        }
        map.serialize_entry("counts", &self.counts)?;
        if let Some(params) = &self.bootstrap {
            map.serialize_entry("intervals", &Intervals(&self.values, params))?;
        }
        map.end()
    }
}

impl Serialize for Difference {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(4))?;
        map.serialize_entry("value", &self.value)?;
        map.serialize_entry("other", &self.other)?;
        map.serialize_entry("difference", &self.difference)?;
        map.serialize_entry("interval", &[self.interval.low, self.interval.high])?;
        map.end()
    }
}

impl Serialize for Comparison {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("instances", &self.instances)?;
        bootstrap_entries(&mut map, &self.bootstrap)?;
        for difference in &self.differences {
            map.serialize_entry(&difference.metric.to_string(), difference)?;
        }
        map.end()
    }
}
