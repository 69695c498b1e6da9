//! Where the beam of a training run is.

/// For each cluster of a level, the instances whose beam holds it, with their scores.
pub(super) struct Matched {
    pub(super) indptr: Vec<usize>,
    pub(super) instances: Vec<u32>,
    pub(super) scores: Vec<f32>,
}

impl Matched {
    /// Instances that reach cluster `p`, ascending.
    pub(super) fn of(&self, p: usize) -> &[u32] {
        &self.instances[self.indptr[p]..self.indptr[p + 1]]
    }
}
