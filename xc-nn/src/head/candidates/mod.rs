//! A row of weights a label; steps score the true labels and those that a sampler chooses.
//!
//! ```text
//!   lists shared   the batch's labels: their rows gathered      logits, gradients: three products     rows scattered back, changed
//!   lists own      pairs of a label and an instance, sorted     each row scored, then changed, once
//!   no sampler     all labels, the same products over the rows where they lie
//! ```
//!
//! Rows that no list names are not touched: moments are lazy (see [`crate::optim`]). Rows change in
//! the order of their labels, each by one task, so the bits do not depend on threads.
//!
//! Rows may be stored in bf16: they are widened to be read, and rounded stochastically when they
//! have changed, by bits that follow from seed, step and label.

mod own;
mod pairs;
mod rows;

use super::chosen::{Chosen, Remembered};
use super::tiled::{self, List, Pass, Table, TiledScratch, Truth};
use super::{Head, Ranked, RowScratch};
use crate::layer::{Leaves, Named};
use crate::loss::Corrections;
use crate::optim::Moments;
use crate::sampler::{Candidates, LabelWeights, Lists, Queries, Sampler};
use crate::state::{Arrays, State, StateError, Visitor, load_parameters, visit_parameters};
use crate::{Activations, Init, Loss, Mode, Parameter, Step, StepCost, StepError, Targets, Update};
use own::Own;
use pairs::Scoring;
use rows::Rows;
use serde::Serialize;
use serde_json::json;
use std::ops::Range;
use std::time::Instant;
use xc_buffer::FloatBuffer;
use xc_buffer::dtype::DType;
use xc_buffer::sums::Blocks;
use xc_dense::DenseRows;
use xc_dense::MatmulPrecision;
use xc_hash::stream::{Purpose, name};

/// What a [`Sampled`] head is, apart from its sizes and its sampler.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SampledParams {
    /// Type of the rows: f32 or bf16. Moments are f32.
    pub rows: DType,
    /// What products over shared lists and over all labels multiply.
    pub precision: MatmulPrecision,
    /// Whether a batch shares one list of candidates.
    pub lists: Lists,
}

impl Default for SampledParams {
    /// f32, one list for a batch.
    fn default() -> Self {
        Self { rows: DType::F32, precision: MatmulPrecision::F32, lists: Lists::Shared }
    }
}

/// A dense output layer whose steps score some labels.
#[derive(Clone, Debug)]
pub struct Sampled {
    params: SampledParams,
    init: Init,
    rows: Rows,
    sampler: Option<Box<dyn Sampler>>,
    /// Labels of a tile, if that is not left to the batch.
    tile: Option<usize>,
}

/// Which labels a step goes over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Scope {
    #[default]
    All,
    Shared,
    Own,
}

/// Buffers of a [`Sampled`] step.
#[derive(Default)]
pub struct SampledScratch {
    scope: Scope,
    tiled: TiledScratch,
    candidates: Candidates,
    union: Candidates,
    chosen: Chosen,
    /// Places of the true labels of each instance among the chosen ones.
    places: Vec<u32>,
    true_log_q: Vec<f32>,
    own: Own,
    remembered: Remembered,
    /// How far each label of the step moved, if the sampler wants to know.
    moved: Vec<f32>,
    ranks: RowScratch,
    cost: StepCost,
}

impl SampledScratch {
    /// The labels of the step, if they are not all.
    fn touched(&self) -> &[u32] {
        match self.scope {
            Scope::All => &[],
            Scope::Shared => self.chosen.labels(),
            Scope::Own => self.own.touched(),
        }
    }
}

impl Sampled {
    /// Number of this layer's random streams; far from those of the encoders' layers.
    const STREAM: u64 = 3 << 32;

    /// `n_labels` labels over vectors of `width`; first weights even, of variance 1/width.
    ///
    /// # Panics
    /// If rows are to be neither f32 nor bf16.
    pub fn new(n_labels: usize, width: usize, params: SampledParams, init: impl Into<Init>) -> Self {
        assert!(matches!(params.rows, DType::F32 | DType::Bf16), "rows of {}, expected f32 or bf16", params.rows);
        let init = init.into();
        let rows = Rows::first(n_labels, width, params.rows, init, Self::STREAM);
        Self { params, init, rows, sampler: None, tile: None }
    }

    /// Takes a layer that was learned: one row of weights a label, row after row.
    ///
    /// # Panics
    /// If there is not a row for each bias, or rows are of another type than `params` says.
    pub fn from_parts(weights: FloatBuffer, width: usize, bias: Parameter, params: SampledParams) -> Self {
        assert!(weights.dtype() == params.rows, "rows of {}, expected {}", weights.dtype(), params.rows);
        Self { params, init: Init::Zeros, rows: Rows::new(weights, width, bias), sampler: None, tile: None }
    }

    /// Lets each training step score the true labels and those that a sampler chooses, instead of
    /// all.
    pub fn with_sampler(mut self, sampler: Option<Box<dyn Sampler>>) -> Self {
        self.sampler = sampler;
        self
    }

    /// As [`Sampled::with_sampler`], in place.
    pub fn set_sampler(&mut self, sampler: Option<Box<dyn Sampler>>) {
        self.sampler = sampler;
    }

    /// Scores so many labels at a time (at least one), and changes them before it scores others;
    /// by default that is left to the sizes of batch and lists.
    pub fn with_tile(mut self, labels: usize) -> Self {
        self.tile = Some(labels.max(1));
        self
    }

    /// What it is.
    pub fn params(&self) -> &SampledParams {
        &self.params
    }

    /// Rows and biases.
    pub fn weights(&self) -> LabelWeights<'_> {
        self.rows.weights()
    }

    /// All rows, row after row, as they are stored.
    pub fn stored(&self) -> &FloatBuffer {
        self.rows.stored()
    }

    /// Bias of each label.
    pub fn bias(&self) -> &Parameter {
        self.rows.bias()
    }

    /// Bias of each label, to be changed.
    pub fn bias_mut(&mut self) -> &mut [f32] {
        self.rows.bias_mut().values_mut()
    }

    /// Bytes of a step's buffers, at most, for lists of `listed` labels in all; `None`: all labels.
    pub fn scratch_bytes(
        loss: Loss,
        batch: usize,
        width: usize,
        n_labels: usize,
        listed: Option<usize>,
        clips: bool,
    ) -> u64 {
        let kept = if clips { usize::MAX } else { tiled::kept(loss) };
        let n = listed.unwrap_or(n_labels).min(n_labels);
        let logits = batch.saturating_mul(n).min(kept) as u128;
        let gathered = n as u128 * width as u128;
        // Sums over leaves of labels, two a thread and one a level of the tree; ids and corrections.
        let all = 4 * (logits + gathered + 12 * batch as u128 * width as u128 + 8 * n as u128);
        u64::try_from(all).unwrap_or(u64::MAX)
    }

    fn order(&self) -> Blocks {
        Leaves::HEAD.outputs(self.rows.n())
    }

    /// Readies the buffers for a batch: chooses the labels.
    fn begin(
        &self,
        input: &Activations,
        targets: Targets<'_>,
        loss: Loss,
        mode: Mode,
        scratch: &mut SampledScratch,
    ) -> Result<(), StepError> {
        assert!(input.len() == targets.len(), "{} vectors, {} targets", input.len(), targets.len());
        assert!(input.width() == self.width(), "width {}, expected {}", input.width(), self.width());
        scratch.cost = StepCost::default();
        scratch.remembered.fill(targets);
        scratch.scope = Scope::All;
        scratch.tiled.hardest.begin(mode, input.len());
        if let (Mode::Train(at), Some(sampler)) = (mode, &self.sampler) {
            let began = Instant::now();
            self.choose(&**sampler, at, input, targets, loss, scratch)?;
            let mut sampling = *scratch.candidates.cost();
            // All that is neither hashing, searching nor checking is asking.
            let counted = sampling.hash + sampling.search + sampling.check;
            sampling.query = began.elapsed().saturating_sub(counted);
            scratch.cost.sampling = sampling;
        }
        let (n_rows, n_pairs) = match scratch.scope {
            Scope::All => (self.rows.n(), input.len() * self.rows.n()),
            Scope::Shared => (scratch.chosen.labels().len(), input.len() * scratch.chosen.labels().len()),
            Scope::Own => (scratch.own.touched().len(), scratch.own.n_pairs()),
        };
        (scratch.cost.n_read, scratch.cost.n_scored) = (n_rows as u64, n_pairs as u64);
        let wants = scratch.scope != Scope::All && self.sampler.as_ref().is_some_and(|sampler| sampler.wants_moved());
        scratch.moved.clear();
        scratch.moved.resize(if wants { n_rows } else { 0 }, 0.0);
        Ok(())
    }

    fn choose(
        &self,
        sampler: &dyn Sampler,
        at: Step,
        input: &Activations,
        targets: Targets<'_>,
        loss: Loss,
        scratch: &mut SampledScratch,
    ) -> Result<(), StepError> {
        let SampledScratch { scope, candidates, union, chosen, places, true_log_q, own, tiled, .. } = scratch;
        let vectors = DenseRows::new(input.values(), input.width());
        let queries = Queries { instances: targets.instances(), vectors, targets };
        let weights = Some(self.weights());
        candidates.clear();
        sampler.sample(at, queries, weights, self.labels(), candidates)?;
        let n_lists = candidates.len();
        if n_lists != 1 && n_lists != input.len() {
            let what = format!("{n_lists} lists of candidates, expected 1 or one for each of {}", input.len());
            return Err(StepError::new("candidate head", what));
        }
        let log_q = |list: usize, wanted: &[u32], out: &mut Vec<f32>| {
            sampler.log_q(at, queries, weights, self.labels(), list, wanted, out)
        };
        true_log_q.clear();
        if self.params.lists == Lists::Own {
            *scope = Scope::Own;
            if loss == Loss::Nce {
                let mut of_one = Vec::new();
                for i in 0..targets.len() {
                    log_q(i.min(n_lists - 1), targets.row(i), &mut of_one)?;
                    true_log_q.extend_from_slice(&of_one);
                }
            }
            own.fill(candidates, targets, true_log_q, loss, tiled.hardest.collects());
            return Ok(());
        }
        *scope = Scope::Shared;
        if n_lists > 1 {
            union.clear();
            union.push_union(candidates);
        }
        let list = if n_lists > 1 { union.list(0) } else { candidates.list(0) };
        chosen.fill(list, targets);
        if loss == Loss::Nce {
            if n_lists > 1 {
                let what = "nce with a list made of several, expected a sampler that gives one, or lists of their own";
                return Err(StepError::new("candidate head", what));
            }
            log_q(0, chosen.labels(), true_log_q)?;
        }
        places.clear();
        let labels = chosen.labels();
        for i in 0..targets.len() {
            let place = |label: &u32| labels.partition_point(|other| other < label) as u32;
            places.extend(targets.row(i).iter().map(place));
        }
        Ok(())
    }

    /// Names the random streams of rounding.
    fn key(update: &Update) -> u64 {
        name(update.at.seed, Purpose::Rounding, &[Self::STREAM, update.at.number])
    }

    /// A step over the pairs of own lists: rows are read once where the loss adds up over labels,
    /// else twice.
    fn step_own(
        &mut self,
        input: &Activations,
        loss: Loss,
        by: (&Update, u64),
        gradient: Option<&mut Activations>,
        scratch: &mut SampledScratch,
    ) -> f64 {
        let SampledScratch { own, moved, cost, tiled, .. } = scratch;
        let began = Instant::now();
        if loss.is_separable() {
            let value = own.learn(Scoring::Gradients(loss), &mut self.rows, input, by, gradient, moved);
            own.collect(&mut tiled.hardest);
            cost.backward = began.elapsed();
            return value;
        }
        let value = own.loss(self.rows.weights(), input, loss, &mut tiled.hardest);
        cost.score = began.elapsed();
        if value.is_finite() {
            own.learn(Scoring::Done, &mut self.rows, input, by, gradient, moved);
            cost.backward = began.elapsed() - cost.score;
        }
        value
    }

    /// Tells the sampler that a step is done.
    fn tell_sampler(&mut self, at: Step, input: &Activations, scratch: &mut SampledScratch) -> Result<(), StepError> {
        scratch.cost.n_written = scratch.cost.n_read;
        let (Some(sampler), true) = (&mut self.sampler, scratch.scope != Scope::All) else { return Ok(()) };
        let began = Instant::now();
        let targets = scratch.remembered.targets();
        let vectors = DenseRows::new(input.values(), input.width());
        let queries = Queries { instances: targets.instances(), vectors, targets };
        sampler.changed(at, queries, scratch.touched(), &scratch.moved, Some(self.rows.weights()))?;
        scratch.cost.upkeep = began.elapsed();
        Ok(())
    }
}

/// Calls `$body` with the pass of a step over labels in products, its table of rows and its
/// buffers.
macro_rules! pass {
    ($self:ident, $input:ident, $loss:expr, $scratch:ident, |$pass:ident, $tiled:ident, $moved:ident| $body:expr) => {{
        let SampledScratch { scope, chosen, places, true_log_q, remembered, tiled: $tiled, moved: $moved, .. } =
            &mut *$scratch;
        let truth = Truth::of(remembered.targets());
        let (list, truth, order) = match scope {
            Scope::Shared => {
                let true_log_q = (!true_log_q.is_empty()).then_some(&**true_log_q);
                let corrections = Corrections { weight: chosen.weight(), log_q: chosen.log_q(), true_log_q };
                let list = List { labels: chosen.labels(), corrections };
                (Some(list), Truth { places, ..truth }, Leaves::HEAD.outputs(list.labels.len()))
            }
            _ => (None, truth, $self.order()),
        };
        let (loss, precision, rows) = ($loss, $self.params.precision, Blocks::whole($input.len()));
        let tile = $self.tile.unwrap_or(tiled::TILE);
        let $pass = Pass { input: $input, truth, list, loss, precision, order, rows, tile };
        $body
    }};
}

impl Head for Sampled {
    type Input = Activations;
    type Scratch = SampledScratch;

    fn width(&self) -> usize {
        self.rows.width()
    }

    fn labels(&self) -> Range<u32> {
        0..self.rows.n() as u32
    }

    /// # Panics
    /// If shapes disagree.
    fn loss(
        &self,
        input: &Activations,
        targets: Targets<'_>,
        loss: Loss,
        mode: Mode,
        scratch: &mut SampledScratch,
    ) -> Result<f64, StepError> {
        self.begin(input, targets, loss, mode, scratch)?;
        let began = Instant::now();
        let value = match scratch.scope {
            Scope::Own => scratch.own.loss(self.weights(), input, loss, &mut scratch.tiled.hardest),
            _ => pass!(self, input, loss, scratch, |pass, tiled, _moved| pass.loss(self.weights(), tiled)),
        };
        scratch.cost.score = began.elapsed();
        Ok(value)
    }

    fn backward(&self, gradient: &mut Activations, scratch: &mut SampledScratch) -> Result<(), StepError> {
        let began = Instant::now();
        match scratch.scope {
            Scope::Own => scratch.own.backward(self.weights(), gradient),
            _ => {
                // Neither input nor loss matter here.
                let input = Activations::default();
                let input = &input;
                pass!(self, input, Loss::Bce, scratch, |pass, tiled, _moved| pass.backward(
                    self.weights(),
                    gradient,
                    tiled
                ));
            }
        }
        scratch.cost.backward += began.elapsed();
        Ok(())
    }

    fn squared_norm(&self, input: &Activations, scratch: &mut SampledScratch) -> Result<f64, StepError> {
        Ok(match scratch.scope {
            Scope::Own => scratch.own.squared_norm(input),
            _ => pass!(self, input, Loss::Bce, scratch, |pass, tiled, _moved| pass.squared_norm(tiled)),
        })
    }

    fn update(&mut self, input: &Activations, scratch: &mut SampledScratch, update: &Update) -> Result<(), StepError> {
        let (began, key) = (Instant::now(), Self::key(update));
        match scratch.scope {
            Scope::Own => {
                let SampledScratch { own, moved, .. } = &mut *scratch;
                own.learn(Scoring::Done, &mut self.rows, input, (update, key), None, moved);
            }
            _ => pass!(self, input, Loss::Bce, scratch, |pass, tiled, moved| pass.update(
                &mut self.rows,
                update,
                key,
                moved,
                tiled
            )),
        }
        scratch.cost.backward += began.elapsed();
        self.tell_sampler(update.at, input, scratch)
    }

    /// Where the logits of a batch would fill the caches and more, in tiles of labels: the loss may
    /// then differ in its last bits from that of the phases, and a softmax's gradient does.
    ///
    /// # Panics
    /// If shapes disagree.
    fn step(
        &mut self,
        input: &Activations,
        targets: Targets<'_>,
        loss: Loss,
        update: &Update,
        gradient: Option<&mut Activations>,
        scratch: &mut SampledScratch,
    ) -> Result<f64, StepError> {
        self.begin(input, targets, loss, Mode::Train(update.at), scratch)?;
        let (began, n_rows) = (Instant::now(), scratch.cost.n_read as usize);
        let key = Self::key(update);
        if scratch.scope == Scope::Own {
            let value = self.step_own(input, loss, (update, key), gradient, scratch);
            if value.is_finite() {
                self.tell_sampler(update.at, input, scratch)?;
            }
            return Ok(value);
        }
        if self.tile.is_some() || tiled::pays(loss, input.len(), n_rows) {
            let value = pass!(self, input, loss, scratch, |pass, tiled, moved| {
                pass.step(&mut self.rows, update, key, gradient, moved, tiled)
            });
            scratch.cost.backward = began.elapsed();
            self.tell_sampler(update.at, input, scratch)?;
            return Ok(value);
        }
        let value = pass!(self, input, loss, scratch, |pass, tiled, _moved| pass.loss(self.weights(), tiled));
        scratch.cost.score = began.elapsed();
        if value.is_finite() {
            if let Some(gradient) = gradient {
                self.backward(gradient, scratch)?;
            }
            self.update(input, scratch, update)?;
        }
        Ok(value)
    }

    fn cost(&self, scratch: &SampledScratch) -> StepCost {
        scratch.cost
    }

    fn collect(&self, n: usize, scratch: &mut SampledScratch) {
        scratch.tiled.hardest.collect(n);
    }

    fn collected<'s>(&self, scratch: &'s SampledScratch) -> &'s [u32] {
        scratch.tiled.hardest.labels()
    }

    fn logits(
        &self,
        input: &Activations,
        logits: &mut Activations,
        scratch: &mut SampledScratch,
    ) -> Result<(), StepError> {
        tiled::logits(self.weights(), input, self.params.precision, &mut scratch.tiled, logits);
        Ok(())
    }

    fn rank(
        &self,
        input: &Activations,
        truth: Option<(Targets<'_>, Loss)>,
        k: usize,
        scratch: &mut SampledScratch,
        out: &mut Ranked,
    ) -> Result<(), StepError> {
        let SampledScratch { tiled, ranks, .. } = scratch;
        tiled::rank(self.weights(), input, truth, k, self.params.precision, tiled, ranks, out);
        Ok(())
    }
}

impl State for Sampled {
    fn settings(&self) -> serde_json::Value {
        json!({
            "sampled": [self.rows.n(), self.rows.width()],
            "params": self.params,
            "init": self.init,
            "sampler": self.sampler.as_ref().map(|sampler| sampler.settings()),
            "tile": self.tile,
        })
    }

    /// The biases; the rows are among the arrays.
    fn parameters(&self) -> Vec<Named<&Parameter>> {
        vec![self.rows.named_bias()]
    }

    fn parameters_mut(&mut self) -> Vec<Named<&mut Parameter>> {
        vec![self.rows.named_bias_mut()]
    }

    fn n_values(&self) -> usize {
        self.rows.n() * (self.rows.width() + 1)
    }

    fn prepare(&mut self, moments: Moments) {
        self.rows.prepare(moments);
    }

    fn visit(&self, f: &mut Visitor<'_>) -> Result<(), StateError> {
        visit_parameters(self.parameters(), f)?;
        self.rows.visit(f)?;
        self.sampler.as_ref().map_or(Ok(()), |sampler| sampler.visit(f))
    }

    fn load(&mut self, from: &dyn Arrays) -> Result<(), StateError> {
        load_parameters(self.parameters_mut(), from)?;
        self.rows.load(from)?;
        self.sampler.as_mut().map_or(Ok(()), |sampler| sampler.load(from))
    }

    fn check_finite(&self) -> Result<(), StateError> {
        self.rows.check_finite()
    }
}
