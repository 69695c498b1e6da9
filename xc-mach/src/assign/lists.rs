//! Labels sorted by bucket, for the families whose buckets cannot be listed otherwise.

use xc_hash::universal::BucketHash;
use xc_sparse::rank::LabelId;

/// The labels of every bucket of one repetition, ascending within a bucket.
///
/// ```text
///   label    0 1 2 3 4          starts  0 2 4 5      bucket k: labels[starts[k]..starts[k + 1]]
///   bucket   1 0 2 0 1    =>    labels  1 3 0 4 2
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketLists {
    starts: Vec<usize>,
    labels: Vec<LabelId>,
}

impl BucketLists {
    /// Lists the labels below `n_labels`.
    ///
    /// *Cost*: each label is hashed twice.
    pub fn new(hash: &impl BucketHash, n_labels: u32) -> Self {
        let n_buckets = hash.n_buckets() as usize;
        let mut starts = vec![0usize; n_buckets + 1];
        for label in 0..n_labels {
            starts[hash.bucket(label) as usize + 1] += 1;
        }
        for bucket in 0..n_buckets {
            starts[bucket + 1] += starts[bucket];
        }
        let mut ends = starts.clone();
        let mut labels = vec![0; n_labels as usize];
        for label in 0..n_labels {
            let end = &mut ends[hash.bucket(label) as usize];
            labels[*end] = label;
            *end += 1;
        }
        Self { starts, labels }
    }

    /// The labels of a bucket, ascending.
    ///
    /// # Panics
    /// If there is no such bucket.
    pub fn labels(&self, bucket: u32) -> &[LabelId] {
        let bucket = bucket as usize;
        &self.labels[self.starts[bucket]..self.starts[bucket + 1]]
    }
}
