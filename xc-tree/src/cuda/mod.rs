//! Trees on a CUDA device: a block of threads searches for one query, over the arrays of the model as they are in its
//! folder.
//!
//! ```text
//!   rows  ─▶ batches, the longest row first ─▶ pinned memory ─▶ device ─▶ keys of labels ─▶ scores, means of trees
//! ```

mod batch;
mod memory;

use crate::model::{ModelInfo, TreeModel};
use crate::predict::{PredictParams, QueryError, Sought, check_rows};
use batch::{Batch, BatchShape};
use memory::TreeMemory;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use xc_kernels::{Device, Error, Pipeline, Plan};
use xc_sparse::CsrView;
use xc_sparse::rank::RankedBatch;

/// Queries of a batch, at most: below some thousands the longest of them sets the time.
const MOST_ROWS: usize = 8192;

/// Bytes of a batch's answers, at most.
const MOST_BYTES: usize = 64 << 20;

/// Why trees on a device have no answers.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceQueryError {
    /// As on the CPU.
    #[error(transparent)]
    Query(#[from] QueryError),
    /// The device refuses or fails.
    #[error(transparent)]
    Device(#[from] Error),
}

/// The trees of a model on a CUDA device. Single queries and searches among given labels stay on the CPU.
///
/// Answers have the bytes of [`TreeModel::predict_batch`] with the hinge and without a post-processor, as long as margins
/// are finite. With the sigmoid a ranking score differs by at most 4 units in the last place a level, since the C library
/// of the CPU computes its exponentials, and labels whose scores are that close may change places.
pub struct DeviceTrees {
    device: Device,
    info: ModelInfo,
    trees: Vec<TreeMemory>,
    batches: Mutex<Batches>,
}

/// Batches under way: while the device works on one, the host fills the other.
struct Batches {
    pipeline: Pipeline,
    slots: [Batch; 2],
}

impl Drop for Batches {
    fn drop(&mut self) {
        // What a call that panicked left under way uses the memory that is freed next. A device that failed runs nothing.
        let _ = self.pipeline.wait();
    }
}

impl TreeModel {
    /// Copies the trees to a device.
    ///
    /// *Cost*: a copy of the model; the device compiles the kernels for up to a second, once.
    ///
    /// # Errors
    /// The device has too little memory, with the numbers, or fails.
    pub fn on(&self, device: &Device) -> Result<DeviceTrees, Error> {
        self.trees.iter().fold(Plan::new(), TreeMemory::plan).fits_on(device)?;
        let trees = self.trees.iter().map(|tree| TreeMemory::new(device, tree)).collect::<Result<_, _>>()?;
        let batches = Batches { pipeline: Pipeline::new(device)?, slots: Default::default() };
        // Batches go by other streams.
        device.wait()?;
        Ok(DeviceTrees { device: device.clone(), info: self.info.clone(), trees, batches: Mutex::new(batches) })
    }
}

impl DeviceTrees {
    /// The best labels of every query, in the order of the rows, as [`TreeModel::predict_batch`] gives them. The choice of
    /// an iterator in `params` does not matter here.
    ///
    /// One call works at a time; others wait.
    ///
    /// # Errors
    /// A matrix of another width than the model has features. The device has too little memory for the answers, or too little shared memory in a block for what is kept of a search:
    /// on an H100 a beam of some 7,000 or a `top_k` of some 14,000 is too much. The device fails.
    ///
    /// # Panics
    /// If a value is not finite.
    pub fn predict_batch(&self, queries: CsrView<'_>, params: &PredictParams) -> Result<RankedBatch, DeviceQueryError> {
        check_rows(queries, &self.info)?;
        let mut batches = self.batches.lock().unwrap_or_else(PoisonError::into_inner);
        let answers = self.answers(queries, &params.of(&self.info), &mut batches);
        if answers.is_err() {
            // Nothing may be under way on memory that is freed or filled next; the first error is the one to know.
            let _ = batches.pipeline.wait();
            batches.slots = Default::default();
        }
        Ok(answers?)
    }

    /// Compares the structs that kernels take with those of their text; for tests.
    ///
    /// # Errors
    /// One is laid out otherwise, or the device fails.
    #[cfg(feature = "emulated")]
    #[doc(hidden)]
    pub fn check_layouts(device: &Device) -> Result<(), Error> {
        use xc_kernels::layout::{Argument, check};
        let of_tree = [memory::LevelArgument::LAYOUT, memory::TreeArgument::LAYOUT];
        let of_batch = [batch::SearchArgument::LAYOUT, batch::QueriesArgument::LAYOUT];
        check(device, "xc_layout_tree", &[of_tree, of_batch].concat())
    }

    /// The device of the trees.
    pub fn device(&self) -> &Device {
        &self.device
    }

    fn answers(&self, queries: CsrView<'_>, sought: &Sought, batches: &mut Batches) -> Result<RankedBatch, Error> {
        let shape = BatchShape::new(&self.info, &self.trees, sought);
        let rows_a_batch = (MOST_BYTES / (8 * shape.stride * self.trees.len()).max(1)).clamp(1, MOST_ROWS);
        let mut out = RankedBatch::new();
        let Batches { pipeline, slots } = batches;
        // What a call before this one left that panicked.
        slots.iter_mut().try_for_each(Batch::abandon)?;
        let n = queries.rows();
        for (number, start) in (0..n).step_by(rows_a_batch).enumerate() {
            let slot = &mut slots[number % 2];
            slot.finish(&shape, &mut out)?;
            slot.fill(&self.device, &self.info, &shape, queries, start..(start + rows_a_batch).min(n))?;
            slot.start(&self.device, pipeline, &self.trees, &shape)?;
        }
        let last = n.div_ceil(rows_a_batch);
        for number in [last, last + 1] {
            slots[number % 2].finish(&shape, &mut out)?;
        }
        Ok(out)
    }
}

impl fmt::Debug for DeviceTrees {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let device = self.device.name();
        f.debug_struct("DeviceTrees").field("info", &self.info).field("device", &device).finish_non_exhaustive()
    }
}
