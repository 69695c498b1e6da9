//! Queries: from keys to candidates.

use super::Tables;
use std::ops::AddAssign;
use xc_buffer::simd::prefetch;
use xc_hash::stream::mix64;

/// Buckets that are asked for together.
const WAVE: usize = 64;

/// Entries of a cache line.
const LINE: usize = 16;

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
    /// From its row: one key a table, or p of [`Probes`](crate::Probes) for each table together. A
    /// key of [`NO_KEY`] asks for nothing.
    Keys(&'a [u32]),
    /// From the tables: the keys that they hold of these items. The items take turns in coming
    /// first.
    Items(&'a [u32]),
}

/// Stands for a key that a query does not have.
pub const NO_KEY: u32 = u32::MAX;

/// How much a query takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueryLimits {
    /// Most candidates, C.
    pub candidates: usize,
    /// Most items of a bucket.
    pub per_bucket: usize,
}

impl QueryLimits {
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
    /// First entry and length.
    buckets: Vec<(usize, u32)>,
}

impl Tables {
    /// Items that share a key with a query, each once, without the excluded ones. They replace what
    /// is in `found`, in the order of finding.
    ///
    /// The tables are read cyclically from one that the query's turn chooses, and so is a bucket
    /// that has too many items, so that over many turns each table comes first, and each item of a
    /// bucket is taken, equally often.
    ///
    /// *Cost*: two cache misses a bucket, those of 64 buckets overlapping, and one an overflow.
    ///
    /// # Panics
    /// If there are not equally many keys for each table, a key is too large, or there is no such
    /// item.
    pub fn query(
        &self,
        query: Query<'_>,
        limits: QueryLimits,
        scratch: &mut QueryScratch,
        found: &mut Vec<u32>,
    ) -> QueryCounts {
        // All that may be wrong is found before a bit is set.
        let n_probes = match query.by {
            By::Keys(keys) => {
                let n_probes = keys.len() / self.n_tables;
                assert!(n_probes * self.n_tables == keys.len(), "{} keys for {} tables", keys.len(), self.n_tables);
                let is_key = |key: u32| key < 1 << self.key_bits || key == NO_KEY;
                keys.iter().for_each(|&key| assert!(is_key(key), "key {key} of {} bits", self.key_bits));
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
        query.excluded.iter().for_each(|&item| _ = see(&mut scratch.seen, item));
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
        found.iter().chain(query.excluded).for_each(|&item| scratch.seen[item as usize / 64] = 0);
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
            By::Keys(keys) => {
                keys[table * n_probes..][..n_probes].iter().filter(|&&key| key != NO_KEY).for_each(|&key| add(key));
            }
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
        limits: QueryLimits,
        counts: &mut QueryCounts,
        scratch: &mut QueryScratch,
        found: &mut Vec<u32>,
    ) {
        let QueryScratch { seen, probes, buckets } = scratch;
        let (starts, ids): (&[u32], &[u32]) = (&self.starts, &self.ids);
        buckets.clear();
        let mut n_entries = 0;
        for &(table, key) in &*probes {
            let at = self.place(table as usize, key);
            let (start, len) = (table as usize * self.n_items + starts[at] as usize, starts[at + 1] - starts[at]);
            // All lines of what will be read: the machine foresees none of so short a run.
            let end = start + (len as usize).min(limits.per_bucket);
            (start..end).step_by(LINE).for_each(|at| prefetch(ids, at));
            prefetch(ids, end.max(1) - 1);
            n_entries += end - start;
            buckets.push((start, len));
        }
        let mut n = found.len();
        // One more than there may be: an item that is known already is written, and overwritten.
        found.resize((n + n_entries).min(limits.candidates) + 1, 0);
        for (&(table, key), &(start, len)) in probes.iter().zip(&*buckets) {
            let (late, len) = (&self.overflow[table as usize], len as usize);
            counts.buckets += 1;
            let fits = n + len <= limits.candidates && n + len < found.len();
            if late.is_empty() && len <= limits.per_bucket && fits {
                counts.entries += len;
                n = add_new(ids[start..start + len].iter().copied(), seen, found, n);
                continue;
            }
            let all = || ids[start..start + len].iter().copied().chain(late.items(key));
            let len = len + late.items(key).count();
            let taken = len.min(limits.per_bucket);
            // Cyclically from a place that follows from the turn and the table.
            let begin = if taken < len { scaled(mix64(turn ^ u64::from(table)), len) } else { 0 };
            counts.cut_buckets += usize::from(taken < len);
            counts.entries += taken;
            found.resize(found.len().max(n + taken + 1), 0);
            n = add_new(all().skip(begin).chain(all().take(begin)).take(taken), seen, found, n);
            if n >= limits.candidates {
                found[limits.candidates..n].iter().for_each(|&item| seen[item as usize / 64] = 0);
                n = limits.candidates;
                break;
            }
        }
        found.truncate(n);
    }
}

/// Writes new items from `found[n]` on; gives the place after them.
#[inline(always)]
fn add_new(items: impl Iterator<Item = u32>, seen: &mut [u64], found: &mut [u32], mut n: usize) -> usize {
    for item in items {
        found[n] = item;
        n += usize::from(see(seen, item));
    }
    n
}

/// Notes an item; false if it was noted before.
#[inline(always)]
fn see(seen: &mut [u64], item: u32) -> bool {
    let word = &mut seen[item as usize / 64];
    let is_new = *word >> (item % 64) & 1 == 0;
    *word |= 1 << (item % 64);
    is_new
}

/// A number below `n`, or 0 where that is 0.
fn scaled(random: u64, n: usize) -> usize {
    (((random >> 32) * n as u64) >> 32) as usize
}
