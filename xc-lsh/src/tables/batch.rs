//! Many queries, shared by threads.

use super::Tables;
use super::query::{Query, QueryCounts, QueryLimits, QueryScratch};
use rayon::prelude::*;
use xc_buffer::parallel::in_pool;

/// The candidates of many queries, with the buffers of asking: after the first time of a size
/// nothing is allocated.
///
/// ```
/// use xc_lsh::tables::{By, BatchFound, QueryLimits, Query, Tables};
/// use xc_lsh::Keys;
///
/// // Four items in two tables.
/// let tables = Tables::of_keys(1, Keys::from_rows(2, vec![0, 1, 0, 1, 1, 1, 1, 0]));
/// let mut found = BatchFound::default();
/// let labels = [[0u32], [2]];
/// let counts = tables.query_many(2, QueryLimits::NONE, &mut found, |i| Query {
///     by: By::Items(&labels[i]),
///     turn: i as u64,
///     excluded: &labels[i],
/// });
/// assert_eq!(found.len(), 2);
/// let mut of_first = found.list(0).to_vec();
/// of_first.sort_unstable();
/// assert_eq!(of_first, [1, 2]);
/// assert_eq!((counts.queries, counts.buckets, counts.candidates), (2, 4, 5));
/// ```
#[derive(Clone, Debug, Default)]
pub struct BatchFound {
    len: usize,
    /// Queries of a part.
    size: usize,
    parts: Vec<Part>,
}

/// What one thread does.
#[derive(Clone, Debug, Default)]
struct Part {
    items: Vec<u32>,
    /// Where the list of each query ends.
    ends: Vec<usize>,
    counts: QueryCounts,
    found: Vec<u32>,
    scratch: QueryScratch,
}

impl BatchFound {
    /// Number of queries.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True when nothing was asked.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The candidates of query `i`, in the order of finding.
    ///
    /// # Panics
    /// If `i >= len()`.
    pub fn list(&self, i: usize) -> &[u32] {
        assert!(i < self.len, "query {i} of {}", self.len);
        let (part, at) = (&self.parts[i / self.size], i % self.size);
        let start = if at == 0 { 0 } else { part.ends[at - 1] };
        &part.items[start..part.ends[at]]
    }
}

impl Tables {
    /// Answers `n` queries, of which `query` names each. Threads of the pool that the caller is in
    /// share them; the answers are those of [`Tables::query`].
    ///
    /// # Panics
    /// As [`Tables::query`].
    pub fn query_many<'q>(
        &self,
        n: usize,
        limits: QueryLimits,
        found: &mut BatchFound,
        query: impl Fn(usize) -> Query<'q> + Sync,
    ) -> QueryCounts {
        let n_parts = if in_pool() { rayon::current_num_threads().min(n).max(1) } else { 1 };
        let size = n.div_ceil(n_parts).max(1);
        if found.parts.len() < n_parts {
            found.parts.resize_with(n_parts, Part::default);
        }
        (found.len, found.size) = (0, size);
        let ask = |(at, part): (usize, &mut Part)| {
            let Part { items, ends, counts, found, scratch } = part;
            items.clear();
            ends.clear();
            *counts = QueryCounts::default();
            for i in (at * size).min(n)..((at + 1) * size).min(n) {
                *counts += self.query(query(i), limits, scratch, found);
                items.extend_from_slice(found);
                ends.push(items.len());
            }
        };
        let parts = &mut found.parts[..n_parts];
        match n_parts {
            1 => parts.iter_mut().enumerate().for_each(ask),
            _ => parts.par_iter_mut().enumerate().for_each(ask),
        }
        let mut counts = QueryCounts::default();
        parts.iter().for_each(|part| counts += part.counts);
        found.len = n;
        counts
    }
}
