//! The search width that reaches a recall, found on a sample.

use crate::error::QueryError;
use crate::exact::recall;
use crate::graph::Graph;
use crate::params::{Fitted, SearchParams};
use crate::query::SCANS_FROM;
use xc_hash::stream::{Purpose, Stream, name};
use xc_sparse::rank::RankedBatch;
use xc_sparse::{DenseMatrix, DenseRows};

/// Widths are tried from here to there.
const NARROWEST: f32 = -0.5;
const WIDEST: f32 = SCANS_FROM;
/// Halvings of the interval of widths.
const HALVINGS: usize = 8;
/// What a build fits its width to: answers of a query, the share of them, and vectors.
const USUAL_K: usize = 10;
const USUAL_TARGET: f64 = 0.95;
pub(crate) const SAMPLE: usize = 256;

impl Graph {
    /// Finds the least width at which `target` of the `k` best rows are found, and keeps it; an
    /// infinite one where none reaches it.
    ///
    /// *Cost*: an exact scan for each query, and ten searches.
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
        let fitted = self.least_width(rows, queries, &self.exact(rows, queries, k, None), k, target)?;
        self.fitted = Some(fitted);
        Ok(fitted)
    }

    /// Measures what a build has made, and fits a width to it: with queries, or vectors made of its rows.
    pub(crate) fn look_at_itself(
        &mut self,
        rows: DenseRows<'_>,
        queries: Option<DenseRows<'_>>,
    ) -> Result<(), QueryError> {
        self.found_itself = self.recall_of_itself(rows);
        let sample = self.sample(rows, SAMPLE);
        let queries = queries.filter(|queries| !queries.is_empty()).unwrap_or(sample.view());
        if !queries.is_empty() {
            self.fitted = Some(self.effort_of(rows, queries)?.0);
        }
        Ok(())
    }

    /// The usual fit, and the comparisons of all queries at its width.
    pub(crate) fn effort_of(&self, rows: DenseRows<'_>, queries: DenseRows<'_>) -> Result<(Fitted, u64), QueryError> {
        let truth = self.exact(rows, queries, USUAL_K, None);
        let fitted = self.least_width(rows, queries, &truth, USUAL_K, USUAL_TARGET)?;
        let params = SearchParams { k: USUAL_K, width: fitted.width };
        let (_, effort) = self.search_batch(rows, queries, params, None)?;
        Ok((fitted, effort.distances))
    }

    /// Share of the ten rows nearest to each of a sample that a search of width 0 finds.
    pub(crate) fn recall_of_itself(&self, rows: DenseRows<'_>) -> f64 {
        let sample = self.sample(rows, SAMPLE);
        if sample.rows == 0 {
            return 1.0;
        }
        let truth = self.exact(rows, sample.view(), USUAL_K, None);
        self.reached(rows, sample.view(), &truth, USUAL_K, 0.0).map_or(0.0, |(recall, _)| recall)
    }

    /// Recall, and comparisons of all queries.
    fn reached(
        &self,
        rows: DenseRows<'_>,
        queries: DenseRows<'_>,
        truth: &RankedBatch,
        k: usize,
        width: f32,
    ) -> Result<(f64, u64), QueryError> {
        let (found, effort) = self.search_batch(rows, queries, SearchParams { k, width }, None)?;
        Ok((recall(&found, truth), effort.distances))
    }

    fn least_width(
        &self,
        rows: DenseRows<'_>,
        queries: DenseRows<'_>,
        truth: &RankedBatch,
        k: usize,
        target: f64,
    ) -> Result<Fitted, QueryError> {
        let reached = |width| self.reached(rows, queries, truth, k, width);
        let (mut low, mut high) = (NARROWEST, 0.0);
        let mut best = reached(high)?;
        let mut step = 0.1;
        while best.0 < target && high < WIDEST {
            (low, high, step) = (high, high + step, 2.0 * step);
            best = reached(high)?;
        }
        if best.0 < target {
            high = f32::INFINITY;
            best = reached(high)?;
        } else {
            for _ in 0..HALVINGS {
                let middle = 0.5 * (low + high);
                let of_middle = reached(middle)?;
                if of_middle.0 < target {
                    low = middle;
                } else {
                    (high, best) = (middle, of_middle);
                }
            }
            // One after the other codes are compared ten times as fast.
            let n = self.codes.len() as u64;
            if best.1 > (n / 10 + 200) * queries.len() as u64 {
                high = WIDEST;
                best = reached(high)?;
            }
        }
        Ok(Fitted { k, target, width: high, recall: best.0, n_queries: queries.len() })
    }

    /// What [`Graph::fit`] found last, or the build; nothing where there were no rows.
    pub fn fitted(&self) -> Option<Fitted> {
        self.fitted
    }

    /// At most `n` vectors to fit with where there are no queries. Each is `(a + b) / 2 + (c - d) / 2`
    /// of a row and three that edges lead to: what varies around a row varies as much around these.
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
