//! What a training will take, before any of it is taken.

use super::params::GROUP_CONNECTIONS;
use super::{InputKind, UniformParams, Wiring};
use crate::encoder::directions::bytes;
use crate::head::Sparse;
use crate::head::grouped::head_params;
use xc_sparse::uniform::Indices;

/// Bytes of a training, by part. The program itself (threads, files, log) takes some 10 MB more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UniformMemory {
    /// Learned values and indices.
    pub parameters: u64,
    /// What the optimiser remembers of them.
    pub moments: u64,
    /// The copy of the best parameters, where one is kept.
    pub best: u64,
    /// A step's buffers: values of all layers and their gradients, gradients of a tile of outputs, what rewiring moves. Or, where that is more than these,
    /// the moments and the copy together, what the search for leading directions takes before there are any.
    pub buffers: u64,
}

impl UniformMemory {
    /// All parts.
    pub fn total(&self) -> u64 {
        [self.parameters, self.moments, self.best, self.buffers].into_iter().fold(0, u64::saturating_add)
    }
}

impl UniformParams {
    /// What training takes with batches of `batch` instances, `n_moments` moments of an optimiser, a copy of the best parameters
    /// if `keeps_best`, and the gradients of all labels at once if it `clips` them.
    ///
    /// # Panics
    /// If [`UniformParams::check`] fails.
    pub fn memory(
        &self,
        n_features: usize,
        n_labels: usize,
        batch: usize,
        n_moments: usize,
        keeps_best: bool,
        clips: bool,
    ) -> UniformMemory {
        let arrays = self.encoder_arrays(n_features);
        let encoder: u64 = arrays.iter().map(|(_, [rows, width])| 4 * *rows as u64 * *width as u64).sum();
        let (width, labels, batch64) = (self.top_width(n_features), n_labels as u64, batch as u64);
        let (head, head_moments, head_buffers) = match self.sparse() {
            Some(sparse) => {
                let bytes = |n_moments| Sparse::n_bytes(labels, width, &sparse, n_moments);
                let screens = self.screens() && Sparse::screening_pays(labels, width, sparse.per_output, batch);
                let buffers = Sparse::scratch_bytes(labels, width, sparse.per_output, batch, clips, screens)
                    + self.rewire_bytes(labels, width, n_moments);
                (bytes(0), bytes(n_moments) - bytes(0), buffers)
            }
            None => {
                let values = 4 * labels * (width as u64 + 1);
                (values, n_moments as u64 * values, 4 * batch64 * labels)
            }
        };
        let of_groups = self.group_bytes(labels, width, batch, n_moments, keeps_best);
        let lowest = match self.input {
            InputKind::Sparse => self.widths[0],
            InputKind::Dense => n_features,
        };
        // Values and gradients of each layer, a gradient above all, and three batches of vectors that are gathered ahead.
        let units = 2 * (lowest + self.layer_widths().sum::<usize>()) + width;
        let ahead = if self.input == InputKind::Dense { 3 * n_features } else { 0 };
        let parameters = encoder + head;
        let moments = n_moments as u64 * encoder + head_moments;
        let best = if keeps_best { parameters } else { 0 };
        // Leading directions are sought before there are moments, a copy and buffers.
        let sought = match self.seeks_directions() {
            // The parameters are counted with the table that comes of it.
            true => bytes(n_features, self.widths[0]) - 4 * n_features as u64 * self.widths[0] as u64,
            false => 0,
        };
        let step = 4 * batch64 * (units + ahead) as u64 + head_buffers + of_groups;
        UniformMemory { parameters, moments, best, buffers: step.max(sought.saturating_sub(moments + best)) }
    }

    /// What groups of labels take: their head with its moments, copy and buffers, a gradient of the units, the list of groups.
    fn group_bytes(&self, labels: u64, width: usize, batch: usize, n_moments: usize, keeps_best: bool) -> u64 {
        let Some(n) = self.groups else { return 0 };
        let n = (n as u64).min(labels);
        let params = head_params(GROUP_CONNECTIONS, width);
        let copy = if keeps_best { Sparse::n_bytes(n, width, &params, 0) } else { 0 };
        let head = Sparse::n_bytes(n, width, &params, n_moments)
            + Sparse::scratch_bytes(n, width, params.per_output, batch, false, false);
        copy + head + 4 * (batch * width) as u64 + 4 * labels
    }

    /// What a change of the connections takes for a moment.
    fn rewire_bytes(&self, labels: u64, width: usize, n_moments: usize) -> u64 {
        let Some(rewire) = self.rewire() else { return 0 };
        let connections = labels * self.connections as u64;
        match self.wiring {
            // Lists of the places that change.
            Wiring::Uniform => (8.0 * rewire.fraction * connections as f64) as u64,
            // New arrays beside the old ones.
            Wiring::Unstructured => {
                let moved = if n_moments > 0 { 4 + self.moments.bytes() } else { 0 };
                connections * (4 + Indices::bytes_each(width) + self.weights.bytes() + moved) as u64
            }
            Wiring::Dense => 0,
        }
    }
}
