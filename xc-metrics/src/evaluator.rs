//! The pass over truth and predictions.

use super::{
    contributions::{Contributions, ratio},
    filter::PairFilter,
    instance::{Layout, Source},
    labels::LabelCounts,
    per_label::{Confusions, LabelFigures},
    propensity::Propensity,
    report::{Counts, MetricReport, MetricValue},
};
use rayon::prelude::*;
use std::{collections::BTreeSet, sync::Arc};
use thiserror::Error;
use xc_hash::stream::mix64;
use xc_sparse::{
    rank::{RankedBatch, Scored},
    rows::LabelRowsView,
};

/// Whether the evaluator keeps what each instance added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeepRows {
    /// Sums only: memory does not grow with the instances.
    #[default]
    No,
    /// Intervals and comparisons need the instances: about 60 bytes each for every k, 90 with
    /// propensities.
    Yes,
}

/// What to compute, and what to leave out.
#[derive(Clone, Debug)]
pub struct EvaluatorParams {
    /// The cuts k of every `@k` metric, in any order. Default 1, 3, 5, as in the literature.
    pub ks: Vec<usize>,
    /// Number of labels that predictions may name.
    pub n_labels: usize,
    /// Enables `PSP@k` and `PSnDCG@k`, and the count of labels unseen in training.
    pub propensity: Option<Propensity>,
    /// Weight of each instance (excluded ones too), finite and not negative.
    pub weights: Option<Vec<f64>>,
    /// Pairs (instance, label) to ignore.
    pub filter: PairFilter,
    /// Instances to leave out, in any order.
    pub exclude: Vec<usize>,
    /// Adds precision, recall and F1 of the labels that score at least so much.
    pub threshold: Option<f32>,
    /// Whether intervals and comparisons will be asked for.
    pub keep_rows: KeepRows,
    /// Whether [`Evaluator::labels`] tells which labels are predicted in place of others. *Cost*: a number for each pair
    /// of labels that occurs.
    pub confusions: bool,
}

impl EvaluatorParams {
    /// The default: k = 1, 3, 5, no propensities, every instance with weight 1.
    pub fn new(n_labels: usize) -> Self {
        Self {
            ks: vec![1, 3, 5],
            n_labels,
            propensity: None,
            weights: None,
            filter: PairFilter::default(),
            exclude: Vec::new(),
            threshold: None,
            keep_rows: KeepRows::No,
            confusions: false,
        }
    }

    /// Checks everything that does not need the data.
    pub fn check(&self) -> Result<(), EvaluatorParamsError> {
        if self.ks.is_empty() {
            return Err(EvaluatorParamsError::NoK);
        }
        let mut seen = BTreeSet::new();
        for &k in &self.ks {
            if k == 0 {
                return Err(EvaluatorParamsError::ZeroK);
            }
            if !seen.insert(k) {
                return Err(EvaluatorParamsError::RepeatedK { k });
            }
        }
        if let Some(weights) = &self.weights
            && let Some(instance) = weights.iter().position(|w| !(w.is_finite() && *w >= 0.0))
        {
            return Err(EvaluatorParamsError::Weight { instance, weight: weights[instance] });
        }
        if self.threshold.is_some_and(f32::is_nan) {
            return Err(EvaluatorParamsError::Threshold);
        }
        Ok(())
    }
}

/// Why parameters are refused.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum EvaluatorParamsError {
    /// No k at all.
    #[error("at least one k is expected")]
    NoK,
    /// k = 0.
    #[error("k must be at least 1; got 0")]
    ZeroK,
    /// The same k twice.
    #[error("k = {k} is named twice")]
    RepeatedK {
        /// The k.
        k: usize,
    },
    /// A weight is no weight.
    #[error("the weight of instance {instance} must be finite and not negative; got {weight}")]
    Weight {
        /// The instance.
        instance: usize,
        /// The value.
        weight: f64,
    },
    /// The threshold is NaN.
    #[error("the threshold must be a number; got NaN")]
    Threshold,
}

/// Why instances cannot be evaluated. Instances count from 0.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum EvaluateError {
    /// The parameters are refused.
    #[error(transparent)]
    Params(#[from] EvaluatorParamsError),
    /// Truth and predictions do not belong together.
    #[error("the truth has {truth} instances, the predictions have {predictions}")]
    Instances {
        /// Instances of the truth.
        truth: usize,
        /// Instances of the predictions.
        predictions: usize,
    },
    /// A ranked list names a label twice.
    #[error("instance {instance}: label {label} is predicted twice")]
    RepeatedLabel {
        /// The instance.
        instance: usize,
        /// The label.
        label: u32,
    },
    /// A ranked list names a label that does not exist.
    #[error("instance {instance}: predicted label {label} is out of range; there are {n_labels} labels")]
    LabelOutOfRange {
        /// The instance.
        instance: usize,
        /// The label.
        label: u32,
        /// The number of labels.
        n_labels: usize,
    },
    /// A score is NaN.
    #[error("instance {instance}: the score at position {position} is not a number")]
    NotANumber {
        /// The instance.
        instance: usize,
        /// Position in the list, from 0.
        position: usize,
    },
    /// A list is not best first.
    #[error(
        "instance {instance}: the list is not best first; the score at position {position} is above the one before it"
    )]
    NotRanked {
        /// The instance.
        instance: usize,
        /// Position in the list, from 0.
        position: usize,
    },
    /// A list of true labels is not ascending and unique.
    #[error("instance {instance}: true labels are not ascending and unique at label {label}")]
    TruthOrder {
        /// The instance.
        instance: usize,
        /// The label.
        label: u32,
    },
    /// Weights and instances do not belong together.
    #[error("{weights} weights for {instances} instances")]
    Weights {
        /// Number of weights.
        weights: usize,
        /// Number of instances seen (so far).
        instances: usize,
    },
    /// An excluded instance does not exist.
    #[error("instance {instance} is to be excluded; there are only {instances}")]
    ExcludedOutOfRange {
        /// The instance named.
        instance: usize,
        /// The number of instances.
        instances: usize,
    },
    /// Nothing was evaluated.
    #[error("no instance to evaluate")]
    NoInstances,
    /// Every weight is zero.
    #[error("the weights of all {instances} instances are zero")]
    NoWeight {
        /// Number of instances evaluated.
        instances: u64,
    },
}

/// All metrics in one go: [`Evaluator::new`], [`Evaluator::add_batch`], [`Evaluator::finish`].
pub fn evaluate<'a>(
    truth: impl Into<LabelRowsView<'a>>,
    predictions: &RankedBatch,
    params: EvaluatorParams,
) -> Result<MetricReport, EvaluateError> {
    let mut evaluator = Evaluator::new(params)?;
    evaluator.add_batch(truth, predictions)?;
    evaluator.finish()
}

/// Running sums of every metric.
///
/// Instances are numbered in the order in which they are added, from 0; weights, filter and
/// excluded rows refer to these numbers. After an error the evaluator holds part of a batch and is
/// of no further use.
///
/// *Cost*: per instance O(list * log list + |T| log |T|); memory 8 * (1 + 2 * ks) bytes a label,
/// plus [`KeepRows`].
#[derive(Clone, Debug)]
pub struct Evaluator {
    params: Arc<EvaluatorParams>,
    layout: Layout,
    next: usize,
    sums: Vec<f64>,
    rows: Vec<f64>,
    labels: LabelCounts,
    confusions: Confusions,
    unknown: BTreeSet<u32>,
    counts: Counts,
    truth_digest: u64,
}

/// Scored instances in order, before they enter the sums.
#[derive(Default)]
struct Block {
    columns: Vec<f64>,
    truth: Lists<u32>,
    ranked: Lists<u32>,
    hits: Vec<bool>,     // beside `ranked`
    decided: Vec<usize>, // labels of each instance that reach the threshold
    counts: Counts,
    unknown: Vec<u32>,
    digest: u64,
    best: Vec<f64>,   // scratch
    sorted: Vec<u32>, // scratch
}

#[derive(Default)]
struct Lists<T> {
    ends: Vec<usize>,
    items: Vec<T>,
}

impl<T> Lists<T> {
    fn start(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    fn range(&self, i: usize) -> std::ops::Range<usize> {
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        start..self.ends[i]
    }
}

/// Instances scored by one task; only a matter of speed.
const BLOCK: usize = 256;
/// Blocks scored before their sums are taken: bounds memory.
const WINDOW: usize = 64;

impl Evaluator {
    /// An evaluator without instances.
    pub fn new(mut params: EvaluatorParams) -> Result<Self, EvaluatorParamsError> {
        params.check()?;
        params.ks.sort_unstable();
        params.exclude.sort_unstable();
        params.exclude.dedup();
        Ok(Self::with_params(Arc::new(params), 0))
    }

    fn with_params(params: Arc<EvaluatorParams>, first: usize) -> Self {
        let layout = Layout::new(params.ks.clone(), params.propensity.is_some(), params.threshold.is_some());
        Self {
            next: first,
            sums: vec![0.0; layout.width()],
            rows: Vec::new(),
            labels: LabelCounts::new(params.n_labels, layout.n_cuts()),
            confusions: Confusions::default(),
            unknown: BTreeSet::new(),
            counts: Counts::default(),
            truth_digest: 0,
            layout,
            params,
        }
    }

    /// An empty evaluator with the same parameters for the instances from `first` on, to be fed
    /// elsewhere and [merged](Self::merge).
    pub fn part(&self, first: usize) -> Self {
        Self::with_params(Arc::clone(&self.params), first)
    }

    /// Adds one instance: its true labels (ascending, unique) and its ranked list (best first).
    pub fn add(&mut self, truth: &[u32], predicted: &[Scored]) -> Result<(), EvaluateError> {
        let mut block = Block::default();
        self.score(self.next, truth, predicted, &mut block)?;
        self.absorb(&block);
        self.next += 1;
        Ok(())
    }

    /// Adds many instances, scored in parallel and summed in order: bit-equal to [`Self::add`] on
    /// each.
    pub fn add_batch<'a>(
        &mut self,
        truth: impl Into<LabelRowsView<'a>>,
        predictions: &RankedBatch,
    ) -> Result<(), EvaluateError> {
        let truth = truth.into();
        if truth.len() != predictions.len() {
            return Err(EvaluateError::Instances { truth: truth.len(), predictions: predictions.len() });
        }
        let n_blocks = truth.len().div_ceil(BLOCK);
        for window in (0..n_blocks).step_by(WINDOW) {
            let blocks: Vec<Result<Block, EvaluateError>> = (window..(window + WINDOW).min(n_blocks))
                .into_par_iter()
                .map(|b| {
                    let mut block = Block::default();
                    for i in b * BLOCK..((b + 1) * BLOCK).min(truth.len()) {
                        self.score(self.next + i, truth.row(i), predictions.row(i), &mut block)?;
                    }
                    Ok(block)
                })
                .collect();
            for block in blocks {
                self.absorb(&block?);
            }
        }
        self.next += truth.len();
        Ok(())
    }

    /// Adds what a [part](Self::part) has seen. Parts are merged in the order of their instances.
    ///
    /// *Determinism*: equal for equal parts; other cuts into parts may differ in the last bits.
    ///
    /// # Panics
    /// If `part` does not come from this evaluator's `part`, or begins before the instances already
    /// here.
    pub fn merge(&mut self, part: &Evaluator) {
        assert!(Arc::ptr_eq(&self.params, &part.params), "parts of different evaluators");
        assert!(part.next >= self.next, "a part ending at instance {} after instance {}", part.next, self.next);
        self.next = part.next;
        self.sums.iter_mut().zip(&part.sums).for_each(|(a, b)| *a += b);
        self.rows.extend_from_slice(&part.rows);
        self.labels.merge(&part.labels);
        self.confusions.merge(&part.confusions);
        self.unknown.extend(&part.unknown);
        self.counts.add(&part.counts);
        self.truth_digest = self.truth_digest.wrapping_add(part.truth_digest);
    }

    /// Scores one instance into `block`.
    fn score(
        &self,
        instance: usize,
        truth: &[u32],
        predicted: &[Scored],
        block: &mut Block,
    ) -> Result<(), EvaluateError> {
        let params = &*self.params;
        self.check_instance(instance, truth, predicted, &mut block.sorted)?;
        if params.exclude.binary_search(&instance).is_ok() {
            block.counts.excluded += 1;
            return Ok(());
        }
        let weight = match &params.weights {
            None => 1.0,
            Some(weights) => *weights
                .get(instance)
                .ok_or(EvaluateError::Weights { weights: weights.len(), instances: instance + 1 })?,
        };
        let ignored = params.filter.row(instance);
        let kept = |label: &u32| ignored.binary_search(label).is_err();
        let (truth_start, ranked_start) = (block.truth.start(), block.ranked.start());
        block.truth.items.extend(truth.iter().copied().filter(kept));
        block.ranked.items.extend(predicted.iter().map(|s| s.label).filter(kept));
        let (truth_len, ranked_len) = (block.truth.items.len(), block.ranked.items.len());
        block.truth.ends.push(truth_len);
        block.ranked.ends.push(ranked_len);
        let (kept_truth, kept_ranked) = (&block.truth.items[truth_start..], &block.ranked.items[ranked_start..]);
        let least = params.threshold.unwrap_or(f32::NEG_INFINITY);
        let n_decided = predicted.iter().take_while(|s| s.score >= least).filter(|s| kept(&s.label)).count();
        block.decided.push(n_decided);
        block.hits.extend(kept_ranked.iter().map(|label| kept_truth.binary_search(label).is_ok()));

        let counts = &mut block.counts;
        counts.instances += 1;
        counts.without_labels += u64::from(kept_truth.is_empty());
        counts.without_predictions += u64::from(kept_ranked.is_empty());
        counts.filtered_truth += (truth.len() - kept_truth.len()) as u64;
        counts.filtered_predictions += (predicted.len() - kept_ranked.len()) as u64;
        for &label in kept_truth {
            let seen = params.propensity.as_ref().is_none_or(|p| p.is_seen(label));
            if label as usize >= params.n_labels || !seen {
                counts.unknown_pairs += 1;
                block.unknown.push(label);
            }
        }
        block.digest = block.digest.wrapping_add(digest(instance, weight, kept_truth));

        let from = block.columns.len();
        block.columns.resize(from + self.layout.width(), 0.0);
        self.layout.fill(
            kept_truth,
            kept_ranked,
            n_decided,
            &block.hits[ranked_start..],
            weight,
            params.propensity.as_ref(),
            &mut block.best,
            &mut block.columns[from..],
        );
        Ok(())
    }

    fn check_instance(
        &self,
        instance: usize,
        truth: &[u32],
        predicted: &[Scored],
        sorted: &mut Vec<u32>,
    ) -> Result<(), EvaluateError> {
        if let Some(w) = truth.windows(2).find(|w| w[0] >= w[1]) {
            return Err(EvaluateError::TruthOrder { instance, label: w[1] });
        }
        if let Some(position) = predicted.iter().position(|s| s.score.is_nan()) {
            return Err(EvaluateError::NotANumber { instance, position });
        }
        if let Some(at) = predicted.windows(2).position(|w| w[0].score < w[1].score) {
            return Err(EvaluateError::NotRanked { instance, position: at + 1 });
        }
        sorted.clear();
        sorted.extend(predicted.iter().map(|s| s.label));
        sorted.sort_unstable();
        if let Some(w) = sorted.windows(2).find(|w| w[0] == w[1]) {
            return Err(EvaluateError::RepeatedLabel { instance, label: w[0] });
        }
        let n_labels = self.params.n_labels;
        match sorted.last() {
            Some(&label) if label as usize >= n_labels => {
                Err(EvaluateError::LabelOutOfRange { instance, label, n_labels })
            }
            _ => Ok(()),
        }
    }

    /// Adds scored instances to the sums, one after the other.
    fn absorb(&mut self, block: &Block) {
        for (i, row) in block.columns.chunks_exact(self.layout.width()).enumerate() {
            self.sums.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
            let ranked = block.ranked.range(i);
            let decided = self.params.threshold.map(|_| block.decided[i]);
            let truth = &block.truth.items[block.truth.range(i)];
            if self.params.confusions {
                let cut = decided.unwrap_or(self.layout.ks[0]).min(ranked.len());
                let cut = ranked.start..ranked.start + cut;
                self.confusions.add(truth, &block.ranked.items[cut.clone()], &block.hits[cut], row[0]);
            }
            self.labels.add(
                self.layout.ks.iter().copied().chain(decided),
                truth,
                &block.ranked.items[ranked.clone()],
                &block.hits[ranked],
                row[0],
            );
        }
        if self.params.keep_rows == KeepRows::Yes {
            self.rows.extend_from_slice(&block.columns);
        }
        self.unknown.extend(&block.unknown);
        self.counts.add(&block.counts);
        self.truth_digest = self.truth_digest.wrapping_add(block.digest);
    }

    /// What each label that is true or predicted shows of the instances so far, ascending.
    pub fn labels(&self) -> Vec<LabelFigures> {
        let most = self.confusions.most();
        let mut all = self.labels.figures(self.layout.ks.len(), self.params.threshold.is_some());
        all.iter_mut().for_each(|figures| figures.confused = most.get(&figures.label).copied());
        all
    }

    /// Divides the sums.
    ///
    /// # Errors
    /// No instance, no weight, or weights and excluded rows that do not fit the instances seen. A
    /// metric whose denominator is 0 (no true label anywhere) is 0.
    pub fn finish(self) -> Result<MetricReport, EvaluateError> {
        if let Some(weights) = &self.params.weights
            && weights.len() != self.next
        {
            return Err(EvaluateError::Weights { weights: weights.len(), instances: self.next });
        }
        if let Some(&instance) = self.params.exclude.last()
            && instance >= self.next
        {
            return Err(EvaluateError::ExcludedOutOfRange { instance, instances: self.next });
        }
        if self.counts.instances == 0 {
            return Err(EvaluateError::NoInstances);
        }
        if self.sums[0] <= 0.0 {
            return Err(EvaluateError::NoWeight { instances: self.counts.instances });
        }
        let n_ks = self.layout.ks.len();
        let (label_table, n_present) = self.labels.table(n_ks, self.params.threshold.is_some());
        let label_width = self.layout.label_width();
        let mut label_sums = vec![0.0; label_width];
        for row in label_table.chunks_exact(label_width) {
            label_sums.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
        }
        let sources = self.layout.metrics();
        let values = sources
            .iter()
            .map(|&(metric, source)| {
                let value = match source {
                    Source::Instances { numerator, denominator } => ratio(self.sums[numerator], self.sums[denominator]),
                    Source::Labels { column } => ratio(label_sums[column], n_present as f64),
                };
                MetricValue { metric, value, interval: None }
            })
            .collect();
        let counts = Counts {
            unknown_labels: self.unknown.len() as u64,
            labels_in_truth: n_present as u64,
            labels: self.params.n_labels as u64,
            ..self.counts
        };
        let contributions = (self.params.keep_rows == KeepRows::Yes).then(|| Contributions {
            sources: sources.into_iter().map(|(_, source)| source).collect(),
            instances: self.rows,
            instance_width: self.layout.width(),
            labels: label_table,
            label_width,
            truth_digest: self.truth_digest,
        });
        Ok(MetricReport::new(values, counts, contributions, self.params.threshold))
    }
}

/// A number that tells whether two evaluations saw the same truth. Sums of it do not depend on the
/// order.
fn digest(instance: usize, weight: f64, truth: &[u32]) -> u64 {
    let mut state = mix64(instance as u64 ^ weight.to_bits().rotate_left(17));
    for &label in truth {
        state = mix64(state ^ u64::from(label));
    }
    state
}
