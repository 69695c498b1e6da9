//! What trees say on the way to one label, node by node.

use super::error::{QueryError, check_row};
use super::scores::scaled;
use crate::model::{Tree, TreeModel};
use xc_sparse::SparseRow;
use xc_sparse::chunked::{ChunkQuery, IteratorChoice, ProductScratch, margins};

/// A node on the way to a label.
#[derive(Clone, Debug, PartialEq)]
pub struct PathNode {
    /// Its number in its level.
    pub node: u32,
    /// Its margin for the query: the sum of the parts and the bias.
    pub margin: f32,
    /// The bias.
    pub bias: f32,
    /// Features of the query that the node has weights for, ascending: weight times value.
    pub parts: Vec<(u32, f32)>,
    /// The score of the path to the node, as the model's post-processor makes it of the margins.
    pub score: f32,
}

impl TreeModel {
    /// For each tree, the nodes below the root on the way to `label`, with their margins for a query and what these
    /// consist of. A tree without the label has none.
    ///
    /// *Cost*: the product of one parent in each level, and a pass over its weights.
    ///
    /// # Errors
    /// As [`TreeModel::predict_one`].
    ///
    /// # Panics
    /// As [`TreeModel::predict_one`].
    pub fn paths(&self, row: SparseRow<'_>, label: u32) -> Result<Vec<Vec<PathNode>>, QueryError> {
        check_row(row, &self.info)?;
        let mut room = Vec::new();
        let row = scaled(row, &self.info, &mut room);
        let (mut query, mut product) = (ChunkQuery::default(), ProductScratch::default());
        let mut path = |tree: &Tree| {
            let view = query.prepare(row, tree.slot_map());
            let (mut score, mut of_children) = (0.0, Vec::new());
            let nodes = nodes_to(tree, label).into_iter().enumerate().map(|(at, (parent, node))| {
                let level = tree.level(at);
                of_children.clear();
                margins(&level, &view, &[parent], IteratorChoice::Auto, &mut product, &mut of_children);
                let child = node - level.children(parent as usize).start;
                let margin = of_children[child as usize];
                score = self.info.post.accumulate(score, margin);
                let weights = level.to_rows(parent as usize);
                let mut parts = Vec::new();
                for (entries, &feature) in weights.row_ptr.windows(2).zip(&weights.features) {
                    let entries = entries[0] as usize..entries[1] as usize;
                    if let Ok(value) = row.indices().binary_search(&feature)
                        && let Ok(weight) = weights.columns[entries.clone()].binary_search(&child)
                    {
                        parts.push((feature, weights.values[entries][weight] * row.values()[value]));
                    }
                }
                let (bias, score) = (level.bias()[node as usize], self.info.post.finish(score));
                PathNode { node, margin, bias, parts, score }
            });
            nodes.collect()
        };
        Ok(self.trees.iter().map(&mut path).collect())
    }
}

/// From the root: the parent and the node of each level on the way to a label.
fn nodes_to(tree: &Tree, label: u32) -> Vec<(u32, u32)> {
    let Some(leaf) = tree.labels().iter().position(|&other| other == label) else { return Vec::new() };
    let mut node = leaf as u32;
    let mut up: Vec<(u32, u32)> = (0..tree.depth())
        .rev()
        .map(|at| {
            let (level, child) = (tree.level(at), node);
            let (mut low, mut high) = (0, level.n_parents());
            while high - low > 1 {
                let middle = low.midpoint(high);
                if level.children(middle).start <= child { low = middle } else { high = middle }
            }
            node = low as u32;
            (node, child)
        })
        .collect();
    up.reverse();
    up
}

#[cfg(all(test, feature = "train"))]
mod tests {
    use crate::{TrainInput, TreeModel, TreeParams};
    use xc_sparse::{CsrMatrix, LabelRows};

    #[test]
    fn parts_sum_to_the_margins_and_the_last_score_is_that_of_the_label() {
        let n = 300;
        let row = |i: usize| [(i % 50) as u32, 50 + (i * 7 % 40) as u32, 90 + (i * 3 % 10) as u32];
        let (indptr, indices) = ((0..=n).map(|i| 3 * i).collect(), (0..n).flat_map(row).collect());
        let values = (0..3 * n).map(|i| 0.25 + (i % 5) as f32).collect();
        let x = CsrMatrix::from_checked((n, 100), indptr, indices, values);
        let y = LabelRows::from_lists((0..n).map(|i| [(i % 50) as u32]), 50).unwrap();
        let params = TreeParams { n_trees: 2, ..TreeParams::default() };
        let model = TreeModel::train(&TrainInput::new(x.view(), &y), &params).unwrap();
        let one = model.first(1);
        let (mut n_nodes, mut n_parts) = (0, 0);
        for i in 0..60 {
            let (row, label) = (x.row(i), (i * 11 % 50) as u32);
            let paths = model.paths(row, label).unwrap();
            assert_eq!(paths.len(), 2);
            for node in paths.iter().flatten() {
                let sum: f64 = f64::from(node.bias) + node.parts.iter().map(|part| f64::from(part.1)).sum::<f64>();
                assert!((sum - f64::from(node.margin)).abs() < 1e-5, "{sum} {node:?}");
                (n_nodes, n_parts) = (n_nodes + 1, n_parts + node.parts.len());
            }
            let restriction = one.restrict(&[label]).unwrap();
            let mut out = Vec::new();
            one.predict_restricted(row, &restriction, 1, &mut Default::default(), &mut out).unwrap();
            assert_eq!(out[0].score, paths[0].last().unwrap().score);
        }
        assert!(n_nodes >= 120 && n_parts > 100, "{n_nodes} nodes, {n_parts} parts");
        let unknown = model.paths(x.row(0), 50).unwrap();
        assert!(unknown.iter().all(Vec::is_empty));
    }
}
