//! The key that ties a checkpoint to a training run.

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

    /// Adds bytes to the array that [`CheckpointKey::bytes`] added last, whose length tells theirs.
    pub fn further_bytes(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
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
