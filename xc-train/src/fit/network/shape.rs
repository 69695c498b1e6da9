//! What the usual values of networks follow from.

use super::instances::Instances;
use crate::preset::{DataShape, Preset};
use xc_model::classifier::InputKind;
use xc_nn::Rows;
use xc_sparse::LabelRows;

/// What is known of the instances before anything is made for them.
#[derive(Clone, Copy, Debug)]
pub struct TrainingShape {
    /// What an instance is.
    pub input: InputKind,
    /// Features of an instance, or values of its vector.
    pub n_features: usize,
    /// Number of labels.
    pub n_labels: usize,
    /// Labels of the instance with the most.
    pub most_labels: usize,
    /// What usual values follow from, once the instances are read.
    pub data: Option<DataShape>,
}

impl TrainingShape {
    /// That of instances that were read.
    pub fn of(instances: &Instances) -> Self {
        let (features, targets) = (instances.features(), instances.targets());
        let input = features.kind();
        let (n_instances, n_labels) = (targets.len(), targets.n_labels());
        let n_entries = match features {
            Rows::Sparse(rows) => rows.nnz(),
            Rows::Tokens(rows) => rows.ids().len(),
            _ => n_instances * features.width(),
        };
        let most_frequent = instances.labels().map_or(0, most_frequent);
        let data = Some(DataShape { n_instances, n_entries, n_labels, most_frequent });
        Self { input, n_features: features.width(), n_labels, most_labels: targets.most(), data }
    }

    /// What an instance has some of.
    pub fn unit(&self) -> &'static str {
        match self.input {
            InputKind::Sparse | InputKind::Text => "feature",
            InputKind::Dense => "value",
            InputKind::Tokens => "token",
        }
    }

    /// A preset as it is above what instances are: tokens have a transformer.
    pub fn above_input(&self, preset: Preset) -> Preset {
        if self.input == InputKind::Tokens { preset.above_tokens() } else { preset }
    }

    /// What values follow from that suit sparse features alone.
    pub fn sparse_data(&self) -> Option<DataShape> {
        self.data.filter(|_| self.input == InputKind::Sparse)
    }
}

/// Instances of the most frequent label; ids may have gaps that no memory holds counts of.
fn most_frequent(labels: &LabelRows) -> usize {
    let mut all = labels.labels().to_vec();
    all.sort_unstable();
    all.chunk_by(|a, b| a == b).map(<[u32]>::len).max().unwrap_or(0)
}
