//! The key that ties a checkpoint to a training run.

use crate::{CsrView, LabelRows};
use serde::Serialize;
use xxhash_rust::xxh3::Xxh3;

/// Hash of everything that a training run's result depends on: its settings and its data. Runs with the
/// same key give the same bytes; a checkpoint with another key is rejected.
///
/// Every part is added with its length, so that parts cannot be confused; their order matters.
///
/// *Cost*: one pass over the data, some GB per second.
#[derive(Clone)]
pub struct CheckpointKey(Xxh3);

impl CheckpointKey {
    /// Begins the key of a training run. `system` names what is trained; `version` increases when training
    /// changes its results.
    pub fn new(system: &str, version: u64) -> Self {
        let mut key = Self(Xxh3::new());
        key.text(system);
        key.numbers(&[version]);
        key
    }

    /// Adds text.
    pub fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
    }

    /// Adds settings, as JSON.
    ///
    /// # Panics
    /// If they cannot be written as JSON: maps whose keys are not strings.
    pub fn settings(&mut self, settings: &impl Serialize) {
        let json = serde_json::to_vec(settings).unwrap_or_else(|e| panic!("settings are no JSON: {e}"));
        self.bytes(&json);
    }

    /// Adds numbers.
    pub fn numbers(&mut self, numbers: &[u64]) {
        self.bytes(bytemuck::cast_slice(numbers));
    }

    /// Adds the elements of an array, its length first.
    pub fn bytes(&mut self, bytes: &[u8]) {
        self.0.update(&(bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    /// Adds sparse rows with their width.
    pub fn rows(&mut self, rows: CsrView<'_>) {
        self.numbers(&[rows.rows() as u64, rows.cols() as u64]);
        for i in 0..rows.rows() {
            let row = rows.row(i);
            self.bytes(bytemuck::cast_slice(row.indices()));
            self.0.update(bytemuck::cast_slice(row.values()));
        }
    }

    /// Adds label lists with the number of labels.
    pub fn labels(&mut self, labels: &LabelRows) {
        self.numbers(&[labels.len() as u64, labels.n_labels() as u64]);
        labels.iter().for_each(|row| self.bytes(bytemuck::cast_slice(row)));
    }

    /// The key: 16 hexadecimal digits.
    pub fn finish(&self) -> String {
        super::super::config::hex(self.0.digest())
    }
}

impl std::fmt::Debug for CheckpointKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("CheckpointKey").field(&self.finish()).finish()
    }
}
