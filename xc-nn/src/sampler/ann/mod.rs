//! Hard labels: the false labels with the largest logits, found by a graph over the rows of the
//! labels.
//!
//! ```text
//!   (vector, s)  ─▶ search of the graph's codes ─▶ exact logits ─▶ without true labels ─▶ k_h hardest
//!   rows that a step changed  ─▶ new codes, at once
//!   at fixed steps            ─▶ edges repaired, search width fitted to the batch
//! ```
//!
//! The negatives of ASTRA (section 3 of `[mehta2024astra]`), with three differences:
//! - The search runs in the step itself, so that neither the vectors nor the weights are stale. The
//!   paper searches for all instances once every few epochs and reads the results from a file.
//! - The graph is repaired; the paper rebuilds it.
//! - Biases are part of the logits that are compared.

mod index;
mod params;
mod schedule;
mod state;
mod texts;

pub use params::AnnParams;
pub use schedule::{ScheduleParams, Scheduled};

use super::error::{SampleError, rows};
use super::lists::exact_lists;
use super::top_k::top;
use super::{Candidates, LabelWeights, Lists, Queries, Sampler, SamplerData, SamplerParamsError};
use crate::{Step, StepError};
use index::{LabelGraph, build_params};
use std::borrow::Cow;
use std::ops::Range;
use std::time::Instant;
use texts::TextVectors;
use xc_ann::BuildParams;
use xc_sparse::rank::{Scored, TopK};

/// Changes of a label, in the mean, before edges are refreshed, unless the steps between refreshes
/// are given. A refresh takes as long as some ten changes of each label: where an epoch changes few
/// of many labels, training would mostly refresh. Texts are exempt: each is encoded once per epoch.
const CHANGES: u64 = 4;

/// Hard labels from an index; see the [samplers](super).
///
/// The labels are selected, not drawn: weight 1 and log q 0 for any weighting. Checkpoints contain
/// the graph, its codes and the steps of its refreshes.
#[derive(Clone, Debug)]
pub struct Ann {
    params: AnnParams,
    lists: Lists,
    n_labels: usize,
    width: usize,
    seed: u64,
    index: Option<LabelGraph>,
    /// Vectors of the labels' texts, if these are compared instead of rows of weights.
    texts: Option<TextVectors>,
    /// Number of completed steps at the next refresh, and the epoch of the last one.
    next: u64,
    epoch: u32,
    /// Labels that steps have changed since the last refresh, each once per step.
    n_changed: u64,
    /// Before this epoch there is no index.
    from_epoch: u32,
}

impl Ann {
    /// A sampler of the labels that `data` counts, for vectors of its width. One list per batch,
    /// with the hard labels of all instances.
    pub fn new(params: AnnParams, data: &SamplerData<'_>) -> Self {
        let (n_labels, width, seed) = (data.counts.len(), data.width, data.seed);
        let (next, epoch) = (params.first, 0);
        Self {
            params,
            lists: Lists::Shared,
            n_labels,
            width,
            seed,
            index: None,
            texts: None,
            next,
            epoch,
            n_changed: 0,
            from_epoch: 0,
        }
    }

    /// The same for the encoder's vectors of the labels' texts instead of rows of weights. The
    /// texts are training instances; the latest vector of each is compared. A text that has not
    /// been encoded yet has a vector of zeros.
    ///
    /// # Errors
    /// [`SamplerParamsError::LabelTexts`]: `data` has no texts of labels.
    pub fn by_texts(params: AnnParams, data: &SamplerData<'_>) -> Result<Self, SamplerParamsError> {
        let first = data.label_texts.ok_or(SamplerParamsError::LabelTexts)?;
        let texts = TextVectors::new(first, data.counts.len(), data.width);
        Ok(Self { texts: Some(texts), ..Self::new(params, data) })
    }

    /// One list per batch, or one per instance.
    pub fn with_lists(self, lists: Lists) -> Self {
        Self { lists, ..self }
    }

    /// The sampler is not used before this epoch (from 0): the index is built after the epoch's
    /// first step.
    pub fn with_index_from(self, from_epoch: u32) -> Self {
        Self { from_epoch, ..self }
    }

    /// Whether all labels are compared.
    fn is_exact(&self) -> bool {
        self.params.is_exact(self.n_labels)
    }

    fn build_params(&self) -> BuildParams {
        build_params(self.params.per_instance, self.params.recall, self.seed)
    }

    /// The rows that are compared.
    fn rows<'a>(&'a self, weights: LabelWeights<'a>) -> LabelWeights<'a> {
        self.texts.as_ref().map_or(weights, TextVectors::rows)
    }

    /// Hard labels of each instance; none until there is an index.
    fn hardest(
        &self,
        queries: Queries<'_>,
        weights: LabelWeights<'_>,
        labels: &Range<u32>,
    ) -> Result<Vec<TopK>, SampleError> {
        let k = self.params.per_instance;
        match &self.index {
            _ if self.is_exact() => top(queries, weights, labels, k),
            Some(index) => index.hardest(queries, weights, k),
            None => Ok(vec![TopK::new(k); queries.instances.len()]),
        }
    }

    /// Whether the index is built, or its edges are refreshed, after `done` steps.
    fn is_due(&self, done: u64, epoch: u32) -> bool {
        let has_changed = self.index.is_none()
            || self.texts.is_some()
            || self.params.every > 0
            || self.n_changed >= CHANGES.saturating_mul(self.n_labels as u64);
        epoch >= self.from_epoch && (done >= self.next || epoch > self.epoch) && has_changed
    }
}

impl Sampler for Ann {
    /// # Panics
    /// If `labels` are not those that were counted, unless all labels are compared.
    fn sample(
        &self,
        _: Step,
        queries: Queries<'_>,
        weights: Option<LabelWeights<'_>>,
        labels: Range<u32>,
        out: &mut Candidates,
    ) -> Result<(), StepError> {
        let begin = Instant::now();
        let weights = self.rows(rows(weights, &labels)?);
        let is_all = labels == (0..self.n_labels as u32);
        assert!(self.is_exact() || is_all, "labels {labels:?}, an index of {}", self.n_labels);
        let mut best = self.hardest(queries, weights, &labels)?;
        let best: Vec<&[Scored]> = best.iter_mut().map(TopK::best).collect();
        exact_lists(self.lists, best.len(), out, |place, to| to.extend(best[place].iter().map(|s| s.label)))?;
        let cost = out.cost_mut();
        cost.search += begin.elapsed();
        cost.n_found += best.iter().map(|best| best.len() as u64).sum::<u64>();
        Ok(())
    }

    fn changed(
        &mut self,
        at: Step,
        queries: Queries<'_>,
        labels: &[u32],
        _: &[f32],
        weights: Option<LabelWeights<'_>>,
    ) -> Result<(), StepError> {
        let labels = match &mut self.texts {
            Some(texts) => Cow::Owned(texts.take(queries)),
            None => Cow::Borrowed(labels),
        };
        if self.is_exact() {
            return Ok(());
        }
        let weights = rows(weights, &(0..self.n_labels as u32))?;
        let weights = self.texts.as_ref().map_or(weights, TextVectors::rows);
        let done = at.number + 1;
        self.n_changed += labels.len() as u64;
        if !self.is_due(done, at.epoch) {
            return match &mut self.index {
                Some(index) => Ok(index.recode(&labels, weights)?),
                None => Ok(()),
            };
        }
        match &mut self.index {
            Some(index) => index.refresh(weights, queries)?,
            None => self.index = Some(LabelGraph::build(weights, queries, &self.build_params())?),
        }
        self.next = if self.params.every > 0 { done + self.params.every } else { 2 * done };
        (self.epoch, self.n_changed) = (at.epoch, 0);
        Ok(())
    }

    fn clone_box(&self) -> Box<dyn Sampler> {
        Box::new(self.clone())
    }
}
