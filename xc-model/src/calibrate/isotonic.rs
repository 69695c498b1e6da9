//! Isotonic regression: the increasing step function nearest to the observations.

use super::Pair;

/// Neighbouring scores that are treated as equally often true.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IsotonicBlock {
    /// Mean of the scores.
    pub score: f64,
    /// Number of scores.
    pub n: u64,
    /// Number of true ones.
    pub n_true: u64,
}

impl IsotonicBlock {
    /// Share of true ones.
    pub fn share(&self) -> f64 {
        self.n_true as f64 / self.n as f64
    }

    fn join(&mut self, other: Self) {
        let n = self.n + other.n;
        self.score += (other.score - self.score) * (other.n as f64 / n as f64);
        (self.n, self.n_true) = (n, self.n_true + other.n_true);
    }
}

/// Pools adjacent violators: returns blocks of ascending scores whose shares increase strictly.
/// `pairs` are sorted by score, largest first; equal scores are one point.
///
/// *Cost*: O(pairs).
pub fn pool(pairs: &[Pair]) -> Vec<IsotonicBlock> {
    let mut blocks: Vec<IsotonicBlock> = Vec::new();
    for same in pairs.rchunk_by_score() {
        let n_true = same.iter().filter(|pair| pair.is_true).count() as u64;
        let mut block = IsotonicBlock { score: f64::from(same[0].score), n: same.len() as u64, n_true };
        // While the share is not above the previous one. Compared without division, in exact
        // integers.
        while let Some(mut before) = blocks.pop_if(|before| {
            u128::from(before.n_true) * u128::from(block.n) >= u128::from(block.n_true) * u128::from(before.n)
        }) {
            before.join(block);
            block = before;
        }
        blocks.push(block);
    }
    blocks
}

trait ByScore {
    /// Runs of equal scores, smallest first.
    fn rchunk_by_score(&self) -> impl Iterator<Item = &[Pair]>;
}

impl ByScore for [Pair] {
    fn rchunk_by_score(&self) -> impl Iterator<Item = &[Pair]> {
        let runs: Vec<&[Pair]> = self.chunk_by(|a, b| a.score == b.score).collect();
        runs.into_iter().rev()
    }
}
