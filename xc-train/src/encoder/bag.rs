//! Embedding bag: the weighted sum of the vectors of an instance's features.
//!
//! ```text
//!   y = finish( bias + sum_f x_f E[f] )              E: one row a feature
//! ```
//!
//! Forward, each instance gathers its rows. Backward, each *feature* of the batch gathers the gradients of its
//! instances, in instance order, and its row is changed at once: the gradient of the table never exists, and rows that no
//! instance of the batch has are not touched.

use super::Encoder;
use crate::activations::{ActivationDropout, BLOCK};
use crate::layer::{Named, column_sums, squares};
use crate::optim::Change;
use crate::parameter::{Decay, Init, Parameter, RowsMut};
use crate::state::State;
use crate::{Activation, Activations, Batch, Mode, StepError, Update};
use rayon::prelude::*;
use serde_json::json;
use std::cell::RefCell;
use std::ops::Range;
use xc_sparse::dense::SplitRows;
use xc_sparse::simd::prefetch_start;
use xc_sparse::{Loop, vectorised_loop};

/// A table with a vector for each feature, and a bias.
#[derive(Clone, Debug)]
pub struct Bag {
    table: Parameter,
    bias: Parameter,
    finish: ActivationDropout,
    init: Init,
}

/// Entries of a batch that one task of a backward pass takes.
const ENTRIES: usize = 512;

/// Groups of four rows between asking for a row and reading it.
const AHEAD: usize = 2;
/// Features between asking for a row of the table and changing it.
const UPDATES_AHEAD: usize = 3;

thread_local! {
    /// Gradient of one row.
    static ROW: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
}

impl Bag {
    /// A table of `n_features` vectors of `width` values.
    ///
    /// First values are even in +-1/sqrt(20): for rows of length 1, as tf-idf gives, sums then have a variance of 1/60 (a
    /// guess; smaller is slower at first, larger remembers its noise).
    ///
    /// # Panics
    /// If the rate of dropout is not in [0, 1).
    pub fn new(n_features: usize, width: usize, activation: Activation, dropout: f32, first: impl Into<Init>) -> Self {
        assert!((0.0..1.0).contains(&dropout), "dropout {dropout}, wanted 0 <= rate < 1");
        let mut table = Parameter::zeros(n_features, width, Decay::Yes);
        let init = first.into();
        init.fill(0, 20f32.sqrt().recip(), &mut table);
        let bias = Parameter::zeros(width, 1, Decay::No);
        Self { table, bias, finish: ActivationDropout { activation, dropout, layer: 0 }, init }
    }

    /// The embeddings, one row per feature, to be changed.
    pub fn table_mut(&mut self) -> &mut [f32] {
        self.table.values_mut()
    }

    /// Number of features.
    pub fn n_features(&self) -> usize {
        self.table.rows()
    }
}

impl Encoder for Bag {
    type Output = Activations;
    type Scratch = ();

    fn width(&self) -> usize {
        self.table.width()
    }

    /// # Panics
    /// If the batch's rows are not sparse or have another number of features.
    fn forward(&self, batch: &Batch, mode: Mode, output: &mut Activations, (): &mut ()) -> Result<(), StepError> {
        let met = batch.width();
        assert!(met == self.n_features() && batch.dense.is_empty(), "rows of {met}, wanted {}", self.n_features());
        let width = self.width();
        output.reshape(batch.len(), width);
        output.values_mut().par_chunks_mut((BLOCK * width).max(1)).enumerate().for_each(|(block, rows)| {
            for (at, row) in rows.chunks_exact_mut(width).enumerate() {
                let (features, values) = batch.row(block * BLOCK + at);
                row.copy_from_slice(self.bias.values());
                add_rows(row, self.table.values(), features, values);
            }
            self.finish.forward(mode, block * BLOCK, width, rows);
        });
        Ok(())
    }

    fn backward(
        &self,
        _: &Batch,
        mode: Mode,
        output: &Activations,
        gradient: &mut Activations,
        (): &mut (),
    ) -> Result<(), StepError> {
        self.finish.backward(mode, output, gradient);
        Ok(())
    }

    fn squared_norm(&self, batch: &Batch, gradient: &Activations, (): &mut ()) -> Result<f64, StepError> {
        let groups = &batch.groups;
        let sums: Vec<f64> = (0..groups.features.len())
            .into_par_iter()
            .with_min_len(16)
            .map(|at| {
                ROW.with_borrow_mut(|row| {
                    let (rows, values) = groups.entries(at);
                    gather(row, gradient, rows, values);
                    squares(row)
                })
            })
            .collect();
        Ok(sums.iter().sum::<f64>() + squares(&column_sums(gradient)))
    }

    fn update(&mut self, batch: &Batch, gradient: &Activations, (): &mut (), update: &Update) -> Result<(), StepError> {
        self.bias.rows_mut().update(&column_sums(gradient), &update.change);
        let n = batch.groups.features.len();
        update_rows(batch, 0..n, 0, self.table.rows_mut(), gradient, &update.change);
        Ok(())
    }
}

impl State for Bag {
    fn settings(&self) -> serde_json::Value {
        json!({ "bag": [self.n_features(), self.width()], "finish": self.finish, "init": self.init })
    }

    fn parameters(&self) -> Vec<Named<&Parameter>> {
        vec![
            Named { name: "bag.table".into(), parameter: &self.table },
            Named { name: "bag.bias".into(), parameter: &self.bias },
        ]
    }

    fn parameters_mut(&mut self) -> Vec<Named<&mut Parameter>> {
        vec![
            Named { name: "bag.table".into(), parameter: &mut self.table },
            Named { name: "bag.bias".into(), parameter: &mut self.bias },
        ]
    }
}

/// Changes the rows of the features at `positions` of the batch; `target` begins with the row of feature `first`.
fn update_rows(
    batch: &Batch,
    positions: Range<usize>,
    first: usize,
    mut target: RowsMut<'_>,
    gradient: &Activations,
    change: &Change,
) {
    let groups = &batch.groups;
    let n_entries = groups.ptr[positions.end] - groups.ptr[positions.start];
    if positions.len() < 2 || n_entries as usize <= ENTRIES {
        ROW.with_borrow_mut(|row| {
            for at in positions.clone() {
                let (rows, values) = groups.entries(at);
                let local = |at: usize| groups.features[at] as usize - first;
                if at + UPDATES_AHEAD < positions.end {
                    let ahead = local(at + UPDATES_AHEAD);
                    target.rows(ahead..ahead + 1).prefetch();
                }
                gather(row, gradient, rows, values);
                let local = local(at);
                target.rows(local..local + 1).update(row, change);
            }
        });
        return;
    }
    // Features are ascending: the middle one parts the table.
    let middle = positions.start + positions.len() / 2;
    let border = groups.features[middle] as usize;
    let (low, high) = target.split_at_row(border - first);
    rayon::join(
        || update_rows(batch, positions.start..middle, first, low, gradient, change),
        || update_rows(batch, middle..positions.end, border, high, gradient, change),
    );
}

/// `sum = sum_i values[i] * gradient[rows[i]]`.
fn gather(sum: &mut Vec<f32>, gradient: &Activations, rows: &[u32], values: &[f32]) {
    sum.clear();
    sum.resize(gradient.width(), 0.0);
    add_rows(sum, gradient.values(), rows, values);
}

/// `sum += sum_i values[i] * table[rows[i]]`, four rows at a time, each entry of the sum in the order given.
///
/// # Panics
/// If a row is not there.
fn add_rows(sum: &mut [f32], table: &[f32], rows: &[u32], values: &[f32]) {
    vectorised_loop(AddRows { sum, table, rows, values });
}

struct AddRows<'a> {
    sum: &'a mut [f32],
    table: &'a [f32],
    rows: &'a [u32],
    values: &'a [f32],
}

impl Loop for AddRows<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { sum, table, rows, values } = self;
        let width = sum.len();
        let row = |r: u32| &table[r as usize * width..][..width];
        let (rows, last_rows) = rows.as_chunks::<4>();
        let (values, last_values) = values.as_chunks::<4>();
        for (at, (&[ra, rb, rc, rd], &[va, vb, vc, vd])) in rows.iter().zip(values).enumerate() {
            // Rows lie anywhere in a table that no cache holds: those after the next ones are asked for now.
            if let Some(ahead) = rows.get(at + AHEAD) {
                ahead.iter().for_each(|&r| prefetch_start(row(r)));
            }
            let (a, b, c, d) = (row(ra), row(rb), row(rc), row(rd));
            for ((((sum, a), b), c), d) in sum.iter_mut().zip(a).zip(b).zip(c).zip(d) {
                *sum = *sum + va * a + vb * b + vc * c + vd * d;
            }
        }
        for (&r, &v) in last_rows.iter().zip(last_values) {
            sum.iter_mut().zip(row(r)).for_each(|(sum, x)| *sum += v * x);
        }
    }
}
