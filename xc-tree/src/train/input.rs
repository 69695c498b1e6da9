//! What a tree is trained on, and the memory that takes.

use super::params::TreeParams;
use xc_sparse::rows::normalise;
use xc_sparse::{CsrView, LabelRows, Rows};

/// What a tree is trained on.
#[derive(Clone, Copy, Debug)]
pub struct TrainInput<'a> {
    /// Features, one row an instance.
    pub features: CsrView<'a>,
    /// Labels, one list an instance.
    pub labels: &'a LabelRows,
    /// Features of the labels, one row a label, where the representation needs them.
    pub label_features: Option<CsrView<'a>>,
    /// Weight of each instance in the loss, 0 or more; `None` counts all alike.
    pub instance_weights: Option<&'a [f32]>,
    /// Cost factor of each label's own ranker, above 0; `None` counts all alike.
    pub label_costs: Option<&'a [f32]>,
}

impl<'a> TrainInput<'a> {
    /// Features and labels alone.
    pub fn new(features: CsrView<'a>, labels: &'a LabelRows) -> Self {
        Self { features, labels, label_features: None, instance_weights: None, label_costs: None }
    }
}

/// Rows of length 1: values of their own for the structure of given rows.
pub(super) struct UnitRows {
    indptr: Vec<usize>,
    values: Vec<f32>,
}

impl UnitRows {
    pub(super) fn new(features: CsrView<'_>) -> Self {
        let rows = Rows::new(features);
        let (mut indptr, mut values) = (vec![0], Vec::with_capacity(rows.nnz()));
        for i in 0..rows.len() {
            let start = values.len();
            values.extend_from_slice(rows.row(i).values);
            normalise(&mut values[start..]);
            indptr.push(values.len());
        }
        Self { indptr, values }
    }

    /// The rows; `features` are those that this was made from.
    pub(super) fn view<'a>(&'a self, features: CsrView<'a>) -> CsrView<'a> {
        let (shape, (_, indices, _)) = (features.shape(), features.into_raw_storage());
        CsrView::new(shape, &self.indptr, indices, &self.values)
    }
}

/// An estimate, on the high side, of the most bytes one tree's training holds beside its input.
///
/// The larger of two moments: the label vectors while they are clustered (every label copies its
/// positives' features at most), and the rankers (dense weights and dual variables of 16 siblings a
/// thread, the features of the parents in work, and the finished weights, assumed as many as the
/// features of all label paths divided by four).
pub fn estimate_peak_bytes(input: &TrainInput<'_>, params: &TreeParams, n_threads: usize) -> u64 {
    let features = Rows::new(input.features);
    let (n, d) = (features.len() as u64, features.n_features() as u64);
    let threads = n_threads.max(1) as u64;
    let summed: u64 = (0..features.len()).map(|i| (features.row(i).nnz() * input.labels.row(i).len()) as u64).sum();
    let longest = params.max_label_nnz.map_or(u64::MAX, |m| m as u64 * input.labels.n_labels() as u64);
    let given = input.label_features.map_or(0, |f| f.nnz() as u64);
    let vectors = summed.min(longest).saturating_add(given) * 8;
    let clustering = vectors + threads * d * 16 + (input.labels.n_labels() as u64) * 40;
    let dense = threads * (d + n) * 64;
    let pairs = input.labels.nnz() as u64 * 24;
    let weights = summed * 2;
    let blocks = features.nnz() as u64 * 8;
    let unit_rows = if params.normalise_rows { features.nnz() as u64 * 4 + n * 8 } else { 0 };
    clustering.max(dense + pairs + weights + blocks) + unit_rows
}
