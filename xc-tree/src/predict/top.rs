//! Search of the first levels of a tree, whose weights stand in one chunk (see
//! [`Top`](crate::model::Top)).

use super::scores::{Leaves, Reached, offer_nodes};
use crate::model::{PostProcessor, Tree};
use xc_sparse::rank::{Scored, TopK};

/// Walks the levels of a top over its margins, which are used up. Leaves the best nodes of the last one in `select`, or
/// offers its leaves when it is the tree's last.
pub(crate) fn search(
    tree: &Tree,
    depth: usize,
    post: PostProcessor,
    margins: &mut [f32],
    (beam, per_tree): (usize, usize),
    nodes: &mut Vec<Scored>,
    select: &mut TopK,
    reached: Option<&mut Reached>,
) {
    nodes.clear();
    nodes.push(Scored { label: 0, score: 0.0 });
    let mut first = 0;
    for number in 0..depth {
        let level = tree.level(number);
        let is_last = number + 1 == tree.depth();
        select.reset(if is_last { per_tree } else { beam });
        let here = |node: u32| {
            let children = level.children(node as usize);
            (first + children.start as usize..first + children.end as usize, children)
        };
        if is_last {
            let mut leaves = Leaves::of(reached, select);
            for node in nodes.iter() {
                let (here, children) = here(node.label);
                let labels = &tree.labels()[children.start as usize..children.end as usize];
                leaves.offer(post, node.score, labels, &mut margins[here]);
            }
            return;
        }
        for node in nodes.iter() {
            let (here, children) = here(node.label);
            offer_nodes(post, node.score, children.start, &mut margins[here], select);
        }
        first += level.n_columns();
        if number + 1 < depth {
            nodes.clear();
            nodes.extend_from_slice(select.sorted());
        }
    }
}
