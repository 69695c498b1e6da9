//! What a sampler gives: lists of labels.

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
    /// What each one's loss and gradient are multiplied by where it is false: 1, or what makes a
    /// sum over the list an estimate of the sum over all labels.
    pub weight: &'a [f32],
    /// Logarithm of the chance that the label is in the list, which a softmax over the list takes
    /// away from its logit.
    pub log_q: &'a [f32],
}

impl Candidates {
    /// Removes all lists, and forgets what they took.
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

    /// Labels of all lists, and of one that is not ended.
    pub fn n_labels(&self) -> usize {
        self.labels.len()
    }

    /// Adds the lists of `other` as one: every label of any of them. A label is in it at least as
    /// often as in the list that it is surest in, so its weight is the least of its weights, and
    /// its log q the largest.
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

    /// What choosing the lists took.
    pub fn cost(&self) -> &SampleCost {
        &self.cost
    }

    /// What choosing the lists took: a sampler adds to it.
    pub fn cost_mut(&mut self) -> &mut SampleCost {
        &mut self.cost
    }

    fn n_ended(&self) -> usize {
        self.ptr.last().map_or(0, |&end| end as usize)
    }
}

/// The same lists; what they took is not compared.
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
        // How it stands, not how much it was.
        self.n_stale = other.n_stale;
    }
}

/// What a sampler did for the lists of a step. Those that do not hash leave it at 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SampleCost {
    /// Time for the keys of the queries.
    pub hash: Duration,
    /// Time for searching an index, or all rows.
    pub search: Duration,
    /// Time for reading tables, or whatever is searched, and for putting lists together.
    pub query: Duration,
    /// Time that the step before waited for a retrieval beside the training; a part of its upkeep.
    pub wait: Duration,
    /// Hash functions evaluated.
    pub n_hashes: u64,
    /// Buckets read.
    pub n_buckets: u64,
    /// Labels found, before those that come twice and own positives are removed.
    pub n_found: u64,
    /// Queries that found nothing and were given uniform negatives.
    pub n_empty: u64,
    /// Labels that have changed and are not followed yet.
    pub n_stale: u64,
    /// Labels that were hashed anew after the step before.
    pub n_rehashed: u64,
    /// Time for comparing keys with those of the rows as they are: now and then, of some labels.
    pub check: Duration,
    /// Keys compared.
    pub n_checked: u64,
    /// Keys that were others than those of the rows.
    pub n_other: u64,
    /// Vectors, and labels hashed anew, without a value other than 0: their keys say nothing.
    pub n_zero: u64,
}
