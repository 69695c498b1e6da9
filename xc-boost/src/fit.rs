//! Trees by gradient boosting for the log loss (`[friedman2001greedy]`), level by level over binned features
//! (`[chen2016xgboost]`, sections 2.2 and 3.2; `[ke2017lightgbm]`, algorithm 1).
//!
//! Each feature is cut into at most [`BINS`] bins of about equally many rows. A tree is grown from the root: a split is the
//! bound between two bins that lowers the second-order approximation of the loss most. Sums over the rows of a node stand in
//! a histogram; of two siblings only the smaller is summed, the other one is what is left of their parent.

use crate::{BoostedTree, BoostedTrees, LEAVES, LEVELS, SPLITS};
use std::ops::Range;
use xc_buffer::Cancel;
use xc_buffer::simd::exp;
use xc_dense::DenseRows;

/// How trees are grown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BoostParams {
    /// Trees.
    pub trees: usize,
    /// What leaves are multiplied by.
    pub rate: f64,
    /// Added to the second derivatives of a node: leaves of few rows stay small. Above 0.
    pub ridge: f64,
    /// Sum of the second derivatives of a child, at least: of rows with probability p it is p (1 - p) each.
    pub least: f64,
}

impl Default for BoostParams {
    /// 200 trees at 0.05.
    fn default() -> Self {
        Self { trees: 200, rate: 0.05, ridge: 1.0, least: 1.0 }
    }
}

/// Bins of a feature, at most.
const BINS: usize = 255;
/// A split that gains less is rounding.
const LEAST_GAIN: f64 = 1e-9;

/// First and second derivatives of the loss, summed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sum {
    first: f64,
    second: f64,
}

impl Sum {
    fn add(&mut self, other: Self) {
        self.first += other.first;
        self.second += other.second;
    }

    fn less(self, other: Self) -> Self {
        Self { first: self.first - other.first, second: self.second - other.second }
    }

    /// What the best leaf lowers the loss by, times two.
    fn gain(self, ridge: f64) -> f64 {
        self.first * self.first / (self.second + ridge)
    }
}

/// Learns of which rows `is_yes` is true, from those that `of` numbers; nothing if `cancel` asks to stop.
///
/// *Cost*: some 2.5 additions a tree, row and feature. *Memory*: a byte a row and feature. *Determinism*: the same bits on every
/// machine; the order of `of` may change them.
///
/// # Panics
/// If there are not as many truths as rows, a number is none of a row, or features are more than 65,536.
pub fn fit(
    rows: DenseRows<'_>,
    is_yes: &[bool],
    of: &[u32],
    params: &BoostParams,
    cancel: &dyn Cancel,
) -> Option<BoostedTrees> {
    assert!(is_yes.len() == rows.len(), "{} truths of {} rows", is_yes.len(), rows.len());
    assert!(rows.width() <= 1 << 16, "{} features, at most {} are expected", rows.width(), 1 << 16);
    let binned = Binned::new(rows, of);
    let truth: Vec<f64> = of.iter().map(|&row| f64::from(u8::from(is_yes[row as usize]))).collect();
    // As if there were one row more of each: all may be true, or none.
    let n_yes: f64 = truth.iter().sum();
    let bias = ((n_yes + 1.0) / (truth.len() as f64 - n_yes + 1.0)).ln() as f32;
    let mut logits = vec![bias; truth.len()];
    let derivatives = vec![Sum::default(); truth.len()];
    let mut grower = Grower { binned: &binned, params, derivatives, order: Vec::new(), spare: Vec::new() };
    let mut trees = Vec::with_capacity(params.trees);
    for _ in 0..params.trees {
        if cancel.cancelled() {
            return None;
        }
        for ((sum, &logit), &truth) in grower.derivatives.iter_mut().zip(&logits).zip(&truth) {
            let e = f64::from(exp(-logit.abs()));
            let small = e / (1.0 + e);
            let p = if logit >= 0.0 { 1.0 - small } else { small };
            *sum = Sum { first: p - truth, second: p * (1.0 - p) };
        }
        trees.push(grower.grow(&mut logits));
    }
    let made = BoostedTrees::try_new(bias, trees, rows.width());
    Some(made.unwrap_or_else(|e| panic!("trees of these rows: {e}")))
}

/// Features of rows as numbers of bins.
struct Binned {
    /// For each feature, the largest value of each bin but the last.
    bounds: Vec<Vec<f32>>,
    /// The bins of a row beside each other.
    bins: Vec<u8>,
    n: usize,
}

impl Binned {
    fn new(rows: DenseRows<'_>, of: &[u32]) -> Self {
        let n = rows.width();
        let bounds: Vec<Vec<f32>> = (0..n).map(|at| bounds(rows, of, at)).collect();
        // NaN is in the first bin: it is above no bound.
        let bin = |(&value, bounds): (&f32, &Vec<f32>)| bounds.partition_point(|bound| *bound < value) as u8;
        let bins = of.iter().flat_map(|&row| rows.row(row as usize).iter().zip(&bounds).map(bin)).collect();
        Self { bounds, bins, n }
    }

    fn of(&self, row: u32) -> &[u8] {
        &self.bins[row as usize * self.n..][..self.n]
    }
}

/// Bounds between bins of a feature: values that occur, all of them where these are few.
fn bounds(rows: DenseRows<'_>, of: &[u32], at: usize) -> Vec<f32> {
    let mut values: Vec<f32> = of.iter().map(|&row| rows.row(row as usize)[at]).filter(|v| !v.is_nan()).collect();
    values.sort_unstable_by(f32::total_cmp);
    let mut distinct = values.clone();
    distinct.dedup();
    if distinct.len() > BINS {
        distinct = (1..=BINS).map(|bin| values[bin * values.len() / BINS - 1]).collect();
        distinct.dedup();
    }
    // The last bin has no bound.
    distinct.pop();
    distinct
}

/// A node of the level that is grown: its rows, and their sums by feature and bin.
struct Node {
    /// Among the rows in the order of the tree.
    of: Range<usize>,
    sums: Vec<Sum>,
    total: Sum,
}

/// Where a node is split.
struct Split {
    feature: usize,
    /// Bins up to this go left.
    bin: usize,
    gain: f64,
}

struct Grower<'a> {
    binned: &'a Binned,
    params: &'a BoostParams,
    derivatives: Vec<Sum>,
    /// Rows, those of a node beside each other and ascending.
    order: Vec<u32>,
    spare: Vec<u32>,
}

impl Grower<'_> {
    /// Grows a tree and adds its leaves to the logits.
    fn grow(&mut self, logits: &mut [f32]) -> BoostedTree {
        self.order.clear();
        self.order.extend(0..logits.len() as u32);
        let mut tree =
            BoostedTree { features: [0; SPLITS], thresholds: [f32::INFINITY; SPLITS], leaves: [0.0; LEAVES] };
        let mut level = vec![Some(self.node(0..logits.len(), true))];
        for depth in 0..LEVELS {
            let mut next = Vec::with_capacity(2 * level.len());
            for (at, node) in level.into_iter().enumerate() {
                let Some(node) = node else {
                    next.extend([None, None]);
                    continue;
                };
                let Some(split) = self.best(&node) else {
                    // All go left, down to a leaf.
                    next.extend([Some(node), None]);
                    continue;
                };
                let place = (1 << depth) - 1 + at;
                tree.features[place] = split.feature as u16;
                tree.thresholds[place] = self.binned.bounds[split.feature][split.bin];
                next.extend(self.parted(node, &split, depth + 1 < LEVELS).map(Some));
            }
            level = next;
        }
        for (leaf, node) in tree.leaves.iter_mut().zip(level) {
            let Some(node) = node else { continue };
            *leaf = (-self.params.rate * node.total.first / (node.total.second + self.params.ridge)) as f32;
            self.order[node.of].iter().for_each(|&row| logits[row as usize] += *leaf);
        }
        tree
    }

    /// A node with the sums of its rows, by feature and bin where it may have children.
    fn node(&self, of: Range<usize>, has_children: bool) -> Node {
        let (mut sums, mut total) = (Vec::new(), Sum::default());
        if has_children {
            sums.resize(self.binned.n * (BINS + 1), Sum::default());
        }
        for &row in &self.order[of.clone()] {
            let derivatives = self.derivatives[row as usize];
            total.add(derivatives);
            for (feature, &bin) in sums.chunks_exact_mut(BINS + 1).zip(self.binned.of(row)) {
                feature[usize::from(bin)].add(derivatives);
            }
        }
        Node { of, sums, total }
    }

    /// The split that lowers the loss most, of equal ones the first; nothing where none does.
    fn best(&self, node: &Node) -> Option<Split> {
        let &BoostParams { ridge, least, .. } = self.params;
        let alone = node.total.gain(ridge);
        let mut best: Option<Split> = None;
        for (feature, (sums, bounds)) in node.sums.chunks_exact(BINS + 1).zip(&self.binned.bounds).enumerate() {
            let mut left = Sum::default();
            for (bin, sum) in sums[..bounds.len()].iter().enumerate() {
                left.add(*sum);
                let right = node.total.less(left);
                if left.second < least || right.second < least {
                    continue;
                }
                let gain = left.gain(ridge) + right.gain(ridge) - alone;
                if gain > best.as_ref().map_or(LEAST_GAIN, |best| best.gain) {
                    best = Some(Split { feature, bin, gain });
                }
            }
        }
        best
    }

    /// The children of a node that is split; the larger one's sums are what the smaller one leaves.
    fn parted(&mut self, node: Node, split: &Split, has_children: bool) -> [Node; 2] {
        let Node { of, mut sums, total } = node;
        self.spare.clear();
        let mut n_left = of.start;
        for at in of.clone() {
            let row = self.order[at];
            if usize::from(self.binned.of(row)[split.feature]) <= split.bin {
                self.order[n_left] = row;
                n_left += 1;
            } else {
                self.spare.push(row);
            }
        }
        self.order[n_left..of.end].copy_from_slice(&self.spare);
        let (left, right) = (of.start..n_left, n_left..of.end);
        let is_left_smaller = left.len() <= right.len();
        let (small, large) = if is_left_smaller { (left, right) } else { (right, left) };
        let small = self.node(small, has_children);
        sums.iter_mut().zip(&small.sums).for_each(|(sum, of_small)| *sum = sum.less(*of_small));
        let large = Node { of: large, sums, total: total.less(small.total) };
        if is_left_smaller { [small, large] } else { [large, small] }
    }
}
