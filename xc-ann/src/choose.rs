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

/// Factors of pruning of inner products.
const FACTORS: [f32; 3] = [0.79, 0.9, 1.0];

/// The settings with a factor: the one that is given, else the one with which a small graph finds its rows
/// by the fewest comparisons.
pub(crate) fn choose(
    rows: DenseRows<'_>,
    listed: &[u32],
    queries: Option<DenseRows<'_>>,
    params: &BuildParams,
    observer: &dyn Observer,
) -> Result<BuildParams, BuildError> {
    let with = |factor: f32| BuildParams { factor: params.factor.or(Some(factor)), ..*params };
    if params.factor.is_some() || params.metric != Metric::InnerProduct {
        return Ok(with(1.0));
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
    for params in FACTORS.map(with) {
        if observer.cancelled() {
            return Err(BuildError::Cancelled);
        }
        let graph = Graph::linked(rows, &some, &params, None, &NoObserver)?;
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
    Ok(best.map_or_else(|| with(1.0), |(_, _, params)| params))
}
