//! Beam search of one query, online: no allocation once the scratch has grown.

use super::ensemble::Means;
use super::error::{QueryError, check_row};
use super::scores::{Leaves, Reached, offer_nodes, scaled};
use super::top;
use crate::model::{ModelInfo, PostProcessor, Top, Tree, TreeModel};
use xc_sparse::SparseRow;
use xc_sparse::chunked::{ChunkQuery, ChunkedView, IteratorChoice, ProductScratch, QueryView, margins};
use xc_sparse::rank::{Scored, TopK};

/// Parameters of a prediction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PredictParams {
    /// Labels returned per query; fewer if the beam reaches fewer.
    pub top_k: usize,
    /// Clusters kept per level. Default: the model's.
    pub beam: Option<usize>,
    /// The iterator of the products.
    pub choice: IteratorChoice,
}

impl PredictParams {
    /// The `k` best labels, with the model's own beam.
    pub const fn top(k: usize) -> Self {
        Self { top_k: k, beam: None, choice: IteratorChoice::Auto }
    }

    /// Another beam.
    pub fn with_beam(self, beam: usize) -> Self {
        Self { beam: Some(beam), ..self }
    }

    /// Another iterator.
    pub fn with_choice(self, choice: IteratorChoice) -> Self {
        Self { choice, ..self }
    }

    /// With the beam of this model where none is given.
    pub(crate) fn of(self, info: &ModelInfo) -> Sought {
        let beam = self.beam.unwrap_or(info.beam.max(1));
        Sought { top_k: self.top_k, beam, choice: self.choice }
    }
}

/// [`PredictParams`] of one model.
#[derive(Clone, Copy)]
pub(crate) struct Sought {
    pub(crate) top_k: usize,
    pub(crate) beam: usize,
    pub(super) choice: IteratorChoice,
}

/// Memory of one thread's predictions, reused from query to query.
#[derive(Clone, Debug, Default)]
pub struct PredictScratch {
    pub(super) query: ChunkQuery,
    pub(super) scaled: Vec<f32>,
    pub(super) search: SearchScratch,
    // Leaves that the beams of several trees reached, tree after tree, and the sums of their scores by label.
    pub(super) reached: Reached,
    pub(super) means: Means,
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
    pub(super) nodes: Vec<Scored>,
    pub(super) select: TopK,
}

impl TreeModel {
    /// The best labels of one query, best first, into `out`.
    ///
    /// *Cost*: for each level, the products of the query with at most `beam` chunks; see
    /// [`xc_sparse::chunked::IteratorKind`]. Allocates nothing once `scratch` and `out` have grown.
    ///
    /// *Determinism*: the same labels and score bits as [`TreeModel::predict_batch`], for any
    /// thread count.
    ///
    /// # Errors
    /// A feature that the model does not have; `out` is then empty.
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
    ) -> Result<(), QueryError> {
        self.predict_traced(row, params, scratch, out, |_, _, _| {})
    }

    /// [`TreeModel::predict_one`] that reports every product to `trace` before computing it: the level,
    /// the query and the parents whose children are scored. For instrumentation; a trace that does nothing
    /// costs nothing.
    ///
    /// # Errors
    /// As [`TreeModel::predict_one`].
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
    ) -> Result<(), QueryError> {
        out.clear();
        check_row(row, &self.info)?;
        let params = &params.of(&self.info);
        let mut room = std::mem::take(&mut scratch.scaled);
        let row = scaled(row, &self.info, &mut room);
        let PredictScratch { query, search, reached, means, .. } = scratch;
        let post = self.info.post;
        let is_one = self.trees.len() == 1;
        reached.clear();
        for tree in &self.trees {
            let view = query.prepare(row, tree.slot_map());
            let of_tree = (!is_one).then_some(&mut *reached);
            Search { tree, post, params, scratch: search, reached: of_tree, trace: &mut trace }.run(&view);
            reached.end_tree();
        }
        if is_one {
            // Exponentials can tie where logarithms do not: the order of the ranking scale stands.
            out.extend(search.select.sorted().iter().map(|s| self.finished(*s)));
        } else {
            self.ensemble().best_means(reached, params.top_k, means, &mut search.select);
            out.extend_from_slice(search.select.sorted());
        }
        scratch.scaled = room;
        Ok(())
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
    params: &'s Sought,
    scratch: &'s mut SearchScratch,
    // Where all leaves go that are reached, in one of several trees.
    reached: Option<&'s mut Reached>,
    trace: &'s mut T,
}

impl<T: FnMut(&ChunkedView<'_>, &QueryView<'_>, &[u32])> Search<'_, T> {
    /// Leaves the best labels in `select`, on the ranking scale, or adds all that the beam reaches to `reached`.
    fn run(&mut self, query: &QueryView<'_>) {
        let tree = self.tree;
        self.scratch.parents.clear();
        self.scratch.parents.push(0);
        self.scratch.parent_scores.clear();
        self.scratch.parent_scores.push(0.0);
        let last = tree.levels.len() - 1;
        let mut searched = 0;
        if let Some(top) = &tree.top {
            self.top(top, query);
            if top.depth > last {
                return;
            }
            searched = top.depth;
            self.descend(&tree.levels[searched].view());
        }
        for number in searched..=last {
            self.scratch.select.reset(if number == last { self.params.top_k } else { self.params.beam });
            let mut start = 0;
            while start < self.scratch.parents.len() {
                let end = if number == last && self.reached.is_some() {
                    self.scratch.parents.len()
                } else {
                    self.wave(start)
                };
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
    fn top(&mut self, top: &Top, query: &QueryView<'_>) {
        let SearchScratch { product, margins: room, nodes, select, .. } = &mut *self.scratch;
        let level = top.level.view();
        (self.trace)(&level, query, &[0]);
        room.clear();
        margins(&level, query, &[0], self.params.choice, product, room);
        let kept = (self.params.beam, self.params.top_k);
        top::search(self.tree, top.depth, self.post, room, kept, nodes, select, self.reached.as_deref_mut());
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
        let SearchScratch { product, parents, parent_scores, margins: room, select, .. } = &mut *self.scratch;
        let level = self.tree.levels[number].view();
        let (parents, scores) = (&parents[range.clone()], &parent_scores[range]);
        (self.trace)(&level, query, parents);
        room.clear();
        margins(&level, query, parents, self.params.choice, product, room);
        let mut rest = &mut room[..];
        let of_parents = parents.iter().zip(scores).map(|(&parent, &score)| {
            let children = level.children(parent as usize);
            (children.clone(), score, rest.split_off_mut(..children.len()).unwrap_or_default())
        });
        if number + 1 == self.tree.levels.len() {
            let labels = self.tree.labels();
            let mut leaves = Leaves::of(self.reached.as_deref_mut(), select);
            of_parents.for_each(|(children, score, margins)| {
                leaves.offer(self.post, score, &labels[children.start as usize..children.end as usize], margins);
            });
        } else {
            of_parents.for_each(|(children, score, margins)| {
                offer_nodes(self.post, score, children.start, margins, select);
            });
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
