//! The search width that reaches a recall, found on a sample.

use crate::choose::Shares;
use crate::error::QueryError;
use crate::exact::{recall, recall_of_best};
use crate::graph::Graph;
use crate::params::{Fitted, SCANS_FROM, Scope, SearchParams};
use crate::search::Effort;
use xc_hash::stream::{Purpose, Stream, name};
use xc_sparse::rank::RankedBatch;
use xc_sparse::{DenseMatrix, DenseRows};

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

/// Whether cells answer so many queries sooner than a walk does, or a scan where the width is one: by what a
/// comparison costs where codes lie side by side (4 to 6 ns without AVX-512).
fn cells_are_faster(n_queries: u64, in_cells: u64, other: Effort, width: f32) -> bool {
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

/// What a fit looks for.
struct Aim<'a> {
    k: usize,
    /// The recall that is stored as the one to reach.
    target: f64,
    /// The `k` best rows of each query.
    truth: &'a RankedBatch,
    /// Whether answers are good enough.
    enough: &'a dyn Fn(&RankedBatch) -> bool,
}

/// What searches have found.
#[derive(Clone, Copy, Debug)]
struct Reached {
    recall: f64,
    is_enough: bool,
}

impl Aim<'_> {
    fn of(&self, found: &RankedBatch) -> Reached {
        Reached { recall: recall(found, self.truth), is_enough: (self.enough)(found) }
    }
}

/// The recall, or less of the very best rows where they have to be found, too.
fn least_recall(found: &RankedBatch, truth: &RankedBatch, best_too: bool) -> f64 {
    let of_best = if best_too { recall_of_best(found, truth) } else { 1.0 };
    recall(found, truth).min(of_best)
}

impl Graph {
    /// Finds and keeps the least width at which `target` of the `k` best rows are found; an infinite one if
    /// none reaches it.
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
        self.fit_to(rows, queries, &self.exact(rows, queries, k, None), k, target)
    }

    /// [`Graph::fit`] where the `k` best rows of each query are known, as [`Graph::exact`] gives them: several
    /// recalls of the same queries need only one scan.
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
        let best_too = self.params.best_too;
        let enough = |found: &RankedBatch| least_recall(found, truth, best_too) >= target;
        let fitted = self.fit_aim(rows, queries, &Aim { k, target, truth, enough: &enough })?;
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
        let fitted = self.fit_aim(rows, queries, &Aim { k, target: 0.0, truth, enough })?;
        let fitted = Fitted { target: fitted.recall, ..fitted };
        self.fitted = Some(fitted);
        Ok(fitted)
    }

    /// Those of the queries of a build that the scope is fitted to; under inner products the others make
    /// edges.
    pub fn fit_share<'q>(&self, queries: DenseRows<'q>) -> DenseRows<'q> {
        Shares::new(Some(queries), self.params.metric).fit.unwrap_or(queries)
    }

    fn fit_aim(&self, rows: DenseRows<'_>, queries: DenseRows<'_>, aim: &Aim<'_>) -> Result<Fitted, QueryError> {
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
    ) -> Result<Option<(usize, f64, u64)>, QueryError> {
        let n_cells = self.n_cells();
        if n_cells == 0 {
            return Ok(None);
        }
        let reached = |cells: usize| -> Result<(Reached, u64), QueryError> {
            let (found, effort) = self.search_batch(rows, queries, SearchParams::in_cells(aim.k, cells), None)?;
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

    /// Measures what a build has made, and fits a width to it: with queries, or vectors made of its rows.
    pub(crate) fn measure(&mut self, rows: DenseRows<'_>, queries: Option<DenseRows<'_>>) -> Result<(), QueryError> {
        let (sample, nearest) = self.probe(rows);
        self.found_itself = recall(&self.nearest_to(rows, sample.view(), 0.0), &nearest);
        let queries = queries.unwrap_or(sample.view());
        if !queries.is_empty() {
            self.fit(rows, queries, self.params.top_k, self.params.target_recall)?;
        }
        Ok(())
    }

    /// Vectors between rows, and the rows nearest to them: of a scan of all codes, which costs half of an
    /// exact one and finds the same but for ties.
    fn probe(&self, rows: DenseRows<'_>) -> (DenseMatrix, RankedBatch) {
        let sample = self.sample(rows, SAMPLE);
        let nearest = self.nearest_to(rows, sample.view(), SCANS_FROM);
        (sample, nearest)
    }

    fn nearest_to(&self, rows: DenseRows<'_>, sample: DenseRows<'_>, width: f32) -> RankedBatch {
        let found = self.search_batch(rows, sample, SearchParams::new(USUAL_K, width), None);
        // Rows were checked, and the sample is made of them: no query is refused.
        found.unwrap_or_else(|e| panic!("vectors between rows: {e}")).0
    }

    /// Share of the ten rows nearest to each of a sample that a search of width 0 finds.
    pub(crate) fn recall_of_itself(&self, rows: DenseRows<'_>) -> f64 {
        let (sample, nearest) = self.probe(rows);
        recall(&self.nearest_to(rows, sample.view(), 0.0), &nearest)
    }

    /// The least width that reaches a recall, and what all queries look at.
    pub(crate) fn least_width(
        &self,
        rows: DenseRows<'_>,
        queries: DenseRows<'_>,
        k: usize,
        target: f64,
    ) -> Result<(Fitted, Effort), QueryError> {
        let truth = &self.exact(rows, queries, k, None);
        let enough = |found: &RankedBatch| least_recall(found, truth, self.params.best_too) >= target;
        self.least_width_of(rows, queries, &Aim { k, target, truth, enough: &enough })
    }

    fn least_width_of(
        &self,
        rows: DenseRows<'_>,
        queries: DenseRows<'_>,
        aim: &Aim<'_>,
    ) -> Result<(Fitted, Effort), QueryError> {
        let reached = |width: f32| -> Result<(Reached, Effort), QueryError> {
            let (found, effort) = self.search_batch(rows, queries, SearchParams::new(aim.k, width), None)?;
            Ok((aim.of(&found), effort))
        };
        let (mut low, mut high) = (NARROWEST, 0.0);
        let mut best = reached(high)?;
        let mut step = 0.1;
        while !best.0.is_enough && high < WIDEST {
            (low, high, step) = (high, high + step, 2.0 * step);
            best = reached(high)?;
        }
        if !best.0.is_enough {
            high = f32::INFINITY;
            best = reached(high)?;
        } else {
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
        let (k, target) = (aim.k, aim.target);
        Ok((Fitted { k, target, width: high, cells: 0, recall: best.0.recall, n_queries: queries.len() }, best.1))
    }

    /// The last result of [`Graph::fit`] or of the build; `None` if there were no rows.
    pub fn fitted(&self) -> Option<Fitted> {
        self.fitted
    }

    /// The default scope of a search: the fitted one, or a width of 0.1 along the graph if nothing was fitted.
    pub fn usual(&self) -> Scope {
        self.fitted.map_or(Scope::width(DEFAULT_WIDTH), |fitted| fitted.scope())
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
        DenseMatrix { rows: live.len(), columns, values }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use xc_sparse::rank::Scored;

    fn lists(of: &[&[u32]]) -> RankedBatch {
        let mut batch = RankedBatch::new();
        for labels in of {
            let row: Vec<Scored> = labels.iter().map(|&label| Scored { label, score: -(label as f32) }).collect();
            batch.push_row(&row);
        }
        batch
    }

    #[test]
    fn the_best_rows_have_to_be_found_where_they_are_asked_for() {
        let truth = lists(&[&[0, 1, 2, 3], &[4, 5, 6, 7], &[], &[8, 9]]);
        // The best of one query of three is missing, and one row of ten.
        let found = lists(&[&[1, 2, 3, 10], &[4, 5, 6, 7], &[], &[8, 9]]);
        assert_eq!(least_recall(&found, &truth, false), 0.9);
        assert_eq!(least_recall(&found, &truth, true), 2.0 / 3.0);
        assert_eq!(least_recall(&truth, &truth, true), 1.0);
        // Nothing is missing where there is nothing to find.
        assert_eq!(recall_of_best(&lists(&[&[]]), &lists(&[&[]])), 1.0);
        assert_eq!(recall_of_best(&lists(&[&[]]), &lists(&[&[1]])), 0.0);
    }
}
