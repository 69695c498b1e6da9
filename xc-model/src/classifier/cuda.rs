//! Classifiers whose networks are computed on a CUDA device.

use super::error::PredictError;
use super::place::{ChooseScratch, EncoderScratch, NetworkScratch, Place};
use super::predict::{BATCH, ClassifierScratch, LOGITS, Only};
use super::{Classifier, Input, Output};
use std::sync::Arc;
use thiserror::Error;
use xc_nn::cuda::xc_kernels::{self, Device, Plan};
use xc_nn::cuda::{DeviceEncoder, DeviceHead, DeviceNetwork, EncoderOnDevice, HeadOnDevice, Kernels};
use xc_nn::head::Ranked;
use xc_nn::{Activations, Batch, Rows};
use xc_sparse::rank::{LabelId, RankedBatch};

/// Why a classifier on a device has no answer.
#[derive(Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum DevicePredictError {
    /// As on the CPU.
    #[error(transparent)]
    Predict(#[from] PredictError),
    /// The device fails.
    #[error(transparent)]
    Device(#[from] xc_kernels::Error),
}

/// A classifier whose network is computed on a device. A wide term, an index and the scores of ranked labels stay on the
/// CPU.
#[derive(Debug)]
pub struct DeviceClassifier {
    classifier: Classifier,
    network: DeviceNetwork,
}

impl Classifier {
    /// Copies the network to a device; answers are those of [`Classifier::predict`], to the byte.
    ///
    /// # Errors
    /// The device has too little memory, or fails.
    pub fn on(&self, device: &Arc<Device>) -> Result<DeviceClassifier, xc_kernels::Error> {
        self.device_plan().fits_on(device)?;
        Ok(DeviceClassifier { classifier: self.clone(), network: self.network.on(device)? })
    }

    /// Memory that it takes on a device, a batch of queries with it.
    pub fn device_plan(&self) -> Plan {
        self.network.plan(Plan::new()).of::<f32>("logits of a batch", self.batch_on_device() * self.n_labels())
    }

    /// Queries that go through the network together.
    fn batch_on_device(&self) -> usize {
        (LOGITS / self.n_labels().max(1)).clamp(1, BATCH)
    }
}

impl DeviceClassifier {
    /// The classifier.
    pub fn classifier(&self) -> &Classifier {
        &self.classifier
    }

    /// As [`Classifier::predict`].
    ///
    /// *Cost*: with a loss that looks at all labels (softmax), and with candidates of a dense layer, all logits come to
    /// the CPU.
    ///
    /// # Errors
    /// See [`DevicePredictError`].
    pub fn predict(
        &self,
        queries: Rows<'_>,
        k: usize,
        only: Only<'_>,
        scratch: &mut ClassifierScratch,
    ) -> Result<RankedBatch, DevicePredictError> {
        let of = &self.classifier;
        of.check_width(queries.kind(), queries.width())?;
        of.check_candidates(queries.len(), only)?;
        of.predict_at(&self.network, queries, 0..queries.len(), of.batch_on_device(), k, only, scratch)
    }
}

impl Place for DeviceNetwork {
    type Error = DevicePredictError;

    fn vectors(&self, batch: &Batch, out: &mut Activations, _: &mut EncoderScratch) -> Result<(), DevicePredictError> {
        Ok(DeviceNetwork::vectors(self, batch, out)?)
    }

    fn logits(&self, batch: &Batch, out: &mut Activations, _: &mut NetworkScratch) -> Result<(), DevicePredictError> {
        Ok(DeviceNetwork::logits(self, batch, out)?)
    }

    fn rank(
        &self,
        batch: &Batch,
        k: usize,
        _: &mut NetworkScratch,
        out: &mut Ranked,
    ) -> Result<(), DevicePredictError> {
        Ok(DeviceNetwork::rank(self, batch, k, out)?)
    }

    fn choose<'l>(
        &self,
        batch: &Batch,
        labels: impl Fn(usize) -> &'l [LabelId] + Sync,
        k: usize,
        _: ChooseScratch<'_>,
        out: &mut RankedBatch,
    ) -> Result<(), DevicePredictError> {
        Ok(self.rank_some(batch, labels, k, out)?)
    }
}

impl EncoderOnDevice for Input {
    fn plan(&self, plan: Plan) -> Plan {
        match self {
            Self::Bag(bag) => bag.plan(plan),
            Self::Vectors(vectors) => vectors.plan(plan),
            Self::Tokens(_) => plan,
        }
    }

    fn on(&self, kernels: &Kernels) -> Result<DeviceEncoder, xc_kernels::Error> {
        match self {
            Self::Bag(bag) => bag.on(kernels),
            Self::Vectors(vectors) => vectors.on(kernels),
            Self::Tokens(_) => Err(xc_kernels::Error::NoKernel { name: "transformer".to_owned() }),
        }
    }
}

impl HeadOnDevice for Output {
    fn plan(&self, plan: Plan) -> Plan {
        match self {
            Self::Sparse(head) => head.plan(plan),
            Self::Dense(head) => head.plan(plan),
            Self::Candidates(head) => head.plan(plan),
        }
    }

    fn on(&self, kernels: &Kernels) -> Result<DeviceHead, xc_kernels::Error> {
        match self {
            Self::Sparse(head) => head.on(kernels),
            Self::Dense(head) => head.on(kernels),
            Self::Candidates(head) => head.on(kernels),
        }
    }
}
