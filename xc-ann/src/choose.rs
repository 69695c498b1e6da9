//! Settings that depend on the rows, chosen by small graphs over some of them.
//!
//! Under inner products the factor of pruning decides whether a graph can be searched at all: rows of
//! unequal lengths need more edges than the relative neighbourhood has, rows of equal lengths are torn
//! into clusters by them.

use crate::error::BuildError;
use crate::graph::Graph;
use crate::metric::Metric;
use crate::observe::{NoObserver, Observer};
use crate::params::{BuildParams, Fitted};
use xc_hash::stream::{Purpose, Stream, name};
use xc_sparse::DenseRows;

/// Rows of a small graph.
const SOME: usize = 5000;
/// Queries that it is asked.
const QUERIES: usize = 128;

/// Factors of pruning, and the passes that pay with them.
const OF_PRODUCTS: [(f32, usize); 3] = [(0.79, 1), (0.9, 1), (1.0, 2)];
const OF_DISTANCES: [(f32, usize); 1] = [(1.0, 2)];

/// The settings with factor and passes: those that are given, else those with which a small graph
/// finds its rows by the fewest comparisons.
pub(crate) fn choose(
    rows: DenseRows<'_>,
    listed: &[u32],
    queries: Option<DenseRows<'_>>,
    params: &BuildParams,
    observer: &dyn Observer,
) -> Result<BuildParams, BuildError> {
    let pairs = if params.metric == Metric::InnerProduct { &OF_PRODUCTS[..] } else { &OF_DISTANCES[..] };
    let with = |&(factor, passes): &(f32, usize)| BuildParams {
        factor: params.factor.or(Some(factor)),
        passes: params.passes.or(Some(passes)),
        ..*params
    };
    if params.factor.is_some() || pairs.len() == 1 {
        return Ok(with(&pairs[pairs.len() - 1]));
    }
    let mut stream = Stream::new(name(params.seed, Purpose::Split, &[1]));
    let mut some = listed.to_vec();
    stream.shuffle(&mut some);
    some.truncate(SOME);
    some.sort_unstable();
    let mut asked = queries.filter(|queries| !queries.is_empty()).map(|queries| {
        let n = queries.len().min(QUERIES);
        xc_sparse::DenseMatrix {
            rows: n,
            columns: queries.width(),
            values: queries.values()[..n * queries.width()].to_vec(),
        }
    });
    let mut best: Option<(Fitted, u64, BuildParams)> = None;
    for params in pairs.iter().map(with) {
        if observer.cancelled() {
            return Err(BuildError::Cancelled);
        }
        let graph = Graph::linked(rows, &some, &params, &NoObserver)?;
        let asked = asked.get_or_insert_with(|| graph.sample(rows, QUERIES));
        if asked.rows == 0 {
            return Ok(params);
        }
        let (fitted, distances) = graph.effort_of(rows, asked.view())?;
        let is_better = |(other, of_other, _): &(Fitted, u64, BuildParams)| match (
            fitted.recall >= fitted.target,
            other.recall >= other.target,
        ) {
            (true, true) => distances < *of_other,
            (true, false) => true,
            (false, true) => false,
            (false, false) => fitted.recall > other.recall,
        };
        if best.as_ref().is_none_or(is_better) {
            best = Some((fitted, distances, params));
        }
    }
    Ok(best.map_or_else(|| with(&pairs[0]), |(_, _, params)| params))
}
