//! Scores of given labels only: just the paths to them are scored.

use super::error::{QueryError, check_row};
use super::online::{PredictScratch, SearchScratch};
use super::scores::{rank_scores, scaled};
use crate::model::{Tree, TreeModel};
use thiserror::Error;
use xc_sparse::SparseRow;
use xc_sparse::chunked::{IteratorChoice, margins};
use xc_sparse::rank::Scored;

/// The nodes on the paths to a set of labels, for every tree of a model; owned by the caller and reused from set to
/// set.
#[derive(Clone, Debug, Default)]
pub struct Restriction {
    trees: Vec<Vec<LevelNodes>>,
    n_labels: usize,
    // By label: whether it is asked for.
    asked: Vec<bool>,
    // Margins and scores of a level for any set of so many labels, at most.
    most_margins: usize,
    most_nodes: usize,
}

/// Parents to score at one level and, for each, which of their children lead to labels that are
/// asked for.
#[derive(Clone, Debug, Default)]
struct LevelNodes {
    parents: Vec<u32>,
    // Nodes of the level on the way to them, ascending.
    nodes: Vec<u32>,
}

/// A label that the model does not have.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("label {label} is not in the model, which has {n_labels} labels")]
pub struct UnknownLabel {
    /// The label.
    pub label: u32,
    /// Number of labels of the model.
    pub n_labels: usize,
}

impl TreeModel {
    /// Prepares a set of labels. Repetitions count once; labels that are in no tree never get a score.
    ///
    /// *Cost*: O(labels of the model) once.
    pub fn restrict(&self, labels: &[u32]) -> Result<Restriction, UnknownLabel> {
        let mut restriction = Restriction::default();
        self.restrict_into(labels, &mut restriction)?;
        Ok(restriction)
    }

    /// As [`TreeModel::restrict`], into `out`, whose content is replaced and may be of any model.
    /// Allocates nothing once `out` has held as many labels of this model.
    ///
    /// # Errors
    /// A label that the model does not have; `out` is then prepared for no tree.
    pub fn restrict_into(&self, labels: &[u32], out: &mut Restriction) -> Result<(), UnknownLabel> {
        let n_labels = self.info.n_labels;
        let Restriction { trees, n_labels: n_different, asked, most_margins, most_nodes } = out;
        asked.clear();
        asked.resize(n_labels, false);
        *n_different = 0;
        for &label in labels {
            let Some(slot) = asked.get_mut(label as usize) else {
                trees.clear();
                *n_different = 0;
                return Err(UnknownLabel { label, n_labels });
            };
            *n_different += usize::from(!std::mem::replace(slot, true));
        }
        (*most_margins, *most_nodes) = (0, *n_different);
        trees.resize_with(self.trees.len(), Vec::new);
        for (tree, levels) in self.trees.iter().zip(trees) {
            paths(tree, asked, *n_different, levels);
            for l in 0..tree.depth() {
                let level = tree.level(l);
                let widest = (0..level.n_parents()).map(|parent| level.children(parent).len()).max().unwrap_or(0);
                *most_margins = (*most_margins).max(level.n_columns().min(widest.saturating_mul(*n_different)));
            }
        }
        Ok(())
    }

    /// The best `top_k` of the prepared labels for one query, best first, into `out`.
    ///
    /// Every prepared label is scored, whether or not a beam would have reached it; the scores are those
    /// of a search with an unlimited beam.
    ///
    /// # Errors
    /// As [`TreeModel::predict_one`].
    ///
    /// # Panics
    /// If `restriction` was prepared for a model of another shape; as [`TreeModel::predict_one`].
    pub fn predict_restricted(
        &self,
        row: SparseRow<'_>,
        restriction: &Restriction,
        top_k: usize,
        scratch: &mut PredictScratch,
        out: &mut Vec<Scored>,
    ) -> Result<(), QueryError> {
        assert_eq!(restriction.trees.len(), self.trees.len(), "a restriction belongs to its model");
        out.clear();
        check_row(row, &self.info)?;
        let PredictScratch { query, scaled: room, search, reached, means } = scratch;
        let SearchScratch { product, parent_scores, child_scores, margins: room_margins, select, .. } = search;
        let row = scaled(row, &self.info, room);
        reached.clear();
        room_margins.clear();
        room_margins.reserve(restriction.most_margins);
        for scores in [&mut *parent_scores, &mut *child_scores] {
            scores.clear();
            scores.reserve(restriction.most_nodes + 1);
        }
        for (tree, levels) in self.trees.iter().zip(&restriction.trees) {
            let view = query.prepare(row, tree.slot_map());
            parent_scores.clear();
            parent_scores.push(0.0);
            let last = levels.len() - 1;
            select.reset(top_k);
            for (l, nodes) in levels.iter().enumerate() {
                let level = tree.level(l);
                room_margins.clear();
                margins(&level, &view, &nodes.parents, IteratorChoice::Auto, product, room_margins);
                let mut rest = &mut room_margins[..];
                let mut on_the_way = nodes.nodes.iter().copied().peekable();
                child_scores.clear();
                for (&parent, &score) in nodes.parents.iter().zip(parent_scores.iter()) {
                    let children = level.children(parent as usize);
                    let (here, others) = rest.split_at_mut(children.len());
                    rest = others;
                    rank_scores(self.info.post, score, here);
                    while let Some(node) = on_the_way.next_if(|&node| node < children.end) {
                        let score = here[(node - children.start) as usize];
                        child_scores.push(score);
                        if l == last {
                            let label = tree.labels()[node as usize];
                            if self.trees.len() == 1 {
                                select.push(Scored { label, score });
                            } else {
                                reached.extend(&[label], &[score]);
                            }
                        }
                    }
                }
                std::mem::swap(parent_scores, child_scores);
            }
            reached.end_tree();
        }
        if self.trees.len() == 1 {
            out.extend(select.sorted().iter().map(|s| self.finished(*s)));
        } else {
            self.ensemble().best_means(reached, top_k, means, select);
            out.extend_from_slice(select.sorted());
        }
        Ok(())
    }
}

impl Restriction {
    /// Number of trees that it was prepared for; 0 before that.
    pub fn n_trees(&self) -> usize {
        self.trees.len()
    }

    /// Number of different labels in the set.
    pub fn n_labels(&self) -> usize {
        self.n_labels
    }
}

/// From the leaves asked for up to the root: at each level the nodes on the way, and their parents.
/// There are at most `most` of each.
fn paths(tree: &Tree, asked: &[bool], most: usize, levels: &mut Vec<LevelNodes>) {
    let labels = tree.labels();
    levels.resize_with(tree.depth(), LevelNodes::default);
    for level in &mut *levels {
        level.parents.clear();
        level.parents.reserve(most);
        level.nodes.clear();
        level.nodes.reserve(most);
    }
    let Some(last) = levels.last_mut() else { return };
    last.nodes.extend((0..labels.len() as u32).filter(|&leaf| asked[labels[leaf as usize] as usize]));
    for l in (0..tree.depth()).rev() {
        let level = tree.level(l);
        let (above, here) = levels.split_at_mut(l);
        let LevelNodes { parents, nodes } = &mut here[0];
        let mut parent = 0;
        for &node in &*nodes {
            while level.children(parent).end <= node {
                parent += 1;
            }
            if parents.last() != Some(&(parent as u32)) {
                parents.push(parent as u32);
            }
        }
        if let Some(above) = above.last_mut() {
            above.nodes.extend_from_slice(parents);
        }
    }
}
