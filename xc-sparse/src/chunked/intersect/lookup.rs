//! Dense lookup: the chunk's rows lie scattered in an array indexed by feature.

use super::{Matches, QueryView};
use crate::chunked::DensePositions;

pub(super) fn find(query: &QueryView<'_>, dense: &DensePositions, matches: &mut Matches) {
    let positions = dense.as_slice();
    let start = matches.rows.len();
    let nnz = query.indices.len();
    matches.rows.resize(start + nnz, 0);
    matches.values.resize(start + nnz, 0.0);
    let mut n = start;
    // Written without a branch: whether a feature is present is a coin toss to the branch predictor.
    for (&feature, &value) in query.indices.iter().zip(query.values) {
        let found = positions[feature as usize];
        matches.rows[n] = found.wrapping_sub(1);
        matches.values[n] = value;
        n += usize::from(found != 0);
    }
    matches.rows.truncate(n);
    matches.values.truncate(n);
}
