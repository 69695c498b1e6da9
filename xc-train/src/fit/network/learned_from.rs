//! Which instances a network learned from, for what is learned after it.

use xc_nn::trainer::Subset;
use xc_sparse::LabelRows;
use xc_sparse::rows::OwnedRows;

/// Instances that are learned from, and others with their labels, which say how much the network counts.
pub(super) struct LearnedFrom {
    pub(super) rows: Vec<u32>,
    pub(super) held_out: Option<(OwnedRows, LabelRows)>,
}

impl LearnedFrom {
    /// Copies what is held out: a validation is small beside what is learned from.
    pub(super) fn of(train: &Subset<'_>, held_out: Option<&Subset<'_>>) -> Self {
        let of = |subset: &Subset<'_>| {
            let examples = subset.examples();
            let mut lists = Vec::with_capacity(subset.len());
            for &row in subset.rows() {
                let mut labels = Vec::new();
                // What has no answer has none that is right.
                if !subset.is_unanswered(row) {
                    examples.targets().append(row as usize, &mut labels);
                }
                lists.push(labels);
            }
            let labels = LabelRows::from_lists(lists, examples.targets().n_labels());
            let labels = labels.unwrap_or_else(|e| panic!("labels of examples: {e}"));
            (examples.features().select(subset.rows()), labels)
        };
        Self { rows: train.rows().to_vec(), held_out: held_out.map(of) }
    }
}
