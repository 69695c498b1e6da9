//! The scan on a CUDA device, with the bits of the one on the CPU.
//!
//! ```text
//!   scores of up to 32 queries ─▶ a range of labels ─▶ screen ─▶ statistics of what passed ─▶ the k best so far ─▶ bars
//!                                                        ▲                                                          │
//!                                  a range of 32 times as many labels ◀──────────────────────────────────────────────┘
//! ```

#![allow(unsafe_code, reason = "launches of kernels, whose text the compiler does not see")]

mod scan;

use crate::assign::Assignment;
use crate::decode::{BucketScoresError, Decoder, median_network};
use scan::{Batch, XcMachLabels, XcMachLines, XcMachPassed, XcMachRescore};
use std::ops::Range;
use std::sync::Arc;
use thiserror::Error;
use xc_hash::universal::{UniversalFamily, UniversalHash};
use xc_kernels::cudarc::driver::CudaSlice;
use xc_kernels::layout::{self, Argument};
use xc_kernels::{Device, Kernel, Plan, address};
use xc_sparse::rank::{LabelId, RankedBatch};

/// Queries that are scanned together.
const QUERIES: usize = 32;
/// Sums of bounds and counts of marks have room for so many repetitions.
const MOST_REPETITIONS: usize = 64;
/// Labels of a query that may pass a screen, by default.
const ROOM: usize = 1 << 16;

/// Why a device gives no answer.
#[derive(Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum DeviceScanError {
    /// The family's functions are computed on the CPU alone.
    #[error("hash functions of family {family} are not computed on a device, expected prime or multiply-shift")]
    Family {
        /// The family.
        family: UniversalFamily,
    },
    /// Too many repetitions.
    #[error("{got} repetitions, expected at most {MOST_REPETITIONS} on a device")]
    Repetitions {
        /// How many there are.
        got: usize,
    },
    /// A query's scores are not finite.
    #[error("query {query}")]
    Scores {
        /// Number of the query, from 0.
        query: usize,
        /// The score.
        source: BucketScoresError,
    },
    /// The device refuses or fails.
    #[error(transparent)]
    Device(#[from] xc_kernels::Error),
}

/// An [`Assignment`] that is scanned on a device.
#[derive(Debug)]
pub struct DeviceAssignment {
    assignment: Assignment,
    device: Arc<Device>,
    kernels: Kernels,
    labels: XcMachLabels,
    /// Factor and offset of each repetition's function.
    _hashes: CudaSlice<u64>,
    /// Comparators of the median: two places of 16 bits each.
    network: CudaSlice<u32>,
    n_comparators: usize,
    room: usize,
}

#[derive(Debug)]
struct Kernels {
    lines: Kernel,
    bounds: Kernel,
    marks: Kernel,
    mean: Kernel,
    min: Kernel,
    median: Kernel,
    rescore: Kernel,
}

impl Assignment {
    /// The same labels and buckets, to be scanned on a device.
    ///
    /// # Errors
    /// Another family than prime and multiply-shift, more than 64 repetitions, a device that fails.
    pub fn on(&self, device: &Arc<Device>) -> Result<DeviceAssignment, DeviceScanError> {
        let n_repetitions = self.n_repetitions();
        if n_repetitions > MOST_REPETITIONS {
            return Err(DeviceScanError::Repetitions { got: n_repetitions });
        }
        let (mut hashes, mut prime) = (Vec::with_capacity(2 * n_repetitions), 0);
        for position in 0..n_repetitions {
            match self.hash(position) {
                UniversalHash::Prime(hash) => {
                    prime = hash.prime();
                    hashes.extend([hash.factor(), hash.offset()]);
                }
                UniversalHash::MultiplyShift(hash) => hashes.extend([hash.factor(), hash.offset()]),
                _ => return Err(DeviceScanError::Family { family: self.params().family }),
            }
        }
        let layouts = [XcMachLabels::LAYOUT, XcMachPassed::LAYOUT, XcMachLines::LAYOUT, XcMachRescore::LAYOUT];
        layout::check(device, "xc_layout_mach", &layouts)?;
        let (hashes, n_buckets) = (device.upload(&hashes)?, self.params().n_buckets);
        let labels = XcMachLabels {
            hashes: address(&hashes),
            by_prime: u64::MAX.checked_div(prime).unwrap_or(0),
            prime: prime as u32,
            n_buckets,
            by_buckets: u32::MAX / n_buckets,
            n_repetitions: n_repetitions as u32,
            first: 0,
            n: 0,
        };
        let network: Vec<u32> = median_network(n_repetitions).iter().map(|&(a, b)| (a | b << 16) as u32).collect();
        Ok(DeviceAssignment {
            assignment: self.clone(),
            device: device.clone(),
            kernels: Kernels::load(device, if prime == 0 { "shift" } else { "prime" })?,
            labels,
            _hashes: hashes,
            network: device.upload(&network)?,
            n_comparators: network.len(),
            room: ROOM,
        })
    }
}

impl Kernels {
    fn load(device: &Device, family: &str) -> Result<Self, xc_kernels::Error> {
        let screen = |decoder: Decoder| device.kernel(&format!("xc_mach_{decoder}_{family}"));
        Ok(Self {
            lines: device.kernel("xc_mach_lines")?,
            bounds: device.kernel("xc_mach_bounds")?,
            marks: device.kernel("xc_mach_marks")?,
            mean: screen(Decoder::Mean)?,
            min: screen(Decoder::Min)?,
            median: screen(Decoder::Median)?,
            rescore: device.kernel("xc_mach_rescore")?,
        })
    }
}

impl DeviceAssignment {
    /// Gives each query room for so many labels that pass a screen, at least one; 65,536 by default. Where more pass,
    /// ranges of labels become smaller and more.
    #[must_use]
    pub fn with_room(mut self, labels: usize) -> Self {
        self.room = labels.clamp(1, ROOM);
        self
    }

    /// The assignment.
    pub fn assignment(&self) -> &Assignment {
        &self.assignment
    }

    /// Memory that a scan takes on the device, besides the scores.
    pub fn plan(&self) -> Plan {
        let values = self.n_scores() * QUERIES;
        let plan = Plan::new().of::<f32>("lines of bucket scores", values).of::<u8>("bounds of bucket scores", values);
        plan.of::<[u32; 3]>("labels that pass a screen", self.room * QUERIES)
    }

    /// The `k` best labels of each query, as [`Assignment::scan`] gives them. The scores are on the device: for one
    /// query after the other R rows of B numbers.
    ///
    /// *Cost*: L R look-ups for 32 queries together, and what a query's best labels cost in each of a few ranges.
    ///
    /// # Errors
    /// Scores that are not finite, a device that fails.
    ///
    /// # Panics
    /// If there are too few scores.
    pub fn scan(
        &self,
        scores: &CudaSlice<f32>,
        n_queries: usize,
        decoder: Decoder,
        k: usize,
    ) -> Result<RankedBatch, DeviceScanError> {
        self.scan_range(scores, n_queries, decoder, 0..self.assignment.params().n_keys as u32, k)
    }

    /// The same among consecutive labels.
    ///
    /// # Errors
    /// As [`DeviceAssignment::scan`].
    ///
    /// # Panics
    /// If there are too few scores, or a label is not below `n_labels()`.
    pub fn scan_range(
        &self,
        scores: &CudaSlice<f32>,
        n_queries: usize,
        decoder: Decoder,
        labels: Range<LabelId>,
        k: usize,
    ) -> Result<RankedBatch, DeviceScanError> {
        let (expected, n_labels) = (n_queries * self.n_scores(), self.assignment.n_labels());
        assert!(scores.len() >= expected, "{} bucket scores, expected {expected}", scores.len());
        assert!(labels.end as usize <= n_labels, "labels {labels:?} of {n_labels}");
        let mut out = RankedBatch::new();
        for first in (0..n_queries).step_by(QUERIES) {
            let n = QUERIES.min(n_queries - first);
            Batch { of: self, scores, first, n, decoder }.scan(labels.clone(), k, &mut out)?;
        }
        Ok(out)
    }

    /// Bucket scores of a query.
    fn n_scores(&self) -> usize {
        self.assignment.n_repetitions() * self.assignment.n_buckets()
    }
}
