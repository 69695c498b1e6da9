//! Labels sorted by bucket, for the families whose buckets cannot be listed otherwise.

use xc_hash::universal::BucketHash;
use xc_sparse::rank::LabelId;
use xc_sparse::rows::{Groups, group_by};

/// The labels of every bucket of one repetition, ascending within a bucket.
///
/// ```text
///   label    0 1 2 3 4          starts  0 2 4 5      bucket k: labels[starts[k]..starts[k + 1]]
///   bucket   1 0 2 0 1    =>    labels  1 3 0 4 2
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketLists(Groups<LabelId>);

impl BucketLists {
    /// Lists the labels below `n_labels`.
    ///
    /// *Cost*: each label is hashed twice.
    pub fn new(hash: &impl BucketHash, n_labels: u32) -> Self {
        Self(group_by(hash.n_buckets() as usize, (0..n_labels).map(|label| (hash.bucket(label), label))))
    }

    /// The labels of a bucket, ascending.
    ///
    /// # Panics
    /// If there is no such bucket.
    pub fn labels(&self, bucket: u32) -> &[LabelId] {
        self.0.group(bucket as usize)
    }
}
