//! Dense lookup: the chunk's rows are scattered into an array indexed by feature.

use super::{Matches, QueryView};
use crate::chunked::DensePositions;

pub(super) fn find(query: &QueryView<'_>, dense: &DensePositions, matches: &mut Matches) {
    let (positions, found) = (dense.as_slice(), &mut matches.found);
    let start = found.rows.len();
    let nnz = query.indices.len();
    found.rows.resize(start + nnz, 0);
    found.values.resize(start + nnz, 0.0);
    let mut n = start;
    // Written without a branch: whether a feature is present is a coin toss to the branch
    // predictor.
    for (&feature, &value) in query.indices.iter().zip(query.values) {
        let place = positions[feature as usize];
        found.rows[n] = place.wrapping_sub(1);
        found.values[n] = value;
        n += usize::from(place != 0);
    }
    found.rows.truncate(n);
    found.values.truncate(n);
}
