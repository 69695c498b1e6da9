//! Every output is connected with a few inputs (`[schultheis2023uniform]`).
//!
//! ```text
//!   input (batch x H) ──▶ Lines (bf16, instances innermost) ─┐
//!                                                            ▼
//!   for a tile of outputs     each block of 32 instances: logits, loss, gradient      the few gradients that are not 0 are kept
//!   next tile ...
//!   once there are many       each instance of a block: its part of the gradients     outputs that few instances of the block say something about;
//!                                                                                     of others, all instances at once
//!                             each output: gradient of its weights, update            weights change at once
//! ```
//!
//! The logits of a batch never exist, nor does a gradient or an f32 copy of all weights. Memory
//! beside the layer: the batch's inputs and their gradients (11 bytes for each of `batch x H`), and
//! the gradients that are not 0 of a tile or a few.
//!
//! # Implicit negatives
//! The squared hinge has no gradient where an output is right by a margin, which nearly all are:
//! those cost the forward product alone (section 3.3 of the paper). Binary cross-entropy has a
//! gradient everywhere.
//!
//! # Screening
//! [`Sparse::with_screening`] makes that product cheaper: 8 bits tell which outputs may be within
//! the margin for some of 32 instances, and those are scored as ever.

mod active;
mod init;
mod learn;
mod pass;
mod rank;
mod screening;
mod state;
mod tiles;
mod weights;

pub use rank::{OneScratch, as_read};
pub use screening::Screening;

use super::chosen::{Chosen, Remembered};
use super::hardest::Hardest;
use super::{Head, Ranked};
use crate::sampler::{Candidates, Queries, Sampler};
use crate::{Activations, Init, Loss, Mode, Parameter, Step, StepError, Targets, Update};
use active::{Active, Positives};
use rank::{BlockTotals, RankScratch};
use rayon::prelude::*;
use serde::Serialize;
use std::ops::Range;
use tiles::Tiles;
use xc_buffer::dtype::DType;
use xc_buffer::{FloatBuffer, HugePageVec};
use xc_dense::DenseRows;
use xc_hash::stream::{Purpose, Stream, mix, name};
use xc_sparse::uniform::{ByteLines, Connections, InputIds, LANES, Lines, Rewired, ScreenRows, Sums};

/// Connections that come and go while training (SET).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Rewire {
    /// Steps between two changes.
    pub every: u64,
    /// Share of all connections, the weakest, that are replaced.
    pub fraction: f64,
}

/// What a sparse head is, apart from its sizes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SparseParams {
    /// Connections of an output: exactly so many, or so many on average.
    pub per_output: usize,
    /// Whether all outputs have equally many.
    pub uniform: bool,
    /// Type of the weights.
    pub weights: DType,
    /// Type of an optimiser's moments: f32 or bf16.
    pub moments: DType,
    /// Changes of the connections; none: they stay.
    pub rewire: Option<Rewire>,
}

/// A sparse output layer.
#[derive(Clone, Debug)]
pub struct Sparse {
    params: SparseParams,
    init: Init,
    connections: Connections,
    bias: Parameter,
    moments: Vec<FloatBuffer>,
    sampler: Option<Box<dyn Sampler>>,
    screening: Screening,
    /// Outputs worked on at a time, if that is not left to the batch.
    tile: Option<usize>,
}

/// Buffers of a [`Sparse`] step.
#[derive(Default)]
pub struct SparseScratch {
    lines: Lines,
    bytes: ByteLines,
    screened: ScreenRows,
    /// Outputs of the last tile that screening found worth a full score, counted for each block.
    n_seen: usize,
    /// Gradient of the inputs: for each block of instances, one line an input. What it is before
    /// the first output with many instances of the block does not matter.
    gradient: HugePageVec<Sums>,
    /// The same, one row an instance, of the outputs that few instances of a block have a gradient
    /// for: the two are added.
    rows: Activations,
    positives: Vec<Positives>,
    active: Vec<Active>,
    n_instances: usize,
    candidates: Candidates,
    sampled: Sampled,
    ranks: RankScratch,
    hardest: Hardest,
}

/// The batch of a step whose outputs a sampler chose, and these outputs.
#[derive(Default)]
struct Sampled {
    targets: Remembered,
    outputs: Vec<u32>,
}

impl SparseScratch {
    /// Sorts the true outputs of each block of the lines.
    fn fill_positives(&mut self, targets: Targets<'_>) {
        self.positives.resize_with(self.lines.n_blocks(), Positives::default);
        self.positives.par_iter_mut().enumerate().for_each(|(block, positives)| positives.fill(targets, block));
    }
}

/// Number of this layer's random streams; far from those of the encoders' layers.
const STREAM: u64 = 2 << 32;
/// Gradients of a tile, at most: with all of them not 0 they take four bytes each.
const TILE_VALUES: usize = 8 << 20;
/// Outputs change once so many (output, block) pairs have a gradient, or when all outputs were
/// scored: the more at a time, the more outputs an instance's row serves while it is in the cache.
const ENTRIES: usize = 1 << 17;
/// Outputs of a tile, at most: their indices and weights should stay in the last-level cache while
/// the blocks pass.
const TILE_OUTPUTS: usize = 1 << 16;

impl Sparse {
    /// Takes a layer that was learned.
    ///
    /// # Panics
    /// If there is not one bias an output.
    pub fn from_parts(params: SparseParams, connections: Connections, bias: Parameter) -> Self {
        assert!(bias.values().len() == connections.n_labels(), "{} biases", bias.values().len());
        Self {
            params,
            init: Init::Zeros,
            connections,
            bias,
            moments: Vec::new(),
            sampler: None,
            screening: Screening::Never,
            tile: None,
        }
    }

    /// Lets each training step score the true outputs of its batch and those that a sampler chooses
    /// for the whole batch, instead of all.
    pub fn with_sampler(mut self, sampler: Option<Box<dyn Sampler>>) -> Self {
        self.sampler = sampler;
        self
    }

    /// As [`Sparse::with_sampler`], in place.
    pub fn set_sampler(&mut self, sampler: Option<Box<dyn Sampler>>) {
        self.sampler = sampler;
    }

    /// Lets steps screen outputs before they score them. Pairs of an instance and an output that
    /// are scored have the loss and the gradient that they have without it; a pair that screening
    /// overlooks has none (see [`xc_sparse::uniform::ByteLines`] for how far above the margin its
    /// score may be). Only training steps screen, and only with a loss that has a margin.
    pub fn with_screening(mut self, screening: Screening) -> Self {
        self.screening = screening;
        self
    }

    /// Scores so many outputs at a time (at least one), and changes them before it scores others;
    /// by default as many are scored as the caches and 32 MB of gradients allow, and outputs change
    /// once enough of them have a gradient. Only the order in which losses are added depends on it,
    /// and with screening which tiles do without.
    pub fn with_tile(mut self, outputs: usize) -> Self {
        self.tile = Some(outputs.max(1));
        self
    }

    /// What it is.
    pub fn params(&self) -> &SparseParams {
        &self.params
    }

    /// The connections and their weights.
    pub fn connections(&self) -> &Connections {
        &self.connections
    }

    /// Bias of each output.
    pub fn bias(&self) -> &Parameter {
        &self.bias
    }

    /// Bias of each output, to be changed.
    pub fn bias_mut(&mut self) -> &mut [f32] {
        self.bias.values_mut()
    }

    /// Bytes of connections, biases and moments for a training run.
    pub fn n_bytes(n_outputs: u64, width: usize, params: &SparseParams, n_moments: usize) -> u64 {
        let connection = InputIds::bytes_each(width) + params.weights.n_bytes() + n_moments * params.moments.n_bytes();
        let starts = if params.uniform { 0 } else { 8 };
        let each = params.per_output as u128 * connection as u128 + 4 * (1 + n_moments as u128) + starts;
        u64::try_from(u128::from(n_outputs) * each).unwrap_or(u64::MAX)
    }

    /// Bytes of a step's buffers, at most, when every gradient of a tile is other than 0; where
    /// gradients are clipped the tile is all outputs. The gradient of the inputs that the caller
    /// gets is not among them. `screens`: see [`Screening`].
    pub fn scratch_bytes(
        n_outputs: u64,
        width: usize,
        per_output: usize,
        batch: usize,
        clips: bool,
        screens: bool,
    ) -> u64 {
        let (blocks, n_outputs) = (batch.div_ceil(LANES) as u128, u128::from(n_outputs));
        let inputs = blocks * LANES as u128 * width as u128 * if clips { 10 } else { 6 };
        let outputs = tile_outputs(batch) as u128;
        let tile = outputs * blocks;
        let screen = if screens {
            u128::from(ByteLines::bytes(batch, width))
                + outputs.min(n_outputs) * u128::from(ScreenRows::bytes_each(per_output))
        } else {
            0
        };
        let entries = if clips { n_outputs * blocks } else { (n_outputs * blocks).min(tile + ENTRIES as u128) };
        // An entry, its place among those of its output while they are sorted, and the gradients of
        // all instances, or of few with the sums of the weights.
        let all = inputs + screen + entries * (56 + (4 * LANES as u128).max(96 + 4 * per_output as u128));
        u64::try_from(all).unwrap_or(u64::MAX)
    }

    fn rewire(&mut self, at: Step) {
        let Some(Rewire { every, fraction }) = self.params.rewire else { return };
        if every == 0 || !(at.number + 1).is_multiple_of(every) {
            return;
        }
        let key = name(at.seed, Purpose::Rewire, &[STREAM, at.number]);
        let rewired = self.connections.rewire(fraction, |output| {
            let mut stream = Stream::new(mix(key, output as u64));
            move || stream.next_u64()
        });
        match rewired {
            Rewired::InPlace(places) => {
                for moment in &mut self.moments {
                    let mut values = moment.to_mut();
                    places.iter().for_each(|&at| values.clear(at as usize));
                }
            }
            Rewired::Moved(source) => {
                for moment in &mut self.moments {
                    let old = |&at: &u32| if at == u32::MAX { 0.0 } else { moment.get(at as usize) };
                    *moment = FloatBuffer::nearest(moment.dtype(), source.iter().map(old));
                }
            }
        }
    }

    /// Readies the buffers for a batch and says what is gone over.
    fn begin(
        &self,
        input: &Activations,
        targets: Targets<'_>,
        loss: Loss,
        mode: Mode,
        scratch: &mut SparseScratch,
    ) -> Result<Tiles, StepError> {
        assert!(input.len() == targets.len(), "{} vectors, {} targets", input.len(), targets.len());
        assert!(input.width() == self.width(), "width {}, expected {}", input.width(), self.width());
        scratch.n_instances = input.len();
        scratch.hardest.begin(mode, input.len());
        scratch.lines.fill(input.values(), input.len(), input.width());
        scratch.fill_positives(targets);
        scratch.active.resize_with(scratch.lines.n_blocks(), Active::default);
        scratch.active.iter_mut().for_each(Active::begin);
        let n_labels = self.connections.n_labels();
        let chosen = match mode {
            Mode::Train(at) => self.sample(at, input, targets, scratch)?,
            Mode::Predict => None,
        };
        let n = chosen.as_ref().map_or(n_labels, |chosen| chosen.labels().len());
        let screens = mode != Mode::Predict && self.screens(loss, n, input.len());
        if screens {
            scratch.bytes.fill(input.values(), input.len(), input.width());
        }
        let mut size = self.tile.unwrap_or_else(|| tile_outputs(input.len()));
        if screens && self.tile.is_none() {
            size = size.min(n.div_ceil(screening::TILES)).max(1);
        }
        Ok(Tiles::new(chosen, n, size, screens))
    }

    /// The outputs of a step, if a sampler chooses them.
    fn sample(
        &self,
        at: Step,
        input: &Activations,
        targets: Targets<'_>,
        scratch: &mut SparseScratch,
    ) -> Result<Option<Chosen>, StepError> {
        let Some(sampler) = &self.sampler else { return Ok(None) };
        let SparseScratch { candidates, sampled, .. } = scratch;
        candidates.clear();
        let vectors = DenseRows::new(input.values(), input.width());
        let queries = Queries { instances: targets.instances(), vectors, targets };
        sampler.sample(at, queries, None, self.labels(), candidates)?;
        if candidates.len() != 1 {
            let what = format!("{} lists of candidates, expected one for the whole batch", candidates.len());
            return Err(StepError::new("sparse head", what));
        }
        let mut chosen = Chosen::default();
        chosen.fill(candidates.list(0), targets);
        let Sampled { targets: remembered, outputs } = sampled;
        remembered.fill(targets);
        outputs.clear();
        outputs.extend_from_slice(chosen.labels());
        Ok(Some(chosen))
    }

    /// Tells the sampler that a step is done.
    fn tell_sampler(&mut self, at: Step, input: &Activations, scratch: &SparseScratch) -> Result<(), StepError> {
        let Some(sampler) = &mut self.sampler else { return Ok(()) };
        let Sampled { targets, outputs } = &scratch.sampled;
        let targets = targets.targets();
        let vectors = DenseRows::new(input.values(), input.width());
        let queries = Queries { instances: targets.instances(), vectors, targets };
        sampler.changed(at, queries, outputs, &[], None)
    }

    /// Mean loss of the batch over the next tile.
    fn next_tile(
        &self,
        tiles: &mut Tiles,
        loss: Loss,
        totals: &[BlockTotals],
        backward: bool,
        scratch: &mut SparseScratch,
    ) -> f64 {
        let (tile, screens) = tiles.next();
        let n_screened = tile.len() * scratch.lines.n_blocks();
        let value = self.pass(tile, loss, totals, backward, screens, scratch);
        tiles.advance(screens.then_some((scratch.n_seen, n_screened)));
        value
    }

    fn clear_gradient(&self, scratch: &mut SparseScratch) {
        scratch.gradient.resize(scratch.lines.n_blocks() * self.width());
        scratch.rows.reshape(scratch.n_instances, self.width());
        scratch.rows.values_mut().par_chunks_mut(1 << 19).for_each(|part| part.fill(0.0));
    }
}

/// Outputs of a tile for a batch.
fn tile_outputs(batch: usize) -> usize {
    (TILE_VALUES / batch.max(1)).clamp(1024, TILE_OUTPUTS)
}

impl Head for Sparse {
    type Input = Activations;
    type Scratch = SparseScratch;

    fn width(&self) -> usize {
        self.connections.n_inputs()
    }

    fn labels(&self) -> Range<u32> {
        0..self.connections.n_labels() as u32
    }

    /// # Panics
    /// If shapes disagree.
    fn loss(
        &self,
        input: &Activations,
        targets: Targets<'_>,
        loss: Loss,
        mode: Mode,
        scratch: &mut SparseScratch,
    ) -> Result<f64, StepError> {
        let mut tiles = self.begin(input, targets, loss, mode, scratch)?;
        self.clear_gradient(scratch);
        let totals = self.totals(tiles.all(), loss, targets, scratch);
        let mut value = shared_loss(&totals, input.len());
        while !tiles.is_done() {
            value += self.next_tile(&mut tiles, loss, &totals, true, scratch);
        }
        self.take_few(input, true, scratch);
        scratch.hardest.finish();
        Ok(value)
    }

    fn backward(&self, gradient: &mut Activations, scratch: &mut SparseScratch) -> Result<(), StepError> {
        pass::add_blocks(&scratch.gradient, &scratch.active, &mut scratch.rows);
        std::mem::swap(gradient, &mut scratch.rows);
        Ok(())
    }

    fn squared_norm(&self, _: &Activations, scratch: &mut SparseScratch) -> Result<f64, StepError> {
        Ok(self.norm_of(scratch))
    }

    fn update(&mut self, input: &Activations, scratch: &mut SparseScratch, update: &Update) -> Result<(), StepError> {
        self.learn(&scratch.lines, &scratch.active, update);
        self.rewire(update.at);
        self.tell_sampler(update.at, input, scratch)
    }

    /// Fused, a tile of outputs at a time. With a sampler only the outputs that it chooses, and the
    /// true ones, are scored and change.
    ///
    /// # Panics
    /// If shapes disagree.
    fn step(
        &mut self,
        input: &Activations,
        targets: Targets<'_>,
        loss: Loss,
        update: &Update,
        mut gradient: Option<&mut Activations>,
        scratch: &mut SparseScratch,
    ) -> Result<f64, StepError> {
        let mut tiles = self.begin(input, targets, loss, Mode::Train(update.at), scratch)?;
        let backward = gradient.is_some();
        if let Some(gradient) = &mut gradient {
            // Rows are gathered where they are needed in the end.
            std::mem::swap(*gradient, &mut scratch.rows);
            self.clear_gradient(scratch);
        }
        let totals = self.totals(tiles.all(), loss, targets, scratch);
        let mut value = shared_loss(&totals, input.len());
        let enough = if self.tile.is_some() { 0 } else { ENTRIES };
        while !tiles.is_done() {
            value += self.next_tile(&mut tiles, loss, &totals, backward, scratch);
            if !value.is_finite() {
                return Ok(value);
            }
            if tiles.is_done() || scratch.active.iter().map(|a| a.entries().len()).sum::<usize>() >= enough {
                self.take_few(input, backward, scratch);
                self.learn(&scratch.lines, &scratch.active, update);
                scratch.active.iter_mut().for_each(Active::clear);
            }
        }
        scratch.hardest.finish();
        if let Some(gradient) = gradient {
            self.backward(gradient, scratch)?;
        }
        self.rewire(update.at);
        self.tell_sampler(update.at, input, scratch)?;
        Ok(value)
    }

    fn collect(&self, n: usize, scratch: &mut SparseScratch) {
        scratch.hardest.collect(n);
    }

    /// Of a step that screens, among the outputs that are scored in full.
    fn collected<'s>(&self, scratch: &'s SparseScratch) -> &'s [u32] {
        scratch.hardest.labels()
    }

    fn logits(
        &self,
        input: &Activations,
        logits: &mut Activations,
        scratch: &mut SparseScratch,
    ) -> Result<(), StepError> {
        self.all_logits(input, logits, scratch);
        Ok(())
    }

    fn rank(
        &self,
        input: &Activations,
        truth: Option<(Targets<'_>, Loss)>,
        k: usize,
        scratch: &mut SparseScratch,
        out: &mut Ranked,
    ) -> Result<(), StepError> {
        self.ranked(input, truth, k, scratch, out);
        Ok(())
    }
}

/// The part of the mean loss that no single logit has.
fn shared_loss(totals: &[BlockTotals], n: usize) -> f64 {
    totals.iter().flat_map(|block| block.losses).sum::<f64>() / n as f64
}
