//! Checks of input and parameters before training begins.

use super::input::TrainInput;
use super::memory::TreeMemory;
use super::params::{CheckTreeParamsError, TreeParams};
use crate::model::BuildError;
use thiserror::Error;
use xc_sparse::CsrView;
use xc_store::{CheckpointError, WriteError};

/// Why no tree was trained.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TrainError {
    /// The parameters do not make sense.
    #[error(transparent)]
    Params(#[from] CheckTreeParamsError),
    /// Two inputs differ in length.
    #[error("{what}: {got} rows, expected {expected}")]
    Length {
        /// Which input.
        what: &'static str,
        /// Rows found.
        got: usize,
        /// Rows expected.
        expected: usize,
    },
    /// The representation needs features of the labels and none were given.
    #[error("this label representation needs label features; none were given")]
    LabelFeatures,
    /// No label has a positive instance.
    #[error("nothing to learn: none of {n_labels} labels has a positive among {n_instances} instances")]
    NoPositives {
        /// Instances given.
        n_instances: usize,
        /// Labels declared.
        n_labels: usize,
    },
    /// More instances, features or labels than 32-bit numbers can count.
    #[error("{what}: {got}, at most {limit} can be numbered")]
    TooMany {
        /// What there are too many of.
        what: &'static str,
        /// How many.
        got: usize,
        /// The limit.
        limit: usize,
    },
    /// A feature value is NaN or infinite.
    #[error("{what} row {row}, feature {feature}: value {value} is not finite")]
    NotFinite {
        /// Features of instances or of labels.
        what: &'static str,
        /// The row.
        row: usize,
        /// The feature.
        feature: u32,
        /// The value found.
        value: f32,
    },
    /// A weight or a cost is out of range.
    #[error("{what} {at} is {value}, expected a finite number {expected}")]
    Weight {
        /// Which list.
        what: &'static str,
        /// Position in it.
        at: usize,
        /// The value found.
        value: f32,
        /// The range expected.
        expected: &'static str,
    },
    /// Training would need more memory than allowed.
    #[error("training needs about {needed_bytes} bytes, allowed are {max_bytes}")]
    Memory {
        /// Estimated peak.
        needed_bytes: u64,
        /// The limit that was set.
        max_bytes: u64,
    },
    /// Negatives that a part cannot have.
    #[error("matcher-aware negatives follow from all chunks of the level above, and a part has some of them")]
    NegativesInParts,
    /// The trained trees do not form a model.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The observer asked to stop.
    #[error("training was cancelled")]
    Cancelled,
    /// The checkpoint could not be read or written, or belongs to other data or parameters.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
}

impl From<WriteError> for TrainError {
    fn from(error: WriteError) -> Self {
        Self::Checkpoint(error.into())
    }
}

/// What foresees the memory of a training run.
pub(super) type Foresee = fn(&TrainInput<'_>, &TreeParams, usize) -> TreeMemory;

/// Refuses what cannot be trained on.
pub(super) fn check(input: &TrainInput<'_>, params: &TreeParams, foresee: Foresee) -> Result<(), TrainError> {
    params.check()?;
    let features = input.features;
    check_length("labels", input.labels.len(), features.rows())?;
    for (what, got) in
        [("instances", features.rows()), ("features", features.cols()), ("labels", input.labels.n_labels())]
    {
        check_many(what, got)?;
    }
    check_features("features", features)?;
    match input.label_features {
        Some(rows) => {
            check_length("label features", rows.rows(), input.labels.n_labels())?;
            check_features("label features", rows)?;
        }
        None if params.representation.needs_label_features() => return Err(TrainError::LabelFeatures),
        None => {}
    }
    if let Some(weights) = input.instance_weights {
        check_instance_weights(weights, features.rows())?;
    }
    if let Some(costs) = input.label_costs {
        check_length("label costs", costs.len(), input.labels.n_labels())?;
        if let Some(at) = costs.iter().position(|c| !(c.is_finite() && *c > 0.0)) {
            return Err(TrainError::Weight { what: "label cost", at, value: costs[at], expected: "above 0" });
        }
    }
    if input.labels.nnz() == 0 {
        let (n_instances, n_labels) = (features.rows(), input.labels.n_labels());
        return Err(TrainError::NoPositives { n_instances, n_labels });
    }
    if let Some(max_bytes) = params.max_memory_bytes {
        let needed_bytes = foresee(input, params, rayon::current_num_threads()).peak();
        if needed_bytes > max_bytes {
            return Err(TrainError::Memory { needed_bytes, max_bytes });
        }
    }
    Ok(())
}

/// Refuses lists of different lengths.
pub(super) fn check_length(what: &'static str, got: usize, expected: usize) -> Result<(), TrainError> {
    if got == expected { Ok(()) } else { Err(TrainError::Length { what, got, expected }) }
}

/// Refuses more than 32 bits can number.
pub(super) fn check_many(what: &'static str, got: usize) -> Result<(), TrainError> {
    let limit = u32::MAX as usize - 1;
    if got <= limit { Ok(()) } else { Err(TrainError::TooMany { what, got, limit }) }
}

/// Refuses weights of `n` instances that are negative or not finite.
pub(super) fn check_instance_weights(weights: &[f32], n: usize) -> Result<(), TrainError> {
    check_length("instance weights", weights.len(), n)?;
    match weights.iter().position(|w| !(w.is_finite() && *w >= 0.0)) {
        Some(at) => {
            let (what, value, expected) = ("instance weight", weights[at], "of 0 or more");
            Err(TrainError::Weight { what, at, value, expected })
        }
        None => Ok(()),
    }
}

/// Refuses values that are not finite.
pub(super) fn check_features(what: &'static str, rows: CsrView<'_>) -> Result<(), TrainError> {
    for row in 0..rows.rows() {
        if let Some((feature, value)) = rows.row(row).iter().find(|(_, v)| !v.is_finite()) {
            return Err(TrainError::NotFinite { what, row, feature, value });
        }
    }
    Ok(())
}
