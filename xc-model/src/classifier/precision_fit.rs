//! How far an index of labels is searched, by what answers lose in precision.
//!
//! A recall counts labels that matter to nobody: of ten best labels of a query one or two are true. Where it is
//! known which, the least scope is sought that loses no more of them than is allowed.

use super::Classifier;
use super::nearest::{LabelIndex, LabelIndexError, Searched};
use serde::Serialize;
use std::sync::Arc;
use xc_ann::{BuildError, Fitted};
use xc_nn::Rows;
use xc_sparse::LabelRows;
use xc_sparse::rank::RankedBatch;

/// Lists whose precision counts.
const AT: [usize; 3] = [1, 3, 5];

/// What P@1, P@3 and P@5 lose against scoring all labels: true labels among the best of all labels that are not
/// among those found, per query and place.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LostPrecision {
    /// Of one answer.
    #[serde(rename = "P@1")]
    pub at_1: f64,
    /// Of three answers.
    #[serde(rename = "P@3")]
    pub at_3: f64,
    /// Of five answers.
    #[serde(rename = "P@5")]
    pub at_5: f64,
}

impl LostPrecision {
    /// What `found` loses of `best`; `labels` are those that are true of each query.
    fn new(found: &RankedBatch, best: &RankedBatch, labels: &LabelRows) -> Self {
        let mut lost = [0; AT.len()];
        for ((found, best), labels) in found.iter().zip(best.iter()).zip(labels.iter()) {
            for (lost, k) in lost.iter_mut().zip(AT) {
                let found = &found[..found.len().min(k)];
                let true_ones = best.iter().take(k).filter(|s| labels.binary_search(&s.label).is_ok());
                *lost += true_ones.filter(|s| !found.iter().any(|f| f.label == s.label)).count();
            }
        }
        let [at_1, at_3, at_5] = [0, 1, 2].map(|i| lost[i] as f64 / (AT[i] * best.len().max(1)) as f64);
        Self { at_1, at_3, at_5 }
    }

    /// The most of the three.
    pub fn most(self) -> f64 {
        self.at_1.max(self.at_3).max(self.at_5)
    }
}

impl Classifier {
    /// Fits an index of these weights to the precision of its answers: the least scope at which P@1, P@3 and P@5 lose
    /// `most` against scoring all labels, for those of `queries` that a build fits to ([`xc_ann::Graph::fit_share`]).
    /// `labels` are true of them. Gives the scope, and what it loses; nothing for lists, whose answers are exact.
    ///
    /// *Cost*: an exact scan for each query, and some fifteen searches.
    ///
    /// # Errors
    /// The index belongs to another output layer.
    ///
    /// # Panics
    /// If queries are not what the classifier takes, or have not as many rows as labels.
    pub fn fit_index(
        &self,
        index: &mut LabelIndex,
        queries: Rows<'_>,
        labels: &LabelRows,
        k: usize,
        most: f64,
    ) -> Result<Option<(Fitted, LostPrecision)>, LabelIndexError> {
        assert_eq!(queries.len(), labels.len(), "queries, and rows of labels");
        index.check(self)?;
        let Searched::Near { graph, scale } = &mut index.searched else { return Ok(None) };
        let rows = self.label_vectors(*scale)?;
        let asked = self.query_vectors(queries, *scale);
        let (rows, asked) = (rows.view(), graph.fit_share(asked.view()));
        let best = graph.exact(rows, asked, k, None);
        let lost = |found: &RankedBatch| LostPrecision::new(found, &best, labels);
        let refused = |error| LabelIndexError::Build(BuildError::Query(error));
        let graph = Arc::make_mut(graph);
        let fitted = graph.fit_until(rows, asked, &best, k, &|found| lost(found).most() <= most).map_err(refused)?;
        let params = xc_ann::SearchParams::top(k).with_scope(fitted.scope());
        let (found, _) = graph.search_batch(rows, asked, params, None).map_err(refused)?;
        Ok(Some((fitted, lost(&found))))
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
    fn what_is_lost_counts_true_labels_alone() {
        let labels = LabelRows::from_lists(vec![vec![0, 2, 9], vec![4], vec![]], 10).unwrap();
        let best = lists(&[&[0, 1, 2, 3, 5, 6], &[4, 5, 6], &[7, 8]]);
        let lost = |found: &[&[u32]]| LostPrecision::new(&lists(found), &best, &labels);
        assert_eq!(lost(&[&[0, 1, 2, 3, 5, 6], &[4, 5, 6], &[7, 8]]).most(), 0.0);
        // No true label is missing.
        assert_eq!(lost(&[&[0, 2, 3, 5, 6], &[4], &[]]).most(), 0.0);
        // Label 2 is third among all labels, and sixth of those found; label 4 is not found.
        let some = lost(&[&[0, 1, 3, 5, 6, 2], &[5, 6], &[7]]);
        assert_eq!(some, LostPrecision { at_1: 1.0 / 3.0, at_3: 2.0 / 9.0, at_5: 2.0 / 15.0 });
        assert_eq!(some.most(), 1.0 / 3.0);
        assert_eq!(
            LostPrecision::new(&lists(&[]), &lists(&[]), &LabelRows::from_lists(Vec::<Vec<u32>>::new(), 3).unwrap())
                .most(),
            0.0
        );
    }
}
