//! All labels.

use super::{Candidates, LabelWeights, Queries, Sampler};
use crate::state::State;
use crate::{Step, StepError};
use serde_json::json;
use std::ops::Range;

/// All labels in one list, with weight 1 and log q 0: the baseline for every other sampler, through
/// the same head.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AllLabels;

impl Sampler for AllLabels {
    fn sample(
        &self,
        _: Step,
        _: Queries<'_>,
        _: Option<LabelWeights<'_>>,
        labels: Range<u32>,
        out: &mut Candidates,
    ) -> Result<(), StepError> {
        labels.for_each(|label| out.push(label, 1.0, 0.0));
        out.end_list();
        Ok(())
    }

    fn clone_box(&self) -> Box<dyn Sampler> {
        Box::new(*self)
    }
}

impl State for AllLabels {
    fn settings(&self) -> serde_json::Value {
        json!("all")
    }
}
