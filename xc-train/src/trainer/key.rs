//! What a checkpoint belongs to.

use super::{Sample, Trainer};
use crate::{Encoder, Features, Head, Network};
use serde_json::json;
use xxhash_rust::xxh3::Xxh3;

/// Counts as part of every key: raise it when training changes its results.
const VERSION: u64 = 1;

/// See [`Trainer::key`].
pub(super) fn key<E: Encoder, H: Head<Input = E::Output>>(
    trainer: &Trainer<'_>,
    network: &Network<E, H>,
    train: &Sample<'_>,
    validation: Option<&Sample<'_>>,
) -> u64 {
    let settings = json!({
        "version": VERSION,
        "training": trainer.params,
        "loss": trainer.loss,
        "optimizer": trainer.optimizer,
        "schedule": trainer.schedule.settings(),
        "encoder": network.encoder().settings(),
        "head": network.head().settings(),
    });
    let mut hash = Xxh3::new();
    hash.update(settings.to_string().as_bytes());
    for sample in std::iter::once(train).chain(validation) {
        rows(&mut hash, sample);
    }
    hash.digest()
}

fn rows(hash: &mut Xxh3, sample: &Sample<'_>) {
    let examples = sample.examples();
    hash.update(&(sample.rows().len() as u64).to_le_bytes());
    hash.update(bytemuck::cast_slice(sample.rows()));
    for &i in sample.rows() {
        match examples.features() {
            Features::Sparse(rows) => {
                let row = rows.row(i as usize);
                hash.update(&(row.nnz() as u64).to_le_bytes());
                hash.update(bytemuck::cast_slice(row.indices));
                hash.update(bytemuck::cast_slice(row.values));
            }
            Features::Dense(rows) => hash.update(bytemuck::cast_slice(rows.row(i as usize))),
        }
        let targets = examples.targets().row(i as usize);
        hash.update(&(targets.len() as u64).to_le_bytes());
        hash.update(bytemuck::cast_slice(targets));
    }
}
