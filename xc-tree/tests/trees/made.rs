//! Instances that tests of training share.

use xc_sparse::{CsrMatrix, LabelRows};
use xc_tree::ClusterParams;

/// `n` instances with two of `l` labels each, a feature of its own for each label, and noise.
pub(crate) fn data(n: usize, l: usize) -> (CsrMatrix, LabelRows) {
    let (mut indptr, mut indices, mut values, mut lists) = (vec![0], Vec::new(), Vec::new(), Vec::new());
    for i in 0..n {
        let mut labels = vec![(i % l) as u32, (7 * i % l) as u32];
        labels.sort_unstable();
        labels.dedup();
        indices.extend(labels.iter().copied().chain([(l + i * i % 11) as u32]));
        values.extend(labels.iter().map(|_| 0.7).chain([0.3]));
        indptr.push(indices.len());
        lists.push(labels);
    }
    (CsrMatrix::from_checked((n, l + 11), indptr, indices, values), LabelRows::from_lists(lists, l).unwrap())
}

pub(crate) fn clusters(branching: usize, max_leaf: usize) -> ClusterParams {
    ClusterParams { branching, max_leaf, ..ClusterParams::default() }
}
