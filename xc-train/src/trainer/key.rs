//! What a checkpoint belongs to.

use super::{Sample, Trainer};
use crate::state::Role;
use crate::{Encoder, Features, Head, Network};
use xc_sparse::store::Dtype;
use xxhash_rust::xxh3::Xxh3;

/// Counts as part of every key: raise it when training changes its results.
const VERSION: u64 = 1;

/// See [`Trainer::key`]. Taken before anything is learned.
pub(super) fn key<E: Encoder, H: Head<Input = E::Output>>(
    trainer: &Trainer<'_>,
    network: &Network<E, H>,
    train: &Sample<'_>,
    validation: Option<&Sample<'_>>,
) -> u64 {
    let mut hash = Xxh3::new();
    let params = serde_json::to_string(&trainer.params).unwrap_or_else(|e| panic!("settings are plain numbers: {e}"));
    let plain = |e| panic!("settings are plain numbers: {e}");
    let optimizer = serde_json::to_string(&trainer.optimizer).unwrap_or_else(plain);
    let schedule = trainer.schedule.settings();
    hash.update(&VERSION.to_le_bytes());
    for text in
        [&params, trainer.loss.name(), &optimizer, &schedule, &network.encoder().settings(), &network.head().settings()]
    {
        hash.update(&(text.len() as u64).to_le_bytes());
        hash.update(text.as_bytes());
    }
    for array in network.arrays().into_iter().filter(|array| array.role == Role::Values) {
        let [rows, width] = array.shape;
        hash.update(array.name.as_bytes());
        hash.update(&(rows as u64).to_le_bytes());
        // Rows and bytes say the shape of an array of F32. Others say type and width too; F32 does not, so that the keys of
        // checkpoints from before there were other types still hold.
        if array.dtype != Dtype::F32 {
            hash.update(array.dtype.name().as_bytes());
            hash.update(&(width as u64).to_le_bytes());
        }
        hash.update(array.bytes);
    }
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
