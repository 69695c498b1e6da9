//! The wide term of a network: collected while it trains, solved after its last epoch.

use super::learned_from::LearnedFrom;
use super::session::NetworkSession;
use crate::fit::FitError;
use crate::learn::{HARD_IN_MEMORY, WideFit, end_training, fit_wide};
use serde_json::{Value, json};
use std::time::Instant;
use xc_hash::stream::{Purpose, Stream, name};
use xc_model::classifier::{Classifier, WEIGHTS, Wide, WideLearning};
use xc_model::message::{chain, counted};
use xc_nn::HardLabels;
use xc_sparse::rows::sort_unique;
use xc_sparse::{CsrView, LabelRows};
use xc_store::to_parameter;
use xc_tree::rankers::{RankerRows, Rankers, solve};
use xc_tree::{LinearParams, RankerWeights, TrainError};

impl NetworkSession<'_> {
    /// A place for the false labels that steps score highest, where a wide term is to be learned.
    pub(super) fn hard_labels(&self) -> Result<Option<HardLabels>, FitError> {
        let Some(WideLearning { negatives, .. }) = self.network.classifier.learning.wide else { return Ok(None) };
        let (n, epochs) = (self.instances.targets().len(), self.network.training.epochs);
        let is_large = HardLabels::bytes(n, epochs, negatives) > HARD_IN_MEMORY;
        let folder = self.target.spill().filter(|_| is_large);
        let made = HardLabels::new(n, epochs, negatives, folder);
        made.map(Some).map_err(|e| FitError::failed(format_args!("wide term: {}", chain(&e))))
    }

    /// Learns the rankers, and how much the network counts beside them. Gives figures.
    pub(super) fn add_wide(
        &self,
        classifier: &mut Classifier,
        hard: HardLabels,
        from: &LearnedFrom,
    ) -> Result<Value, FitError> {
        let (Some(learning), Some(features)) =
            (self.network.classifier.learning.wide, self.instances.features().words())
        else {
            return Ok(Value::Null);
        };
        let began = Instant::now();
        // Its moments and the sampler's tables would stand beside the pairs.
        end_training(classifier);
        self.context.observer.released();
        let failed = |e: std::io::Error| FitError::failed(format_args!("wide term: {}", chain(&e)));
        let mistaken = hard.into_rows(self.shape.n_labels).map_err(failed)?;
        let (n_pairs, rankers) = self.solve(features, mistaken, &from.rows, &learning)?;
        let solve_s = began.elapsed().as_secs_f64();
        let weights = RankerWeights::nearest(rankers.weights, rankers.bias, learning.precision);
        let mut wide = Wide { params: learning.params(self.network.classifier.loss), rankers: weights };
        let n_weights = wide.rankers.features().len();
        // A weight that was given is measured as well: epochs were, by the network alone.
        let tried = learning.weight.as_ref().map_or(&WEIGHTS[..], std::slice::from_ref);
        let fitted = from.held_out.as_ref().map(|(queries, labels)| {
            let fit = fit_wide(classifier, &wide, tried, queries.view(), labels);
            fit.map_err(|e| FitError::failed(format_args!("validation: {}", chain(&e))))
        });
        let fitted = fitted.transpose()?;
        wide.params.weight = fitted.map_or(wide.params.weight, |fit| fit.weight);
        self.context.note(format_args!(
            "wide term: {n_weights} weights from {}, network times {}{}",
            counted(n_pairs, "pair"),
            wide.params.weight,
            fitted.map_or_else(String::new, |fit| said(&fit)),
        ));
        let figures = json!({
            "weights": n_weights, "pairs": n_pairs, "solve_s": solve_s, "weight": to_parameter(&wide.params.weight),
            "precision": fitted.map(|fit| json!({ "with": fit.with.at, "without": fit.without.at })),
        });
        classifier.set_wide(Some(wide));
        Ok(figures)
    }

    /// The rankers, and the number of pairs that they learned from.
    fn solve(
        &self,
        features: CsrView<'_>,
        mistaken: LabelRows,
        rows: &[u32],
        learning: &WideLearning,
    ) -> Result<(usize, Rankers), FitError> {
        let positives = of_rows(self.labels(), rows).transpose();
        let of_labels = mistaken.transpose();
        drop(mistaken);
        let negatives = with_least(&of_labels, &positives, rows, self.network.training.seed);
        drop(of_labels);
        let n_pairs = positives.nnz() + negatives.nnz();
        let usual = LinearParams::of_own_rows();
        let params = LinearParams { cost: learning.cost, prune_below: learning.threshold, ..usual };
        let watch = self.context.observer.of_trees();
        let rankers =
            solve(features, &RankerRows::new(&positives, &negatives), &params, self.network.training.seed, &*watch);
        rankers.map(|rankers| (n_pairs, rankers)).map_err(|e| match e {
            TrainError::Cancelled => FitError::interrupted(),
            e => FitError::usage(format_args!("{}: wide term: {}", self.source().display(), chain(&e))),
        })
    }
}

/// Rows that a label with instances is told from, at least. Labels that no step scored high for any instance have none
/// of their own, and a ranker without a row to be told from knows nothing: held-out P@1 of git-files is 0.15 lower.
const LEAST: usize = 5;

/// Gives labels with fewer rows to be told from some of those that are learned from, drawn at random.
fn with_least(negatives: &LabelRows, positives: &LabelRows, rows: &[u32], seed: u64) -> LabelRows {
    let n = u32::try_from(rows.len()).unwrap_or(u32::MAX);
    let (mut indptr, mut all) = (vec![0], Vec::with_capacity(negatives.nnz()));
    for (label, (own, positives)) in negatives.iter().zip(positives.iter()).enumerate() {
        let start = all.len();
        all.extend_from_slice(own);
        if own.len() < LEAST && !positives.is_empty() {
            let mut stream = Stream::new(name(seed, Purpose::Negatives, &[u64::MAX, label as u64]));
            all.extend((own.len()..LEAST).map(|_| rows[stream.below(n) as usize]));
            sort_unique(&mut all, start);
        }
        indptr.push(all.len());
    }
    LabelRows::try_new(indptr, all, negatives.n_labels()).unwrap_or_else(|e| panic!("rows of rows: {e}"))
}

/// The labels of some instances, and none of the others.
fn of_rows(labels: &LabelRows, rows: &[u32]) -> LabelRows {
    let mut lists = vec![&[][..]; labels.len()];
    rows.iter().for_each(|&row| lists[row as usize] = labels.row(row as usize));
    LabelRows::from_lists(lists, labels.n_labels()).unwrap_or_else(|e| panic!("label lists of label lists: {e}"))
}

fn said(fit: &WideFit) -> String {
    let [with, without] = [fit.with, fit.without].map(|of| of.at.map(|p| format!("{:.2}", 100.0 * p)).join(" / "));
    format!("; held-out P@1 / P@3 / P@5 {with}, of the network alone {without}")
}
