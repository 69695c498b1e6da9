//! The input of tree training.

use super::params::TreeParams;
use crate::model::ModelInfo;
use xc_sparse::rows::{normalise, typical_length};
use xc_sparse::{CsrView, LabelRows};

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

impl TreeParams {
    /// Properties of a model with these parameters that is trained on this input, other than its trees.
    ///
    /// *Cost*: one pass over the features, unless rows are scaled to length 1.
    pub fn model_info(&self, input: &TrainInput<'_>) -> ModelInfo {
        let (post, normalise_rows, beam) = (self.post_processor(), self.normalise_rows, self.beam);
        let (n_features, n_labels) = (input.features.cols(), input.labels.n_labels());
        ModelInfo { n_features, n_labels, post, normalise_rows, row_length: row_length(input, self), beam }
    }
}

/// What rows are divided by before anything else, where they are not scaled to length 1: cost, bias input and pruning
/// are meant for rows of about length 1.
pub(super) fn row_length(input: &TrainInput<'_>, params: &TreeParams) -> f32 {
    if params.normalise_rows {
        return 1.0;
    }
    let rows = input.features;
    typical_length((0..rows.rows()).map(|i| rows.row(i).values()))
}

/// Rows as trees learn from them: values of their own for the structure of given rows.
pub(super) struct ScaledRows {
    indptr: Vec<usize>,
    values: Vec<f32>,
}

impl ScaledRows {
    /// Rows of length 1, or divided by their typical length; `None` where the rows are right as they are.
    pub(super) fn new(input: &TrainInput<'_>, params: &TreeParams) -> Option<Self> {
        let length = row_length(input, params);
        if !params.normalise_rows && length == 1.0 {
            return None;
        }
        let rows = input.features;
        let (mut indptr, mut values) = (vec![0], Vec::with_capacity(rows.nnz()));
        for i in 0..rows.rows() {
            let start = values.len();
            match params.normalise_rows {
                true => {
                    values.extend_from_slice(rows.row(i).values());
                    normalise(&mut values[start..]);
                }
                false => values.extend(rows.row(i).values().iter().map(|v| v / length)),
            }
            indptr.push(values.len());
        }
        Some(Self { indptr, values })
    }

    /// The rows; `features` are those that this was made from.
    pub(super) fn view<'a>(&'a self, features: CsrView<'a>) -> CsrView<'a> {
        let shape = (features.rows(), features.cols());
        CsrView::from_checked(shape, &self.indptr, features.indices(), &self.values)
    }
}
