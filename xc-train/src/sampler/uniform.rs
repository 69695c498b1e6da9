//! Every label equally likely.

use super::{Candidates, LabelWeights, Queries, Sampler, log_chance, push_drawn};
use crate::state::State;
use crate::{Step, StepError};
use serde_json::json;
use std::ops::Range;
use xc_hash::stream::{Purpose, Stream, name};

/// Every label equally likely; drawn with replacement, one list for a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UniformNegatives {
    /// Labels drawn for a step.
    pub per_step: usize,
}

impl Sampler for UniformNegatives {
    fn sample(
        &self,
        at: Step,
        _: Queries<'_>,
        _: Option<LabelWeights<'_>>,
        labels: Range<u32>,
        out: &mut Candidates,
    ) -> Result<(), StepError> {
        let n = labels.len() as u32;
        let mut random = Stream::new(name(at.seed, Purpose::Negatives, &[at.number]));
        let draws = if n == 0 { 0 } else { self.per_step };
        push_drawn(draws, || labels.start + random.below_u64(u64::from(n)) as u32, |_| 1.0 / f64::from(n), out);
        Ok(())
    }

    fn knows_log_q(&self) -> bool {
        true
    }

    fn log_q(
        &self,
        _: Step,
        _: Queries<'_>,
        _: Option<LabelWeights<'_>>,
        labels: Range<u32>,
        _: usize,
        wanted: &[u32],
        out: &mut Vec<f32>,
    ) -> Result<(), StepError> {
        out.clear();
        out.resize(wanted.len(), log_chance(1.0 / labels.len() as f64, self.per_step));
        Ok(())
    }

    fn clone_box(&self) -> Box<dyn Sampler> {
        Box::new(*self)
    }
}

impl State for UniformNegatives {
    fn settings(&self) -> serde_json::Value {
        json!({ "uniform": self.per_step })
    }
}
