//! Galloping binary search: doubling steps from the last hit, then a binary search inside the step.
//!
//! The shorter side is walked: for a long query and a small chunk, the chunk's features are searched
//! for.

use super::{ChunkView, Matches, QueryView};

/// First position at or after `from` whose key is at least `wanted`.
fn gallop(len: usize, from: usize, wanted: u32, key: impl Fn(usize) -> u32) -> usize {
    let (mut low, mut step) = (from, 1);
    while low + step < len && key(low + step) < wanted {
        low += step;
        step *= 2;
    }
    let (mut low, mut high) = (low, (low + step).min(len));
    while low < high {
        let middle = low + (high - low) / 2;
        if key(middle) < wanted {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

pub(super) fn find(chunk: &ChunkView<'_>, query: &QueryView<'_>, matches: &mut Matches) {
    let (n_rows, nnz) = (chunk.n_rows(), query.indices.len());
    if n_rows < nnz {
        let mut i = 0;
        for row in 0..n_rows {
            let wanted = chunk.feature(row);
            i = gallop(nnz, i, wanted, |i| query.indices[i]);
            if i == nnz {
                break;
            }
            if query.indices[i] == wanted {
                matches.push(row as u32, query.values[i]);
            }
        }
    } else {
        let mut row = 0;
        for (&wanted, &value) in query.indices.iter().zip(query.values) {
            row = gallop(n_rows, row, wanted, |row| chunk.feature(row));
            if row == n_rows {
                break;
            }
            if chunk.feature(row) == wanted {
                matches.push(row as u32, value);
            }
        }
    }
}
