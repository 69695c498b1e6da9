//! A graph over the rows of labels, which change during training.

use crate::label_rows::BiasCoordinate;
use crate::sampler::{LabelWeights, Queries, SampleError};
use rayon::prelude::*;
use xc_ann::{BuildError, BuildParams, Graph, Metric, QueryError, Refresh, SearchParams, Silent, rerank_candidates};
use xc_dense::DenseRows;
use xc_dense::dot;
use xc_sparse::rank::{RankedBatch, Scored, TopK};

/// Maximum search width. The additional labels that a wider search finds are not worth its time:
/// uniform labels represent them.
pub(super) const WIDEST: f32 = 0.15;
/// Maximum number of true labels of an instance that a search allows for by requesting more labels:
/// they are among the best, but are not negatives.
const MOST_OWN: usize = 64;

/// A graph over the labels' rows and biases, which are balanced with the vectors of instances.
#[derive(Clone, Debug)]
pub(super) struct LabelGraph {
    pub(super) graph: Graph,
    pub(super) bias: BiasCoordinate,
}

/// The build parameters of a graph over labels. At first rows are nearly random, and no graph over
/// them is good. Every refresh adds edges for the vectors of batches, which makes up for narrow
/// searches and a single pass. The pruning factor is the middle one of those that a build would
/// choose from.
pub(super) fn build_params(top_k: usize, target_recall: f64, seed: u64) -> BuildParams {
    let usual = BuildParams::new(Metric::InnerProduct);
    BuildParams { seed, top_k, target_recall, passes: 1, build_width: 48, alpha: Some(0.9), cells: Some(0), ..usual }
}

/// An invalid row is reported as invalid weights of its label.
fn of_build(error: BuildError) -> SampleError {
    match error {
        BuildError::Row { row } => SampleError::Weights { label: row as u32 },
        other => SampleError::Index(other),
    }
}

impl LabelGraph {
    /// Builds a graph over the current weights, for vectors like those of `queries`.
    pub(super) fn build(
        weights: LabelWeights<'_>,
        queries: Queries<'_>,
        params: &BuildParams,
    ) -> Result<Self, SampleError> {
        let bias = BiasCoordinate::balanced(weights, Some(queries.vectors));
        let (labels, asked) = (bias.labels(weights), instances(bias, queries)?);
        let asked = DenseRows::new(&asked, weights.width() + 1);
        let graph = Graph::build_for(labels.view(), Some(asked), params, &Silent).map_err(of_build)?;
        Ok(Self { graph, bias })
    }

    /// Updates the codes of changed labels; their edges stay.
    pub(super) fn recode(&mut self, labels: &[u32], weights: LabelWeights<'_>) -> Result<(), SampleError> {
        let (mut rows, mut buffer) = (Vec::new(), Vec::new());
        rows.reserve(labels.len() * (weights.width() + 1));
        self.bias.push_labels(weights, labels.iter().copied(), &mut buffer, &mut rows);
        self.graph.recode(labels, DenseRows::new(&rows, weights.width() + 1)).map_err(of_build)
    }

    /// Updates the codes and edges of all labels, and balances the biases again.
    pub(super) fn refresh(&mut self, weights: LabelWeights<'_>, queries: Queries<'_>) -> Result<(), SampleError> {
        self.bias = BiasCoordinate::balanced(weights, Some(queries.vectors));
        let (labels, asked) = (self.bias.labels(weights), instances(self.bias, queries)?);
        let asked = DenseRows::new(&asked, weights.width() + 1);
        self.graph.refresh(labels.view(), Some(asked), Some(Refresh::SHORT), &Silent).map_err(of_build)?;
        Ok(())
    }

    /// The `k` false labels with the largest logits that the search finds for each instance, best
    /// first.
    ///
    /// Each instance requests `k` labels and a surplus that depends only on the number of its own
    /// true labels. Its result therefore does not depend on the batch.
    pub(super) fn hardest(
        &self,
        queries: Queries<'_>,
        weights: LabelWeights<'_>,
        k: usize,
    ) -> Result<Vec<TopK>, SampleError> {
        let columns = weights.width() + 1;
        let asked = instances(self.bias, queries)?;
        let own = |place: usize| queries.targets.row(place).len().min(MOST_OWN);
        let wanted = |place: usize| rerank_candidates(k + own(place).next_power_of_two());
        let mut order: Vec<usize> = (0..queries.instances.len()).collect();
        order.sort_by_key(|&place| wanted(place));
        let width = self.graph.fitted().map_or(WIDEST, |fitted| fitted.width.min(WIDEST));
        let mut best: Vec<TopK> = vec![TopK::new(k); order.len()];
        let mut group: Vec<f32> = Vec::new();
        for places in order.chunk_by(|&a, &b| wanted(a) == wanted(b)) {
            group.clear();
            places.iter().for_each(|&place| group.extend_from_slice(&asked[place * columns..][..columns]));
            let params = SearchParams::top(wanted(places[0])).with_width(width);
            let found = self.graph.search_codes_batch(DenseRows::new(&group, columns), params, None);
            let found = found.map_err(|error| match error {
                QueryError::NotFinite { query } => SampleError::Vector { instance: queries.instances[places[query]] },
                other => SampleError::Index(other.into()),
            })?;
            rank(&found.0, places, queries, weights, &mut best)?;
        }
        Ok(best)
    }
}

/// Ranks the labels found for some instances by their logits, without the true ones.
fn rank(
    found: &RankedBatch,
    places: &[usize],
    queries: Queries<'_>,
    weights: LabelWeights<'_>,
    best: &mut [TopK],
) -> Result<(), SampleError> {
    let ranked: Vec<Result<TopK, SampleError>> = places
        .par_iter()
        .enumerate()
        .map_init(Vec::new, |buffer, (at, &place)| {
            let (vector, own) = (queries.vectors.row(place), queries.targets.row(place));
            let mut top = best[place].clone();
            for label in found.row(at).iter().map(|found| found.label) {
                if own.binary_search(&label).is_ok() {
                    continue;
                }
                let score = dot(vector, weights.row(label, buffer)) + weights.bias(label);
                if !score.is_finite() {
                    return Err(SampleError::Weights { label });
                }
                top.push(Scored { label, score });
            }
            Ok(top)
        })
        .collect();
    for (&place, ranked) in places.iter().zip(ranked) {
        best[place] = ranked?;
    }
    Ok(())
}

/// Vectors of the instances in the form that the graph compares.
fn instances(bias: BiasCoordinate, queries: Queries<'_>) -> Result<Vec<f32>, SampleError> {
    let wild = |row: &[f32]| row.iter().any(|v| !v.is_finite());
    if let Some(place) = queries.vectors.iter().position(wild) {
        return Err(SampleError::Vector { instance: queries.instances[place] });
    }
    let mut out = Vec::with_capacity(queries.vectors.len() * (queries.vectors.width() + 1));
    bias.push_instances(queries.vectors, &mut out);
    Ok(out)
}
