//! Beam search of one query, online: no allocation once the scratch has grown.

use super::ensemble::{ALL, Missing, NOWHERE, Pooled, choose, locate, mean_of_trees, pool_size};
use super::scores::{offer_children, rank_scores, scaled};
use super::top;
use crate::model::{PostProcessor, Top, Tree, TreeModel};
use xc_sparse::SparseRow;
use xc_sparse::chunked::{Choice, ChunkedView, ProductScratch, QueryScratch, QueryView, margins};
use xc_sparse::rank::{Scored, TopK};

/// Parameters of a prediction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PredictParams {
    /// Labels returned per query; fewer if the beam reaches fewer.
    pub top_k: usize,
    /// Clusters kept per level.
    pub beam: usize,
    /// The iterator of the products.
    pub choice: Choice,
}

impl PredictParams {
    /// The model's own beam.
    pub fn new(model: &TreeModel, top_k: usize) -> Self {
        Self { top_k, beam: model.info().beam.max(1), choice: Choice::Auto }
    }

    /// Another beam.
    pub fn with_beam(self, beam: usize) -> Self {
        Self { beam, ..self }
    }

    /// Another iterator.
    pub fn with_choice(self, choice: Choice) -> Self {
        Self { choice, ..self }
    }
}

/// Memory of one thread's predictions, reused from query to query.
#[derive(Clone, Debug, Default)]
pub struct PredictScratch {
    pub(super) query: QueryScratch,
    pub(super) scaled: Vec<f32>,
    pub(super) search: SearchScratch,
    // What several trees say of labels.
    pub(super) pooled: Vec<Pooled>,
    missing: Vec<Vec<Missing>>,
    rest: Vec<(usize, f32)>,
    // Clusters of leaves that the beams reached, tree after tree, the scores of leaves that were computed, and where
    // those of each tree end.
    reached: Vec<Scored>,
    leaves: Vec<f32>,
    ends: Vec<(usize, usize)>,
}

/// Memory of the search of one tree.
#[derive(Clone, Debug, Default)]
pub(super) struct SearchScratch {
    pub(super) product: ProductScratch,
    pub(super) parents: Vec<u32>,
    pub(super) parent_scores: Vec<f32>,
    // Of the nodes one level below the parents, where a restricted search keeps them all.
    pub(super) child_scores: Vec<f32>,
    pub(super) margins: Vec<f32>,
    // Ranking scores of the leaves of the first parents, one parent after the other.
    pub(super) leaves: Vec<f32>,
    pub(super) nodes: Vec<Scored>,
    pub(super) select: TopK,
}

impl TreeModel {
    /// The best labels of one query, best first, into `out`.
    ///
    /// *Cost*: for each level, the products of the query with at most `beam` chunks; see
    /// [`xc_sparse::chunked::Intersect`]. Allocates nothing once `scratch` and `out` have grown.
    ///
    /// *Determinism*: the same labels and score bits as [`TreeModel::predict_batch`], for any
    /// thread count.
    ///
    /// # Panics
    /// If the row is none: features that do not ascend, or a value that is not finite
    /// ([`SparseRow::from_checked`]).
    pub fn predict_one(
        &self,
        row: SparseRow<'_>,
        params: &PredictParams,
        scratch: &mut PredictScratch,
        out: &mut Vec<Scored>,
    ) {
        self.predict_traced(row, params, scratch, out, |_, _, _| {});
    }

    /// [`TreeModel::predict_one`] that reports every product to `trace` before computing it: the level,
    /// the query and the parents whose children are scored. For instrumentation; a trace that does nothing
    /// costs nothing.
    ///
    /// # Panics
    /// As [`TreeModel::predict_one`].
    pub fn predict_traced(
        &self,
        row: SparseRow<'_>,
        params: &PredictParams,
        scratch: &mut PredictScratch,
        out: &mut Vec<Scored>,
        mut trace: impl FnMut(&ChunkedView<'_>, &QueryView<'_>, &[u32]),
    ) {
        out.clear();
        let mut room = std::mem::take(&mut scratch.scaled);
        let row = scaled(row, &self.info, &mut room);
        if let [tree] = &self.trees[..] {
            let PredictScratch { query, search, .. } = scratch;
            let view = query.prepare(row, tree.slot_map());
            let post = self.info.post;
            Search { tree, post, params, scratch: search, trace: &mut trace }.run(&view, params.top_k);
            out.extend(search.select.sorted().iter().map(|s| self.finished(*s)));
        } else {
            self.ask_all(row, params, pool_size(params.top_k, self.trees.len()), scratch, out, &mut trace);
        }
        scratch.scaled = room;
    }

    /// The answer of several trees to a row as they take it, which offer `per_tree` labels each, or
    /// all.
    pub(super) fn ask_all(
        &self,
        row: SparseRow<'_>,
        params: &PredictParams,
        mut per_tree: usize,
        scratch: &mut PredictScratch,
        out: &mut Vec<Scored>,
        trace: &mut impl FnMut(&ChunkedView<'_>, &QueryView<'_>, &[u32]),
    ) {
        let n_trees = self.trees.len();
        let post = self.info.post;
        let PredictScratch { query, search, pooled, missing, rest, reached, leaves, ends, .. } = scratch;
        missing.resize_with(n_trees, Vec::new);
        loop {
            pooled.clear();
            reached.clear();
            leaves.clear();
            ends.clear();
            for (number, tree) in self.trees.iter().enumerate() {
                let view = query.prepare(row, tree.slot_map());
                Search { tree, post, params, scratch: search, trace: &mut *trace }.run(&view, per_tree);
                self.pool(number, &mut search.select, pooled);
                let clusters = search.parents.iter().zip(&search.parent_scores);
                reached.extend(clusters.map(|(&label, &score)| Scored { label, score }));
                leaves.extend_from_slice(&search.leaves);
                ends.push((reached.len(), leaves.len()));
            }
            missing.iter_mut().for_each(Vec::clear);
            let sizes = (n_trees, params.top_k, per_tree);
            let others = choose(sizes, 0, pooled, rest, &mut search.select, missing);
            let (mut from, mut first) = (0, 0);
            for ((tree, missing), &(end, end_of_leaves)) in self.trees.iter().zip(&mut *missing).zip(&*ends) {
                let (clusters, leaves) = (&reached[from..end], &leaves[first..end_of_leaves]);
                (from, first) = (end, end_of_leaves);
                if missing.is_empty() {
                    continue;
                }
                locate(tree, clusters, missing);
                // Those of clusters that were passed over, which could not change what the tree offers.
                missing.retain(|one| match leaves.get(one.place as usize) {
                    Some(&score) if one.cluster != NOWHERE => {
                        let Missing { label, tree, .. } = *one;
                        pooled.push(Pooled { label, tree, score: post.finish(score) });
                        false
                    }
                    _ => one.cluster != NOWHERE,
                });
                if missing.is_empty() {
                    continue;
                }
                missing.sort_unstable_by_key(|one| one.cluster);
                let (level, view) = (tree.level(tree.depth() - 1), query.prepare(row, tree.slot_map()));
                for together in missing.chunk_by(|a, b| a.cluster == b.cluster) {
                    let cluster = clusters[together[0].cluster as usize];
                    trace(&level, &view, &[cluster.label]);
                    let SearchScratch { product, margins: room, .. } = &mut *search;
                    room.clear();
                    margins(&level, &view, &[cluster.label], params.choice, product, room);
                    rank_scores(post, cluster.score, room);
                    let first = level.children(cluster.label as usize).start;
                    pooled.extend(together.iter().map(|&Missing { tree, label, leaf, .. }| Pooled {
                        label,
                        tree,
                        score: post.finish(room[(leaf - first) as usize]),
                    }));
                }
            }
            out.clear();
            mean_of_trees(n_trees, params.top_k, pooled, &mut search.select, out);
            if others.are_behind(out, params.top_k) {
                return;
            }
            per_tree = ALL;
        }
    }
}

/// Parents that are scored before the threshold is looked at again: one lets most be left out, more
/// keep more memory accesses under way at a time. Of 1, 2, 3 and 4 the fastest, by a few
/// hundredths.
const WAVE: usize = 3;

/// The search of one tree for one query.
struct Search<'s, T> {
    tree: &'s Tree,
    post: PostProcessor,
    params: &'s PredictParams,
    scratch: &'s mut SearchScratch,
    trace: &'s mut T,
}

impl<T: FnMut(&ChunkedView<'_>, &QueryView<'_>, &[u32])> Search<'_, T> {
    /// Leaves the best `per_tree` labels in `select`, on the ranking scale, the clusters of leaves that the beam
    /// reached in `parents`, and in `leaves` the scores of the leaves of those that were not passed over.
    fn run(&mut self, query: &QueryView<'_>, per_tree: usize) {
        let tree = self.tree;
        self.scratch.leaves.clear();
        self.scratch.parents.clear();
        self.scratch.parents.push(0);
        self.scratch.parent_scores.clear();
        self.scratch.parent_scores.push(0.0);
        let last = tree.levels.len() - 1;
        let mut searched = 0;
        if let Some(top) = &tree.top {
            self.top(top, query, per_tree);
            if top.depth > last {
                let SearchScratch { nodes, parents, parent_scores, .. } = &mut *self.scratch;
                parents.clear();
                parents.extend(nodes.iter().map(|s| s.label));
                parent_scores.clear();
                parent_scores.extend(nodes.iter().map(|s| s.score));
                return;
            }
            searched = top.depth;
            self.descend(&tree.levels[searched].view());
        }
        for number in searched..=last {
            self.scratch.select.reset(if number == last { per_tree } else { self.params.beam });
            let mut start = 0;
            while start < self.scratch.parents.len() {
                let end = self.wave(start);
                if end == start {
                    break;
                }
                self.score(number, query, start..end);
                start = end;
            }
            if number < last {
                self.descend(&tree.levels[number + 1].view());
            }
        }
    }

    /// Searches the levels of the top.
    fn top(&mut self, top: &Top, query: &QueryView<'_>, per_tree: usize) {
        let SearchScratch { product, margins: room, nodes, select, .. } = &mut *self.scratch;
        let level = top.level.view();
        (self.trace)(&level, query, &[0]);
        room.clear();
        margins(&level, query, &[0], self.params.choice, product, room);
        let kept = (self.params.beam, per_tree);
        top::search(self.tree, top.depth, self.post, room, kept, nodes, select);
    }

    /// Where the parents to score next end: none are left when nothing further can change the best.
    ///
    /// No child ranks above its parent and the parents come best first, so as soon as one of them
    /// scores below the worst node that is kept, it and all after it are done with.
    fn wave(&self, start: usize) -> usize {
        let SearchScratch { parents, parent_scores, select, .. } = &*self.scratch;
        if !self.post.never_rises() {
            return parents.len();
        }
        let threshold = select.threshold();
        start + parent_scores[start..].iter().take(WAVE).take_while(|&&score| score >= threshold).count()
    }

    /// Scores the children of some of the parents.
    fn score(&mut self, number: usize, query: &QueryView<'_>, range: std::ops::Range<usize>) {
        let SearchScratch { product, parents, parent_scores, margins: room, leaves: kept, select, .. } =
            &mut *self.scratch;
        let level = self.tree.levels[number].view();
        let leaves = (number + 1 == self.tree.levels.len()).then(|| self.tree.labels());
        let (parents, scores) = (&parents[range.clone()], &parent_scores[range]);
        (self.trace)(&level, query, parents);
        room.clear();
        margins(&level, query, parents, self.params.choice, product, room);
        let mut rest = &mut room[..];
        for (&parent, &score) in parents.iter().zip(scores) {
            let children = level.children(parent as usize);
            let (here, others) = rest.split_at_mut(children.len());
            rest = others;
            offer_children(self.post, score, children.start, here, leaves, select);
        }
        if leaves.is_some() {
            kept.extend_from_slice(room);
        }
    }

    /// Makes the selected nodes the parents of the next level, the best first: children of good
    /// parents raise the threshold of the next selection early, and most of the others fail it at
    /// once.
    fn descend(&mut self, next: &ChunkedView<'_>) {
        let SearchScratch { parents, parent_scores, select, .. } = &mut *self.scratch;
        for node in select.best() {
            next.prefetch_parent(node.label as usize);
        }
        let best = select.sorted();
        parents.clear();
        parents.extend(best.iter().map(|s| s.label));
        parent_scores.clear();
        parent_scores.extend(best.iter().map(|s| s.score));
    }
}
