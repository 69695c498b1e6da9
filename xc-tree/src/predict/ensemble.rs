//! The answer of several trees: what each offers, and the mean.
//!
//! A label's score is the mean of its scores in all trees, 0 for a tree whose beam does not reach it.
//! It does not depend on how many labels are asked for:
//!
//! ```text
//!   each tree      beam ─▶ leaves ─▶ its best labels ─▶ pool
//!   pool           labels that can be among the best k ─▶ scores of trees that reached but did not offer them ─▶ mean
//! ```

use super::online::{PredictParams, SearchScratch};
use super::scores::rank_scores;
use crate::model::TreeModel;
use xc_sparse::SparseRow;
use xc_sparse::chunked::{ChunkedView, QueryScratch, QueryView, margins};
use xc_sparse::rank::{Scored, TopK};

/// What one tree says of a label, scores on the post-processor's own scale.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pooled {
    pub(crate) label: u32,
    pub(crate) tree: u32,
    pub(crate) score: f32,
}

/// Labels that each tree of an ensemble offers at first where `top_k` are asked for: enough that
/// most of the best are offered by all trees, and seldom one of the best by none.
pub(crate) fn pool_size(top_k: usize, n_trees: usize) -> usize {
    if n_trees == 1 { top_k } else { top_k.saturating_mul(3).max(top_k.saturating_add(20)) }
}

/// What each tree offers where the best may not be among so many: all labels that it reaches.
pub(crate) const ALL: usize = usize::MAX;

/// Memory of one query's pool.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pool {
    /// What the trees offer.
    pub(crate) offered: Vec<Pooled>,
    /// The same of labels that can be among the best, with the scores that were not offered.
    chosen: Vec<Pooled>,
    missing: Vec<Missing>,
    /// By tree: how many labels it offers, and the most that its score of any other can be.
    rest: Vec<(usize, f32)>,
}

/// A label that a tree reached, perhaps, and did not offer.
#[derive(Clone, Copy, Debug)]
struct Missing {
    tree: u32,
    label: u32,
    /// The cluster that it is in, once that is known: its place among those of the tree's beam.
    cluster: u32,
    leaf: u32,
}

impl TreeModel {
    /// Adds what tree `number` selected to a query's pool.
    pub(crate) fn pool(&self, number: usize, select: &mut TopK, pooled: &mut Vec<Pooled>) {
        pooled.extend(select.best().iter().map(|s| {
            let score = self.info.post.finish(s.score);
            Pooled { label: s.label, tree: number as u32, score }
        }));
    }

    /// A ranking score on the post-processor's own scale.
    pub(crate) fn finished(&self, item: Scored) -> Scored {
        Scored { label: item.label, score: self.info.post.finish(item.score) }
    }

    /// The best of a query whose pool holds the `per_tree` best of each tree. `reached` gives the
    /// clusters of leaves that a tree's beam reached, with their ranking scores. False if labels that
    /// are not in the pool may be better: the trees then have to offer more.
    pub(super) fn combine<'r>(
        &self,
        row: SparseRow<'_>,
        params: &PredictParams,
        per_tree: usize,
        reached: impl Fn(usize) -> &'r [Scored],
        pool: &mut Pool,
        query: &mut QueryScratch,
        scratch: &mut SearchScratch,
        trace: &mut impl FnMut(&ChunkedView<'_>, &QueryView<'_>, &[u32]),
        out: &mut Vec<Scored>,
    ) -> bool {
        let n_trees = self.trees.len();
        pool.choose(n_trees, params.top_k, per_tree, &mut scratch.select);
        let Pool { chosen, missing, rest, .. } = pool;
        for missing in missing.chunk_by_mut(|a, b| a.tree == b.tree) {
            let number = missing[0].tree as usize;
            let (tree, clusters) = (&self.trees[number], reached(number));
            let level = tree.level(tree.depth() - 1);
            for one in &mut *missing {
                let place = |(at, cluster): (usize, &Scored)| {
                    let leaves = level.children(cluster.label as usize);
                    let labels = &tree.labels()[leaves.start as usize..leaves.end as usize];
                    Some((at as u32, labels.iter().position(|&label| label == one.label)? as u32))
                };
                (one.cluster, one.leaf) = clusters.iter().enumerate().find_map(place).unwrap_or((u32::MAX, 0));
            }
            missing.sort_unstable_by_key(|one| one.cluster);
            // Those in no cluster that was reached stand last, and count 0.
            let found = &missing[..missing.partition_point(|one| one.cluster != u32::MAX)];
            if found.is_empty() {
                continue;
            }
            let view = query.prepare(row, tree.slot_map());
            for together in found.chunk_by(|a, b| a.cluster == b.cluster) {
                let cluster = clusters[together[0].cluster as usize];
                trace(&level, &view, &[cluster.label]);
                let SearchScratch { product, margins: room, .. } = &mut *scratch;
                room.clear();
                margins(&level, &view, &[cluster.label], params.choice, product, room);
                rank_scores(self.info.post, cluster.score, room);
                chosen.extend(together.iter().map(|&Missing { tree, label, leaf, .. }| Pooled {
                    label,
                    tree,
                    score: self.info.post.finish(room[leaf as usize]),
                }));
            }
        }
        let before = out.len();
        mean_of_trees(n_trees, params.top_k, chosen, &mut scratch.select, out);
        // Of a label that is in no pool.
        let others = rest.iter().fold(0.0, |sum, (_, most)| sum + most) / n_trees as f32;
        let worst = out[before..].get(params.top_k.wrapping_sub(1)).map_or(f32::NEG_INFINITY, |worst| worst.score);
        worst > others || params.top_k == 0 || rest.iter().all(|(n, _)| *n < per_tree)
    }
}

impl Pool {
    /// Chooses the labels that can be among the `k` best, and what is missing of them.
    fn choose(&mut self, n_trees: usize, k: usize, per_tree: usize, select: &mut TopK) {
        let Self { offered, chosen, missing, rest } = self;
        rest.clear();
        rest.resize(n_trees, (0, f32::INFINITY));
        for one in &*offered {
            let (n, least) = &mut rest[one.tree as usize];
            (*n, *least) = (*n + 1, least.min(one.score));
        }
        for (n, most) in &mut *rest {
            // A tree that reached fewer offers all of them.
            *most = if *n == per_tree { *most } else { 0.0 };
        }
        by_label(offered);
        select.reset(k);
        let same = |a: &Pooled, b: &Pooled| a.label == b.label;
        for of_label in offered.chunk_by(same) {
            let sum = of_label.iter().fold(0.0, |sum, one| sum + one.score);
            select.push(Scored { label: of_label[0].label, score: sum / n_trees as f32 });
        }
        let least = select.kth().map_or(f32::NEG_INFINITY, |kth| kth.score);
        chosen.clear();
        missing.clear();
        for of_label in offered.chunk_by(same) {
            let (label, mut at, mut most) = (of_label[0].label, 0, 0.0);
            for (tree, (_, rest)) in rest.iter().enumerate() {
                let is_offered = of_label.get(at).is_some_and(|one| one.tree as usize == tree);
                most += if is_offered { of_label[at].score } else { *rest };
                at += usize::from(is_offered);
            }
            // Sums are in the order of the trees, so that rounding keeps this order, too.
            if most / (n_trees as f32) < least {
                continue;
            }
            chosen.extend_from_slice(of_label);
            let mut offering = of_label.iter().map(|one| one.tree).peekable();
            for tree in 0..n_trees as u32 {
                if offering.next_if_eq(&tree).is_none() && rest[tree as usize].1 > 0.0 {
                    missing.push(Missing { tree, label, cluster: u32::MAX, leaf: 0 });
                }
            }
        }
        missing.sort_unstable_by_key(|one| (one.tree, one.label));
    }
}

fn by_label(pooled: &mut [Pooled]) {
    pooled.sort_unstable_by_key(|p| u64::from(p.label) << 32 | u64::from(p.tree));
}

/// Means over trees: a tree that says nothing of a label counts 0 for it.
///
/// Scores of one label are added in the order of the trees, whatever order they come in here.
pub(crate) fn mean_of_trees(
    n_trees: usize,
    top_k: usize,
    pooled: &mut [Pooled],
    select: &mut TopK,
    out: &mut Vec<Scored>,
) {
    by_label(pooled);
    select.reset(top_k);
    for of_label in pooled.chunk_by(|a, b| a.label == b.label) {
        let sum = of_label.iter().fold(0.0, |sum, one| sum + one.score);
        select.push(Scored { label: of_label[0].label, score: sum / n_trees as f32 });
    }
    out.extend_from_slice(select.sorted());
}
