//! What one instance adds to each metric.

use super::{
    metric::{Average, Decision, Metric},
    propensity::Propensity,
};

/// Where a metric's value comes from: a ratio of two sums, over instances or over labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// Sum of one instance column over the sum of another.
    Instances { numerator: usize, denominator: usize },
    /// Mean of one label column over the labels of the truth.
    Labels { column: usize },
}

/// The columns of the instance table, and how metrics are read off them.
///
/// ```text
///   column  0       1 ...                                     then for each k                    last
///           weight  (for each k) P nDCG recall AP 2tp true+pred   PSP: gain best  PSnDCG: gain best   MAP  MRR
///   before MAP, with a threshold: tp pred true 2tp true+pred P recall F1
/// ```
/// Every column is already multiplied by the instance's weight.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) ks: Vec<usize>,
    propensity: bool,
    threshold: bool,
}

const PLAIN: usize = 6;
const SCORED: usize = 4;
const DECIDED: usize = 8;
const WEIGHT: usize = 0;

impl Layout {
    /// `ks` ascending and unique.
    pub(super) fn new(ks: Vec<usize>, propensity: bool, threshold: bool) -> Self {
        Self { ks, propensity, threshold }
    }

    /// Cuts of each list that labels are counted at: every k, and the threshold.
    pub(super) fn n_cuts(&self) -> usize {
        self.ks.len() + usize::from(self.threshold)
    }

    /// First column of the threshold.
    fn decided(&self) -> usize {
        1 + self.per_k() * self.ks.len()
    }

    fn per_k(&self) -> usize {
        if self.propensity { PLAIN + SCORED } else { PLAIN }
    }

    /// Number of instance columns.
    pub(super) fn width(&self) -> usize {
        self.decided() + if self.threshold { DECIDED } else { 0 } + 2
    }

    /// Number of label columns: covered and F1 for each k; precision, recall and F1 at the
    /// threshold.
    pub(super) fn label_width(&self) -> usize {
        2 * self.ks.len() + if self.threshold { 3 } else { 0 }
    }

    /// Every metric in the order of reports, and its source.
    pub(super) fn metrics(&self) -> Vec<(Metric, Source)> {
        let first = |at: usize| 1 + at * self.per_k();
        let mean = |numerator| Source::Instances { numerator, denominator: WEIGHT };
        let ratio = |numerator| Source::Instances { numerator, denominator: numerator + 1 };
        let mut out = Vec::new();
        let mut family = |make: fn(usize) -> Metric, source: &dyn Fn(usize) -> Source| {
            out.extend(self.ks.iter().enumerate().map(|(at, &k)| (make(k), source(at))));
        };
        family(Metric::Precision, &|at| mean(first(at)));
        family(Metric::Ndcg, &|at| mean(first(at) + 1));
        if self.propensity {
            family(Metric::Psp, &|at| ratio(first(at) + PLAIN));
            family(Metric::Psndcg, &|at| ratio(first(at) + PLAIN + 2));
        }
        family(Metric::Recall, &|at| mean(first(at) + 2));
        family(Metric::MeanAveragePrecisionAt, &|at| mean(first(at) + 3));
        family(Metric::MicroF1, &|at| ratio(first(at) + 4));
        family(Metric::MacroF1, &|at| Source::Labels { column: 2 * at + 1 });
        family(Metric::Coverage, &|at| Source::Labels { column: 2 * at });
        out.push((Metric::MeanAveragePrecision, mean(self.width() - 2)));
        out.push((Metric::MeanReciprocalRank, mean(self.width() - 1)));
        if self.threshold {
            let (first, label) = (self.decided(), 2 * self.ks.len());
            let of = |numerator, denominator| Source::Instances { numerator, denominator };
            let micro = [of(first, first + 1), of(first, first + 2), of(first + 3, first + 4)];
            let macro_ = [0, 1, 2].map(|at| Source::Labels { column: label + at });
            let instance = [5, 6, 7].map(|at| mean(first + at));
            for (average, sources) in Average::ALL.into_iter().zip([micro, macro_, instance]) {
                out.extend(
                    Decision::ALL.map(|decision| Metric::AtThreshold(average, decision)).into_iter().zip(sources),
                );
            }
        }
        out
    }

    /// Writes the columns of one instance.
    ///
    /// *Shapes*: `truth` ascending and unique; `ranked` the labels in rank order, of which the first
    /// `n_decided` reach the threshold; `hits` as long as `ranked`; `best` scratch; `out` has
    /// `width()` columns.
    pub(super) fn fill(
        &self,
        truth: &[u32],
        ranked: &[u32],
        n_decided: usize,
        hits: &[bool],
        weight: f64,
        propensity: Option<&Propensity>,
        best: &mut Vec<f64>,
        out: &mut [f64],
    ) {
        debug_assert_eq!(out.len(), self.width());
        out.fill(0.0);
        out[WEIGHT] = weight;
        if self.threshold {
            self.decide(truth.len(), &hits[..n_decided], weight, out);
        }
        best.clear();
        if let Some(p) = propensity {
            best.extend(truth.iter().map(|&label| p.inverse(label)));
            best.sort_unstable_by(|a, b| b.total_cmp(a));
        }
        let (mut tp, mut dcg, mut ap, mut gain, mut gain_dcg) = (0usize, 0.0, 0.0, 0.0, 0.0);
        let (mut ideal, mut best_gain, mut best_dcg) = (0.0, 0.0, 0.0);
        let mut first_hit = None;
        let mut rank = 0; // ranks passed so far
        for (at, &k) in self.ks.iter().enumerate() {
            while rank < k && (rank < ranked.len() || rank < truth.len()) {
                let discount = 1.0 / ((rank + 2) as f64).log2();
                if rank < ranked.len() && hits[rank] {
                    tp += 1;
                    dcg += discount;
                    ap += tp as f64 / (rank + 1) as f64;
                    first_hit = first_hit.or(Some(rank));
                    if let Some(p) = propensity {
                        let g = p.inverse(ranked[rank]);
                        gain += g;
                        gain_dcg += g * discount;
                    }
                }
                if rank < truth.len() {
                    ideal += discount;
                    if propensity.is_some() {
                        best_gain += best[rank];
                        best_dcg += best[rank] * discount;
                    }
                }
                rank += 1;
            }
            let cells = &mut out[1 + at * self.per_k()..][..self.per_k()];
            cells[4] = weight * 2.0 * tp as f64;
            cells[5] = weight * (truth.len() + k.min(ranked.len())) as f64;
            if truth.is_empty() {
                continue;
            }
            cells[0] = weight * tp as f64 / k as f64;
            cells[1] = weight * dcg / ideal;
            cells[2] = weight * tp as f64 / truth.len() as f64;
            cells[3] = weight * ap / k.min(truth.len()) as f64;
            if propensity.is_some() {
                cells[PLAIN] = weight * gain;
                cells[PLAIN + 1] = weight * best_gain;
                cells[PLAIN + 2] = weight * gain_dcg / ideal;
                cells[PLAIN + 3] = weight * best_dcg / ideal;
            }
        }
        for rank in rank..ranked.len() {
            if hits[rank] {
                tp += 1;
                ap += tp as f64 / (rank + 1) as f64;
                first_hit = first_hit.or(Some(rank));
            }
        }
        if !truth.is_empty() {
            let width = self.width();
            out[width - 2] = weight * ap / truth.len() as f64;
            out[width - 1] = first_hit.map_or(0.0, |rank| weight / (rank + 1) as f64);
        }
    }

    /// Writes the columns of the threshold: `hits` of the labels that reach it.
    fn decide(&self, n_true: usize, hits: &[bool], weight: f64, out: &mut [f64]) {
        let tp = hits.iter().filter(|&&hit| hit).count() as f64;
        let (predicted, n_true) = (hits.len() as f64, n_true as f64);
        let share = |of: f64| if of > 0.0 { tp / of } else { 0.0 };
        let f1 = 2.0 * share(n_true + predicted);
        let cells = [tp, predicted, n_true, 2.0 * tp, n_true + predicted, share(predicted), share(n_true), f1];
        out[self.decided()..][..DECIDED].iter_mut().zip(cells).for_each(|(cell, value)| *cell = weight * value);
    }
}
