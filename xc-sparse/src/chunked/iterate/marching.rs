//! Marching pointers: a merge of two ascending lists.

use super::{ChunkView, Matches, QueryView};

pub(super) fn find(chunk: &ChunkView<'_>, query: &QueryView<'_>, matches: &mut Matches) {
    let (mut i, mut row) = (0, 0);
    while i < query.indices.len() && row < chunk.n_rows() {
        let (wanted, met) = (query.indices[i], chunk.feature(row));
        if wanted == met {
            matches.push(row as u32, query.values[i]);
        }
        i += usize::from(wanted <= met);
        row += usize::from(met <= wanted);
    }
}
