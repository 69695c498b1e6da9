//! Queries: from keys to candidates.

use super::Tables;
use std::ops::{AddAssign, Range};
use xc_hash::stream::mix64;
use xc_sparse::simd::prefetch;

/// Buckets that are asked for together.
const WAVE: usize = 64;

/// What is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Query<'a> {
    /// Its keys.
    pub by: By<'a>,
    /// Another number for each query: where a limit ends a query, `turn` says which part of it is
    /// done. See [`Tables::query`].
    pub turn: u64,
    /// Items that are not wanted.
    pub excluded: &'a [u32],
}

/// Where the keys of a query come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By<'a> {
    /// From its row: one key a table, or p of [`Probes`](crate::Probes) for each table together.
    Keys(&'a [u32]),
    /// From the tables: the keys that they hold of these items. The items take turns in coming first.
    Items(&'a [u32]),
}

/// How much a query takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most candidates, C.
    pub candidates: usize,
    /// Most items of a bucket.
    pub per_bucket: usize,
}

impl Limits {
    /// Everything.
    pub const NONE: Self = Self { candidates: usize::MAX, per_bucket: usize::MAX };
}

/// What queries read and found; counts of several queries add up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueryCounts {
    /// Queries.
    pub queries: usize,
    /// Buckets read.
    pub buckets: usize,
    /// Items of buckets read: candidates before duplicates and excluded items are removed.
    pub entries: usize,
    /// Candidates found.
    pub candidates: usize,
    /// Buckets that had more items than were taken.
    pub cut_buckets: usize,
    /// Queries that ended at the limit of candidates.
    pub capped: usize,
    /// Queries that found nothing.
    pub empty: usize,
}

impl AddAssign for QueryCounts {
    fn add_assign(&mut self, other: Self) {
        self.queries += other.queries;
        self.buckets += other.buckets;
        self.entries += other.entries;
        self.candidates += other.candidates;
        self.cut_buckets += other.cut_buckets;
        self.capped += other.capped;
        self.empty += other.empty;
    }
}

/// Buffers of a query: one bit an item, and what a wave asks for.
#[derive(Clone, Debug, Default)]
pub struct QueryScratch {
    seen: Vec<u64>,
    probes: Vec<(u32, u32)>,
    buckets: Vec<Range<usize>>,
}

impl QueryScratch {
    /// Notes an item; false if it was noted before.
    #[inline(always)]
    fn see(&mut self, item: u32) -> bool {
        let (word, bit) = (&mut self.seen[item as usize / 64], 1u64 << (item % 64));
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    fn forget(&mut self, items: &[u32]) {
        items.iter().for_each(|&item| self.seen[item as usize / 64] = 0);
    }
}

impl Tables {
    /// Items that share a key with a query, each once, without the excluded ones. They replace what is in
    /// `found`, in the order of finding.
    ///
    /// The tables are read cyclically from one that the query's turn chooses, and so is a bucket that has
    /// too many items, so that over many turns each table comes first, and each item of a bucket is
    /// taken, equally often.
    ///
    /// *Cost*: two cache misses a bucket, those of 64 buckets overlapping, and one an overflow.
    ///
    /// # Panics
    /// If there are not equally many keys for each table, a key is too large, or there is no such item.
    pub fn query(
        &self,
        query: Query<'_>,
        limits: Limits,
        scratch: &mut QueryScratch,
        found: &mut Vec<u32>,
    ) -> QueryCounts {
        // All that may be wrong is found before a bit is set.
        let n_probes = match query.by {
            By::Keys(keys) => {
                let n_probes = keys.len() / self.n_tables;
                assert!(n_probes * self.n_tables == keys.len(), "{} keys for {} tables", keys.len(), self.n_tables);
                keys.iter().for_each(|&key| assert!(key < 1 << self.key_bits, "key {key} of {} bits", self.key_bits));
                n_probes
            }
            By::Items(items) => {
                items.iter().for_each(|&item| self.check_item(item));
                items.len()
            }
        };
        query.excluded.iter().for_each(|&item| self.check_item(item));
        found.clear();
        scratch.seen.resize(self.n_items.div_ceil(64), 0);
        query.excluded.iter().for_each(|&item| _ = scratch.see(item));
        let mut counts = QueryCounts { queries: 1, ..QueryCounts::default() };
        let turn = mix64(query.turn);
        let first = scaled(turn, self.n_tables);
        let tables_at_a_time = (WAVE / n_probes.max(1)).max(1);
        for wave in (0..self.n_tables).step_by(tables_at_a_time) {
            if found.len() >= limits.candidates {
                break;
            }
            scratch.probes.clear();
            for at in wave..self.n_tables.min(wave + tables_at_a_time) {
                let table = if first + at < self.n_tables { first + at } else { first + at - self.n_tables };
                self.probes(table, query.by, turn, n_probes, &mut scratch.probes);
            }
            self.read_wave(turn, limits, &mut counts, scratch, found);
        }
        counts.candidates = found.len();
        counts.capped = usize::from(found.len() >= limits.candidates);
        counts.empty = usize::from(found.is_empty());
        scratch.forget(found);
        scratch.forget(query.excluded);
        counts
    }

    fn check_item(&self, item: u32) {
        assert!((item as usize) < self.n_items, "item {item} of {}", self.n_items);
    }

    /// Adds the keys that a query has for a table, and asks for the buckets.
    fn probes(&self, table: usize, by: By<'_>, turn: u64, n_probes: usize, probes: &mut Vec<(u32, u32)>) {
        let mut add = |key: u32| {
            prefetch(&self.starts, self.place(table, key));
            if !self.overflow[table].is_empty() {
                self.overflow[table].prefetch(key);
            }
            probes.push((table as u32, key));
        };
        match by {
            By::Keys(keys) => keys[table * n_probes..][..n_probes].iter().for_each(|&key| add(key)),
            By::Items(items) => {
                let first = scaled(mix64(turn ^ !(table as u64)), n_probes);
                let (before, after) = items.split_at(first);
                after.iter().chain(before).for_each(|&item| add(self.keys_of(item)[table]));
            }
        }
    }

    /// Takes what is new of the buckets that `scratch.probes` names.
    fn read_wave(
        &self,
        turn: u64,
        limits: Limits,
        counts: &mut QueryCounts,
        scratch: &mut QueryScratch,
        found: &mut Vec<u32>,
    ) {
        scratch.buckets.clear();
        for &(table, key) in &scratch.probes {
            let bucket = self.bucket(table as usize, key);
            prefetch(&self.ids, bucket.start);
            scratch.buckets.push(bucket);
        }
        for at in 0..scratch.buckets.len() {
            if found.len() >= limits.candidates {
                break;
            }
            let ((table, key), bucket) = (scratch.probes[at], scratch.buckets[at].clone());
            let table = table as usize;
            let late = &self.overflow[table];
            let n = bucket.len() + if late.is_empty() { 0 } else { late.items(key).count() };
            let all = self.ids[bucket].iter().copied().chain(late.items(key));
            let mut take = |item: u32| {
                if found.len() < limits.candidates && scratch.see(item) {
                    found.push(item);
                }
            };
            counts.buckets += 1;
            counts.entries += n.min(limits.per_bucket);
            if n <= limits.per_bucket {
                all.for_each(&mut take);
                continue;
            }
            counts.cut_buckets += 1;
            // Cyclically from a place that follows from the turn and the table.
            let begin = scaled(mix64(turn ^ table as u64), n);
            let wrapped = (begin + limits.per_bucket).saturating_sub(n);
            let taken = |at: usize| (at >= begin && at < begin + limits.per_bucket) || at < wrapped;
            all.enumerate().filter(|&(at, _)| taken(at)).for_each(|(_, item)| take(item));
        }
    }
}

/// A number below `n`, or 0 where that is 0.
fn scaled(random: u64, n: usize) -> usize {
    (((random >> 32) * n as u64) >> 32) as usize
}
