//! The output of a sampler: lists of labels.

use std::ops::AddAssign;
use std::time::Duration;

/// Lists of chosen labels: one for the batch, or one for each instance. Buffers only grow.
#[derive(Clone, Debug, Default)]
pub struct Candidates {
    ptr: Vec<u32>,
    labels: Vec<u32>,
    weight: Vec<f32>,
    log_q: Vec<f32>,
    cost: SampleCost,
}

/// One of the lists.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CandidateList<'a> {
    /// The labels, ascending and unique.
    pub labels: &'a [u32],
    /// Factor of each label's loss and gradient where it is false: 1, or a weight that makes a sum
    /// over the list an estimate of the sum over all labels.
    pub weight: &'a [f32],
    /// Logarithm of the probability that the label is in the list; a softmax over the list
    /// subtracts it from the logit.
    pub log_q: &'a [f32],
}

impl Candidates {
    /// Removes all lists and resets their cost.
    pub fn clear(&mut self) {
        self.ptr.clear();
        self.labels.clear();
        self.weight.clear();
        self.log_q.clear();
        self.cost = SampleCost::default();
    }

    /// Adds a label to the list that is not ended yet.
    ///
    /// # Panics
    /// If it is not above the previous label of the list.
    pub fn push(&mut self, label: u32, weight: f32, log_q: f32) {
        let before = self.labels[self.n_ended()..].last();
        assert!(before.is_none_or(|&before| before < label), "label {label} after {before:?}");
        self.labels.push(label);
        self.weight.push(weight);
        self.log_q.push(log_q);
    }

    /// Ends the current list.
    pub fn end_list(&mut self) {
        self.ptr.push(self.labels.len() as u32);
    }

    /// Number of ended lists.
    pub fn len(&self) -> usize {
        self.ptr.len()
    }

    /// True if no list was ended.
    pub fn is_empty(&self) -> bool {
        self.ptr.is_empty()
    }

    /// List `i`.
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

    /// Number of labels of all lists, including one that is not ended.
    pub fn n_labels(&self) -> usize {
        self.labels.len()
    }

    /// Adds the union of the lists of `other` as one list. A label is in the union at least as
    /// often as in the list where it is most probable, so it gets the smallest of its weights and
    /// the largest of its log q.
    pub fn push_union(&mut self, other: &Candidates) {
        let mut places: Vec<u32> = (0..other.labels.len() as u32).collect();
        places.sort_by_key(|&at| other.labels[at as usize]);
        let label = |at: &u32| other.labels[*at as usize];
        for same in places.chunk_by(|a, b| label(a) == label(b)) {
            let weight = same.iter().map(|&at| other.weight[at as usize]).fold(f32::INFINITY, f32::min);
            let log_q = same.iter().map(|&at| other.log_q[at as usize]).fold(f32::NEG_INFINITY, f32::max);
            self.push(label(&same[0]), weight, log_q);
        }
        self.end_list();
    }

    /// The cost of choosing the lists.
    pub fn cost(&self) -> &SampleCost {
        &self.cost
    }

    /// The cost of choosing the lists; a sampler adds to it.
    pub fn cost_mut(&mut self) -> &mut SampleCost {
        &mut self.cost
    }

    fn n_ended(&self) -> usize {
        self.ptr.last().map_or(0, |&end| end as usize)
    }
}

/// Compares the lists, but not their cost.
impl PartialEq for Candidates {
    fn eq(&self, other: &Self) -> bool {
        (&self.ptr, &self.labels, &self.weight, &self.log_q) == (&other.ptr, &other.labels, &other.weight, &other.log_q)
    }
}

impl AddAssign for SampleCost {
    fn add_assign(&mut self, other: Self) {
        self.hash += other.hash;
        self.search += other.search;
        self.wait += other.wait;
        self.query += other.query;
        self.n_hashes += other.n_hashes;
        self.n_buckets += other.n_buckets;
        self.n_found += other.n_found;
        self.n_empty += other.n_empty;
        self.n_rehashed += other.n_rehashed;
        self.n_zero += other.n_zero;
        self.check += other.check;
        self.n_checked += other.n_checked;
        self.n_other += other.n_other;
        // The current state, not a sum.
        self.n_stale = other.n_stale;
    }
}

/// The work of a sampler for the lists of a step. Fields that do not apply to a sampler stay 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleCost {
    /// Time for the keys of the queries.
    pub hash: Duration,
    /// Time for searching an index, or all rows.
    pub search: Duration,
    /// Time for reading tables or another index, and for assembling lists.
    pub query: Duration,
    /// Time that the previous step waited for a retrieval on another thread; part of the upkeep.
    pub wait: Duration,
    /// Hash functions evaluated.
    pub n_hashes: u64,
    /// Buckets read.
    pub n_buckets: u64,
    /// Labels found, before duplicates and the instance's own true labels are removed.
    pub n_found: u64,
    /// Queries that found nothing and were given uniform negatives.
    pub n_empty: u64,
    /// Changed labels whose keys are not updated yet.
    pub n_stale: u64,
    /// Labels rehashed after the previous step.
    pub n_rehashed: u64,
    /// Time for comparing stored keys with those of the current rows; done in some steps, for some
    /// labels.
    pub check: Duration,
    /// Keys compared.
    pub n_checked: u64,
    /// Stored keys that differed from those of the current rows.
    pub n_other: u64,
    /// Vectors, and rows of rehashed labels, without a nonzero value: their keys carry no
    /// information.
    pub n_zero: u64,
}
