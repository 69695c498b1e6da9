//! Building a graph: settings that depend on the rows are chosen, then it is linked, then measured.
//!
//! Under inner products the factor of pruning decides whether a graph can be searched at all: rows of
//! unequal lengths need more edges than the relative neighbourhood has, rows of equal lengths are torn
//! into clusters by them. So small graphs over some of the rows are built with each.

use crate::code::ivf::Cells;
use crate::error::{BuildError, QueryError};
use crate::graph::edges::NONE;
use crate::graph::whole::Graph;
use crate::metric::Metric;
use crate::observe::BuildEvent;
use crate::params::BuildParams;
use xc_buffer::{Observer, Unwatched};
use xc_dense::DenseRows;
use xc_hash::stream::{Purpose, Stream, name};

/// Rows of a small graph.
const ROWS_OF_SMALL: usize = 5000;
/// Queries that it is asked.
const ASKED: usize = 128;
/// Factors of pruning of inner products.
const FACTORS: [f32; 3] = [0.79, 0.9, 1.0];
/// Queries that settings and width are fitted to, at most, where others are for edges.
const FITTED_WITH: usize = 1000;

/// Queries to fit with, and to make edges for: edges among answers pay for inner products alone, and
/// what they were made for says nothing about others.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shares<'a> {
    pub(crate) fit: Option<DenseRows<'a>>,
    pub(crate) link: Option<DenseRows<'a>>,
}

impl<'a> Shares<'a> {
    pub(crate) fn new(queries: Option<DenseRows<'a>>, metric: Metric) -> Self {
        let Some(queries) = queries.filter(|queries| !queries.is_empty()) else {
            return Self { fit: None, link: None };
        };
        if metric != Metric::InnerProduct {
            return Self { fit: Some(queries), link: None };
        }
        let (fit, link) = split(queries, queries.len().div_ceil(2).min(FITTED_WITH));
        Self { fit: Some(fit), link: Some(link).filter(|link| !link.is_empty()) }
    }
}

fn split(rows: DenseRows<'_>, at: usize) -> (DenseRows<'_>, DenseRows<'_>) {
    let (first, rest) = rows.values().split_at(at * rows.width());
    (DenseRows::new(first, rows.width()), DenseRows::new(rest, rows.width()))
}

/// Refuses queries of another width than the rows.
pub(crate) fn check_queries(queries: Option<DenseRows<'_>>, expected: usize) -> Result<(), QueryError> {
    match queries {
        Some(queries) if queries.width() != expected => Err(QueryError::Width { found: queries.width(), expected }),
        _ => Ok(()),
    }
}

impl Graph {
    /// Builds a graph over rows. The bytes are the same at any number of threads and on every
    /// instruction set. The search width is fitted with [`Graph::sample`].
    ///
    /// *Cost*: about 55 CPU microseconds a vertex and pass at 128 coordinates and the usual values.
    /// *Memory*: [`Graph::bytes`], and a fiftieth of it.
    ///
    /// # Errors
    /// See [`BuildError`].
    pub fn build(
        rows: DenseRows<'_>,
        params: &BuildParams,
        observer: &dyn Observer<BuildEvent>,
    ) -> Result<Self, BuildError> {
        Self::build_for(rows, None, params, observer)
    }

    /// [`Graph::build`] for queries like these, if they are given. Settings and the search width are fitted
    /// to them: they may be harder than vectors made of rows. Under inner products that is the first
    /// half, at most 1,000, and edges are made among the answers of the others.
    ///
    /// *Cost*: an exact scan for each query, too.
    ///
    /// # Errors
    /// See [`BuildError`].
    pub fn build_for(
        rows: DenseRows<'_>,
        queries: Option<DenseRows<'_>>,
        params: &BuildParams,
        observer: &dyn Observer<BuildEvent>,
    ) -> Result<Self, BuildError> {
        if rows.len() >= NONE as usize {
            return Err(BuildError::Rows { n: rows.len() });
        }
        Self::build_of(rows, &(0..rows.len() as u32).collect::<Vec<_>>(), queries, params, observer)
    }

    /// [`Graph::build_for`] over some of the rows.
    ///
    /// # Errors
    /// See [`BuildError`].
    ///
    /// # Panics
    /// If a listed row is not there.
    pub fn build_of(
        rows: DenseRows<'_>,
        listed: &[u32],
        queries: Option<DenseRows<'_>>,
        params: &BuildParams,
        observer: &dyn Observer<BuildEvent>,
    ) -> Result<Self, BuildError> {
        params.check(rows.width())?;
        check_queries(queries, rows.width())?;
        let queries = Shares::new(queries, params.metric);
        let factor = match (params.alpha, params.metric) {
            (Some(factor), _) => factor,
            (None, Metric::InnerProduct) => best_factor(rows, listed, queries.fit, params, observer)?,
            (None, _) => 1.0,
        };
        let params = BuildParams { alpha: Some(factor), ..*params };
        let mut graph = Self::linked(rows, listed, &params, queries.link, observer)?;
        let n_cells = params.cells.unwrap_or_else(|| Cells::usual(graph.codes.len()));
        graph.cells = Cells::new(graph.placed(rows), n_cells, params.seed, observer)?;
        graph.measure(rows, queries.fit, observer)?;
        if let (Some(least), Some(fitted)) = (params.min_recall, graph.fitted)
            && fitted.recall < least
        {
            return Err(BuildError::TooFewFound { recall: fitted.recall, k: fitted.k, least });
        }
        // Met, and not stored: a graph that is opened equals the one that was saved.
        graph.params.min_recall = None;
        if params.cells.is_none() && graph.fitted.is_none_or(|fitted| fitted.cells == 0) {
            graph.cells = None;
        }
        Ok(graph)
    }
}

/// The factor with which a small graph finds its rows by the fewest comparisons.
fn best_factor(
    rows: DenseRows<'_>,
    listed: &[u32],
    queries: Option<DenseRows<'_>>,
    params: &BuildParams,
    observer: &dyn Observer<BuildEvent>,
) -> Result<f32, BuildError> {
    let mut stream = Stream::new(name(params.seed, Purpose::Split, &[1]));
    let mut some = listed.to_vec();
    stream.shuffle(&mut some);
    some.truncate(ROWS_OF_SMALL);
    some.sort_unstable();
    let mut of_rows = None;
    let mut best = (u64::MAX, 0.0, 1.0);
    for factor in FACTORS {
        let params = BuildParams { alpha: Some(factor), ..*params };
        let graph = Graph::linked(rows, &some, &params, None, &Unwatched(observer))?;
        let asked = match queries {
            Some(queries) => split(queries, queries.len().min(ASKED)).0,
            None => of_rows.get_or_insert_with(|| graph.sample(rows, ASKED)).view(),
        };
        if asked.is_empty() {
            break;
        }
        let (fitted, effort) = graph.least_width(rows, asked, params.top_k, params.target_recall, observer)?;
        let cost = if fitted.recall >= fitted.target { effort.distances } else { u64::MAX };
        if cost < best.0 || cost == best.0 && fitted.recall > best.1 {
            best = (cost, fitted.recall, factor);
        }
    }
    Ok(best.2)
}
