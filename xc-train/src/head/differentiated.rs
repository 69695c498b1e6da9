//! Differentiated softmax: frequent labels see more of the vector than rare ones.
//!
//! ```text
//!   vector     [ units of block 0          | of block 1   | of block 2 ]
//!   labels      the most frequent            less frequent   the rest         a block of labels reads its own units alone
//! ```
//!
//! A dense layer whose weights are 0 outside of the blocks, without these weights: blocks partition
//! the labels by frequency and the units in order, so that frequent labels have long rows and rare
//! ones short rows.
//!
//! *Cost*: of a step, 6 operations for each instance, label and unit of its block; the logits of
//! all labels exist at once, and twice those of the largest block.
//!
//! # References
//! `[chen2016strategies]`, section 3.3. *Differs in*: shares of the labels and units are given, not
//! their numbers; any of the losses goes with it.

use super::{Head, Ranked, RowScratch, judge_rows, rank_rows};
use crate::layer::{Leaves, Named, column_sums, squared_norm};
use crate::parameter::{Decay, Init, RowsMut};
use crate::state::{self, Array, Arrays, Role, State, StateError, Visitor, load_parameters, visit_parameters};
use crate::{Activations, Loss, Mode, Parameter, StepError, Targets, Update};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::ops::Range;
use thiserror::Error;
use xc_sparse::buffer::Buffer;
use xc_sparse::dense::{MatRef, MatmulPrecision, Scratch, Start, product, product_by_rows, product_in_leaves};
use xc_sparse::parallel::for_each_part;
use xc_sparse::sums::Blocks;

/// What a block is of all, the most frequent labels first.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BlockShare {
    /// Share of the labels.
    pub labels: f64,
    /// Share of the units.
    pub units: f64,
}

/// Shares that make no blocks.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum BlockShareError {
    /// Shares below 0, or that are not all together.
    #[error("shares of the {of} add up to {got}, expected shares of 0 or more that add up to 1")]
    Sum {
        /// Labels or units.
        of: &'static str,
        /// The sum.
        got: f64,
    },
    /// A block that reads nothing.
    #[error("block {block} reads none of {width} units, expected one at least")]
    NoUnit {
        /// The block.
        block: usize,
        /// Units of all blocks.
        width: usize,
    },
}

/// The blocks of a layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Labels of each, and the units that they read.
    blocks: Vec<(usize, Range<usize>)>,
}

impl Layout {
    /// Cuts labels and units where their shares, added up and rounded, end.
    pub(crate) fn try_new(shares: &[BlockShare], n_labels: usize, width: usize) -> Result<Self, BlockShareError> {
        for (of, share) in [("labels", (|s| s.labels) as fn(&BlockShare) -> f64), ("units", |s| s.units)] {
            let got = shares.iter().map(share).fold(0.0, |sum, share| sum + share);
            if !((got - 1.0).abs() < 1e-6 && shares.iter().all(|s| share(s) >= 0.0)) {
                return Err(BlockShareError::Sum { of, got });
            }
        }
        let ends = |n: usize, share: fn(&BlockShare) -> f64| {
            let mut sum = 0.0;
            let mut ends: Vec<usize> = shares
                .iter()
                .map(|of| {
                    sum += share(of);
                    ((sum * n as f64).round() as usize).min(n)
                })
                .collect();
            ends.last_mut().into_iter().for_each(|end| *end = n);
            ends
        };
        let (mut first, mut unit, mut blocks) = (0, 0, Vec::new());
        let both = ends(n_labels, |s| s.labels).into_iter().zip(ends(width, |s| s.units));
        for (block, (label_end, unit_end)) in both.enumerate() {
            if unit_end == unit {
                return Err(BlockShareError::NoUnit { block, width });
            }
            blocks.push((label_end - first, unit..unit_end));
            (first, unit) = (label_end, unit_end);
        }
        Ok(Self { blocks })
    }

    /// Values of all weights and biases.
    #[cfg(feature = "train")]
    pub(crate) fn n_values(&self) -> u64 {
        self.blocks
            .iter()
            .map(|(n, units)| (*n as u64).saturating_mul(units.len() as u64 + 1))
            .fold(0, u64::saturating_add)
    }

    /// Labels of the largest block.
    #[cfg(feature = "train")]
    pub(crate) fn largest(&self) -> usize {
        self.blocks.iter().map(|(n, _)| *n).max().unwrap_or(0)
    }

    /// Names and shapes of the weights.
    pub(crate) fn shapes(&self) -> impl Iterator<Item = (String, [usize; 2])> {
        self.blocks.iter().enumerate().map(|(block, (n, units))| (name(block), [*n, units.len()]))
    }
}

fn name(block: usize) -> String {
    format!("head.block{block}.weights")
}

/// The name of the labels in the order of their blocks.
pub(crate) const LABELS: &str = "head.labels";

/// An output layer in blocks.
#[derive(Clone, Debug)]
pub struct Differentiated {
    blocks: Vec<Block>,
    /// Labels, block after block, ascending in each.
    labels: Buffer<u32>,
    bias: Parameter,
    width: usize,
    precision: MatmulPrecision,
    init: Init,
}

/// Labels and the units that they read.
#[derive(Clone, Debug)]
struct Block {
    /// Their places among all.
    places: Range<usize>,
    units: Range<usize>,
    weights: Parameter,
}

/// Buffers of a step.
#[derive(Default)]
pub struct DifferentiatedScratch {
    /// Of all labels by their ids: logits, then their gradient.
    logits: Activations,
    of_block: OfBlock,
    losses: Vec<f64>,
    ranks: RowScratch,
}

/// Buffers of a block.
#[derive(Default)]
struct OfBlock {
    /// The block's part of the vectors, or of their gradient.
    vectors: Activations,
    /// Logits of its labels, or their gradient.
    logits: Activations,
    biases: Vec<f32>,
    product: Scratch,
}

impl Differentiated {
    /// Far from the streams of other layers: one a block.
    const STREAM: u64 = 1 << 33;

    /// Labels 0 to `n_labels - 1` over vectors of `width`; until [`Differentiated::assign`] they
    /// count as ever rarer. First weights even, of variance 1 / units of the block.
    ///
    /// # Errors
    /// See [`BlockShareError`].
    pub fn new(
        n_labels: usize,
        width: usize,
        shares: &[BlockShare],
        first: impl Into<Init>,
    ) -> Result<Self, BlockShareError> {
        let (layout, init) = (Layout::try_new(shares, n_labels, width)?, first.into());
        let (mut place, mut blocks) = (0, Vec::new());
        for (number, (n, units)) in layout.blocks.into_iter().enumerate() {
            let mut weights = Parameter::zeros(n, units.len(), Decay::Yes);
            init.fill(Self::STREAM + number as u64, (3.0 / units.len() as f32).sqrt(), &mut weights);
            blocks.push(Block { places: place..place + n, units, weights });
            place += n;
        }
        let labels: Vec<u32> = (0..n_labels as u32).collect();
        let bias = Parameter::zeros(n_labels, 1, Decay::No);
        Ok(Self { blocks, labels: labels.into(), bias, width, precision: MatmulPrecision::F32, init })
    }

    /// What it multiplies. Default: f32.
    pub fn with_products(mut self, precision: MatmulPrecision) -> Self {
        self.precision = precision;
        self
    }

    /// Gives the labels to blocks by how often each is true, equal ones by their ids. Weights stay
    /// with the blocks: this comes before the training.
    ///
    /// # Panics
    /// If there is not a count for each label.
    pub fn assign(&mut self, counts: &[u32]) {
        let (got, expected) = (counts.len(), self.labels.len());
        assert!(got == expected, "{got} counts for {expected} labels");
        let mut order: Vec<u32> = (0..counts.len() as u32).collect();
        order.sort_by_key(|&label| std::cmp::Reverse(counts[label as usize]));
        self.blocks.iter().for_each(|block| order[block.places.clone()].sort_unstable());
        self.labels = order.into();
    }

    /// Puts labels into blocks as a file says.
    pub(crate) fn set_labels(&mut self, labels: Buffer<u32>) -> Result<(), LabelsError> {
        self.check_labels(&labels)?;
        self.labels = labels;
        Ok(())
    }

    fn check_labels(&self, labels: &[u32]) -> Result<(), LabelsError> {
        let mut seen = vec![false; labels.len()];
        for (place, &label) in labels.iter().enumerate() {
            match seen.get_mut(label as usize) {
                Some(seen @ false) => *seen = true,
                _ => return Err(LabelsError { place, label, n_labels: labels.len() }),
            }
        }
        Ok(())
    }

    /// The labels of each block.
    pub fn blocks(&self) -> impl ExactSizeIterator<Item = &[u32]> {
        self.blocks.iter().map(|block| &self.labels[block.places.clone()])
    }

    /// Units that the labels of each block read, and their weights, one row a label.
    pub fn weights(&self) -> impl ExactSizeIterator<Item = (Range<usize>, &Parameter)> {
        self.blocks.iter().map(|block| (block.units.clone(), &block.weights))
    }

    /// Labels in the order of their blocks.
    pub(crate) fn labels_by_block(&self) -> &[u32] {
        &self.labels
    }

    /// Bias of each label.
    pub fn bias(&self) -> &[f32] {
        self.bias.values()
    }

    /// Bias of each label, to be changed.
    pub fn bias_mut(&mut self) -> &mut [f32] {
        self.bias.values_mut()
    }

    /// Logits of all labels.
    fn forward(&self, input: &Activations, logits: &mut Activations, room: &mut OfBlock) {
        assert!(input.width() == self.width, "width {}, expected {}", input.width(), self.width);
        logits.reshape(input.len(), self.labels.len());
        for block in self.filled() {
            let labels = &self.labels[block.places.clone()];
            let OfBlock { vectors, logits: part, biases, product: buffers } = &mut *room;
            cut(input, block.units.clone(), vectors);
            part.reshape(input.len(), labels.len());
            biases.clear();
            biases.extend(labels.iter().map(|&label| self.bias.values()[label as usize]));
            let start = Start::Bias(biases);
            product(part.values_mut(), vectors.matrix(), block.matrix().t(), start, self.precision, buffers);
            each_row(logits, part, |all, part| {
                labels.iter().zip(part).for_each(|(&label, &logit)| all[label as usize] = logit);
            });
        }
    }

    /// The gradient of the logits of a block's labels, out of that of all.
    fn gather(&self, block: &Block, logits: &Activations, part: &mut Activations) {
        let labels = &self.labels[block.places.clone()];
        part.reshape(logits.len(), labels.len());
        each_row(part, logits, |part, all| {
            labels.iter().zip(part).for_each(|(&label, out)| *out = all[label as usize]);
        });
    }

    /// The blocks that have labels.
    fn filled(&self) -> impl Iterator<Item = &Block> {
        self.blocks.iter().filter(|block| !block.places.is_empty())
    }
}

/// Labels that are not each there once.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("place {place} holds label {label}, expected each of {n_labels} labels once")]
pub struct LabelsError {
    place: usize,
    label: u32,
    n_labels: usize,
}

impl Block {
    fn matrix(&self) -> MatRef<'_> {
        MatRef::new(self.weights.values(), self.weights.rows(), self.weights.width())
    }

    /// The order of sums over its labels.
    fn order(&self) -> Blocks {
        Leaves::HEAD.outputs(self.places.len())
    }
}

/// Copies some units of each vector.
fn cut(from: &Activations, units: Range<usize>, to: &mut Activations) {
    to.reshape(from.len(), units.len());
    each_row(to, from, |to, from| to.copy_from_slice(&from[units.clone()]));
}

/// Calls `work` with each row of `to` and the row of `from` that belongs to it.
fn each_row(to: &mut Activations, from: &Activations, work: impl Fn(&mut [f32], &[f32]) + Send + Sync) {
    let width = to.width().max(1);
    for_each_part(to.values_mut(), width, |i, row| work(row, from.row(i)));
}

impl Head for Differentiated {
    type Input = Activations;
    type Scratch = DifferentiatedScratch;

    fn width(&self) -> usize {
        self.width
    }

    fn labels(&self) -> Range<u32> {
        0..self.labels.len() as u32
    }

    fn loss(
        &self,
        input: &Activations,
        targets: Targets<'_>,
        loss: Loss,
        _: Mode,
        scratch: &mut DifferentiatedScratch,
    ) -> Result<f64, StepError> {
        assert!(input.len() == targets.len(), "{} vectors, {} targets", input.len(), targets.len());
        let DifferentiatedScratch { logits, of_block, losses, .. } = scratch;
        self.forward(input, logits, of_block);
        Ok(judge_rows(logits, targets, loss, &Leaves::HEAD.outputs(self.labels.len()), losses))
    }

    fn backward(&self, gradient: &mut Activations, scratch: &mut DifferentiatedScratch) -> Result<(), StepError> {
        let DifferentiatedScratch { logits, of_block: room, .. } = scratch;
        gradient.reshape(logits.len(), self.width);
        gradient.values_mut().fill(0.0);
        for block in self.filled() {
            self.gather(block, logits, &mut room.logits);
            let OfBlock { vectors, logits: part, product: buffers, .. } = &mut *room;
            vectors.reshape(part.len(), block.units.len());
            let order = block.order();
            let (to, of) = (vectors.values_mut(), part.matrix());
            product_in_leaves(to, of, block.matrix(), &order, self.precision, buffers);
            each_row(gradient, vectors, |all, part| all[block.units.clone()].copy_from_slice(part));
        }
        Ok(())
    }

    fn squared_norm(&self, input: &Activations, scratch: &mut DifferentiatedScratch) -> Result<f64, StepError> {
        let DifferentiatedScratch { logits, of_block: room, .. } = scratch;
        let mut sum = 0.0;
        for block in self.filled() {
            self.gather(block, logits, &mut room.logits);
            cut(input, block.units.clone(), &mut room.vectors);
            let rows = Leaves::HEAD.rows(input.len());
            let OfBlock { vectors, logits: part, product: buffers, .. } = &mut *room;
            sum += squared_norm(vectors, part, &block.order(), &rows, self.precision, buffers);
        }
        Ok(sum)
    }

    fn update(
        &mut self,
        input: &Activations,
        scratch: &mut DifferentiatedScratch,
        update: &Update,
    ) -> Result<(), StepError> {
        let DifferentiatedScratch { logits, of_block: room, .. } = scratch;
        let rows = Leaves::HEAD.rows(input.len());
        self.bias.rows_mut().update(&column_sums(logits, &rows), &update.change);
        for at in 0..self.blocks.len() {
            if self.blocks[at].places.is_empty() {
                continue;
            }
            self.gather(&self.blocks[at], logits, &mut room.logits);
            let Block { units, weights, .. } = &mut self.blocks[at];
            cut(input, units.clone(), &mut room.vectors);
            let OfBlock { vectors, logits: part, product: buffers, .. } = &mut *room;
            let visit = |_: usize, gradient: &[f32], of: RowsMut<'_>| of.update(gradient, &update.change);
            let (a, b) = (part.matrix().t(), vectors.matrix());
            product_by_rows(a, b, &rows, weights.rows_mut(), self.precision, buffers, &visit);
        }
        Ok(())
    }

    fn logits(
        &self,
        input: &Activations,
        logits: &mut Activations,
        scratch: &mut DifferentiatedScratch,
    ) -> Result<(), StepError> {
        self.forward(input, logits, &mut scratch.of_block);
        Ok(())
    }

    fn rank(
        &self,
        input: &Activations,
        judged_by: Option<(Targets<'_>, Loss)>,
        k: usize,
        scratch: &mut DifferentiatedScratch,
        out: &mut Ranked,
    ) -> Result<(), StepError> {
        let DifferentiatedScratch { logits, of_block, ranks, .. } = scratch;
        self.forward(input, logits, of_block);
        rank_rows(logits, 0, judged_by, k, ranks, out);
        Ok(())
    }
}

impl State for Differentiated {
    fn settings(&self) -> serde_json::Value {
        let blocks: Vec<_> = self.blocks.iter().map(|block| [block.places.len(), block.units.len()]).collect();
        json!({ "differentiated": blocks, "precision": self.precision, "init": self.init })
    }

    fn parameters(&self) -> Vec<Named<&Parameter>> {
        let weights = |(at, block): (usize, _)| -> Named<&Parameter> {
            let block: &Block = block;
            Named { name: name(at), parameter: &block.weights }
        };
        let bias = Named { name: "head.bias".to_owned(), parameter: &self.bias };
        self.blocks.iter().enumerate().map(weights).chain([bias]).collect()
    }

    fn parameters_mut(&mut self) -> Vec<Named<&mut Parameter>> {
        let bias = Named { name: "head.bias".to_owned(), parameter: &mut self.bias };
        let weights = self.blocks.iter_mut().enumerate();
        weights.map(|(at, block)| Named { name: name(at), parameter: &mut block.weights }).chain([bias]).collect()
    }

    fn visit(&self, f: &mut Visitor<'_>) -> Result<(), StateError> {
        visit_parameters(self.parameters(), f)?;
        f(Array::new(LABELS, Role::Answer, [self.labels.len(), 1], &self.labels))
    }

    fn load(&mut self, from: &dyn Arrays) -> Result<(), StateError> {
        load_parameters(self.parameters_mut(), from)?;
        let labels = self.labels.to_mut();
        state::read(from, LABELS, Role::Answer, [labels.len(), 1], labels)?;
        self.check_labels(&self.labels).map_err(|e| StateError::new(LABELS, e))
    }
}
