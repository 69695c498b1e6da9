//! Exact answers, by comparing all rows.
//!
//! ```text
//!   queries x rows ─▶ product of f32 ─▶ score, off by at most a bound ─▶ rows that may be among the best ─▶ scores in f64
//! ```

use crate::code::centering::{Bound, Form, Frame};
use crate::code::vertex_rows::square;
use crate::metric::Metric;
use crate::search::rerank::{Nearest, Scorer};
use rayon::prelude::*;
use xc_buffer::Cancel;
use xc_buffer::Silent;
use xc_buffer::simd::{Loop, vectorised_loop};
use xc_dense::DenseRows;
use xc_dense::{MatMut, MatRef, MatmulPrecision, Start};
use xc_sparse::rank::{RankedBatch, Scored, TopK};

/// Queries of a block, and rows.
const QUERIES: usize = 32;
const ROWS: usize = 2048;
/// Scores that are compared with a limit together.
const TOGETHER: usize = 16;
/// Rows that may be among the best, at most, before they are scored in f64.
const OPEN: usize = 8192;

/// The `k` best rows of each query, best first: those that scores in f64 put first, of equal ones the lower row.
/// Under the cosine a row of zeros is never an answer, and a query of zeros has none.
///
/// A matrix product of f32 finds the rows that may be among the best, whose scores are then computed in f64.
/// *Cost*: 2 operations per coordinate of each row and query, and as many of f64 for each row that the product cannot
/// rule out: few, unless rows lie in clusters that are far from each other for their size. Queries are divided among
/// the ambient threads.
///
/// # Panics
/// If widths differ.
pub fn exact(rows: DenseRows<'_>, queries: DenseRows<'_>, metric: Metric, k: usize) -> RankedBatch {
    exact_among(rows, queries, metric, k, &|_| true)
}

/// [`exact`] among the rows that pass a test.
pub(crate) fn exact_among(
    rows: DenseRows<'_>,
    queries: DenseRows<'_>,
    metric: Metric,
    k: usize,
    passes: &(dyn Fn(u32) -> bool + Sync),
) -> RankedBatch {
    exact_unless(rows, queries, metric, k, passes, &Silent)
}

/// [`exact_among`], which leaves off soon after `cancel` asks for it, with answers of no meaning.
pub(crate) fn exact_unless(
    rows: DenseRows<'_>,
    queries: DenseRows<'_>,
    metric: Metric,
    k: usize,
    passes: &(dyn Fn(u32) -> bool + Sync),
    cancel: &dyn Cancel,
) -> RankedBatch {
    assert_eq!(rows.width(), queries.width(), "coordinates of rows and queries");
    let scan = Scan { rows, metric, frame: &Frame::new(rows, metric), k: k.min(rows.len()), passes, cancel };
    let blocks: Vec<RankedBatch> = queries
        .values()
        .par_chunks(QUERIES * queries.width())
        .map_init(Block::default, |block, values| {
            let queries = DenseRows::new(values, rows.width());
            scan.answer(queries, block)
        })
        .collect();
    RankedBatch::concat(blocks)
}

/// What a thread scans with.
#[derive(Default)]
struct Block {
    products: Vec<f32>,
    /// Queries, and rows, as they are multiplied.
    queries: Vec<f32>,
    copy: Vec<f32>,
    found: Vec<Found>,
    scratch: xc_dense::MatmulScratch,
}

/// What a query has found.
#[derive(Default)]
struct Found {
    bound: Bound,
    /// What scores are at least.
    least: TopK,
    /// Rows that may be among the best, and what their scores are at most.
    open: Vec<(f32, u32)>,
    /// Those that were scored in f64.
    nearest: Nearest,
    labels: Vec<u32>,
    scores: Vec<f64>,
}

impl Found {
    fn reset(&mut self, k: usize, bound: Bound) {
        self.bound = bound;
        self.least.reset(k);
        self.open.clear();
        self.nearest.reset(k);
    }

    /// A row whose score may be off by so much.
    fn take(&mut self, row: u32, score: f32, error: f64) {
        let (low, high) = (f64::from(score) - error, f64::from(score) + error);
        if low.is_finite() && high.is_finite() {
            if high < f64::from(self.least.threshold()) {
                return;
            }
            self.least.push(Scored { label: row, score: down(low) });
            self.open.push((-down(-high), row));
        } else {
            self.open.push((f32::INFINITY, row));
        }
    }

    /// Leaves those rows that may still be among the best.
    fn narrow(&mut self) {
        if let Some(kth) = self.least.kth() {
            self.open.retain(|&(most, _)| most >= kth.score);
        }
    }

    /// Scores rows in f64.
    fn resolve(&mut self, rows: DenseRows<'_>, scorer: &Scorer<'_>) {
        let Self { open, nearest, labels, scores, .. } = self;
        labels.clear();
        labels.extend(open.drain(..).map(|(_, row)| row));
        scorer.scores(rows, labels, false, scores);
        labels.iter().zip(&*scores).for_each(|(&label, &score)| nearest.push(label, score));
    }
}

/// The next f32 that is not larger.
pub(crate) fn down(of: f64) -> f32 {
    let near = of as f32;
    if f64::from(near) > of { near.next_down() } else { near }
}

struct Scan<'a> {
    rows: DenseRows<'a>,
    metric: Metric,
    frame: &'a Frame<'a>,
    k: usize,
    passes: &'a (dyn Fn(u32) -> bool + Sync),
    cancel: &'a dyn Cancel,
}

impl Scan<'_> {
    fn answer(&self, queries: DenseRows<'_>, block: &mut Block) -> RankedBatch {
        let &Self { rows, metric, frame, k, .. } = self;
        let Block { products, queries: turned, copy, found, scratch } = block;
        found.resize_with(queries.len(), Found::default);
        turned.clear();
        for (query, found) in queries.iter().zip(&mut *found) {
            let bound = frame.query(query, turned);
            let has_direction = !metric.is_angular() || square(query) > 0.0;
            found.reset(if has_direction { k } else { 0 }, bound);
        }
        let width = rows.width();
        for first in (0..rows.len()).step_by(ROWS).take_while(|_| k > 0 && !self.cancel.cancelled()) {
            let range = first..rows.len().min(first + ROWS);
            let n = range.len();
            let part = frame.part(range.clone(), copy);
            products.resize(queries.len() * n, 0.0);
            let (queries_of, rows_of) = (MatRef::new(turned, queries.len(), width), MatRef::new(part, n, width));
            let to = MatMut::new(products, queries.len(), n);
            xc_dense::product(to, queries_of, rows_of.t(), Start::Zero, MatmulPrecision::F32, scratch);
            let longest = frame.lengths[range.clone()].iter().copied().fold(0.0, f32::max);
            for ((products, query), found) in products.chunks_exact(n).zip(queries.iter()).zip(&mut *found) {
                let scorer = Scorer::new(metric, query);
                self.look(range.clone(), products, longest, &scorer, found);
            }
        }
        let mut all = RankedBatch::new();
        if self.cancel.cancelled() {
            return all;
        }
        for (query, found) in queries.iter().zip(found) {
            found.narrow();
            found.resolve(rows, &Scorer::new(metric, query));
            all.push_row(found.nearest.sorted());
        }
        all
    }

    /// Takes those rows of a block that may be among the best of a query.
    fn look(
        &self,
        range: std::ops::Range<usize>,
        products: &[f32],
        longest: f32,
        scorer: &Scorer<'_>,
        found: &mut Found,
    ) {
        let &Self { rows, frame, passes, .. } = self;
        // Of the whole block, so that a row costs one comparison.
        let most = found.bound.of(longest);
        let limit = |found: &Found| down(f64::from(found.least.threshold()) - most);
        if limit(found) == f32::INFINITY {
            return;
        }
        let sides = &frame.sides[range.clone()];
        let first = limit(found);
        let take = |at: usize, score: f32| {
            let row = range.start + at;
            if frame.has_direction(row) && passes(row as u32) {
                found.take(row as u32, score, found.bound.of(frame.lengths[row]));
                if found.open.len() >= OPEN {
                    found.narrow();
                    if found.open.len() > OPEN / 2 {
                        found.resolve(rows, scorer);
                    }
                }
            }
            limit(found)
        };
        match frame.form {
            Form::Distance => {
                vectorised_loop(Passing { products, sides, limit: first, score: |p, s| 2.0 * p - s, take })
            }
            Form::Product => vectorised_loop(Passing { products, sides, limit: first, score: |p, _| p, take }),
            Form::Share => vectorised_loop(Passing { products, sides, limit: first, score: |p, s| p * s, take }),
        }
    }
}

/// Hands over the scores that are not below a limit, which follows.
struct Passing<'a, S, T> {
    products: &'a [f32],
    sides: &'a [f32],
    limit: f32,
    score: S,
    take: T,
}

impl<S: Fn(f32, f32) -> f32, T: FnMut(usize, f32) -> f32> Loop for Passing<'_, S, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self { products, sides, mut limit, score, mut take } = self;
        let ((products, products_left), (sides, sides_left)) =
            (products.as_chunks::<TOGETHER>(), sides.as_chunks::<TOGETHER>());
        let mut scores = [0.0f32; TOGETHER];
        for (first, (products, sides)) in products.iter().zip(sides).enumerate() {
            let mut any = false;
            for ((to, &product), &side) in scores.iter_mut().zip(products).zip(sides) {
                *to = score(product, side);
                // A score that is no number says nothing.
                let is_below = *to < limit;
                any |= !is_below;
            }
            if any {
                for (at, &score) in scores.iter().enumerate() {
                    let is_below = score < limit;
                    if !is_below {
                        limit = take(first * TOGETHER + at, score);
                    }
                }
            }
        }
        let done = products.len() * TOGETHER;
        for (at, (&product, &side)) in products_left.iter().zip(sides_left).enumerate() {
            let score = score(product, side);
            let is_below = score < limit;
            if !is_below {
                limit = take(done + at, score);
            }
        }
    }
}

/// The share of the exact answers that were found, over all queries; any row found with the score of
/// the last exact answer counts, since rows may be equal. 1 if there is nothing to find.
///
/// Scores that are equal as f32 count as equal: [`Index::recall`](crate::Index::recall) compares the rows themselves.
///
/// # Panics
/// If the numbers of queries differ.
pub fn recall(found: &RankedBatch, exact: &RankedBatch) -> f64 {
    Share::of(found, exact, usize::MAX, |_, _, _| true).mean
}

/// A share that is counted over queries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Share {
    pub(crate) mean: f64,
    /// By how much it may be off for other queries like these: a standard error.
    pub(crate) error: f64,
}

impl Share {
    /// The share of the first `k` exact answers that are among as many of those found. `is_as_good` says of a query
    /// whether a row whose score is that of the last of these as an f32 is as good as that row.
    ///
    /// # Panics
    /// If the numbers of queries differ.
    pub(crate) fn of(
        found: &RankedBatch,
        exact: &RankedBatch,
        k: usize,
        is_as_good: impl Fn(usize, u32, u32) -> bool,
    ) -> Self {
        assert_eq!(found.len(), exact.len(), "queries");
        let (mut hits, mut wanted, mut squares, mut n) = (0, 0, 0.0, 0usize);
        for (query, (found, exact)) in found.iter().zip(exact.iter()).enumerate() {
            let exact = &exact[..exact.len().min(k)];
            let Some(last) = exact.last() else { continue };
            let is_hit = |s: &&Scored| {
                s.score > last.score
                    || exact.iter().any(|e| e.label == s.label)
                    || s.score == last.score && is_as_good(query, s.label, last.label)
            };
            let of_query = found.iter().take(exact.len()).filter(is_hit).count();
            (hits, wanted, n) = (hits + of_query, wanted + exact.len(), n + 1);
            squares += (of_query as f64 / exact.len() as f64).powi(2);
        }
        if wanted == 0 {
            return Self { mean: 1.0, error: 0.0 };
        }
        let (mean, n) = (hits as f64 / wanted as f64, n as f64);
        Self { mean, error: ((squares / n - mean * mean).max(0.0) / n).sqrt() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lists(of: &[&[u32]]) -> RankedBatch {
        let mut batch = RankedBatch::new();
        for labels in of {
            let row: Vec<Scored> = labels.iter().map(|&label| Scored { label, score: -(label as f32) }).collect();
            batch.push_row(&row);
        }
        batch
    }

    #[test]
    fn a_share_is_counted_over_answers_and_its_error_over_queries() {
        let share = |found: &RankedBatch, exact: &RankedBatch, k| Share::of(found, exact, k, |_, _, _| true);
        let truth = lists(&[&[0, 1, 2, 3], &[4, 5, 6, 7], &[], &[8, 9]]);
        // The best of one query of three is missing, and one row of ten.
        let found = lists(&[&[1, 2, 3, 10], &[4, 5, 6, 7], &[], &[8, 9]]);
        assert_eq!(share(&found, &truth, usize::MAX).mean, 0.9);
        assert_eq!(share(&found, &truth, 1).mean, 2.0 / 3.0);
        assert!((share(&found, &truth, 1).error - (2.0f64 / 27.0).sqrt()).abs() < 1e-12);
        assert_eq!(share(&truth, &truth, 1), Share { mean: 1.0, error: 0.0 });
        // Nothing is missing where there is nothing to find.
        assert_eq!(share(&lists(&[&[]]), &lists(&[&[]]), 1).mean, 1.0);
        assert_eq!(share(&lists(&[&[]]), &lists(&[&[1]]), 1).mean, 0.0);
    }

    #[test]
    fn equal_f32_are_compared_again() {
        let batch = |labels: [u32; 2]| {
            let mut batch = RankedBatch::new();
            batch.push_row(&labels.map(|label| Scored { label, score: 1.0 }));
            batch
        };
        let (truth, found) = (batch([4, 7]), batch([4, 9]));
        assert_eq!(recall(&found, &truth), 1.0);
        assert_eq!(Share::of(&found, &truth, 2, |_, row, than| (row, than) != (9, 7)).mean, 0.5);
    }
}
