//! Models whose batches are answered on a CUDA device, with the bytes of the CPU's answers.
//!
//! ```text
//!   batch ─▶ features ─▶ trees, networks, scans ─▶ best labels ─▶ calibration, thresholds, exclusions
//!            host        device; else the CPU      host
//! ```

use super::kind::{Ask, System, scratch_of};
use super::query::{Answers, BatchError, QueryError};
use super::{InputKind, Model, QueryOptions, Rows};
use crate::classifier::{Classifier, DeviceClassifier, DevicePredictError};
use crate::kinds::blend::Blend;
use crate::kinds::{classifier, mach, tree};
use crate::mach::{DeviceAnswerError, DeviceMachModel, MachModel};
use std::any::Any;
use std::sync::{Arc, OnceLock};
use thiserror::Error;
use xc_kernels::{Device, Error as KernelError};
use xc_mach::DeviceScanError;
use xc_tree::{DeviceQueryError, DeviceTrees, TreeModel};

/// Why a model cannot be put on a device.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// There are no kernels for the kind.
    #[error("models of kind {kind:?} are answered by the CPU alone")]
    Kind {
        /// The kind.
        kind: &'static str,
    },
    /// What the device lacks, with the numbers where it is memory, or how it fails.
    #[error(transparent)]
    Device(#[from] KernelError),
    /// A MACH model whose labels are not scanned on a device.
    #[error(transparent)]
    Mach(#[from] DeviceScanError),
}

/// A model on a device.
pub(crate) struct OnDevice {
    arrays: Arrays,
    /// Why the first batch was not answered there that was left to the CPU.
    left: OnceLock<KernelError>,
}

/// Its arrays there.
#[expect(clippy::large_enum_variant, reason = "a model has one of them")]
enum Arrays {
    Trees(DeviceTrees),
    Network(DeviceClassifier),
    Mach(DeviceMachModel),
}

/// Why there is no answer of the device.
enum NoAnswer {
    /// There is none on the CPU, either.
    Query(BatchError),
    Device(KernelError),
}

impl From<KernelError> for NoAnswer {
    fn from(error: KernelError) -> Self {
        Self::Device(error)
    }
}

impl From<DeviceQueryError> for NoAnswer {
    fn from(error: DeviceQueryError) -> Self {
        match error {
            DeviceQueryError::Device(error) => Self::Device(error),
            // Rows of another width were refused.
            other => panic!("queries that were checked: {other}"),
        }
    }
}

impl From<DevicePredictError> for NoAnswer {
    fn from(error: DevicePredictError) -> Self {
        match error {
            DevicePredictError::Predict(error) => Self::Query(classifier::failed(error)),
            DevicePredictError::Device(error) => Self::Device(error),
        }
    }
}

impl From<DeviceAnswerError> for NoAnswer {
    fn from(error: DeviceAnswerError) -> Self {
        match error {
            DeviceAnswerError::Answer(error) => Self::Query(mach::failed(error)),
            DeviceAnswerError::Scan(DeviceScanError::Device(error)) => Self::Device(error),
            // What a scan refuses was refused when the model was put on the device.
            DeviceAnswerError::Scan(other) => panic!("a scan that was checked: {other}"),
        }
    }
}

impl Arrays {
    /// Copies a model of any kind but a blend.
    fn new(model: &Model, device: &Device) -> Result<Self, DeviceError> {
        let shared = Arc::new(device.clone());
        if let Some(trees) = model.as_standard::<TreeModel>() {
            return Ok(Self::Trees(trees.on(device)?));
        }
        if let Some(network) = model.as_standard::<Classifier>() {
            if network.params().encoder.input() == InputKind::Tokens {
                return Err(DeviceError::Kind { kind: "transformer" });
            }
            return Ok(Self::Network(network.on(&shared)?));
        }
        if let Some(model) = model.as_standard::<MachModel>() {
            return Ok(Self::Mach(model.on(&shared)?));
        }
        Err(DeviceError::Kind { kind: model.kind.name })
    }

    fn batch(&self, rows: Rows<'_>, ask: &Ask<'_>, scratch: &mut dyn Any) -> Result<Answers, NoAnswer> {
        match self {
            Self::Trees(trees) => {
                let rows = rows.sparse().map_err(|wrong| NoAnswer::Query(BatchError::first(wrong)))?;
                Ok(Answers::of(trees.predict_batch(rows, &tree::params(ask))?))
            }
            Self::Network(network) => {
                let only =
                    classifier::only(network.classifier(), ask).map_err(|e| NoAnswer::Query(BatchError::first(e)))?;
                Ok(Answers::of(network.predict(rows, ask.top_k, only, scratch_of(scratch))?))
            }
            Self::Mach(model) => {
                let asking = mach::asking(ask);
                if ask.candidates.is_all() {
                    let answers = model.predict_batch(rows, &asking)?;
                    return Ok(Answers { certificates: answers.certificates, ..Answers::of(answers.ranked) });
                }
                let candidates = |i: usize| ask.candidates.of(i).unwrap_or_default();
                let decoder = model.model().decoder(&asking);
                Ok(Answers::of(model.predict_candidates(rows, candidates, ask.top_k, decoder)?))
            }
        }
    }
}

/// The option because of which batches of a model of any kind but a blend are the CPU's to answer.
fn bound_to_cpu_by(model: &Model, options: &QueryOptions<'_>) -> Option<&'static str> {
    if !options.candidates.is_all() && model.as_standard::<TreeModel>().is_some() {
        return Some("candidates");
    }
    options.search.max_labels.map(|_| "max-labels")
}

impl Model {
    /// Copies the model to a device, which answers its batches from now on; single queries, and batches that the device
    /// has no kernels or no room for, are still the CPU's ([`Model::left_to_cpu`]). A blend is put there member by member.
    ///
    /// *Cost*: a copy of the arrays; the driver compiles kernels for up to a second, once.
    ///
    /// *Determinism*: the bytes of the CPU's answers. Trees whose post-processor is a sigmoid are the exception: ranking
    /// scores differ by at most 4 units in the last place a level.
    ///
    /// # Errors
    /// A kind without kernels, or a device that lacks memory or fails; the model is then on the CPU as before.
    pub fn put_on(&mut self, device: &Device) -> Result<(), DeviceError> {
        let outcome = self.try_put_on(device);
        if outcome.is_err() {
            self.take_off();
        }
        outcome
    }

    fn try_put_on(&mut self, device: &Device) -> Result<(), DeviceError> {
        match self.members_mut() {
            Some(members) => members.iter_mut().try_for_each(|member| member.try_put_on(device)),
            None => {
                self.on_device = Some(OnDevice { arrays: Arrays::new(self, device)?, left: OnceLock::new() });
                Ok(())
            }
        }
    }

    fn take_off(&mut self) {
        self.on_device = None;
        self.members_mut().into_iter().flatten().for_each(Self::take_off);
    }

    fn members_mut(&mut self) -> Option<&mut [Self]> {
        let system: &mut dyn System = &mut *self.system;
        (system as &mut dyn Any).downcast_mut::<Blend>().map(Blend::members_mut)
    }

    /// The option because of which no batch is answered on a device, wherever the model is, if there is one.
    pub fn bound_to_cpu_by(&self, options: &QueryOptions<'_>) -> Option<&'static str> {
        if let Some(blend) = self.as_kind::<Blend>() {
            let bound: Option<Vec<_>> = blend.members().iter().map(|member| member.bound_to_cpu_by(options)).collect();
            return bound?.first().copied();
        }
        bound_to_cpu_by(self, options)
    }

    /// What a block of threads had too little room for, with the numbers, where a batch was left to the CPU because of
    /// that since the model was put on a device: many labels an answer, or a wide beam.
    pub fn left_to_cpu(&self) -> Option<&KernelError> {
        let members = self.as_kind::<Blend>().map(Blend::members).unwrap_or_default();
        self.on_device.as_ref().and_then(|on| on.left.get()).or_else(|| members.iter().find_map(Self::left_to_cpu))
    }

    /// The device's answers to a batch; `None` where the CPU is to give them.
    pub(crate) fn batch_on_device(
        &self,
        rows: Rows<'_>,
        ask: &Ask<'_>,
        scratch: &mut dyn Any,
    ) -> Option<Result<Answers, BatchError>> {
        let on_device = self.on_device.as_ref()?;
        let options = QueryOptions { candidates: ask.candidates, search: ask.search, ..QueryOptions::default() };
        if bound_to_cpu_by(self, &options).is_some() {
            return None;
        }
        match on_device.arrays.batch(rows, ask, scratch) {
            Ok(answers) => Some(Ok(answers)),
            // More labels or a wider beam than a block of threads has room for.
            Err(NoAnswer::Device(error @ KernelError::Launch { .. })) => {
                on_device.left.get_or_init(|| error);
                None
            }
            Err(NoAnswer::Device(error)) => Some(Err(BatchError::first(QueryError::Device(Arc::new(error))))),
            Err(NoAnswer::Query(error)) => Some(Err(error)),
        }
    }
}
