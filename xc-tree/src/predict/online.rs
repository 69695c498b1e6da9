//! Beam search of one query, online: no allocation once the scratch has grown.

use super::ensemble::{Pooled, mean_of_trees, pool_size};
use super::scores::{normalised, offer_children};
use super::top;
use crate::model::{PostProcessor, Top, Tree, TreeModel};
use xc_sparse::SparseRow;
use xc_sparse::chunked::{Choice, ProductScratch, QueryScratch, QueryView, Touched, margins};
use xc_sparse::rank::{Scored, TopK};

/// What a prediction may be told.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PredictParams {
    /// Labels returned for a query; fewer where the beam reaches fewer.
    pub top_k: usize,
    /// Clusters kept per level.
    pub beam: usize,
    /// Which iterator multiplies.
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
#[derive(Default)]
pub struct PredictScratch {
    pub(crate) query: QueryScratch,
    pub(crate) normalised: Vec<f32>,
    pub(crate) product: ProductScratch,
    pub(crate) parents: Vec<u32>,
    pub(crate) parent_scores: Vec<f32>,
    pub(crate) margins: Vec<f32>,
    pub(crate) nodes: Vec<Scored>,
    pub(crate) select: TopK,
    pub(crate) pooled: Vec<Pooled>,
    // The clusters whose children were scored, when somebody wants to know.
    trail: Option<Vec<Visited>>,
}

/// A cluster whose children a search scored.
#[derive(Clone, Copy, Debug)]
struct Visited {
    tree: u32,
    // None: the top.
    level: Option<u32>,
    parent: u32,
}

impl TreeModel {
    /// The best labels of one query, best first, into `out`.
    ///
    /// *Cost*: for each level, the products of the query with at most `beam` chunks; see
    /// [`xc_sparse::chunked::Intersect`]. Allocates nothing once `scratch` and `out` have grown.
    ///
    /// *Determinism*: the same labels and score bits as [`TreeModel::predict_batch`], for any thread count.
    pub fn predict_one(
        &self,
        row: SparseRow<'_>,
        params: &PredictParams,
        scratch: &mut PredictScratch,
        out: &mut Vec<Scored>,
    ) {
        out.clear();
        let PredictScratch {
            query,
            normalised: room,
            product,
            parents,
            parent_scores,
            margins,
            nodes,
            select,
            pooled,
            trail,
        } = scratch;
        let row = normalised(row, self.info.normalise_rows, room);
        let per_tree = pool_size(params.top_k, self.trees.len());
        pooled.clear();
        for (number, tree) in self.trees.iter().enumerate() {
            let view = query.prepare(row, tree.levels[0].view().slot_map());
            let mut search = Search {
                post: self.info.post,
                params,
                number,
                product,
                parents,
                parent_scores,
                margins,
                nodes,
                select,
                trail,
            };
            search.run(tree, &view, per_tree);
            if self.trees.len() == 1 {
                out.extend(select.sorted().iter().map(|s| self.finished(*s)));
                return;
            }
            self.pool(number, select, pooled);
        }
        mean_of_trees(self.trees.len(), params.top_k, pooled, select, out);
    }

    /// Adds to `touched` the memory that [`TreeModel::predict_one`] reads for a query.
    ///
    /// *Cost*: many times that of the prediction.
    pub fn touched_by(
        &self,
        row: SparseRow<'_>,
        params: &PredictParams,
        scratch: &mut PredictScratch,
        touched: &mut Touched,
    ) {
        scratch.trail = Some(Vec::new());
        self.predict_one(row, params, scratch, &mut Vec::new());
        let trail = scratch.trail.take().unwrap_or_default();
        let row = normalised(row, self.info.normalise_rows, &mut scratch.normalised);
        for of_tree in trail.chunk_by(|a, b| a.tree == b.tree) {
            let tree = &self.trees[of_tree[0].tree as usize];
            let query = scratch.query.prepare(row, tree.levels[0].view().slot_map());
            for visited in of_tree {
                let level = match (visited.level, &tree.top) {
                    (None, Some(top)) => top.level.view(),
                    (level, _) => tree.levels[level.unwrap_or(0) as usize].view(),
                };
                touched.add(&level, &query, visited.parent, params.choice);
            }
        }
    }
}

/// Parents that are scored before the bar is looked at again: one lets most be left out, more keep more memory accesses
/// under way at a time. Of 1, 2, 3 and 4 the fastest, by a few hundredths.
const WAVE: usize = 3;

struct Search<'s> {
    post: PostProcessor,
    params: &'s PredictParams,
    number: usize,
    product: &'s mut ProductScratch,
    parents: &'s mut Vec<u32>,
    parent_scores: &'s mut Vec<f32>,
    margins: &'s mut Vec<f32>,
    nodes: &'s mut Vec<Scored>,
    select: &'s mut TopK,
    trail: &'s mut Option<Vec<Visited>>,
}

impl Search<'_> {
    /// Leaves the best `per_tree` labels in `select`, on the ranking scale.
    fn run(&mut self, tree: &Tree, query: &QueryView<'_>, per_tree: usize) {
        self.parents.clear();
        self.parents.push(0);
        self.parent_scores.clear();
        self.parent_scores.push(0.0);
        let last = tree.levels.len() - 1;
        let mut searched = 0;
        if let Some(top) = &tree.top {
            self.top(tree, top, query, per_tree);
            if top.depth > last {
                return;
            }
            searched = top.depth;
            self.descend(&tree.levels[searched].view());
        }
        for number in searched..=last {
            self.select.reset(if number == last { per_tree } else { self.params.beam });
            let mut start = 0;
            while start < self.parents.len() {
                let end = self.wave(start);
                if end == start {
                    break;
                }
                self.score(tree, number, query, start..end);
                start = end;
            }
            if number < last {
                self.descend(&tree.levels[number + 1].view());
            }
        }
    }

    /// Searches the levels of the top.
    fn top(&mut self, tree: &Tree, top: &Top, query: &QueryView<'_>, per_tree: usize) {
        if let Some(trail) = self.trail {
            trail.push(Visited { tree: self.number as u32, level: None, parent: 0 });
        }
        self.margins.clear();
        margins(&top.level.view(), query, &[0], self.params.choice, self.product, self.margins);
        let kept = (self.params.beam, per_tree);
        top::search(tree, top.depth, self.post, self.margins, kept, self.nodes, self.select);
    }

    /// Where the parents to score next end: none are left when nothing further can change the best.
    ///
    /// No child ranks above its parent and the parents come best first, so as soon as one of them scores below the worst
    /// node that is kept, it and all after it are done with.
    fn wave(&self, start: usize) -> usize {
        if !self.post.never_rises() {
            return self.parents.len();
        }
        let bar = self.select.threshold();
        let rising = self.parent_scores[start..].iter().take(WAVE).take_while(|&&score| score >= bar).count();
        start + rising
    }

    /// Scores the children of some of the parents.
    fn score(&mut self, tree: &Tree, number: usize, query: &QueryView<'_>, parents: std::ops::Range<usize>) {
        let level = tree.levels[number].view();
        let leaves = (number + 1 == tree.levels.len()).then(|| tree.labels());
        if let Some(trail) = self.trail {
            let (tree, level) = (self.number as u32, number as u32);
            trail.extend(self.parents[parents.clone()].iter().map(|&parent| Visited {
                tree,
                level: Some(level),
                parent,
            }));
        }
        self.margins.clear();
        margins(&level, query, &self.parents[parents.clone()], self.params.choice, self.product, self.margins);
        let mut rest = &mut self.margins[..];
        for (&parent, &score) in self.parents[parents.clone()].iter().zip(&self.parent_scores[parents]) {
            let children = level.children(parent as usize);
            let (here, others) = rest.split_at_mut(children.len());
            rest = others;
            offer_children(self.post, score, children.start, here, leaves, self.select);
        }
    }

    /// Makes the selected nodes the parents of the next level, the best first: children of good parents raise the bar of
    /// the next selection early, and most of the others fail it at once.
    fn descend(&mut self, next: &xc_sparse::chunked::ChunkedView<'_>) {
        for node in self.select.best() {
            next.prefetch_parent(node.label as usize);
        }
        let best = self.select.sorted();
        self.parents.clear();
        self.parents.extend(best.iter().map(|s| s.label));
        self.parent_scores.clear();
        self.parent_scores.extend(best.iter().map(|s| s.score));
    }
}
