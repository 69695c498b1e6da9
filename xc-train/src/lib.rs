//! Metrics and training loops that every xc system shares.
//!
//! [`metrics`] judges ranked labels: P@k, nDCG@k, their propensity-scored forms, recall, MAP, MRR, coverage, F1,
//! with bootstrap intervals and paired comparisons.

pub mod metrics;
