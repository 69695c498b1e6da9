//! Rows of a large matrix, gathered and changed by the entries of a batch.
//!
//! ```text
//!   forward    instance ── its entries ──▶ sum of weighted rows
//!   backward   row ── the entries that name it ──▶ its gradient ──▶ changed at once
//! ```
//!
//! The gradient of the table never exists, and rows that no entry names are not touched: their
//! moments are lazy (see [`crate::optim`]).

use crate::activations::Activations;
use crate::layer::squares;
use crate::optim::Change;
use crate::parameter::{Parameter, RowsMut};
use rayon::prelude::*;
use std::cell::RefCell;
use std::ops::Range;
use xc_buffer::simd::prefetch_start;
use xc_buffer::{Loop, vectorised_loop};
use xc_dense::SplitRows;

/// The entries of a batch by the row that they name: each row's in the order of the instances.
#[derive(Clone, Debug, Default)]
pub struct Entries {
    rows: Vec<u32>,
    ptr: Vec<u32>,
    instances: Vec<u32>,
    values: Vec<f32>,
    keys: Vec<u64>,
    buffer: Vec<u64>,
    instance_of: Vec<u32>,
    /// What [`Entries::fill_places`] fills with.
    every: Vec<u32>,
    ones: Vec<f32>,
}

/// The entries of a batch by the row that they name, except for their values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ByRow<'a> {
    /// Rows that are named, ascending.
    pub(crate) rows: &'a [u32],
    /// Where the entries of each row begin and end.
    pub(crate) ptr: &'a [u32],
    /// Instances of the entries, by their places in the batch.
    pub(crate) instances: &'a [u32],
}

impl<'a> ByRow<'a> {
    /// Where the entries of the rows at some positions begin and end.
    #[inline]
    pub(crate) fn range_of(self, positions: Range<usize>) -> Range<usize> {
        self.ptr[positions.start] as usize..self.ptr[positions.end] as usize
    }

    /// Instances of the row at `position`.
    #[inline]
    pub(crate) fn instances_of(self, position: usize) -> &'a [u32] {
        &self.instances[self.range_of(position..position + 1)]
    }
}

impl Entries {
    /// Sorts the entries of instances by row: those of instance `i` are at `ptr[i]..ptr[i + 1]`.
    ///
    /// *Cost*: O(n); no allocation up to the most entries seen.
    ///
    /// # Panics
    /// If there is not a value for each row that is named, or `ptr` is empty.
    pub fn fill(&mut self, ptr: &[u32], rows: &[u32], values: &[f32]) {
        assert!(rows.len() == values.len() && ptr.last().is_some_and(|&end| end as usize == rows.len()));
        self.keys.clear();
        self.keys.extend(rows.iter().zip(0u64..).map(|(&row, at)| u64::from(row) << 32 | at));
        sort_by_row(&mut self.keys, &mut self.buffer);
        self.rows.clear();
        self.ptr.clear();
        self.instances.clear();
        self.values.clear();
        self.instance_of.clear();
        for (i, range) in ptr.windows(2).enumerate() {
            self.instance_of.resize(range[1] as usize, i as u32);
        }
        for (position, &key) in self.keys.iter().enumerate() {
            let (row, at) = ((key >> 32) as u32, key as u32 as usize);
            if self.rows.last() != Some(&row) {
                self.rows.push(row);
                self.ptr.push(position as u32);
            }
            self.instances.push(self.instance_of[at]);
            self.values.push(values[at]);
        }
        self.ptr.push(self.keys.len() as u32);
    }

    /// As [`Entries::fill`] where entry `i` is of instance `i` and has the value 1.
    pub(crate) fn fill_places(&mut self, rows: &[u32]) {
        let mut ptr = std::mem::take(&mut self.every);
        let mut values = std::mem::take(&mut self.ones);
        ptr.clear();
        ptr.extend(0..=rows.len() as u32);
        values.resize(rows.len(), 1.0);
        self.fill(&ptr, rows, &values);
        (self.every, self.ones) = (ptr, values);
    }

    /// Place of each entry, of those that were given, row after row.
    pub(crate) fn places(&self) -> impl Iterator<Item = usize> + '_ {
        self.keys.iter().map(|&key| key as u32 as usize)
    }

    /// Values of all entries, row after row, to be replaced.
    pub(crate) fn values_mut(&mut self) -> &mut [f32] {
        &mut self.values
    }

    /// The entries except for their values.
    pub(crate) fn by_row(&self) -> ByRow<'_> {
        ByRow { rows: &self.rows, ptr: &self.ptr, instances: &self.instances }
    }

    /// Rows that are named, ascending.
    pub fn rows(&self) -> &[u32] {
        &self.rows
    }

    /// Instances, by their places in the batch, and values of the entries of the row at `position`
    /// of [`Entries::rows`].
    ///
    /// # Panics
    /// If there is no such position.
    pub fn of(&self, position: usize) -> (&[u32], &[f32]) {
        let range = self.ptr[position] as usize..self.ptr[position + 1] as usize;
        (&self.instances[range.clone()], &self.values[range])
    }
}

/// Bits of a row that one pass of the sort looks at.
const DIGIT: u32 = 11;
/// Entries from which passes over all digits are faster than comparing.
const MANY: usize = 2048;

/// Sorts numbers whose upper halves are rows, in the order of the lower halves before: by digits of
/// the row, the last one first.
fn sort_by_row(keys: &mut Vec<u64>, buffer: &mut Vec<u64>) {
    if keys.len() < MANY {
        return keys.sort_unstable();
    }
    let bits = 32 - keys.iter().map(|key| (key >> 32) as u32).max().unwrap_or(0).leading_zeros();
    let n_digits = bits.div_ceil(DIGIT).max(1);
    let digit = bits.div_ceil(n_digits);
    buffer.resize(keys.len(), 0);
    for at in 0..n_digits {
        let digit_of = |key: u64| (key >> (32 + at * digit)) as usize & ((1 << digit) - 1);
        let mut starts = [0u32; 1 << DIGIT];
        keys.iter().for_each(|&key| starts[digit_of(key)] += 1);
        let mut sum = 0;
        starts.iter_mut().for_each(|start| sum += std::mem::replace(start, sum));
        for &key in &*keys {
            let start = &mut starts[digit_of(key)];
            buffer[*start as usize] = key;
            *start += 1;
        }
        std::mem::swap(keys, buffer);
    }
}

/// Entries of a batch that one task of a backward pass takes.
const ENTRIES: usize = 512;
/// Groups of four rows between asking for a row and reading it.
const AHEAD: usize = 2;
/// Rows between asking for a row of the table and changing it.
const UPDATES_AHEAD: usize = 3;

thread_local! {
    /// Gradient of one row.
    static ROW: RefCell<Vec<f32>> = const { RefCell::new(Vec::new()) };
}

/// Sum of squares of the gradient of all rows, where each entry adds its value times its instance's
/// row of `gradient`.
pub fn squared_norm(entries: &Entries, gradient: &Activations) -> f64 {
    let sums: Vec<f64> = (0..entries.rows.len())
        .into_par_iter()
        .with_min_len(16)
        .map(|at| {
            ROW.with_borrow_mut(|row| {
                let (instances, values) = entries.of(at);
                gather(row, gradient, instances, values);
                squares(row)
            })
        })
        .collect();
    sums.iter().sum()
}

/// Changes the rows that are named by their gradients; see [`squared_norm`].
///
/// # Panics
/// If a row is not there, or the gradient has another width than the table.
pub fn update(table: &mut Parameter, entries: &Entries, gradient: &Activations, change: &Change) {
    assert!(gradient.width() == table.width(), "gradient of {}, rows of {}", gradient.width(), table.width());
    update_rows(entries, 0..entries.rows.len(), 0, table.rows_mut(), gradient, change);
}

/// Changes the rows at `positions`; `target` begins with the row `first`.
fn update_rows(
    entries: &Entries,
    positions: Range<usize>,
    first: usize,
    mut target: RowsMut<'_>,
    gradient: &Activations,
    change: &Change,
) {
    let n_entries = entries.ptr[positions.end] - entries.ptr[positions.start];
    if positions.len() < 2 || n_entries as usize <= ENTRIES {
        ROW.with_borrow_mut(|row| {
            for at in positions.clone() {
                let (instances, values) = entries.of(at);
                let local = |at: usize| entries.rows[at] as usize - first;
                if at + UPDATES_AHEAD < positions.end {
                    let ahead = local(at + UPDATES_AHEAD);
                    target.rows(ahead..ahead + 1).prefetch();
                }
                gather(row, gradient, instances, values);
                let local = local(at);
                target.rows(local..local + 1).update(row, change);
            }
        });
        return;
    }
    // Rows are ascending: the middle one parts the table.
    let middle = positions.start + positions.len() / 2;
    let border = entries.rows[middle] as usize;
    let (low, high) = target.split_at_row(border - first);
    rayon::join(
        || update_rows(entries, positions.start..middle, first, low, gradient, change),
        || update_rows(entries, middle..positions.end, border, high, gradient, change),
    );
}

/// `sum = sum_i values[i] * gradient[instances[i]]`.
pub(crate) fn gather(sum: &mut Vec<f32>, gradient: &Activations, instances: &[u32], values: &[f32]) {
    sum.clear();
    sum.resize(gradient.width(), 0.0);
    add_rows(sum, gradient.values(), instances, values);
}

/// `sum += sum_i values[i] * table[rows[i]]`, four rows at a time, each entry of the sum in the
/// order given.
///
/// # Panics
/// If a row is not there.
pub fn add_rows(sum: &mut [f32], table: &[f32], rows: &[u32], values: &[f32]) {
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
            // Rows lie anywhere in a table that no cache holds: those after the next ones are asked
            // for now.
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]

        #[test]
        fn digits_sort_as_comparing_does(rows in prop::collection::vec(any::<u32>(), 0..3 * MANY), shift in 0u32..32) {
            let mut keys: Vec<u64> = (0u64..).zip(&rows).map(|(at, &row)| u64::from(row >> shift) << 32 | at).collect();
            let mut expected = keys.clone();
            expected.sort_unstable();
            sort_by_row(&mut keys, &mut vec![7; 3]);
            prop_assert_eq!(keys, expected);
        }
    }
}
