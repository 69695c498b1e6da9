//! Labels that share a key with the instance, or with its true labels.
//!
//! ```text
//!   rows of labels, biases ──▶ keys ──▶ L tables ◀── upkeep ◀── rows that changed
//!                                          │
//!   embedding: keys of (vector, 1)     ──▶ │ ──▶ union of buckets, without own positives,
//!   label: stored keys of true labels  ──▶ │     up to C, in a rotation by instance and epoch
//! ```
//!
//! If no query reaches a limit, label i is found with probability pi = 1 - (1 - p^K)^L over the
//! draw of the hash functions, where p is the probability that a code of its row and of the query
//! agree: theorems 1 and 2 of `[daghaghi2021tale]`. With a limit the true probability is lower;
//! with weights that changed since they were hashed it differs. Weights of 1 / pi use the closed
//! form in any case, and take the instances of a shared list as independent. A
//! [`Mixture`](super::Mixture) is unbiased without it.

mod inclusion;
mod params;
mod state;

pub use params::LshParams;

use super::error::{SampleError, rows};
use super::lists::{List, Who, own_lists};
use super::subset::subset_outside;
use super::{
    Candidates, LabelWeights, Lists, Queries, SampleCost, Sampler, SamplerData, SamplerParamsError, Weighting,
};
use crate::{Step, StepError};
use inclusion::{Inclusion, push_rows};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;
use xc_dense::DenseRows;
use xc_hash::stream::Stream;
use xc_lsh::tables::{BatchFound, By, Query, QueryLimits, Tables};
use xc_lsh::upkeep::{RebuildSchedule, Upkeep, UpkeepCounts};
use xc_lsh::{Family, HashError, KeyScratch, Keys, Probes};

/// Rows that are gathered and hashed at a time.
const ROWS_AT_A_TIME: usize = 1 << 14;

/// Steps between two checks of stored keys, and the number of labels checked.
const CHECK_EVERY: u64 = 100;
const CHECKED: usize = 256;

/// What the tables are queried with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LshBy {
    /// The instance's vector.
    Embedding,
    /// The stored keys of its true labels, which need no hashing.
    Label,
}

/// Candidates from tables of the labels' rows; see the [samplers](super).
///
/// An instance that finds nothing (or, by label, has no true label) gets C uniform labels instead;
/// such instances are counted. Tables are built at the first step. Checkpoints contain their keys
/// and the state of their upkeep.
#[derive(Debug)]
pub struct Lsh {
    by: LshBy,
    params: LshParams,
    lists: Lists,
    weighting: Weighting,
    n_labels: usize,
    family: Arc<dyn Family>,
    inclusion: Option<Arc<Inclusion>>,
    built: OnceLock<Built>,
    buffers: Mutex<Buffers>,
}

/// Tables of all labels.
#[derive(Clone, Debug)]
struct Built {
    tables: Tables,
    upkeep: Upkeep,
    /// The work of upkeep after the last step.
    done: UpkeepCounts,
}

/// Buffers that are reused from step to step.
#[derive(Debug, Default)]
struct Buffers {
    vectors: Vec<f32>,
    keys: Vec<u32>,
    found: BatchFound,
    scratch: KeyScratch,
    probes: Probes,
}

impl Clone for Lsh {
    fn clone(&self) -> Self {
        Self {
            family: Arc::clone(&self.family),
            inclusion: self.inclusion.clone(),
            built: self.built.clone(),
            buffers: Mutex::default(),
            ..*self
        }
    }
}

impl Lsh {
    /// Tables of the labels that `data` counts, for vectors of its width.
    ///
    /// # Errors
    /// Parameters out of range; a family that is not supported; keys that are too long.
    pub fn new(by: LshBy, params: LshParams, data: &SamplerData<'_>) -> Result<Self, SamplerParamsError> {
        params.check()?;
        let n_labels = data.counts.len();
        let family: Arc<dyn Family> = Arc::from(params.family(n_labels, data.width, data.seed)?.build()?);
        Ok(Self {
            by,
            params,
            lists: Lists::Shared,
            weighting: Weighting::None,
            n_labels,
            family,
            inclusion: None,
            built: OnceLock::new(),
            buffers: Mutex::default(),
        })
    }

    /// One list per batch with the candidates of all instances, or one per instance.
    pub fn with_lists(self, lists: Lists) -> Self {
        Self { lists, ..self }
    }

    /// How a label of a list is weighted; the paper uses [`Weighting::None`].
    ///
    /// # Errors
    /// [`SamplerParamsError::Chances`]: all others use the probability that a label is found, which
    /// is known for SimHash only.
    pub fn with_weighting(self, weighting: Weighting) -> Result<Self, SamplerParamsError> {
        self.params.check_weighting(weighting)?;
        let inclusion = weighting.uses_chances().then(|| Arc::new(Inclusion::new(self.family.params())));
        Ok(Self { weighting, inclusion, ..self })
    }

    /// The tables, once a step has built them.
    pub fn tables(&self) -> Option<&Tables> {
        self.built.get().map(|built| &built.tables)
    }

    /// The tables; they are built from the current weights if there are none yet.
    fn built(&self, weights: LabelWeights<'_>) -> Result<&Built, SampleError> {
        if let Some(built) = self.built.get() {
            return Ok(built);
        }
        let n_tables = self.family.params().n_tables as usize;
        let (mut keys, mut all) = (Keys::new(n_tables), Vec::with_capacity(self.n_labels * n_tables));
        let (mut values, mut scratch) = (Vec::new(), KeyScratch::default());
        for first in (0..self.n_labels).step_by(ROWS_AT_A_TIME) {
            let labels: Vec<u32> = (first as u32..self.n_labels.min(first + ROWS_AT_A_TIME) as u32).collect();
            values.clear();
            push_rows(weights, &labels, &mut values);
            let block = DenseRows::new(&values, weights.width() + 1);
            let hashed = self.family.keys_dense(block, &mut keys, &mut scratch);
            hashed.map_err(|error| SampleError::Weights { label: first as u32 + row_of(&error) })?;
            all.extend_from_slice(keys.as_slice());
        }
        let tables = Tables::of_keys(self.family.key_bits(), Keys::from_rows(n_tables, all));
        let upkeep = Upkeep::new(self.params.schedule, self.n_labels);
        Ok(self.built.get_or_init(|| Built { tables, upkeep, done: UpkeepCounts::default() }))
    }

    /// Keys of all instances, `probes` per table.
    fn hash(&self, queries: Queries<'_>, buffers: &mut Buffers) -> Result<(), SampleError> {
        let Buffers { vectors, keys, scratch, probes, .. } = buffers;
        let vector = |error: HashError| SampleError::Vector { instance: queries.instances[row_of(&error) as usize] };
        let width = queries.vectors.width() + 1;
        vectors.clear();
        for row in queries.vectors.iter() {
            vectors.extend_from_slice(row);
            vectors.push(1.0);
        }
        keys.clear();
        if self.params.probes == 1 {
            let mut all = Keys::new(self.family.params().n_tables as usize);
            self.family.keys_dense(DenseRows::new(vectors, width), &mut all, scratch).map_err(vector)?;
            keys.extend_from_slice(all.as_slice());
            return Ok(());
        }
        for (row, &instance) in vectors.chunks_exact(width).zip(queries.instances) {
            let found = probes.find(&*self.family, row, self.params.probes as usize, scratch);
            found.map_err(|_| SampleError::Vector { instance })?;
            (0..self.family.params().n_tables as usize).for_each(|table| keys.extend_from_slice(probes.keys(table)));
        }
        Ok(())
    }

    /// Queries the tables for every instance.
    fn ask(
        &self,
        at: Step,
        queries: Queries<'_>,
        tables: &Tables,
        buffers: &mut Buffers,
    ) -> Result<SampleCost, SampleError> {
        let (begin, n) = (Instant::now(), queries.instances.len());
        let mut cost = SampleCost::default();
        if self.by == LshBy::Embedding {
            self.hash(queries, buffers)?;
            cost.n_hashes = n as u64 * self.family.params().codes() as u64;
            cost.n_zero = queries.vectors.iter().filter(|row| row.iter().all(|&v| v == 0.0)).count() as u64;
        }
        cost.hash = begin.elapsed();
        let Buffers { keys, found, .. } = buffers;
        let per_query = keys.len() / n.max(1);
        let limits = QueryLimits { candidates: self.params.candidates, per_bucket: self.params.per_bucket };
        let counts = tables.query_many(n, limits, found, |i| {
            let own = queries.targets.row(i);
            let by = match self.by {
                LshBy::Embedding => By::Keys(&keys[i * per_query..][..per_query]),
                LshBy::Label => By::Items(own),
            };
            Query { by, turn: Who::Lsh.of_instance(at, queries.instances[i]), excluded: own }
        });
        cost.n_buckets = counts.buckets as u64;
        cost.n_found = counts.entries as u64;
        cost.n_empty = counts.empty as u64;
        cost.query = begin.elapsed() - cost.hash;
        Ok(cost)
    }

    /// Appends what represents an instance in comparisons with labels, normalised: its vector, or
    /// the rows of its true labels.
    fn push_likened(&self, queries: Queries<'_>, place: usize, weights: LabelWeights<'_>, to: &mut Vec<f32>) {
        let begin = to.len();
        match self.by {
            LshBy::Embedding => {
                to.extend_from_slice(queries.vectors.row(place));
                to.push(1.0);
            }
            LshBy::Label => push_rows(weights, queries.targets.row(place), to),
        }
        to[begin..].chunks_exact_mut(weights.width() + 1).for_each(Inclusion::normalise);
    }

    /// Appends the weight and log q of labels in a list for some instances, from the probability
    /// that at least one of these finds them.
    fn correct(
        &self,
        queries: Queries<'_>,
        places: Range<usize>,
        weights: LabelWeights<'_>,
        labels: &[u32],
        out: &mut Vec<(f32, f32)>,
    ) {
        let Some(inclusion) = &self.inclusion else {
            out.extend(labels.iter().map(|_| self.weighting.of(1.0)));
            return;
        };
        let (mut likened, mut chances) = (Vec::new(), Vec::new());
        places.for_each(|place| self.push_likened(queries, place, weights, &mut likened));
        inclusion.chances(&likened, weights, labels, &mut chances);
        out.extend(chances.iter().map(|&chance| self.weighting.of(chance)));
    }

    /// C uniform labels for an instance that found none, with their weight and log q.
    fn uniform(&self, at: Step, queries: Queries<'_>, place: usize) -> (Vec<u32>, (f32, f32)) {
        let (labels, own) = (0..self.n_labels as u32, queries.targets.row(place));
        let mut random = Stream::new(Who::Lsh.of_instance(at, queries.instances[place]));
        let mut drawn = Vec::new();
        subset_outside(&labels, own, self.params.candidates, &mut random, &mut drawn);
        let chance = drawn.len() as f64 / (self.n_labels - own.len()).max(1) as f64;
        (drawn, self.weighting.of(chance))
    }

    fn sample_shared(&self, at: Step, queries: Queries<'_>, weights: LabelWeights<'_>, found: &BatchFound) -> List {
        let (mut list, mut drawn) = (List::default(), Vec::new());
        for place in 0..found.len() {
            match found.list(place) {
                [] => drawn.push(self.uniform(at, queries, place)),
                labels => list.labels.extend_from_slice(labels),
            }
        }
        list.labels.sort_unstable();
        list.labels.dedup();
        self.correct(queries, 0..found.len(), weights, &list.labels, &mut list.corrections);
        if drawn.is_empty() {
            return list;
        }
        // A label that was both found and drawn has the weight of a found one.
        let mut all: Vec<(u32, (f32, f32))> = list.labels.into_iter().zip(list.corrections).collect();
        drawn.iter().for_each(|(labels, correction)| all.extend(labels.iter().map(|&label| (label, *correction))));
        all.sort_by_key(|&(label, _)| label);
        all.dedup_by_key(|&mut (label, _)| label);
        let (labels, corrections) = all.into_iter().unzip();
        List { labels, corrections }
    }
}

/// The row of the value that is not finite.
fn row_of(error: &HashError) -> u32 {
    if let HashError::NotFinite { row, .. } = *error { row as u32 } else { 0 }
}

impl Sampler for Lsh {
    /// # Panics
    /// If the labels or the vectors do not match those that the tables were built for.
    fn sample(
        &self,
        at: Step,
        queries: Queries<'_>,
        weights: Option<LabelWeights<'_>>,
        labels: Range<u32>,
        out: &mut Candidates,
    ) -> Result<(), StepError> {
        let weights = rows(weights, &labels)?;
        assert!(labels == (0..self.n_labels as u32), "labels {labels:?}, tables of {}", self.n_labels);
        let Built { tables, upkeep, done } = self.built(weights)?;
        let mut buffers = self.buffers.lock().unwrap_or_else(PoisonError::into_inner);
        let mut cost = self.ask(at, queries, tables, &mut buffers)?;
        let (begin, found) = (Instant::now(), &buffers.found);
        match self.lists {
            Lists::Shared => self.sample_shared(at, queries, weights, found).end(out),
            Lists::Own => own_lists(found.len(), out, |place, list| {
                match found.list(place) {
                    [] => {
                        let (drawn, correction) = self.uniform(at, queries, place);
                        list.corrections.resize(drawn.len(), correction);
                        list.labels = drawn;
                    }
                    labels => {
                        list.labels.extend_from_slice(labels);
                        list.labels.sort_unstable();
                        self.correct(queries, place..place + 1, weights, &list.labels, &mut list.corrections);
                    }
                }
                Ok(())
            })?,
        }
        cost.query += begin.elapsed();
        if (at.number + 1).is_multiple_of(CHECK_EVERY) {
            let begin = Instant::now();
            let gather = |items: &[u32], to: &mut Vec<f32>| push_rows(weights, items, to);
            let found = upkeep
                .staleness(at.number, CHECKED, tables, &*self.family, gather)
                .map_err(|error| SampleError::Weights { label: row_of(&error) })?;
            (cost.n_checked, cost.n_other) = (found.n_keys as u64, found.n_stale as u64);
            cost.check = begin.elapsed();
        }
        cost.n_stale = done.queue as u64;
        cost.n_rehashed = done.hashed as u64;
        cost.n_zero += done.n_zero as u64;
        *out.cost_mut() += cost;
        Ok(())
    }

    fn changed(
        &mut self,
        at: Step,
        _: Queries<'_>,
        labels: &[u32],
        moved: &[f32],
        weights: Option<LabelWeights<'_>>,
    ) -> Result<(), StepError> {
        let Some(Built { tables, upkeep, done }) = self.built.get_mut() else { return Ok(()) };
        let weights = rows(weights, &(0..self.n_labels as u32))?;
        let mut buffer = Vec::new();
        for (i, &label) in labels.iter().enumerate() {
            match self.params.schedule {
                RebuildSchedule::Rebuild { .. } => break,
                RebuildSchedule::Immediate { .. } => upkeep.note(label, 0.0, 0.0),
                RebuildSchedule::Drift { .. } => {
                    // A label is due if it is not known how far it moved.
                    let moved = moved.get(i).copied().unwrap_or(f32::INFINITY);
                    let squares: f32 = weights.row(label, &mut buffer).iter().map(|v| v * v).sum();
                    upkeep.note(label, moved, (squares + weights.bias(label).powi(2)).sqrt());
                }
            }
        }
        let gather = |items: &[u32], to: &mut Vec<f32>| push_rows(weights, items, to);
        *done = upkeep
            .work(at.number, tables, &*self.family, gather)
            .map_err(|error| SampleError::Weights { label: row_of(&error) })?;
        Ok(())
    }

    fn wants_moved(&self) -> bool {
        matches!(self.params.schedule, RebuildSchedule::Drift { .. })
    }

    fn knows_log_q(&self) -> bool {
        self.weighting.uses_chances()
    }

    fn log_q(
        &self,
        _: Step,
        queries: Queries<'_>,
        weights: Option<LabelWeights<'_>>,
        labels: Range<u32>,
        list: usize,
        wanted: &[u32],
        out: &mut Vec<f32>,
    ) -> Result<(), StepError> {
        let places = match self.lists {
            Lists::Shared => 0..queries.instances.len(),
            Lists::Own => list..list + 1,
        };
        let mut corrections = Vec::new();
        self.correct(queries, places, rows(weights, &labels)?, wanted, &mut corrections);
        out.clear();
        out.extend(corrections.iter().map(|&(_, log_q)| log_q));
        Ok(())
    }

    fn clone_box(&self) -> Box<dyn Sampler> {
        Box::new(self.clone())
    }
}
