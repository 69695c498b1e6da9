//! Hard labels with weight 1, and uniform labels that represent all others.

use super::lists::{List, Who, own_lists, positives};
use super::subset::{subset_outside, within};
use super::{Candidates, LabelWeights, Lists, Queries, Sampler, Weighting};
use crate::state::State;
use crate::{Step, StepError};
use serde_json::json;
use std::ops::Range;
use xc_hash::stream::Stream;

/// A set H of hard labels from any sampler, the true labels P, and uniform labels U drawn without
/// replacement from the rest.
///
/// ```text
///   labels     P ∪ H                       the other L - |P ∪ H|
///   in list    all of them                 |U| of them
///   weight     1                           (L - |P ∪ H|) / |U|
/// ```
///
/// The expectation of the weighted sum of losses is the sum over all labels, however H was found:
/// with limits, from stale tables, or by a search that ends early. The probabilities of H are not
/// needed; weights of the other sampler are not used. These weights are those of
/// [`Weighting::Inverse`], with or without a cap; [`Weighting::None`] leaves U at weight 1.
///
/// In a shared list, P has the true labels of all instances; they are exact negatives of the other
/// instances. An instance's own list leaves out its true labels.
#[derive(Clone, Debug)]
pub struct Mixture {
    hard: Box<dyn Sampler>,
    uniform: usize,
    lists: Lists,
    weighting: Weighting,
    /// Before this epoch there are only uniform labels: `before` more for each instance.
    from_epoch: u32,
    before: usize,
}

impl Mixture {
    /// `uniform` labels for each list in addition to those that `hard` chooses, weighted with a
    /// cap.
    pub fn new(hard: Box<dyn Sampler>, uniform: usize) -> Self {
        Self { hard, uniform, lists: Lists::Shared, weighting: Weighting::CAPPED, from_epoch: 0, before: 0 }
    }

    /// One list per batch, with the union of the other sampler's lists, or one per instance. If the
    /// other sampler returns one list for the batch, every instance gets it.
    pub fn with_lists(self, lists: Lists) -> Self {
        Self { lists, ..self }
    }

    /// How a uniform label is weighted.
    pub fn with_weighting(self, weighting: Weighting) -> Self {
        Self { weighting, ..self }
    }

    /// Uses the other sampler from an epoch on (from 0). Before that, U is larger by `before`
    /// labels for each instance of a list: the curriculum of ASTRA, whose first epochs have uniform
    /// labels instead of hard ones.
    pub fn with_hard_from(self, epoch: u32, before: usize) -> Self {
        Self { from_epoch: epoch, before, ..self }
    }

    /// Number of uniform labels of a list for `n_instances` instances.
    fn n_uniform(&self, at: Step, n_instances: usize) -> usize {
        let more = if at.epoch < self.from_epoch { self.before.saturating_mul(n_instances) } else { 0 };
        self.uniform.saturating_add(more)
    }

    /// Fills a list with those of `exact` (ascending) that `is_listed` keeps, and with `n` others,
    /// U.
    fn fill(
        &self,
        exact: &[u32],
        is_listed: impl Fn(u32) -> bool,
        (labels, n): (&Range<u32>, usize),
        stream: u64,
        list: &mut List,
    ) {
        let n_left = labels.len() - within(exact, labels).len();
        let mut uniform = Vec::with_capacity(n.min(n_left));
        subset_outside(labels, exact, n, &mut Stream::new(stream), &mut uniform);
        let correction = self.weighting.of(uniform.len() as f64 / n_left.max(1) as f64);
        let mut uniform = uniform.into_iter().peekable();
        for &label in within(exact, labels).iter().filter(|&&label| is_listed(label)) {
            while let Some(before) = uniform.next_if(|&drawn| drawn < label) {
                list.push(before, correction);
            }
            list.push(label, (1.0, 0.0));
        }
        uniform.for_each(|label| list.push(label, correction));
    }
}

impl Sampler for Mixture {
    fn sample(
        &self,
        at: Step,
        queries: Queries<'_>,
        weights: Option<LabelWeights<'_>>,
        labels: Range<u32>,
        out: &mut Candidates,
    ) -> Result<(), StepError> {
        let mut hard = Candidates::default();
        if at.epoch >= self.from_epoch {
            self.hard.sample(at, queries, weights, labels.clone(), &mut hard)?;
        } else {
            hard.end_list();
        }
        *out.cost_mut() += *hard.cost();
        let with = |mut exact: Vec<u32>, lists: Range<usize>| {
            lists.for_each(|i| exact.extend_from_slice(hard.list(i).labels));
            exact.sort_unstable();
            exact.dedup();
            exact
        };
        match self.lists {
            Lists::Shared => {
                let exact = with(positives(queries), 0..hard.len());
                let mut list = List::default();
                let n = self.n_uniform(at, queries.instances.len());
                self.fill(&exact, |_| true, (&labels, n), Who::Mixture.of_step(at), &mut list);
                list.end(out);
                Ok(())
            }
            Lists::Own => own_lists(queries.instances.len(), out, |place, list| {
                let own = queries.targets.row(place);
                let from = if hard.len() == 1 { 0 } else { place };
                let exact = with(own.to_vec(), from..from + 1);
                let stream = Who::Mixture.of_instance(at, queries.instances[place]);
                let n = self.n_uniform(at, 1);
                self.fill(&exact, |label| own.binary_search(&label).is_err(), (&labels, n), stream, list);
                Ok(())
            }),
        }
    }

    fn changed(
        &mut self,
        at: Step,
        queries: Queries<'_>,
        labels: &[u32],
        moved: &[f32],
        weights: Option<LabelWeights<'_>>,
    ) -> Result<(), StepError> {
        self.hard.changed(at, queries, labels, moved, weights)
    }

    fn wants_moved(&self) -> bool {
        self.hard.wants_moved()
    }

    fn clone_box(&self) -> Box<dyn Sampler> {
        Box::new(self.clone())
    }
}

impl State for Mixture {
    fn settings(&self) -> serde_json::Value {
        let hard = self.hard.settings();
        json!({ "hard": hard, "uniform": self.uniform, "lists": self.lists, "weighting": self.weighting,
            "from_epoch": self.from_epoch, "before": self.before })
    }

    fn visit(&self, f: &mut crate::state::Visitor<'_>) -> Result<(), crate::state::StateError> {
        self.hard.visit(f)
    }

    fn load(&mut self, from: &dyn crate::state::Arrays) -> Result<(), crate::state::StateError> {
        self.hard.load(from)
    }
}
