//! The input of tree training.

use xc_sparse::rows::normalise;
use xc_sparse::{CsrView, LabelRows, Rows};

/// The input of tree training.
#[derive(Clone, Copy, Debug)]
pub struct TrainInput<'a> {
    /// Features, one row per instance.
    pub features: CsrView<'a>,
    /// Labels, one list per instance.
    pub labels: &'a LabelRows,
    /// Features of the labels, one row per label, if the representation needs them.
    pub label_features: Option<CsrView<'a>>,
    /// Weight of each instance in the loss, 0 or more; `None`: all equal.
    pub instance_weights: Option<&'a [f32]>,
    /// Cost factor of each label's own ranker, above 0; `None`: all equal.
    pub label_costs: Option<&'a [f32]>,
}

impl<'a> TrainInput<'a> {
    /// Input with features and labels only.
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
            values.extend_from_slice(rows.row(i).values());
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
