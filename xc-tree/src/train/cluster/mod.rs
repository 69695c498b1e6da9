//! From label vectors to the shape of a tree.
//!
//! Balanced: every node's labels are cut into at most `branching` parts of nearly equal size by
//! repeated 2-means with a cut near the middle, until a part holds at most `max_leaf` labels; the
//! labels of a part are its children. Unbalanced: plain spherical k-means per node, to a maximal
//! depth (`[khandagale2020bonsai]`).
//!
//! The depth of a balanced tree and the number of its clusters depend on the number of labels
//! alone, and without slack so do their sizes: clustering only decides which label goes where.

mod balanced;
mod unbalanced;

use crate::train::label_vectors::LabelVectors;
use crate::train::observe::TreeEvent;
use serde::{Deserialize, Serialize};
use xc_buffer::Observer;

/// How labels are grouped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ClusterParams {
    /// Balanced or not.
    pub method: ClusterMethod,
    /// Maximum number of children of an inner cluster; 2 or more.
    pub branching: usize,
    /// Maximum number of labels of a leaf cluster; 1 or more. Balanced trees exceed it by up to half due
    /// to their slack, and from branching 8 on if that saves a level.
    pub max_leaf: usize,
    /// How far a balanced cut may move from the middle to where labels are nearer to the other
    /// side: a share of the smaller part, 0 (parts of equal size) or more, below 1.
    pub slack: f32,
    /// Maximum number of k-means iterations per split; 1 or more.
    pub max_iterations: usize,
    /// A split ends when its objective grows by less than this share.
    pub tolerance: f32,
    /// Labels sampled for k-means per split, at most, by the seed.
    /// All labels are assigned at the end.
    pub max_sample: usize,
    /// Maximum number of cluster levels above the labels; only for [`ClusterMethod::Unbalanced`].
    pub max_depth: usize,
}

/// How a node's labels are split.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClusterMethod {
    /// Parts of equal size.
    Balanced,
    /// Parts as k-means finds them.
    Unbalanced,
}

impl ClusterParams {
    /// Children of a cluster on each level above the labels, the root first; `None` for trees whose shape
    /// depends on the data.
    pub fn children(&self, n_labels: usize) -> Option<Vec<usize>> {
        (self.method == ClusterMethod::Balanced).then(|| balanced::plan(n_labels, self))
    }
}

impl Default for ClusterParams {
    fn default() -> Self {
        Self {
            method: ClusterMethod::Balanced,
            branching: 32,
            max_leaf: 100,
            slack: 0.0,
            // Measured: with 20 and 32,768 the same quality for twice the time
            // (bench/decisions/tree-training.md).
            max_iterations: 8,
            tolerance: 1e-4,
            max_sample: 1 << 12,
            max_depth: 3,
        }
    }
}

/// Which rows of a [`LabelVectors`] stand where: the boundaries of each level and the order of the
/// leaves.
pub(crate) struct Clustering {
    pub(crate) levels: Vec<Vec<u32>>,
    pub(crate) order: Vec<u32>,
}

/// Clusters all vectors. `None` when the observer asked to stop.
///
/// *Determinism*: depends on `seed` and the vectors alone.
pub(crate) fn cluster(
    vectors: &LabelVectors,
    params: &ClusterParams,
    seed: u64,
    observer: &dyn Observer<TreeEvent>,
) -> Option<Clustering> {
    match params.method {
        ClusterMethod::Balanced => balanced::cluster(vectors, params, seed, observer),
        ClusterMethod::Unbalanced => unbalanced::cluster(vectors, params, seed, observer),
    }
}

/// Boundary `part` of `n` labels in `parts` parts of nearly equal size.
fn boundary(n: usize, parts: usize, part: usize) -> usize {
    (n as u128 * part as u128 / parts as u128) as usize
}

/// Label vectors that a split reads: the shared ones, or a copy of a few with their coordinates
/// renumbered.
pub(crate) enum Space<'a> {
    Shared(&'a LabelVectors),
    Local(Local),
}

/// A copy of some vectors whose coordinates are renumbered to `0..n_features`, in the order of
/// first use.
pub(crate) struct Local {
    indptr: Vec<u32>,
    indices: Vec<u32>,
    values: Vec<f32>,
    n_features: usize,
}

impl Space<'_> {
    #[inline]
    fn vector(&self, i: u32) -> (&[u32], &[f32]) {
        match self {
            Space::Shared(vectors) => vectors.vector(i as usize),
            Space::Local(local) => {
                let range = local.indptr[i as usize] as usize..local.indptr[i as usize + 1] as usize;
                (&local.indices[range.clone()], &local.values[range])
            }
        }
    }

    fn n_features(&self) -> usize {
        match self {
            Space::Shared(vectors) => vectors.n_features(),
            Space::Local(local) => local.n_features,
        }
    }

    fn nnz_of(&self, rows: &[u32]) -> usize {
        rows.iter().map(|&i| self.vector(i).0.len()).sum()
    }

    /// Copies `rows`; row `j` of the copy is `rows[j]`.
    fn gather(&self, rows: &[u32]) -> Local {
        let nnz = self.nnz_of(rows);
        let mut local = Local {
            indptr: Vec::with_capacity(rows.len() + 1),
            indices: Vec::with_capacity(nnz),
            values: Vec::with_capacity(nnz),
            n_features: 0,
        };
        let mut number = vec![u32::MAX; self.n_features()];
        local.indptr.push(0);
        for &row in rows {
            let (indices, values) = self.vector(row);
            for &feature in indices {
                let number = &mut number[feature as usize];
                if *number == u32::MAX {
                    *number = local.n_features as u32;
                    local.n_features += 1;
                }
                local.indices.push(*number);
            }
            local.values.extend_from_slice(values);
            local.indptr.push(local.indices.len() as u32);
        }
        local
    }
}

/// Sparse times dense; four sums that are joined at the end.
#[inline]
fn dot(vector: (&[u32], &[f32]), dense: &[f32]) -> f32 {
    let (indices, values) = vector;
    let mut sums = [0.0f32; 4];
    let (i4, v4) = (indices.chunks_exact(4), values.chunks_exact(4));
    let (i_rest, v_rest) = (i4.remainder(), v4.remainder());
    for (i, v) in i4.zip(v4) {
        for u in 0..4 {
            sums[u] += v[u] * dense[i[u] as usize];
        }
    }
    for (&i, &v) in i_rest.iter().zip(v_rest) {
        sums[0] += v * dense[i as usize];
    }
    (sums[0] + sums[1]) + (sums[2] + sums[3])
}

/// `dense += scale * vector`.
#[inline]
fn add(dense: &mut [f32], vector: (&[u32], &[f32]), scale: f32) {
    for (&i, &v) in vector.0.iter().zip(vector.1) {
        dense[i as usize] += scale * v;
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn products_are_sums_over_shared_coordinates() {
        let vector = (&[0u32, 2, 4, 5, 1][..], &[1.0f32, 2.0, 3.0, 4.0, 5.0][..]);
        assert_eq!(super::dot(vector, &[1.0, 10.0, 100.0, 0.0, 7.0, 8.0]), 304.0);
    }
}
