//! Which labels a step scores beside the true ones, where scoring all of them costs too much.
//!
//! ```text
//!   vectors, targets, weights ──▶ Sampler::sample ──▶ Candidates { labels, weight, log q } ──▶ head
//!   rows that changed         ──▶ Sampler::changed
//! ```
//!
//! A sampler sees the vectors of the batch, the numbers of its instances and the weights of the
//! labels, so that it may look for labels that are hard to tell from the true ones. It is a
//! [`State`]: tables and graphs that it keeps go into checkpoints.

mod frequency;
mod uniform;

pub use frequency::{FrequencyError, FrequencyNegatives};
pub use uniform::UniformNegatives;

use crate::state::State;
use crate::{Step, StepError, Targets};
use std::fmt::Debug;
use std::ops::Range;
use xc_sparse::DenseRows;

/// The instances of a batch, as a sampler sees them.
#[derive(Clone, Copy, Debug)]
pub struct Queries<'a> {
    /// Their numbers among all training instances.
    pub instances: &'a [u32],
    /// What the encoder made of them: one row an instance.
    pub vectors: DenseRows<'a>,
    /// Their true labels.
    pub targets: Targets<'a>,
}

/// Chooses labels for the instances of a step.
pub trait Sampler: State + Debug {
    /// Adds labels out of `labels`: one list for the whole batch, or one for each instance. The
    /// true ones need not be among them: a head scores them anyway. The same step gives the same
    /// labels at any number of threads.
    ///
    /// `weights` are those of the labels, one row a label, where the head has them in that form.
    ///
    /// # Errors
    /// What the sampler uses fails.
    fn sample(
        &self,
        at: Step,
        queries: Queries<'_>,
        weights: Option<DenseRows<'_>>,
        labels: Range<u32>,
        out: &mut Candidates,
    ) -> Result<(), StepError>;

    /// Hears that a step is done and which labels have changed: tables and graphs follow now, or
    /// when their schedule says.
    ///
    /// # Errors
    /// What the sampler uses fails.
    fn changed(
        &mut self,
        at: Step,
        queries: Queries<'_>,
        labels: &[u32],
        weights: Option<DenseRows<'_>>,
    ) -> Result<(), StepError> {
        let _ = (at, queries, labels, weights);
        Ok(())
    }

    /// A copy with all that it keeps.
    fn clone_box(&self) -> Box<dyn Sampler>;
}

impl Clone for Box<dyn Sampler> {
    fn clone(&self) -> Self {
        self.clone_box()
    }
}

/// Lists of chosen labels: one for the batch, or one for each instance. Buffers only grow.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Candidates {
    ptr: Vec<u32>,
    labels: Vec<u32>,
    weight: Vec<f32>,
    log_q: Vec<f32>,
}

/// One of the lists.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CandidateList<'a> {
    /// The labels, ascending and unique.
    pub labels: &'a [u32],
    /// What each one's loss and gradient are multiplied by where it is false: 1, or what makes a
    /// sum over the list an estimate of the sum over all labels.
    pub weight: &'a [f32],
    /// Logarithm of the chance that the label is in the list, which a softmax over the list takes
    /// away from its logit.
    pub log_q: &'a [f32],
}

impl Candidates {
    /// Removes all lists.
    pub fn clear(&mut self) {
        self.ptr.clear();
        self.labels.clear();
        self.weight.clear();
        self.log_q.clear();
    }

    /// Adds a label to the list that is not ended yet.
    ///
    /// # Panics
    /// If it is not above the label before it.
    pub fn push(&mut self, label: u32, weight: f32, log_q: f32) {
        let before = self.labels[self.n_ended()..].last();
        assert!(before.is_none_or(|&before| before < label), "label {label} after {before:?}");
        self.labels.push(label);
        self.weight.push(weight);
        self.log_q.push(log_q);
    }

    /// Ends a list.
    pub fn end_list(&mut self) {
        self.ptr.push(self.labels.len() as u32);
    }

    /// Number of lists that were ended.
    pub fn len(&self) -> usize {
        self.ptr.len()
    }

    /// True when no list was ended.
    pub fn is_empty(&self) -> bool {
        self.ptr.is_empty()
    }

    /// A list.
    ///
    /// # Panics
    /// If `i >= len()`.
    pub fn list(&self, i: usize) -> CandidateList<'_> {
        let start = if i == 0 { 0 } else { self.ptr[i - 1] as usize };
        let range = start..self.ptr[i] as usize;
        CandidateList {
            labels: &self.labels[range.clone()],
            weight: &self.weight[range.clone()],
            log_q: &self.log_q[range],
        }
    }

    fn n_ended(&self) -> usize {
        self.ptr.last().map_or(0, |&end| end as usize)
    }
}

/// Logarithm of the chance that a label of chance `q` is among `n` independent draws.
fn log_chance(q: f64, n: usize) -> f32 {
    (-(n as f64 * (-q).ln_1p()).exp_m1()).ln() as f32
}

/// Draws `n` times, and ends a list of the labels that came: ascending and unique, of weight 1.
fn push_drawn(n: usize, mut draw: impl FnMut() -> u32, q: impl Fn(u32) -> f64, out: &mut Candidates) {
    let mut drawn: Vec<u32> = (0..n).map(|_| draw()).collect();
    drawn.sort_unstable();
    drawn.dedup();
    drawn.iter().for_each(|&label| out.push(label, 1.0, log_chance(q(label), n)));
    out.end_list();
}

#[cfg(test)]
mod tests;
