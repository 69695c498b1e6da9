//! An inverted multi-index: draws that follow the logits, with a known probability.
//!
//! ```text
//!   row of a label, bias   =   first half | second half, bias        two codebooks of M words each
//!   logit(x, label)        ≈   x1 . a     + (x2, 1) . b              words a, b that are nearest
//!
//!   q(label | x)  =  exp(x1 . a + (x2, 1) . b) / sum over all labels of the same
//! ```
//!
//! All labels of a cell (a, b) have the same q, so that a draw needs M^2 sums over cells instead of
//! L over labels: the sampler of `[chen2025midx]` with product quantisation and a uniform draw
//! within the cell. *Differs in*: the bias is an additional coordinate of the second half;
//! codewords are learned by k-means on at most 256 M rows, starting from the current codewords; in
//! a shared list the probability of a label is that over the draws of all instances.
//!
//! q is exact for any weights: stale codewords make draws worse, not wrong.

mod index;

use super::drawn::in_draws;
use super::error::{SampleError, rows};
use super::lists::{List, Who, own_lists};
use super::{Candidates, LabelWeights, Lists, NegativeParams, Queries, Sampler, SamplerData, Weighting};
use crate::state::{self, Array, Arrays, Role, State, StateError, Visitor};
use crate::{Step, StepError};
use index::{Index, Scores, Sums};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::ops::Range;
use std::sync::OnceLock;
use std::time::Instant;
use thiserror::Error;
use xc_dense::DenseRows;
use xc_hash::stream::Stream;

/// Codewords, draws, and when codewords are learned again.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MidxParams {
    /// Codewords of each half, M: 1 to 255.
    pub codewords: u32,
    /// Draws per instance.
    pub per_instance: usize,
    /// Steps after which codewords are learned again; 0: they are learned only once.
    pub every: u64,
    /// Iterations of k-means.
    pub iterations: u32,
}

impl Default for MidxParams {
    /// 64 codewords, learned every 300 steps; 10 draws, for lists of a batch.
    fn default() -> Self {
        Self { codewords: 64, per_instance: NegativeParams::usual_chosen(Lists::Shared), every: 300, iterations: 5 }
    }
}

/// Draws from an inverted multi-index, with replacement; see [`MidxParams`] and the table of
/// [samplers](super).
#[derive(Clone, Debug)]
pub struct Midx {
    params: MidxParams,
    lists: Lists,
    weighting: Weighting,
    n_labels: usize,
    width: usize,
    index: OnceLock<Index>,
}

/// A cell number that is out of range.
#[derive(Clone, Copy, Debug, Error)]
#[error("label {label}: cell {cell} of {n_cells}")]
struct CellError {
    label: usize,
    cell: u16,
    n_cells: usize,
}

impl Midx {
    /// A sampler of the labels that `data` counts, for vectors of its width.
    ///
    /// # Panics
    /// If there are no codewords or more than 255.
    pub fn new(params: MidxParams, data: &SamplerData<'_>) -> Self {
        assert!((1..=255).contains(&params.codewords), "{} codewords", params.codewords);
        let (n_labels, width) = (data.counts.len(), data.width);
        Self { params, lists: Lists::Shared, weighting: Weighting::LogQ, n_labels, width, index: OnceLock::new() }
    }

    /// One list per batch with the draws of all instances, or one per instance.
    pub fn with_lists(self, lists: Lists) -> Self {
        Self { lists, ..self }
    }

    /// How a label of a list is weighted.
    pub fn with_weighting(self, weighting: Weighting) -> Self {
        Self { weighting, ..self }
    }

    fn empty(&self) -> Index {
        Index::empty(self.params.codewords as usize, self.width, self.n_labels)
    }

    /// The index; it is built from the current weights if there is none yet.
    fn index(&self, at: Step, weights: LabelWeights<'_>) -> Result<&Index, SampleError> {
        if let Some(index) = self.index.get() {
            return Ok(index);
        }
        let mut index = self.empty();
        index.learn(weights, true, self.params.iterations, Who::Codewords.of_step(at))?;
        Ok(self.index.get_or_init(|| index))
    }

    /// Probability that a label of `cell` is in a list of the instances at `places`.
    fn chance(&self, scores: &Scores, places: Range<usize>, cell: u16) -> f64 {
        if self.takes_all() {
            return 1.0;
        }
        let n = self.params.per_instance;
        if places.len() == 1 {
            return in_draws(scores.chance(places.start, cell), n);
        }
        let log: f64 = places.map(|place| log_of_rest(scores.chance(place, cell))).sum();
        -(n as f64 * log).exp_m1()
    }

    fn takes_all(&self) -> bool {
        self.params.per_instance >= self.n_labels
    }

    /// Appends the weight and log q of labels in a list of some instances.
    fn correct(&self, index: &Index, scores: &Scores, places: Range<usize>, labels: &[u32], out: &mut Vec<(f32, f32)>) {
        if !self.weighting.uses_chances() {
            out.extend(labels.iter().map(|_| self.weighting.of(1.0)));
            return;
        }
        // Labels of a cell have the same probability.
        let mut cells: Vec<u16> = labels.iter().map(|&label| index.cells[label as usize]).collect();
        cells.sort_unstable();
        cells.dedup();
        let of_cell = |&cell: &u16| self.weighting.of(self.chance(scores, places.clone(), cell));
        let corrections: Vec<(f32, f32)> = match places.len() {
            1 => cells.iter().map(of_cell).collect(),
            _ => cells.par_iter().map(of_cell).collect(),
        };
        out.extend(labels.iter().map(|&label| {
            let at = cells.partition_point(|&cell| cell < index.cells[label as usize]);
            corrections[at]
        }));
    }

    /// Appends the labels drawn for an instance, in the order of drawing.
    fn draw(
        &self,
        at: Step,
        queries: Queries<'_>,
        place: usize,
        (index, scores): (&Index, &Scores),
        out: &mut Vec<u32>,
    ) {
        if self.takes_all() {
            out.extend(0..self.n_labels as u32);
            return;
        }
        let mut sums = Sums::default();
        sums.fill(index, scores, place);
        let mut random = Stream::new(Who::Midx.of_instance(at, queries.instances[place]));
        out.extend((0..self.params.per_instance).map(|_| sums.draw(index, &mut random)));
    }
}

/// ln(1 - q), by its series for small q.
fn log_of_rest(q: f64) -> f64 {
    if q < 1e-3 { -q * (1.0 + q * (0.5 + q * (1.0 / 3.0 + q * 0.25))) } else { (-q).ln_1p() }
}

impl Sampler for Midx {
    /// # Panics
    /// If the labels are not those that were counted.
    fn sample(
        &self,
        at: Step,
        queries: Queries<'_>,
        weights: Option<LabelWeights<'_>>,
        labels: Range<u32>,
        out: &mut Candidates,
    ) -> Result<(), StepError> {
        let weights = rows(weights, &labels)?;
        assert!(labels == (0..self.n_labels as u32), "labels {labels:?}, an index of {}", self.n_labels);
        let begin = Instant::now();
        let index = self.index(at, weights)?;
        let scores = index.score(queries)?;
        let scored = begin.elapsed();
        let n = queries.instances.len();
        match self.lists {
            Lists::Shared => {
                let mut drawn: Vec<Vec<u32>> = vec![Vec::new(); n];
                let places = drawn.par_iter_mut().enumerate();
                places.for_each(|(place, drawn)| self.draw(at, queries, place, (index, &scores), drawn));
                let mut list = List { labels: drawn.concat(), ..List::default() };
                list.labels.sort_unstable();
                list.labels.dedup();
                self.correct(index, &scores, 0..n, &list.labels, &mut list.corrections);
                list.end(out);
            }
            Lists::Own => own_lists(n, out, |place, list| {
                self.draw(at, queries, place, (index, &scores), &mut list.labels);
                list.labels.sort_unstable();
                list.labels.dedup();
                self.correct(index, &scores, place..place + 1, &list.labels, &mut list.corrections);
                Ok(())
            })?,
        }
        let cost = out.cost_mut();
        cost.hash += scored;
        cost.query += begin.elapsed() - scored;
        cost.n_found += (n * self.params.per_instance) as u64;
        cost.n_empty += scores.n_uniform();
        Ok(())
    }

    fn changed(
        &mut self,
        at: Step,
        _: Queries<'_>,
        _: &[u32],
        _: &[f32],
        weights: Option<LabelWeights<'_>>,
    ) -> Result<(), StepError> {
        let MidxParams { every, iterations, .. } = self.params;
        if let Some(index) = self.index.get_mut()
            && every > 0
            && (at.number + 1).is_multiple_of(every)
        {
            let weights = rows(weights, &(0..self.n_labels as u32))?;
            index.learn(weights, false, iterations, Who::Codewords.of_step(at))?;
        }
        Ok(())
    }

    fn knows_log_q(&self) -> bool {
        self.weighting.uses_chances()
    }

    fn log_q(
        &self,
        at: Step,
        queries: Queries<'_>,
        weights: Option<LabelWeights<'_>>,
        labels: Range<u32>,
        list: usize,
        wanted: &[u32],
        out: &mut Vec<f32>,
    ) -> Result<(), StepError> {
        let index = self.index(at, rows(weights, &labels)?)?;
        let Queries { instances, vectors, .. } = queries;
        let (of, width) = (if self.lists == Lists::Own { list..list + 1 } else { 0..instances.len() }, vectors.width());
        let vectors = DenseRows::new(&vectors.values()[of.start * width..of.end * width], width);
        let scores = index.score(Queries { instances: &instances[of], vectors, ..queries })?;
        let places = 0..scores.len();
        let mut corrections = Vec::new();
        self.correct(index, &scores, places, wanted, &mut corrections);
        out.clear();
        out.extend(corrections.iter().map(|&(_, log_q)| log_q));
        Ok(())
    }

    fn clone_box(&self) -> Box<dyn Sampler> {
        Box::new(self.clone())
    }
}

const BUILT: &str = "sampler.midx.built";
const WORDS: [&str; 2] = ["sampler.midx.words0", "sampler.midx.words1"];
const CELLS: &str = "sampler.midx.cells";

impl State for Midx {
    fn settings(&self) -> serde_json::Value {
        json!({ "midx": self.params, "lists": self.lists, "weighting": self.weighting })
    }

    /// Codewords and the cell of each label. Before the first step there are none.
    fn visit(&self, f: &mut Visitor<'_>) -> Result<(), StateError> {
        let index = self.index.get();
        f(Array::new(BUILT, Role::Training, [1, 1], &[u32::from(index.is_some())]))?;
        let Some(index) = index else { return Ok(()) };
        for (name, book) in WORDS.into_iter().zip(&index.books) {
            f(Array::new(name, Role::Training, [book.len(), book.width()], book.words()))?;
        }
        f(Array::new(CELLS, Role::Training, [index.cells.len(), 1], &index.cells))
    }

    fn load(&mut self, from: &dyn Arrays) -> Result<(), StateError> {
        // If only the arrays for predictions are loaded, everything stays as it is.
        let mut is_built = [u32::from(self.index.get().is_some())];
        state::read(from, BUILT, Role::Training, [1, 1], &mut is_built)?;
        if is_built == [0] {
            self.index = OnceLock::new();
            return Ok(());
        }
        let mut index = self.index.take().unwrap_or_else(|| self.empty());
        for (name, book) in WORDS.into_iter().zip(&mut index.books) {
            let shape = [book.len(), book.width()];
            state::read(from, name, Role::Training, shape, book.words_mut())?;
        }
        state::read(from, CELLS, Role::Training, [index.cells.len(), 1], &mut index.cells)?;
        let n_cells = index.m() * index.m();
        if let Some(label) = index.cells.iter().position(|&cell| usize::from(cell) >= n_cells) {
            return Err(StateError::new(CELLS, CellError { label, cell: index.cells[label], n_cells }));
        }
        index.sort();
        self.index = OnceLock::from(index);
        Ok(())
    }
}
