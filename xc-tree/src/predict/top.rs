//! The first levels of a tree in one chunk.
//!
//! Near the root there are fewer nodes than a beam keeps clusters, so nearly all of them are scored, each with its few
//! siblings apart: with branching 2, the 30 nodes of four levels take 15 visits, and every visit looks up every feature
//! of the query. A head holds the weights of all these nodes as the children of one parent, for one visit. The
//! search then walks the levels as ever, on margins that are there already: the same answers, bit for bit.

use super::online::offer_children;
use super::select::Select;
use crate::model::PostProcessor;
use crate::model::TreeParts;
use crate::model::{Level, Tree};
use xc_sparse::chunked::{ChunkRows, MAX_WIDTH};
use xc_sparse::rank::Scored;

/// The weights of all nodes of a tree's first `depth` levels, level after level, as one parent's children.
pub(crate) struct Head {
    pub(crate) level: Level,
    pub(crate) depth: usize,
}

/// Levels that a head takes, given the number of nodes of each: as many as fit one chunk, and 0 (no head) for fewer than two.
pub(crate) fn depth_of(widths: impl Iterator<Item = usize>) -> usize {
    let mut nodes = 0;
    let depth = widths.take_while(|&width| {
        nodes += width;
        nodes <= MAX_WIDTH
    });
    match depth.count() {
        1 => 0,
        depth => depth,
    }
}

/// The rows of a head; `None` for a tree whose first two levels are too wide.
pub(crate) fn rows(parts: &TreeParts) -> Option<(usize, ChunkRows)> {
    let depth = depth_of((0..parts.topology.depth()).map(|l| parts.topology.n_nodes(l)));
    if depth == 0 {
        return None;
    }
    let (mut entries, mut bias) = (Vec::new(), Vec::new());
    for chunks in &parts.levels[..depth] {
        for chunk in chunks {
            let first = bias.len() as u32;
            for (row, &feature) in chunk.features.iter().enumerate() {
                let cells = chunk.row_ptr[row] as usize..chunk.row_ptr[row + 1] as usize;
                entries.extend(cells.map(|at| (feature, first + chunk.columns[at], chunk.values[at])));
            }
            bias.extend_from_slice(&chunk.bias);
        }
    }
    // Chunks that break their invariants are reported where their own level is packed.
    let rows = ChunkRows::from_entries(bias.len(), entries, bias).ok()?;
    Some((depth, rows))
}

/// Walks the levels of a head over its margins, which are used up. Leaves in `select` what a search of those levels leaves:
/// the best nodes of the last one, or the best labels when it is the tree's last.
pub(crate) fn search(
    tree: &Tree,
    depth: usize,
    post: PostProcessor,
    margins: &mut [f32],
    (beam, per_tree): (usize, usize),
    nodes: &mut Vec<Scored>,
    select: &mut Select,
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
            nodes.extend_from_slice(select.ranked());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_takes_the_levels_that_fit_a_chunk() {
        for (widths, depth) in [
            (&[2usize, 4, 8, 16, 32, 64, 128][..], 6),
            (&[16, 256], 0),
            (&[64, 64, 1], 2),
            (&[100], 0),
            (&[2, 126], 2),
            (&[2, 127], 0),
            (&[500, 2], 0),
            (&[3, 5, 7], 3),
        ] {
            assert_eq!(depth_of(widths.iter().copied()), depth, "{widths:?}");
        }
    }
}
