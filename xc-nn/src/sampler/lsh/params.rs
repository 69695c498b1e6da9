//! Parameters of tables of labels.

use crate::sampler::{Lists, NegativeParams, SamplerParamsError, Weighting};
use serde::{Deserialize, Serialize};
use xc_lsh::upkeep::RebuildSchedule;
use xc_lsh::{FamilyKind, FamilyParams, TableSizing, TableSizingError};

/// Parameters of tables of labels, of their queries, and of how they follow the weights.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LshParams {
    /// The family: SimHash, or WTA.
    pub kind: FamilyKind,
    /// Number of tables, L; the maximum if K is chosen by the sizing rule.
    pub n_tables: u32,
    /// Codes of a key, K. `None`: K and the number of tables are chosen so that unrelated labels
    /// alone give about C candidates without a limit (see [`TableSizing`]).
    pub n_codes: Option<u32>,
    /// Keys per table that a query looks up: its own, and near misses.
    pub probes: u32,
    /// Maximum number of candidates of an instance, C.
    pub candidates: usize,
    /// Maximum number of labels of a bucket.
    pub per_bucket: usize,
    /// Rehash policy.
    pub schedule: RebuildSchedule,
}

impl Default for LshParams {
    /// 50 tables of WTA, 10 candidates, for lists of a batch; rehashing by drift, at most 512 labels per step.
    fn default() -> Self {
        Self {
            kind: FamilyKind::Wta { bin: 8 },
            n_tables: 50,
            n_codes: None,
            probes: 1,
            candidates: NegativeParams::usual_chosen(Lists::Shared),
            per_bucket: 128,
            schedule: RebuildSchedule::Drift { share: 0.05, per_step: 512, sort_every: 20 },
        }
    }
}

impl LshParams {
    /// Codes, bits and memory of the tables of `n_labels` labels, for vectors of `width` values.
    ///
    /// # Errors
    /// See [`TableSizingError`].
    pub fn sizing(&self, n_labels: u64, width: usize) -> Result<TableSizing, TableSizingError> {
        // The bias is an additional coordinate.
        let width = width + 1;
        match self.n_codes {
            Some(n_codes) => TableSizing::with_codes(n_labels, self.n_tables, n_codes, self.kind, width),
            None => TableSizing::try_new(n_labels, self.n_tables, self.candidates as f64, self.kind, width),
        }
    }

    /// Bytes of tables, keys and upkeep for `n_labels` labels, including the keys that are sorted
    /// into the tables when these are built.
    ///
    /// # Errors
    /// As [`LshParams::sizing`].
    pub fn bytes(&self, n_labels: u64, width: usize) -> Result<u64, TableSizingError> {
        let sizing = self.sizing(n_labels, width)?;
        // How far each label moved, and whether it is queued.
        let upkeep = n_labels.saturating_mul(5);
        Ok(sizing.memory_bytes().saturating_add(sizing.keys_bytes()).saturating_add(upkeep))
    }

    /// The hash functions, for vectors of `width` values.
    pub(super) fn family(&self, n_labels: usize, width: usize, seed: u64) -> Result<FamilyParams, SamplerParamsError> {
        let params = self.sizing(n_labels as u64, width)?.params(seed);
        params.check()?;
        Ok(params)
    }

    /// Weights by probability need a family whose probabilities are known. Those of winner-take-all
    /// depend on the order of coordinates, and after a ReLU, rows and vectors share more of it than
    /// their correlation implies.
    pub(in crate::sampler) fn check_weighting(&self, weighting: Weighting) -> Result<(), SamplerParamsError> {
        match self.kind {
            FamilyKind::SimHash { .. } => Ok(()),
            _ if !weighting.uses_chances() => Ok(()),
            kind => Err(SamplerParamsError::Chances { got: kind.name() }),
        }
    }

    /// Checks for numbers that are invalid for any data.
    pub(in crate::sampler) fn check(&self) -> Result<(), SamplerParamsError> {
        let number = |name, got, expected| Err(SamplerParamsError::Number { name, got, expected });
        if !matches!(self.kind, FamilyKind::SimHash { .. } | FamilyKind::Wta { .. }) {
            return Err(SamplerParamsError::Kind { got: self.kind.name() });
        }
        if self.probes == 0 {
            return number("probes", 0.0, "at least 1");
        }
        if self.candidates == 0 || self.per_bucket == 0 {
            return number(if self.candidates == 0 { "candidates" } else { "per_bucket" }, 0.0, "at least 1");
        }
        if let Some(n_codes) = self.n_codes
            && u64::from(self.probes) > 1u64 << n_codes.min(63)
        {
            return number("probes", f64::from(self.probes), "at most 2 to the number of codes");
        }
        match self.schedule {
            RebuildSchedule::Rebuild { every: 0, .. } => number("every", 0.0, "at least 1"),
            RebuildSchedule::Rebuild { growth, .. } if !(growth >= 1.0 && growth.is_finite()) => {
                number("growth", growth, "at least 1")
            }
            RebuildSchedule::Drift { share, .. } if !(share >= 0.0 && share.is_finite()) => {
                number("share", f64::from(share), "a finite number from 0 on")
            }
            RebuildSchedule::Drift { per_step: 0, .. } => number("per_step", 0.0, "at least 1"),
            _ => Ok(()),
        }
    }
}
