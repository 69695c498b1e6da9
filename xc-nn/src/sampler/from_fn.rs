//! A function as a sampler.

use super::{Candidates, LabelWeights, Queries, Sampler};
use crate::state::State;
use crate::{Step, StepError};
use std::ops::Range;

/// Draws labels from a range for a batch: it [pushes](Candidates::push) them, as one list for all instances.
pub type SampleFn = fn(Step, Queries<'_>, Range<u32>, &mut Candidates);

/// A sampler without memory: a function, and the name that tells it from others.
///
/// The same step gives the same labels: random numbers come from [`xc_hash::stream`] by the step's seed and number.
#[derive(Clone, Copy, Debug)]
pub struct FromFn {
    name: &'static str,
    sample: SampleFn,
}

impl FromFn {
    /// A sampler that calls a function; `name` identifies it in keys of checkpoints.
    pub const fn new(name: &'static str, sample: SampleFn) -> Self {
        Self { name, sample }
    }
}

impl Sampler for FromFn {
    fn sample(
        &self,
        at: Step,
        queries: Queries<'_>,
        _: Option<LabelWeights<'_>>,
        labels: Range<u32>,
        out: &mut Candidates,
    ) -> Result<(), StepError> {
        (self.sample)(at, queries, labels, out);
        out.end_list();
        Ok(())
    }

    fn clone_box(&self) -> Box<dyn Sampler> {
        Box::new(*self)
    }
}

impl State for FromFn {
    fn settings(&self) -> serde_json::Value {
        serde_json::json!({ "function": self.name })
    }
}
