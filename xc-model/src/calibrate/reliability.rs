//! How often labels with a given score are true.

use serde::Serialize;

/// The scores in one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Bin {
    /// Number of scores.
    pub count: u64,
    /// Their mean; 0 if there are none.
    pub mean_score: f64,
    /// Share of true labels; 0 if there are none.
    pub share_true: f64,
}

/// Scores between 0 and 1 in ten intervals of equal width, and how far they are from the shares of
/// true labels.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reliability {
    /// From 0 to 1.
    pub bins: Vec<Bin>,
    /// Expected calibration error: the mean over scores of the distance between their bin's mean
    /// score and share of true labels.
    pub expected_calibration_error: f64,
}

/// Number of intervals of equal width.
const BINS: usize = 10;

impl Reliability {
    /// What a diagram shows: mean score and share of true labels of each interval that has scores.
    pub fn points(&self) -> Vec<(f64, f64)> {
        self.bins.iter().filter(|bin| bin.count > 0).map(|bin| (bin.mean_score, bin.share_true)).collect()
    }

    /// Computed from scores and whether their labels are true; `None` if a score is not between 0
    /// and 1.
    pub fn of(scores: impl Iterator<Item = (f32, bool)>) -> Option<Self> {
        let mut sums = [(0u64, 0.0, 0u64); BINS];
        for (score, is_true) in scores {
            if !(0.0..=1.0).contains(&score) {
                return None;
            }
            let (count, sum, n_true) = &mut sums[((score * BINS as f32) as usize).min(BINS - 1)];
            *count += 1;
            *sum += f64::from(score);
            *n_true += u64::from(is_true);
        }
        let total: u64 = sums.iter().map(|bin| bin.0).sum();
        let mean = |sum: f64, count: u64| if count == 0 { 0.0 } else { sum / count as f64 };
        let bin = |(count, sum, n_true): (u64, f64, u64)| Bin {
            count,
            mean_score: mean(sum, count),
            share_true: mean(n_true as f64, count),
        };
        let bins = sums.map(bin).to_vec();
        let gap = |bin: &Bin| bin.count as f64 * (bin.mean_score - bin.share_true).abs();
        let expected_calibration_error = mean(bins.iter().map(gap).sum(), total);
        Some(Self { bins, expected_calibration_error })
    }
}
