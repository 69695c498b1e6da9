//! The map from a score to the probability that the label is true.

use super::platt::logistic;
use super::{Pair, isotonic, platt};
use crate::blend::{FeatureScale, below};
use xc_sparse::rank::Scored;

/// How a curve is fitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// Isotonic regression: any increasing curve. For some hundred true labels or more.
    #[default]
    Isotonic,
    /// A logistic curve of the score, or of its log-odds if scores lie between 0 and 1: two
    /// parameters, for few rows.
    Platt,
}

impl Method {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Isotonic, Self::Platt];

    /// Its name in options and files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Isotonic => "isotonic",
            Self::Platt => "platt",
        }
    }
}

/// A strictly increasing function from scores to probabilities.
#[derive(Clone, Debug, PartialEq)]
pub enum Curve {
    /// Linear interpolation between points.
    Isotonic(Points),
    /// A logistic function of scores on a scale.
    Platt {
        /// The scale of the scores.
        scale: FeatureScale,
        /// What they are multiplied by; at least 0.
        slope: f64,
        /// What is added.
        bias: f64,
    },
}

/// Scores and their probabilities, both strictly ascending; probabilities are above 0 and below 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Points {
    scores: Vec<f32>,
    probabilities: Vec<f32>,
}

impl Points {
    /// Checks the invariants of the type, and that there is at least one point. The error says what
    /// is wrong.
    pub fn try_new(scores: Vec<f32>, probabilities: Vec<f32>) -> Result<Self, &'static str> {
        let rises = |values: &[f32]| values.is_sorted_by(|a, b| a < b);
        if scores.is_empty() || scores.len() != probabilities.len() {
            return Err("as many scores as probabilities are expected, and at least one");
        }
        if scores.iter().any(|score| !score.is_finite()) || !rises(&scores) {
            return Err("scores are finite and rise strictly");
        }
        if probabilities.iter().any(|p| !(*p > 0.0 && *p < 1.0)) || !rises(&probabilities) {
            return Err("probabilities lie between 0 and 1 and rise strictly");
        }
        Ok(Self { scores, probabilities })
    }

    /// The scores.
    pub fn scores(&self) -> &[f32] {
        &self.scores
    }

    /// Their probabilities.
    pub fn probabilities(&self) -> &[f32] {
        &self.probabilities
    }

    fn at(&self, score: f32) -> f64 {
        let (scores, probabilities) = (&self.scores, &self.probabilities);
        let point = |at: usize| (f64::from(scores[at]), f64::from(probabilities[at]));
        let score = f64::from(score);
        let ((first, lowest), (last, highest)) = (point(0), point(scores.len() - 1));
        // Beyond the points the curve approaches 0 and 1 without reaching them.
        let width = match last - first {
            0.0 if last == 0.0 => 1.0,
            0.0 => last.abs(),
            width => width,
        };
        if score <= first {
            return lowest / (1.0 + (first - score) / width);
        }
        if score >= last {
            // Below 2e-16 the last probability is lost in 1 less itself.
            return (1.0 - (1.0 - highest) / (1.0 + (score - last) / width)).max(highest);
        }
        let next = scores.partition_point(|&s| f64::from(s) <= score);
        let ((a, p), (b, q)) = (point(next - 1), point(next));
        p + (q - p) * ((score - a) / (b - a))
    }
}

impl Curve {
    /// The curve that fits best. `pairs` are sorted by score, largest first.
    pub fn fit(pairs: &[Pair], method: Method) -> Self {
        match method {
            Method::Isotonic => Self::Isotonic(points(&isotonic::pool(pairs))),
            Method::Platt => {
                let scale = FeatureScale::of(pairs.iter().map(|pair| pair.score));
                let (slope, bias) = platt::fit(pairs.iter().map(|p| (f64::from(scale.apply(p.score)), p.is_true)));
                Self::Platt { scale, slope, bias }
            }
        }
    }

    /// How it was fitted.
    pub fn method(&self) -> Method {
        match self {
            Self::Isotonic(_) => Method::Isotonic,
            Self::Platt { .. } => Method::Platt,
        }
    }

    /// The probability of one score, between 0 and 1; NaN for NaN.
    pub fn probability(&self, score: f32) -> f32 {
        if score.is_nan() {
            return score;
        }
        let score = score.clamp(f32::MIN, f32::MAX);
        match self {
            Self::Isotonic(points) => points.at(score) as f32,
            Self::Platt { scale, slope, bias } => logistic(slope * f64::from(scale.apply(score)) + bias) as f32,
        }
    }

    /// Replaces the scores of a ranked list by probabilities. A score below the previous one gets a
    /// smaller probability, if necessary smaller by the least possible difference.
    pub(super) fn apply_list(&self, list: &mut [Scored]) {
        let mut before = None;
        for s in list {
            let score = s.score;
            s.score = below(self.probability(score).clamp(LEAST, 1.0), score, before);
            before = Some((s.score, score));
        }
    }
}

/// Minimum of the curve's probabilities in lists: leaves room for smaller ones above 0.
const LEAST: f32 = 1e-30;

/// One point in the middle of each block. An outermost share of 0 or 1 is moved inwards as if there
/// had been half an observation more.
fn points(blocks: &[isotonic::IsotonicBlock]) -> Points {
    let n = blocks.len();
    if n == 0 {
        return Points { scores: vec![0.0], probabilities: vec![0.5] };
    }
    let score = |block: &isotonic::IsotonicBlock| block.score.clamp(f64::from(f32::MIN), f64::from(f32::MAX)) as f32;
    let mut shares: Vec<f64> = blocks.iter().map(isotonic::IsotonicBlock::share).collect();
    if shares[0] == 0.0 {
        let least = 0.5 / (blocks[0].n as f64 + 1.0);
        shares[0] = shares.get(1).map_or(least, |next| least.min(next / 2.0));
    }
    if shares[n - 1] == 1.0 {
        let most = 1.0 - 0.5 / (blocks[n - 1].n as f64 + 1.0);
        shares[n - 1] = if n > 1 { most.max((1.0 + shares[n - 2]) / 2.0) } else { most };
    }
    // Shares that are equal in f32 become one point.
    let (mut scores, mut probabilities) = (Vec::with_capacity(n), Vec::<f32>::with_capacity(n));
    for (block, share) in blocks.iter().zip(shares) {
        let (at, p) = (score(block), (share as f32).clamp(f32::MIN_POSITIVE, 1.0f32.next_down()));
        if scores.last().is_none_or(|&last| at > last) && probabilities.last().is_none_or(|&last| p > last) {
            scores.push(at);
            probabilities.push(p);
        }
    }
    Points { scores, probabilities }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_of_tiny_probabilities_does_not_fall_at_its_last_point() {
        let curve = Curve::Isotonic(Points::try_new(vec![0.1, 0.2], vec![1e-30, 1e-20]).unwrap());
        let p = [0.0, 0.1, 0.15, 0.2, 0.3].map(|score| curve.probability(score));
        assert!(p.is_sorted() && p[1] == 1e-30 && p[3] == 1e-20, "{p:?}");
    }

    #[test]
    fn a_curve_of_one_point_rises_to_both_sides_even_at_score_0() {
        for at in [0.0, -2.0, 0.5] {
            let curve = Curve::Isotonic(Points::try_new(vec![at], vec![0.4]).unwrap());
            let w = if at == 0.0 { 1.0 } else { at.abs() };
            let p = [at - w, at, at + w].map(|score| curve.probability(score));
            let expected = [0.2, 0.4, 0.7];
            assert!(p.iter().zip(expected).all(|(p, expected)| (p - expected).abs() < 1e-6), "{at}: {p:?}");
        }
    }
}
