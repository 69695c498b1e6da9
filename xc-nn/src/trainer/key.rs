//! What a checkpoint belongs to.

use super::{Subset, Trainer};
use crate::Rows;
use serde::Serialize;
use xc_store::{CheckpointKey, CheckpointLayout};

/// Counts as part of every key: raise it when training changes its results.
const VERSION: u64 = 1;

/// The checkpoints of a training of one network.
pub const CHECKPOINT: CheckpointLayout = CheckpointLayout { system: "network", parts: &[STATE] };
/// The only part of them.
pub const STATE: &str = "state";

impl Trainer<'_> {
    /// Hash of everything that the result depends on: data, settings, and `model`, which says all
    /// that the network and its first values follow from beside the data (shape, seed). Two
    /// training runs of one key end with the same bytes.
    ///
    /// *Cost*: one pass over the data, some GB a second.
    pub fn key(
        &self,
        layout: CheckpointLayout,
        model: &impl Serialize,
        train: &Subset<'_>,
        validation: Option<&Subset<'_>>,
    ) -> String {
        let mut key = CheckpointKey::new(layout.system, VERSION);
        key.settings(&self.params);
        key.settings(&(self.loss, self.optimizer, self.schedule.settings()));
        key.settings(model);
        // What is learned does not depend on it, but what the checkpoint holds.
        if let Some(hard) = &self.hard {
            key.settings(&("hard labels", hard.n()));
        }
        for sample in std::iter::once(train).chain(validation) {
            let examples = sample.examples();
            key.bytes(bytemuck::cast_slice(sample.rows()));
            key.numbers(&[examples.features().width() as u64, examples.targets().n_labels() as u64]);
            let mut labels = Vec::new();
            for i in sample.rows().iter().map(|&i| i as usize) {
                match examples.features() {
                    Rows::Sparse(rows) => {
                        key.bytes(bytemuck::cast_slice(rows.row(i).indices()));
                        key.bytes(bytemuck::cast_slice(rows.row(i).values()));
                    }
                    Rows::Dense(rows) => key.bytes(bytemuck::cast_slice(rows.row(i))),
                    Rows::Texts(texts) => key.bytes(texts.get(i).as_bytes()),
                    Rows::Tokens(rows) => {
                        let row = rows.instance(i);
                        key.bytes(bytemuck::cast_slice(row.ids));
                        if let Some(words) = row.words {
                            key.bytes(bytemuck::cast_slice(words.indices()));
                            key.bytes(bytemuck::cast_slice(words.values()));
                        }
                    }
                    Rows::OneHot(rows) => key.bytes(bytemuck::cast_slice(rows.row(i).indices())),
                }
                labels.clear();
                examples.targets().append(i, &mut labels);
                key.bytes(bytemuck::cast_slice(&labels));
            }
        }
        key.finish()
    }
}
