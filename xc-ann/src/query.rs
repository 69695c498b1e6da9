//! Queries: one or many, with a filter, or all rows above a score.

use crate::error::QueryError;
use crate::filter::{Allowed, Filter};
use crate::graph::Graph;
use crate::items::is_beyond;
use crate::metric::Metric;
use crate::product::{self, TOGETHER};
use crate::search::{Effort, Reach, Searched, Slot, TURNS, interleaved};
use rayon::prelude::*;
use xc_sparse::rank::{RankedBatch, Scored, TopK};
use xc_sparse::simd::{Isa, prefetch_all};
use xc_sparse::{DenseRows, parallel};

/// Queries of a task of a batch.
const SOME: usize = 64;
/// Codes place answers nearly: so many more than are wanted are compared exactly.
const SPARE: usize = 6;

/// How to search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchParams {
    /// Answers of a query.
    pub k: usize,
    /// How far to look: a vertex is expanded while it is no further off than the last answer and this
    /// share of its distance (of the score, for inner products). Above -1: -0.2 is fast and coarse, 0.1
    /// finds nearly all, infinity compares all rows, and exactly. [`Graph::fit`] finds the least that reaches a recall.
    pub width: f32,
}

/// What searches work with; each thread has its own.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    slots: Vec<Slot>,
    centred: Vec<f32>,
    exact: TopK,
    kept: Vec<u32>,
}

/// What is wanted of each query.
#[derive(Clone, Copy, Debug)]
enum Wanted {
    Nearest(usize),
    /// At most so many of those whose score is at least this.
    Above(f32, usize),
}

impl Graph {
    /// The `k` best rows of a query, best first; fewer where there are fewer.
    ///
    /// *Cost*: some hundred comparisons of codes, and 1.5 k exact ones. No allocation after the first
    /// queries.
    ///
    /// # Errors
    /// See [`QueryError`].
    ///
    /// # Panics
    /// If `rows` lacks rows of the graph, or has another width.
    pub fn search(
        &self,
        rows: DenseRows<'_>,
        query: &[f32],
        params: SearchParams,
        filter: Option<&Filter<'_>>,
        scratch: &mut Scratch,
        out: &mut Vec<Scored>,
    ) -> Result<Effort, QueryError> {
        self.check(rows, query.len())?;
        let allowed = self.allowed(filter);
        let queries = DenseRows::new(query, query.len());
        self.answer(rows, queries, 0, (Wanted::Nearest(params.k), params.width), &allowed, scratch, |_, found| {
            out.clear();
            out.extend_from_slice(found);
        })
    }

    /// [`Graph::search`] for many queries, which the ambient threads share. Answers are those of each
    /// query alone.
    ///
    /// # Errors
    /// See [`QueryError`].
    ///
    /// # Panics
    /// As [`Graph::search`].
    pub fn search_batch(
        &self,
        rows: DenseRows<'_>,
        queries: DenseRows<'_>,
        params: SearchParams,
        filter: Option<&Filter<'_>>,
    ) -> Result<(RankedBatch, Effort), QueryError> {
        self.batch(rows, queries, (Wanted::Nearest(params.k), params.width), filter)
    }

    /// For each query the rows whose score is at least `score`, best first, at most `most` of them.
    ///
    /// # Errors
    /// See [`QueryError`].
    ///
    /// # Panics
    /// As [`Graph::search`].
    pub fn search_above(
        &self,
        rows: DenseRows<'_>,
        queries: DenseRows<'_>,
        score: f32,
        most: usize,
        width: f32,
        filter: Option<&Filter<'_>>,
    ) -> Result<(RankedBatch, Effort), QueryError> {
        self.batch(rows, queries, (Wanted::Above(score, most), width), filter)
    }

    fn batch(
        &self,
        rows: DenseRows<'_>,
        queries: DenseRows<'_>,
        how: (Wanted, f32),
        filter: Option<&Filter<'_>>,
    ) -> Result<(RankedBatch, Effort), QueryError> {
        self.check(rows, queries.width())?;
        let allowed = self.allowed(filter);
        let part = |scratch: &mut Scratch, (number, values): (usize, &[f32])| {
            let queries = DenseRows::new(values, queries.width());
            let (mut answers, mut at) = (RankedBatch::new(), vec![usize::MAX; queries.len()]);
            let effort = self.answer(rows, queries, number * SOME, how, &allowed, scratch, |query, found| {
                at[query] = answers.len();
                answers.push_row(found);
            })?;
            // Queries end in an order of their own.
            let mut ordered = RankedBatch::new();
            at.iter().for_each(|&at| ordered.push_row(answers.row(at)));
            Ok((ordered, effort))
        };
        let chunk = SOME * queries.width();
        let parts: Vec<(RankedBatch, Effort)> = if parallel::in_pool() || queries.len() > SOME {
            let chunks = queries.values().par_chunks(chunk).enumerate();
            chunks.map_init(Scratch::default, part).collect::<Result<_, QueryError>>()?
        } else {
            let mut scratch = Scratch::default();
            queries
                .values()
                .chunks(chunk)
                .enumerate()
                .map(|c| part(&mut scratch, c))
                .collect::<Result<_, QueryError>>()?
        };
        let (mut all, mut effort) = (RankedBatch::new(), Effort::default());
        for (part, of_part) in parts {
            all.append(&part);
            effort += of_part;
        }
        Ok((all, effort))
    }

    fn check(&self, rows: DenseRows<'_>, width: usize) -> Result<(), QueryError> {
        assert_eq!(rows.width(), self.width(), "coordinates of the rows, and of the graph");
        if width != self.width() {
            return Err(QueryError::Width { found: width, expected: self.width() });
        }
        Ok(())
    }

    /// Answers queries, whose numbers begin at `first`, in an order of their own.
    fn answer(
        &self,
        rows: DenseRows<'_>,
        queries: DenseRows<'_>,
        first: usize,
        how: (Wanted, f32),
        allowed: &Allowed<'_>,
        scratch: &mut Scratch,
        mut each: impl FnMut(usize, &[Scored]),
    ) -> Result<Effort, QueryError> {
        for (query, vector) in queries.iter().enumerate() {
            let squares: f64 = vector.iter().map(|&v| f64::from(v) * f64::from(v)).sum();
            if is_beyond(squares) {
                return Err(QueryError::NotFinite { query: first + query });
            }
            if self.params.metric.is_angular() && squares == 0.0 {
                return Err(QueryError::Zero { query: first + query });
            }
        }
        let (wanted, width) = how;
        if width.is_nan() || width <= -1.0 {
            return Err(QueryError::SearchWidth { width });
        }
        let k = match wanted {
            Wanted::Nearest(k) => k,
            Wanted::Above(_, most) => most,
        };
        if k == 0 || allowed.n_vertices == 0 {
            (0..queries.len()).for_each(|query| each(query, &[]));
            return Ok(Effort::default());
        }
        match (&allowed.bits, allowed.scans) {
            (None, _) => self.run(rows, queries, how, allowed, |_| true, scratch, each),
            (Some(bits), false) => {
                let passes = |vertex: u32| bits[vertex as usize / 64] >> (vertex % 64) & 1 == 1;
                self.run(rows, queries, how, allowed, passes, scratch, each)
            }
            (Some(_), true) => {
                let (mut effort, mut scanned) = (Effort::default(), Vec::new());
                scratch.slots.resize_with(1, Slot::default);
                for (query, vector) in queries.iter().enumerate() {
                    let Scratch { slots, centred, exact, kept } = scratch;
                    self.codes.query(vector, centred, &mut slots[0].query);
                    effort += self.scan(&slots[0], allowed, wanted, &mut scanned);
                    kept.clear();
                    kept.extend_from_slice(&scanned);
                    effort.exact += self.rank(rows, vector, wanted, kept, allowed, exact);
                    each(query, exact.sorted());
                }
                Ok(effort)
            }
        }
    }

    fn run(
        &self,
        rows: DenseRows<'_>,
        queries: DenseRows<'_>,
        (wanted, width): (Wanted, f32),
        allowed: &Allowed<'_>,
        passes: impl Fn(u32) -> bool,
        scratch: &mut Scratch,
        mut each: impl FnMut(usize, &[Scored]),
    ) -> Result<Effort, QueryError> {
        let (keep, within) = match wanted {
            Wanted::Nearest(k) => (spared(k), f32::NEG_INFINITY),
            Wanted::Above(score, _) => (spared(1), self.key_of(score, width)),
        };
        // A search among few that pass may look at all others before it finds them: then all that
        // pass are looked at instead.
        let distances = if allowed.bits.is_some() { 2 * allowed.n_vertices as u64 + 1000 } else { u64::MAX };
        // The widest search looks at all rows, and then at their exact values too.
        let keep = if width == f32::INFINITY { allowed.n_vertices } else { keep.min(allowed.n_vertices) }.max(1);
        let searched = Searched {
            isa: Isa::current(),
            coded: self.codes.view(),
            edges: self.edges.view(),
            reach: Reach { keep, slack: width, within, distances },
            passes,
            records: false,
        };
        let Scratch { slots, centred, exact, kept } = scratch;
        slots.resize_with(TURNS, Slot::default);
        let first = self.items.first();
        let (mut effort, mut scanned) = (Effort::default(), Vec::new());
        let begin = |query: usize, slot: &mut Slot| {
            self.codes.query(queries.row(query), centred, &mut slot.query);
            self.entry
        };
        let ask = |slot: &mut Slot| {
            let kept = slot.best.kept().map(|(_, vertex)| vertex);
            kept.for_each(|vertex| prefetch_all(rows.row(first[vertex as usize] as usize)));
        };
        let done = |query: usize, slot: &mut Slot| {
            kept.clear();
            effort += slot.effort;
            if slot.gave_up {
                effort += self.scan(slot, allowed, wanted, &mut scanned);
                kept.extend_from_slice(&scanned);
            } else if let Wanted::Above(..) = wanted {
                kept.extend(slot.within.iter().map(|&(_, vertex)| vertex));
            } else {
                kept.extend(slot.best.kept().map(|(_, vertex)| vertex));
            }
            effort.exact += self.rank(rows, queries.row(query), wanted, kept, allowed, exact);
            each(query, exact.sorted());
        };
        interleaved(&searched, slots, queries.len(), begin, ask, done);
        Ok(effort)
    }

    /// Scores rows of vertices exactly.
    fn rank(
        &self,
        rows: DenseRows<'_>,
        query: &[f32],
        wanted: Wanted,
        kept: &[u32],
        allowed: &Allowed<'_>,
        exact: &mut TopK,
    ) -> u64 {
        let (k, least) = match wanted {
            Wanted::Nearest(k) => (k, f32::NEG_INFINITY),
            Wanted::Above(score, most) => (most, score),
        };
        exact.reset(k.min(self.items.len()));
        for &vertex in kept {
            // All rows of a vertex are equal.
            let Some(first) = self.items.rows(vertex).next() else { continue };
            let score = self.params.metric.score(query, rows.row(first as usize));
            if score >= least {
                let passing = self.items.rows(vertex).filter(|&row| allowed.row_passes(row));
                passing.for_each(|label| exact.push(Scored { label, score }));
            }
        }
        kept.len() as u64
    }

    /// Compares all vertices that pass.
    fn scan(&self, slot: &Slot, allowed: &Allowed<'_>, wanted: Wanted, found: &mut Vec<u32>) -> Effort {
        let keep = match wanted {
            Wanted::Nearest(k) => spared(k).min(allowed.n_vertices),
            Wanted::Above(..) => allowed.n_vertices,
        };
        let (isa, mut best, mut keys) = (Isa::current(), TopK::new(keep), [0.0; TOGETHER]);
        let list = allowed.list();
        for vertices in list.chunks(TOGETHER) {
            let limit = -best.threshold();
            let mut near = product::keys(isa, slot.query.view(), self.codes.view(), vertices, limit, &mut keys);
            while near != 0 {
                let at = near.trailing_zeros() as usize;
                near &= near - 1;
                best.push(Scored { label: vertices[at], score: -keys[at] });
            }
        }
        found.clear();
        found.extend(best.best().iter().map(|s| s.label));
        Effort { distances: list.len() as u64, ..Effort::default() }
    }

    /// The key up to which rows may have at least this score, the rounding of codes allowed for.
    fn key_of(&self, score: f32, width: f32) -> f32 {
        let key = match self.params.metric {
            Metric::L2 | Metric::InnerProduct => -score,
            Metric::Cosine => 2.0 - 2.0 * score,
        };
        let key = key + (0.02 + width.max(0.0)) * key.abs();
        if key.is_nan() { f32::INFINITY } else { key }
    }
}

/// Vertices to keep for `k` answers.
pub(crate) fn spared(k: usize) -> usize {
    k.saturating_add((k / 2).max(SPARE))
}
