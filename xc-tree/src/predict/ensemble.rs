//! The answer of several trees: what each offers, and the mean.
//!
//! A label's score is the mean of its scores in all trees, 0 for a tree whose beam does not reach it.
//! It does not depend on how many labels are asked for:
//!
//! ```text
//!   each tree      beam ─▶ leaves ─▶ its best labels ─▶ pool
//!   pool           labels that can be among the best k ─▶ scores of trees that reached but did not offer them ─▶ mean
//! ```

use crate::model::{Tree, TreeModel};
use xc_sparse::rank::{Scored, TopK};

/// What one tree says of a label, scores on the post-processor's own scale.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pooled {
    pub(crate) label: u32,
    pub(crate) tree: u32,
    pub(crate) score: f32,
}

/// A label that can be among the best and that a tree did not offer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Missing {
    /// Number of the query in its tile.
    pub(super) query: u32,
    pub(super) tree: u32,
    pub(super) label: u32,
    /// Place of its cluster among those that the beam reached; [`NOWHERE`] where it is in none of them.
    pub(super) cluster: u32,
    /// Its leaf, and the leaf's place among those of the clusters that were reached.
    pub(super) leaf: u32,
    pub(super) place: u32,
}

/// The cluster of a label that a beam does not reach.
pub(super) const NOWHERE: u32 = u32::MAX;

/// What is known of labels that no tree offered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Others {
    /// The most that one of them can score.
    most: f32,
    /// Whether there can be any.
    are_there: bool,
}

/// Labels that each tree of an ensemble offers at first where `top_k` are asked for: enough that
/// most of the best are offered by all trees, and seldom one of the best by none.
pub(crate) fn pool_size(top_k: usize, n_trees: usize) -> usize {
    if n_trees == 1 { top_k } else { top_k.saturating_add(top_k.max(20)) }
}

/// What each tree offers where the best may not be among so many: all labels that it reaches.
pub(crate) const ALL: usize = usize::MAX;

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
}

impl Others {
    /// Whether the `k` best are these, whatever labels were not offered.
    pub(super) fn are_behind(self, best: &[Scored], k: usize) -> bool {
        let worst = best.get(k.wrapping_sub(1)).map_or(f32::NEG_INFINITY, |worst| worst.score);
        k == 0 || !self.are_there || worst > self.most
    }
}

/// Leaves those labels of a query's pool, of the `per_tree` best of each tree, that can be among the
/// `k` best, and adds what is missing of them, tree by tree. `rest` is a buffer.
pub(super) fn choose(
    (n_trees, k, per_tree): (usize, usize, usize),
    query: usize,
    pool: &mut Vec<Pooled>,
    rest: &mut Vec<(usize, f32)>,
    select: &mut TopK,
    missing: &mut [Vec<Missing>],
) -> Others {
    // By tree: how many labels it offers, and the most that its score of any other can be.
    rest.clear();
    rest.resize(n_trees, (0, f32::INFINITY));
    for one in &*pool {
        let (n, least) = &mut rest[one.tree as usize];
        (*n, *least) = (*n + 1, least.min(one.score));
    }
    for (n, most) in &mut *rest {
        // A tree that reached fewer offers all of them.
        *most = if *n == per_tree { *most } else { 0.0 };
    }
    by_label(pool);
    rank(n_trees, k, pool, select);
    let least = select.kth().map_or(f32::NEG_INFINITY, |kth| kth.score);
    let (mut from, mut kept) = (0, 0);
    while from < pool.len() {
        let (label, mut at, mut most) = (pool[from].label, from, 0.0);
        // Sums are in the order of the trees, so that rounding keeps this order, too.
        for (tree, (_, rest)) in rest.iter().enumerate() {
            match pool.get(at).filter(|one| one.label == label && one.tree as usize == tree) {
                Some(one) => (most, at) = (most + one.score, at + 1),
                None => most += rest,
            }
        }
        if most / n_trees as f32 >= least {
            let mut offered = from;
            for (tree, missing) in missing.iter_mut().enumerate() {
                if offered < at && pool[offered].tree as usize == tree {
                    offered += 1;
                } else if rest[tree].1 > 0.0 {
                    let (query, tree) = (query as u32, tree as u32);
                    missing.push(Missing { query, tree, label, cluster: NOWHERE, leaf: 0, place: 0 });
                }
            }
            pool.copy_within(from..at, kept);
            kept += at - from;
        }
        from = at;
    }
    pool.truncate(kept);
    let most = rest.iter().fold(0.0, |sum, (_, most)| sum + most) / n_trees as f32;
    Others { most, are_there: rest.iter().any(|(n, _)| *n == per_tree) }
}

/// Finds labels, ascending, among those of the clusters that the beam of a tree reached.
pub(super) fn locate(tree: &Tree, clusters: &[Scored], missing: &mut [Missing]) {
    // Most labels of the clusters are not missing: one look says so.
    let mut sieve = [0u64; 16];
    let place = |label: u32| (label as usize / 64 % 16, 1u64 << (label % 64));
    for one in &*missing {
        let (word, bit) = place(one.label);
        sieve[word] |= bit;
    }
    let (level, mut first) = (tree.level(tree.depth() - 1), 0);
    for (cluster, node) in clusters.iter().enumerate() {
        let leaves = level.children(node.label as usize);
        let labels = &tree.labels()[leaves.start as usize..leaves.end as usize];
        for (at, &label) in labels.iter().enumerate() {
            let (word, bit) = place(label);
            if sieve[word] & bit != 0
                && let Ok(found) = missing.binary_search_by_key(&label, |one| one.label)
            {
                let one = &mut missing[found];
                (one.cluster, one.leaf, one.place) = (cluster as u32, leaves.start + at as u32, first + at as u32);
            }
        }
        first += labels.len() as u32;
    }
}

fn by_label(pooled: &mut [Pooled]) {
    pooled.sort_unstable_by_key(|p| u64::from(p.label) << 32 | u64::from(p.tree));
}

/// Selects the best means of labels, which lie together, in the order of the trees.
fn rank(n_trees: usize, k: usize, pooled: &[Pooled], select: &mut TopK) {
    select.reset(k);
    for of_label in pooled.chunk_by(|a, b| a.label == b.label) {
        let sum = of_label.iter().fold(0.0, |sum, one| sum + one.score);
        select.push(Scored { label: of_label[0].label, score: sum / n_trees as f32 });
    }
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
    rank(n_trees, top_k, pooled, select);
    out.extend_from_slice(select.sorted());
}
