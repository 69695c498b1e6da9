//! The true labels of the batch.

use super::lists::{Who, make_lists, positives};
use super::{Candidates, LabelWeights, Lists, Queries, Sampler, Weighting};
use crate::state::State;
use crate::{Step, StepError};
use serde_json::json;
use std::ops::Range;
use std::sync::Arc;

/// The true labels of the other instances of the batch. Nothing is drawn or stored, and a label
/// occurs as often as it is true.
///
/// The probability that a label that is false for an instance is true of one of the other B - 1
/// instances is estimated from its frequency f over all instances: pi = 1 - (1 - f)^(B - 1). A
/// label that is true of no instance never occurs.
#[derive(Clone, Debug, PartialEq)]
pub struct InBatch {
    frequency: Arc<[f32]>,
    lists: Lists,
    weighting: Weighting,
}

impl InBatch {
    /// One list per batch; `counts` has the number of instances, out of `n_instances`, of which
    /// each label is true.
    pub fn new(counts: &[u32], n_instances: usize) -> Self {
        let share = |&count: &u32| (f64::from(count) / n_instances.max(1) as f64).min(1.0) as f32;
        Self { frequency: counts.iter().map(share).collect(), lists: Lists::Shared, weighting: Weighting::LogQ }
    }

    /// One list per batch, or one per instance without its own true labels.
    pub fn with_lists(self, lists: Lists) -> Self {
        Self { lists, ..self }
    }

    /// How a label of a list is weighted.
    pub fn with_weighting(self, weighting: Weighting) -> Self {
        Self { weighting, ..self }
    }

    fn chance(&self, label: u32, batch: usize) -> f64 {
        super::drawn::in_draws(f64::from(self.frequency[label as usize]), batch.saturating_sub(1))
    }
}

impl Sampler for InBatch {
    /// # Panics
    /// If a true label was not counted.
    fn sample(
        &self,
        at: Step,
        queries: Queries<'_>,
        _: Option<LabelWeights<'_>>,
        labels: Range<u32>,
        out: &mut Candidates,
    ) -> Result<(), StepError> {
        let (all, n) = (positives(queries), queries.targets.len());
        let corrected = |&label: &u32| (label, self.weighting.of(self.chance(label, n)));
        let all: Vec<_> = super::subset::within(&all, &labels).iter().map(corrected).collect();
        make_lists(self.lists, (at, Who::Drawn), queries, out, |_, place, list| {
            let own = place.map_or(&[][..], |place| queries.targets.row(place));
            let others = all.iter().filter(|(label, _)| own.binary_search(label).is_err());
            others.for_each(|&(label, correction)| list.push(label, correction));
            Ok(())
        })
    }

    fn knows_log_q(&self) -> bool {
        self.weighting.uses_chances()
    }

    fn log_q(
        &self,
        _: Step,
        queries: Queries<'_>,
        _: Option<LabelWeights<'_>>,
        _: Range<u32>,
        _: usize,
        wanted: &[u32],
        out: &mut Vec<f32>,
    ) -> Result<(), StepError> {
        let n = queries.targets.len();
        out.clear();
        out.extend(wanted.iter().map(|&label| self.weighting.of(self.chance(label, n)).1));
        Ok(())
    }

    fn clone_box(&self) -> Box<dyn Sampler> {
        Box::new(self.clone())
    }
}

impl State for InBatch {
    /// The counts are those of the training data.
    fn settings(&self) -> serde_json::Value {
        json!({ "in-batch": self.lists, "weighting": self.weighting })
    }
}
