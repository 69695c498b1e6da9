//! Where rows are looked at from when they are screened by products of f32, and how far off such a score may be.
//!
//! ```text
//!   direct   rows as they are                                    l2   2 q x - |x|^2    cosine   q x / |x|    ip   q x
//!   copied   t = factor * (x - mean), under the cosine           l2, cosine   2 q t - |t|^2                  ip   q t
//!            of x / |x|, computed in f64
//! ```
//!
//! A product of n values is off by at most n roundings of the product of the lengths, in whatever order it is summed.
//! So rows that lie near to each other and far from the origin are copied without their mean, and those so short or
//! long that their squares are no f32 are scaled. Where even that leaves much in doubt, as between clusters far from
//! each other, more rows are compared in f64.

use crate::code::codes::mean_of;
use crate::code::vertex_rows::square;
use crate::metric::Metric;
use rayon::prelude::*;
use xc_dense::DenseRows;

/// Rows that tell whether there is much to gain without the mean.
const SAMPLE: usize = 512;
/// Rows are copied without their mean where that makes squares of lengths so many times smaller.
const GAIN: f64 = 4.0;
/// Lengths that are screened as they are.
const SHORT: f64 = 1.0 / LONG;
const LONG: f64 = (1u64 << 40) as f64;
/// Rows that one task measures.
const ROWS_PER_TASK: usize = 1024;

/// A rounding of f32, and of f64.
const HALF_STEP: f64 = f32::EPSILON as f64 / 2.0;
const FINE_STEP: f64 = f64::EPSILON / 2.0;
/// Beyond this products may be no numbers.
pub(crate) const MOST: f64 = 1e36;

/// How products become scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Twice the product less the side.
    Distance,
    /// The product.
    Product,
    /// The product times the side.
    Share,
}

/// Rows as they are screened.
pub(crate) struct Frame<'a> {
    rows: DenseRows<'a>,
    metric: Metric,
    pub(crate) form: Form,
    /// Where rows are copied.
    copied: Option<Copied>,
    /// The length of each row as it is screened, but 0 for one without a direction.
    pub(crate) lengths: Vec<f32>,
    /// What belongs to each row beside its product.
    pub(crate) sides: Vec<f32>,
}

struct Copied {
    mean: Vec<f32>,
    mean_length: f64,
    /// A power of two.
    factor: f64,
    /// What makes the length of each row 1 under the cosine; else empty.
    units: Vec<f64>,
}

/// By how much the score of a row may be off, from its length.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bound {
    pub(crate) base: f64,
    pub(crate) by_length: f64,
    pub(crate) by_square: f64,
    /// The length of the query as rows are compared with it.
    pub(crate) of_query: f64,
}

impl Bound {
    #[inline(always)]
    pub(crate) fn of(&self, length: f32) -> f64 {
        let length = f64::from(length);
        if length > MOST.sqrt() || length * self.of_query > MOST {
            return f64::INFINITY;
        }
        self.base + length * (self.by_length + length * self.by_square)
    }
}

fn middle(mut of: Vec<f64>) -> f64 {
    let at = of.len() / 2;
    if of.is_empty() { 0.0 } else { *of.select_nth_unstable_by(at, f64::total_cmp).1 }
}

/// What makes a vector as long as 1, but for a power of two; 1 for one without a length.
fn power_of_two(length: f64) -> f64 {
    if length > 0.0 { (-length.log2().round()).exp2() } else { 1.0 }
}

/// The next f32 that is not less.
pub(crate) fn up(of: f64) -> f32 {
    let near = of as f32;
    if f64::from(near) < of { near.next_up() } else { near }
}

impl<'a> Frame<'a> {
    pub(crate) fn new(rows: DenseRows<'a>, metric: Metric) -> Self {
        let lengths: Vec<f64> = {
            let mut lengths = vec![0.0; rows.len()];
            lengths.par_chunks_mut(ROWS_PER_TASK).enumerate().for_each(|(part, to)| {
                to.iter_mut().zip(part * ROWS_PER_TASK..).for_each(|(to, row)| *to = square(rows.row(row)).sqrt());
            });
            lengths
        };
        let some: Vec<u32> = (0..rows.len() as u32).step_by(rows.len().div_ceil(SAMPLE).max(1)).collect();
        let mut mean = mean_of(rows, &some, metric);
        let unit = |row: usize| if metric.is_angular() && lengths[row] > 0.0 { 1.0 / lengths[row] } else { 1.0 };
        let beyond = |&row: &u32| {
            let values = rows.row(row as usize).iter().zip(&mean);
            values.map(|(&v, &mean)| (f64::from(v) * unit(row as usize) - f64::from(mean)).powi(2)).sum::<f64>()
        };
        let length_of = |&row: &u32| (lengths[row as usize] * unit(row as usize)).powi(2);
        let (spread, size) = (middle(some.iter().map(beyond).collect()), middle(some.iter().map(length_of).collect()));
        let is_far = GAIN * spread < size;
        if !is_far && lengths.iter().all(|&length| length == 0.0 || (SHORT..LONG).contains(&length)) {
            let (form, sides) = match metric {
                Metric::L2 => (Form::Distance, lengths.iter().map(|length| (length * length) as f32).collect()),
                Metric::InnerProduct => (Form::Product, vec![0.0; rows.len()]),
                Metric::Cosine => {
                    (Form::Share, lengths.iter().map(|&l| if l > 0.0 { (1.0 / l) as f32 } else { 0.0 }).collect())
                }
            };
            let lengths = lengths.into_iter().map(up).collect();
            return Self { rows, metric, form, copied: None, lengths, sides };
        }
        if !is_far {
            mean.fill(0.0);
        }
        let units = if metric.is_angular() { (0..rows.len()).map(unit).collect() } else { Vec::new() };
        let typical = if is_far { spread } else { size }.sqrt();
        let (mean_length, factor) = (square(&mean).sqrt(), power_of_two(typical));
        let form = if metric == Metric::InnerProduct { Form::Product } else { Form::Distance };
        let n = rows.len();
        let copied = Some(Copied { mean, mean_length, factor, units });
        let mut frame = Self { rows, metric, form, copied, lengths: Vec::new(), sides: Vec::new() };
        let (mut seen, mut sides) = (vec![0.0; n], vec![0.0; n]);
        (seen.par_chunks_mut(ROWS_PER_TASK), sides.par_chunks_mut(ROWS_PER_TASK)).into_par_iter().enumerate().for_each(
            |(part, (seen, sides))| {
                let mut copy = Vec::new();
                for ((seen, side), row) in seen.iter_mut().zip(sides).zip(part * ROWS_PER_TASK..) {
                    if metric.is_angular() && lengths[row] == 0.0 {
                        continue;
                    }
                    let square = square(frame.part(row..row + 1, &mut copy));
                    // A row at the mean has a direction, too.
                    (*seen, *side) = (up(square.sqrt()).max(f32::from_bits(1)), square as f32);
                }
            },
        );
        (frame.lengths, frame.sides) = (seen, sides);
        frame
    }

    /// Whether rows are screened as they are.
    #[cfg(feature = "cuda")]
    pub(crate) fn is_direct(&self) -> bool {
        self.copied.is_none()
    }

    /// Whether a row can be an answer.
    #[inline(always)]
    pub(crate) fn has_direction(&self, row: usize) -> bool {
        !self.metric.is_angular() || self.lengths[row] > 0.0
    }

    /// The values of some rows; `copy` takes them where they are copied.
    pub(crate) fn part<'b>(&'b self, rows: std::ops::Range<usize>, copy: &'b mut Vec<f32>) -> &'b [f32] {
        let width = self.rows.width();
        let Some(Copied { mean, factor, units, .. }) = &self.copied else {
            return &self.rows.values()[rows.start * width..rows.end * width];
        };
        copy.clear();
        for row in rows {
            let unit = units.get(row).copied().unwrap_or(1.0);
            copy.extend(
                self.rows
                    .row(row)
                    .iter()
                    .zip(mean)
                    .map(|(&v, &mean)| ((f64::from(v) * unit - f64::from(mean)) * factor) as f32),
            );
        }
        copy
    }

    /// A query as rows are compared with it, and how far off scores may be.
    pub(crate) fn query(&self, query: &[f32], to: &mut Vec<f32>) -> Bound {
        let length = square(query).sqrt();
        let no_mean = [];
        let (mean, factor, mean_length): (&[f32], f64, f64) = match &self.copied {
            Some(of) => (&of.mean, of.factor, of.mean_length * of.factor),
            None => (&no_mean, 1.0, 0.0),
        };
        let means = mean.iter().copied().chain(std::iter::repeat(0.0));
        let is_product = self.metric == Metric::InnerProduct;
        // The order of inner products does not depend on the length of a query.
        let (scale, factor) = match self.metric {
            Metric::InnerProduct => (1.0, power_of_two(length)),
            Metric::L2 => (1.0, factor),
            Metric::Cosine => (if length > 0.0 { 1.0 / length } else { 1.0 }, factor),
        };
        to.extend(query.iter().zip(means).map(|(&v, mean)| {
            let beyond = if is_product { f64::from(v) } else { f64::from(v) * scale - f64::from(mean) };
            (beyond * factor) as f32
        }));
        let of_query = square(&to[to.len() - query.len()..]).sqrt();
        if of_query.is_nan() || of_query >= MOST {
            return Bound { base: f64::INFINITY, of_query, ..Bound::default() };
        }
        let n = query.len() as f64;
        // What is lost where values are next to nothing, and what sums of f64 are off.
        let (tiny, fine) = (n * f64::from(f32::from_bits(1)) * 4.0, (n + 8.0) * FINE_STEP);
        let base = tiny * (1.0 + of_query);
        let bound = match self.form {
            Form::Share => Bound { base: (n + 8.0) * HALF_STEP + 4.0 * fine + tiny * LONG, ..Bound::default() },
            Form::Product => Bound {
                base: base + 2.0 * fine * of_query * mean_length,
                by_length: ((n + 10.0) * HALF_STEP + 2.0 * fine) * of_query + tiny,
                ..Bound::default()
            },
            Form::Distance => {
                let unit = if self.metric.is_angular() { 8.0 * fine * factor } else { 0.0 };
                Bound {
                    base: base + 8.0 * HALF_STEP * of_query * of_query + unit * (of_query + factor),
                    by_length: (2.0 * n + 16.0) * HALF_STEP * of_query + tiny + unit,
                    by_square: 8.0 * HALF_STEP,
                    ..Bound::default()
                }
            }
        };
        // Some more for the roundings of bounds.
        let Bound { base, by_length, by_square, .. } = bound;
        Bound { base: 1.02 * base, by_length: 1.02 * by_length, by_square: 1.02 * by_square, of_query }
    }
}
