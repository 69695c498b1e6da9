//! Restricting a search to some of the rows.

use crate::graph::whole::Graph;
use crate::search::exact::{exact_among, exact_unless};
use std::sync::OnceLock;
use xc_buffer::Cancel;
use xc_dense::DenseRows;
use xc_sparse::rank::RankedBatch;

/// A graph search for k answers costs about as much as a scan of 40 k vertices, where all pass.
const WALK: usize = 40;
/// With a filter it may take many times as long; so many vertices more are scanned at once. Of more than
/// that, a graph search is tried, which gives way to a scan.
const FILTERED: usize = 3600;

/// Which rows may be answers.
#[derive(Clone, Copy)]
pub enum Filter<'a> {
    /// Bit i % 64 of word i / 64 is row i; rows beyond the last word do not pass.
    Bits(&'a [u64]),
    /// Called once per row and search.
    Test(&'a (dyn Fn(u32) -> bool + Sync)),
}

impl std::fmt::Debug for Filter<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Bits(words) => f.debug_tuple("Bits").field(&words.len()).finish(),
            Self::Test(_) => f.write_str("Test"),
        }
    }
}

impl Filter<'_> {
    pub(crate) fn passes(&self, row: u32) -> bool {
        match self {
            Self::Bits(words) => words.get(row as usize / 64).is_some_and(|word| word >> (row % 64) & 1 == 1),
            Self::Test(test) => test(row),
        }
    }
}

/// Vertices that may be answers.
#[derive(Debug)]
pub(crate) struct Allowed<'a> {
    filter: Option<&'a Filter<'a>>,
    /// All, where there are no bits.
    pub(crate) bits: Option<Vec<u64>>,
    pub(crate) n_vertices: usize,
    list: OnceLock<Vec<u32>>,
}

impl Allowed<'_> {
    /// Whether a row of a vertex that passes does so itself: equal rows are one vertex.
    pub(crate) fn row_passes(&self, row: u32) -> bool {
        self.filter.is_none_or(|filter| filter.passes(row))
    }

    /// Whether rows that can be found may not pass.
    pub(crate) fn is_filtered(&self) -> bool {
        self.filter.is_some()
    }

    /// Whether so few pass that all of them are compared when `k` are wanted.
    pub(crate) fn scans(&self, k: usize) -> bool {
        let filtered = if self.bits.is_some() { FILTERED } else { 0 };
        self.n_vertices < WALK.saturating_mul(k).saturating_add(filtered)
    }

    /// The vertices that pass, ascending.
    pub(crate) fn list(&self) -> &[u32] {
        self.list.get_or_init(|| {
            if self.bits.is_none() {
                return (0..self.n_vertices as u32).collect();
            }
            let bits = self.bits.iter().flat_map(|bits| bits.iter().enumerate());
            bits.flat_map(|(at, &word)| {
                (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| 64 * at as u32 + bit)
            })
            .collect()
        })
    }
}

impl Graph {
    /// The exact answers among the rows that can be found and pass the filter: see [`exact`](fn@crate::exact).
    ///
    /// # Panics
    /// If `rows` or `queries` have another width than the graph, or `rows` lacks rows of it.
    pub fn exact(
        &self,
        rows: DenseRows<'_>,
        queries: DenseRows<'_>,
        k: usize,
        filter: Option<&Filter<'_>>,
    ) -> RankedBatch {
        self.among(rows.len(), filter, |passes| exact_among(rows, queries, self.params.metric, k, passes))
    }

    /// [`Graph::exact`]; `None` where `cancel` asked to stop meanwhile.
    ///
    /// # Panics
    /// As [`Graph::exact`].
    pub fn exact_stoppable(
        &self,
        rows: DenseRows<'_>,
        queries: DenseRows<'_>,
        k: usize,
        filter: Option<&Filter<'_>>,
        cancel: &dyn Cancel,
    ) -> Option<RankedBatch> {
        let metric = self.params.metric;
        let found = self.among(rows.len(), filter, |passes| exact_unless(rows, queries, metric, k, passes, cancel));
        (!cancel.cancelled()).then_some(found)
    }

    /// Does something with the test of rows that can be found and pass the filter.
    fn among<T>(
        &self,
        n_rows: usize,
        filter: Option<&Filter<'_>>,
        work: impl FnOnce(&(dyn Fn(u32) -> bool + Sync)) -> T,
    ) -> T {
        let live = self.items.live_bits(n_rows);
        let live = live.as_deref().map(Filter::Bits);
        work(&|row| live.is_none_or(|live| live.passes(row)) && filter.is_none_or(|filter| filter.passes(row)))
    }

    /// The vertices that pass a filter and are not deleted.
    pub(crate) fn allowed<'a>(&self, filter: Option<&'a Filter<'a>>) -> Allowed<'a> {
        let n = self.codes.len();
        if filter.is_none() && self.items.all_live() {
            return Allowed { filter: None, bits: None, n_vertices: n, list: OnceLock::new() };
        }
        let mut bits = vec![0u64; n.div_ceil(64)];
        let passes = |row: u32| filter.is_none_or(|filter| filter.passes(row));
        for vertex in (0..n as u32).filter(|&vertex| self.items.rows(vertex).any(passes)) {
            bits[vertex as usize / 64] |= 1 << (vertex % 64);
        }
        let n_vertices = bits.iter().map(|word| word.count_ones() as usize).sum::<usize>();
        Allowed { filter, bits: Some(bits), n_vertices, list: OnceLock::new() }
    }
}
