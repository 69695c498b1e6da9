//! Queries: one or many, with a filter, or all rows above a score.

use crate::code::ivf::{CellScratch, Cells};
use crate::code::product::{self, TOGETHER};
use crate::code::vertex_rows::{is_beyond, square};
use crate::error::QueryError;
use crate::graph::whole::Graph;
use crate::params::{SCANS_FROM, Scope, SearchParams};
use crate::search::beam::{Reach, SearchStats, Searched, Slot, TURNS, interleaved};
use crate::search::best::rerank_candidates;
use crate::search::filter::{Allowed, Filter};
use crate::search::parts::in_parts;
use crate::search::rerank::{Nearest, Scorer, rounded};
use xc_buffer::simd::{Isa, prefetch_start};
use xc_dense::DenseRows;
use xc_sparse::rank::{RankedBatch, Scored, TopK};

/// Queries of a task of a batch.
const QUERIES_PER_TASK: usize = 64;
/// And the most of them that look into cells together, if the vertices that they keep take no more than this.
const IN_CELLS: usize = 1024;
const KEPT_BYTES: usize = 4 << 20;
/// Cells that each query of some looks into at once: what it finds there spares it most of what is in others.
const AT_ONCE: usize = 2;
/// Candidates of a query whose rows are asked for while another query's are ranked.
const ASKED: usize = 64;
/// Queries that are scanned for together.
const SCANNED: usize = 16;

/// Buffers of a search; each thread has its own.
#[derive(Clone, Debug, Default)]
pub struct SearchScratch {
    slots: Vec<Slot>,
    centred: Vec<f32>,
    ranking: Ranking,
    /// What a scan keeps for each of its queries.
    scanned: Vec<TopK>,
    cells: CellScratch,
    /// Cells that are still to be looked into, and for which query.
    visits: Vec<(u32, u32)>,
}

/// What was found, and its scores.
#[derive(Clone, Debug, Default)]
struct Ranking {
    best: Nearest,
    kept: Vec<(f32, u32)>,
    labels: Vec<u32>,
    scores: Vec<f64>,
    /// Whether the rows of what is kept were asked of memory.
    asked: bool,
}

/// Result limit of each query.
#[derive(Clone, Copy, Debug)]
enum Wanted {
    /// So many, of a search for at least as many as `sought`.
    Nearest { k: usize, sought: usize },
    /// At most so many of those whose score is at least this.
    Above(f32, usize),
}

/// Search strategy.
#[derive(Clone, Copy, Debug)]
struct How<'a> {
    wanted: Wanted,
    scope: Scope,
    /// A vertex for each query that is as if it were not there.
    hidden: Option<&'a [u32]>,
}

impl How<'_> {
    fn hidden(&self, query: usize) -> Option<u32> {
        self.hidden.map(|hidden| hidden[query])
    }

    /// How many answers are looked for, where that is in cells.
    fn cells(&self, allowed: &Allowed<'_>) -> Option<usize> {
        match self.wanted {
            Wanted::Nearest { sought, .. } if self.scope.n_cells() > 0 && !allowed.is_filtered() => Some(sought),
            _ => None,
        }
    }

    /// Vertices to keep for `sought` answers: some more where their rows are looked at, and never fewer than the width
    /// was fitted with. The widest search keeps all.
    fn keep(&self, sought: usize, rows: Option<DenseRows<'_>>, width: f32, allowed: &Allowed<'_>) -> usize {
        let fitted = if self.scope.for_k() > 0 { rerank_candidates(self.scope.for_k()) } else { 0 };
        let candidates = if rows.is_some() { rerank_candidates(sought) } else { sought };
        keep(candidates.max(fitted), width, allowed)
    }
}

impl Graph {
    fn how(&self, SearchParams { top_k: k, scope }: SearchParams) -> How<'static> {
        let scope = scope.unwrap_or_else(|| self.default_scope());
        How { wanted: Wanted::Nearest { k, sought: k.max(scope.for_k()) }, scope, hidden: None }
    }

    /// The `k` best rows of a query, best first; fewer if there are fewer.
    ///
    /// *Cost*: some hundred comparisons of codes, and 1.1 k exact ones; with a filter, or after rows were
    /// deleted, also a pass over all vertices, which [`Graph::search_batch`] makes once for all queries.
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
        scratch: &mut SearchScratch,
        out: &mut Vec<Scored>,
    ) -> Result<SearchStats, QueryError> {
        self.one(Some(rows), query, params, filter, scratch, out)
    }

    fn one(
        &self,
        rows: Option<DenseRows<'_>>,
        query: &[f32],
        params: SearchParams,
        filter: Option<&Filter<'_>>,
        scratch: &mut SearchScratch,
        out: &mut Vec<Scored>,
    ) -> Result<SearchStats, QueryError> {
        self.check(rows, query.len())?;
        let allowed = self.allowed(filter);
        let queries = DenseRows::new(query, query.len());
        self.answer(rows, queries, 0, self.how(params), &allowed, scratch, |_, found| {
            out.clear();
            out.extend_from_slice(found);
        })
    }

    /// [`Graph::search`] for many queries, divided among the ambient threads. Answers are the same as for
    /// each query alone.
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
    ) -> Result<(RankedBatch, SearchStats), QueryError> {
        self.batch(Some(rows), queries, self.how(params), filter)
    }

    /// [`Graph::search_batch`] as if a vertex of each query were not there.
    pub(crate) fn search_hidden(
        &self,
        rows: DenseRows<'_>,
        queries: DenseRows<'_>,
        params: SearchParams,
        hidden: Option<&[u32]>,
    ) -> Result<(RankedBatch, SearchStats), QueryError> {
        self.batch(Some(rows), queries, How { hidden, ..self.how(params) }, None)
    }

    /// [`Graph::search`] without rows: answers are ranked and scored by codes. For callers that rank them
    /// again by their own scores: [`rerank_candidates`](crate::rerank_candidates) says how many to ask for.
    ///
    /// # Errors
    /// See [`QueryError`].
    pub fn search_codes(
        &self,
        query: &[f32],
        params: SearchParams,
        filter: Option<&Filter<'_>>,
        scratch: &mut SearchScratch,
        out: &mut Vec<Scored>,
    ) -> Result<SearchStats, QueryError> {
        self.one(None, query, params, filter, scratch, out)
    }

    /// [`Graph::search_codes`] for many queries, divided among the ambient threads.
    ///
    /// # Errors
    /// See [`QueryError`].
    pub fn search_codes_batch(
        &self,
        queries: DenseRows<'_>,
        params: SearchParams,
        filter: Option<&Filter<'_>>,
    ) -> Result<(RankedBatch, SearchStats), QueryError> {
        self.batch(None, queries, self.how(params), filter)
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
    ) -> Result<(RankedBatch, SearchStats), QueryError> {
        let wanted = Wanted::Above(score, most);
        self.batch(Some(rows), queries, How { wanted, scope: Scope::width(width), hidden: None }, filter)
    }

    fn batch(
        &self,
        rows: Option<DenseRows<'_>>,
        queries: DenseRows<'_>,
        how: How<'_>,
        filter: Option<&Filter<'_>>,
    ) -> Result<(RankedBatch, SearchStats), QueryError> {
        self.check(rows, queries.width())?;
        let allowed = self.allowed(filter);
        in_parts(
            queries.len(),
            self.together(queries.len(), rows, how, &allowed),
            |scratch: &mut SearchScratch, range| {
                let (width, first) = (queries.width(), range.start);
                let queries = DenseRows::new(&queries.values()[first * width..range.end * width], width);
                let (mut answers, mut at) = (RankedBatch::new(), vec![usize::MAX; queries.len()]);
                let effort = self.answer(rows, queries, first, how, &allowed, scratch, |query, found| {
                    at[query] = answers.len();
                    answers.push_row(found);
                })?;
                // Queries may end in an order of their own.
                if at.is_sorted() {
                    return Ok((answers, effort));
                }
                let mut ordered = RankedBatch::new();
                at.iter().for_each(|&at| ordered.push_row(answers.row(at)));
                Ok((ordered, effort))
            },
        )
    }

    /// How many of `n` queries are a task of one thread.
    fn together(&self, n: usize, rows: Option<DenseRows<'_>>, how: How<'_>, allowed: &Allowed<'_>) -> usize {
        let Some(k) = how.cells(allowed) else { return QUERIES_PER_TASK };
        // The more there are, the less often codes come from memory; but each thread has its share.
        let share = n.div_ceil(rayon::current_num_threads());
        let kept = 2 * size_of::<Scored>() * how.keep(k, rows, how.scope.slack().min(SCANS_FROM), allowed);
        share.min(KEPT_BYTES / kept).clamp(QUERIES_PER_TASK, IN_CELLS)
    }

    /// Answers, cells and vertices to keep of a search of cells; nothing where another search is the answer.
    #[cfg(feature = "cuda")]
    pub(crate) fn kept_of_cells(&self, rows: DenseRows<'_>, params: SearchParams) -> Option<(usize, usize, usize)> {
        let (how, allowed) = (self.how(params), self.allowed(None));
        let (sought, width) = (how.cells(&allowed)?, how.scope.slack());
        let keep = how.keep(sought, Some(rows), width.min(SCANS_FROM), &allowed);
        let is_usual = width > -1.0 && params.top_k > 0 && allowed.n_vertices > 0;
        is_usual.then_some((params.top_k, how.scope.n_cells(), keep))
    }

    pub(crate) fn check(&self, rows: Option<DenseRows<'_>>, width: usize) -> Result<(), QueryError> {
        if let Some(rows) = rows {
            assert_eq!(rows.width(), self.dim(), "coordinates of the rows, and of the graph");
        }
        if width != self.dim() {
            return Err(QueryError::Width { found: width, expected: self.dim() });
        }
        Ok(())
    }

    /// Answers queries, whose numbers begin at `first`, in an order of their own.
    fn answer(
        &self,
        rows: Option<DenseRows<'_>>,
        queries: DenseRows<'_>,
        first: usize,
        how: How<'_>,
        allowed: &Allowed<'_>,
        scratch: &mut SearchScratch,
        mut each: impl FnMut(usize, &[Scored]),
    ) -> Result<SearchStats, QueryError> {
        let mut n_zeros = 0;
        for (query, vector) in queries.iter().enumerate() {
            let squares = square(vector);
            if is_beyond(squares) {
                return Err(QueryError::NotFinite { query: first + query });
            }
            n_zeros += usize::from(squares == 0.0);
        }
        if self.params.metric.is_angular() && n_zeros > 0 {
            return self.answer_others(rows, queries, first, how, allowed, scratch, each);
        }
        let (wanted, width) = (how.wanted, how.scope.slack());
        if width.is_nan() || width <= -1.0 {
            return Err(QueryError::SearchWidth { width });
        }
        let (k, sought) = match wanted {
            Wanted::Nearest { k, sought } => (k, sought),
            Wanted::Above(_, most) => (most, most),
        };
        if k == 0 || allowed.n_vertices == 0 {
            (0..queries.len()).for_each(|query| each(query, &[]));
            return Ok(SearchStats::default());
        }
        if how.cells(allowed).is_some() {
            let Some(cells) = &self.cells else { return Err(QueryError::NoCells { asked: how.scope.n_cells() }) };
            return Ok(self.scan_cells(cells, rows, (queries, first), sought, how, allowed, scratch, each));
        }
        match (&allowed.bits, width >= SCANS_FROM || allowed.scans(sought)) {
            (None, false) => self.run(rows, (queries, first), how, allowed, |_| true, scratch, each),
            (Some(bits), false) => {
                let passes = |vertex: u32| bits[vertex as usize / 64] >> (vertex % 64) & 1 == 1;
                self.run(rows, (queries, first), how, allowed, passes, scratch, each)
            }
            (_, true) => Ok(self.scan_all(rows, (queries, first), how, allowed, scratch, each)),
        }
    }

    /// [`Graph::answer`] where some queries have no direction, and no answers.
    fn answer_others(
        &self,
        rows: Option<DenseRows<'_>>,
        queries: DenseRows<'_>,
        first: usize,
        how: How<'_>,
        allowed: &Allowed<'_>,
        scratch: &mut SearchScratch,
        mut each: impl FnMut(usize, &[Scored]),
    ) -> Result<SearchStats, QueryError> {
        let (others, zeros): (Vec<usize>, Vec<usize>) =
            (0..queries.len()).partition(|&query| square(queries.row(query)) > 0.0);
        zeros.iter().for_each(|&query| each(query, &[]));
        let mut effort = SearchStats::default();
        for query in others {
            let alone = DenseRows::new(queries.row(query), queries.width());
            let mut found = |_, found: &[Scored]| each(query, found);
            effort +=
                self.answer(rows, alone, first + query, how, allowed, scratch, &mut found as &mut dyn FnMut(_, &_))?;
        }
        Ok(effort)
    }

    fn run(
        &self,
        rows: Option<DenseRows<'_>>,
        (queries, number): (DenseRows<'_>, usize),
        how: How<'_>,
        allowed: &Allowed<'_>,
        passes: impl Fn(u32) -> bool,
        scratch: &mut SearchScratch,
        mut each: impl FnMut(usize, &[Scored]),
    ) -> Result<SearchStats, QueryError> {
        let (wanted, width) = (how.wanted, how.scope.slack());
        let (keep, within) = match wanted {
            Wanted::Nearest { sought, .. } => (how.keep(sought, rows, width, allowed), f32::NEG_INFINITY),
            Wanted::Above(score, _) => (how.keep(1, rows, width, allowed), self.key_of(score, width)),
        };
        // A search that looks at too many, as one does among few that pass, gives way to a scan.
        let distances = allowed.n_vertices as u64 / 8 + 200;
        let searched = Searched {
            isa: Isa::current(),
            coded: self.codes.view(),
            edges: self.edges.view(),
            reach: Reach { keep, slack: width, within, distances },
            passes,
            records: false,
        };
        let SearchScratch { slots, centred, ranking, scanned, .. } = scratch;
        slots.resize_with(slots.len().max(TURNS), Slot::default);
        let (mut effort, first) = (SearchStats::default(), self.items.first());
        let begin = |query: usize, slot: &mut Slot| {
            self.codes.query(queries.row(query), centred, &mut slot.query);
            slot.hidden = how.hidden(number + query);
            // Where the search begins is there, or another that it leads to.
            let beside = slot
                .hidden
                .filter(|&hidden| hidden == self.entry)
                .and_then(|entry| self.edges.view().of(entry).first());
            beside.copied().unwrap_or(self.entry)
        };
        let ask = |slot: &mut Slot| {
            let Some(rows) = rows else { return };
            let kept = slot.best.kept().map(|(_, vertex)| vertex);
            kept.for_each(|vertex| prefetch_start(rows.row(first[vertex as usize] as usize)));
        };
        let done = |query: usize, slot: &mut Slot| {
            effort += slot.effort;
            ranking.kept.clear();
            ranking.asked = !slot.gave_up;
            if slot.gave_up {
                effort += self.scan(std::slice::from_ref(slot), allowed, how, rows, scanned);
                take_scanned(&mut scanned[0], &mut ranking.kept);
            } else if let Wanted::Above(..) = wanted {
                ranking.kept.extend_from_slice(&slot.within);
            } else {
                ranking.kept.extend(slot.best.kept());
            }
            effort.exact += self.rank(rows, queries.row(query), how, how.hidden(number + query), allowed, ranking);
            each(query, ranking.best.sorted());
        };
        interleaved(&searched, &mut slots[..TURNS], queries.len(), begin, ask, done);
        Ok(effort)
    }

    /// Compares the vertices of the nearest cells of each query. After its nearest ones a query waits for the
    /// others: a cell comes from memory once for all that look into it.
    fn scan_cells(
        &self,
        cells: &Cells,
        rows: Option<DenseRows<'_>>,
        (queries, number): (DenseRows<'_>, usize),
        sought: usize,
        how: How<'_>,
        allowed: &Allowed<'_>,
        scratch: &mut SearchScratch,
        mut each: impl FnMut(usize, &[Scored]),
    ) -> SearchStats {
        let scope = how.scope;
        let SearchScratch { slots, centred, ranking, cells: of_cells, visits, .. } = scratch;
        slots.resize_with(slots.len().max(queries.len()), Slot::default);
        let keep = how.keep(sought, rows, scope.slack().min(SCANS_FROM), allowed);
        let (isa, mut effort, first) = (Isa::current(), SearchStats::default(), self.items.first());
        visits.clear();
        for (query, slot) in slots[..queries.len()].iter_mut().enumerate() {
            self.codes.query_of_blocks(queries.row(query), centred, &mut slot.query);
            slot.best.reset_to_collect(keep);
            let nearest = cells.nearest(isa, &slot.query, scope.n_cells(), of_cells);
            effort.distances += cells.len() as u64;
            effort.hops += nearest.len() as u64;
            // A query alone waits for nobody.
            let at_once = if queries.len() == 1 { nearest.len() } else { nearest.len().min(AT_ONCE) };
            for (at, &(_, cell)) in nearest[..at_once].iter().enumerate() {
                nearest.get(at + 1).into_iter().for_each(|next| cells.prefetch(next.1));
                effort.distances += cells.look(isa, &slot.query, cell, &mut slot.best);
            }
            visits.extend(nearest[at_once..].iter().map(|&(_, cell)| (cell, query as u32)));
        }
        visits.sort_unstable();
        for (at, &(cell, query)) in visits.iter().enumerate() {
            visits.get(at + 1).filter(|next| next.0 != cell).into_iter().for_each(|next| cells.prefetch(next.0));
            let slot = &mut slots[query as usize];
            effort.distances += cells.look(isa, &slot.query, cell, &mut slot.best);
        }
        // The rows of a query's candidates come from memory while those before it are ranked, unless they are
        // more than fit beside these.
        let ask = |slot: &mut Slot| {
            let (Some(rows), true) = (rows, keep <= ASKED) else { return };
            let kept = slot.best.kept().map(|(_, vertex)| vertex);
            kept.for_each(|vertex| prefetch_start(rows.row(first[vertex as usize] as usize)));
        };
        slots[..queries.len()].first_mut().into_iter().for_each(ask);
        for query in 0..queries.len() {
            slots[..queries.len()].get_mut(query + 1).into_iter().for_each(ask);
            ranking.kept.clear();
            ranking.kept.extend(slots[query].best.kept());
            ranking.asked = keep <= ASKED;
            effort.exact += self.rank(rows, queries.row(query), how, how.hidden(number + query), allowed, ranking);
            each(query, ranking.best.sorted());
        }
        effort
    }

    /// Ranks rows of vertices by their exact scores, or by those of the codes where there are no rows.
    fn rank(
        &self,
        rows: Option<DenseRows<'_>>,
        query: &[f32],
        how: How<'_>,
        hidden: Option<u32>,
        allowed: &Allowed<'_>,
        ranking: &mut Ranking,
    ) -> u64 {
        let (k, least) = match how.wanted {
            Wanted::Nearest { k, .. } => (k, f32::NEG_INFINITY),
            Wanted::Above(score, most) => (most, score),
        };
        let (first, metric) = (self.items.first(), self.params.metric);
        let Ranking { best, kept, labels, scores, asked } = ranking;
        best.reset(k.min(self.items.len()));
        if let Some(rows) = rows {
            labels.clear();
            labels.extend(kept.iter().map(|&(_, vertex)| first[vertex as usize]));
            Scorer::new(metric, query).scores(rows, labels, *asked, scores);
        } else {
            scores.clear();
            scores.extend(kept.iter().map(|&(key, _)| f64::from(metric.score_of_key(key))));
        }
        for (&(_, vertex), &score) in kept.iter().zip(&*scores) {
            if hidden != Some(vertex) && (least == f32::NEG_INFINITY || rounded(score) >= least) {
                // All rows of a vertex are equal.
                let passing = self.items.rows(vertex).filter(|&row| allowed.row_passes(row));
                passing.for_each(|label| best.push(label, score));
            }
        }
        if rows.is_some() { kept.len() as u64 } else { 0 }
    }

    /// Compares all vertices that pass, with some queries at a time: their codes come from memory once for
    /// all of these.
    fn scan_all(
        &self,
        rows: Option<DenseRows<'_>>,
        (queries, number): (DenseRows<'_>, usize),
        how: How<'_>,
        allowed: &Allowed<'_>,
        scratch: &mut SearchScratch,
        mut each: impl FnMut(usize, &[Scored]),
    ) -> SearchStats {
        let SearchScratch { slots, centred, ranking, scanned, .. } = scratch;
        slots.resize_with(slots.len().max(SCANNED.min(queries.len())), Slot::default);
        let mut effort = SearchStats::default();
        for first in (0..queries.len()).step_by(SCANNED) {
            let n = SCANNED.min(queries.len() - first);
            for (at, slot) in slots[..n].iter_mut().enumerate() {
                self.codes.query(queries.row(first + at), centred, &mut slot.query);
            }
            effort += self.scan(&slots[..n], allowed, how, rows, scanned);
            for (query, best) in (first..).zip(&mut scanned[..n]) {
                take_scanned(best, &mut ranking.kept);
                ranking.asked = false;
                effort.exact += self.rank(rows, queries.row(query), how, how.hidden(number + query), allowed, ranking);
                each(query, ranking.best.sorted());
            }
        }
        effort
    }

    /// Compares all vertices that pass with the query of each slot.
    fn scan(
        &self,
        slots: &[Slot],
        allowed: &Allowed<'_>,
        how: How<'_>,
        rows: Option<DenseRows<'_>>,
        scanned: &mut Vec<TopK>,
    ) -> SearchStats {
        let keep = match how.wanted {
            Wanted::Nearest { sought, .. } => how.keep(sought, rows, how.scope.slack(), allowed),
            Wanted::Above(..) => allowed.n_vertices,
        };
        scanned.resize_with(slots.len().max(scanned.len()), TopK::default);
        scanned[..slots.len()].iter_mut().for_each(|best| best.reset(keep));
        let (isa, mut keys) = (Isa::current(), [0.0; TOGETHER]);
        let list = allowed.list();
        for vertices in list.chunks(TOGETHER) {
            for (slot, best) in slots.iter().zip(&mut *scanned) {
                let limit = -best.threshold();
                let mut near = product::keys(isa, slot.query.view(), self.codes.view(), vertices, limit, &mut keys);
                while near != 0 {
                    let at = near.trailing_zeros() as usize;
                    near &= near - 1;
                    best.push(Scored { label: vertices[at], score: -keys[at] });
                }
            }
        }
        SearchStats { distances: (slots.len() * list.len()) as u64, ..SearchStats::default() }
    }

    /// The key up to which rows may have at least this score, the rounding of codes allowed for.
    fn key_of(&self, score: f32, width: f32) -> f32 {
        let key = self.params.metric.key_of_score(score);
        let key = key + (0.02 + width.max(0.0)) * key.abs();
        if key.is_nan() { f32::INFINITY } else { key }
    }
}

/// What a scan kept, as keys.
fn take_scanned(best: &mut TopK, kept: &mut Vec<(f32, u32)>) {
    kept.clear();
    kept.extend(best.best().iter().map(|s| (-s.score, s.label)));
}

/// Vertices to keep of so many candidates: at least one, even where there is none.
fn keep(candidates: usize, width: f32, allowed: &Allowed<'_>) -> usize {
    if width == f32::INFINITY { allowed.n_vertices } else { candidates.min(allowed.n_vertices).max(1) }
}
