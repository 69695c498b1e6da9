//! Every output is connected with a few inputs (schultheis2023uniform).
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
//! The logits of a batch never exist, nor does a gradient or an f32 copy of all weights. Memory beside the layer: the batch's inputs
//! and their gradients (11 bytes for each of `batch x H`), and the gradients that are not 0 of a tile or a few.
//!
//! # Implicit negatives
//! The squared hinge has no gradient where an output is right by a margin, which nearly all are: those cost the forward product alone
//! (section 3.3 of the paper). Binary cross-entropy has a gradient everywhere.
//!
//! # Screening
//! [`Sparse::with_screening`] makes that product cheaper: 8 bits tell which outputs may be within the margin for some of 32 instances, and those are scored as
//! ever.

mod active;
mod learn;
mod negatives;
mod pass;
mod rank;
mod screening;

pub use negatives::{Negatives, UniformNegatives};
pub use screening::Screening;

use super::{Head, Ranked};
use crate::layer::Named;
use crate::state::{self, Array, ArrayMut, Role, State};
use crate::{Activations, Decay, Init, Loss, Mode, Parameter, Step, StepError, Targets, Update};
use active::{Active, Positives};
use rank::BlockTotals;
use rayon::prelude::*;
use screening::tiles_without;
use std::ops::Range;
use std::sync::Arc;
use xc_hash::stream::{Purpose, Stream, mix, name};
use xc_sparse::store::{Dtype, Element};
use xc_sparse::uniform::{
    ByteLines, Connections, ConnectionsError, FanIn, Indices, LANES, Lines, NumberType, Numbers, Pages, Rewired,
    ScreenRows, Sums, check_shape, distinct,
};

/// Connections that come and go while training (SET).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rewire {
    /// Steps between two changes.
    pub every: u64,
    /// Share of all connections, the weakest, that are replaced.
    pub fraction: f64,
}

/// What a sparse head is, beside its sizes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SparseParams {
    /// Connections of an output: exactly so many, or so many on average.
    pub per_output: usize,
    /// Whether all outputs have equally many.
    pub uniform: bool,
    /// Type of the weights.
    pub weights: NumberType,
    /// Type of an optimiser's moments: f32 or bf16.
    pub moments: NumberType,
    /// Changes of the connections; none: they stay.
    pub rewire: Option<Rewire>,
}

/// A sparse output layer.
#[derive(Clone, Debug)]
pub struct Sparse {
    params: SparseParams,
    connections: Connections,
    bias: Parameter,
    moments: Vec<Numbers>,
    negatives: Option<Arc<dyn Negatives>>,
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
    /// Gradient of the inputs: for each block of instances, one line an input. What it is before the first output with many instances of the block
    /// does not matter.
    gradient: Pages<Sums>,
    /// The same, one row an instance, of the outputs that few instances of a block have a gradient for: the two are added.
    rows: Activations,
    positives: Vec<Positives>,
    active: Vec<Active>,
    n_instances: usize,
}

impl SparseScratch {
    /// Sorts the true outputs of each block of the lines.
    fn fill_positives(&mut self, targets: Targets<'_>) {
        self.positives.resize_with(self.lines.n_blocks(), Positives::default);
        self.positives.par_iter_mut().enumerate().for_each(|(block, positives)| positives.fill(targets, block));
    }
}

/// Outputs that a step works on: all from one on, or those of a list.
#[derive(Clone, Copy, Debug)]
enum Tile<'a> {
    Range { first: usize, len: usize },
    List(&'a [u32]),
}

impl Tile<'_> {
    fn len(self) -> usize {
        match self {
            Self::Range { len, .. } => len,
            Self::List(outputs) => outputs.len(),
        }
    }

    /// At most `len` outputs from a place on.
    fn part(self, at: usize, len: usize) -> Self {
        let len = len.min(self.len() - at);
        match self {
            Self::Range { first, .. } => Self::Range { first: first + at, len },
            Self::List(outputs) => Self::List(&outputs[at..at + len]),
        }
    }

    #[inline(always)]
    fn output(self, at: usize) -> usize {
        match self {
            Self::Range { first, .. } => first + at,
            Self::List(outputs) => outputs[at] as usize,
        }
    }
}

/// The tiles that a step goes over, one after another.
struct Tiles {
    /// The outputs of the step, if they are not all.
    outputs: Option<Vec<u32>>,
    n: usize,
    /// Outputs of a tile.
    size: usize,
    first: usize,
    /// Whether any tile is screened.
    screens: bool,
    /// Tiles that do without screening from here on.
    without: usize,
}

impl Tiles {
    fn all(&self) -> Tile<'_> {
        match &self.outputs {
            None => Tile::Range { first: 0, len: self.n },
            Some(outputs) => Tile::List(outputs),
        }
    }

    /// Whether all of them were given.
    fn is_done(&self) -> bool {
        self.first >= self.n
    }
}

/// Number of this layer's random streams; far from those of the encoders' layers.
const STREAM: u64 = 2 << 32;
/// Gradients of a tile, at most: with all of them not 0 they take four bytes each.
const TILE_VALUES: usize = 8 << 20;
/// Outputs change once so many (output, block) pairs have a gradient, or when all outputs were scored: the more at a time, the more outputs an
/// instance's row serves while it is in the cache.
const ENTRIES: usize = 1 << 17;
/// Outputs of a tile, at most: their indices and weights should stay in the last-level cache while the blocks pass.
const TILE_OUTPUTS: usize = 1 << 16;

impl Sparse {
    /// `n_outputs` outputs over vectors of `width`; connections drawn evenly, first weights even, of variance 1 / connections.
    ///
    /// # Errors
    /// More connections than inputs, or none.
    ///
    /// # Panics
    /// If moments are neither f32 nor bf16.
    pub fn new(n_outputs: usize, width: usize, params: SparseParams, first: Init) -> Result<Self, ConnectionsError> {
        assert!(matches!(params.moments, NumberType::F32 | NumberType::Bf16), "moments of {:?}", params.moments);
        let per_output = params.per_output;
        let seed = match first {
            Init::Random { seed } => seed,
            Init::Zeros => 0,
        };
        let random = |output: usize| {
            let mut stream = Stream::new(name(seed, Purpose::Connections, &[STREAM, output as u64]));
            move || stream.next_u64()
        };
        check_shape(width, per_output)?;
        let mut connections = match params.uniform {
            true => Connections::uniform(n_outputs, width, per_output, params.weights, |output, row| {
                *row = distinct(per_output, width, Vec::new().into_iter(), &mut random(output));
            })?,
            false => unstructured(n_outputs, width, &params, &random)?,
        };
        if let Init::Random { seed } = first {
            let bound = (3.0 / per_output as f32).sqrt();
            // A row at a time: the weights of a low precision never exist in f32.
            let (mut output, mut row) = (0, Vec::new());
            let mut end = 0;
            let values = (0..connections.len()).map(|at| {
                while at == end {
                    let len = connections.range(output).len();
                    row.resize(len, 0.0);
                    let path = [STREAM, output as u64];
                    Stream::new(name(seed, Purpose::Init, &path)).fill_uniform(bound, &mut row);
                    (output, end) = (output + 1, end + len);
                }
                row[at + row.len() - end]
            });
            let weights = Numbers::nearest(params.weights, values);
            *connections.weights_mut() = weights;
        }
        Ok(Self::from_parts(params, connections, Parameter::zeros(n_outputs, 1, Decay::No)))
    }

    /// Takes a layer that was learned.
    ///
    /// # Panics
    /// If there is not one bias an output.
    pub fn from_parts(params: SparseParams, connections: Connections, bias: Parameter) -> Self {
        assert!(bias.values().len() == connections.n_labels(), "{} biases", bias.values().len());
        Self {
            params,
            connections,
            bias,
            moments: Vec::new(),
            negatives: None,
            screening: Screening::Never,
            tile: None,
        }
    }

    /// Lets each training step score the true outputs of its batch and those drawn here, instead of all.
    pub fn with_negatives(mut self, negatives: Option<Arc<dyn Negatives>>) -> Self {
        self.negatives = negatives;
        self
    }

    /// Lets steps screen outputs before they score them. Pairs of an instance and an output that are scored have the loss and the gradient that they
    /// have without it; a pair that screening overlooks has none (see [`xc_sparse::uniform::ByteLines`] for how far above the margin its score may
    /// be). Only training steps screen, and only with a loss that has a margin.
    pub fn with_screening(mut self, screening: Screening) -> Self {
        self.screening = screening;
        self
    }

    /// Scores so many outputs at a time (at least one), and changes them before it scores others; by default as many are scored as the caches and
    /// 32 MB of gradients allow, and outputs change once enough of them have a gradient. Only the order in which losses are added depends on it, and with
    /// screening which tiles do without.
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

    /// Bytes of connections, biases and moments for a training.
    pub fn n_bytes(n_outputs: u64, width: usize, params: &SparseParams, n_moments: usize) -> u64 {
        let connection = Indices::bytes_each(width) + params.weights.bytes() + n_moments * params.moments.bytes();
        let starts = if params.uniform { 0 } else { 8 };
        n_outputs * (params.per_output as u64 * connection as u64 + 4 * (1 + n_moments as u64) + starts)
    }

    /// Bytes of a step's buffers, at most, when every gradient of a tile is other than 0; where gradients are clipped the tile is all outputs. The
    /// gradient of the inputs that the caller gets is not among them. `screens`: see [`Screening`].
    pub fn scratch_bytes(
        n_outputs: u64,
        width: usize,
        per_output: usize,
        batch: usize,
        clips: bool,
        screens: bool,
    ) -> u64 {
        let blocks = batch.div_ceil(LANES) as u64;
        let inputs = blocks * LANES as u64 * width as u64 * if clips { 10 } else { 6 };
        let outputs = tile_outputs(batch) as u64;
        let tile = outputs * blocks;
        let screen = if screens {
            ByteLines::bytes(batch, width) + outputs.min(n_outputs) * ScreenRows::bytes_each(per_output)
        } else {
            0
        };
        let entries = if clips { n_outputs * blocks } else { (n_outputs * blocks).min(tile + ENTRIES as u64) };
        // An entry, its place among those of its output while they are sorted, and the gradients of all instances, or of few with the sums of the weights.
        inputs + screen + entries * (56 + (4 * LANES as u64).max(96 + 4 * per_output as u64))
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
                    *moment = Numbers::nearest(moment.number_type(), source.iter().map(old));
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
    ) -> Tiles {
        assert!(input.len() == targets.len(), "{} vectors, {} targets", input.len(), targets.len());
        assert!(input.width() == self.width(), "width {}, expected {}", input.width(), self.width());
        scratch.n_instances = input.len();
        scratch.lines.fill(input.values(), input.len(), input.width());
        scratch.fill_positives(targets);
        scratch.active.resize_with(scratch.lines.n_blocks(), Active::default);
        scratch.active.iter_mut().for_each(Active::begin);
        let n_labels = self.connections.n_labels();
        let outputs = match (&self.negatives, mode) {
            (Some(negatives), Mode::Train(at)) => {
                let mut outputs = Vec::new();
                negatives.draw(at, n_labels, &mut outputs);
                (0..targets.len()).for_each(|i| outputs.extend_from_slice(targets.row(i)));
                outputs.sort_unstable();
                outputs.dedup();
                Some(outputs)
            }
            _ => None,
        };
        let n = outputs.as_ref().map_or(n_labels, Vec::len);
        let screens = mode != Mode::Predict && self.screens(loss, n, input.len());
        if screens {
            scratch.bytes.fill(input.values(), input.len(), input.width());
        }
        let mut size = self.tile.unwrap_or_else(|| tile_outputs(input.len()));
        if screens && self.tile.is_none() {
            size = size.min(n.div_ceil(screening::TILES)).max(1);
        }
        Tiles { outputs, n, size, first: 0, screens, without: 0 }
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
        let tile = tiles.all().part(tiles.first, tiles.size);
        let len = tile.len();
        let screens = tiles.screens && tiles.without == 0;
        let value = self.pass(tile, loss, totals, backward, screens, scratch);
        tiles.first += len;
        // A step decides for itself, so that one that is repeated after an interruption decides the same.
        tiles.without = if screens {
            tiles_without(scratch.n_seen, len * scratch.lines.n_blocks())
        } else {
            tiles.without.saturating_sub(1)
        };
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

/// As many connections as in the uniform form, anywhere: each output gets a random number of them.
fn unstructured<R: FnMut() -> u64>(
    n_outputs: usize,
    n_inputs: usize,
    params: &SparseParams,
    random: &impl Fn(usize) -> R,
) -> Result<Connections, ConnectionsError> {
    let mut counts = vec![0u64; n_outputs];
    let mut choose = random(n_outputs);
    let mut left = n_outputs * params.per_output;
    while left > 0 {
        let output = ((u128::from(choose()) * n_outputs as u128) >> 64) as usize;
        if counts[output] < n_inputs as u64 {
            counts[output] += 1;
            left -= 1;
        }
    }
    let mut starts = vec![0u64];
    let mut inputs = Vec::with_capacity(n_outputs * params.per_output);
    for (output, &count) in counts.iter().enumerate() {
        inputs.extend(distinct(count as usize, n_inputs, Vec::new().into_iter(), &mut random(output)));
        starts.push(inputs.len() as u64);
    }
    let weights = Numbers::zeros(params.weights, inputs.len());
    let indices = Indices::new(n_inputs, inputs.into_iter());
    Connections::from_parts(n_outputs, n_inputs, FanIn::Varying(starts.into()), indices, weights)
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
        let mut tiles = self.begin(input, targets, loss, mode, scratch);
        self.clear_gradient(scratch);
        let totals = self.totals(tiles.all(), loss, targets, scratch);
        let mut value = shared_loss(&totals, input.len());
        while !tiles.is_done() {
            value += self.next_tile(&mut tiles, loss, &totals, true, scratch);
        }
        self.take_few(input, true, scratch);
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

    fn update(&mut self, _: &Activations, scratch: &mut SparseScratch, update: &Update) -> Result<(), StepError> {
        self.learn(&scratch.lines, &scratch.active, update);
        self.rewire(update.at);
        Ok(())
    }

    /// Fused, a tile of outputs at a time. With negatives only the outputs drawn are scored and change.
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
        let mut tiles = self.begin(input, targets, loss, Mode::Train(update.at), scratch);
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
        if let Some(gradient) = gradient {
            self.backward(gradient, scratch)?;
        }
        self.rewire(update.at);
        Ok(value)
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
        judged_by: Option<(Targets<'_>, Loss)>,
        k: usize,
        scratch: &mut SparseScratch,
    ) -> Result<Vec<Ranked>, StepError> {
        Ok(self.ranked(input, judged_by, k, scratch))
    }
}

/// The part of the mean loss that no single logit has.
fn shared_loss(totals: &[BlockTotals], n: usize) -> f64 {
    totals.iter().flat_map(|block| block.losses).sum::<f64>() / n as f64
}

impl State for Sparse {
    fn settings(&self) -> String {
        let negatives = self.negatives.as_ref().map(|n| n.settings());
        let screening = match self.screening {
            // As it read before there was any: keys of older checkpoints still hold.
            Screening::Never => String::new(),
            screening => format!("; screening {screening:?}, tile {:?}", self.tile),
        };
        // The number changes when sums come in another order: a training goes on with what it began with.
        format!(
            "sparse {} x {}; {:?}; {negatives:?}; order 2{screening}",
            self.connections.n_labels(),
            self.width(),
            self.params
        )
    }

    /// The biases; connections and weights are among the arrays.
    fn parameters(&self) -> Vec<Named<&Parameter>> {
        vec![Named { name: "head.bias".to_owned(), parameter: &self.bias }]
    }

    fn parameters_mut(&mut self) -> Vec<Named<&mut Parameter>> {
        vec![Named { name: "head.bias".to_owned(), parameter: &mut self.bias }]
    }

    fn n_values(&self) -> usize {
        self.connections.len() + self.connections.n_labels()
    }

    fn prepare(&mut self, n_moments: usize) {
        self.bias.prepare(n_moments);
        let (of, len) = (self.params.moments, self.connections.len());
        self.moments.resize_with(n_moments, || Numbers::zeros(of, len));
    }

    fn arrays(&self) -> Vec<Array<'_>> {
        let shape = shape(&self.connections);
        let mut out = state::arrays_of(self.parameters());
        if let FanIn::Varying(starts) = self.connections.fan_in() {
            out.push(Array::new("head.starts", Role::Values, [starts.len(), 1], starts));
        }
        let indices = self.connections.indices();
        out.push(Array {
            name: "head.indices".into(),
            role: Role::Values,
            dtype: dtype(indices),
            shape,
            bytes: indices.bytes(),
        });
        let of = |name: String, role, numbers| numbers_array(name, role, shape, numbers);
        out.push(of("head.weights".into(), Role::Values, self.connections.weights()));
        out.extend(self.moments.iter().enumerate().map(|(i, m)| of(format!("head.weights.m{i}"), Role::Moments, m)));
        out
    }

    fn arrays_mut(&mut self) -> Vec<ArrayMut<'_>> {
        let shape = shape(&self.connections);
        let (bias, connections) = (&mut self.bias, &mut self.connections);
        let mut out = state::arrays_mut_of([Named { name: "head.bias".to_owned(), parameter: bias }]);
        let (fan_in, indices, weights) = connections.all_mut();
        if let FanIn::Varying(starts) = fan_in {
            let starts = starts.to_mut();
            out.push(ArrayMut::new("head.starts", Role::Values, [starts.len(), 1], starts));
        }
        let role = Role::Values;
        out.push(ArrayMut {
            name: "head.indices".into(),
            role,
            dtype: dtype(indices),
            shape,
            bytes: indices.bytes_mut(),
        });
        out.push(numbers_array_mut("head.weights".into(), role, shape, weights));
        for (i, moment) in self.moments.iter_mut().enumerate() {
            out.push(numbers_array_mut(format!("head.weights.m{i}"), Role::Moments, shape, moment));
        }
        out
    }

    fn overwritten(&mut self) -> Result<(), String> {
        self.connections.check().map_err(|e| e.to_string())
    }

    fn is_finite(&self) -> bool {
        self.bias.values().iter().all(|v| v.is_finite()) && self.connections.weights().not_finite().is_none()
    }
}

fn shape(connections: &Connections) -> [usize; 2] {
    match connections.fan_in() {
        FanIn::Uniform(per_output) => [connections.n_labels(), *per_output],
        FanIn::Varying(_) => [connections.len(), 1],
    }
}

fn dtype(indices: &Indices) -> Dtype {
    match indices {
        Indices::U16(_) => u16::DTYPE,
        Indices::U32(_) => u32::DTYPE,
    }
}

fn numbers_array(name: String, role: Role, shape: [usize; 2], numbers: &Numbers) -> Array<'_> {
    Array { name, role, dtype: numbers.number_type().dtype(), shape, bytes: numbers.bytes() }
}

fn numbers_array_mut(name: String, role: Role, shape: [usize; 2], numbers: &mut Numbers) -> ArrayMut<'_> {
    ArrayMut { name, role, dtype: numbers.number_type().dtype(), shape, bytes: numbers.bytes_mut() }
}
