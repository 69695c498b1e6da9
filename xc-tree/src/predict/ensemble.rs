//! The answer of several trees: what each offers, and the mean.

use crate::model::TreeModel;
use xc_sparse::rank::{Scored, TopK};

/// What one tree says of a label, scores on the post-processor's own scale.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pooled {
    pub(crate) label: u32,
    pub(crate) tree: u32,
    pub(crate) score: f32,
}

/// Labels that each tree of an ensemble offers where `top_k` are asked for.
///
/// A label that one tree ranks high may stand a little below another tree's top k; its share of the
/// mean would be lost. Further down scores are too small to matter.
pub(crate) fn pool_size(top_k: usize, n_trees: usize) -> usize {
    if n_trees == 1 { top_k } else { top_k.saturating_mul(3).max(top_k.saturating_add(20)) }
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
}

/// Means over trees: a tree that did not offer a label counts 0 for it.
///
/// Scores of one label are added in the order of the trees, whatever order they come in here.
pub(crate) fn mean_of_trees(
    n_trees: usize,
    top_k: usize,
    pooled: &mut [Pooled],
    select: &mut TopK,
    out: &mut Vec<Scored>,
) {
    pooled.sort_unstable_by_key(|p| u64::from(p.label) << 32 | u64::from(p.tree));
    select.reset(top_k);
    let mut at = 0;
    while at < pooled.len() {
        let label = pooled[at].label;
        let mut sum = 0.0f32;
        while at < pooled.len() && pooled[at].label == label {
            sum += pooled[at].score;
            at += 1;
        }
        select.push(Scored { label, score: sum / n_trees as f32 });
    }
    out.extend_from_slice(select.sorted());
}
