//! The first levels of a tree in one chunk.
//!
//! Near the root there are fewer nodes than a beam keeps clusters, so nearly all of them are
//! scored, each with its few siblings apart: with branching 2, the 30 nodes of four levels take 15
//! visits, and every visit looks up every feature of the query. The top holds the weights of all
//! these nodes as the children of one parent, for one visit. The search then walks the levels as
//! ever, on margins that are there already: the same answers, bit for bit.

use super::Topology;
use xc_sparse::chunked::{ChunkRows, ChunkedLevel, MAX_WIDTH};

/// The weights of all nodes of a tree's first `depth` levels, level after level, as one parent's
/// children.
#[derive(Clone)]
pub(crate) struct Top {
    pub(crate) level: ChunkedLevel,
    pub(crate) depth: usize,
}

/// Levels that a top takes, given the number of nodes of each: as many as fit one chunk, and 0 (no
/// top) for fewer than two.
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

/// Levels that the top of a tree takes; 0 where it has none.
pub(crate) fn depth(topology: &Topology) -> usize {
    depth_of((0..topology.depth()).map(|level| topology.n_nodes(level)))
}

/// The rows of a top from the chunks of its levels, level after level. `None`: they break their
/// invariants, which is reported where their own level is packed.
pub(crate) fn rows<'a>(chunks: impl IntoIterator<Item = &'a ChunkRows>) -> Option<ChunkRows> {
    let (mut entries, mut bias) = (Vec::new(), Vec::new());
    for chunk in chunks {
        let first = bias.len() as u32;
        for (row, &feature) in chunk.features.iter().enumerate() {
            let cells = chunk.row_ptr[row] as usize..chunk.row_ptr[row + 1] as usize;
            entries.extend(cells.map(|at| (feature, first + chunk.columns[at], chunk.values[at])));
        }
        bias.extend_from_slice(&chunk.bias);
    }
    ChunkRows::from_entries(bias.len(), entries, bias).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_top_takes_the_levels_that_fit_a_chunk() {
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
