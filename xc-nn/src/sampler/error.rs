//! Errors of samplers.

use super::LabelWeights;
use crate::StepError;
use std::ops::Range;
use std::path::PathBuf;
use thiserror::Error;
use xc_ann::BuildError;

/// Why a sampler that reads weights fails.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum SampleError {
    /// The head stores its weights in another form.
    #[error("the head has no row of weights for each label, and the sampler looks for labels by their rows")]
    NoRows,
    /// NaN or an infinity among the weights.
    #[error("weights of label {label}: not finite")]
    Weights {
        /// The label.
        label: u32,
    },
    /// NaN or an infinity in the encoder's vector of an instance.
    #[error("vector of instance {instance}: not finite")]
    Vector {
        /// Number of the instance.
        instance: u32,
    },
    /// The index over the labels cannot be built or searched.
    #[error("the index over the labels")]
    Index(#[source] BuildError),
    /// A table of all instances cannot be written or read; the disk may be full.
    #[error("a file without a name in {}: {why}", folder.display())]
    File {
        /// The folder it is in.
        folder: PathBuf,
        /// The message of the system.
        why: String,
    },
}

impl From<SampleError> for StepError {
    fn from(error: SampleError) -> Self {
        Self::new("sampler", error)
    }
}

/// The weights, or an error if there are none.
pub(super) fn rows<'a>(
    weights: Option<LabelWeights<'a>>,
    labels: &Range<u32>,
) -> Result<LabelWeights<'a>, SampleError> {
    let weights = weights.ok_or(SampleError::NoRows)?;
    assert!(labels.end as usize <= weights.n(), "labels {labels:?}, weights of {}", weights.n());
    Ok(weights)
}
