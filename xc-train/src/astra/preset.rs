//! What an ASTRA network begins with.

use super::AstraParams;
use crate::classifier::preset::{DataShape, lns_for};
use crate::classifier::{CandidateHeadParams, HeadParams, Preset};
use xc_sparse::dtype::DType;

/// The kind of model folder that it states.
pub const KIND: &str = "astra";

/// For sets of an unknown shape.
pub fn preset() -> Preset {
    preset_for(DataShape { n_instances: usize::MAX, n_entries: 0 })
}

/// For sets of a shape: encoder, loss, rates and epochs of `xc train lns`, which were found with lists
/// that are much alike (`docs/decisions/lns-defaults.md`).
pub fn preset_for(data: DataShape) -> Preset {
    let mut preset = lns_for(data);
    preset.name = KIND;
    let negatives = AstraParams::default().negatives(usize::MAX);
    preset.params.head = HeadParams::Candidates(CandidateHeadParams { rows: DType::F32, negatives });
    preset
}
