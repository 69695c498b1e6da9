//! Whether a graph whose rows moved still finds what it should.

use crate::error::QueryError;
use crate::graph::refresh_policy::Refresh;
use crate::graph::whole::Graph;
use crate::params::{SCANS_FROM, SearchParams};
use crate::search::fit::{SAMPLE, USUAL_K};
use xc_dense::DenseRows;
use xc_sparse::rank::RankedBatch;

/// What queries may miss at the width that was fitted before rows moved, after a short search.
const OF_WIDTH: f64 = 0.05;

/// What a graph is judged by. Queries may be another kind of vectors than rows, and find less of a graph that still
/// finds its rows: where they are given, they decide.
pub(crate) enum Judge<'a> {
    /// By queries, at the width that was fitted before rows moved.
    Queries { some: DenseRows<'a>, nearest: RankedBatch, params: SearchParams, wanted: f64 },
    /// By vectors made of its rows: what they found when all edges were made.
    Itself { wanted: f64 },
}

impl<'a> Judge<'a> {
    /// `graph` has the new codes.
    ///
    /// # Errors
    /// A query that is none.
    pub(crate) fn new(graph: &Graph, rows: DenseRows<'_>, queries: Option<DenseRows<'a>>) -> Result<Self, QueryError> {
        // Cells and scans do not ask edges.
        let fitted = graph.fitted().filter(|fitted| fitted.cells == 0 && fitted.width < SCANS_FROM);
        let (Some(queries), Some(fitted)) = (queries, fitted) else {
            return Ok(Self::Itself { wanted: graph.found_itself });
        };
        let some = &queries.values()[..queries.values().len().min(SAMPLE * queries.width())];
        let some = DenseRows::new(some, queries.width());
        // Whether they are queries shows as they are answered.
        graph.search_batch(rows, some, SearchParams::top(0).with_width(fitted.width), None)?;
        let nearest = graph.exact(rows, some, fitted.k, None);
        let params = SearchParams::top(fitted.k).with_width(fitted.width);
        Ok(Self::Queries { some, nearest, params, wanted: fitted.recall })
    }

    /// Whether queries decide.
    pub(crate) fn asks(&self) -> bool {
        matches!(self, Self::Queries { .. })
    }

    /// Share of the nearest rows that are found.
    pub(crate) fn share(&self, graph: &Graph, rows: DenseRows<'_>) -> f64 {
        match self {
            Self::Itself { .. } => graph.recall_of_itself(rows),
            Self::Queries { some, nearest, params, .. } => {
                let found = graph.search_batch(rows, *some, *params, None);
                // The same queries were answered when this was made.
                let found = found.unwrap_or_else(|e| panic!("queries that were answered: {e}")).0;
                graph.recall(rows, *some, &found, nearest)
            }
        }
    }

    /// Whether a share is what is wanted, within twice the error of one that is counted over the sample, or whether
    /// what is missing does not pay for `next`.
    pub(crate) fn is_enough(&self, share: f64, next: Refresh) -> bool {
        let (n, wanted) = match self {
            Self::Itself { wanted } => (SAMPLE * USUAL_K, *wanted),
            // Rows that moved change what a width finds in a new graph, too, and the width is fitted again.
            Self::Queries { some, params, wanted, .. } if next == Refresh::SHORT => {
                (some.len() * params.top_k, *wanted)
            }
            Self::Queries { some, params, wanted, .. } => (some.len() * params.top_k, *wanted - OF_WIDTH),
        };
        share + 2.0 * (share * (1.0 - share) / n as f64).sqrt() >= wanted
    }
}
