//! An auxiliary task for the first part of a training: groups of outputs, of which each instance should find those that its outputs are in.
//!
//! ```text
//!   input ──▶ main head ──▶ loss over outputs ──────────────────┐
//!         └─▶ group head ─▶ loss over groups ──▶ weight(step) ──┴─▶ gradient of the input
//! ```
//!
//! A sparse output layer sends back a gradient through few connections, most of them of outputs that are rarely true: at first the layers below
//! learn from noise. Groups of alike outputs are true often, and are easy to tell apart; their loss shapes the layers below until the outputs
//! have found their connections, and fades out (spartex2024). What is answered never depends on the groups.

use super::sparse::{SparseParams, SparseScratch};
use super::{Head, Ranked, Sparse};
use crate::layer::Named;
use crate::state::{Array, ArrayMut, State};
use crate::{Activations, Init, Loss, Mode, Parameter, StepError, Targets, Update};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Arc;
use xc_hash::stream::mix;
use xc_sparse::uniform::{ConnectionsError, NumberType};

/// Groups of outputs, and how long they matter.
#[derive(Clone, Debug, PartialEq)]
pub struct Groups {
    /// The group of each output.
    pub of: Arc<[u32]>,
    /// Number of groups.
    pub n: usize,
    /// Connections of a group with the layer below, at most its width.
    pub connections: usize,
    /// Weight of their loss at the first step.
    pub weight: f32,
    /// Steps after which the weight, which falls evenly, is 0.
    pub steps: u64,
}

impl Groups {
    /// Weight of the loss over groups at a step.
    pub fn weight_at(&self, step: u64) -> f32 {
        if step >= self.steps { 0.0 } else { self.weight * (1.0 - step as f32 / self.steps as f32) }
    }
}

/// What a group head of so many connections is, over vectors of `width`.
pub fn head_params(connections: usize, width: usize) -> SparseParams {
    SparseParams {
        per_output: connections.min(width),
        uniform: true,
        weights: NumberType::F32,
        moments: NumberType::F32,
        rewire: None,
    }
}

/// A head that learns beside groups of its outputs.
#[derive(Clone, Debug)]
pub struct Grouped<H> {
    main: H,
    groups: Groups,
    head: Sparse,
}

/// Buffers of a [`Grouped`] step.
pub struct GroupedScratch<W> {
    main: W,
    head: SparseScratch,
    gradient: Activations,
    targets: GroupTargets,
}

impl<W: Default> Default for GroupedScratch<W> {
    fn default() -> Self {
        Self {
            main: W::default(),
            head: SparseScratch::default(),
            gradient: Activations::default(),
            targets: GroupTargets::default(),
        }
    }
}

/// The groups that are true of each instance.
#[derive(Default)]
struct GroupTargets {
    ptr: Vec<u32>,
    groups: Vec<u32>,
}

impl GroupTargets {
    fn fill(&mut self, targets: Targets<'_>, of: &[u32]) {
        self.ptr.clear();
        self.ptr.push(0);
        self.groups.clear();
        let mut row = Vec::new();
        for i in 0..targets.len() {
            row.clear();
            row.extend(targets.row(i).iter().map(|&output| of[output as usize]));
            row.sort_unstable();
            row.dedup();
            self.groups.extend_from_slice(&row);
            self.ptr.push(self.groups.len() as u32);
        }
    }
}

impl<H: Head> Grouped<H> {
    /// Puts groups beside a head. The group head's first values come from `first`, of streams of their own.
    ///
    /// # Errors
    /// No connections.
    ///
    /// # Panics
    /// If there is not a group for each output, or one is not below `groups.n`.
    pub fn new(main: H, groups: Groups, first: Init) -> Result<Self, ConnectionsError> {
        assert!(
            groups.of.len() == main.labels().len(),
            "{} outputs in groups, wanted {}",
            groups.of.len(),
            main.labels().len()
        );
        assert!(groups.of.iter().all(|&g| (g as usize) < groups.n), "a group is not below {}", groups.n);
        let first = match first {
            Init::Random { seed } => Init::Random { seed: mix(seed, GROUPS) },
            Init::Zeros => Init::Zeros,
        };
        let head = Sparse::new(groups.n, main.width(), head_params(groups.connections, main.width()), first)?;
        Ok(Self { main, groups, head })
    }

    /// The head alone.
    pub fn into_main(self) -> H {
        self.main
    }
}

/// Tells the group head's streams from those of the main head.
const GROUPS: u64 = 0x6772_6f75_7073;

/// The array names of the group head.
fn renamed(name: &str) -> String {
    format!("groups.{}", name.strip_prefix("head.").unwrap_or(name))
}

impl<H: Head<Input = Activations>> Head for Grouped<H> {
    type Input = Activations;
    type Scratch = GroupedScratch<H::Scratch>;

    fn width(&self) -> usize {
        self.main.width()
    }

    fn labels(&self) -> Range<u32> {
        self.main.labels()
    }

    /// Of the main head alone: this judges.
    fn loss(
        &self,
        input: &Activations,
        targets: Targets<'_>,
        loss: Loss,
        mode: Mode,
        room: &mut Self::Scratch,
    ) -> Result<f64, StepError> {
        self.main.loss(input, targets, loss, mode, &mut room.main)
    }

    /// Of the main head alone; only [`Head::step`] learns groups.
    fn backward(&self, gradient: &mut Activations, room: &mut Self::Scratch) -> Result<(), StepError> {
        self.main.backward(gradient, &mut room.main)
    }

    fn squared_norm(&self, input: &Activations, room: &mut Self::Scratch) -> Result<f64, StepError> {
        self.main.squared_norm(input, &mut room.main)
    }

    fn update(&mut self, input: &Activations, room: &mut Self::Scratch, update: &Update) -> Result<(), StepError> {
        self.main.update(input, &mut room.main, update)
    }

    /// The loss given is the sum of both, that over groups by its weight.
    fn step(
        &mut self,
        input: &Activations,
        targets: Targets<'_>,
        loss: Loss,
        update: &Update,
        mut gradient: Option<&mut Activations>,
        room: &mut Self::Scratch,
    ) -> Result<f64, StepError> {
        let met = self.main.step(input, targets, loss, update, gradient.as_deref_mut(), &mut room.main)?;
        let weight = self.groups.weight_at(update.at.number);
        if weight == 0.0 || !met.is_finite() {
            return Ok(met);
        }
        room.targets.fill(targets, &self.groups.of);
        let targets = Targets::new(&room.targets.ptr, &room.targets.groups);
        let wanted = gradient.is_some().then_some(&mut room.gradient);
        let of_groups = self.head.step(input, targets, loss, update, wanted, &mut room.head)?;
        if let Some(gradient) = gradient {
            let parts = gradient.values_mut().par_chunks_mut(PART).zip(room.gradient.values().par_chunks(PART));
            parts.for_each(|(to, from)| to.iter_mut().zip(from).for_each(|(to, &from)| *to += weight * from));
        }
        Ok(met + f64::from(weight) * of_groups)
    }

    fn logits(&self, input: &Activations, logits: &mut Activations, room: &mut Self::Scratch) -> Result<(), StepError> {
        self.main.logits(input, logits, &mut room.main)
    }

    fn rank(
        &self,
        input: &Activations,
        judged_by: Option<(Targets<'_>, Loss)>,
        k: usize,
        room: &mut Self::Scratch,
    ) -> Result<Vec<Ranked>, StepError> {
        self.main.rank(input, judged_by, k, &mut room.main)
    }
}

impl<H: Head> State for Grouped<H> {
    fn settings(&self) -> String {
        let Groups { of, n, connections, weight, steps } = &self.groups;
        let which = of.iter().fold(*n as u64, |key, &group| mix(key, u64::from(group)));
        format!(
            "{}; {n} groups ({which:016x}) of {connections} connections, weight {weight} to 0 in {steps} steps",
            self.main.settings()
        )
    }

    fn parameters(&self) -> Vec<Named<&Parameter>> {
        self.main.parameters()
    }

    fn parameters_mut(&mut self) -> Vec<Named<&mut Parameter>> {
        self.main.parameters_mut()
    }

    /// Of the main head alone: the others go when the training ends.
    fn n_values(&self) -> usize {
        self.main.n_values()
    }

    fn prepare(&mut self, n_moments: usize) {
        self.main.prepare(n_moments);
        self.head.prepare(n_moments);
    }

    fn arrays(&self) -> Vec<Array<'_>> {
        let own = self.head.arrays().into_iter().map(|array| Array { name: renamed(&array.name), ..array });
        self.main.arrays().into_iter().chain(own).collect()
    }

    fn arrays_mut(&mut self) -> Vec<ArrayMut<'_>> {
        let own = self.head.arrays_mut().into_iter().map(|array| ArrayMut { name: renamed(&array.name), ..array });
        self.main.arrays_mut().into_iter().chain(own).collect()
    }

    fn overwritten(&mut self) -> Result<(), String> {
        self.main.overwritten()?;
        self.head.overwritten().map_err(|e| format!("groups: {e}"))
    }

    fn is_finite(&self) -> bool {
        self.main.is_finite() && self.head.is_finite()
    }
}

/// Values of a task.
const PART: usize = 1 << 14;
