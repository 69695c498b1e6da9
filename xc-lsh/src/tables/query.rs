//! Queries: from keys to candidates.

use super::Tables;
use std::ops::Range;
use xc_hash::stream::mix64;
use xc_sparse::simd::prefetch;

/// Tables whose buckets are asked for together.
const WAVE: usize = 64;

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

/// What a query read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueryCounts {
    /// Buckets read.
    pub buckets: usize,
    /// Entries of buckets read.
    pub entries: usize,
    /// Candidates found.
    pub candidates: usize,
}

/// Buffers of a query: one bit an item, and the buckets of a wave.
#[derive(Clone, Debug, Default)]
pub struct QueryScratch {
    seen: Vec<u64>,
    buckets: Vec<(usize, u32, Range<usize>)>,
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
    /// Items that share a key with a query, each once, without those of `excluded`. They replace what is
    /// in `found`, in the order of finding.
    ///
    /// `keys` are the query's, one a table, or p of [`Probes`](crate::Probes) for each table together. Where a limit
    /// ends the search, `turn` says which part of it is done: it should be another number for each
    /// query. The tables are read cyclically from one that it chooses, and so is a bucket that has too
    /// many items, so that over many turns each table comes first, and each item of a bucket is taken,
    /// equally often.
    ///
    /// *Cost*: two cache misses a table, those of 64 tables overlapping, and one an overflow.
    ///
    /// # Panics
    /// If there are not equally many keys for each table, a key is too large, or there is no such excluded
    /// item.
    pub fn query(
        &self,
        keys: &[u32],
        turn: u64,
        limits: Limits,
        excluded: &[u32],
        scratch: &mut QueryScratch,
        found: &mut Vec<u32>,
    ) -> QueryCounts {
        let n_probes = keys.len() / self.n_tables;
        assert!(n_probes * self.n_tables == keys.len(), "{} keys for {} tables", keys.len(), self.n_tables);
        // All that may be wrong is found before a bit is set.
        keys.iter().for_each(|&key| assert!(key < 1 << self.key_bits, "key {key} of {} bits", self.key_bits));
        excluded.iter().for_each(|&item| assert!((item as usize) < self.n_items, "item {item} of {}", self.n_items));
        found.clear();
        scratch.seen.resize(self.n_items.div_ceil(64), 0);
        excluded.iter().for_each(|&item| _ = scratch.see(item));
        let mut counts = QueryCounts::default();
        let turn = mix64(turn);
        let first = (((turn >> 32) * self.n_tables as u64) >> 32) as usize;
        let width = (1 << self.key_bits) + 1;
        for wave in (0..self.n_tables).step_by(WAVE) {
            if found.len() >= limits.candidates {
                break;
            }
            let tables = wave..self.n_tables.min(wave + WAVE);
            let tables =
                tables.map(|at| if first + at < self.n_tables { first + at } else { first + at - self.n_tables });
            let probes = |table: usize| keys[table * n_probes..][..n_probes].iter().map(move |&key| (table, key));
            for (table, key) in tables.clone().flat_map(probes) {
                prefetch(&self.starts, table * width + key as usize);
            }
            scratch.buckets.clear();
            for (table, key) in tables.flat_map(probes) {
                let bucket = self.bucket(table, key);
                prefetch(&self.ids, bucket.start);
                scratch.buckets.push((table, key, bucket));
            }
            for at in 0..scratch.buckets.len() {
                if found.len() >= limits.candidates {
                    break;
                }
                let (table, key, bucket) = scratch.buckets[at].clone();
                counts.buckets += 1;
                counts.entries += self.read(table, key, &self.ids[bucket], turn, limits, scratch, found);
            }
        }
        counts.candidates = found.len();
        scratch.forget(found);
        scratch.forget(excluded);
        counts
    }

    /// Takes what is new of a bucket; gives the entries read.
    #[expect(clippy::too_many_arguments, reason = "the inside of a loop")]
    fn read(
        &self,
        table: usize,
        key: u32,
        bucket: &[u32],
        turn: u64,
        limits: Limits,
        scratch: &mut QueryScratch,
        found: &mut Vec<u32>,
    ) -> usize {
        let (late, n_late) = match self.overflow[table].len() {
            0 => (None, 0),
            _ => (Some(self.overflow[table].items(key)), self.overflow[table].items(key).count()),
        };
        let n = bucket.len() + n_late;
        let all = bucket.iter().copied().chain(late.into_iter().flatten());
        let mut take = |item: u32| {
            if found.len() < limits.candidates && scratch.see(item) {
                found.push(item);
            }
        };
        if n <= limits.per_bucket {
            all.for_each(&mut take);
            return n;
        }
        // Cyclically from a place that follows from the turn and the table.
        let begin = (((mix64(turn ^ table as u64) >> 32) * n as u64) >> 32) as usize;
        let wrapped = (begin + limits.per_bucket).saturating_sub(n);
        let taken = |at: usize| (at >= begin && at < begin + limits.per_bucket) || at < wrapped;
        all.enumerate().filter(|&(at, _)| taken(at)).for_each(|(_, item)| take(item));
        limits.per_bucket
    }
}
