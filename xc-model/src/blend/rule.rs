//! Computes a logit from a candidate's features.

use super::{Features, boosted, candidates};
use crate::blend::features::FeatureScratch;
use crate::classifier::{Classifier, ClassifierParams, DENSE, Logits, OpenClassifierError};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;
use xc_boost::BoostedTrees;
use xc_buffer::parallel::in_pool;
use xc_dense::DenseRows;
use xc_nn::{Loss, Rows};
use xc_sparse::rank::{LabelId, Scored, rank_order};
use xc_store::{Container, ContainerWriter, OpenError, WriteError};

/// How candidates are ranked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RuleKind {
    /// By the sum of `1 / rank` over the members; only the map from sums to logits is fitted.
    ReciprocalRanks,
    /// By a linear function of the features.
    Logistic,
    /// By networks with one layer of hidden units; their logits are averaged.
    Net,
    /// By trees of decisions, each fitted to what those before it leave; their leaves are added.
    Boosted,
}

impl RuleKind {
    /// Every kind, in ascending order of the number of fitted parameters.
    pub const ALL: [Self; 4] = [Self::ReciprocalRanks, Self::Logistic, Self::Net, Self::Boosted];

    /// Its name in options and files.
    pub fn name(self) -> &'static str {
        match self {
            Self::ReciprocalRanks => "reciprocal-ranks",
            Self::Logistic => "logistic",
            Self::Net => "net",
            Self::Boosted => "boosted",
        }
    }
}

impl fmt::Display for RuleKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for RuleKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|kind| kind.name() == text);
        found.ok_or_else(|| format!("got {text:?}, expected {}", Self::ALL.map(Self::name).join(", ")))
    }
}

/// Ranks candidates by the logit of the probability that a candidate is true.
#[derive(Clone, Debug)]
pub enum Rule {
    /// By summed reciprocal ranks `s`: the logit is `slope * s + bias`, with a slope above 0.
    ReciprocalRanks {
        /// What the sum is multiplied by.
        slope: f32,
        /// What is added.
        bias: f32,
    },
    /// By the mean logit of classifiers with one label, whose instances are the features of
    /// candidates.
    Network(Vec<Classifier>),
    /// By the sum of leaves of trees.
    Boosted(BoostedTrees),
}

/// Why the rule of a folder cannot be opened.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenRuleError {
    /// The container itself.
    #[error(transparent)]
    Container(#[from] OpenError),
    /// A network.
    #[error(transparent)]
    Classifier(#[from] OpenClassifierError),
    /// Parameters that cannot rank candidates.
    #[error("{path}: a rule {what}")]
    Rule {
        /// The folder.
        path: String,
        /// What is wrong with it.
        what: &'static str,
    },
}

const CALIBRATION: &str = "rule.calibration";
const NETWORKS: &str = "rule";

/// Buffers of ranking; they grow as needed and are reused.
#[derive(Default)]
pub struct RuleScratch {
    features: FeatureScratch,
    labels: Vec<LabelId>,
    /// Where the candidates of each query end.
    ends: Vec<usize>,
    values: Vec<f32>,
    logits: Vec<f32>,
    network: Logits,
    sums: Vec<Scored>,
    ranked: Vec<Scored>,
}

impl Rule {
    /// Ranks the candidates of some queries: `queries` gives each member's answer to each of them.
    /// `out` is called with the ranked list of each; scores are probabilities.
    ///
    /// *Determinism*: the same bits for a query alone and among others, at any number of threads.
    ///
    /// # Panics
    /// If the features are not those that the rule was fitted to.
    pub fn rank<'q>(
        &self,
        features: &Features,
        queries: impl Iterator<Item = &'q [&'q [Scored]]>,
        scratch: &mut RuleScratch,
        mut out: impl FnMut(&[Scored]),
    ) {
        let RuleScratch { features: places, labels, ends, values, logits, network, sums, ranked } = scratch;
        labels.clear();
        values.clear();
        ends.clear();
        logits.clear();
        for lists in queries {
            match self {
                Self::ReciprocalRanks { slope, bias } => {
                    candidates(lists, super::DEPTH, sums);
                    labels.extend(sums.iter().map(|s| s.label));
                    logits.extend(sums.iter().map(|s| slope * s.score + bias));
                }
                Self::Network(_) | Self::Boosted(_) => features.fill(lists, places, labels, values),
            }
            ends.push(labels.len());
        }
        match self {
            Self::ReciprocalRanks { .. } => {}
            Self::Network(networks) => mean_logits(networks, DenseRows::new(values, features.n()), network, logits),
            Self::Boosted(trees) => trees.logits(DenseRows::new(values, features.n()), logits),
        }
        let mut start = 0;
        for &end in &*ends {
            ranked.clear();
            let scored = labels[start..end].iter().zip(&logits[start..end]);
            ranked.extend(scored.map(|(&label, &score)| Scored { label, score }));
            ranked.sort_unstable_by(|&a, &b| rank_order(a, b));
            let mut before = None;
            for s in &mut *ranked {
                let (logit, mut one) = (s.score, [s.score]);
                Loss::Bce.scores(&mut one);
                s.score = below(one[0], logit, before);
                before = Some((s.score, logit));
            }
            out(ranked);
            start = end;
        }
    }

    /// Adds the rule to a container.
    ///
    /// # Errors
    /// See [`WriteError`].
    pub fn write(&self, writer: &mut ContainerWriter) -> Result<(), WriteError> {
        match self {
            Self::ReciprocalRanks { slope, bias } => writer.add_slice(CALIBRATION, &[*slope, *bias]),
            Self::Boosted(trees) => boosted::write(trees, writer),
            Self::Network(networks) => {
                let params: Vec<_> = networks.iter().map(|network| network.params().to_value()).collect();
                writer.set_parameter("classifiers", params);
                (0..).zip(networks).try_for_each(|(i, network)| network.write_arrays(&prefix(i), writer))
            }
        }
    }

    /// Opens the rule of a container, for candidates with `n` features.
    ///
    /// # Errors
    /// See [`OpenRuleError`].
    pub fn of(container: &Container, n: usize, check: bool) -> Result<Self, OpenRuleError> {
        let wrong = |what| OpenRuleError::Rule { path: container.folder().display().to_string(), what };
        if container.entry(CALIBRATION).is_some() {
            let numbers = container.array_shaped::<f32>(CALIBRATION, &[2])?;
            let [slope, bias] = [numbers[0], numbers[1]];
            if !(slope > 0.0 && slope.is_finite() && bias.is_finite()) {
                return Err(wrong("whose slope is not above 0"));
            }
            return Ok(Self::ReciprocalRanks { slope, bias });
        }
        if let Some(trees) = boosted::of(container, n)? {
            return trees.map(Self::Boosted).map_err(wrong);
        }
        let params: Vec<ClassifierParams> = container.parameter("classifiers")?;
        if params.is_empty() {
            return Err(wrong("without a network"));
        }
        let open = |(i, params): (usize, ClassifierParams)| {
            if params.encoder.input() != crate::classifier::InputKind::Dense || params.loss != Loss::Bce {
                return Err(wrong("that takes no numbers of candidates"));
            }
            Ok(Classifier::open_arrays(container, &prefix(i), DENSE, params, n, 1, check)?)
        };
        Ok(Self::Network((0..).zip(params).map(open).collect::<Result<_, _>>()?))
    }

    /// The kind of the rule.
    pub fn kind(&self) -> RuleKind {
        match self {
            Self::ReciprocalRanks { .. } => RuleKind::ReciprocalRanks,
            Self::Network(networks) if networks.iter().all(|n| n.params().encoder.widths().is_empty()) => {
                RuleKind::Logistic
            }
            Self::Network(_) => RuleKind::Net,
            Self::Boosted(_) => RuleKind::Boosted,
        }
    }
}

/// `score`, lowered if necessary so that scores are ordered as the values that they were computed
/// from. `of` is the value of this score; `before` has the previous score of the ranked list and
/// its value. Equal values get equal scores.
pub(crate) fn below(score: f32, of: f32, before: Option<(f32, f32)>) -> f32 {
    match before {
        Some((least, larger)) if of < larger => score.min(least.next_down()),
        Some((same, equal)) if of == equal => same,
        // The first label, or NaN, for which the answer is refused.
        _ => score,
    }
}

fn prefix(number: usize) -> String {
    format!("{NETWORKS}{number}.")
}

/// Number of candidates that go through a network together.
const TOGETHER: usize = 4096;

/// The mean of the networks' logits for each row.
pub(super) fn mean_logits(networks: &[Classifier], rows: DenseRows<'_>, scratch: &mut Logits, out: &mut Vec<f32>) {
    out.clear();
    out.resize(rows.len(), 0.0);
    // Several rows are shared by the threads of a pool; without one, a pool would be created.
    let together = if in_pool() { TOGETHER } else { 1 };
    for start in (0..rows.len()).step_by(together) {
        let range = start..rows.len().min(start + together);
        scratch.fill(Rows::Dense(rows), range.clone());
        for network in networks {
            let logits = scratch.of(network);
            out[range.clone()].iter_mut().zip(logits).for_each(|(sum, logit)| *sum += *logit);
        }
    }
    let n = networks.len() as f32;
    out.iter_mut().for_each(|logit| *logit /= n);
}
