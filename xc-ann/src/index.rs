//! The index: codes and graph over rows, which stay with the caller or belong to it.

use crate::build::{self, Linking};
use crate::codes::{self, Codes};
use crate::error::{BuildError, QueryError};
use crate::graph::EdgeRows;
use crate::items::Items;
use crate::metric::Metric;
use crate::search::{Effort, Reach, Searched, Slot, TURNS, interleaved};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use xc_hash::stream::{Purpose, Stream, name};
use xc_sparse::rank::{RankedBatch, Scored, TopK};
use xc_sparse::simd::{Isa, prefetch_all};
use xc_sparse::{Cancel, DenseRows};

/// Queries of a task of a batch.
const TOGETHER: usize = 64;
/// Vertices whose codes are kept beyond the answers: rank by exact rows changes places.
const SPARE: usize = 6;

/// How a graph is built.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BuildParams {
    /// What near means.
    pub metric: Metric,
    /// Edges of a vertex, at most.
    pub degree: usize,
    /// Vertices that the search for edges keeps.
    pub keep: usize,
    /// Slack of the search for edges.
    pub slack: f32,
    /// Vertices that the search for edges expands, at most.
    pub hops: usize,
    /// Factor of pruning.
    pub factor: f32,
    /// Passes over all vertices; a later one finds edges in the graph of the former.
    pub passes: usize,
    /// Seed of the order in which vertices are linked.
    pub seed: u64,
}

impl BuildParams {
    /// The usual values of a metric.
    pub fn new(metric: Metric) -> Self {
        let (factor, passes) = if metric == Metric::InnerProduct { (0.79, 1) } else { (1.0, 2) };
        Self { metric, degree: 32, keep: 100, slack: 0.0, hops: usize::MAX, factor, passes, seed: 0 }
    }
}

/// A graph over the codes of rows.
#[derive(Clone, Debug)]
pub struct Graph {
    pub(crate) params: BuildParams,
    pub(crate) codes: Codes,
    pub(crate) edges: EdgeRows,
    pub(crate) items: Items,
    pub(crate) entry: u32,
}

/// How to search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchParams {
    /// Answers of a query.
    pub k: usize,
    /// How much further off than the last answer, as a share of its distance, a vertex may be and
    /// still be expanded.
    pub slack: f32,
}

/// What a search works with.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    slots: Vec<Slot>,
    centred: Vec<f32>,
    exact: TopK,
    kept: Vec<u32>,
}

impl Graph {
    /// Builds a graph over rows.
    ///
    /// # Errors
    /// See [`BuildError`].
    pub fn build(rows: DenseRows<'_>, params: &BuildParams, cancel: &dyn Cancel) -> Result<Self, BuildError> {
        let items = Items::new(rows, params.metric)?;
        let mut codes = Codes::new(params.metric, rows.width(), codes::mean_of(rows, params.metric));
        codes.encode(rows, items.first());
        let n = codes.len();
        let entry = if n == 0 || params.metric == Metric::InnerProduct { 0 } else { codes.nearest_to_mean() };
        let mut edges = EdgeRows::new(n, params.degree);
        let mut order: Vec<u32> = (0..n as u32).filter(|&v| v != entry).collect();
        Stream::new(name(params.seed, Purpose::Order, &[])).shuffle(&mut order);
        let reach = Reach { keep: params.keep, slack: params.slack, hops: params.hops };
        for pass in 0..params.passes.max(1) {
            let linking = Linking { reach, factor: if pass + 1 < params.passes { 1.0 } else { params.factor } };
            let again = pass > 0;
            if !build::link(&codes, &mut edges, &order, usize::from(n > 0), |_| entry, linking, again, cancel, &|_| {}) {
                return Err(BuildError::Cancelled);
            }
        }
        Ok(Self { params: *params, codes, edges, items, entry })
    }

    /// The answers of one query, best first.
    ///
    /// # Errors
    /// See [`QueryError`].
    pub fn search(
        &self,
        rows: DenseRows<'_>,
        query: &[f32],
        params: SearchParams,
        scratch: &mut Scratch,
        out: &mut Vec<Scored>,
    ) -> Result<Effort, QueryError> {
        self.search_rows(rows, DenseRows::new(query, query.len().max(1)), params, scratch, |_, found| {
            out.clear();
            out.extend_from_slice(found);
        })
    }

    /// The answers of each query; the ambient threads share them.
    ///
    /// # Errors
    /// See [`QueryError`].
    pub fn search_batch(
        &self,
        rows: DenseRows<'_>,
        queries: DenseRows<'_>,
        params: SearchParams,
    ) -> Result<(RankedBatch, Effort), QueryError> {
        let chunk = TOGETHER * queries.width();
        let parts: Vec<(RankedBatch, Effort)> = queries
            .values()
            .par_chunks(chunk)
            .map_init(Scratch::default, |scratch, values| {
                let queries = DenseRows::new(values, queries.width());
                let mut answers = vec![Vec::new(); queries.len()];
                let effort =
                    self.search_rows(rows, queries, params, scratch, |query, found| answers[query] = found.to_vec())?;
                let mut batch = RankedBatch::new();
                answers.iter().for_each(|row| batch.push_row(row));
                Ok((batch, effort))
            })
            .collect::<Result<_, QueryError>>()?;
        let (mut all, mut effort) = (RankedBatch::new(), Effort::default());
        for (part, of_part) in parts {
            all.append(&part);
            effort += of_part;
        }
        Ok((all, effort))
    }

    fn search_rows(
        &self,
        rows: DenseRows<'_>,
        queries: DenseRows<'_>,
        params: SearchParams,
        scratch: &mut Scratch,
        mut each: impl FnMut(usize, &[Scored]),
    ) -> Result<Effort, QueryError> {
        let n = self.codes.len();
        let keep = (params.k + SPARE).max(params.k + params.k / 2).min(n);
        let Scratch { slots, centred, exact, kept } = scratch;
        slots.resize_with(TURNS, Slot::default);
        let mut effort = Effort::default();
        if n == 0 || params.k == 0 {
            (0..queries.len()).for_each(|query| each(query, &[]));
            return Ok(effort);
        }
        let searched = Searched {
            isa: Isa::current(),
            coded: self.codes.view(),
            edges: self.edges.view(),
            reach: Reach { keep, slack: params.slack, hops: usize::MAX },
            passes: |_| true,
            records: false,
        };
        let first = self.items.first();
        let begin = |query: usize, slot: &mut Slot| {
            self.codes.query(queries.row(query), centred, &mut slot.query);
            slot.effort = Effort::default();
            self.entry
        };
        let ask = |slot: &mut Slot| {
            slot.best.kept().for_each(|(_, vertex)| prefetch_all(rows.row(first[vertex as usize] as usize)));
        };
        let done = |query: usize, slot: &mut Slot| {
            kept.clear();
            kept.extend(slot.best.kept().map(|(_, vertex)| vertex));
            exact.reset(params.k);
            for &vertex in &*kept {
                let score = self.params.metric.score(queries.row(query), rows.row(first[vertex as usize] as usize));
                self.items.of(vertex).for_each(|label| exact.push(Scored { label, score }));
            }
            slot.effort.exact += kept.len() as u64;
            effort += slot.effort;
            each(query, exact.sorted());
        };
        interleaved(&searched, slots, queries.len(), begin, ask, done);
        Ok(effort)
    }

    /// Edges of a vertex, on average.
    pub fn mean_degree(&self) -> f64 {
        let n = self.edges.len();
        let edges: usize = (0..n as u32).map(|v| self.edges.view().of(v).len()).sum();
        edges as f64 / n.max(1) as f64
    }
}
