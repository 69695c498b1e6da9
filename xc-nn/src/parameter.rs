//! A matrix of learned values, with the state of its optimiser.

use crate::optim::{Change, Moments};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use xc_buffer::Buffer;
use xc_buffer::simd::prefetch_start;
use xc_dense::SplitRows;
use xc_hash::stream::{Purpose, Stream, name};

/// Rows of learned values and of the optimiser's moments.
///
/// *Shapes*: `rows` of `width` values, row-major; each moment is as large, or one number per row, or empty
/// if the optimiser has none.
#[derive(Clone, Debug, Default)]
pub struct Parameter {
    rows: usize,
    width: usize,
    decays: bool,
    values: Vec<f32>,
    /// Values that lie in a model file; they are copied to `values` when they are to change.
    stored: Option<Buffer<f32>>,
    pub(crate) moments: [Vec<f32>; 2],
}

/// Whether weight decay pulls a parameter towards zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decay {
    /// Weights do.
    Yes,
    /// Biases do not.
    No,
}

/// The initial values of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Init {
    /// Drawn at random; the seed names the streams.
    Random {
        /// The seed.
        seed: u64,
    },
    /// Zeros, for values that come from elsewhere.
    Zeros,
}

impl From<u64> for Init {
    fn from(seed: u64) -> Self {
        Self::Random { seed }
    }
}

impl Init {
    /// Fills with values even in `[-bound, bound)`, each row from a stream of its own, named by the
    /// layer and the row.
    pub(crate) fn fill(self, layer: u64, bound: f32, parameter: &mut Parameter) {
        if let Self::Random { seed } = self {
            let width = parameter.width().max(1);
            parameter.values_mut().par_chunks_mut(width).enumerate().for_each(|(row, values)| {
                Stream::new(name(seed, Purpose::Init, &[layer, row as u64])).fill_uniform(bound, values);
            });
        }
    }
}

impl Parameter {
    /// Zeros.
    pub fn zeros(rows: usize, width: usize, decay: Decay) -> Self {
        let values = vec![0.0; rows * width];
        Self { rows, width, decays: decay == Decay::Yes, values, ..Self::default() }
    }

    /// Rows of `width` values.
    ///
    /// # Panics
    /// If the values are not a whole number of rows.
    pub fn new(values: Vec<f32>, width: usize, decay: Decay) -> Self {
        assert!(width > 0 && values.len().is_multiple_of(width), "{} values in rows of {width}", values.len());
        let rows = values.len() / width;
        Self { rows, width, decays: decay == Decay::Yes, values, ..Self::default() }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Values of a row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// All values, row after row.
    pub fn values(&self) -> &[f32] {
        self.stored.as_deref().unwrap_or(&self.values)
    }

    /// All values, row after row.
    pub(crate) fn into_values(mut self) -> Vec<f32> {
        self.own();
        self.values
    }

    /// All values, row after row, mutable. Those of a model file are copied first.
    pub fn values_mut(&mut self) -> &mut [f32] {
        self.own();
        &mut self.values
    }

    /// Uses the values of a model file in place.
    ///
    /// # Panics
    /// If their number is not `rows() * width()`.
    pub fn set_stored(&mut self, values: Buffer<f32>) {
        let expected = self.rows * self.width;
        assert!(values.len() == expected, "{} values for {} x {}", values.len(), self.rows, self.width);
        (self.values, self.stored) = (Vec::new(), Some(values));
    }

    fn own(&mut self) {
        if let Some(stored) = self.stored.take() {
            self.values = stored.to_vec();
        }
    }

    /// Row `i`.
    ///
    /// # Panics
    /// If `i >= rows()`.
    #[inline]
    pub fn row(&self, i: usize) -> &[f32] {
        &self.values()[i * self.width..][..self.width]
    }

    /// Allocates the moments of an optimiser, all zero; other moments are dropped.
    pub fn prepare(&mut self, moments: Moments) {
        let length = moments.len(self.rows, self.width);
        for (i, moment) in self.moments.iter_mut().enumerate() {
            if i < moments.n {
                moment.resize(length, 0.0);
            } else {
                *moment = Vec::new();
            }
        }
    }

    /// All rows, mutable.
    pub fn rows_mut(&mut self) -> RowsMut<'_> {
        self.own();
        let [first, second] = &mut self.moments;
        RowsMut { values: &mut self.values, first, second, width: self.width, decays: self.decays }
    }
}

/// Some contiguous rows of a [`Parameter`], to be updated by one task.
#[derive(Debug)]
pub struct RowsMut<'a> {
    /// Learned values.
    pub values: &'a mut [f32],
    /// First moment; empty when the optimiser has none.
    pub first: &'a mut [f32],
    /// Second moment; empty when the optimiser has none.
    pub second: &'a mut [f32],
    width: usize,
    decays: bool,
}

impl<'a> RowsMut<'a> {
    /// Rows of `width` values and their moments, which may be empty.
    pub(crate) fn new(
        values: &'a mut [f32],
        first: &'a mut [f32],
        second: &'a mut [f32],
        width: usize,
        decay: Decay,
    ) -> Self {
        Self { values, first, second, width, decays: decay == Decay::Yes }
    }
}

impl RowsMut<'_> {
    /// Updates all rows with a gradient of their shape. Weight decay applies only if the parameter has
    /// it.
    pub fn update(self, gradient: &[f32], change: &Change) {
        let decay = if self.decays { change.decay } else { 0.0 };
        Change { decay, ..*change }.apply(self, gradient);
    }

    /// Asks for the values and moments, which will be changed soon.
    pub(crate) fn prefetch(&self) {
        [&*self.values, self.first, self.second].into_iter().for_each(prefetch_start);
    }

    /// A reborrow.
    pub(crate) fn rows(&mut self, rows: Range<usize>) -> RowsMut<'_> {
        let range = rows.start * self.width..rows.end * self.width;
        let n = self.values.len();
        let cut = |moment: &[f32]| of_moment(range.start, n, moment)..of_moment(range.end, n, moment);
        let (first, second) = (cut(self.first), cut(self.second));
        RowsMut {
            values: &mut self.values[range.clone()],
            first: &mut self.first[first],
            second: &mut self.second[second],
            width: self.width,
            decays: self.decays,
        }
    }
}

/// Where a place of `n` values lies in their moment: the place, or its row's where the moment is of
/// rows.
pub(crate) fn place_in_moment(at: usize, n: usize, n_moment: usize) -> usize {
    if n_moment == n { at } else { at / (n / n_moment.max(1)).max(1) }
}

/// Where some of `n` values lie in their moment.
pub(crate) fn places_in_moment(of: Range<usize>, n: usize, n_moment: usize) -> Range<usize> {
    place_in_moment(of.start, n, n_moment)..place_in_moment(of.end, n, n_moment)
}

fn of_moment(at: usize, n: usize, moment: &[f32]) -> usize {
    if moment.is_empty() { 0 } else { place_in_moment(at, n, moment.len()) }
}

impl SplitRows for RowsMut<'_> {
    fn split_at_row(self, row: usize) -> (Self, Self) {
        let RowsMut { values, first, second, width, decays } = self;
        let at = row * width;
        let (values_a, values_b) = values.split_at_mut(at);
        let cut = |moment: &[f32]| of_moment(at, values_a.len() + values_b.len(), moment);
        let (at_first, at_second) = (cut(first), cut(second));
        let (first_a, first_b) = first.split_at_mut(at_first);
        let (second_a, second_b) = second.split_at_mut(at_second);
        (
            RowsMut { values: values_a, first: first_a, second: second_a, width, decays },
            RowsMut { values: values_b, first: first_b, second: second_b, width, decays },
        )
    }
}
