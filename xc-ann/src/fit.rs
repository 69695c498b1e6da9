//! The search width that reaches a recall, found on a sample.

use crate::error::QueryError;
use crate::exact::{exact, recall};
use crate::graph::Graph;
use crate::query::SearchParams;
use serde::{Deserialize, Serialize};
use xc_hash::stream::{Purpose, Stream, name};
use xc_sparse::{DenseMatrix, DenseRows};

/// Widths are tried from here to there.
const NARROWEST: f32 = -0.5;
const WIDEST: f32 = 16.0;
/// Halvings of the interval of widths.
const HALVINGS: usize = 8;

/// A search width, and what it reaches on the queries that it was found with.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fitted {
    /// Answers of a query.
    pub k: usize,
    /// The recall that was wanted.
    pub target: f64,
    /// The least width that was found to reach it.
    pub width: f32,
    /// The recall at this width.
    pub recall: f64,
    /// Queries.
    pub n_queries: usize,
}

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
        let truth = exact(rows, queries, self.params.metric, k);
        let reached = |width: f32| -> Result<f64, QueryError> {
            let (found, _) = self.search_batch(rows, queries, SearchParams { k, width }, None)?;
            Ok(recall(&found, &truth))
        };
        let (mut low, mut high) = (NARROWEST, 0.0);
        let mut best = reached(high)?;
        let mut step = 0.1;
        while best < target && high < WIDEST {
            (low, high, step) = (high, high + step, 2.0 * step);
            best = reached(high)?;
        }
        if best < target {
            high = f32::INFINITY;
            best = reached(high)?;
        } else {
            for _ in 0..HALVINGS {
                let middle = 0.5 * (low + high);
                let of_middle = reached(middle)?;
                if of_middle < target {
                    low = middle;
                } else {
                    (high, best) = (middle, of_middle);
                }
            }
        }
        let fitted = Fitted { k, target, width: high, recall: best, n_queries: queries.len() };
        self.fitted = Some(fitted);
        Ok(fitted)
    }

    /// What [`Graph::fit`] found last.
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
