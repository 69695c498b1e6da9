//! The encoder's vectors of the labels' texts.

use crate::sampler::{LabelWeights, Queries};
use xc_buffer::FloatSlice;

/// One vector per label: the latest encoding of its text, and zeros before the first one.
#[derive(Clone, Debug)]
pub(super) struct TextVectors {
    /// The instance that is the text of label 0; the others follow.
    first: u32,
    width: usize,
    pub(super) values: Vec<f32>,
    /// Zeros: only vectors are compared.
    biases: Vec<f32>,
}

impl TextVectors {
    pub(super) fn new(first: u32, n_labels: usize, width: usize) -> Self {
        Self { first, width, values: vec![0.0; n_labels * width], biases: vec![0.0; n_labels] }
    }

    /// Stores the vectors of those instances of a step that are texts of labels, and returns the
    /// labels.
    pub(super) fn take(&mut self, queries: Queries<'_>) -> Vec<u32> {
        let mut labels = Vec::new();
        for (place, &instance) in queries.instances.iter().enumerate() {
            let Some(label) = instance.checked_sub(self.first) else { continue };
            if (label as usize) < self.biases.len() {
                let row = label as usize * self.width;
                self.values[row..row + self.width].copy_from_slice(queries.vectors.row(place));
                labels.push(label);
            }
        }
        labels.sort_unstable();
        labels.dedup();
        labels
    }

    /// The vectors as rows of labels.
    pub(super) fn rows(&self) -> LabelWeights<'_> {
        LabelWeights::new(FloatSlice::F32(&self.values), self.width, &self.biases)
    }
}
