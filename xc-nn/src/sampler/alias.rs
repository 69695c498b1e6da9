//! Draws from any fixed distribution in constant time.

use xc_hash::stream::Stream;

/// An alias table over labels (Walker 1977, built by Vose's method). Every column is drawn with
/// equal probability; it belongs to its own label up to a share, and to its alias above that share.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct AliasTable {
    share: Vec<f32>,
    alias: Vec<u32>,
    chance: Vec<f32>,
}

impl AliasTable {
    /// Probabilities proportional to the weights; `None` if all weights are 0.
    pub(super) fn new(mut weights: Vec<f64>) -> Option<Self> {
        let n = weights.len();
        let total: f64 = weights.iter().sum();
        if total == 0.0 {
            return None;
        }
        let chance = weights.iter().map(|w| (w / total) as f32).collect();
        // Scaled so that a column holds a weight of 1.
        weights.iter_mut().for_each(|w| *w *= n as f64 / total);
        let (mut low, mut high): (Vec<u32>, Vec<u32>) = (0..n as u32).partition(|&label| weights[label as usize] < 1.0);
        let (mut share, mut alias) = (vec![1.0f32; n], (0..n as u32).collect::<Vec<_>>());
        while let (Some(&small), Some(&large)) = (low.last(), high.last()) {
            low.pop();
            let (at, rest) = (small as usize, weights[large as usize]);
            (share[at], alias[at]) = (weights[at] as f32, large);
            weights[large as usize] = rest - (1.0 - weights[at]);
            if weights[large as usize] < 1.0 {
                high.pop();
                low.push(large);
            }
        }
        // The remaining columns have weight 1 up to rounding errors. A label of weight 0 is among
        // them only because of such errors.
        for label in low.into_iter().filter(|&label| weights[label as usize] == 0.0) {
            (share[label as usize], alias[label as usize]) = (0.0, largest(&weights));
        }
        Some(Self { share, alias, chance })
    }

    pub(super) fn len(&self) -> usize {
        self.share.len()
    }

    pub(super) fn draw(&self, random: &mut Stream) -> u32 {
        let column = random.below_u64(self.len() as u64) as usize;
        if random.unit() < f64::from(self.share[column]) { column as u32 } else { self.alias[column] }
    }

    pub(super) fn chance(&self, label: u32) -> f64 {
        f64::from(self.chance[label as usize])
    }
}

fn largest(weights: &[f64]) -> u32 {
    let best = weights.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1));
    best.map_or(0, |(label, _)| label as u32)
}
