//! The search width that reaches a recall, found on a sample.

use crate::error::{BuildError, QueryError};
use crate::graph::choose::Shares;
use crate::graph::whole::Graph;
use crate::metric::Metric;
use crate::params::{Fitted, SCANNED, SCANS_FROM, Scope, SearchParams};
use crate::search::beam::SearchStats;
use crate::search::exact::Share;
use crate::search::rerank::Scorer;
use xc_buffer::Cancel;
use xc_buffer::Silent;
use xc_dense::{DenseMatrix, DenseRows};
use xc_hash::stream::{Purpose, Stream, name};
use xc_sparse::rank::RankedBatch;

/// Widths are tried from here to there.
const NARROWEST: f32 = -0.5;
const WIDEST: f32 = SCANS_FROM;
/// Where nothing was fitted.
const DEFAULT_WIDTH: f32 = 0.1;
/// Halvings of the interval of widths.
const HALVINGS: usize = 8;
/// Answers and vectors that a graph is measured with before and after a change.
pub(crate) const USUAL_K: usize = 10;
pub(crate) const SAMPLE: usize = 256;
/// Vectors that a width is fitted to where there are no queries.
const TO_FIT: usize = 1000;

/// Whether cells answer so many queries sooner than a walk does, or a scan where the width is one: by what a
/// comparison costs where codes lie side by side (4 to 6 ns without AVX-512).
fn cells_are_faster(n_queries: u64, in_cells: u64, other: SearchStats, width: f32) -> bool {
    let other = match width >= SCANS_FROM {
        true => 2 * other.distances,
        false => 5 * other.distances + A_HOP * other.hops,
    };
    in_cells + FIRST * n_queries < other
}

/// Comparisons that take as long as a hop does beside its own.
const A_HOP: u64 = 40;
/// Comparisons that take as long as ranking cells does.
const FIRST: u64 = 200;

/// Queries that are answered between two questions whether to stop, and products of a scan between two.
const ASKED: usize = 256;
const PRODUCTS: usize = 1 << 33;

/// What a fit that nobody asks to stop cannot do.
fn of_query(error: BuildError) -> QueryError {
    match error {
        BuildError::Query(error) => error,
        other => unreachable!("a fit without a build: {other}"),
    }
}

/// What a fit looks for.
struct Aim<'a> {
    k: usize,
    /// The vertex of each query, where queries are rows that are to be searched as if they were not there.
    hidden: Option<&'a [u32]>,
    /// Whether few vertices are scanned without a look at the graph.
    scans: bool,
    /// The recall that is stored as the one to reach.
    target: f64,
    /// The share of the `k` best rows among answers.
    recall: &'a dyn Fn(&RankedBatch) -> f64,
    /// Whether answers are good enough.
    enough: &'a dyn Fn(&RankedBatch) -> bool,
    /// Asked between blocks of queries.
    cancel: &'a dyn Cancel,
}

/// What searches have found.
#[derive(Clone, Copy, Debug)]
struct Reached {
    recall: f64,
    is_enough: bool,
}

impl Aim<'_> {
    fn of(&self, found: &RankedBatch) -> Reached {
        Reached { recall: (self.recall)(found), is_enough: (self.enough)(found) }
    }
}

/// What share of the `k` best rows is to be found, less so many standard errors.
struct Wish<'a> {
    k: usize,
    target: f64,
    /// As of [`Aim`].
    hidden: Option<&'a [u32]>,
    /// As of [`Truth`].
    missed: f64,
    errors: f64,
}

/// Of other vectors up to so many times as many rows are missed as of vectors made of rows, whose neighbours are
/// linked to each other (bench/decisions/graph-search.md).
const MISSED_OF_OTHERS: f64 = 2.0;

/// The `k` best rows of queries, and what is found of them.
struct Truth<'a> {
    graph: &'a Graph,
    rows: DenseRows<'a>,
    queries: DenseRows<'a>,
    best: &'a RankedBatch,
    /// What a row that is not found counts.
    missed: f64,
}

impl Truth<'_> {
    /// Rows whose scores are equal as f32 may differ in f64.
    fn is_as_good(&self, query: usize, row: u32, than: u32) -> bool {
        let scorer = Scorer::new(self.graph.params.metric, self.queries.row(query));
        scorer.score(self.rows.row(row as usize)) >= scorer.score(self.rows.row(than as usize))
    }

    fn share(&self, found: &RankedBatch, k: usize) -> Share {
        Share::of(found, self.best, k, |query, row, than| self.is_as_good(query, row, than))
    }

    fn recall(&self, found: &RankedBatch) -> f64 {
        (1.0 - self.missed * (1.0 - self.share(found, usize::MAX).mean)).max(0.0)
    }

    /// The recall, or less of the very best rows where they have to be found, too; less so many standard errors.
    fn least_recall(&self, found: &RankedBatch, best_too: bool, errors: f64) -> f64 {
        let least = |k: usize| {
            let Share { mean, error } = self.share(found, k);
            (1.0 - self.missed * (1.0 - mean + errors * error)).max(0.0)
        };
        if best_too { least(usize::MAX).min(least(1)) } else { least(usize::MAX) }
    }
}

impl Graph {
    /// The share of the exact answers that were found: [`recall`](fn@crate::recall), where rows whose scores are equal
    /// as f32 are compared in f64.
    ///
    /// # Panics
    /// If numbers of queries or widths differ, or rows are missing.
    pub fn recall(&self, rows: DenseRows<'_>, queries: DenseRows<'_>, found: &RankedBatch, exact: &RankedBatch) -> f64 {
        Truth { graph: self, rows, queries, best: exact, missed: 1.0 }.recall(found)
    }

    /// Finds and keeps the least width at which `target` of the `k` best rows are found, of other queries like these,
    /// too: what these find is more by a standard error. An infinite one if none reaches it.
    ///
    /// A search with the fitted scope for fewer than `k` answers looks as far as one for `k`, and finds no smaller
    /// share of them.
    ///
    /// *Cost*: an exact scan for each query, and some fifteen searches.
    ///
    /// # Errors
    /// See [`QueryError`].
    pub fn fit(
        &mut self,
        rows: DenseRows<'_>,
        queries: DenseRows<'_>,
        k: usize,
        target: f64,
    ) -> Result<Fitted, QueryError> {
        self.fit_unless(rows, queries, k, target, &Silent).map_err(of_query)
    }

    /// The same, as part of a build or a refresh.
    pub(crate) fn fit_unless(
        &mut self,
        rows: DenseRows<'_>,
        queries: DenseRows<'_>,
        k: usize,
        target: f64,
        cancel: &dyn Cancel,
    ) -> Result<Fitted, BuildError> {
        let best = &self.exact_unless(rows, queries, k, cancel)?;
        self.fit_with(rows, queries, best, Wish { k, target, hidden: None, missed: 1.0, errors: 1.0 }, cancel)
    }

    /// [`Graph::exact`], block by block.
    fn exact_unless(
        &self,
        rows: DenseRows<'_>,
        queries: DenseRows<'_>,
        k: usize,
        cancel: &dyn Cancel,
    ) -> Result<RankedBatch, BuildError> {
        let width = queries.width();
        let n = (PRODUCTS / (rows.values().len() + 1)).max(ASKED);
        let mut best = RankedBatch::new();
        for values in queries.values().chunks((n * width).max(1)) {
            if cancel.cancelled() {
                return Err(BuildError::Cancelled);
            }
            best.append(&self.exact(rows, DenseRows::new(values, width), k, None));
        }
        Ok(best)
    }

    /// What queries find, block by block.
    fn asked(
        &self,
        rows: DenseRows<'_>,
        queries: DenseRows<'_>,
        params: SearchParams,
        aim: &Aim<'_>,
    ) -> Result<(RankedBatch, SearchStats), BuildError> {
        let (width, mut found, mut effort) = (queries.width(), RankedBatch::new(), SearchStats::default());
        for (block, values) in queries.values().chunks((ASKED * width).max(1)).enumerate() {
            if aim.cancel.cancelled() {
                return Err(BuildError::Cancelled);
            }
            let hidden = aim.hidden.map(|hidden| &hidden[block * ASKED..][..values.len() / width]);
            let answered = self.search_hidden(rows, DenseRows::new(values, width), params, hidden);
            let (of_block, more) = answered.map_err(|e| e.behind(block * ASKED))?;
            found.append(&of_block);
            effort += more;
        }
        Ok((found, effort))
    }

    /// [`Graph::fit`] to some of the rows, each as if it were not there.
    fn fit_to_itself(
        &mut self,
        rows: DenseRows<'_>,
        k: usize,
        target: f64,
        cancel: &dyn Cancel,
    ) -> Result<(), BuildError> {
        let mut alone: Vec<u32> = (0..self.codes.len() as u32).filter(|&v| self.items.rows(v).count() == 1).collect();
        Stream::new(name(self.params.seed, Purpose::Split, &[3])).shuffle(&mut alone);
        alone.truncate(TO_FIT);
        alone.sort_unstable();
        let first = self.items.first();
        let values: Vec<f32> = alone.iter().flat_map(|&v| rows.row(first[v as usize] as usize)).copied().collect();
        let queries = DenseRows::new(&values, rows.width());
        let mut best = RankedBatch::new();
        let nearest = self.exact_unless(rows, queries, k.saturating_add(1), cancel)?;
        for (others, &vertex) in nearest.iter().zip(&alone) {
            best.push_items(others.iter().filter(|s| s.label != first[vertex as usize]).take(k).copied());
        }
        let wish = Wish { k, target, hidden: Some(&alone), missed: 1.0, errors: 1.0 };
        self.fit_with(rows, queries, &best, wish, cancel)?;
        Ok(())
    }

    /// The least width at which `target` of the `k` best rows of these very queries are found, which are known, as
    /// [`Graph::exact`] gives them: several recalls of the same queries need only one scan.
    ///
    /// # Errors
    /// See [`QueryError`].
    ///
    /// # Panics
    /// If there are not as many answers as queries.
    pub fn fit_to(
        &mut self,
        rows: DenseRows<'_>,
        queries: DenseRows<'_>,
        truth: &RankedBatch,
        k: usize,
        target: f64,
    ) -> Result<Fitted, QueryError> {
        let wish = Wish { k, target, hidden: None, missed: 1.0, errors: 0.0 };
        self.fit_with(rows, queries, truth, wish, &Silent).map_err(of_query)
    }

    fn fit_with(
        &mut self,
        rows: DenseRows<'_>,
        queries: DenseRows<'_>,
        best: &RankedBatch,
        Wish { k, target, hidden, missed, errors }: Wish<'_>,
        cancel: &dyn Cancel,
    ) -> Result<Fitted, BuildError> {
        let (truth, best_too) = (Truth { graph: self, rows, queries, best, missed }, self.params.require_recall_at_1);
        // These very queries want the least width, others a safe one.
        let scans = errors > 0.0 || missed > 1.0;
        let enough = |found: &RankedBatch| truth.least_recall(found, best_too, errors) >= target;
        let recall = |found: &RankedBatch| truth.recall(found);
        let aim = Aim { k, hidden, scans, target, recall: &recall, enough: &enough, cancel };
        let fitted = self.fit_aim(rows, queries, &aim)?;
        self.fitted = Some(fitted);
        Ok(fitted)
    }

    /// [`Graph::fit_to`] where recall is not what counts: the least scope whose answers are `enough`, or an
    /// infinite width if none are. The recall reached becomes the target of the result.
    ///
    /// # Errors
    /// See [`QueryError`].
    ///
    /// # Panics
    /// If there are not as many answers as queries.
    pub fn fit_until(
        &mut self,
        rows: DenseRows<'_>,
        queries: DenseRows<'_>,
        truth: &RankedBatch,
        k: usize,
        enough: &dyn Fn(&RankedBatch) -> bool,
    ) -> Result<Fitted, QueryError> {
        let truth = Truth { graph: self, rows, queries, best: truth, missed: 1.0 };
        let recall = |found: &RankedBatch| truth.recall(found);
        let cancel = &Silent;
        let aim = Aim { k, hidden: None, scans: false, target: 0.0, recall: &recall, enough, cancel };
        let fitted = self.fit_aim(rows, queries, &aim).map_err(of_query)?;
        let fitted = Fitted { target: fitted.recall, ..fitted };
        self.fitted = Some(fitted);
        Ok(fitted)
    }

    /// Those of the queries of a build that the scope is fitted to; under inner products the others make
    /// edges.
    pub fn fit_share<'q>(&self, queries: DenseRows<'q>) -> DenseRows<'q> {
        Shares::new(Some(queries), self.params.metric).fit.unwrap_or(queries)
    }

    fn fit_aim(&self, rows: DenseRows<'_>, queries: DenseRows<'_>, aim: &Aim<'_>) -> Result<Fitted, BuildError> {
        let (mut fitted, effort) = self.least_width_of(rows, queries, aim)?;
        if let Some((cells, recall, compared)) = self.least_cells(rows, queries, aim)?
            && cells_are_faster(queries.len() as u64, compared, effort, fitted.width)
        {
            fitted = Fitted { cells, recall, ..fitted };
        }
        Ok(fitted)
    }

    /// The least number of cells that reaches a recall, which it reaches, and the comparisons of all queries.
    fn least_cells(
        &self,
        rows: DenseRows<'_>,
        queries: DenseRows<'_>,
        aim: &Aim<'_>,
    ) -> Result<Option<(usize, f64, u64)>, BuildError> {
        let n_cells = self.n_cells();
        if n_cells == 0 {
            return Ok(None);
        }
        let reached = |cells: usize| -> Result<(Reached, u64), BuildError> {
            let (found, effort) = self.asked(rows, queries, SearchParams::top(aim.k).with_cells(cells), aim)?;
            Ok((aim.of(&found), effort.distances))
        };
        let (mut low, mut high) = (0, 1);
        let mut best = reached(high)?;
        while !best.0.is_enough && high < n_cells {
            (low, high) = (high, (2 * high).min(n_cells));
            best = reached(high)?;
        }
        while high - low > 1 + low / 32 {
            let middle = low.midpoint(high);
            let of_middle = reached(middle)?;
            if !of_middle.0.is_enough {
                low = middle;
            } else {
                (high, best) = (middle, of_middle);
            }
        }
        Ok(best.0.is_enough.then_some((high, best.0.recall, best.1)))
    }

    /// Measures what a build has made, and fits a width to it: with queries, or vectors made of its rows. Under inner
    /// products these are no queries like others, whose answers are seldom near to them: the rows themselves are.
    pub(crate) fn measure(
        &mut self,
        rows: DenseRows<'_>,
        queries: Option<DenseRows<'_>>,
        cancel: &dyn Cancel,
    ) -> Result<(), BuildError> {
        let (sample, nearest) = self.probe(rows);
        self.found_itself = self.recall(rows, sample.view(), &self.nearest_to(rows, sample.view(), 0.0), &nearest);
        let (k, target) = (self.params.top_k, self.params.target_recall);
        let is_alone = |vertex: u32| self.items.rows(vertex).count() == 1;
        let is_product = self.params.metric == Metric::InnerProduct;
        // Queries without a direction have nothing to find.
        let has_answers = |queries: &DenseRows<'_>| {
            !self.params.metric.is_angular() || queries.values().iter().any(|value| *value != 0.0)
        };
        if let Some(queries) = queries.filter(has_answers) {
            self.fit_unless(rows, queries, k, target, cancel)?;
        } else if is_product && (0..self.codes.len() as u32).any(is_alone) {
            self.fit_to_itself(rows, k, target, cancel)?;
        } else if sample.rows > 0 {
            let sample = self.sample(rows, TO_FIT);
            let best = &self.exact_unless(rows, sample.view(), k, cancel)?;
            let wish = Wish { k, target, hidden: None, missed: MISSED_OF_OTHERS, errors: 0.0 };
            self.fit_with(rows, sample.view(), best, wish, cancel)?;
        }
        Ok(())
    }

    /// Vectors between rows, and the rows nearest to them.
    fn probe(&self, rows: DenseRows<'_>) -> (DenseMatrix, RankedBatch) {
        let sample = self.sample(rows, SAMPLE);
        let nearest = self.exact(rows, sample.view(), USUAL_K, None);
        (sample, nearest)
    }

    fn nearest_to(&self, rows: DenseRows<'_>, sample: DenseRows<'_>, width: f32) -> RankedBatch {
        let found = self.search_batch(rows, sample, SearchParams::top(USUAL_K).with_width(width), None);
        // Rows were checked, and the sample is made of them: no query is refused.
        found.unwrap_or_else(|e| panic!("vectors between rows: {e}")).0
    }

    /// Share of the ten rows nearest to each of a sample that a search of width 0 finds.
    pub(crate) fn recall_of_itself(&self, rows: DenseRows<'_>) -> f64 {
        let (sample, nearest) = self.probe(rows);
        self.recall(rows, sample.view(), &self.nearest_to(rows, sample.view(), 0.0), &nearest)
    }

    /// The least width that reaches a recall, and what all queries look at.
    pub(crate) fn least_width(
        &self,
        rows: DenseRows<'_>,
        queries: DenseRows<'_>,
        k: usize,
        target: f64,
        cancel: &dyn Cancel,
    ) -> Result<(Fitted, SearchStats), BuildError> {
        let best = &self.exact_unless(rows, queries, k, cancel)?;
        let truth = Truth { graph: self, rows, queries, best, missed: 1.0 };
        let enough = |found: &RankedBatch| truth.least_recall(found, self.params.require_recall_at_1, 0.0) >= target;
        let recall = |found: &RankedBatch| truth.recall(found);
        self.least_width_of(
            rows,
            queries,
            &Aim { k, hidden: None, scans: false, target, recall: &recall, enough: &enough, cancel },
        )
    }

    fn least_width_of(
        &self,
        rows: DenseRows<'_>,
        queries: DenseRows<'_>,
        aim: &Aim<'_>,
    ) -> Result<(Fitted, SearchStats), BuildError> {
        let scans = aim.scans && self.codes.len() <= SCANNED;
        let reached = |width: f32| -> Result<(Reached, SearchStats), BuildError> {
            let (found, effort) = self.asked(rows, queries, SearchParams::top(aim.k).with_width(width), aim)?;
            Ok((aim.of(&found), effort))
        };
        let (mut low, mut high) = (NARROWEST, if scans { WIDEST } else { 0.0 });
        let mut best = reached(high)?;
        let mut step = 0.1;
        while !best.0.is_enough && high < WIDEST {
            (low, high, step) = (high, high + step, 2.0 * step);
            best = reached(high)?;
        }
        if best.0.is_enough && !scans {
            for _ in 0..HALVINGS {
                let middle = 0.5 * (low + high);
                let of_middle = reached(middle)?;
                if !of_middle.0.is_enough {
                    low = middle;
                } else {
                    (high, best) = (middle, of_middle);
                }
            }
            // One after the other codes are compared ten times as fast.
            let n = self.codes.len() as u64;
            if best.1.distances > (n / 10 + 200) * queries.len() as u64 {
                high = WIDEST;
                best = reached(high)?;
            }
        }
        if !best.0.is_enough {
            high = f32::INFINITY;
            best = reached(high)?;
        }
        let (k, target) = (aim.k, aim.target);
        Ok((Fitted { k, target, width: high, cells: 0, recall: best.0.recall, n_queries: queries.len() }, best.1))
    }

    /// The last result of [`Graph::fit`] or of the build; `None` if there were no rows.
    pub fn fitted(&self) -> Option<Fitted> {
        self.fitted
    }

    /// The default scope of a search: the fitted one, or a width of 0.1 along the graph if nothing was fitted.
    pub fn default_scope(&self) -> Scope {
        self.fitted.map_or(Scope::width(DEFAULT_WIDTH), |fitted| fitted.scope())
    }

    /// Whether the default scope is a scan: it compares all codes, or at least half of all cells. That is so for few
    /// rows, and where neither edges nor cells lead to the best ones; comparing all rows costs about as much then.
    pub fn is_scan(&self) -> bool {
        let of_cells = |cells: usize| 2 * cells >= self.n_cells();
        self.fitted.is_some_and(|of| if of.cells > 0 { of_cells(of.cells) } else { of.width >= SCANS_FROM })
    }

    /// At most `n` vectors to fit with if there are no queries. Each is `(a + b) / 2 + (c - d) / 2` of a row
    /// and three of its neighbours in the graph, so that they vary as much as the rows around them.
    pub fn sample(&self, rows: DenseRows<'_>, n: usize) -> DenseMatrix {
        let mut stream = Stream::new(name(self.params.seed, Purpose::Split, &[]));
        let mut live: Vec<u32> = (0..self.codes.len() as u32).filter(|&v| self.items.is_live(v)).collect();
        stream.shuffle(&mut live);
        live.truncate(n);
        live.sort_unstable();
        let (columns, first) = (rows.width(), self.items.first());
        let mut values = Vec::with_capacity(live.len() * columns);
        for &vertex in &live {
            let mut near = [vertex].into_iter().chain(self.edges.view().of(vertex).iter().copied()).collect::<Vec<_>>();
            stream.shuffle(&mut near);
            // Fewer than four take turns.
            let row = |at: usize| rows.row(first[near[at % near.len()] as usize] as usize);
            let ((a, b), (c, d)) = ((row(0), row(1)), (row(2), row(3)));
            let begin = values.len();
            values.extend((0..columns).map(|j| 0.5 * a[j] + 0.5 * b[j] + (0.5 * c[j] - 0.5 * d[j])));
            // Rows may cancel out.
            if values[begin..].iter().all(|v| *v == 0.0) {
                values.truncate(begin);
                values.extend_from_slice(a);
            }
        }
        DenseMatrix::new(live.len(), columns, values)
    }
}
