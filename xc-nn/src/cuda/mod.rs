//! Networks that answer on a CUDA device, with the bits that they answer with on the CPU.
//!
//! ```text
//!   batch ─▶ sums of embeddings, or vectors ─▶ dense layers ─▶ logits ─▶ the best labels, or all logits
//!   host     DeviceEncoder ..................................  DeviceHead .................   host
//! ```
//!
//! The arrays are copied to the device once. Rows of labels in bf16 take four bytes a value there; connections of a
//! sparse layer are as they are stored.

#![allow(unsafe_code, reason = "launches of kernels, whose text the compiler does not see")]

mod encoder;
mod head;
mod kernels;

pub use encoder::{DeviceEncoder, EncoderOnDevice};
pub use head::{DeviceHead, HeadOnDevice};
pub use kernels::Kernels;
pub use xc_kernels;

use crate::head::Ranked;
use crate::{Activations, Batch, Encoder, Head, Loss, Network};
use kernels::XcScores;
use std::sync::Arc;
use xc_kernels::cudarc::driver::CudaSlice;
use xc_kernels::{Device, Error, Plan, Shape, address};
use xc_sparse::rank::{LabelId, RankedBatch};

/// A network on a device.
#[derive(Debug)]
pub struct DeviceNetwork {
    kernels: Arc<Kernels>,
    encoder: DeviceEncoder,
    head: DeviceHead,
}

/// Rows of numbers on a device.
#[derive(Debug)]
pub struct DeviceRows {
    values: CudaSlice<f32>,
    n: usize,
    width: usize,
}

impl DeviceRows {
    /// Values, row after row; behind them there may be room.
    pub fn values(&self) -> &CudaSlice<f32> {
        &self.values
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.n
    }

    /// True when there is no row.
    pub fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// Values of a row.
    pub fn width(&self) -> usize {
        self.width
    }

    fn download(&self, device: &Device, out: &mut Activations) -> Result<(), Error> {
        out.reshape(self.n, self.width);
        let n = out.values().len();
        out.values_mut().copy_from_slice(&device.download(&self.values)?[..n]);
        Ok(())
    }
}

impl<E: Encoder + EncoderOnDevice, H: Head<Input = E::Output> + HeadOnDevice> Network<E, H> {
    /// Adds the memory that the network takes on a device, batches apart.
    pub fn plan(&self, plan: Plan) -> Plan {
        self.head().plan(self.encoder().plan(plan))
    }

    /// Copies the network to a device, where it answers.
    ///
    /// # Errors
    /// The device has too little memory, or fails.
    pub fn on(&self, device: &Arc<Device>) -> Result<DeviceNetwork, Error> {
        self.plan(Plan::new()).fits_on(device)?;
        self.with(&Arc::new(Kernels::load(device)?))
    }

    /// The same with kernels that are loaded already, for the networks of one device.
    ///
    /// # Errors
    /// As [`Network::on`].
    pub fn with(&self, kernels: &Arc<Kernels>) -> Result<DeviceNetwork, Error> {
        let (encoder, head) = (self.encoder().on(kernels)?, self.head().on(kernels)?);
        Ok(DeviceNetwork { kernels: kernels.clone(), encoder, head })
    }
}

impl DeviceNetwork {
    /// The device.
    pub fn device(&self) -> &Arc<Device> {
        &self.kernels.device
    }

    /// The vectors below the output layer, as [`Encoder::forward`] computes them for answers.
    ///
    /// # Errors
    /// The device fails.
    ///
    /// # Panics
    /// If the rows are of another kind than the network's, or of another width.
    pub fn vectors(&self, batch: &Batch, out: &mut Activations) -> Result<(), Error> {
        self.encoder.forward(&self.kernels, batch)?.download(self.device(), out)
    }

    /// [`Network::logits`].
    ///
    /// # Errors
    /// The device fails.
    ///
    /// # Panics
    /// As [`DeviceNetwork::vectors`].
    pub fn logits(&self, batch: &Batch, out: &mut Activations) -> Result<(), Error> {
        self.logits_on_device(batch)?.download(self.device(), out)
    }

    /// [`Network::rank`] without losses.
    ///
    /// # Errors
    /// The device fails.
    ///
    /// # Panics
    /// As [`DeviceNetwork::vectors`].
    pub fn rank(&self, batch: &Batch, k: usize, out: &mut Ranked) -> Result<(), Error> {
        out.best.clear();
        out.losses.clear();
        let vectors = self.encoder.forward(&self.kernels, batch)?;
        self.head.rank(&self.kernels, &vectors, k, &mut out.best)
    }

    /// The best labels of each instance among its candidates, a label once each: those of
    /// [`Sparse::rank_some`](crate::head::Sparse::rank_some).
    ///
    /// # Errors
    /// The device fails.
    ///
    /// # Panics
    /// As [`DeviceNetwork::vectors`]; if a candidate is no label, or the output layer is not sparse.
    pub fn rank_some<'l>(
        &self,
        batch: &Batch,
        candidates: impl Fn(usize) -> &'l [LabelId],
        k: usize,
        out: &mut RankedBatch,
    ) -> Result<(), Error> {
        out.clear();
        let vectors = self.encoder.forward(&self.kernels, batch)?;
        let lists: Vec<&[LabelId]> = (0..batch.len()).map(candidates).collect();
        self.head.rank_some(&self.kernels, &vectors, &lists, k, out)
    }

    /// Scores that a loss makes of the logits, on the device: those of instance i begin at `first + i * stride`.
    ///
    /// # Errors
    /// The device fails.
    ///
    /// # Panics
    /// As [`DeviceNetwork::vectors`]; if there is too little room, or the loss is not one that has a name.
    pub fn scores(
        &self,
        batch: &Batch,
        loss: Loss,
        out: &mut CudaSlice<f32>,
        first: usize,
        stride: usize,
    ) -> Result<(), Error> {
        let logits = self.logits_on_device(batch)?;
        let (n, width) = (logits.len(), logits.width());
        assert!(n == 0 || first + (n - 1) * stride + width <= out.len(), "room for {} scores", out.len());
        let loss =
            Loss::ALL.iter().position(|&of| of == loss).unwrap_or_else(|| panic!("scores of {loss} on a device"));
        let args = XcScores {
            logits: address(&logits.values),
            scores: address(out) + 4 * first as u64,
            stride: stride as u64,
            width: width as u32,
            loss: loss as u32,
        };
        let call = self.kernels.scores.call(self.device().stream()).arg(&args);
        // SAFETY: the struct is the kernel's, whose layout was compared; there is room for rows as long as the logits.
        unsafe { call.launch(Shape { grid: [n, 1, 1], threads: 256, shared: 0 }) }
    }

    fn logits_on_device(&self, batch: &Batch) -> Result<DeviceRows, Error> {
        let vectors = self.encoder.forward(&self.kernels, batch)?;
        self.head.logits(&self.kernels, &vectors)
    }
}
