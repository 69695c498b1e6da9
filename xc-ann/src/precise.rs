//! Scores in f64, and the order that they give: what exact means.
//!
//! A sum of f32 loses what rows differ by where they lie far from the origin, are nearly parallel or have next to no
//! length. The products of f32 values are exact in f64, and so are their differences but for a last bit. Answers are
//! ranked by these scores, of equal ones the lower row first, and handed out as the nearest f32.

use crate::metric::Metric;
use std::cmp::Ordering;
use xc_sparse::DenseRows;
use xc_sparse::rank::Scored;
use xc_sparse::simd::{Loop, prefetch_all, vectorised_loop};

/// Sums that are added up side by side.
const CHAINS: usize = 16;
/// Rows that are asked of memory before they are needed.
const AHEAD: usize = 8;
/// Rows that are kept beyond twice as many as are wanted, before all but the best go.
const SPARE: usize = 64;

/// The score as it is handed out: the nearest f32, without a sign where it is 0.
pub(crate) fn rounded(score: f64) -> f32 {
    score.clamp(f64::from(f32::MIN), f64::from(f32::MAX)) as f32 + 0.0
}

/// The cosine of two vectors, by their product and the squares of their lengths; 0 for one of zeros.
#[inline(always)]
pub(crate) fn cosine(product: f64, squares: f64, of_other: f64) -> f64 {
    let squares = squares * of_other;
    if squares > 0.0 { product / squares.sqrt() } else { 0.0 }
}

/// A vector that rows are compared with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scorer<'a> {
    metric: Metric,
    query: &'a [f32],
    squares: f64,
}

impl<'a> Scorer<'a> {
    pub(crate) fn new(metric: Metric, query: &'a [f32]) -> Self {
        // In the order of the other sums: a row in the same direction has a cosine of 1.
        let squares = if metric.is_angular() { squares(query) } else { 0.0 };
        Self { metric, query, squares }
    }

    /// The score of a row.
    ///
    /// # Panics
    /// If it has another length.
    pub(crate) fn score(&self, row: &[f32]) -> f64 {
        assert_eq!(self.query.len(), row.len(), "coordinates of two vectors");
        vectorised_loop(One { scorer: *self, row })
    }

    /// The scores of listed rows, in their order.
    ///
    /// # Panics
    /// If widths differ, or a row is not there.
    pub(crate) fn scores(&self, rows: DenseRows<'_>, listed: &[u32], to: &mut Vec<f64>) {
        assert_eq!(self.query.len(), rows.width(), "coordinates of a query and of rows");
        to.clear();
        to.reserve(listed.len());
        vectorised_loop(Listed { scorer: *self, rows, listed, to });
    }

    #[inline(always)]
    fn of(&self, row: &[f32]) -> f64 {
        match self.metric {
            Metric::L2 => -sum::<true>(self.query, row),
            Metric::InnerProduct => sum::<false>(self.query, row),
            Metric::Cosine => {
                let [product, squares] = product_and_squares(self.query, row);
                cosine(product, self.squares, squares)
            }
        }
    }
}

struct One<'a> {
    scorer: Scorer<'a>,
    row: &'a [f32],
}

impl Loop for One<'_> {
    type Output = f64;

    #[inline(always)]
    fn run(self) -> f64 {
        self.scorer.of(self.row)
    }
}

/// The square of a vector's length, summed as products with rows are.
pub(crate) fn squares(vector: &[f32]) -> f64 {
    vectorised_loop(Squares(vector))
}

struct Squares<'a>(&'a [f32]);

impl Loop for Squares<'_> {
    type Output = f64;

    #[inline(always)]
    fn run(self) -> f64 {
        sum::<false>(self.0, self.0)
    }
}

struct Listed<'a, 'b> {
    scorer: Scorer<'a>,
    rows: DenseRows<'a>,
    listed: &'a [u32],
    to: &'b mut Vec<f64>,
}

impl Loop for Listed<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { scorer, rows, listed, to } = self;
        let row = |number: u32| rows.row(number as usize);
        listed.iter().take(AHEAD).for_each(|&number| prefetch_all(row(number)));
        for (at, &number) in listed.iter().enumerate() {
            listed.get(at + AHEAD).into_iter().for_each(|&number| prefetch_all(row(number)));
            to.push(scorer.of(row(number)));
        }
    }
}

/// Products of two vectors of one length, or squares of their differences.
#[inline(always)]
fn sum<const DIFFERENCE: bool>(a: &[f32], b: &[f32]) -> f64 {
    let term = |a: f32, b: f32| {
        let (a, b) = (f64::from(a), f64::from(b));
        if DIFFERENCE { (a - b) * (a - b) } else { a * b }
    };
    let mut sums = [0.0f64; CHAINS];
    let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<CHAINS>(), b.as_chunks::<CHAINS>());
    for (a, b) in a.iter().zip(b) {
        for ((sum, &a), &b) in sums.iter_mut().zip(a).zip(b) {
            *sum += term(a, b);
        }
    }
    for ((sum, &a), &b) in sums.iter_mut().zip(a_rest).zip(b_rest) {
        *sum += term(a, b);
    }
    total(sums)
}

/// The product with a row, and that of the row with itself.
#[inline(always)]
fn product_and_squares(a: &[f32], row: &[f32]) -> [f64; 2] {
    let (mut products, mut squares) = ([0.0f64; CHAINS], [0.0f64; CHAINS]);
    let ((a, a_rest), (row, row_rest)) = (a.as_chunks::<CHAINS>(), row.as_chunks::<CHAINS>());
    for (a, row) in a.iter().zip(row) {
        for (((product, square), &a), &value) in products.iter_mut().zip(&mut squares).zip(a).zip(row) {
            let value = f64::from(value);
            *product += f64::from(a) * value;
            *square += value * value;
        }
    }
    for (((product, square), &a), &value) in products.iter_mut().zip(&mut squares).zip(a_rest).zip(row_rest) {
        let value = f64::from(value);
        *product += f64::from(a) * value;
        *square += value * value;
    }
    [total(products), total(squares)]
}

#[inline(always)]
fn total(mut sums: [f64; CHAINS]) -> f64 {
    let mut half = CHAINS / 2;
    while half > 0 {
        for at in 0..half {
            sums[at] += sums[at + half];
        }
        half /= 2;
    }
    sums[0]
}

/// A row and its score.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ranked {
    pub(crate) score: f64,
    pub(crate) label: u32,
}

/// Which of two comes first.
fn order(a: &Ranked, b: &Ranked) -> Ordering {
    b.score.total_cmp(&a.score).then(a.label.cmp(&b.label))
}

/// The `k` best rows, of equal scores the lower ones.
///
/// *Cost*: O(1) a row on average.
#[derive(Clone, Debug, Default)]
pub(crate) struct Nearest {
    k: usize,
    kept: Vec<Ranked>,
    /// What is not before this cannot be among the best.
    last: Option<Ranked>,
    out: Vec<Scored>,
}

impl Nearest {
    /// Empties it.
    pub(crate) fn reset(&mut self, k: usize) {
        (self.k, self.last) = (k, None);
        self.kept.clear();
    }

    /// Offers a row; one whose score is no number is not kept.
    #[inline]
    pub(crate) fn push(&mut self, label: u32, score: f64) {
        // Without a sign zeros are equal.
        let item = Ranked { score: score + 0.0, label };
        if score.is_nan() || self.last.is_some_and(|last| order(&item, &last).is_ge()) {
            return;
        }
        self.kept.push(item);
        if self.kept.len() >= self.k.saturating_mul(2).saturating_add(SPARE) {
            self.cut();
        }
    }

    #[cold]
    fn cut(&mut self) {
        if self.k == 0 {
            self.kept.clear();
        } else if self.kept.len() > self.k {
            let (_, last, _) = self.kept.select_nth_unstable_by(self.k - 1, order);
            self.last = Some(*last);
            self.kept.truncate(self.k);
        }
    }

    /// The best, best first.
    pub(crate) fn sorted(&mut self) -> &[Scored] {
        self.cut();
        self.kept.sort_unstable_by(order);
        self.out.clear();
        self.out.extend(self.kept.iter().map(|item| Scored { label: item.label, score: rounded(item.score) }));
        &self.out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::items::square;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_best_are_kept_in_order(
            scores in prop::collection::vec(prop_oneof![-2f64..2.0, Just(0.5), Just(0.0), Just(-0.0)], 0..400), k in 0usize..70
        ) {
            let mut nearest = Nearest::default();
            nearest.reset(k);
            let label = |at: usize| (at * 37 % 401) as u32;
            scores.iter().enumerate().for_each(|(at, &score)| nearest.push(label(at), score));
            let mut all: Vec<(f64, u32)> = scores.iter().enumerate().map(|(at, &score)| (-score, label(at))).collect();
            all.sort_by(|a, b| a.partial_cmp(b).unwrap());
            all.truncate(k);
            let found: Vec<(f64, u32)> = nearest.sorted().iter().map(|s| (-f64::from(s.score), s.label)).collect();
            prop_assert_eq!(found.iter().map(|f| f.1).collect::<Vec<_>>(), all.iter().map(|a| a.1).collect::<Vec<_>>());
            prop_assert!(nearest.sorted().iter().all(|s| s.score.to_bits() != (-0.0f32).to_bits()));
        }

        #[test]
        fn every_instruction_set_has_the_same_bits(
            values in prop::collection::vec((-1e3f32..1e3, -1e-3f32..1e3), 1..90), metric in 0usize..3
        ) {
            let (a, b): (Vec<f32>, Vec<f32>) = values.into_iter().unzip();
            let scorer = Scorer::new(Metric::ALL[metric], &a);
            let expected = scorer.of(&b);
            for isa in xc_sparse::simd::Isa::available() {
                let found = xc_sparse::simd::vectorised_loop_on(isa, One { scorer, row: &b });
                prop_assert_eq!(found.to_bits(), expected.to_bits());
            }
            let plain: f64 = a.iter().zip(&b).map(|(&a, &b)| match Metric::ALL[metric] {
                Metric::L2 => -(f64::from(a) - f64::from(b)).powi(2),
                _ => f64::from(a) * f64::from(b),
            }).sum();
            let plain = match Metric::ALL[metric] { Metric::Cosine => cosine(plain, square(&a), square(&b)), _ => plain };
            prop_assert!((plain - expected).abs() <= 1e-12 * a.iter().zip(&b).map(|(a, b)| f64::from(a.abs() + b.abs()).powi(2)).sum::<f64>().max(1.0));
        }
    }

    #[test]
    fn a_row_of_the_same_direction_has_a_cosine_of_one_however_short() {
        for factor in [1.0f32, 1e-20, 1e-38, 1e-43] {
            let row: Vec<f32> = (1..40).map(|v| v as f32 * 0.3 * factor).collect();
            let scorer = Scorer::new(Metric::Cosine, &row);
            assert_eq!(scorer.score(&row), 1.0, "{factor}");
        }
    }
}
