//! MACH models whose networks and scans run on a CUDA device.

use super::MachModel;
use super::predict::{AnswerError, Asking, MachAnswers, Visit};
use std::sync::Arc;
use thiserror::Error;
use xc_mach::{Certificate, Decoder, DeviceAssignment, DeviceScanError, Effort};
use xc_nn::cuda::xc_kernels::{self, Device};
use xc_nn::cuda::{DeviceNetwork, Kernels};
use xc_nn::{Batch, Rows};
use xc_sparse::rank::{LabelId, RankedBatch};

/// Why a model on a device has no answer.
#[derive(Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum DeviceAnswerError {
    /// As on the CPU.
    #[error(transparent)]
    Answer(#[from] AnswerError),
    /// The device refuses or fails.
    #[error(transparent)]
    Scan(DeviceScanError),
}

impl From<DeviceScanError> for DeviceAnswerError {
    fn from(error: DeviceScanError) -> Self {
        match error {
            DeviceScanError::Scores { query, source } => Self::Answer(AnswerError::Scores { query, source }),
            other => Self::Scan(other),
        }
    }
}

impl From<xc_kernels::Error> for DeviceAnswerError {
    fn from(error: xc_kernels::Error) -> Self {
        Self::Scan(error.into())
    }
}

/// A model whose networks are computed on a device, which also scans the labels.
#[derive(Debug)]
pub struct DeviceMachModel {
    model: MachModel,
    networks: Vec<DeviceNetwork>,
    buckets: DeviceAssignment,
}

impl MachModel {
    /// Copies the networks to a device; answers have the labels and scores of the CPU's, to the byte.
    ///
    /// # Errors
    /// As [`xc_mach::Assignment::on`]; the device has too little memory.
    pub fn on(&self, device: &Arc<Device>) -> Result<DeviceMachModel, DeviceScanError> {
        let buckets = self.assignment.on(device)?;
        let plan = buckets.plan().of::<f32>("bucket scores", self.batch_size() * self.query_len());
        self.classifiers.iter().fold(plan, |plan, of| of.network().plan(plan)).fits_on(device)?;
        let kernels = Arc::new(Kernels::load(device)?);
        let networks = self.classifiers.iter().map(|of| of.network().with(&kernels)).collect::<Result<_, _>>()?;
        Ok(DeviceMachModel { model: self.clone(), networks, buckets })
    }
}

impl DeviceMachModel {
    /// The model.
    pub fn model(&self) -> &MachModel {
        &self.model
    }

    /// As [`MachModel::predict_batch`]. A search that is to end early ([`Effort::Labels`]) is the CPU's.
    ///
    /// # Errors
    /// See [`DeviceAnswerError`].
    ///
    /// # Panics
    /// If queries have another number of features.
    pub fn predict_batch(&self, queries: Rows<'_>, asking: &Asking) -> Result<MachAnswers, DeviceAnswerError> {
        if asking.effort != Effort::Exact {
            return Ok(self.model.predict_batch(queries, asking)?);
        }
        let (decoder, labels_touched) = (self.model.decoder(asking), self.model.n_labels() as u64);
        let of_scan =
            Certificate { exact: true, bound: f32::NEG_INFINITY, labels_touched, buckets_walked: 0, scanned: true };
        let mut answers = MachAnswers::default();
        self.blocks(queries, |first, n, scores| {
            let ranked = self.buckets.scan(scores, n, decoder, asking.top_k).map_err(|e| in_batch(first, e))?;
            answers.ranked.append(&ranked);
            answers.certificates.resize(answers.certificates.len() + n, of_scan);
            Ok(())
        })?;
        Ok(answers)
    }

    /// As [`MachModel::predict_candidates`]; the candidates are scored on the CPU.
    ///
    /// # Errors
    /// See [`DeviceAnswerError`].
    ///
    /// # Panics
    /// If queries have another number of features, or a candidate is not below `n_labels()`.
    pub fn predict_candidates<'c>(
        &self,
        queries: Rows<'_>,
        candidates: impl Fn(usize) -> &'c [LabelId] + Sync,
        top_k: usize,
        decoder: Decoder,
    ) -> Result<RankedBatch, DeviceAnswerError> {
        let query_len = self.model.query_len();
        let blocks = |visit: &mut Visit<'_, DeviceAnswerError>| {
            self.blocks(queries, |first, n, scores| visit(first, &self.device().download(scores)?[..n * query_len]))
        };
        self.model.candidates_in(blocks, candidates, top_k, decoder)
    }

    fn device(&self) -> &Arc<Device> {
        self.networks[0].device()
    }

    /// Hands bucket scores on the device to `visit`, some queries at a time: the number of the first query, that of the
    /// queries, and for each of them R rows of B scores.
    fn blocks(
        &self,
        queries: Rows<'_>,
        mut visit: impl FnMut(usize, usize, &xc_kernels::cudarc::driver::CudaSlice<f32>) -> Result<(), DeviceAnswerError>,
    ) -> Result<(), DeviceAnswerError> {
        let (query_len, n_buckets) = (self.model.query_len(), self.model.assignment.n_buckets());
        let size = self.model.batch_size();
        let mut scores = self.device().zeros::<f32>(size.min(queries.len()) * query_len)?;
        let mut batch = Batch::default();
        for first in (0..queries.len()).step_by(size) {
            batch.fill_features(queries, first..queries.len().min(first + size));
            for (position, network) in self.networks.iter().enumerate() {
                let loss = self.model.params.classifier.loss;
                network.scores(&batch, loss, &mut scores, position * n_buckets, query_len)?;
            }
            visit(first, batch.len(), &scores)?;
        }
        Ok(())
    }
}

/// Numbers a query of a batch that begins with the query `first`.
fn in_batch(first: usize, error: DeviceScanError) -> DeviceAnswerError {
    match error {
        DeviceScanError::Scores { query, source } => AnswerError::Scores { query: first + query, source }.into(),
        other => other.into(),
    }
}
