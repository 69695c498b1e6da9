//! The wide term: beside the network a sparse linear ranker for each label, over the features of the instance.
//!
//! ```text
//!   network ──▶ its best labels, logits z     p = what the loss makes of z          ln p
//!                       │                                                             │ * weight
//!                       └─▶ rankers of these labels over the same features   w.x + b ─┴─▶ logit of the label
//! ```
//!
//! A network brings labels together by a few hundred directions, which cannot keep the word or two that tell a label of
//! a few rows from others; a ranker over the features can. It has seen no other labels than those that the network takes
//! for true, so it only orders the network's best ones (`bench/decisions/wide-term.md`).

use super::error::{ClassifierParamsError, number};
use serde::{Deserialize, Serialize};
use xc_buffer::dtype::DType;
use xc_nn::Loss;
use xc_nn::loss::Total;
#[cfg(any(feature = "convert", test))]
use xc_sparse::CsrMatrix;
use xc_sparse::SparseRow;
use xc_sparse::rank::{Scored, rank_order};
use xc_tree::{LogitScratch, RankerWeights};

/// How a wide term answers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WideParams {
    /// Weight of the logarithm of the network's probability.
    pub weight: f32,
    /// Labels of a query that are ranked again, the network's best. Those behind them keep their order.
    pub labels: usize,
    /// Type of the rankers' weights.
    pub precision: DType,
}

/// How a wide term is learned.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WideLearning {
    /// False labels of the largest logits that are kept of each instance in each step.
    pub negatives: usize,
    /// Weight of the errors of a ranker against its regularisation.
    pub cost: f32,
    /// Weights below this are dropped.
    pub threshold: f32,
    /// Weight of the network, as [`WideParams::weight`]; `None`: the best of [`WEIGHTS`] on instances that are held
    /// out, and [`usual_weight`] where none are.
    pub weight: Option<f32>,
    /// As [`WideParams::labels`].
    pub labels: usize,
    /// As [`WideParams::precision`].
    pub precision: DType,
}

/// Weight of the network where nothing tells which is best.
pub const USUAL_WEIGHT: f32 = 0.3;
/// The same of the margins of a squared hinge.
pub const USUAL_MARGIN_WEIGHT: f32 = 1.0;
/// Weights that are tried where instances are held out.
pub const WEIGHTS: [f32; 10] = [0.1, 0.15, 0.2, USUAL_WEIGHT, 0.4, 0.55, 0.75, USUAL_MARGIN_WEIGHT, 1.5, 2.2];

/// [`USUAL_WEIGHT`], and of a squared hinge, whose logits are margins as those of the rankers, [`USUAL_MARGIN_WEIGHT`].
pub fn usual_weight(loss: Loss) -> f32 {
    if loss == Loss::SquaredHinge { USUAL_MARGIN_WEIGHT } else { USUAL_WEIGHT }
}

/// Replaces logits of a network by what counts beside the rankers: the logarithms of probabilities. Of a squared hinge
/// it is the logits, since scores of all above 1 are alike.
pub(super) fn strength(loss: Loss, logits: &mut [f32], total: Total) {
    if loss != Loss::SquaredHinge {
        loss.log_scores(logits, total);
    }
}

impl Default for WideLearning {
    /// The values of `bench/decisions/wide-term.md`.
    fn default() -> Self {
        Self { negatives: 20, cost: 2.0, threshold: 0.1, weight: None, labels: 100, precision: DType::F32 }
    }
}

impl WideLearning {
    /// How the term that was learned so answers, beside a network of this loss.
    pub fn params(&self, loss: Loss) -> WideParams {
        let Self { weight, labels, precision, .. } = *self;
        WideParams { weight: weight.unwrap_or(usual_weight(loss)), labels, precision }
    }

    /// Says whether a term can be learned so.
    pub(super) fn check(&self) -> Result<(), ClassifierParamsError> {
        if self.negatives == 0 {
            return number("wide.negatives", 0.0, "at least 1");
        }
        if !(self.cost > 0.0 && self.cost.is_finite()) {
            return number("wide.cost", f64::from(self.cost), "a number above 0");
        }
        if !(self.threshold >= 0.0 && self.threshold.is_finite()) {
            return number("wide.threshold", f64::from(self.threshold), "0 or more");
        }
        self.params(Loss::Bce).check()
    }
}

impl WideParams {
    /// Says whether a term can answer so.
    pub(super) fn check(&self) -> Result<(), ClassifierParamsError> {
        if !(self.weight >= 0.0 && self.weight.is_finite()) {
            return number("wide.weight", f64::from(self.weight), "0 or more");
        }
        if self.labels == 0 {
            return number("wide.labels", 0.0, "at least 1");
        }
        if !matches!(self.precision, DType::F32 | DType::Bf16 | DType::F16) {
            return Err(ClassifierParamsError::Rankers { got: self.precision });
        }
        Ok(())
    }
}

/// What the logit of a label consists of, for a query: `network + bias`, and the parts.
#[derive(Clone, Debug, PartialEq)]
pub struct WideParts {
    /// The weighted logarithm of the network's probability.
    pub network: f32,
    /// The bias of the label's ranker.
    pub bias: f32,
    /// Features that query and ranker have in common, ascending, and weight times value of each.
    pub parts: Vec<(u32, f32)>,
}

impl WideParts {
    /// The logit.
    pub fn logit(&self) -> f32 {
        self.parts.iter().fold(0.0, |sum, (_, part)| sum + part) + self.bias + self.network
    }
}

/// The rankers of a classifier, and how they answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Wide {
    /// How it answers.
    pub params: WideParams,
    /// A ranker for each label.
    pub rankers: RankerWeights,
}

/// Buffers of answers.
#[derive(Clone, Debug, Default)]
pub struct WideScratch {
    labels: Vec<u32>,
    of_network: Vec<f32>,
    of_rankers: Vec<f32>,
    logits: LogitScratch,
}

impl Wide {
    /// The term with rankers of another type, without weights below `least`.
    #[cfg(feature = "convert")]
    pub(crate) fn changed(&self, least: f32, to: DType) -> Self {
        let rankers = &self.rankers;
        let (mut indptr, mut features, mut weights) = (vec![0], Vec::new(), Vec::new());
        for label in 0..rankers.n_labels() as u32 {
            for (feature, weight) in rankers.row(label).filter(|(_, weight)| weight.abs() >= least) {
                features.push(feature);
                weights.push(weight);
            }
            indptr.push(features.len());
        }
        let rows = CsrMatrix::from_checked((rankers.n_labels(), rankers.n_features()), indptr, features, weights);
        let params = WideParams { precision: to, ..self.params };
        Self { params, rankers: RankerWeights::nearest(rows, rankers.bias().to_vec(), to) }
    }

    /// Replaces the network's best labels and logits by the labels in the order of the whole, with its logits.
    ///
    /// `total`: of the logits that a softmax compares. A label of the network's best has one logit, whatever else is
    /// among `best`; those behind them are below, by what the network thinks of them.
    pub(super) fn rank(&self, query: SparseRow<'_>, of: (Loss, Total), best: &mut [Scored], scratch: &mut WideScratch) {
        self.judge(query, of, best, scratch);
        scratch.combine(self.params.weight, best);
    }

    /// What rankers and network say of the network's best labels, each for itself, is left in the scratch.
    pub fn judge(
        &self,
        query: SparseRow<'_>,
        (loss, total): (Loss, Total),
        best: &[Scored],
        scratch: &mut WideScratch,
    ) {
        let WideScratch { labels, of_network, of_rankers, logits } = scratch;
        of_network.clear();
        of_network.extend(best.iter().map(|s| s.score));
        strength(loss, of_network, total);
        labels.clear();
        labels.extend(best.iter().take(self.params.labels).map(|s| s.label));
        self.rankers.logits(query, labels, logits, of_rankers);
    }
}

impl WideScratch {
    /// Ranks the labels that were [judged](Wide::judge), with a weight of the network.
    pub fn combine(&self, weight: f32, best: &mut [Scored]) {
        let Self { of_network, of_rankers, .. } = self;
        for ((s, of_ranker), of_network) in best.iter_mut().zip(of_rankers).zip(of_network) {
            s.score = of_ranker + weight * of_network;
        }
        let (again, rest) = best.split_at_mut(of_rankers.len());
        again.sort_unstable_by(|&a, &b| rank_order(a, b));
        let Some(last) = again.last() else { return };
        let (of_again, of_rest) = of_network.split_at(of_rankers.len());
        let of_last = of_again.last().copied().unwrap_or(0.0);
        for (s, of_network) in rest.iter_mut().zip(of_rest) {
            s.score = (last.score + weight * (of_network - of_last)).min(last.score.next_down());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Rankers of labels over eight features; label 0 has no weight.
    fn rankers(weights: &[(u32, f32)], bias: &[f32]) -> RankerWeights {
        let n = bias.len();
        let mut rows: Vec<Vec<(u32, f32)>> = vec![Vec::new(); n];
        for (at, &(feature, weight)) in weights.iter().enumerate() {
            rows[at % n].push((feature % 8, weight));
        }
        rows[0].clear();
        let (mut indptr, mut features, mut values) = (vec![0], Vec::new(), Vec::new());
        for mut row in rows {
            row.sort_by_key(|(feature, _)| *feature);
            row.dedup_by_key(|(feature, _)| *feature);
            features.extend(row.iter().map(|(feature, _)| *feature));
            values.extend(row.iter().map(|(_, weight)| *weight));
            indptr.push(features.len());
        }
        RankerWeights::nearest(CsrMatrix::from_checked((n, 8), indptr, features, values), bias.to_vec(), DType::F32)
    }

    /// The logarithm of a probability in f64, by its definition; of a squared hinge the margin.
    fn log_p(loss: Loss, z: f64, all: &[f32]) -> f64 {
        match loss {
            Loss::Softmax => {
                let largest = all.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                let sum: f64 = all.iter().map(|&z| f64::from(z - largest).exp()).sum();
                z - f64::from(largest) - sum.ln()
            }
            Loss::Bce => -(-z).exp().ln_1p(),
            Loss::Nce => z.min(0.0),
            _ => z,
        }
    }

    proptest! {
        #[test]
        fn labels_are_ranked_by_both_and_those_behind_by_the_network(
            logits in prop::collection::vec(prop_oneof![-6.0f32..6.0, Just(1.5f32)], 0..24),
            weights in prop::collection::vec((0u32..8, -2.0f32..2.0), 0..60),
            query in prop::collection::btree_map(0u32..8, 0.1f32..1.0, 0..6),
            loss in prop::sample::select(vec![Loss::Bce, Loss::SquaredHinge, Loss::Softmax, Loss::Nce]),
            n in 1usize..30, weight in prop_oneof![Just(0.0f32), 0.1f32..1.5],
        ) {
            let bias: Vec<f32> = (0..logits.len().max(1)).map(|at| (at % 3) as f32 * 0.25 - 0.5).collect();
            let params = WideParams { weight, labels: n, precision: DType::F32 };
            let wide = Wide { params, rankers: rankers(&weights, &bias) };
            let (features, values): (Vec<u32>, Vec<f32>) = query.into_iter().unzip();
            let row = SparseRow::try_new(&features, &values).unwrap();
            let mut total = Total::EMPTY;
            total.add(loss, &logits);
            let mut best: Vec<Scored> = (0..).zip(&logits).map(|(label, &score)| Scored { label, score }).collect();
            best.sort_by(|&a, &b| rank_order(a, b));
            let network = best.clone();
            let mut scratch = WideScratch::default();
            wide.rank(row, (loss, total), &mut best, &mut scratch);

            let n = n.min(logits.len());
            let expected = |s: &Scored| {
                let of = |feature: u32| features.iter().position(|&f| f == feature).map_or(0.0, |at| values[at]);
                let sum: f64 = wide.rankers.row(s.label).map(|(f, w)| f64::from(w) * f64::from(of(f))).sum();
                sum + f64::from(bias[s.label as usize])
                    + f64::from(weight) * log_p(loss, f64::from(logits[s.label as usize]), &logits)
            };
            for s in &best[..n] {
                prop_assert!((f64::from(s.score) - expected(s)).abs() < 1e-4, "{s:?}, expected {}", expected(s));
            }
            let mut again: Vec<u32> = best[..n].iter().map(|s| s.label).collect();
            again.sort_unstable();
            let mut first: Vec<u32> = network[..n].iter().map(|s| s.label).collect();
            first.sort_unstable();
            prop_assert_eq!(again, first);
            prop_assert!(best[n..].iter().map(|s| s.label).eq(network[n..].iter().map(|s| s.label)));
            prop_assert!(best.windows(2).all(|w| w[0].score >= w[1].score));
            prop_assert!(n == 0 || best[n..].iter().all(|s| s.score < best[n - 1].score));
            // Fewer labels behind change nothing before them; nor do fewer labels among the best.
            if loss.is_separable() || n == logits.len() {
                let mut short = network[..n].to_vec();
                wide.rank(row, (loss, total), &mut short, &mut scratch);
                prop_assert_eq!(&short[..], &best[..n]);
            }
        }
    }

    #[test]
    fn what_cannot_be_learned_or_answered_is_refused() {
        let usual = WideLearning::default();
        assert!(
            usual.check().is_ok() && usual.params(Loss::Bce).weight == USUAL_WEIGHT && WEIGHTS.contains(&USUAL_WEIGHT)
        );
        for wrong in [
            WideLearning { negatives: 0, ..usual },
            WideLearning { cost: 0.0, ..usual },
            WideLearning { cost: f32::NAN, ..usual },
            WideLearning { threshold: -0.1, ..usual },
            WideLearning { weight: Some(-1.0), ..usual },
            WideLearning { labels: 0, ..usual },
            WideLearning { precision: DType::U32, ..usual },
        ] {
            assert!(wrong.check().is_err(), "{wrong:?}");
        }
    }

    #[cfg(feature = "convert")]
    #[test]
    fn a_term_is_pruned_and_rounded() {
        let wide = Wide {
            params: WideLearning::default().params(Loss::Bce),
            rankers: rankers(&[(0, 0.0), (1, 0.1), (2, 0.3), (3, 1.0), (4, -0.5), (5, 9.0e4)], &[0.0, 0.5]),
        };
        let pruned = wide.changed(0.3, DType::Bf16);
        let row: Vec<(u32, f32)> = pruned.rankers.row(1).collect();
        assert_eq!(row.iter().map(|(feature, _)| *feature).collect::<Vec<_>>(), [3, 5]);
        assert_eq!((pruned.params.precision, pruned.rankers.bias()), (DType::Bf16, &[0.0, 0.5][..]));
        // The largest number that there is.
        assert_eq!(wide.changed(0.3, DType::F16).rankers.row(1).last(), Some((5, 65_504.0)));
    }
}
