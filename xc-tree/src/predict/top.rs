//! Search of the first levels of a tree, whose weights stand in one chunk (see
//! [`Top`](crate::model::Top)).

use super::scores::offer_children;
use crate::model::{PostProcessor, Tree};
use xc_sparse::rank::{Scored, TopK};

/// Walks the levels of a top over its margins, which are used up. Leaves in `select` what a search
/// of those levels leaves: the best nodes of the last one, or the best labels when it is the tree's
/// last.
pub(crate) fn search(
    tree: &Tree,
    depth: usize,
    post: PostProcessor,
    margins: &mut [f32],
    (beam, per_tree): (usize, usize),
    nodes: &mut Vec<Scored>,
    select: &mut TopK,
) {
    nodes.clear();
    nodes.push(Scored { label: 0, score: 0.0 });
    let mut first = 0;
    for number in 0..depth {
        let level = tree.level(number);
        let leaves = (number + 1 == tree.depth()).then(|| tree.labels());
        select.reset(if leaves.is_some() { per_tree } else { beam });
        for node in nodes.iter() {
            let children = level.children(node.label as usize);
            let here = &mut margins[first + children.start as usize..first + children.end as usize];
            offer_children(post, node.score, children.start, here, leaves, select);
        }
        first += level.n_columns();
        if number + 1 < depth {
            nodes.clear();
            nodes.extend_from_slice(select.sorted());
        }
    }
}
