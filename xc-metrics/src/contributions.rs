//! What evaluations add up.

use super::instance::Source;

/// What each instance and each label added, kept for resampling.
#[derive(Clone, Debug)]
pub(super) struct Contributions {
    pub(super) sources: Vec<Source>, // in the order of the report's metrics
    pub(super) instances: Vec<f64>,
    pub(super) instance_width: usize,
    pub(super) labels: Vec<f64>,
    pub(super) label_width: usize,
    pub(super) truth_digest: u64,
}

/// `numerator / denominator`, 0 for an empty sum.
pub(super) fn ratio(numerator: f64, denominator: f64) -> f64 {
    if denominator > 0.0 { numerator / denominator } else { 0.0 }
}
