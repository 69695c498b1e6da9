//! Exact answers, by comparing all rows.

use crate::best::spared;
use crate::metric::Metric;
use rayon::prelude::*;
use xc_sparse::DenseRows;
use xc_sparse::dense::{self, MatRef, MatmulPrecision, Start};
use xc_sparse::rank::{RankedBatch, Scored, TopK};

/// Queries of a block, and rows.
const QUERIES: usize = 32;
const ROWS: usize = 2048;

/// The `k` best rows of each query, best first; equal scores are ordered by row. Under the cosine a row
/// of zeros is never an answer.
///
/// A matrix product finds a few more rows than wanted, whose scores are then computed one by one.
/// *Cost*: 2 operations per coordinate of each row and query; queries are divided among the ambient
/// threads.
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
    assert_eq!(rows.width(), queries.width(), "coordinates of rows and queries");
    // Under distances a score is 2 q x - x x, under the cosine q x over the length of x.
    let scan = Scan { rows, metric, squares: &metric.squares(rows), k, passes };
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
    scores: Vec<f32>,
    best: Vec<TopK>,
    labels: Vec<u32>,
    scratch: dense::Scratch,
}

struct Scan<'a> {
    rows: DenseRows<'a>,
    metric: Metric,
    squares: &'a [f32],
    k: usize,
    passes: &'a (dyn Fn(u32) -> bool + Sync),
}

impl Scan<'_> {
    fn answer(&self, queries: DenseRows<'_>, block: &mut Block) -> RankedBatch {
        let &Self { rows, metric, squares, k, passes } = self;
        let Block { scores: products, best, labels, scratch } = block;
        best.resize_with(queries.len(), TopK::default);
        best.iter_mut().for_each(|best| best.reset(spared(k)));
        let width = rows.width();
        for (number, part) in rows.values().chunks(ROWS * width).enumerate() {
            let (n, first) = (part.len() / width, number * ROWS);
            products.resize(queries.len() * n, 0.0);
            let (queries_of, rows_of) =
                (MatRef::new(queries.values(), queries.len(), width), MatRef::new(part, n, width));
            dense::product(products, queries_of, rows_of.t(), Start::Zero, MatmulPrecision::F32, scratch);
            for (scores, best) in products.chunks_exact(n).zip(&mut *best) {
                for (at, &score) in scores.iter().enumerate() {
                    let row = first + at;
                    let score = match metric {
                        Metric::InnerProduct => score,
                        Metric::L2 => 2.0 * score - squares[row],
                        Metric::Cosine if squares[row] > 0.0 => score / squares[row].sqrt(),
                        Metric::Cosine => continue,
                    };
                    // Few are asked for: most rows are below what is kept already.
                    if score >= best.threshold() && passes(row as u32) {
                        best.push(Scored { label: row as u32, score });
                    }
                }
            }
        }
        let (mut all, mut exact) = (RankedBatch::new(), TopK::default());
        for (query, best) in queries.iter().zip(best) {
            labels.clear();
            labels.extend(best.best().iter().map(|found| found.label));
            metric.scores(query, rows, labels, products);
            exact.reset(k);
            labels.iter().zip(&*products).for_each(|(&label, &score)| exact.push(Scored { label, score }));
            all.push_row(exact.sorted());
        }
        all
    }
}

/// The share of the exact answers that were found, over all queries; any row found with the score of
/// the last exact answer counts, since rows may be equal. 1 if there is nothing to find.
///
/// # Panics
/// If the numbers of queries differ.
pub fn recall(found: &RankedBatch, exact: &RankedBatch) -> f64 {
    assert_eq!(found.len(), exact.len(), "queries");
    let (mut hits, mut wanted) = (0, 0);
    for (found, exact) in found.iter().zip(exact.iter()) {
        let Some(last) = exact.last() else { continue };
        let is_hit = |s: &&Scored| s.score >= last.score || exact.iter().any(|e| e.label == s.label);
        hits += found.iter().take(exact.len()).filter(is_hit).count();
        wanted += exact.len();
    }
    if wanted == 0 { 1.0 } else { hits as f64 / wanted as f64 }
}

/// Share of the queries with an answer whose best row, or one as good, is among those found.
pub(crate) fn recall_of_best(found: &RankedBatch, exact: &RankedBatch) -> f64 {
    assert_eq!(found.len(), exact.len(), "queries");
    let best = found.iter().zip(exact.iter()).filter_map(|(found, exact)| Some((found.first(), exact.first()?)));
    let (hits, wanted) = best.fold((0, 0), |(hits, wanted), (found, best)| {
        let is_hit = found.is_some_and(|found| found.score >= best.score || found.label == best.label);
        (hits + usize::from(is_hit), wanted + 1)
    });
    if wanted == 0 { 1.0 } else { f64::from(hits as u32) / f64::from(wanted) }
}
