//! The labels that a step scores where a sampler chooses them, and what becomes of each where it is
//! false.

use crate::Targets;
use crate::sampler::CandidateList;

/// Labels of a step that a sampler chose, and those that are true of any instance: ascending.
/// Buffers only grow.
#[derive(Debug, Default)]
pub(super) struct Chosen {
    labels: Vec<u32>,
    weight: Vec<f32>,
    log_q: Vec<f32>,
    positives: Vec<u32>,
}

impl Chosen {
    pub(super) fn fill(&mut self, list: CandidateList<'_>, targets: Targets<'_>) {
        let Self { labels, weight, log_q, positives } = self;
        positives.clear();
        positives.extend_from_slice(targets.parts().2);
        positives.sort_unstable();
        positives.dedup();
        labels.clear();
        weight.clear();
        log_q.clear();
        let mut push = |label: u32, of: (f32, f32)| {
            labels.push(label);
            weight.push(of.0);
            log_q.push(of.1);
        };
        let mut alone = positives.iter().copied().peekable();
        // Where it was not drawn, a label that is true of another instance says nothing about the
        // sum that a softmax estimates.
        const NOT_DRAWN: (f32, f32) = (1.0, f32::INFINITY);
        for (at, &drawn) in list.labels.iter().enumerate() {
            while let Some(label) = alone.next_if(|&label| label < drawn) {
                push(label, NOT_DRAWN);
            }
            alone.next_if_eq(&drawn);
            push(drawn, (list.weight[at], list.log_q[at]));
        }
        alone.for_each(|label| push(label, NOT_DRAWN));
    }

    pub(super) fn labels(&self) -> &[u32] {
        &self.labels
    }

    /// What the loss and the gradient of a label are multiplied by where it is false, if the loss
    /// adds up over labels.
    pub(super) fn weight(&self) -> &[f32] {
        &self.weight
    }

    /// What a softmax takes away from a label's logit where it is false.
    pub(super) fn log_q(&self) -> &[f32] {
        &self.log_q
    }
}

/// A copy of a batch's targets, for the sampler that hears of a step when it is done.
#[derive(Debug, Default)]
pub(super) struct Remembered {
    instances: Vec<u32>,
    ptr: Vec<u32>,
    labels: Vec<u32>,
}

impl Remembered {
    pub(super) fn fill(&mut self, targets: Targets<'_>) {
        let (instances, ptr, labels) = targets.parts();
        let Self { instances: to_instances, ptr: to_ptr, labels: to_labels } = self;
        for (to, from) in [(to_instances, instances), (to_ptr, ptr), (to_labels, labels)] {
            to.clear();
            to.extend_from_slice(from);
        }
    }

    pub(super) fn targets(&self) -> Targets<'_> {
        Targets::new(&self.instances, &self.ptr, &self.labels)
    }
}
