//! One sparse linear ranker for each label, learned from rows of the label's own: those on which it is true, and those
//! that it has to be told from.
//!
//! ```text
//!   label 0   true on rows 1 4     told from rows 0 2 9     ─▶   features 3: 0.7  8: -0.4     bias -0.2
//!   label 1   true on row  2       told from rows 4 5 7     ─▶   features 1: 0.9              bias -0.1
//! ```
//!
//! The children of a tree's cluster share their rows and are solved side by side; rankers here share none, and each is
//! solved alone, by the same solver. Rankers are meant to order a label's few candidates that something else has found:
//! a row that is neither among a label's positives nor among its negatives has never been seen by its ranker.
//!
//! ```
//! use xc_sparse::{CsrMatrix, LabelRows};
//! use xc_tree::rankers::{RankerRows, solve};
//! use xc_tree::{LinearParams, Silent};
//!
//! // Rows 0 and 1 have label 0, rows 2 and 3 label 1; all have feature 4.
//! let (indptr, indices) = (vec![0, 2, 4, 6, 8], vec![0, 4, 1, 4, 2, 4, 3, 4]);
//! let features = CsrMatrix::try_new((4, 5), indptr, indices, vec![1.0; 8])?;
//! let labels = LabelRows::from_lists([[0], [0], [1], [1]], 2)?;
//! // False labels that were taken for true ones: label 1 on rows 0 and 1, label 0 on row 2.
//! let mistaken = LabelRows::from_lists([vec![1], vec![1], vec![0], vec![]], 2)?;
//!
//! let (positives, negatives) = (labels.transpose(), mistaken.transpose());
//! let rows = RankerRows::new(&positives, &negatives);
//! let rankers = solve(features.view(), &rows, &LinearParams::of_own_rows(), 42, &Silent)?;
//! // Label 0 speaks of the features of its rows and against feature 2, and knows nothing of feature 3.
//! let (features, weights): (Vec<u32>, Vec<f32>) = rankers.weights.row(0).iter().unzip();
//! assert_eq!(features, [0, 1, 2, 4]);
//! assert!(weights[0] > 0.2 && weights[1] > 0.2 && weights[2] < -0.2 && weights[3].abs() < 0.2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod job;
#[cfg(test)]
mod tests;

use super::check::{TrainError, check_features, check_instance_weights, check_length, check_many};
use super::kept::lock;
use super::linear::LinearParams;
use super::observe::TreeEvent;
use super::workers::Workers;
use job::{Job, Part, Scratch};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Mutex;
use xc_buffer::Observer;
use xc_sparse::{CsrMatrix, CsrView, LabelRows};

/// Pairs of a label and a row that a thread takes at once: enough that taking them costs nothing, few enough that none
/// waits long for another.
const PAIRS_AT_ONCE: usize = 1 << 14;

/// The rows that each label's ranker learns from.
///
/// *Shapes*: both have one list of rows per label; [`LabelRows::transpose`] makes them of one list of labels per row.
#[derive(Clone, Copy, Debug)]
pub struct RankerRows<'a> {
    /// The rows on which each label is true.
    pub positives: &'a LabelRows,
    /// The rows that each label has to be told from; those that are among its positives too are positives alone.
    pub negatives: &'a LabelRows,
    /// Weight of each row in the loss, 0 or more, 0 leaves it out; `None`: all equal.
    pub instance_weights: Option<&'a [f32]>,
}

impl<'a> RankerRows<'a> {
    /// Rows of equal weights.
    pub fn new(positives: &'a LabelRows, negatives: &'a LabelRows) -> Self {
        Self { positives, negatives, instance_weights: None }
    }

    /// Pairs of a label and a row, those that are in both lists counted twice.
    fn pairs(&self, label: usize) -> usize {
        self.positives.row(label).len() + self.negatives.row(label).len()
    }
}

/// What [`solve`] has learned: label l scores a row x by `weights.row(l) . x + bias[l]`, about 1 where it is true and
/// about -1 where it is not.
#[derive(Clone, Debug, PartialEq)]
pub struct Rankers {
    /// *Shape*: labels, features.
    pub weights: CsrMatrix,
    /// One bias per label, multiplied by the value of the bias input.
    pub bias: Vec<f32>,
}

/// Learns a ranker for each label.
///
/// Rows should have about length 1: cost, bias input and pruning are meant for those
/// ([`LinearParams::of_own_rows`]). A label without positives has no weights and the bias -1, which is what is asked of
/// a row on which it is not true; a label with positives but without negatives has no weights and the bias 0, for
/// nothing is known of what it is not. Rows of weight 0 count as none; without a bias input (`params.bias` of 0) every
/// bias is 0. Each ranker visits its rows in orders of the stream `mix(seed, label)`.
///
/// `observer` is told [`TreeEvent::OwnRankers`], then [`TreeEvent::Rankers`] now and then (their sum is the number of labels), and is asked between labels
/// whether to stop.
///
/// *Cost*: O(entries of the rows of all pairs, once for each pass); labels of the most rows begin first.
/// *Memory*: the weights, twice while they are joined; 8 bytes a row; for each thread 4 bytes a feature, and 16 bytes an
/// entry and 32 bytes a row of the label in work (the logistic loss: 88 bytes an entry).
/// *Determinism*: equal input gives equal bits, at any number of threads, on any machine with IEEE arithmetic.
///
/// # Errors
/// Parameters out of range, lists of different lengths, values that are not finite, weights out of range, and
/// [`TrainError::Cancelled`].
pub fn solve(
    features: CsrView<'_>,
    rows: &RankerRows<'_>,
    params: &LinearParams,
    seed: u64,
    observer: &dyn Observer<TreeEvent>,
) -> Result<Rankers, TrainError> {
    check(features, rows, params)?;
    observer.event(TreeEvent::OwnRankers { n_rankers: rows.positives.len() });
    let squares = |i: usize| features.row(i).values().iter().fold(params.bias * params.bias, |sum, v| sum + v * v);
    let job = Job {
        features,
        rows,
        params,
        seed,
        squares: (0..features.rows()).into_par_iter().with_min_len(1 << 12).map(squares).collect(),
        inverse_weights: rows.instance_weights.map(|w| w.iter().map(|&w| 1.0 / w).collect()),
    };
    let ranges = cut(rows);
    let mut order: Vec<usize> = (0..ranges.len()).collect();
    order.sort_by_key(|&r| (std::cmp::Reverse(ranges[r].1), r));
    let parts: Vec<Mutex<Option<Part>>> = ranges.iter().map(|_| Mutex::new(None)).collect();
    Workers::<Scratch>::default().run(order.len(), observer, |at, scratch| {
        let labels = ranges[order[at]].0.clone();
        let n_labels = labels.len();
        if let Some(part) = job.part(labels, scratch, observer) {
            *lock(&parts[order[at]]) = Some(part);
            observer.event(TreeEvent::Rankers { done: n_labels });
        }
    });
    drop(job);
    let parts = parts.into_iter().map(|part| part.into_inner().unwrap_or_else(|e| e.into_inner()));
    let parts: Vec<Part> = parts.collect::<Option<_>>().ok_or(TrainError::Cancelled)?;
    Ok(join(rows.positives.len(), features.cols(), parts))
}

fn check(features: CsrView<'_>, rows: &RankerRows<'_>, params: &LinearParams) -> Result<(), TrainError> {
    params.check()?;
    check_length("negatives", rows.negatives.len(), rows.positives.len())?;
    for (what, lists) in [("rows of the positives", rows.positives), ("rows of the negatives", rows.negatives)] {
        check_length(what, lists.n_labels(), features.rows())?;
    }
    for (what, got) in [("rows", features.rows()), ("features", features.cols()), ("labels", rows.positives.len())] {
        check_many(what, got)?;
    }
    check_features("features", features)?;
    rows.instance_weights.map_or(Ok(()), |weights| check_instance_weights(weights, features.rows()))
}

/// Successive labels, cut where some pairs are together, and how many these are.
fn cut(rows: &RankerRows<'_>) -> Vec<(Range<usize>, usize)> {
    let (mut ranges, mut first, mut pairs) = (Vec::new(), 0, 0);
    let n_labels = rows.positives.len();
    for label in 0..n_labels {
        // A label costs something even without rows.
        pairs += rows.pairs(label) + 1;
        if pairs >= PAIRS_AT_ONCE || label + 1 == n_labels {
            ranges.push((first..label + 1, pairs));
            (first, pairs) = (label + 1, 0);
        }
    }
    ranges
}

/// Joins the parts, in order of their labels; each is gone once it is copied.
fn join(n_labels: usize, n_features: usize, parts: Vec<Part>) -> Rankers {
    let nnz = parts.iter().map(|part| part.features.len()).sum();
    let (mut features, mut weights) = (Vec::with_capacity(nnz), Vec::with_capacity(nnz));
    let (mut indptr, mut bias) = (Vec::with_capacity(n_labels + 1), Vec::with_capacity(n_labels));
    indptr.push(0);
    for part in parts {
        let before = features.len();
        indptr.extend(part.ends.iter().map(|end| before + end));
        features.extend_from_slice(&part.features);
        weights.extend_from_slice(&part.weights);
        bias.extend_from_slice(&part.bias);
    }
    Rankers { weights: CsrMatrix::from_checked((n_labels, n_features), indptr, features, weights), bias }
}
