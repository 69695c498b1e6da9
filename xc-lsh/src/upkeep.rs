//! Keeping tables up to date with changing rows: which items are rehashed, and when.
//!
//! ```text
//!   rows change ──▶ Upkeep::note ──▶ queue ──▶ Upkeep::work ──▶ Tables::update   some items a step
//!                                                          └──▶ Tables::sort     one table every few steps
//! ```
//!
//! | schedule | items hashed in a step | keys are as old as |
//! |---|---|---|
//! | [`RebuildSchedule::Rebuild`] | none, or all | the time since the last rebuild |
//! | [`RebuildSchedule::Immediate`] | all that changed | 0 |
//! | [`RebuildSchedule::Drift`] | at most `per_step` of those that moved far enough | a share of the row's length |
//!
//! ```
//! use xc_lsh::tables::Tables;
//! use xc_lsh::upkeep::{RebuildSchedule, Upkeep};
//! use xc_lsh::{FamilyKind, KeyScratch, TableSizing};
//! use xc_dense::DenseRows;
//!
//! let mut weights: Vec<f32> = (0..100 * 8).map(|i| ((i * 31) % 101) as f32 - 50.0).collect();
//! let family = TableSizing::try_new(100, 5, 10.0, FamilyKind::Wta { bin: 4 }, 8)?.params(1).build()?;
//! let mut tables = Tables::of_dense(&*family, DenseRows::new(&weights, 8), &mut KeyScratch::default())?;
//! let mut upkeep = Upkeep::new(RebuildSchedule::Drift { share: 0.05, per_step: 10, sort_every: 4 }, 100);
//!
//! // A step turns row 3 round, and hardly moves row 4.
//! weights[3 * 8..4 * 8].iter_mut().for_each(|w| *w = -*w);
//! upkeep.note(3, 200.0, 100.0);
//! upkeep.note(4, 0.1, 100.0);
//! let done = upkeep.work(0, &mut tables, &*family, |items, rows| {
//!     items.iter().for_each(|&item| rows.extend_from_slice(&weights[item as usize * 8..][..8]));
//! })?;
//! assert_eq!((done.hashed, done.queue), (1, 0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The schedule of increasingly rare rebuilds is that of `[chen2020slide]`.

use crate::family::{Family, HashError};
use crate::keys::Keys;
use crate::scratch::KeyScratch;
use crate::tables::Tables;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::VecDeque;
use std::ops::AddAssign;
use thiserror::Error;
use xc_dense::DenseRows;
use xc_hash::stream::{self, Purpose, Stream};

/// Rows that are gathered and hashed at a time while all are.
const ROWS_AT_A_TIME: usize = 1 << 14;

/// When items are rehashed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "upkeep", rename_all = "kebab-case", deny_unknown_fields)]
pub enum RebuildSchedule {
    /// All items after `every` steps, then after intervals that grow by the factor `growth` each time. A
    /// growth of 1 keeps the interval.
    Rebuild {
        /// Steps until the first rebuild.
        every: u64,
        /// From one distance to the next, at least 1.
        growth: f64,
    },
    /// Every item whose row changed, in the same step; one table is sorted every `sort_every`
    /// steps.
    Immediate {
        /// Steps from one sorted table to the next; 0: tables are never sorted.
        sort_every: u64,
    },
    /// Items that have moved by more than `share` of their length since they were hashed, in the order
    /// in which they did so.
    Drift {
        /// Sum of the lengths of the changes over the length of the row.
        share: f32,
        /// Most items hashed in a step.
        per_step: usize,
        /// Steps from one sorted table to the next; 0: tables are never sorted.
        sort_every: u64,
    },
}

/// Counts of the work done; over several steps they add up, and the queue is that of the last step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UpkeepCounts {
    /// Items hashed.
    pub hashed: usize,
    /// Of these, rows without a nonzero value.
    pub n_zero: usize,
    /// Keys that changed and went to the overflow of a table.
    pub changed_keys: usize,
    /// Tables sorted.
    pub sorted_tables: usize,
    /// Items that wait to be hashed.
    pub queue: usize,
}

impl AddAssign for UpkeepCounts {
    fn add_assign(&mut self, other: Self) {
        self.hashed += other.hashed;
        self.n_zero += other.n_zero;
        self.changed_keys += other.changed_keys;
        self.sorted_tables += other.sorted_tables;
        self.queue = other.queue;
    }
}

/// How far keys are behind the rows, on a sample of the items.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Staleness {
    /// Keys looked at.
    pub n_keys: usize,
    /// Those that are not the keys of the row as it is.
    pub n_stale: usize,
    /// Items that wait to be hashed.
    pub queue: usize,
}

impl Staleness {
    /// Stale keys, as a share of those looked at.
    pub fn share(&self) -> f64 {
        self.n_stale as f64 / self.n_keys.max(1) as f64
    }
}

/// The state from which an [`Upkeep`] is restored.
#[derive(Clone, Debug, PartialEq)]
pub struct UpkeepState<'a> {
    /// How far each item has moved since it was hashed.
    pub moved: Cow<'a, [f32]>,
    /// Items that wait, in their order.
    pub queue: Vec<u32>,
    /// The number of rebuilds, the step of the next one, and the table to be sorted next.
    pub counters: [u64; 3],
}

/// Why arrays are not the state of an upkeep.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum UpkeepStateError {
    /// An item that is not there, or waits twice.
    #[error("item {item} in the queue of {n_items} items, expected each at most once")]
    Queue {
        /// The item got.
        item: u32,
        /// Number of items.
        n_items: usize,
    },
    /// A distance that is none.
    #[error("item {item}: moved by {got}, expected a number of at least 0")]
    Moved {
        /// The item.
        item: usize,
        /// The distance got.
        got: f32,
    },
}

/// Keeps tables up to date with the rows that they were built from; see the [module](self).
#[derive(Clone, Debug)]
pub struct Upkeep {
    schedule: RebuildSchedule,
    moved: Vec<f32>,
    queue: VecDeque<u32>,
    is_queued: Vec<bool>,
    n_rebuilds: u64,
    next_rebuild: u64,
    next_sorted: u64,
    buffers: Buffers,
}

#[derive(Debug, Default)]
struct Buffers {
    items: Vec<u32>,
    rows: Vec<f32>,
    scratch: KeyScratch,
}

impl Clone for Buffers {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Upkeep {
    /// Of tables whose `n_items` items have just been hashed.
    ///
    /// # Panics
    /// If the growth of [`RebuildSchedule::Rebuild`] is below 1 or its steps are 0, or the share of
    /// [`RebuildSchedule::Drift`] is negative or no number, or it may hash no item.
    pub fn new(schedule: RebuildSchedule, n_items: usize) -> Self {
        let next_rebuild = match schedule {
            RebuildSchedule::Rebuild { every, growth } => {
                assert!(growth >= 1.0 && every > 0, "rebuilds after {every} steps, growing by {growth}");
                every
            }
            RebuildSchedule::Immediate { .. } => 0,
            RebuildSchedule::Drift { share, per_step, .. } => {
                assert!(share >= 0.0 && per_step > 0, "{per_step} items a step that moved by {share}");
                0
            }
        };
        Self {
            schedule,
            moved: vec![0.0; n_items],
            queue: VecDeque::new(),
            is_queued: vec![false; n_items],
            n_rebuilds: 0,
            next_rebuild,
            next_sorted: 0,
            buffers: Buffers::default(),
        }
    }

    /// The schedule.
    pub fn schedule(&self) -> RebuildSchedule {
        self.schedule
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        let of_items = size_of_val(self.moved.as_slice()) + size_of_val(self.is_queued.as_slice());
        of_items + 4 * (self.queue.capacity() + self.buffers.items.capacity() + self.buffers.rows.capacity())
    }

    /// Notes that the row of an item changed by a vector of length `moved`, and has the length
    /// `length` now.
    ///
    /// # Panics
    /// If there is no such item.
    pub fn note(&mut self, item: u32, moved: f32, length: f32) {
        let at = item as usize;
        assert!(at < self.moved.len(), "item {item} of {}", self.moved.len());
        self.moved[at] += moved.max(0.0);
        let is_due = match self.schedule {
            RebuildSchedule::Rebuild { .. } => false,
            RebuildSchedule::Immediate { .. } => true,
            RebuildSchedule::Drift { share, .. } => self.moved[at] > share * length,
        };
        if is_due && !self.is_queued[at] {
            self.is_queued[at] = true;
            self.queue.push_back(item);
        }
    }

    /// Does what is due after step `step`. `gather` appends the rows of ascending items.
    ///
    /// *Cost*: that of hashing and moving the items, at most `per_step` of [`RebuildSchedule::Drift`], and
    /// of sorting one table; a rebuild hashes all items and sorts all tables.
    ///
    /// # Errors
    /// A value that is not finite, its row by the number of the item. Nothing was changed by the
    /// items hashed together with it; they wait again.
    ///
    /// # Panics
    /// If the tables are not over as many items, or the rows gathered are not theirs.
    pub fn work(
        &mut self,
        step: u64,
        tables: &mut Tables,
        family: &dyn Family,
        mut gather: impl FnMut(&[u32], &mut Vec<f32>),
    ) -> Result<UpkeepCounts, HashError> {
        assert_eq!(tables.n_items(), self.moved.len(), "items of the tables, and of their upkeep");
        let mut counts = UpkeepCounts::default();
        let (per_step, sort_every) = match self.schedule {
            RebuildSchedule::Rebuild { every, growth } => {
                if step + 1 >= self.next_rebuild {
                    self.rebuild(tables, family, &mut gather, &mut counts)?;
                    self.n_rebuilds += 1;
                    let distance = every as f64 * growth.powf(self.n_rebuilds as f64);
                    self.next_rebuild = (step + 1).saturating_add(distance.round() as u64);
                }
                return Ok(counts);
            }
            RebuildSchedule::Immediate { sort_every } => (usize::MAX, sort_every),
            RebuildSchedule::Drift { per_step, sort_every, .. } => (per_step, sort_every),
        };
        self.drain(per_step, tables, family, &mut gather, &mut counts)?;
        if sort_every > 0 && (step + 1).is_multiple_of(sort_every) {
            let table = self.next_sorted as usize % tables.n_tables();
            tables.sort(table..table + 1);
            self.next_sorted = table as u64 + 1;
            counts.sorted_tables = 1;
        }
        counts.queue = self.queue.len();
        Ok(counts)
    }

    fn rebuild(
        &mut self,
        tables: &mut Tables,
        family: &dyn Family,
        gather: &mut dyn FnMut(&[u32], &mut Vec<f32>),
        counts: &mut UpkeepCounts,
    ) -> Result<(), HashError> {
        let n = self.moved.len();
        for first in (0..n).step_by(ROWS_AT_A_TIME) {
            self.buffers.items.clear();
            self.buffers.items.extend(first as u32..n.min(first + ROWS_AT_A_TIME) as u32);
            let keys = self.buffers.keys(family, gather)?;
            counts.n_zero += keys.n_zero();
            tables.overwrite(first, &keys);
        }
        tables.sort(0..tables.n_tables());
        self.moved.fill(0.0);
        counts.hashed += n;
        counts.sorted_tables += tables.n_tables();
        Ok(())
    }

    fn drain(
        &mut self,
        per_step: usize,
        tables: &mut Tables,
        family: &dyn Family,
        gather: &mut dyn FnMut(&[u32], &mut Vec<f32>),
        counts: &mut UpkeepCounts,
    ) -> Result<(), HashError> {
        let n = self.queue.len().min(per_step);
        self.buffers.items.clear();
        self.buffers.items.extend(self.queue.range(..n));
        self.buffers.items.sort_unstable();
        let keys = self.buffers.keys(family, gather)?;
        counts.changed_keys += tables.update(&self.buffers.items, &keys);
        counts.hashed += n;
        counts.n_zero += keys.n_zero();
        for item in self.queue.drain(..n) {
            self.moved[item as usize] = 0.0;
            self.is_queued[item as usize] = false;
        }
        Ok(())
    }

    /// How many keys of `n_sample` random items are not those of their rows. The sample is that of
    /// the step.
    ///
    /// # Errors
    /// A value that is not finite.
    ///
    /// # Panics
    /// As [`Upkeep::work`].
    pub fn staleness(
        &self,
        step: u64,
        n_sample: usize,
        tables: &Tables,
        family: &dyn Family,
        mut gather: impl FnMut(&[u32], &mut Vec<f32>),
    ) -> Result<Staleness, HashError> {
        assert_eq!(tables.n_items(), self.moved.len(), "items of the tables, and of their upkeep");
        let mut stream = Stream::new(stream::name(family.params().seed, Purpose::Lsh, &[crate::family::SAMPLED, step]));
        let n_items = self.moved.len() as u32;
        let mut buffers = Buffers::default();
        buffers.items.extend((0..n_sample.min(n_items as usize)).map(|_| stream.below(n_items)));
        buffers.items.sort_unstable();
        buffers.items.dedup();
        let keys = buffers.keys(family, &mut gather)?;
        let stale = |(at, &item): (usize, &u32)| {
            keys.row(at).iter().zip(tables.keys_of(item)).filter(|(key, held)| key != held).count()
        };
        let n_stale = buffers.items.iter().enumerate().map(stale).sum();
        Ok(Staleness { n_keys: keys.as_slice().len(), n_stale, queue: self.queue.len() })
    }

    /// What has to be kept.
    pub fn state(&self) -> UpkeepState<'_> {
        UpkeepState {
            moved: Cow::Borrowed(&self.moved),
            queue: self.queue.iter().copied().collect(),
            counters: [self.n_rebuilds, self.next_rebuild, self.next_sorted],
        }
    }

    /// The upkeep that [`Upkeep::state`] was taken of.
    ///
    /// # Errors
    /// The arrays are not those of an upkeep.
    ///
    /// # Panics
    /// As [`Upkeep::new`].
    pub fn restore(schedule: RebuildSchedule, state: UpkeepState<'_>) -> Result<Self, UpkeepStateError> {
        let UpkeepState { moved, queue, counters } = state;
        let n_items = moved.len();
        let mut out = Self::new(schedule, n_items);
        if let Some((item, &got)) = moved.iter().enumerate().find(|(_, moved)| moved.is_nan() || **moved < 0.0) {
            return Err(UpkeepStateError::Moved { item, got });
        }
        for &item in &queue {
            match out.is_queued.get_mut(item as usize) {
                Some(queued) if !*queued => *queued = true,
                _ => return Err(UpkeepStateError::Queue { item, n_items }),
            }
        }
        out.moved = moved.into_owned();
        out.queue = queue.into();
        [out.n_rebuilds, out.next_rebuild, out.next_sorted] = counters;
        Ok(out)
    }
}

impl Buffers {
    /// Keys of the items.
    fn keys(&mut self, family: &dyn Family, gather: &mut dyn FnMut(&[u32], &mut Vec<f32>)) -> Result<Keys, HashError> {
        let (width, n) = (family.params().width, self.items.len());
        let mut keys = Keys::new(family.params().n_tables as usize);
        self.rows.clear();
        gather(&self.items, &mut self.rows);
        assert_eq!(self.rows.len(), n * width, "values gathered, and {n} rows of {width}");
        let of_items = family.keys_dense(DenseRows::new(&self.rows, width), &mut keys, &mut self.scratch);
        of_items.map_err(|error| error.of_item(&self.items))?;
        Ok(keys)
    }
}
