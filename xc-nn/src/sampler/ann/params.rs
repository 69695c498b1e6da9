//! Settings of hard labels from an index.

use super::super::Lists;
use super::super::params::{NegativeParams, SamplerParamsError, number};
use super::index::build_params;
use serde::{Deserialize, Serialize};
use xc_ann::Graph;

/// How many hard labels an instance has, and how their index follows the weights.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AnnParams {
    /// Hard labels of an instance, k_h.
    pub per_instance: usize,
    /// Up to this number of labels, all of them are compared: hard labels are exact, and there is
    /// no index.
    pub exact_below: usize,
    /// Steps after which the index is built; before that an instance has no hard labels.
    pub first: u64,
    /// Steps between refreshes of the index's edges; 0: whenever the number of steps has doubled.
    /// In both cases, edges are also refreshed once per epoch. With 0, a refresh waits until the
    /// steps since the last one have changed four times as many labels as there are.
    pub every: u64,
    /// Share of the hardest labels that a search should find.
    pub recall: f64,
}

impl Default for AnnParams {
    /// Ten hard labels; above 5,000 labels an index of recall 0.9, built after 64 steps.
    fn default() -> Self {
        Self {
            per_instance: NegativeParams::usual_chosen(Lists::Shared),
            exact_below: 5000,
            first: 64,
            every: 0,
            recall: 0.9,
        }
    }
}

impl AnnParams {
    pub(in super::super) fn check(&self) -> Result<(), SamplerParamsError> {
        let Self { per_instance, first, recall, .. } = *self;
        if per_instance == 0 {
            return number("per_instance", 0.0, "at least 1");
        }
        if first == 0 {
            return number("first", 0.0, "at least 1");
        }
        if !(recall > 0.0 && recall <= 1.0) {
            return number("recall", recall, "a share above 0, at most 1");
        }
        Ok(())
    }

    /// Bytes of the index over `n_labels` rows of `width` values, and of the memory that its
    /// refreshes need.
    pub fn bytes(&self, n_labels: usize, width: usize) -> u64 {
        if self.is_exact(n_labels) {
            return 0;
        }
        // Rows with their biases, the graph before and after a refresh, and about as much again for
        // what a refresh has found and not yet put in its place (measured: 20 MiB for 69,925 labels).
        let graph = Graph::bytes(n_labels, width.saturating_add(1), &build_params(self.per_instance, self.recall, 0));
        let rows = 4 * n_labels as u128 * (width as u128 + 1);
        u64::try_from(rows + 3 * graph as u128).unwrap_or(u64::MAX)
    }

    /// Whether a training of so many epochs of so many steps comes to build the index: after the first
    /// steps, or after the first step of the second epoch.
    pub fn is_built(&self, steps_per_epoch: usize, n_epochs: u32) -> bool {
        n_epochs > 1 || (n_epochs == 1 && steps_per_epoch as u64 >= self.first)
    }

    /// Whether this number of labels is small enough to compare all of them.
    pub fn is_exact(&self, n_labels: usize) -> bool {
        n_labels <= self.exact_below
    }
}
