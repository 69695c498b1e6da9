//! Where a model's answers come out.

use std::ops::Range;
use xc_nn::Named;
use xc_nn::head::sparse::SparseScratch;
use xc_nn::head::{Dense, DenseScratch, Ranked, Sampled, SampledScratch, Sparse};
use xc_nn::optim::Moments;
use xc_nn::state::{Arrays, State, StateError, Visitor};
use xc_nn::{Activations, Head, Loss, Mode, Parameter, StepCost, StepError, Targets, Update};

/// The output layer.
#[derive(Clone, Debug)]
pub enum Output {
    /// Each label is connected with a few units.
    Sparse(Sparse),
    /// Each label is connected with all of them.
    Dense(Dense),
    /// The same, and a step scores some labels.
    Candidates(Sampled),
}

/// Buffers of any layer; those of the others stay empty.
#[derive(Default)]
pub struct OutputScratch {
    sparse: SparseScratch,
    dense: DenseScratch,
    candidates: SampledScratch,
}

macro_rules! delegate {
    ($self:ident, $inner:ident => $call:expr) => {
        match $self {
            Output::Sparse($inner) => $call,
            Output::Dense($inner) => $call,
            Output::Candidates($inner) => $call,
        }
    };
    ($self:ident, $scratch:ident, $inner:ident, $buffers:ident => $call:expr) => {
        match $self {
            Output::Sparse($inner) => {
                let $buffers = &mut $scratch.sparse;
                $call
            }
            Output::Dense($inner) => {
                let $buffers = &mut $scratch.dense;
                $call
            }
            Output::Candidates($inner) => {
                let $buffers = &mut $scratch.candidates;
                $call
            }
        }
    };
}

impl Output {
    /// Bias of each label, to be changed.
    pub fn bias_mut(&mut self) -> &mut [f32] {
        delegate!(self, inner => inner.bias_mut())
    }
}

impl Head for Output {
    type Input = Activations;
    type Scratch = OutputScratch;

    fn width(&self) -> usize {
        delegate!(self, inner => inner.width())
    }

    fn labels(&self) -> Range<u32> {
        delegate!(self, inner => inner.labels())
    }

    fn loss(
        &self,
        input: &Activations,
        targets: Targets<'_>,
        loss: Loss,
        mode: Mode,
        scratch: &mut OutputScratch,
    ) -> Result<f64, StepError> {
        delegate!(self, scratch, inner, buffers => inner.loss(input, targets, loss, mode, buffers))
    }

    fn backward(&self, gradient: &mut Activations, scratch: &mut OutputScratch) -> Result<(), StepError> {
        delegate!(self, scratch, inner, buffers => inner.backward(gradient, buffers))
    }

    fn squared_norm(&self, input: &Activations, scratch: &mut OutputScratch) -> Result<f64, StepError> {
        delegate!(self, scratch, inner, buffers => inner.squared_norm(input, buffers))
    }

    fn update(&mut self, input: &Activations, scratch: &mut OutputScratch, update: &Update) -> Result<(), StepError> {
        delegate!(self, scratch, inner, buffers => inner.update(input, buffers, update))
    }

    fn step(
        &mut self,
        input: &Activations,
        targets: Targets<'_>,
        loss: Loss,
        update: &Update,
        gradient: Option<&mut Activations>,
        scratch: &mut OutputScratch,
    ) -> Result<f64, StepError> {
        delegate!(self, scratch, inner, buffers => inner.step(input, targets, loss, update, gradient, buffers))
    }

    fn cost(&self, scratch: &OutputScratch) -> StepCost {
        match self {
            Output::Sparse(inner) => inner.cost(&scratch.sparse),
            Output::Dense(inner) => inner.cost(&scratch.dense),
            Output::Candidates(inner) => inner.cost(&scratch.candidates),
        }
    }

    fn collect(&self, n: usize, scratch: &mut OutputScratch) {
        delegate!(self, scratch, inner, buffers => inner.collect(n, buffers));
    }

    fn collected<'s>(&self, scratch: &'s OutputScratch) -> &'s [u32] {
        match self {
            Output::Sparse(inner) => inner.collected(&scratch.sparse),
            Output::Dense(inner) => inner.collected(&scratch.dense),
            Output::Candidates(inner) => inner.collected(&scratch.candidates),
        }
    }

    fn logits(
        &self,
        input: &Activations,
        logits: &mut Activations,
        scratch: &mut OutputScratch,
    ) -> Result<(), StepError> {
        delegate!(self, scratch, inner, buffers => inner.logits(input, logits, buffers))
    }

    fn rank(
        &self,
        input: &Activations,
        truth: Option<(Targets<'_>, Loss)>,
        k: usize,
        scratch: &mut OutputScratch,
        out: &mut Ranked,
    ) -> Result<(), StepError> {
        delegate!(self, scratch, inner, buffers => inner.rank(input, truth, k, buffers, out))
    }
}

impl State for Output {
    fn settings(&self) -> serde_json::Value {
        delegate!(self, inner => inner.settings())
    }

    fn parameters(&self) -> Vec<Named<&Parameter>> {
        delegate!(self, inner => inner.parameters())
    }

    fn parameters_mut(&mut self) -> Vec<Named<&mut Parameter>> {
        delegate!(self, inner => inner.parameters_mut())
    }

    fn n_values(&self) -> usize {
        delegate!(self, inner => inner.n_values())
    }

    fn prepare(&mut self, moments: Moments) {
        delegate!(self, inner => inner.prepare(moments));
    }

    fn visit(&self, f: &mut Visitor<'_>) -> Result<(), StateError> {
        delegate!(self, inner => inner.visit(f))
    }

    fn load(&mut self, from: &dyn Arrays) -> Result<(), StateError> {
        delegate!(self, inner => inner.load(from))
    }

    fn check_finite(&self) -> Result<(), StateError> {
        delegate!(self, inner => inner.check_finite())
    }
}
