//! Scores of given labels only: the paths to them, and nothing else.

use super::ensemble::{Pooled, mean_of_trees};
use super::online::{PredictScratch, SearchScratch};
use super::scores::{normalised, rank_scores};
use crate::model::{Tree, TreeModel};
use thiserror::Error;
use xc_sparse::SparseRow;
use xc_sparse::chunked::{Choice, margins};
use xc_sparse::rank::Scored;

/// The nodes on the way to a set of labels, for every tree of a model.
#[derive(Clone, Debug)]
pub struct Restriction {
    trees: Vec<Vec<LevelNodes>>,
    n_labels: usize,
}

/// Parents to score at one level and, for each, which of their children lead to wanted labels.
#[derive(Clone, Debug, Default)]
struct LevelNodes {
    parents: Vec<u32>,
    // Wanted nodes of the level, ascending.
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
    /// Prepares a set of labels. Repetitions count once; labels that stand in no tree never get a score.
    ///
    /// *Cost*: O(labels of the model) once.
    pub fn restrict(&self, labels: &[u32]) -> Result<Restriction, UnknownLabel> {
        let n_labels = self.info.n_labels;
        let mut wanted = vec![false; n_labels];
        for &label in labels {
            match wanted.get_mut(label as usize) {
                Some(slot) => *slot = true,
                None => return Err(UnknownLabel { label, n_labels }),
            }
        }
        let trees = self.trees.iter().map(|tree| paths(tree, &wanted)).collect();
        Ok(Restriction { trees, n_labels: wanted.iter().filter(|&&w| w).count() })
    }

    /// The best `top_k` of the prepared labels for one query, best first, into `out`.
    ///
    /// Every wanted label is scored, whether a beam would have reached it or not; the scores are those that a search
    /// with an unlimited beam gives.
    ///
    /// # Panics
    /// If `restriction` was prepared for a model of other shape.
    pub fn predict_restricted(
        &self,
        row: SparseRow<'_>,
        restriction: &Restriction,
        top_k: usize,
        scratch: &mut PredictScratch,
        out: &mut Vec<Scored>,
    ) {
        assert_eq!(restriction.trees.len(), self.trees.len(), "a restriction belongs to its model");
        out.clear();
        let PredictScratch { query, normalised: room, search, pooled } = scratch;
        let SearchScratch { product, parent_scores, child_scores, margins: room_margins, select, .. } = search;
        let row = normalised(row, self.info.normalise_rows, room);
        pooled.clear();
        for (number, (tree, levels)) in self.trees.iter().zip(&restriction.trees).enumerate() {
            let view = query.prepare(row, tree.slot_map());
            parent_scores.clear();
            parent_scores.push(0.0);
            let last = levels.len() - 1;
            select.reset(top_k);
            for (l, nodes) in levels.iter().enumerate() {
                let level = tree.level(l);
                room_margins.clear();
                margins(&level, &view, &nodes.parents, Choice::Auto, product, room_margins);
                let mut rest = &mut room_margins[..];
                let mut wanted = nodes.nodes.iter().copied().peekable();
                child_scores.clear();
                for (&parent, &score) in nodes.parents.iter().zip(parent_scores.iter()) {
                    let children = level.children(parent as usize);
                    let (here, others) = rest.split_at_mut(children.len());
                    rest = others;
                    rank_scores(self.info.post, score, here);
                    while let Some(node) = wanted.next_if(|&node| node < children.end) {
                        let score = here[(node - children.start) as usize];
                        child_scores.push(score);
                        if l == last {
                            let label = tree.labels()[node as usize];
                            if self.trees.len() == 1 {
                                select.push(Scored { label, score });
                            } else {
                                let score = self.info.post.finish(score);
                                pooled.push(Pooled { label, tree: number as u32, score });
                            }
                        }
                    }
                }
                std::mem::swap(parent_scores, child_scores);
            }
        }
        if self.trees.len() == 1 {
            out.extend(select.sorted().iter().map(|s| self.finished(*s)));
        } else {
            mean_of_trees(self.trees.len(), top_k, pooled, select, out);
        }
    }
}

impl Restriction {
    /// Number of different labels asked for.
    pub fn n_labels(&self) -> usize {
        self.n_labels
    }
}

/// From the wanted leaves up to the root: at each level the wanted nodes, and their parents.
fn paths(tree: &Tree, wanted: &[bool]) -> Vec<LevelNodes> {
    let labels = tree.labels();
    let mut nodes: Vec<u32> = (0..labels.len() as u32).filter(|&leaf| wanted[labels[leaf as usize] as usize]).collect();
    let mut levels = Vec::with_capacity(tree.depth());
    for l in (0..tree.depth()).rev() {
        let level = tree.level(l);
        let (mut parents, mut parent) = (Vec::new(), 0);
        for &node in &nodes {
            while level.children(parent).end <= node {
                parent += 1;
            }
            if parents.last() != Some(&(parent as u32)) {
                parents.push(parent as u32);
            }
        }
        let above = parents.clone();
        levels.push(LevelNodes { parents, nodes: std::mem::replace(&mut nodes, above) });
    }
    levels.reverse();
    levels
}
