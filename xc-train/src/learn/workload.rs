//! What training works on, as far as its memory depends on it.

use xc_nn::optim::Moments;

/// What the memory of training depends on, apart from the classifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Training instances.
    pub n_instances: usize,
    /// Features of an instance, or values of its vector.
    pub n_features: usize,
    /// Labels, or buckets of a MACH repetition.
    pub n_labels: usize,
    /// Instances of a step.
    pub batch_size: usize,
    /// Passes over the instances.
    pub n_epochs: u32,
    /// What the optimiser remembers.
    pub moments: Moments,
    /// Whether a copy of the best parameters is kept.
    pub keeps_best: bool,
    /// Whether gradients are clipped, so that those of all labels exist at once.
    pub clips: bool,
    /// Lengths of the instances, where these are tokens.
    pub tokens: TokenLengths,
}

/// How many tokens instances have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenLengths {
    /// All instances together.
    pub sum: usize,
    /// The one with the most.
    pub longest: usize,
    /// Whether what frozen layers make of them stays in memory.
    pub are_cached: bool,
}

impl TokenLengths {
    /// Tokens of the longest of the batches of so many of `n` instances, about: those of the mean batch, and four
    /// standard deviations of a batch whose instances have a length between 0 and the longest. No batch has more than
    /// the longest for each instance.
    pub(super) fn of_batch(&self, size: usize, n: usize) -> usize {
        let (size, longest) = (size.min(n), self.longest as f64);
        let mean = self.sum as f64 / n.max(1) as f64;
        // No lengths with this mean, of at most the longest, deviate by more.
        let deviation = (mean * (longest - mean)).max(0.0).sqrt();
        let tokens = mean * size as f64 + 4.0 * deviation * (size as f64).sqrt();
        (tokens as usize).min(size.saturating_mul(self.longest))
    }
}

/// A product of sizes; no memory of the world holds what does not fit.
pub(super) fn product(factors: &[usize]) -> u64 {
    factors.iter().fold(1, |product: u64, &factor| product.saturating_mul(factor as u64))
}
